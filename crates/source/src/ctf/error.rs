//! Why a folder is not read.

use crate::page_store::PagesError;
use std::io;

/// A trace from which nothing can be imported.
#[derive(Debug, thiserror::Error)]
pub enum CtfError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the file of pages cannot be written: {0}")]
    Pages(io::Error),
    #[error("this is a CTF trace of version {major}.{minor}; jitterscope reads version 1.8")]
    Version { major: u64, minor: u64 },
    #[error(
        "this is a CTF trace of version 2, whose metadata are JSON; jitterscope reads version 1.8. Convert it: \
         babeltrace2 FOLDER --component sink.ctf.fs --params 'path=\"OTHER\",ctf-version=\"1\"'"
    )]
    Version2,
    #[error("this is a CTF trace whose metadata are damaged: a packet {why}")]
    Packet { why: &'static str },
    #[error("this is a CTF trace whose metadata cannot be read: {why}, in line {line}")]
    Metadata { line: u32, why: &'static str },
    #[error(
        "this is a CTF trace without kernel events that jitterscope knows; record some: lttng enable-event --kernel \
         'sched_*,irq_*,timer_*,workqueue_*'"
    )]
    NoEvents,
    #[error(
        "this is a CTF trace whose packets do not state their CPU (cpu_id), so nobody knows which CPU an event is of"
    )]
    NoCpu,
    #[error(
        "this is a CTF trace whose events have no time: no clock is mapped to a field of their header"
    )]
    NoClock,
    #[error("this is a CTF trace whose clock counts {hz} times per second, which cannot be")]
    Clock { hz: u64 },
    #[error("this is a CTF trace with more than {most} files of events, which cannot be")]
    Streams { most: usize },
    #[error("this is a CTF trace with more losses than records could have: it is damaged")]
    Losses,
    /// The user ended it.
    #[error("interrupted")]
    Stopped,
}

impl From<PagesError> for CtfError {
    fn from(error: PagesError) -> CtfError {
        match error {
            PagesError::Io(error) => CtfError::Pages(error),
            PagesError::Losses => CtfError::Losses,
        }
    }
}
