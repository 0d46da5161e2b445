//! Writing a run.

use crate::error::StoreError;
use crate::hlog::Hlog;
use crate::naming::{check_label, compact_utc, short_id};
use crate::pages::{TracePages, TraceRole};
use crate::runs::{PARTIAL_PREFIX, own_partial_mark};
use crate::tables::{AttributionRows, GapRows, IntervalRows, Rows, schema};
use arrow_schema::DataType;
use hdrhistogram::Histogram;
use jitterscope_model::{Attribution, ClockReading, CpuId, IntervalRow, RunManifest, Stall, TickRate, Ticks};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Write};
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
/// Kept back on disk until the end, so that a run can be closed on a disk that filled up meanwhile.
const RESERVE: u64 = 4 << 20;
const RESERVE_NAME: &str = ".reserve";
/// The pipeline's journal.
pub(crate) const JOURNAL: &str = "journal.bin";
/// Raw trace kept unless said otherwise.
const DEFAULT_TRACE_LIMIT: u64 = 256 << 20;

/// One parquet file being written.
struct TableWriter<R> {
    path: PathBuf,
    rows: R,
    writer: ArrowWriter<File>,
    in_group: usize,
    written: usize,
}

impl<R: Rows> TableWriter<R> {
    fn create(folder: &Path) -> Result<TableWriter<R>, StoreError> {
        let path = folder.join(R::FILE);
        let file = File::create(&path).map_err(|e| StoreError::write(&path, e))?;
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
        Ok(TableWriter { path, rows: R::default(), writer, in_group: 0, written: 0 })
    }

