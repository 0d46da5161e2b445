//! A recording of the pipeline probe: its files and threads, from the placement to the stored run.
//!
//! The calling thread drains: slow messages out of the consumers' queues, room into the journaller's stock,
//! every 50 ms. What becomes of a slow message beyond its row is the business of whoever follows the
//! threads through the kernel, behind the one seam of `follow`.

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
