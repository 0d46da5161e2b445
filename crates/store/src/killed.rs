//! Finishes the run of a killed recorder, from what it had written.
//!
//! The steps can be repeated: whatever ends this process, the next start goes on where it ended.
//!
//! 1. The rows that are sealed and those of the log become tables, in a folder of their own ([`FINISHING`]). The folder gets another name
//!    ([`FINISHED`]) when they are complete.
//! 2. They move into the run's folder, in place of the killed recorder's.
//! 3. What is whole of the trace is kept, and its index is made.
//! 4. The caller reads the rows, and closes the run with a manifest. Once that is written, the run is complete, and
//!    only needs its name.

use crate::error::StoreError;
use crate::head::{MACHINE, MANIFEST, read_beginning, read_manifest, write_manifest};
use crate::hlog::Hlog;
use crate::hlog_reader::HistogramLog;
use crate::pages::{TRACE, write_context};
use crate::partial::PartialFolder;
use crate::reader::RunReader;
use crate::row_log::{ROWS, RowLogReader};
use crate::rows::StoredRow;
use crate::run_tables::{RowClock, RunTables};
use crate::sealed::Sealed;
use crate::trace_mend::mend_trace;
use crate::writer::{BEGINNING, HISTOGRAMS, SUMMARY, forget_beginning, write_document};
use jitterscope_model::{RUN_SCHEMA_VERSION, RunManifest, StallId};
use jitterscope_platform::HeldDir;
use serde::Serialize;
use std::ffi::OsString;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The folder of the tables while they are made from the log, and once they are complete.
const FINISHING: &str = "finishing";
const FINISHED: &str = "finished";

/// The folder of a killed recorder. No other process changes it while this exists; it stays for the next start unless
/// it is closed or removed.
pub struct KilledRun {
    partial: PartialFolder,
    runs: PathBuf,
    name: OsString,
}

/// What a killed recorder left of a run.
pub enum Remains {
    /// Its rows; the manifest is that of its beginning.
    Rows(Box<RunReader>),
    /// All of it: it was killed between the last byte and the name.
    Complete,
    /// No row that can be read.
    Nothing,
}

impl KilledRun {
    /// `name`: the run's final name.
    pub(crate) fn new(partial: PartialFolder, runs: &Path, name: OsString) -> KilledRun {
        KilledRun {
            partial,
            runs: runs.to_path_buf(),
            name,
        }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.partial.held.path()
    }

    /// Makes tables of the rows, as far as they are whole.
    ///
    /// # Errors
    /// The disk is full or fails. Nothing is lost: the next start tries again.
    pub fn rows(&self) -> Result<Remains, StoreError> {
        let folder = &self.partial.held;
        if folder.has(MANIFEST) && read_manifest(folder).is_ok() {
            return Ok(Remains::Complete);
        }
        let Ok(mut manifest) = read_beginning(folder, BEGINNING) else {
            return Ok(Remains::Nothing);
        };
        // Another version may have written it otherwise.
        if manifest.schema_version != RUN_SCHEMA_VERSION {
            return Ok(Remains::Nothing);
        }
        if !folder.has(FINISHED) {
            if folder.has(FINISHING) {
                folder.remove_tree(FINISHING).map_err(StoreError::writing)?;
            }
            let tables = folder.make_dir(FINISHING).map_err(StoreError::writing)?;
            if !make_tables(folder, &tables, &manifest)? {
                return Ok(Remains::Nothing);
            }
            folder
                .rename(FINISHING, FINISHED)
                .map_err(StoreError::writing)?;
        }
        let tables = folder.open_dir(FINISHED).map_err(StoreError::reading)?;
        for table in tables.entries().map_err(StoreError::reading)? {
            tables
                .move_to(&table.name, folder)
                .map_err(StoreError::writing)?;
        }
        manifest.trace = mend_trace(folder, manifest.trace.limit_bytes)?;
        let reader = RunReader::of_parts(folder.reopen().map_err(StoreError::reading)?, manifest);
        // Half of what the killed recorder knew about the machine is worth nothing.
        if reader.machine().is_err() {
            folder.remove_file(MACHINE).map_err(StoreError::writing)?;
        }
        Ok(Remains::Rows(Box::new(reader)))
    }

