//! Why a file is not read.

use crate::page_store::PagesError;
use crate::ring::LayoutError;
use crate::tracedat::TraceDatError;
use std::io;

/// A file from which nothing can be imported.
#[derive(Debug, thiserror::Error)]
pub enum PerfDataError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the file of pages cannot be written: {0}")]
    Pages(io::Error),
    #[error(
        "this is a perf.data in big-endian byte order; jitterscope reads little-endian ones. Read it there with \
         perf script"
    )]
    BigEndian,
    #[error(
        "this is a perf.data that was written as a stream (perf record -o -); jitterscope reads files. Convert it: \
         perf inject -i FILE -o OTHER"
    )]
    Stream,
    #[error(
        "this is a perf.data whose records are compressed; record again without -z: perf record -a -e 'sched:*'"
    )]
    Compressed,
    #[error(
        "this is a perf.data whose {what} is cut off: perf writes it last, so the recording was killed or the file was \
         not copied in full, and its records cannot be read without it"
    )]
    Ends { what: &'static str },
    #[error("this is a perf.data whose {what} is damaged: {why}")]
    Damaged {
        what: &'static str,
        why: &'static str,
    },
    #[error(
        "this is a perf.data without tracepoints; record some: perf record -a -k CLOCK_MONOTONIC -e 'sched:*,irq:*'"
    )]
    NoTracepoints,
    #[error(
        "this is a perf.data whose samples have no {what}; record them: perf record -a -k CLOCK_MONOTONIC -e 'sched:*,irq:*'"
    )]
    Lacks { what: &'static str },
    #[error(
        "this is a perf.data whose events have different clocks, so their records cannot be put in order; record them \
         with one: perf record -k CLOCK_MONOTONIC"
    )]
    Clocks,
    #[error("this is a perf.data whose description of pages cannot be read: {0}")]
    Layout(#[from] LayoutError),
    /// The user ended it.
    #[error("interrupted")]
    Stopped,
}

impl From<TraceDatError> for PerfDataError {
    fn from(error: TraceDatError) -> PerfDataError {
        match error {
            TraceDatError::Io(error) => PerfDataError::Io(error),
            TraceDatError::Ends { what } => PerfDataError::Ends { what },
            TraceDatError::Damaged { what, why } => PerfDataError::Damaged { what, why },
            _ => PerfDataError::Damaged {
                what: "description of its tracepoints",
                why: "it is of another form",
            },
        }
    }
}

impl From<PagesError> for PerfDataError {
    fn from(error: PagesError) -> PerfDataError {
        match error {
            PagesError::Io(error) => PerfDataError::Pages(error),
            PagesError::Losses => PerfDataError::Damaged {
                what: "list of records",
                why: "it has more losses than records could have",
            },
        }
    }
}
