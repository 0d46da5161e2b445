//! A recording of the pipeline probe: its files and threads, from the placement to the stored run.
//!
//! Every 50 ms the calling thread takes slow messages out of the consumers' queues and refills the journaller's stock.
//! The follower, behind the interface in `follow`, finds the cause of a slow message in the kernel's events.

mod error;
mod fit;
mod follow;
mod input;
mod journal;
mod memory;
mod recording;
mod remarks;
mod result;
mod schedule;
mod settings;
mod slow;
mod threads;
mod tracing;

pub use error::PipelineRecordError;
pub use fit::{Room, misfits};
pub use jitterscope_probe::pipeline::{PipelineError, Place};
pub use recording::record_pipeline;
pub use schedule::{Schedule, ScheduleChoice};
pub use settings::{InputChoice, PipelineLength, PipelineRecordSettings, Places};

pub(crate) use tracing::split;
