//! What tests of several crates share. Nothing that is shipped depends on it.
#![forbid(unsafe_code)]

mod random;
mod tmpfs;
mod turn;

pub use random::SplitMix64;
pub use tmpfs::Tmpfs;
pub use turn::{is_root, turn};
