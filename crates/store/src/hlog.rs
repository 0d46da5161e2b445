//! `histograms.hlog`: the HdrHistogram V2 interval log.

use crate::error::StoreError;
use crate::reserved::ReservedFile;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriter, IntervalLogWriterBuilder, Tag};
use jitterscope_platform::HeldDir;
use std::io::Write;
use std::time::{Duration, SystemTime};

/// Interval_Max is written in milliseconds, as jHiccup and its log processor have it; values are ns.
const NANOS_PER_MS: f64 = 1e6;

/// Room kept ahead, bytes: the last intervals of every CPU and, of a pipeline, its histograms whole.
const AHEAD: u64 = 1 << 20;

/// Everything that the library's writer borrows, made again for each line: it can only be had on
/// borrowed parts, and a run's line comes once a second.
pub(crate) struct Hlog {
    file: ReservedFile,
    serializer: V2DeflateSerializer,
    started: Option<SystemTime>,
}

impl Hlog {
    pub(crate) fn create(folder: &HeldDir, name: &str) -> Result<Hlog, StoreError> {
        let mut file = ReservedFile::create(folder, name)?;
        file.reserve(AHEAD)?;
        Ok(Hlog { file, serializer: V2DeflateSerializer::new(), started: None })
    }

    /// Writes the header.
    pub(crate) fn begin(&mut self, started: SystemTime) -> Result<(), StoreError> {
        self.started = Some(started);
        let mut builder = IntervalLogWriterBuilder::new();
        builder
            .add_comment("[Logged with jitterscope: stalls, values in nanoseconds]")
            .add_comment(jitterscope_model::LENGTHS_REMARK)
            .with_start_time(started)
            .with_base_time(started)
            .with_max_value_divisor(NANOS_PER_MS);
        let mut header = Vec::new();
        builder
            .begin_log_with(&mut header, &mut self.serializer)
            .map_err(|e| StoreError::write(self.file.path(), e))?;
        self.file.write_all(&header).map_err(|e| StoreError::write(self.file.path(), e))
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
                .map_err(|e| StoreError::write(self.file.path(), e))?;
            writer
                .write_histogram(histogram, start, length, Some(tag))
                .map_err(|e| StoreError::damaged(self.file.path(), format!("{e:?}")))?;
        }
        // The library states the divisor in a line of its own whenever a writer begins.
        let record = line.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default();
        // Room for this line, and for as many more as there may be once there is no more room.
        if let Err(error) = self.file.reserve(AHEAD + record.len() as u64)
            && !(error.is_full() && self.file.has_room(record.len() as u64))
        {
            return Err(error);
        }
        self.file.write_all(record).map_err(|e| StoreError::write(self.file.path(), e))
    }

    pub(crate) fn finish(self) -> Result<(), StoreError> {
        self.file.finish()
    }
}
