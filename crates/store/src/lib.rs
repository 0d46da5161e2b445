//! The run directory: its only reader and its only writer.
//!
//! A run is a folder `<utc>-<label>-<id>` below the folder of runs. The writer builds it under a hidden name
//! (`.partial-...`), syncs it and renames it when it is complete, so a killed recorder leaves nothing that looks like a
//! run. Everything streams: a day takes no more memory than a minute.
//!
//! A hidden folder also has `rows.log`, rows in batches that need no footer, `sealed.json`, which says which rows are in
//! the tables for good and no longer in the log, and `beginning.json`, the manifest of the beginning. From them [`KilledRun`] makes a run of what a killed recorder left.
//!
//! Root records into folders that other users may write to. The folder of runs and each of its parents must belong to
//! root or to the recording user, and no other user may write to them unless they are sticky. A run's folder has mode
//! 0700 and its files 0600 (raw pages and `context.json` hold kernel addresses). The folder stays open while it is
//! written or read, and no access inside it follows a link.
//!
//! A disk may fill up at any time. The writer accepts rows only while there is room for them, for closing their file
//! and for the manifest, so everything accepted is kept.
//!
//! | file | content |
//! |---|---|
//! | `manifest.json` | [`RunHead`](jitterscope_model::RunHead): what a list of runs shows |
//! | `details.json` | [`RunManifest`](jitterscope_model::RunManifest): everything but the rows and the machine |
//! | `machine.json` | [`MachineState`](jitterscope_model::MachineState): the machine of the recording |
//! | `summary.json` | the summary of the rows below, for reports that need no more; for a pipeline, added as soon as the run is complete; absent where its writer did not compute it |
//! | `stalls.parquet` | one row a stall |
//! | `parts.parquet` | one row a (stall, culprit): numbers alone |
//! | `culprits.parquet` | one row a culprit, by its number within the run |
//! | `remarks.parquet` | one row a combination of phase, placement, confidence and evidence that parts have |
//! | `intervals.parquet` | one row a (CPU, reporting interval) |
//! | `views.sql` | views for people: `attributions` joins parts, culprits and remarks |
//! | `marks.json` | [`MarkLog`](jitterscope_model::MarkLog)s: what an application's logs say, as `annotate` and `--marks` add it; absent without |
//! | `histograms.hlog` | HdrHistogram V2 interval log of the stalls, one tag a (probe, CPU), values in ns, stalls without a record at their mean length; then, for a pipeline, each of its whole-run histograms |
//! | `journal.bin` | a pipeline's journal, records of 32 bytes, unless the user named another file |
//! | `trace/context.json` | what is needed to decode the raw trace |
//! | `trace/spans.json` | the time span of each segment, so that a reader opens only the segments of a moment; absent if the disk had no room |
//! | `trace/segments/NNNNNN.seg` | raw ring-buffer pages, see [`trace`](TraceRole), and after the pages of each turn what else the recorder did in it, see [`DrainTurn`](jitterscope_model::DrainTurn) |
//!
//! [`SCHEMA`] lists the Parquet columns and their units; times in `_ticks` are of the manifest's clock. The rows of
//! every table are in order of their ids or of time.
#![forbid(unsafe_code)]

mod budget;
mod compact;
mod culprits;
mod document;
mod error;
mod guarded_table;
mod head;
mod hlog;
mod hlog_reader;
mod killed;
mod marks;
mod naming;
mod pages;
mod partial;
mod reader;
mod reserved;
pub mod rollup;
mod row_group;
mod row_log;
mod rows;
mod run_tables;
mod runs;
mod sealed;
mod segment;
mod segment_spans;
mod sink;
mod syncing;
mod table;
mod table_reader;
mod tables;
mod trace_index;
mod trace_mend;
mod trace_pieces;
mod writer;

pub use budget::allow_memory;
pub use error::StoreError;
pub use hlog_reader::StoredHistogram;
pub use jitterscope_model::TraceRole;
pub use killed::{KilledRun, Remains};
pub use marks::{add_marks, remove_marks};
pub use naming::check_label;
pub use reader::RunReader;
pub use rows::StoredRow;
pub use runs::{
    KilledRuns, Partial, Problem, RunEntry, killed_runs, list, list_own, move_run, partials,
    remove, resolve, resolve_all, resolve_all_in, resolve_in, size_on_disk,
};
pub use sink::{Room, StoreSink};
pub use tables::{Column, Named, SCHEMA, Table, VIEWS, views};
pub use trace_index::TraceIndex;
pub use trace_pieces::{StoredPage, TracePiece};
pub use writer::{RunWriter, add_summary};
