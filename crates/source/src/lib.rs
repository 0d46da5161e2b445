//! Where kernel events come from.
//!
//! | module | what |
//! |---|---|
//! | [`ring`] | the kernel's ring-buffer pages: raw records and losses |
//! | [`mod@format`] | event formats as the kernel states them |
//! | [`decode`] | pages to [`KernelEvent`](jitterscope_model::KernelEvent)s |
//! | [`tracefs`] | the live source: instances of our own, drained without waiting |
//! | [`counters`] | the counters in `/proc`: without any privilege, correlation only |
//! | [`smi`] | the processor's count of system management interrupts |
//! | [`survey()`] | what of all this a machine has |
//! | [`symbols`], [`tasks`] | names of kernel functions and of threads |
//!
//! A [`TraceContext`] holds what pages need to be decoded anywhere, so that a stored run and a live one
//! take the same path.
#![forbid(unsafe_code)]

mod calls;
mod context;
pub mod counters;
pub mod decode;
pub mod format;
pub mod ring;
pub mod smi;
mod survey;
pub mod symbols;
pub mod tasks;
pub mod tracefs;

pub use calls::CallDecoder;
pub use context::{ContextError, FormatText, TraceContext};
pub use decode::{DecodeCounts, Decoder, PageInfo};
pub use ring::{Page, PageError, PageLayout, PageLoss, PageRecords, RawRecord};
pub use survey::{sources, survey};
pub use symbols::{Symbols, SymbolsError};
pub use tasks::Tasks;
pub use tracefs::{
    CallGraph, GraphSettings, Recorder, RecorderSettings, Role, TraceError, Tracefs,
};
