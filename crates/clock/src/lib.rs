//! Reading a clock, and looping on it.
//!
//! The measuring loop is in this crate because nothing here can disturb it: the crate has no standard library, no
//! allocator and no dependency, so the loop cannot reach a file, a heap or a logger. The probe provides the memory for
//! the counts and the handler for long deltas. Times are plain `u64` ticks, because the crate has no other types for
//! them.
#![cfg_attr(not(test), no_std)]

mod clock;
#[cfg(target_arch = "aarch64")]
mod cntvct;
mod deltas;
mod monotonic_raw;
mod spin;
#[cfg(target_arch = "x86_64")]
mod tsc;

pub use clock::Clock;
#[cfg(target_arch = "aarch64")]
pub use cntvct::Cntvct;
pub use deltas::ShortDeltas;
pub use monotonic_raw::MonotonicRaw;
pub use spin::{AtMark, Watcher, spin, wait_until};
#[cfg(target_arch = "x86_64")]
pub use tsc::Tsc;
