//! The run directory: its only reader and its only writer.
//!
//! A run is a folder `<utc>-<label>-<id>` below the folder of runs. It is built under a hidden name
//! (`.partial-...`), synced, and renamed when whole, so that a killed recorder leaves nothing that looks
//! like a run. Everything streams: a day takes no more memory than a minute.
//!
//! Root records where others may write. The folder of runs and every folder on its way must belong to root
//! or to the user who records, and nobody else may write to them unless they are sticky; a run's folder has
//! mode 0700 and its files 0600 (raw pages and `context.json` hold addresses of the kernel). It is held open
//! while it is written and while it is read, and nothing in it is reached through a link.
//!
//! A disk may fill up at any time. Rows are taken in only while there is room for them, for what closes
//! their file and for the manifest, so the run is kept up to there.
//!
//! | file | what |
//! |---|---|
//! | `manifest.json` | [`RunHead`](jitterscope_model::RunHead): what a list of runs shows |
//! | `details.json` | [`RunManifest`](jitterscope_model::RunManifest): all but the rows and the machine |
//! | `machine.json` | [`MachineState`](jitterscope_model::MachineState): the machine that it was made on |
//! | `summary.json` | what the rows below come to, for reports that need no more; made from them, of a pipeline as soon as the run is whole; left out where its writer did not know |
//! | `gaps.parquet` | one row a stall |
//! | `attributions.parquet` | one row a (stall, culprit) |
//! | `intervals.parquet` | one row a (CPU, reporting interval) |
//! | `histograms.hlog` | HdrHistogram V2 interval log of the stalls, one tag a (probe, CPU), values in ns, stalls that have no record with their mean length; then, of a pipeline, each of its histograms whole |
//! | `journal.bin` | a pipeline's journal, records of 32 bytes, where none was named elsewhere |
//! | `trace/context.json` | what is needed to decode the raw trace |
//! | `trace/spans.json` | where in time the segments lie, so that a moment's are found without a look at the others; left out where there was no room |
//! | `trace/segments/NNNNNN.seg` | raw ring-buffer pages, see [`trace`](TraceRole), and behind those of each turn what else the recorder did in it, see [`DrainTurn`](jitterscope_model::DrainTurn) |
//!
//! Parquet columns and their units are listed in [`SCHEMA`]; times in `_ticks` are of the manifest's
//! clock. Rows of all tables are in order of `stall_id` or of time.
#![forbid(unsafe_code)]

mod document;
mod error;
mod head;
mod hlog;
mod hlog_reader;
mod legacy;
mod naming;
mod page_spill;
mod pages;
mod partial;
mod reader;
mod reserved;
mod rows;
mod runs;
mod segment;
mod segment_spans;
mod sink;
mod syncing;
mod table;
mod tables;
mod trace_index;
mod trace_pieces;
mod writer;

pub use error::StoreError;
pub use hlog_reader::StoredHistogram;
pub use jitterscope_model::TraceRole;
pub use legacy::subject as culprit_of_version_1;
pub use naming::check_label;
pub use reader::RunReader;
pub use rows::StoredRow;
pub use runs::{
    CleanedPartials, Partial, Problem, RunEntry, clean_partials, list, partials, remove, resolve,
    resolve_all, size_on_disk,
};
pub use sink::{Room, StoreSink};
pub use tables::{Column, SCHEMA};
pub use trace_index::TraceIndex;
pub use trace_pieces::{StoredPage, TracePiece};
pub use writer::{RunWriter, add_summary};