    /// Puts this context, JSON, in place of the trace's.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn keep_context(&self, json: &[u8]) -> Result<(), StoreError> {
        write_context(
            &self
                .partial
                .held
                .open_dir(TRACE)
                .map_err(StoreError::reading)?,
            json,
        )
    }

    /// Closes the run with this manifest and the sums of its rows, and gives it its name. Returns its folder. `None`
    /// for a run that is [complete](Remains::Complete).
    ///
    /// # Errors
    /// The disk is full or fails. Nothing is lost: the next start tries again.
    pub fn close(
        mut self,
        run: Option<(&RunManifest, &impl Serialize)>,
    ) -> Result<PathBuf, StoreError> {
        let closed = self.write(run).and_then(|()| {
            let folder = &self.partial.held;
            forget_beginning(folder);
            for leftover in [FINISHING, FINISHED] {
                if folder.has(leftover) {
                    folder.remove_tree(leftover).map_err(StoreError::writing)?;
                }
            }
            folder.sync().map_err(StoreError::writing)
        });
        closed.and_then(|()| self.partial.rename(&self.name))?;
        Ok(self.runs.join(&self.name))
    }

    fn write(&self, run: Option<(&RunManifest, &impl Serialize)>) -> Result<(), StoreError> {
        let Some((manifest, sums)) = run else {
            return Ok(());
        };
        let folder = &self.partial.held;
        let _ = folder.remove_file(SUMMARY);
        match write_document(folder, SUMMARY, sums) {
            // Reports take longer without it.
            Err(error) if error.is_full() => {}
            other => other?,
        }
        write_manifest(folder, manifest)
    }

    /// Removes the folder with everything in it.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(self) -> Result<(), StoreError> {
        self.partial.remove()
    }
}

/// Makes the tables and the histogram log of a run from its sealed rows and its log. Returns whether there is any row.
fn make_tables(
    folder: &HeldDir,
    into: &HeldDir,
    beginning: &RunManifest,
) -> Result<bool, StoreError> {
    let Ok(log) = folder.open_file(ROWS) else {
        return Ok(false);
    };
    // Each interval has its histogram, which went to another file.
    let histograms = HistogramLog::open(folder, HISTOGRAMS)
        .map_or(0, |log| log.take_while(Result::is_ok).count());
    let mut again = Again {
        tables: RunTables::create(into, None)?,
        clock: RowClock {
            start: beginning.clock_start,
            rate: beginning.rate,
        },
        histograms,
        intervals: 0,
        last: None,
        any: false,
    };
    let sealed = Sealed::read(folder)?;
    if !sealed.tables.is_empty() {
        sealed.make_tables(folder)?;
        let held = folder.reopen().map_err(StoreError::reading)?;
        let mut taken = Ok(true);
        RunReader::of_parts(held, beginning.clone()).rows(|row| {
            if let Ok(true) = taken {
                taken = again.take(row);
            }
        })?;
        taken?;
    }
    for row in RowLogReader::new(BufReader::new(log), sealed.log) {
        if !again.take(row)? {
            break;
        }
    }
    let Again {
        tables,
        intervals,
        any,
        ..
    } = again;
    tables.finish(Hlog::copy(folder, into, HISTOGRAMS, intervals)?)?;
    into.sync().map_err(StoreError::writing)?;
    Ok(any)
}

/// Takes the rows of a killed recorder into tables.
struct Again {
    tables: RunTables,
    clock: RowClock,
    /// The number of stored histograms, and of intervals taken.
    histograms: usize,
    intervals: usize,
    last: Option<StallId>,
    any: bool,
}

impl Again {
    /// Takes a row. Returns whether rows may follow: readers rely on an order that a log of this program has.
    fn take(&mut self, row: StoredRow) -> Result<bool, StoreError> {
        match row {
            StoredRow::Stall(stall) if self.last.is_none_or(|last| last < stall.id) => {
                self.last = Some(stall.id);
                self.tables.stall(&stall, &self.clock)?;
            }
            StoredRow::Attribution(attribution) if Some(attribution.stall) == self.last => {
                self.tables.attribution(&attribution)?;
            }
            StoredRow::Interval(row) if self.intervals < self.histograms => {
                self.intervals += 1;
                self.tables.interval(&row, &self.clock)?;
            }
            StoredRow::Interval(_) => return Ok(true),
            StoredRow::Stall(_) | StoredRow::Attribution(_) => return Ok(false),
        }
        self.any = true;
        Ok(true)
    }
}
