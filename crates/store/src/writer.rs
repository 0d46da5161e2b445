//! Writes a run.

use crate::error::StoreError;
use crate::head::ManifestFiles;
use crate::hlog::Hlog;
use crate::killed::KilledRun;
use crate::naming::{check_label, compact_utc, short_id};
use crate::pages::TracePages;
use crate::partial::PartialFolder;
use crate::row_log::{ROWS, RowLog};
use crate::run_tables::{RowClock, RunTables};
use crate::runs::PARTIAL_PREFIX;
use crate::sealed::SEALED;
use crate::tables::{VIEWS, views};
use hdrhistogram::Histogram;
use jitterscope_model::{
    Attribution, ClockReading, CpuId, CulpritTable, DrainTurn, IntervalRow, MachineState,
    RUN_SCHEMA_VERSION, RunManifest, Stall, TickRate, Ticks, TraceRole, Warning,
};
use jitterscope_platform::HeldDir;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Free space needed to begin, MiB.
const NEEDED_MIB: u64 = 64;
/// Free space below which a recording must make room or end, MiB.
const LOW_MIB: u64 = 24;
/// The file of the pipeline's journal.
pub(crate) const JOURNAL: &str = "journal.bin";
/// The file of the intervals' histograms and, for a pipeline, its whole-run histograms.
pub(crate) const HISTOGRAMS: &str = "histograms.hlog";
/// The file of the rows' summary.
pub(crate) const SUMMARY: &str = "summary.json";
/// Its name until it is complete, when the run is complete already.
const SUMMARY_PARTIAL: &str = ".summary.json";
/// The file of the manifest of the beginning, while the run is recorded.
pub(crate) const BEGINNING: &str = "beginning.json";
/// How often the log is written to, however little it has.
const LOG_EVERY: Duration = Duration::from_millis(500);
/// The default limit of the raw trace, bytes.
const DEFAULT_TRACE_LIMIT: u64 = 256 << 20;

/// Writes one run. Dropped before [`RunWriter::finish`], it leaves nothing.
///
/// The folder is held open, and only this user may change it: renaming its path meanwhile has no effect on the writes.
///
/// When the disk is full, a row is refused with [`StoreError::Full`]. Rows accepted earlier and the end of the run have
/// their room: the run can still be finished, or the caller can free space.
pub struct RunWriter {
    // Fields drop in order: the files close before the folder goes.
    tables: RunTables,
    hlog: Hlog,
    manifest: ManifestFiles,
    trace: TracePages,
    partial: PartialFolder,
    runs: PathBuf,
    name: String,
    id: String,
    clock: Option<RowClock>,
    /// When the log was last written to.
    logged: Instant,
    /// Whether an error other than a full disk lost a row: such a run must not be finished.
    failed: bool,
}

impl RunWriter {
    /// Makes the folder under its hidden name and opens every file, so that an error shows before the measurement.
    ///
    /// # Errors
    /// The label does not fit a file name, the folder is not writable, another user may change it or one of its
    /// parents, or there is too little space.
    pub fn create(
        runs: &Path,
        label: &str,
        started_realtime_ns: u64,
    ) -> Result<RunWriter, StoreError> {
        check_label(label)?;
        let folder_error = |source| StoreError::Folder {
            path: runs.to_path_buf(),
            source,
        };
        let folder = HeldDir::trusted_or_made(runs).map_err(folder_error)?;
        let free_bytes = folder.free_bytes().map_err(folder_error)?;
        if is_below(free_bytes, NEEDED_MIB) {
            let (path, free_mib) = (runs.to_path_buf(), free_bytes >> 20);
            return Err(StoreError::Space {
                path,
                free_mib,
                needed_mib: NEEDED_MIB,
            });
        }
        let id = short_id(started_realtime_ns);
        let name = format!("{}-{label}-{id}", compact_utc(started_realtime_ns));
        let partial = format!("{PARTIAL_PREFIX}{name}");
        let partial = PartialFolder::make(folder, partial).map_err(folder_error)?;
        RunWriter::open(runs, partial, name, id)
    }

