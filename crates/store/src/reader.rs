//! Reads a run.

use crate::budget::{Budget, Part, document_within};
use crate::culprits::Culprits;
use crate::error::StoreError;
use crate::head::{self, MACHINE};
use crate::hlog_reader::{HistogramLog, StoredHistogram};
use crate::marks::{LARGEST_MARKS, MARKS};
use crate::pages::{CONTEXT, SEGMENTS, TRACE};
use crate::table_reader::Table;
use crate::tables::{self, INTERVALS, PARTS, STALLS};
use crate::trace_index::TraceIndex;
use crate::trace_pieces::{StoredPage, TracePiece, number_of, read_pieces, segments};
use crate::writer::{HISTOGRAMS, JOURNAL, SUMMARY};
use jitterscope_model::{
    Attribution, IntervalRow, MachineState, MarkLog, RunManifest, Stall, StallId, Ticks,
};
use jitterscope_platform::{AccessError, HeldDir};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest accepted machine state, bytes. A machine with thousands of interrupts takes about 600 KiB.
const LARGEST_MACHINE: u64 = 16 << 20;
/// The largest accepted trace context, bytes. A kernel with all its modules takes about 30 MiB.
const LARGEST_CONTEXT: u64 = 256 << 20;
/// The largest accepted summary, bytes. Thousands of culprits take about 8 MiB.
const LARGEST_SUMMARY: u64 = 64 << 20;
/// The largest number of parts of a stall. The recorder merges parts beyond that.
const MOST_PARTS: usize = 1 << 16;
/// Parts of a stall between two checks of the memory that they take.
const LOOK: usize = 256;

/// A stored run. Opening it reads the whole manifest; rows stream.
///
/// The folder stays open. Reads inside it follow no links and accept only regular files of a plausible length.
#[derive(Clone, Debug)]
pub struct RunReader {
    folder: Arc<HeldDir>,
    manifest: RunManifest,
}

impl RunReader {
    /// Opens the run in a folder.
    ///
    /// # Errors
    /// The manifest is missing, damaged, or of another schema version.
    pub fn open(path: &Path) -> Result<RunReader, StoreError> {
        let folder = HeldDir::open(path).map_err(StoreError::reading)?;
        Ok(RunReader {
            manifest: head::read_manifest(&folder)?,
            folder: Arc::new(folder),
        })
    }

    /// Opens the run in a folder with the manifest that its writer returned. Saves reading it again, which takes
    /// noticeable time where very many threads were followed.
    ///
    /// # Errors
    /// The folder has no manifest, or that of another run.
    pub fn with_manifest(path: &Path, manifest: RunManifest) -> Result<RunReader, StoreError> {
        let folder = HeldDir::open(path).map_err(StoreError::reading)?;
        Ok(RunReader {
            manifest: head::checked(&folder, path, manifest)?,
            folder: Arc::new(folder),
        })
    }

    /// The run in a folder that has no manifest yet.
    pub(crate) fn of_parts(folder: HeldDir, manifest: RunManifest) -> RunReader {
        RunReader {
            folder: Arc::new(folder),
            manifest,
        }
    }

    /// The same run with another manifest.
    #[must_use]
    pub fn of_manifest(self, manifest: RunManifest) -> RunReader {
        RunReader { manifest, ..self }
    }

    /// The manifest, for a caller that reads nothing more.
    #[must_use]
    pub fn into_manifest(self) -> RunManifest {
        self.manifest
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Everything but the rows.
    #[must_use]
    pub fn manifest(&self) -> &RunManifest {
        &self.manifest
    }

    /// The machine of the recording; `None` if the recorder did not look at it.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn machine(&self) -> Result<Option<MachineState>, StoreError> {
        document_if_any(Part::Half, &self.folder, MACHINE, LARGEST_MACHINE)
    }

