//! Writing a run.

use crate::error::StoreError;
use crate::head::ManifestFiles;
use crate::hlog::Hlog;
use crate::naming::{check_label, compact_utc, short_id};
use crate::pages::{TracePages, TraceRole};
use crate::reserved::ReservedFile;
use crate::runs::PARTIAL_PREFIX;
use crate::tables::{AttributionRows, GapRows, IntervalRows, Rows, schema};
use arrow_schema::DataType;
use hdrhistogram::Histogram;
use jitterscope_model::{
    Attribution, ClockReading, CpuId, DrainTurn, IntervalRow, MachineState, RUN_SCHEMA_VERSION, RunManifest,
    Stall, TickRate, Ticks, Warning,
};
use jitterscope_platform::{AccessError, HeldDir, OwnerLock};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Rows gathered before they are handed to the encoder; they stay in memory until then.
const BATCH: usize = 1024;
/// Pages of a column, bytes: each column has one in memory.
const PAGE: usize = 16 << 10;
/// Free space to begin with, MiB.
const NEEDED_MIB: u64 = 64;
/// Free space below which a recording must make room or end, MiB.
const LOW_MIB: u64 = 24;
/// Room kept for the rows of a table that are taken in next and not encoded yet, bytes; twice the largest
/// batch so far where that is more.
const ROWS_AHEAD: u64 = 1 << 20;
/// Description of a row group in the footer, bytes.
const OF_ROW_GROUP: u64 = 4 << 10;
/// The pipeline's journal.
pub(crate) const JOURNAL: &str = "journal.bin";
/// Histograms of intervals and, of a pipeline, whole ones.
pub(crate) const HISTOGRAMS: &str = "histograms.hlog";
/// Raw trace kept unless said otherwise.
const DEFAULT_TRACE_LIMIT: u64 = 256 << 20;

/// One parquet file being written.
///
/// Rows are in memory until their group is written, and the file cannot be read without its footer. So
/// there is always room on disk for both, and for the batch to come; where there is none, no more rows are
/// taken in.
struct TableWriter<R> {
    path: PathBuf,
    rows: R,
    writer: ArrowWriter<ReservedFile>,
    in_group: usize,
    written: usize,
    largest_batch: u64,
    /// Whether the disk had no room for what comes next.
    pressed: bool,
}

impl<R: Rows> TableWriter<R> {
    fn create(folder: &HeldDir) -> Result<TableWriter<R>, StoreError> {
        let path = folder.path().join(R::FILE);
        let mut file = ReservedFile::create(folder, R::FILE)?;
        file.reserve(ROWS_AHEAD)?;
        let schema = schema(R::FILE);
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("jitterscope ", env!("CARGO_PKG_VERSION")).into())
            // Of each page in the footer: that would grow with the run, in memory too.
            .set_offset_index_disabled(true)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_dictionary_page_size_limit(PAGE)
            .set_data_page_size_limit(PAGE)
            .set_write_batch_size(256)
            .set_dictionary_enabled(false);
        for field in schema.fields().iter().filter(|field| *field.data_type() == DataType::Utf8) {
            // Names repeat, numbers hardly do.
            properties =
                properties.set_column_dictionary_enabled(ColumnPath::from(field.name().as_str()), true);
        }
        let writer = ArrowWriter::try_new(file, schema, Some(properties.build()))
            .map_err(|e| parquet_error(&path, e))?;
        let mut table = TableWriter {
            path,
            rows: R::default(),
            writer,
            in_group: 0,
            written: 0,
            largest_batch: 0,
            pressed: false,
        };
        table.make_sure()?;
        Ok(table)
    }

    /// Takes a row in, or refuses it when the disk is full.
    fn push(&mut self, push: impl FnOnce(&mut R)) -> Result<(), StoreError> {
        if self.pressed {
            // Somebody may have made room.
            self.make_sure()?;
            self.pressed = false;
        }
        push(&mut self.rows);
        if self.rows.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.rows.len() == 0 {
            return Ok(());
        }
        let rows = self.rows.len();
        let batch = self.rows.batch().map_err(|e| StoreError::damaged(&self.path, e))?;
        self.largest_batch = self.largest_batch.max(batch.get_array_memory_size() as u64);
        self.writer.write(&batch).map_err(|e| parquet_error(&self.path, e))?;
        self.in_group += rows;
        self.written += rows;
        if self.in_group >= row_group(self.written) {
            self.in_group = 0;
            self.writer.flush().map_err(|e| parquet_error(&self.path, e))?;
        }
        match self.make_sure() {
            // These rows still have their room.
            Err(error) if error.is_full() => self.pressed = true,
            other => other?,
        }
        Ok(())
    }

    /// Sees to room for all that is in memory, the batch to come, and the footer.
    fn make_sure(&mut self) -> Result<(), StoreError> {
        let encoded = self.writer.in_progress_size() as u64;
        let groups = self.writer.flushed_row_groups().len() as u64 + 2;
        // Incompressible bytes grow a little.
        let needed = encoded + encoded / 4 + ROWS_AHEAD.max(2 * self.largest_batch) + groups * OF_ROW_GROUP;
        self.writer.inner_mut().reserve(needed)
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.flush()?;
        // `into_inner` writes the footer.
        self.writer.into_inner().map_err(|e| parquet_error(&self.path, e))?.finish()
    }
}