    fn open(
        runs: &Path,
        partial: PartialFolder,
        name: String,
        id: String,
    ) -> Result<RunWriter, StoreError> {
        let folder = &partial.held;
        write_views(folder)?;
        Ok(RunWriter {
            tables: RunTables::create(
                folder,
                Some(RowLog::create(folder, 0, &CulpritTable::default())?),
            )?,
            hlog: Hlog::create(folder, HISTOGRAMS)?,
            manifest: ManifestFiles::create(folder)?,
            trace: TracePages::create(folder, DEFAULT_TRACE_LIMIT)?,
            partial,
            runs: runs.to_path_buf(),
            name,
            id,
            clock: None,
            logged: Instant::now(),
            failed: false,
        })
    }

    /// The run's id, already before the run has its name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Limits the raw trace to this many bytes; 0 keeps none.
    pub fn limit_trace(&mut self, bytes: u64) {
        self.trace.set_limit(bytes);
    }

    /// Sets the size of the first log of rows, bytes; later ones may have a quarter of the tables' size.
    pub fn limit_log(&mut self, bytes: u64) {
        self.tables.limit_log(bytes);
    }

    /// Begins the measurement. Rows may follow.
    ///
    /// # Errors
    /// The header of the histogram log cannot be written.
    pub fn begin(&mut self, clock: ClockReading, rate: TickRate) -> Result<(), StoreError> {
        self.clock = Some(RowClock { start: clock, rate });
        self.trace.begin();
        self.hlog
            .begin(SystemTime::UNIX_EPOCH + Duration::from_nanos(clock.realtime_ns))
    }

    fn noted(&mut self, result: Result<(), StoreError>) -> Result<(), StoreError> {
        self.failed |= result.as_ref().is_err_and(|error| !error.is_full());
        result
    }

    fn clock(&self) -> Result<RowClock, StoreError> {
        self.clock.ok_or(StoreError::NotBegun)
    }

    /// Writes one stall. Ids ascend.
    ///
    /// # Errors
    /// The disk is full or fails, as in all methods that write.
    pub fn stall(&mut self, stall: &Stall) -> Result<(), StoreError> {
        let clock = self.clock()?;
        self.trace.stall(stall);
        self.log(RowLog::settle);
        if self.tables.is_log_long() && self.tables.seal(&self.partial.held).is_err() {
            self.give_up_log();
        }
        let result = self.tables.stall(stall, &clock);
        self.noted(result)
    }

