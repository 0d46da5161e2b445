//! `histograms.hlog`: the HdrHistogram V2 interval log.

use crate::error::StoreError;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriter, IntervalLogWriterBuilder, Tag};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Interval_Max is written in milliseconds, as jHiccup and its log processor have it; values are ns.
const NANOS_PER_MS: f64 = 1e6;

/// Everything that the library's writer borrows, made again for each line: it can only be had on
/// borrowed parts, and a run's line comes once a second.
pub(crate) struct Hlog {
    path: PathBuf,
    file: BufWriter<File>,
    serializer: V2DeflateSerializer,
    started: Option<SystemTime>,
}

impl Hlog {
    pub(crate) fn create(path: &Path) -> Result<Hlog, StoreError> {
        let file = File::create(path).map_err(|e| StoreError::write(path, e))?;
        Ok(Hlog {
            path: path.to_path_buf(),
            file: BufWriter::new(file),
            serializer: V2DeflateSerializer::new(),
            started: None,
        })
    }

    /// Writes the header.
    pub(crate) fn begin(&mut self, started: SystemTime) -> Result<(), StoreError> {
        self.started = Some(started);
        let mut builder = IntervalLogWriterBuilder::new();
        builder
            .add_comment("[Logged with jitterscope: stalls, values in nanoseconds]")
            .with_start_time(started)
            .with_base_time(started)
            .with_max_value_divisor(NANOS_PER_MS);
        let result = builder.begin_log_with(&mut self.file, &mut self.serializer);
        result.map(|_| ()).map_err(|e| StoreError::write(&self.path, e))
    }

    /// One interval: `start` since the beginning of the log, its length, its histogram.
    pub(crate) fn write(
        &mut self,
        tag: &str,
        start: Duration,
        length: Duration,
        histogram: &Histogram<u64>,
    ) -> Result<(), StoreError> {
        let Some(tag) = Tag::new(tag) else { return Ok(()) };
        let mut line = Vec::new();
        {
            // A writer of its own for the line; the header it begins with is cut off.
            let mut builder = IntervalLogWriterBuilder::new();
            builder.with_max_value_divisor(NANOS_PER_MS);
            let mut writer: IntervalLogWriter<'_, '_, Vec<u8>, V2DeflateSerializer> = builder
                .begin_log_with(&mut line, &mut self.serializer)
                .map_err(|e| StoreError::write(&self.path, e))?;
            writer
                .write_histogram(histogram, start, length, Some(tag))
                .map_err(|e| StoreError::damaged(&self.path, format!("{e:?}")))?;
        }
        // The library states the divisor in a line of its own whenever a writer begins.
        let record = line.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default();
        self.file.write_all(record).map_err(|e| StoreError::write(&self.path, e))
    }

    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let file = self.file.into_inner().map_err(|e| StoreError::write(&self.path, e.into_error()))?;
        file.sync_all().map_err(|e| StoreError::write(&self.path, e))
    }
}
