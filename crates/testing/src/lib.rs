//! What tests of several crates and `xtask torture` share. Nothing that is shipped depends on it: it panics where
//! a test must fail.
#![forbid(unsafe_code)]

mod cpus;
mod neighbour;
mod random;
mod tmpfs;
mod turn;

pub use cpus::highest_cpu;
pub use neighbour::Neighbour;
pub use random::SplitMix64;
pub use tmpfs::Tmpfs;
pub use turn::{is_root, turn};
