//! Why a file is not read.

use crate::page_store::PagesError;
use std::io;

/// What a trace that can be imported is recorded with.
pub const HOW_TO_RECORD: &str = "a data source linux.ftrace with symbolize_ksyms and ftrace_events 'sched/*', 'irq/*', \
    'irq_vectors/*', 'timer/*', 'workqueue/*', 'task/*'";

/// A trace from which nothing can be imported.
#[derive(Debug, thiserror::Error)]
pub enum PerfettoError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the file of pages cannot be written: {0}")]
    Pages(io::Error),
    #[error(
        "this is a trace of Perfetto without kernel events that jitterscope knows; record some: {HOW_TO_RECORD}"
    )]
    NoEvents,
    #[error(
        "this is a trace of Perfetto whose kernel events use clock {clock}, which jitterscope does not know; record with \
         the kernel's trace clock boot"
    )]
    Clock { clock: u64 },
    #[error("this is a trace of Perfetto with more losses than records could have: it is damaged")]
    Losses,
    /// The user ended it.
    #[error("interrupted")]
    Stopped,
}

impl From<PagesError> for PerfettoError {
    fn from(error: PagesError) -> PerfettoError {
        match error {
            PagesError::Io(error) => PerfettoError::Pages(error),
            PagesError::Losses => PerfettoError::Losses,
        }
    }
}