/// Rows of the next row group after so many rows. A group is in memory, compressed, until it is written,
/// and its description (some 3 KiB) until the file is closed: groups that grow with the file keep both
/// small, under 10 MiB together for the hundred million rows of a day.
fn row_group(written: usize) -> usize {
    match written {
        0..=262_143 => 8_192,
        262_144..=4_194_303 => 32_768,
        _ => 131_072,
    }
}

/// The system's error inside the library's, where there is one.
fn parquet_error(path: &Path, error: ParquetError) -> StoreError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(io) => StoreError::write(path, *io),
            Err(other) => StoreError::damaged(path, other),
        },
        other => StoreError::damaged(path, other),
    }
}

/// The clock that rows are mapped to real time with.
#[derive(Clone, Copy)]
struct Clock {
    start: ClockReading,
    rate: TickRate,
}

impl Clock {
    fn realtime(&self, at: Ticks) -> u64 {
        self.start.realtime_of(at, self.rate)
    }
}

/// How often a folder is made again that another's clean-up has removed.
const TRIES: u32 = 5;

/// Whether another process, rather than the file system, is in the way of a lock.
fn error_is_others(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotFound)
}

/// The folder under its hidden name, held open; removed with all that is in it unless it was renamed.
struct PartialFolder {
    runs: HeldDir,
    held: HeldDir,
    name: String,
    renamed: bool,
    /// Tells others that it is being written to; `None` where the file system has no locks, and then
    /// nobody removes it either.
    _owner: Option<OwnerLock>,
}

impl PartialFolder {
    fn make(runs: HeldDir, name: String) -> Result<PartialFolder, AccessError> {
        let path = runs.path().join(&name);
        let mut tries = 0;
        loop {
            let held = runs.make_dir(&name)?;
            let owner = match OwnerLock::take(&path) {
                Ok(lock) => Some(lock),
                // Somebody took it for a leftover in the moment in which it had no lock yet.
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => {
                    tries += 1;
                    continue;
                }
                Err(source) if error_is_others(&source) => {
                    let _ = runs.remove_held(&held, &name);
                    return Err(AccessError::Io { path, source });
                }
                Err(_) => None,
            };
            return Ok(PartialFolder { runs, held, name, renamed: false, _owner: owner });
        }
    }

    fn rename(&mut self, to: &str) -> Result<(), StoreError> {
        let result = self.runs.rename_held(&self.held, &self.name, to);
        // Wherever it is now, what was measured is whole in it.
        self.renamed = matches!(result, Ok(()) | Err(AccessError::Replaced { .. }));
        match result {
            Err(AccessError::Replaced { .. }) => {
                Err(StoreError::Moved { path: self.runs.path().join(&self.name) })
            }
            other => other.and_then(|()| self.runs.sync()).map_err(StoreError::writing),
        }
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        if !self.renamed {
            // What cannot be removed now is swept up by `clean_partials`.
            let _ = self.runs.remove_held(&self.held, &self.name);
        }
    }
}

/// Writes one run. Dropped before [`RunWriter::finish`], it leaves nothing.
///
/// Its folder is held open, and only this user may change it: what becomes of its path meanwhile moves
/// nothing that is written.
///
/// A row that finds the disk full is refused with [`StoreError::Full`]. What was taken in before has its
/// room, and so has what closes the run: it can still be finished, and made room for.
pub struct RunWriter {
    // Closed before the folder goes.
    gaps: TableWriter<GapRows>,
    attributions: TableWriter<AttributionRows>,
    intervals: TableWriter<IntervalRows>,
    hlog: Hlog,
    manifest: ManifestFiles,
    trace: TracePages,
    partial: PartialFolder,
    runs: PathBuf,
    name: String,
    id: String,
    clock: Option<Clock>,
    /// Whether a row was lost to an error other than a full disk: such a run must not be finished.
    failed: bool,
}

