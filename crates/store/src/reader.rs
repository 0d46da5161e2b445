//! Reading a run.

use crate::error::StoreError;
use crate::head::{self, MACHINE};
use crate::hlog_reader::{HistogramLog, StoredHistogram};
use crate::legacy::Wording;
use crate::pages::{CONTEXT, SEGMENTS, TRACE};
use crate::tables::{self, ATTRIBUTIONS, Batch, GAPS, INTERVALS};
use crate::trace_index::TraceIndex;
use crate::trace_pieces::{StoredPage, TracePiece, read_pieces, segments};
use crate::writer::{HISTOGRAMS, JOURNAL, SUMMARY};
use arrow_array::{BooleanArray, UInt64Array};
use arrow_schema::ArrowError;
use jitterscope_model::{
    Attribution, IntervalRow, MachineState, RunManifest, Stall, StallId, Ticks,
};
use jitterscope_platform::{AccessError, HeldDir};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowFilter,
};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// No machine's state of ours is larger, bytes: one of thousands of interrupts has some 600 KiB.
const LARGEST_MACHINE: u64 = 16 << 20;
/// The formats and symbols of a kernel with all its modules take some 30 MiB.
const LARGEST_CONTEXT: u64 = 256 << 20;
/// Thousands of culprits, with their explanations as an earlier version stored them, take some 8 MiB.
const LARGEST_SUMMARY: u64 = 64 << 20;
/// Footer of a table, bytes: a day's has some 3 MiB.
const LARGEST_FOOTER: u32 = 64 << 20;

/// The column that all rows of a stall share.
const STALL_ID: &str = "stall_id";
/// Rows decoded at a time.
const BATCH: usize = 4096;

/// A stored run. Opening it reads the manifest in full; rows stream.
///
/// Its folder stays open, and what is in it is read without following links: regular files only, of a
/// length that such a file can have.
#[derive(Clone, Debug)]
pub struct RunReader {
    folder: Arc<HeldDir>,
    manifest: RunManifest,
}

impl RunReader {
    /// Opens the run in a folder.
    ///
    /// # Errors
    /// There is no manifest, it is damaged, or of another schema version.
    pub fn open(path: &Path) -> Result<RunReader, StoreError> {
        let folder = HeldDir::open(path).map_err(StoreError::reading)?;
        Ok(RunReader {
            manifest: head::read_manifest(&folder)?,
            folder: Arc::new(folder),
        })
    }

    /// Opens the run in a folder for somebody who has its manifest from whoever closed it. To read it again takes
    /// as long as to write it, which shows where very many threads were followed.
    ///
    /// # Errors
    /// There is no manifest in the folder, or it is that of another run.
    pub fn with_manifest(path: &Path, manifest: RunManifest) -> Result<RunReader, StoreError> {
        let folder = HeldDir::open(path).map_err(StoreError::reading)?;
        Ok(RunReader {
            manifest: head::checked(&folder, path, manifest)?,
            folder: Arc::new(folder),
        })
    }

    /// Its manifest, when nothing more is to be read.
    #[must_use]
    pub fn into_manifest(self) -> RunManifest {
        self.manifest
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Everything but the rows.
    #[must_use]
    pub fn manifest(&self) -> &RunManifest {
        &self.manifest
    }

    /// The machine that it was made on; `None` of runs of schema version 1, which do not have it.
    ///
    /// # Errors
    /// It is there and damaged.
    pub fn machine(&self) -> Result<Option<MachineState>, StoreError> {
        let text = match self.folder.read(MACHINE, LARGEST_MACHINE) {
            Err(error) if error.is_absent() => return Ok(None),
            other => other.map_err(StoreError::reading)?,
        };
        let path = self.folder.path().join(MACHINE);
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|e| StoreError::damaged(&path, e))
    }

