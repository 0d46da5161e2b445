//! The machine: its clocks, CPUs, privileges and control files.
mod machine;

pub use machine::{FileError, Machine};

pub mod disturb;