impl RunWriter {
    /// Makes the folder under its hidden name and opens every file: what cannot be written shows now.
    ///
    /// # Errors
    /// The label does not fit a file name, the folder cannot be written or another user may change it or
    /// a folder on its way, or there is too little space.
    pub fn create(runs: &Path, label: &str, started_realtime_ns: u64) -> Result<RunWriter, StoreError> {
        check_label(label)?;
        let folder_error = |source| StoreError::Folder { path: runs.to_path_buf(), source };
        let folder = HeldDir::trusted_or_made(runs).map_err(folder_error)?;
        let free_mib = folder.free_bytes().map_err(folder_error)? >> 20;
        if free_mib < NEEDED_MIB {
            let path = runs.to_path_buf();
            return Err(StoreError::Space { path, free_mib, needed_mib: NEEDED_MIB });
        }
        let id = short_id(started_realtime_ns);
        let name = format!("{}-{label}-{id}", compact_utc(started_realtime_ns));
        let partial = format!("{PARTIAL_PREFIX}{name}");
        let partial = PartialFolder::make(folder, partial).map_err(folder_error)?;
        RunWriter::open(runs, partial, name, id)
    }

    fn open(runs: &Path, partial: PartialFolder, name: String, id: String) -> Result<RunWriter, StoreError> {
        let folder = &partial.held;
        Ok(RunWriter {
            gaps: TableWriter::create(folder)?,
            attributions: TableWriter::create(folder)?,
            intervals: TableWriter::create(folder)?,
            hlog: Hlog::create(folder, HISTOGRAMS)?,
            manifest: ManifestFiles::create(folder)?,
            trace: TracePages::create(folder, DEFAULT_TRACE_LIMIT)?,
            partial,
            runs: runs.to_path_buf(),
            name,
            id,
            clock: None,
            failed: false,
        })
    }

    /// Keeps at most this many bytes of raw trace; 0 keeps none.
    pub fn limit_trace(&mut self, bytes: u64) {
        self.trace.set_limit(bytes);
    }

    /// The measurement begins: rows can come.
    ///
    /// # Errors
    /// The header of the histogram log cannot be written.
    pub fn begin(&mut self, clock: ClockReading, rate: TickRate) -> Result<(), StoreError> {
        self.clock = Some(Clock { start: clock, rate });
        self.trace.begin();
        self.hlog.begin(SystemTime::UNIX_EPOCH + Duration::from_nanos(clock.realtime_ns))
    }

    fn noted(&mut self, result: Result<(), StoreError>) -> Result<(), StoreError> {
        self.failed |= result.as_ref().is_err_and(|error| !error.is_full());
        result
    }

    fn clock(&self) -> Result<Clock, StoreError> {
        self.clock.ok_or(StoreError::NotBegun)
    }

    /// One stall. Ids ascend.
    ///
    /// # Errors
    /// The disk is full or fails, as for all that write.
    pub fn stall(&mut self, stall: &Stall) -> Result<(), StoreError> {
        let clock = self.clock()?;
        self.trace.stall(stall);
        let result = self.gaps.push(|rows| rows.push(stall, clock.rate, &|t| clock.realtime(t)));
        self.noted(result)
    }