    /// What its rows come to, as their recorder stored it; `None` where it did not, or in a form that this
    /// version does not know, or one larger than any of ours: it can be made again from the rows.
    ///
    /// # Errors
    /// It is there and cannot be read.
    pub fn summary<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        let text = match self.folder.read(SUMMARY, LARGEST_SUMMARY) {
            Err(error) if error.is_absent() || matches!(error, AccessError::TooLarge { .. }) => {
                return Ok(None);
            }
            other => other.map_err(StoreError::reading)?,
        };
        Ok(serde_json::from_slice(&text).ok())
    }

    /// One stall with its attribution, where it has one; `None` when the run has none of this number. Only the
    /// rows around it are read.
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

    /// The same without its attribution.
    ///
    /// # Errors
    /// As [`RunReader::stalls`].
    pub fn stall_alone(&self, id: StallId) -> Result<Option<Stall>, StoreError> {
        let mut stalls = Table::open_only(&self.folder, GAPS, tables::stalls, Some(id))?;
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
        Table::open(&self.folder, GAPS, tables::stalls)
    }

    /// All attributions, in order of their stalls; none when the run was not attributed.
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
        let wording = Wording::of(&self.manifest);
        let convert = move |batch: &Batch| match batch.has("phase") {
            true => tables::parts(batch),
            false => tables::legacy_parts(batch, wording),
        };
        let mut parts = Table::open_only(&self.folder, ATTRIBUTIONS, convert, only)?.peekable();
        Ok(std::iter::from_fn(move || {
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

    /// A table as it lies in the folder, by its name in [`SCHEMA`](crate::SCHEMA).
    ///
    /// # Errors
    /// It is not there, no regular file, or cannot be opened.
    pub fn table_file(&self, name: &str) -> Result<File, StoreError> {
        self.folder.open_file(name).map_err(StoreError::reading)
    }

    /// The pipeline's journal in the run's folder; `None` when there is none here.
    #[must_use]
    pub fn journal(&self) -> Option<PathBuf> {
        self.folder
            .open_file(JOURNAL)
            .is_ok()
            .then(|| self.folder.path().join(JOURNAL))
    }

    /// A folder of the trace; `None` when there is none.
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

    /// What is needed to decode the raw trace; `None` when the run has none.
    ///
    /// # Errors
    /// It is there and damaged.
    pub fn trace_context<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        let Some(trace) = self.trace_folder(None)? else {
            return Ok(None);
        };
        let text = match trace.read(CONTEXT, LARGEST_CONTEXT) {
            Err(error) if error.is_absent() => return Ok(None),
            other => other.map_err(StoreError::reading)?,
        };
        let path = trace.path().join(CONTEXT);
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|e| StoreError::damaged(&path, e))
    }

    /// The kept pages with any record between two times, in order of time. Where the run's writer noted the times of its
    /// segments, no others are read.
    ///
    /// # Errors
    /// A segment cannot be read, is no segment, or was cut short.
    pub fn trace_pages(&self, from: Ticks, to: Ticks) -> Result<Vec<StoredPage>, StoreError> {
        TraceIndex::noted(self.trace_folder(None)?)?.pages(from, to)
    }

    /// Where in time the stored trace's segments lie, for whoever asks for the pages of many moments.
    ///
    /// # Errors
    /// A segment cannot be read, is no segment, or was cut short.
    pub fn trace_index(&self) -> Result<TraceIndex, StoreError> {
        TraceIndex::new(self.trace_folder(None)?)
    }

    /// The stored trace from its beginning, a segment in memory at a time.
    ///
    /// # Errors
    /// The folder cannot be read. Each item may be an error: a segment cannot be read, is no segment, or was
    /// cut short.
    pub fn trace_pieces(
        &self,
    ) -> Result<impl Iterator<Item = Result<TracePiece, StoreError>> + use<>, StoreError> {
        let folder = self.trace_folder(Some(SEGMENTS))?;
        let names = folder.as_ref().map_or_else(|| Ok(Vec::new()), segments)?;
        let mut expected = 1;
        let pieces = names.into_iter().flat_map(move |name| {
            let mut pieces = Vec::new();
            // Segments are numbered from 1; what was given up left its number behind.
            let number = Path::new(&name)
                .file_stem()
                .and_then(|stem| stem.to_str()?.parse::<u32>().ok());
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

/// Runs a piece of the parquet library, which panics on some damaged files (a negative length in the
/// footer, for one). After a panic the reader is not used again.
fn guarded<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    match std::panic::catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result,
        Err(_) => Err("it makes no sense to the parquet reader".into()),
    }
}

/// The library reads a footer whole, however long it says it is.
fn check_footer(file: &File) -> Result<(), String> {
    let text = |e: io::Error| e.to_string();
    let mut tail = [0; 8];
    let Some(at) = file
        .metadata()
        .map_err(text)?
        .len()
        .checked_sub(tail.len() as u64)
    else {
        return Err("it is too short for a table".into());
    };
    file.read_exact_at(&mut tail, at).map_err(text)?;
    let length = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]);
    if length > LARGEST_FOOTER {
        Err("its footer claims an impossible length".into())
    } else {
        Ok(())
    }
}

