//! A recording from start to end.
//!
//! One engine records every kind of target: probes that spin or sleep ([`record`]), the pipeline
//! ([`pipeline::record_pipeline`]), and the threads of other processes ([`attach()`]). It starts the target and its
//! sources, drains both on CPUs that are not measured, hands rows to the store and to every other [`Output`], and
//! always cleans up. It prints nothing: progress goes to an [`Observer`], and the result is the run directory.
#![forbid(unsafe_code)]

mod after;
mod asked;
mod before;
mod begun_events;
mod counters;
mod cross_check;
mod disturbances;
mod drain;
mod engine;
mod error;
mod faults;
mod feed;
mod gaps;
mod graph;
mod groups;
mod hints;
mod housekeeping;
mod identities;
mod import;
mod interval_lengths;
mod kept_names;
mod kernel_events;
mod killed;
mod moved;
mod names;
mod observer;
mod passive;
pub mod pipeline;
mod price;
mod probe_error;
mod probe_events;
mod probes;
mod quota_counts;
mod quotas;
mod recording;
mod renames;
mod replay;
pub mod selftest;
mod settings;
mod stacks;
mod steal;
mod surroundings;
mod threads;
mod threshold;
mod warnings;
pub mod watch;

pub use asked::check_asked;
pub use engine::{Delivered, LeftBehind, Outcome, Output, TakingDown, WriterUse};
pub use error::RecordError;
pub use graph::GraphError;
pub use import::{ImportError, ImportSettings, Imported, Victim, import, import_into};
pub use jitterscope_source::AskedError;
pub use kept_names::StoredNames;
pub use killed::{Ended, finish_killed};
pub use observer::{Observer, Progress, Step};
pub use passive::{Owners, PassiveRecordSettings, record_passive, watch_passive};
pub use probe_error::ProbeError;
pub use recording::{Extra, LARGEST_THRESHOLD, record};
pub use replay::{
    EachStall, ReplayError, Replayed, reattributed, replay, stall_timeline, stall_timelines,
};
pub use settings::{RecordSettings, RunSettings, WakeupChoice, WriterThread, idle_control};
pub use threads::{AttachSettings, FollowError, Followed, attach};
pub use threshold::needed_threshold;
