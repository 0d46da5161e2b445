//! The machine: its clocks, CPUs, privileges and control files.
mod machine;

pub use machine::{FileError, Machine};

mod thread_affinity;
pub use thread_affinity::set_thread_affinity;
