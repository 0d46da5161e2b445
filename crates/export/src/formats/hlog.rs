//! `hlog`: HdrHistogram's V2 interval log as jHiccup writes it and HdrHistogram's log processors read it: one line for
//! each interval and CPU, tagged `<probe>-cpu<N>`, and for a pipeline one line for each whole-run histogram.
//! Interval_Max is in milliseconds, values are in ns.

use super::Format;
use crate::error::ExportError;
use crate::exporter::Exporter;
use crate::line_file::RowLines;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriter, IntervalLogWriterBuilder, Tag};
use jitterscope_model::{Nanos, Row, RunFacts, Ticks};
use std::time::{Duration, UNIX_EPOCH};

const NANOS_PER_MS: f64 = 1e6;
const COLUMNS: &str =
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

pub(super) static FORMAT: Format = Format {
    schemes: &["hlog"],
    usage: &[(
        "hlog://FILE",
        "HdrHistogram V2 interval log, one tag a CPU, values in ns",
    )],
    notes: "",
    read: |address| {
        address.without_options()?;
        Ok(Exporter::lines(address.path()?, |_| Hlog {
            serializer: V2DeflateSerializer::new(),
        }))
    },
};

/// Makes the lines of one file.
struct Hlog {
    serializer: V2DeflateSerializer,
}

impl Hlog {
    /// The output of the library for the start of a log and then `row`.
    fn text(
        &mut self,
        builder: &mut IntervalLogWriterBuilder,
        row: Option<(&str, Duration, Duration, &Histogram<u64>)>,
    ) -> Result<Vec<u8>, ExportError> {
        let failed = |error: &dyn std::fmt::Display| ExportError::Histogram(error.to_string());
        let mut text = Vec::new();
        let mut writer: IntervalLogWriter<'_, '_, Vec<u8>, V2DeflateSerializer> = builder
            .with_max_value_divisor(NANOS_PER_MS)
            .begin_log_with(&mut text, &mut self.serializer)
            .map_err(|e| failed(&e))?;
        if let Some((tag, start, length, histogram)) = row {
            writer
                .write_histogram(histogram, start, length, Tag::new(tag))
                .map_err(|e| failed(&e))?;
        }
        Ok(text)
    }

    /// A histogram as a line.
    fn histogram(
        &mut self,
        facts: &RunFacts,
        tag: &str,
        (start, end): (Ticks, Ticks),
        histogram: &Histogram<u64>,
    ) -> Result<Vec<u8>, ExportError> {
        let since = Duration::from_nanos(facts.rate.nanos(start.since(facts.clock.ticks)).0);
        let length = Duration::from_nanos(facts.rate.nanos(end.since(start)).0);
        let mut builder = IntervalLogWriterBuilder::new();
        let text = self.text(&mut builder, Some((tag, since, length, histogram)))?;
        // The library writes whole logs only: the header is cut off.
        let line = text
            .split_inclusive(|byte| *byte == b'\n')
            .rfind(|line| !line.starts_with(b"#"));
        Ok(line.unwrap_or_default().to_vec())
    }
}

/// A log of one histogram: a whole measurement in one line.
pub(crate) fn log_of(
    histogram: &Histogram<u64>,
    started_realtime_ns: u64,
    length: Nanos,
) -> Result<Vec<u8>, ExportError> {
    let started = UNIX_EPOCH + Duration::from_nanos(started_realtime_ns);
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("[Logged with jitterscope: times of messages, values in nanoseconds]")
        .add_comment("[Histogram log format version 1.3]")
        .with_start_time(started)
        .with_base_time(started)
        .with_max_value_divisor(NANOS_PER_MS);
    let failed = |error: &dyn std::fmt::Display| ExportError::Histogram(error.to_string());
    let (mut text, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut writer: IntervalLogWriter<'_, '_, Vec<u8>, V2DeflateSerializer> = builder
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|e| failed(&e))?;
    let length = Duration::from_nanos(length.0);
    writer
        .write_histogram(histogram, Duration::ZERO, length, None)
        .map_err(|e| failed(&e))?;
    let row = text
        .split_inclusive(|byte| *byte == b'\n')
        .next_back()
        .map_or(0, <[u8]>::len);
    let header = text.len() - row;
    text.splice(header..header, COLUMNS.bytes());
    Ok(text)
}

impl RowLines for Hlog {
    fn head(&mut self, facts: &RunFacts) -> Result<Vec<u8>, ExportError> {
        let started = UNIX_EPOCH + Duration::from_nanos(facts.clock.realtime_ns);
        let mut builder = IntervalLogWriterBuilder::new();
        builder
            .add_comment("[Logged with jitterscope: stalls, values in nanoseconds]")
            .add_comment(jitterscope_model::LENGTHS_REMARK)
            .add_comment("[Histogram log format version 1.3]")
            .with_start_time(started)
            .with_base_time(started);
        let mut head = self.text(&mut builder, None)?;
        head.extend(COLUMNS.bytes());
        Ok(head)
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Interval(..) | Row::Whole(..))
    }

    fn line(&mut self, facts: &RunFacts, row: &Row<'_>) -> Result<Vec<u8>, ExportError> {
        match row {
            Row::Interval(row, lengths) => {
                let tag = format!("{}-cpu{}", facts.probe, row.cpu);
                self.histogram(facts, &tag, (row.start, row.end), lengths)
            }
            Row::Whole(tag, span, times) => self.histogram(facts, tag, *span, times),
            Row::Stall(..) | Row::Page(_) | Row::Turn(_) | Row::Context(_) => Ok(Vec::new()),
        }
    }
}
