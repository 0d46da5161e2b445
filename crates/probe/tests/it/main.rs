//! The crate's integration tests, linked once.

mod intervals;
mod slow_clock;
mod wakeup;
