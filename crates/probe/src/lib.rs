//! The measuring threads.
//!
//! The loop that reads the clock is in `jitterscope_clock`, which cannot reach anything that disturbs it. This crate
//! sets up the loop and keeps its results.
//!
//! A probe runs on the CPU that it measures, so it must do nothing that would show in its own measurement. It uses the
//! clock and memory that was faulted in beforehand, never a file, an allocator or a logger. Its only system call is the
//! sleep that the wake-up probe measures. Results leave through bounded queues that it never waits for.

mod control;
mod gap_queue;
mod of_kind;
pub mod pipeline;
mod spin;
mod wakeup;

pub use control::ProbeControl;
pub use of_kind::{Run, costs_of_clock, spin_probe, wakeup_probe};
use spin::clock_costs;
pub use spin::{ClockCosts, IntervalMark, SpinError, SpinOutput, SpinProbe, SpinSettings};
pub use wakeup::{WakeupError, WakeupProbe, WakeupSettings};