    /// The summary of the rows, as the recorder stored it. `None` if it stored none, or one of an unknown form or
    /// implausible size: it can be computed again from the rows.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn summary<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        match document_if_any(Part::Half, &self.folder, SUMMARY, LARGEST_SUMMARY) {
            Err(
                StoreError::Access(AccessError::TooLarge { .. })
                | StoreError::Memory { .. }
                | StoreError::Damaged { .. },
            ) => Ok(None),
            other => other,
        }
    }

    /// The marks of the application's logs; none if no log was added.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn marks(&self) -> Result<Vec<MarkLog>, StoreError> {
        let logs = document_if_any(Part::Half, &self.folder, MARKS, LARGEST_MARKS)?;
        Ok(logs.unwrap_or_default())
    }

    /// One stall with its attribution, if it has one; `None` if the run has no stall of this id. Reads only the rows
    /// around it.
    ///
    /// # Errors
    /// As [`RunReader::stalls`].
    pub fn stall(&self, id: StallId) -> Result<Option<(Stall, Option<Attribution>)>, StoreError> {
        let Some(stall) = self.stall_alone(id)? else {
            return Ok(None);
        };
        let attribution = self
            .attributions_of(Some(id))?
            .find(|of| of.as_ref().map_or(true, |of| of.stall == id));
        Ok(Some((stall, attribution.transpose()?)))
    }

    /// One stall without its attribution.
    ///
    /// # Errors
    /// As [`RunReader::stalls`].
    pub fn stall_alone(&self, id: StallId) -> Result<Option<Stall>, StoreError> {
        let mut stalls = Table::open_only(&self.folder, STALLS, tables::stalls, Some(id))?;
        stalls
            .find(|stall| stall.as_ref().map_or(true, |stall| stall.id == id))
            .transpose()
    }

    /// All stalls, in order of their ids.
    ///
    /// # Errors
    /// The file cannot be opened; later, each item may be an error.
    pub fn stalls(
        &self,
    ) -> Result<impl Iterator<Item = Result<Stall, StoreError>> + use<>, StoreError> {
        Table::open(&self.folder, STALLS, tables::stalls)
    }

    /// All attributions, in order of their stalls; none if the run was not attributed.
    ///
    /// # Errors
    /// As [`RunReader::stalls`].
    pub fn attributions(
        &self,
    ) -> Result<impl Iterator<Item = Result<Attribution, StoreError>> + use<>, StoreError> {
        self.attributions_of(None)
    }

    fn attributions_of(
        &self,
        only: Option<StallId>,
    ) -> Result<impl Iterator<Item = Result<Attribution, StoreError>> + use<>, StoreError> {
        let mut culprits = Culprits::open(&self.folder)?;
        let parts = Table::open_only(&self.folder, PARTS, tables::parts, only)?;
        let mut parts = parts.map(move |stored| culprits.part(&stored?)).peekable();
        let path = self.folder.path().join(PARTS);
        Ok(std::iter::from_fn(move || {
            let budget = Budget::begin();
            let (stall, first) = match parts.next()? {
                Ok(row) => row,
                Err(error) => return Some(Err(error)),
            };
            let mut attribution = Attribution {
                stall,
                parts: vec![first],
            };
            let same =
                |row: &Result<(StallId, _), _>| row.as_ref().is_ok_and(|(id, _)| *id == stall);
            while let Some(Ok((_, part))) = parts.next_if(same) {
                attribution.parts.push(part);
                let count = attribution.parts.len();
                if count > MOST_PARTS {
                    return Some(Err(StoreError::Cap {
                        path: path.clone(),
                        what: "parts of one stall",
                        found: count as u64,
                        most: MOST_PARTS as u64,
                    }));
                }
                if count.is_multiple_of(LOOK)
                    && let Err(error) = budget.check(&path)
                {
                    return Some(Err(error));
                }
            }
            Some(Ok(attribution))
        }))
    }

    /// All intervals, in the order in which they ended.
    ///
    /// # Errors
    /// As [`RunReader::stalls`].
    pub fn intervals(
        &self,
    ) -> Result<impl Iterator<Item = Result<IntervalRow, StoreError>> + use<>, StoreError> {
        Table::open(&self.folder, INTERVALS, tables::intervals)
    }

    /// The lengths of the stalls of each interval, in the order of [`RunReader::intervals`].
    ///
    /// # Errors
    /// As [`RunReader::stalls`].
    pub fn interval_histograms(
        &self,
    ) -> Result<impl Iterator<Item = Result<StoredHistogram, StoreError>> + use<>, StoreError> {
        HistogramLog::open(&self.folder, HISTOGRAMS)
    }

    /// The file of a table in [`SCHEMA`](crate::SCHEMA), by the table's name.
    ///
    /// # Errors
    /// The file is missing, is not a regular file, or cannot be opened.
    pub fn table_file(&self, name: &str) -> Result<File, StoreError> {
        self.folder.open_file(name).map_err(StoreError::reading)
    }

    /// The path of the pipeline's journal; `None` if the run's folder has none.
    #[must_use]
    pub fn journal(&self) -> Option<PathBuf> {
        self.folder
            .open_file(JOURNAL)
            .is_ok()
            .then(|| self.folder.path().join(JOURNAL))
    }

    /// A folder of the trace; `None` if there is none.
    fn trace_folder(&self, inner: Option<&str>) -> Result<Option<HeldDir>, StoreError> {
        let opened = self.folder.open_dir(TRACE).and_then(|trace| match inner {
            Some(name) => trace.open_dir(name),
            None => Ok(trace),
        });
        match opened {
            Err(error) if error.is_absent() => Ok(None),
            other => other.map(Some).map_err(StoreError::reading),
        }
    }

    /// The context for decoding the raw trace; `None` if the run has none.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn trace_context<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        let Some(trace) = self.trace_folder(None)? else {
            return Ok(None);
        };
        document_if_any(Part::Quarter, &trace, CONTEXT, LARGEST_CONTEXT)
    }

    /// The kept pages with any record between two times, in order of time. Reads only the segments of those times,
    /// where the writer noted them.
    ///
    /// # Errors
    /// A segment is damaged or cannot be read.
    pub fn trace_pages(&self, from: Ticks, to: Ticks) -> Result<Vec<StoredPage>, StoreError> {
        TraceIndex::noted(self.trace_folder(None)?)?.pages(from, to)
    }

    /// The time spans of the stored trace's segments, for a caller that reads the pages of many moments.
    ///
    /// # Errors
    /// A segment is damaged or cannot be read.
    pub fn trace_index(&self) -> Result<TraceIndex, StoreError> {
        TraceIndex::new(self.trace_folder(None)?)
    }

    /// The stored trace from its beginning, with one segment in memory at a time.
    ///
    /// # Errors
    /// The folder cannot be read. Each item may be an error: a segment is damaged or cannot be read.
    pub fn trace_pieces(
        &self,
    ) -> Result<impl Iterator<Item = Result<TracePiece, StoreError>> + use<>, StoreError> {
        let folder = self.trace_folder(Some(SEGMENTS))?;
        let names = folder.as_ref().map_or_else(|| Ok(Vec::new()), segments)?;
        let mut expected = 1;
        let pieces = names.into_iter().flat_map(move |name| {
            let mut pieces = Vec::new();
            // Segments are numbered from 1. A removed segment leaves a gap.
            let number = number_of(&name);
            if number.is_some_and(|number| number > expected) {
                pieces.push(Ok(TracePiece::Missing));
            }
            expected = number.map_or(expected, |number| number.saturating_add(1));
            pieces.extend(folder.iter().flat_map(|folder| read_pieces(folder, &name)));
            pieces
        });
        Ok(pieces)
    }
}

/// A document of a run; `None` if the file is missing.
fn document_if_any<T: DeserializeOwned>(
    part: Part,
    folder: &HeldDir,
    name: &str,
    limit: u64,
) -> Result<Option<T>, StoreError> {
    match folder.open_file(name) {
        Err(error) if error.is_absent() => Ok(None),
        opened => {
            let file = opened.map_err(StoreError::reading)?;
            document_within(part, &file, &folder.path().join(name), limit).map(Some)
        }
    }
}
