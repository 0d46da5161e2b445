//! Errors that end a recording of the pipeline.

use crate::error::{RecordError, is_refused_priority};
use jitterscope_model::{Misfit, PipelineRole};
use jitterscope_platform::{AccessError, MapError, MessagePathError, SelectionError};
use jitterscope_probe::pipeline::PipelineError;
use std::path::PathBuf;

/// A recording of the pipeline that produced no run.
#[derive(Debug, thiserror::Error)]
pub enum PipelineRecordError {
    /// An error of any kind of recording.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The threads cannot be set up.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// Input or journal cannot be mapped.
    #[error(transparent)]
    File(#[from] MapError),
    /// The folder of the input cannot be created.
    #[error("an input cannot be made in {}: {source}; name an input with --input", path.display())]
    InputFolder { path: PathBuf, source: AccessError },
    /// The input exceeds the address space.
    #[error("{records} records of {length} bytes are too much for an input")]
    InputSize { records: u64, length: usize },
    /// All iterations are warm-up, or there are too many.
    #[error(
        "{iterations} iterations of which {warm_up} are warm-up leave nothing that can be measured"
    )]
    NothingLeft {
        /// Iterations, including the warm-up.
        iterations: u64,
        /// Iterations of the warm-up.
        warm_up: u64,
    },
    /// The ring is too large for memory.
    #[error(
        "--ring {slots} of {record_length} bytes a record takes {needs_mib} MiB, more than half of the {free_mib} MiB that are free"
    )]
    Memory {
        /// Slots of the ring.
        slots: u64,
        record_length: u64,
        /// MiB of the whole ring.
        needs_mib: u64,
        /// Free MiB.
        free_mib: u64,
    },
    /// Messages cannot travel through the kernel.
    #[error(transparent)]
    Path(#[from] MessagePathError),
    /// The journal's file contains something else.
    #[error("{} is no journal and would be overwritten: name another file, or remove it", .0.display())]
    NotAJournal(PathBuf),
    /// The measurement would measure its own placement.
    #[error("thread placement would dominate the result; --force measures it anyway")]
    Misfit(Vec<Misfit>),
    /// Spinning real-time threads would occupy the whole machine, or each other's CPU.
    #[error(
        "SCHED_FIFO threads that spin never give way: leave a CPU free for everything else and give each thread \
         its own, or leave out --priority"
    )]
    WouldHang,
    /// A thread was placed on a CPU that it may not use.
    #[error("the pipeline's threads: {0}")]
    Cpu(#[from] SelectionError),
    /// A thread could not be created.
    #[error("the {role}'s thread could not be started: {source}")]
    Thread {
        role: PipelineRole,
        source: std::io::Error,
    },
    /// A thread ended without a result.
    #[error("the {0}'s thread panicked; this is a bug")]
    Panicked(PipelineRole),
}

impl From<jitterscope_store::StoreError> for PipelineRecordError {
    fn from(error: jitterscope_store::StoreError) -> Self {
        PipelineRecordError::Record(error.into())
    }
}

impl From<jitterscope_model::SinkError> for PipelineRecordError {
    fn from(error: jitterscope_model::SinkError) -> Self {
        PipelineRecordError::Record(error.into())
    }
}

impl From<jitterscope_platform::ClockError> for PipelineRecordError {
    fn from(error: jitterscope_platform::ClockError) -> Self {
        PipelineRecordError::Record(error.into())
    }
}

impl PipelineRecordError {
    /// See [`RecordError::is_unavailable_here`].
    #[must_use]
    pub fn is_unavailable_here(&self) -> bool {
        match self {
            PipelineRecordError::Record(error) => error.is_unavailable_here(),
            PipelineRecordError::Path(error) => error.is_unavailable_here(),
            PipelineRecordError::Pipeline(PipelineError::Place { source, .. }) => {
                is_refused_priority(source)
            }
            _ => false,
        }
    }
}