    /// Writes the attribution of the last stall or of an earlier one, in order.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn attribution(&mut self, attribution: &Attribution) -> Result<(), StoreError> {
        let result = self.tables.attribution(attribution);
        self.noted(result)
    }

    /// Writes one interval of one CPU.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn interval(&mut self, row: &IntervalRow) -> Result<(), StoreError> {
        let clock = self.clock()?;
        let result = self.tables.interval(row, &clock);
        self.noted(result)
    }

    /// Writes the stalls of one interval of one CPU, in nanoseconds, under the tag `<probe>-cpu<N>`.
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
        self.tagged_histogram(&format!("{probe}-cpu{cpu}"), start, end, histogram)
    }

    /// Writes a histogram of the whole measurement, in nanoseconds, under its own tag. Lines of this kind follow those
    /// of the intervals.
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
        self.hlog.write(
            tag,
            Duration::from_nanos(since.0),
            Duration::from_nanos(length.0),
            histogram,
        )
    }

    /// Makes the file of a pipeline's journal in the run's folder. Returns the file and its name.
    ///
    /// # Errors
    /// The file exists already, or cannot be made.
    pub fn make_journal(&self) -> Result<(File, &'static str), StoreError> {
        Ok((
            self.partial
                .held
                .create_new(JOURNAL)
                .map_err(StoreError::writing)?,
            JOURNAL,
        ))
    }

    /// Writes a page of the kernel's ring buffer with the times of its first and last record.
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

    /// Writes what else the recorder did in the turn that read the preceding pages. Pages and turns may come before
    /// [`RunWriter::begin`].
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn drain_turn(&mut self, turn: &DrainTurn) -> Result<(), StoreError> {
        self.trace.turn(turn)
    }

    /// Notes that a part of the trace is missing here, as where the limit left no room.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn trace_missing(&mut self) -> Result<(), StoreError> {
        self.trace.missing()
    }

    /// Writes the context for decoding the pages, JSON, in place of the one before.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn trace_context(&mut self, json: &[u8]) -> Result<(), StoreError> {
        self.trace.context(json)
    }

    /// Writes the summary of the written rows. Without it, for example on a full disk, a reader only takes longer: it
    /// computes the summary again.
    ///
    /// # Errors
    /// The disk fails.
    pub fn summary(&mut self, sums: &impl Serialize) -> Result<(), StoreError> {
        match write_document(&self.partial.held, SUMMARY, sums) {
            Err(error) if error.is_full() => Ok(()),
            other => other,
        }
    }

    /// Keeps what is known of the run when its measurement begins. With it and the log, the next start can finish the
    /// run if this process is killed. Without room on the disk it cannot, and the recording goes on.
    ///
    /// # Errors
    /// The disk fails.
    pub fn beginning(&mut self, manifest: &RunManifest) -> Result<(), StoreError> {
        let mut manifest = manifest.clone();
        manifest.id.clone_from(&self.id);
        manifest.schema_version = RUN_SCHEMA_VERSION;
        manifest.trace = self.trace.at_the_beginning();
        match write_document(&self.partial.held, BEGINNING, &manifest) {
            Err(error) if error.is_full() => Ok(()),
            other => other,
        }
    }

    /// Called as time passes: writes what waits in memory, so that a killed recorder loses less than a second of rows.
    /// Most of the trace waits in memory too, and belongs to the same rows.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn tick(&mut self) -> Result<(), StoreError> {
        if self.logged.elapsed() < LOG_EVERY {
            return Ok(());
        }
        self.logged = Instant::now();
        self.log(RowLog::flush);
        self.trace.flush()
    }

    /// Ends without a manifest of the whole: leaves the run as a killed recorder would, with all rows and pages so far,
    /// for the caller to finish. Needs [`RunWriter::beginning`].
    ///
    /// # Errors
    /// As [`RunWriter::stall`]. Nothing is left after an error.
    pub fn leave(mut self) -> Result<KilledRun, StoreError> {
        self.log(RowLog::flush);
        self.trace.flush()?;
        if self.failed || self.tables.log.is_none() {
            return Err(StoreError::Incomplete {
                path: self.partial.held.path().to_path_buf(),
            });
        }
        let RunWriter {
            tables,
            hlog,
            manifest,
            trace,
            partial,
            runs,
            name,
            ..
        } = self;
        drop((tables, hlog, manifest, trace));
        Ok(KilledRun::new(partial.keep(), &runs, name.into()))
    }

    /// Writes to the log. Where the disk has no room for it, or it fails, the log is given up: only a killed recorder
    /// needs it, and its room serves the rows.
    fn log(&mut self, write: impl FnOnce(&mut RowLog) -> io::Result<()>) {
        if self
            .tables
            .log
            .as_mut()
            .is_some_and(|log| write(log).is_err())
        {
            self.give_up_log();
        }
    }

    /// Removes the log to free space. Returns whether there was one.
    pub fn give_up_log(&mut self) -> bool {
        let had = self.tables.log.take().is_some();
        if had {
            forget_beginning(&self.partial.held);
        }
        had
    }

    /// Whether the disk has so little space left that the recording must make room or end.
    #[must_use]
    pub fn is_space_low(&self) -> bool {
        self.partial
            .held
            .free_bytes()
            .is_ok_and(|free_bytes| is_below(free_bytes, LOW_MIB))
    }

    /// Removes the raw trace to free space. The rows stay.
    ///
    /// # Errors
    /// The files cannot be removed.
    pub fn discard_trace(&mut self) -> Result<(), StoreError> {
        self.trace.discard()
    }

    /// Writes the machine of the recording.
    ///
    /// # Errors
    /// As [`RunWriter::stall`].
    pub fn machine(&mut self, state: &MachineState) -> Result<(), StoreError> {
        let result = self.manifest.machine(state);
        self.noted(result)
    }

    /// Closes everything, writes the details and then the head of the manifest (with the id and the state of the trace
    /// filled in) and renames the run's folder. Returns the folder. Removes a trace that finds no room for its end.
    ///
    /// # Errors
    /// As [`RunWriter::stall`], except for a full disk on a file system that can reserve room. Nothing is left after an
    /// error.
    pub fn finish(self, mut manifest: RunManifest) -> Result<PathBuf, StoreError> {
        self.close(&mut manifest)
    }

    /// As [`RunWriter::finish`]. Afterwards `manifest` equals what a reader of the run finds.
    ///
    /// # Errors
    /// As [`RunWriter::finish`].
    pub fn close(mut self, manifest: &mut RunManifest) -> Result<PathBuf, StoreError> {
        if self.failed {
            return Err(StoreError::Incomplete {
                path: self.partial.held.path().to_path_buf(),
            });
        }
        manifest.id.clone_from(&self.id);
        manifest.trace = match self.trace.finish() {
            Err(error) if error.is_full() => {
                self.trace.discard()?;
                manifest
                    .warnings
                    .push(Warning::TraceDiscarded { at_the_end: true });
                self.trace.finish()?
            }
            other => other?,
        };
        self.tables.finish(self.hlog)?;
        let folder = &self.partial.held;
        manifest.schema_version = RUN_SCHEMA_VERSION;
        self.manifest.finish(folder, manifest)?;
        forget_beginning(folder);
        folder.sync().map_err(StoreError::writing)?;
        self.partial.rename(&self.name)?;
        Ok(self.runs.join(&self.name))
    }
}