    fn push(&mut self, push: impl FnOnce(&mut R)) -> Result<(), StoreError> {
        push(&mut self.rows);
        if self.rows.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if self.rows.len() == 0 {
            return Ok(());
        }
        let rows = self.rows.len();
        let batch = self.rows.batch().map_err(|e| StoreError::damaged(&self.path, e))?;
        self.writer.write(&batch).map_err(|e| parquet_error(&self.path, e))?;
        self.in_group += rows;
        self.written += rows;
        if self.in_group >= row_group(self.written) {
            self.in_group = 0;
            self.writer.flush().map_err(|e| parquet_error(&self.path, e))?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), StoreError> {
        self.flush()?;
        // `into_inner` writes the footer.
        let file = self.writer.into_inner().map_err(|e| parquet_error(&self.path, e))?;
        file.sync_all().map_err(|e| StoreError::write(&self.path, e))
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

/// The folder under its hidden name; removed with all that is in it unless it was renamed.
struct PartialFolder {
    path: PathBuf,
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        // What cannot be removed now is swept up by `clean_partials`.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Writes one run. Dropped before [`RunWriter::finish`], it leaves nothing.
pub struct RunWriter {
    partial: PartialFolder,
    runs: PathBuf,
    name: String,
    id: String,
    clock: Option<Clock>,
    gaps: TableWriter<GapRows>,
    attributions: TableWriter<AttributionRows>,
    intervals: TableWriter<IntervalRows>,
    hlog: Hlog,
    trace: TracePages,
    /// Whether a row was lost to an error: such a run must not be finished.
    failed: bool,
}

impl RunWriter {
    /// Makes the folder under its hidden name and opens every file: what cannot be written shows now.
    ///
    /// # Errors
    /// The label does not fit a file name, the folder cannot be written, or there is too little space.
    pub fn create(runs: &Path, label: &str, started_realtime_ns: u64) -> Result<RunWriter, StoreError> {
        check_label(label)?;
        let folder_error = |source| StoreError::Folder { path: runs.to_path_buf(), source };
        fs::create_dir_all(runs).map_err(folder_error)?;
        let free_mib = free_mib(runs).map_err(folder_error)?;
        if free_mib < NEEDED_MIB {
            let path = runs.to_path_buf();
            return Err(StoreError::Space { path, free_mib, needed_mib: NEEDED_MIB });
        }
        let id = short_id(started_realtime_ns);
        let name = format!("{}-{label}-{id}", compact_utc(started_realtime_ns));
        let partial = runs.join(format!("{PARTIAL_PREFIX}{}-{name}", own_partial_mark()));
        fs::create_dir(&partial).map_err(folder_error)?;
        RunWriter::open(runs, PartialFolder { path: partial }, name, id)
    }

    fn open(runs: &Path, partial: PartialFolder, name: String, id: String) -> Result<RunWriter, StoreError> {
        let folder = &partial.path;
        reserve(&folder.join(RESERVE_NAME))?;
        Ok(RunWriter {
            gaps: TableWriter::create(folder)?,
            attributions: TableWriter::create(folder)?,
            intervals: TableWriter::create(folder)?,
            hlog: Hlog::create(&folder.join("histograms.hlog"))?,
            trace: TracePages::create(folder.join("trace").join("segments"), DEFAULT_TRACE_LIMIT)?,
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
        self.hlog.begin(SystemTime::UNIX_EPOCH + Duration::from_nanos(clock.realtime_ns))
    }

    fn noted(&mut self, result: Result<(), StoreError>) -> Result<(), StoreError> {
        self.failed |= result.is_err();
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

    /// Where a pipeline's journal lies while the run is made: the folder's name changes when it is whole.
    #[must_use]
    pub fn journal_path(&self) -> PathBuf {
        self.partial.path.join(JOURNAL)
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

    /// What is needed to decode the pages.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn trace_context(&mut self, context: &impl Serialize) -> Result<(), StoreError> {
        write_json(&self.partial.path.join("trace").join("context.json"), context)
    }

    /// Whether the disk has so little space left that the recording must make room or end.
    #[must_use]
    pub fn is_space_low(&self) -> bool {
        free_mib(&self.partial.path).is_ok_and(|free| free < LOW_MIB)
    }

    /// Gives up the raw trace to make room. The rows stay.
    ///
    /// # Errors
    /// Its files cannot be removed.
    pub fn discard_trace(&mut self) -> Result<(), StoreError> {
        self.trace.discard()
    }

    /// Closes everything, writes the manifest (with the id and what is kept of the trace filled in) and
    /// gives the run its name. Returns its folder.
    ///
    /// # Errors
    /// As [`RunWriter::stall`]; then nothing is left.
    pub fn finish(mut self, mut manifest: RunManifest) -> Result<PathBuf, StoreError> {
        let folder = self.partial.path.clone();
        if self.failed {
            return Err(StoreError::Incomplete { path: folder });
        }
        let reserve = folder.join(RESERVE_NAME);
        fs::remove_file(&reserve).map_err(|e| StoreError::write(&reserve, e))?;
        manifest.id.clone_from(&self.id);
        manifest.trace = self.trace.finish()?;
        self.gaps.finish()?;
        self.attributions.finish()?;
        self.intervals.finish()?;
        self.hlog.finish()?;
        write_json(&folder.join("manifest.json"), &manifest)?;
        sync_folder(&folder)?;
        let path = self.runs.join(&self.name);
        fs::rename(&folder, &path).map_err(|e| StoreError::write(&path, e))?;
        sync_folder(&self.runs)?;
        Ok(path)
    }
}

/// Takes space that the end of the run gives back to itself.
fn reserve(path: &Path) -> Result<(), StoreError> {
    let file = File::create(path).map_err(|e| StoreError::write(path, e))?;
    match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, RESERVE) {
        Err(error @ (rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT)) => {
            Err(StoreError::write(path, error.into()))
        }
        // A filesystem that cannot reserve is no reason not to record.
        _ => Ok(()),
    }
}

fn free_mib(folder: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(folder)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize) >> 20)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| StoreError::damaged(path, e))?;
    text.push(b'\n');
    let mut file = File::create(path).map_err(|e| StoreError::write(path, e))?;
    file.write_all(&text).and_then(|()| file.sync_all()).map_err(|e| StoreError::write(path, e))
}

fn sync_folder(path: &Path) -> Result<(), StoreError> {
    let folder = File::open(path).map_err(|e| StoreError::write(path, e))?;
    folder.sync_all().map_err(|e| StoreError::write(path, e))
}
