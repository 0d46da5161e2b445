//! Reading a run.

use crate::error::StoreError;
use crate::hlog_reader::{HistogramLog, StoredHistogram};
use crate::pages::TraceRole;
use crate::segment::{self, End};
use crate::tables::{ATTRIBUTIONS, Batch, GAPS, INTERVALS};
use jitterscope_model::{
    Attribution, CpuId, IntervalRow, RunManifest, SCHEMA_VERSION, Stall, StallId, Ticks,
};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::BufReader;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

/// Rows decoded at a time.
const BATCH: usize = 4096;

/// A stored run. Opening it reads the manifest; rows stream.
#[derive(Clone, Debug)]
pub struct RunReader {
    path: PathBuf,
    manifest: RunManifest,
}

/// A raw page of a stored trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPage {
    /// Which side of the recording.
    pub role: TraceRole,
    /// Whose buffer.
    pub cpu: CpuId,
    /// Time of its first record.
    pub first: Ticks,
    /// Time of its last record.
    pub last: Ticks,
    /// The page as the kernel gave it, cut to what is used.
    pub bytes: Vec<u8>,
}

pub(crate) fn read_manifest(run: &Path) -> Result<RunManifest, StoreError> {
    let path = run.join("manifest.json");
    let text = fs::read(&path).map_err(|e| StoreError::read(&path, e))?;
    // The version first: a manifest of another one need not have our fields.
    let value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|e| StoreError::damaged(&path, e))?;
    let found = value["schema_version"].as_u64().unwrap_or(0);
    if found != u64::from(SCHEMA_VERSION) {
        return Err(StoreError::Version { path, found, known: SCHEMA_VERSION });
    }
    serde_json::from_value(value).map_err(|e| StoreError::damaged(&path, e))
}

impl RunReader {
    /// Opens the run in a folder.
    ///
    /// # Errors
    /// There is no manifest, it is damaged, or of another schema version.
    pub fn open(path: &Path) -> Result<RunReader, StoreError> {
        Ok(RunReader { manifest: read_manifest(path)?, path: path.to_path_buf() })
    }

    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything but the rows.
    #[must_use]
    pub fn manifest(&self) -> &RunManifest {
        &self.manifest
    }

    /// All stalls, in order of their ids.
    ///
    /// # Errors
    /// The file cannot be opened; later, each item may be an error.
    pub fn stalls(&self) -> Result<impl Iterator<Item = Result<Stall, StoreError>> + use<>, StoreError> {
        Table::open(&self.path, GAPS, |batch| batch.stalls())
    }

    /// All attributions, in order of their stalls; none when the run was not attributed.
    ///
    /// # Errors
    /// As [`RunReader::stalls`].
    pub fn attributions(
        &self,
    ) -> Result<impl Iterator<Item = Result<Attribution, StoreError>> + use<>, StoreError> {
        let mut parts = Table::open(&self.path, ATTRIBUTIONS, |batch| batch.parts())?.peekable();
        Ok(std::iter::from_fn(move || {
            let (stall, first) = match parts.next()? {
                Ok(row) => row,
                Err(error) => return Some(Err(error)),
            };
            let mut attribution = Attribution { stall, parts: vec![first] };
            let same = |row: &Result<(StallId, _), _>| row.as_ref().is_ok_and(|(id, _)| *id == stall);
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
        Table::open(&self.path, INTERVALS, |batch| batch.intervals())
    }

    /// The lengths of the stalls of each interval, in the order of [`RunReader::intervals`].
    ///
    /// # Errors
    /// As [`RunReader::stalls`].
    pub fn interval_histograms(
        &self,
    ) -> Result<impl Iterator<Item = Result<StoredHistogram, StoreError>> + use<>, StoreError> {
        HistogramLog::open(self.path.join("histograms.hlog"))
    }

    /// The pipeline's journal in the run's folder; `None` when there is none here.
    #[must_use]
    pub fn journal(&self) -> Option<PathBuf> {
        let path = self.path.join(crate::writer::JOURNAL);
        path.is_file().then_some(path)
    }

    /// What is needed to decode the raw trace; `None` when the run has none.
    ///
    /// # Errors
    /// It is there and damaged.
    pub fn trace_context<T: DeserializeOwned>(&self) -> Result<Option<T>, StoreError> {
        let path = self.path.join("trace").join("context.json");
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::read(&path, error)),
        };
        serde_json::from_reader(BufReader::new(file)).map(Some).map_err(|e| StoreError::damaged(&path, e))
    }

    /// The kept pages with any record between two times, in order of time.
    ///
    /// # Errors
    /// A segment cannot be read, is no segment, or was cut short.
    pub fn trace_pages(&self, from: Ticks, to: Ticks) -> Result<Vec<StoredPage>, StoreError> {
        let folder = self.path.join("trace").join("segments");
        let mut paths: Vec<PathBuf> = match fs::read_dir(&folder) {
            Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
            Err(_) => return Ok(Vec::new()),
        };
        paths.sort();
        let mut pages = Vec::new();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "seg")) {
            let file = File::open(path).map_err(|e| StoreError::read(path, e))?;
            let wanted = |header: &segment::FrameHeader| header.first <= to && from <= header.last;
            let end = segment::read(BufReader::new(file), wanted, |header, bytes| {
                if let Some(role) = TraceRole::from_byte(header.role) {
                    let segment::FrameHeader { cpu, first, last, .. } = header;
                    pages.push(StoredPage { role, cpu, first, last, bytes });
                }
            });
            // Whatever else was found: a view that is silently short is worse than none.
            if let End::Damaged(why) = end.map_err(|e| StoreError::read(path, e))? {
                return Err(StoreError::damaged(path, why));
            }
        }
        pages.sort_by_key(|page| page.first);
        Ok(pages)
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

/// Rows of a parquet file, a batch at a time.
struct Table<T> {
    path: PathBuf,
    batches: ParquetRecordBatchReader,
    convert: fn(&Batch) -> Result<Vec<T>, String>,
    rows: std::vec::IntoIter<T>,
    failed: bool,
}

impl<T> Table<T> {
    fn open(
        run: &Path,
        file: &str,
        convert: fn(&Batch) -> Result<Vec<T>, String>,
    ) -> Result<Table<T>, StoreError> {
        let path = run.join(file);
        let opened = File::open(&path).map_err(|e| StoreError::read(&path, e))?;
        let batches = guarded(|| {
            ParquetRecordBatchReaderBuilder::try_new(opened)
                .and_then(|builder| builder.with_batch_size(BATCH).build())
                .map_err(|e| e.to_string())
        })
        .map_err(|why| StoreError::damaged(&path, why))?;
        Ok(Table { path, batches, convert, rows: Vec::new().into_iter(), failed: false })
    }
}

impl<T> Iterator for Table<T> {
    type Item = Result<T, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Ok(row));
            }
            if self.failed {
                return None;
            }
            let (batches, convert) = (&mut self.batches, self.convert);
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
