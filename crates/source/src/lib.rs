//! Sources of kernel events.
//!
//! | module | what |
//! |---|---|
//! | [`ring`] | the kernel's ring-buffer pages: raw records and losses |
//! | [`mod@format`] | the kernel's event formats |
//! | [`decode`] | pages to [`KernelEvent`](jitterscope_model::KernelEvent)s |
//! | [`tracefs`] | the live source: our own instances, drained without waiting |
//! | [`tracedat`] | another tool's file: `trace.dat` |
//! | [`perfdata`] | another tool's file: `perf.data` |
//! | [`ctf`] | another tool's folder: a CTF trace, as LTTng writes it |
//! | [`perfetto`] | another tool's file: a trace of Perfetto |
//! | [`marks`] | an application's own log: what it says of the time of a run |
//! | [`counters`] | the counters in `/proc`: no privilege needed, correlation only |
//! | [`smi`] | the processor's count of system management interrupts |
//! | [`survey()`] | which sources a machine has |
//! | [`symbols`], [`tasks`] | names of kernel functions and of threads |
//!
//! A [`TraceContext`] holds the data for decoding pages anywhere, so stored and live runs take the same path.
#![forbid(unsafe_code)]

mod calls;
mod context;
pub mod counters;
pub mod ctf;
pub mod decode;
pub mod format;
pub mod marks;
mod moment;
mod own_record;
mod page_store;
pub mod perfdata;
pub mod perfetto;
pub mod ring;
pub mod smi;
mod sorted;
mod stacks;
mod survey;
pub mod symbols;
pub mod tasks;
pub mod tracedat;
pub mod tracefs;

pub use calls::CallDecoder;
pub use context::{ContextError, FormatText, TraceContext};
pub use decode::{AskedDecoder, AskedRecord, DecodeCounts, Decoder, Mark, PageInfo};
pub use moment::Moment;
pub use ring::{Page, PageError, PageLayout, PageLoss, PageRecords, RawRecord};
pub use stacks::StackDecoder;
pub use survey::{in_namespace, problem_in_namespace, sources, survey};
pub use symbols::{Symbols, SymbolsError};
pub use tasks::Tasks;
pub use tracefs::{
    AskedError, CallGraph, GraphSettings, Recorder, RecorderSettings, Role, SleepStacks,
    StackSettings, Tampering, TraceError, Tracefs,
};
