//! tracefs: live kernel events.
//!
//! [`Tracefs::open`] finds or mounts it, [`Recorder::start`] makes two tracing instances of our own: *local* records
//! the activity on the measured CPUs, *senders* records on all CPUs the events that target them. Nothing outside the
//! two instances changes, and dropping the recorder removes them.
//!
//! Start a recorder before the warm-up. It prepares everything before it switches tracing on, because enabling an event
//! rewrites kernel text and interrupts every CPU. Full buffers overwrite the oldest events, because only then pages
//! state where events are missing and how many. Reads never wait, so no measured CPU has to wake a reader.

mod asked;
mod controls;
mod error;
mod events;
mod filter;
mod graph;
mod graph_functions;
mod instance;
mod instances;
mod mount;
mod mountinfo;
mod owner;
mod pipe;
mod recorder;
mod side;
mod stacks;
mod stats;
mod watch;
mod writer;

pub use asked::AskedError;
pub use error::TraceError;
pub(crate) use events::{
    Missing, is_recorded, missing_in, missing_local, missing_senders, system_of,
};
pub use graph::{CallGraph, GraphSettings, graph_functions, graph_support};
pub use instance::Leftover;
pub use jitterscope_model::TraceRole as Role;
pub use mount::{Clocks, Tracefs};
pub use pipe::{CpuLoss, Drained};
pub(crate) use recorder::refused;
pub use recorder::{Recorder, RecorderSettings, Tampering};
pub use stacks::{SleepStacks, StackSettings, stack_support};
pub use stats::BufferStats;

use jitterscope_model::ClockKind;

/// The kernel's name of the trace clock that matches the probe's clock.
#[must_use]
pub fn clock_name(clock: ClockKind) -> &'static str {
    match clock {
        ClockKind::Tsc => "x86-tsc",
        ClockKind::MonotonicRaw => "mono_raw",
    }
}

#[cfg(test)]
mod control_tests;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod graph_tests;
#[cfg(test)]
mod stacks_tests;
#[cfg(test)]
mod tests;