/// Adds a summary to a complete run, where it can only be computed from the whole run. A reader computes it from the
/// rows if it is missing.
///
/// # Errors
/// Another user may change the folder, or the disk is full or fails; the run has no summary then.
pub fn add_summary(run: &Path, sums: &impl Serialize) -> Result<(), StoreError> {
    let folder = HeldDir::trusted(run).map_err(StoreError::writing)?;
    write_beside(&folder, SUMMARY, SUMMARY_PARTIAL, sums)
}

/// Writes a document of a complete run under another name, then gives it its own.
pub(crate) fn write_beside(
    folder: &HeldDir,
    name: &str,
    partial: &str,
    value: &impl Serialize,
) -> Result<(), StoreError> {
    // Left by a killed writer. If the removal fails, making the new file reports it.
    let _ = folder.remove_file(partial);
    let written = write_document(folder, partial, value);
    let renamed = written.and_then(|()| folder.rename(partial, name).map_err(StoreError::writing));
    if renamed.is_err() {
        let _ = folder.remove_file(partial);
    }
    renamed?;
    folder.sync().map_err(StoreError::writing)
}

/// Removes what only a killed recorder leaves to the next start. What cannot be removed does no harm in a whole run.
pub(crate) fn forget_beginning(folder: &HeldDir) {
    for name in [BEGINNING, SEALED, ROWS] {
        let _ = folder.remove_file(name);
    }
}

fn write_views(folder: &HeldDir) -> Result<(), StoreError> {
    let mut file = folder.create_new(VIEWS).map_err(StoreError::writing)?;
    let written = file
        .write_all(views().as_bytes())
        .and_then(|()| file.sync_all());
    written.map_err(|e| StoreError::write(&folder.path().join(VIEWS), e))
}

/// Writes the whole document under this name, or nothing.
pub(crate) fn write_document(
    folder: &HeldDir,
    name: &str,
    value: &impl Serialize,
) -> Result<(), StoreError> {
    let path = folder.path().join(name);
    let text = serde_json::to_vec(value).map_err(|e| StoreError::damaged(&path, e))?;
    let mut file = folder.create_new(name).map_err(StoreError::writing)?;
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    if written.is_err() {
        folder.remove_file(name).map_err(StoreError::writing)?;
    }
    written.map_err(|e| StoreError::write(&path, e))
}

fn is_below(bytes: u64, mib: u64) -> bool {
    bytes >> 20 < mib
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_lost_a_row_to_an_error_is_not_complete() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(dir.path(), "L", 0).unwrap();
        let full = || StoreError::Full { path: "x".into() };
        let broken = || StoreError::Damaged {
            path: "x".into(),
            why: "broken".into(),
        };
        for (result, failed) in [
            (Ok(()), false),
            (Err(full()), false),
            (Err(broken()), true),
            (Err(full()), true),
            (Ok(()), true),
        ] {
            let is_ok = result.is_ok();
            assert_eq!(writer.noted(result).is_ok(), is_ok);
            assert_eq!(writer.failed, failed);
        }
    }

    #[test]
    fn room_is_too_little_below_its_mebibytes_and_not_at_them() {
        for mib in [LOW_MIB, NEEDED_MIB] {
            assert!(is_below(0, mib) && is_below((mib << 20) - 1, mib));
            assert!(!is_below(mib << 20, mib) && !is_below(u64::MAX, mib));
        }
    }
}