    /// The attribution of the stall written last, or of an earlier one, in order.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn attribution(&mut self, attribution: &Attribution) -> Result<(), StoreError> {
        let result = self.attributions.push(|rows| rows.push(attribution));
        self.noted(result)
    }

    /// One interval of one CPU.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn interval(&mut self, row: &IntervalRow) -> Result<(), StoreError> {
        let clock = self.clock()?;
        let result = self.intervals.push(|rows| rows.push(row, &|t| clock.realtime(t)));
        self.noted(result)
    }

    /// The stalls of one interval of one CPU, in nanoseconds, under the tag `<probe>-cpu<N>`.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn interval_histogram(
        &mut self,
        probe: &str,
        cpu: CpuId,
        start: Ticks,
        end: Ticks,
        histogram: &Histogram<u64>,
    ) -> Result<(), StoreError> {
        let clock = self.clock()?;
        let since = clock.rate.nanos(start.since(clock.start.ticks));
        let length = clock.rate.nanos(end.since(start));
        self.hlog.write(
            &format!("{probe}-cpu{cpu}"),
            Duration::from_nanos(since.0),
            Duration::from_nanos(length.0),
            histogram,
        )
    }

    /// A histogram in nanoseconds of a whole measurement, under a tag of its own. Lines of this kind come
    /// after those of the intervals.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn tagged_histogram(
        &mut self,
        tag: &str,
        start: Ticks,
        end: Ticks,
        histogram: &Histogram<u64>,
    ) -> Result<(), StoreError> {
        let clock = self.clock()?;
        let since = clock.rate.nanos(start.since(clock.start.ticks));
        let length = clock.rate.nanos(end.since(start));
        self.hlog.write(tag, Duration::from_nanos(since.0), Duration::from_nanos(length.0), histogram)
    }

    /// Makes the file of a pipeline's journal in the run's folder. Returns it, and its name there.
    ///
    /// # Errors
    /// It is there already, or cannot be made.
    pub fn make_journal(&self) -> Result<(File, &'static str), StoreError> {
        Ok((self.partial.held.create_new(JOURNAL).map_err(StoreError::writing)?, JOURNAL))
    }

    /// A page of the kernel's ring buffer with the times of its first and last record.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn trace_page(
        &mut self,
        role: TraceRole,
        cpu: CpuId,
        first: Ticks,
        last: Ticks,
        page: &[u8],
    ) -> Result<(), StoreError> {
        self.trace.page(role, cpu, first, last, page)
    }

    /// What the recorder did in a turn beside reading the pages that were written since the one before.
    /// Pages and turns may come before [`RunWriter::begin`].
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn drain_turn(&mut self, turn: &DrainTurn) -> Result<(), StoreError> {
        self.trace.turn(turn)
    }

    /// What is needed to decode the pages.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn trace_context(&mut self, context: &impl Serialize) -> Result<(), StoreError> {
        self.trace.context(context)
    }

    /// Whether the disk has so little space left that the recording must make room or end.
    #[must_use]
    pub fn is_space_low(&self) -> bool {
        self.partial.held.free_bytes().is_ok_and(|free| free >> 20 < LOW_MIB)
    }

    /// Gives up the raw trace to make room. The rows stay.
    ///
    /// # Errors
    /// Its files cannot be removed.
    pub fn discard_trace(&mut self) -> Result<(), StoreError> {
        self.trace.discard()
    }

    /// The machine that the run is made on.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn machine(&mut self, state: &MachineState) -> Result<(), StoreError> {
        let result = self.manifest.machine(state);
        self.noted(result)
    }

    /// Closes everything, writes the manifest, details before their head (with the id and what is kept of the trace filled in) and
    /// gives the run its name. Returns its folder. A trace that finds no room for its end is given up.
    ///
    /// # Errors
    /// As [`RunWriter::stall`], except for a full disk on a file system that can reserve room; then
    /// nothing is left.
    pub fn finish(mut self, mut manifest: RunManifest) -> Result<PathBuf, StoreError> {
        if self.failed {
            return Err(StoreError::Incomplete { path: self.partial.held.path().to_path_buf() });
        }
        manifest.id.clone_from(&self.id);
        manifest.trace = match self.trace.finish() {
            Err(error) if error.is_full() => {
                self.trace.discard()?;
                manifest.warnings.push(trace_given_up());
                self.trace.finish()?
            }
            other => other?,
        };
        self.gaps.finish()?;
        self.attributions.finish()?;
        self.intervals.finish()?;
        self.hlog.finish()?;
        let folder = &self.partial.held;
        manifest.schema_version = RUN_SCHEMA_VERSION;
        self.manifest.finish(folder, &manifest)?;
        folder.sync().map_err(StoreError::writing)?;
        self.partial.rename(&self.name)?;
        Ok(self.runs.join(&self.name))
    }
}

/// The end of the trace found the disk full.
fn trace_given_up() -> Warning {
    Warning {
        id: "trace-discarded".into(),
        text:
            "The raw trace was not kept: the disk was full at the end. Stalls cannot be shown as timelines."
                .into(),
    }
}

/// A document as it stands in a file.
pub(crate) fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| StoreError::damaged(path, e))?;
    text.push(b'\n');
    Ok(text)
}
