//! The measuring threads.
//!
//! The loop that reads the clock stands in `jitterscope_clock`, where nothing that disturbs can be reached;
//! here is what is set up before it and what is kept of what it tells.
//!
//! A probe runs on the CPU that it measures, so it may do nothing that would show up in its own
//! measurement: it sees memory that was faulted in beforehand and the clock, never a file, an allocator or
//! a logger, and of system calls only the sleep that the wake-up probe measures. What it finds leaves
//! through bounded queues that it never waits for.

mod control;
mod gap_queue;
pub mod pipeline;
mod spin;
mod wakeup;

pub use control::ProbeControl;
pub use spin::{
    ClockCosts, IntervalMark, SpinError, SpinOutput, SpinProbe, SpinSettings, clock_costs,
};
pub use wakeup::{WakeupError, WakeupProbe, WakeupSettings};
