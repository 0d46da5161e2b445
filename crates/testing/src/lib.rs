//! Helpers shared by the tests of several crates and by `xtask torture`. Nothing that is shipped depends on this crate:
//! it panics where a test must fail.
#![forbid(unsafe_code)]

mod cpus;
mod journal;
mod name;
mod neighbour;
mod python;
mod random;
pub mod shown;
mod skip;
mod tamper;
mod tmpfs;
mod turn;

pub use cpus::highest_cpu;
pub use journal::sealed_journal;
pub use neighbour::Neighbour;
pub use python::python;
pub use random::SplitMix64;
pub use skip::{SKIPS, skip};
pub use tamper::{Tamper, instances_of, recording_instances_of, tracefs};
pub use tmpfs::Tmpfs;
pub use turn::{is_root, turn};
