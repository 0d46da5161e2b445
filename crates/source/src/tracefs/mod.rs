//! tracefs: the kernel's events, live.
//!
//! [`Tracefs::open`] finds or mounts it, [`Recorder::start`] makes two tracing instances of our own:
//! *local* records what ran on the measured CPUs, *senders* records on all CPUs what was aimed at them.
//! Nothing outside the two instances is touched, and dropping the recorder removes them.
//!
//! A recorder is prepared in full before tracing is switched on, since enabling an event rewrites
//! kernel text and interrupts every CPU: start it before the warm-up. Buffers overwrite the oldest
//! events when full, because only then do pages say where events are missing and how many. Reads never
//! wait, so no reader has to be woken from a measured CPU.

mod error;
mod events;
mod filter;
mod graph;
mod graph_functions;
mod instance;
mod mount;
mod mountinfo;
mod owner;
mod pipe;
mod recorder;
mod side;
mod stats;
mod writer;

pub use error::TraceError;
pub(crate) use events::{Missing, missing_local, missing_senders};
pub use graph::{CallGraph, GraphSettings, graph_functions, graph_support};
pub use instance::Leftover;
pub use jitterscope_model::TraceRole as Role;
pub use mount::{Clocks, Tracefs};
pub use pipe::{CpuLoss, Drained};
pub(crate) use recorder::refused;
pub use recorder::{Recorder, RecorderSettings};
pub use stats::BufferStats;

use jitterscope_model::ClockKind;

/// The kernel's name of the trace clock that counts as the probe's clock does.
#[must_use]
pub fn clock_name(clock: ClockKind) -> &'static str {
    match clock {
        ClockKind::Tsc => "x86-tsc",
        ClockKind::MonotonicRaw => "mono_raw",
    }
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod graph_tests;
#[cfg(test)]
mod tests;
