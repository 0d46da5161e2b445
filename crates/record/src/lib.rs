//! A recording, from start to end.
//!
//! [`record`] starts the probes and the sources, drains both on CPUs that are not measured, hands stalls
//! and events to attribution and to the store, and ends everything whatever happens. It prints nothing:
//! progress goes to an [`Observer`], the result is the run directory.
#![forbid(unsafe_code)]

mod after;
mod before;
mod counters;
mod drain;
mod error;
mod evidence;
mod feed;
mod gaps;
mod hints;
mod home;
mod identities;
mod kernel_events;
mod live;
mod manifest;
mod names;
mod observer;
pub mod pipeline;
mod probes;
mod recording;
mod replay;
pub mod selftest;
mod settings;
mod sink;
mod surroundings;
mod threads;
mod warnings;

pub use error::RecordError;
pub use live::{Live, LiveSettings, Measured, Receiver};
pub use names::StoredNames;
pub use observer::{Observer, Progress};
pub use probes::ProbeError;
pub use recording::{Outcome, record};
pub use replay::{ReplayError, Replayed, StallSink, replay, stall_timeline};
pub use settings::{RecordSettings, WakeupChoice};
pub use threads::{AttachSettings, Target, TargetError, attach};
