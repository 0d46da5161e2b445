//! Reading a clock, and looping on it.
//!
//! The loop that measures stands here, because here it can reach nothing that would disturb it: the crate
//! has no standard library, no allocator and no dependency, so that no file, no memory of its own and no
//! logger is within reach. The memory that it counts in, and what is to be done about a long delta, are
//! given to it by the probe. Times are plain `u64` ticks for the same reason: the crate knows no other.
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
