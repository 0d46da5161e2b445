//! Why a file is not read.

use crate::page_store::PagesError;
use std::io;

/// A trace from which nothing can be imported.
#[derive(Debug, thiserror::Error)]
pub enum PerfettoError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the file of pages cannot be written: {0}")]
    Pages(io::Error),
    #[error(
        "this is a trace of Perfetto without kernel events that jitterscope knows; record some: a data source \
         linux.ftrace with ftrace_events 'sched/*', 'irq/*', 'timer/*', 'workqueue/*', 'task/*', 'irq_vectors/*'"
    )]
    NoEvents,
    #[error(
        "this is a trace of Perfetto whose kernel events have the clock number {clock}, of which nothing is known; \
         record on a kernel with the trace clock boot"
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