/// Leaves out what is not of one stall: whole groups of rows by what the footer says of them, then rows.
fn narrowed(
    builder: ParquetRecordBatchReaderBuilder<File>,
    only: Option<StallId>,
) -> ParquetRecordBatchReaderBuilder<File> {
    let columns = builder.parquet_schema();
    let column = columns
        .columns()
        .iter()
        .position(|column| column.name() == STALL_ID);
    let (Some(StallId(id)), Some(column)) = (only, column) else {
        return builder;
    };
    let may_have = |group: &RowGroupMetaData| match group.column(column).statistics() {
        Some(Statistics::Int64(of)) => {
            let bound =
                |bound: Option<&i64>, none| bound.map_or(none, |bound| bound.cast_unsigned());
            bound(of.min_opt(), 0) <= id && id <= bound(of.max_opt(), u64::MAX)
        }
        _ => true,
    };
    let groups = builder.metadata().row_groups().iter().enumerate();
    let groups = groups
        .filter(|(_, group)| may_have(group))
        .map(|(at, _)| at)
        .collect();
    let mask = ProjectionMask::leaves(columns, [column]);
    let is_it = ArrowPredicateFn::new(mask, move |batch| {
        let ids = Batch(batch);
        let ids = ids
            .column::<UInt64Array>(STALL_ID)
            .map_err(ArrowError::SchemaError)?;
        Ok(BooleanArray::from_unary(ids, |of| of == id))
    });
    builder
        .with_row_groups(groups)
        .with_row_filter(RowFilter::new(vec![Box::new(is_it)]))
}

/// Rows of a parquet file, a batch at a time.
struct Table<T, F> {
    path: PathBuf,
    batches: ParquetRecordBatchReader,
    convert: F,
    rows: std::vec::IntoIter<T>,
    failed: bool,
}

impl<T, F: Fn(&Batch) -> Result<Vec<T>, String>> Table<T, F> {
    fn open(run: &HeldDir, file: &str, convert: F) -> Result<Table<T, F>, StoreError> {
        Table::open_only(run, file, convert, None)
    }

    /// With the rows of one stall alone, where one is named.
    fn open_only(
        run: &HeldDir,
        file: &str,
        convert: F,
        only: Option<StallId>,
    ) -> Result<Table<T, F>, StoreError> {
        let path = run.path().join(file);
        let opened = run.open_file(file).map_err(StoreError::reading)?;
        check_footer(&opened).map_err(|why| StoreError::damaged(&path, why))?;
        let batches = guarded(|| {
            ParquetRecordBatchReaderBuilder::try_new(opened)
                .and_then(|builder| narrowed(builder, only).with_batch_size(BATCH).build())
                .map_err(|e| e.to_string())
        })
        .map_err(|why| StoreError::damaged(&path, why))?;
        Ok(Table {
            path,
            batches,
            convert,
            rows: Vec::new().into_iter(),
            failed: false,
        })
    }
}

impl<T, F: Fn(&Batch) -> Result<Vec<T>, String>> Iterator for Table<T, F> {
    type Item = Result<T, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Ok(row));
            }
            if self.failed {
                return None;
            }
            let (batches, convert) = (&mut self.batches, &self.convert);
            let rows = guarded(|| match batches.next() {
                None => Ok(None),
                Some(Ok(batch)) => convert(&Batch(batch)).map(Some),
                Some(Err(error)) => Err(error.to_string()),
            });
            match rows {
                Ok(None) => return None,
                Ok(Some(rows)) => self.rows = rows.into_iter(),
                Err(why) => {
                    self.failed = true;
                    return Some(Err(StoreError::damaged(&self.path, why)));
                }
            }
        }
    }
}
