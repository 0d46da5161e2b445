//! The crate's integration tests, linked once.

mod charges;
mod import;
mod import_into;
mod losses;
mod passive;
mod pipeline;
mod real;
mod replay;
mod tampering;
mod trace_gone;
mod verdicts;
mod wakeup_and_live;
mod writer;
