//! An hour as a Parquet file.

use super::{GroupHour, HostHour, ROLLUP_TABLE, RollupHost, hour_start_s};
use crate::row_group::RowGroup;
use crate::table::properties;
use crate::tables::{Cell, Cells, Text, all, schema, some};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::sync::Arc;

/// Encodes one hour of one host. `batch`: [`object_name`](super::object_name).
///
/// # Errors
/// The library refuses a value.
pub fn encode(hour: &HostHour, batch: &str) -> Result<Vec<u8>, ParquetError> {
    let lines = lines(hour);
    let mut file = RollupFile::new()?;
    file.group(&cells(hour, batch, &lines))?;
    file.finish()
}

/// A file while it is written, in memory.
pub(super) struct RollupFile {
    writer: SerializedFileWriter<Vec<u8>>,
    properties: Arc<WriterProperties>,
}

impl RollupFile {
    pub(super) fn new() -> Result<RollupFile, ParquetError> {
        let properties = Arc::new(properties(ROLLUP_TABLE));
        let root = schema(ROLLUP_TABLE)?.root_schema_ptr();
        let writer = SerializedFileWriter::new(Vec::new(), root, Arc::clone(&properties))?;
        Ok(RollupFile { writer, properties })
    }

    /// Writes rows as one group.
    pub(super) fn group(&mut self, columns: &[Cells]) -> Result<(), ParquetError> {
        let mut group = RowGroup::new(self.writer.schema_descr(), &self.properties);
        group.write(columns)?;
        group.finish(&mut self.writer)
    }

    pub(super) fn finish(self) -> Result<Vec<u8>, ParquetError> {
        self.writer.into_inner()
    }
}

/// A row: its group, and what its kind of record has.
#[derive(Clone, Copy)]
struct Line<'h> {
    record: &'static str,
    group: &'h GroupHour,
    culprit: Option<(&'h str, &'h str, Option<&'h str>)>,
    count: Option<u64>,
    sum_ns: Option<u64>,
    max_ns: Option<u64>,
    measured_ns: Option<u64>,
    lost: Option<u64>,
    bucket: Option<(&'h str, i32)>,
    stall: Option<u32>,
    place: Option<(u32, u64)>,
    phase: Option<&'h str>,
}

fn lines(hour: &HostHour) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    // Rows of one record follow one another: engines read only what a view asks for.
    for group in &hour.groups {
        lines.push(Line {
            count: Some(group.stalls),
            sum_ns: Some(group.stalled_ns),
            max_ns: Some(group.longest_ns),
            measured_ns: Some(group.measured_ns),
            lost: Some(group.lost),
            ..Line::new("hour", group)
        });
    }
    for group in &hour.groups {
        lines.extend(group.culprits.iter().map(|of| Line {
            culprit: Some((&of.kind, &of.name, of.owner.as_deref())),
            count: Some(of.count),
            sum_ns: Some(of.time_ns),
            max_ns: Some(of.longest_ns),
            ..Line::new("culprit", group)
        }));
    }
    for group in &hour.groups {
        lines.extend(group.buckets.iter().map(|of| Line {
            count: Some(of.count),
            bucket: Some((&of.key, of.bucket)),
            ..Line::new("bucket", group)
        }));
    }
    for group in &hour.groups {
        for (number, of) in (0..).zip(&group.longest) {
            lines.push(Line {
                sum_ns: Some(of.length_ns),
                stall: Some(number),
                place: Some((of.cpu, of.start_ns)),
                ..Line::new("stall", group)
            });
        }
    }
    for group in &hour.groups {
        for (number, of) in (0..).zip(&group.longest) {
            lines.extend(of.parts.iter().map(|part| Line {
                culprit: Some((&part.kind, &part.name, part.owner.as_deref())),
                sum_ns: Some(part.time_ns),
                stall: Some(number),
                phase: part.phase.as_deref(),
                ..Line::new("part", group)
            }));
        }
    }
    lines
}

impl<'h> Line<'h> {
    fn new(record: &'static str, group: &'h GroupHour) -> Line<'h> {
        Line {
            record,
            group,
            culprit: None,
            count: None,
            sum_ns: None,
            max_ns: None,
            measured_ns: None,
            lost: None,
            bucket: None,
            stall: None,
            place: None,
            phase: None,
        }
    }
}

/// The columns in the order of the schema.
fn cells(hour: &HostHour, batch: &str, lines: &[Line<'_>]) -> Vec<Cells> {
    let RollupHost {
        id,
        name,
        boot,
        kernel,
        cpu_model,
        machine,
        firmware,
        tuning,
        version,
        probe,
    } = &hour.host;
    let text = |text: &str| Text::from(text);
    let same = |value: &str| repeated(Text::from(value), lines.len());
    let firmware = firmware.as_deref().map(text);
    vec![
        all(lines.iter().map(|of| text(of.record))),
        same(batch),
        same(id),
        same(name),
        same(boot),
        same(kernel),
        same(cpu_model),
        same(machine),
        some(lines.iter().map(|_| firmware.clone())),
        same(tuning),
        same(version),
        same(probe),
        all(lines.iter().map(|of| text(&of.group.cpus.to_string()))),
        all(lines
            .iter()
            .map(|of| u32::try_from(of.group.cpus.len()).unwrap_or(u32::MAX))),
        repeated(hour_start_s(hour.hour), lines.len()),
        some(lines.iter().map(|_| hour.clock_ahead_s)),
        some(lines.iter().map(|of| of.culprit.map(|of| text(of.0)))),
        some(lines.iter().map(|of| of.culprit.map(|of| text(of.1)))),
        some(lines.iter().map(|of| of.culprit?.2.map(text))),
        some(lines.iter().map(|of| of.count)),
        some(lines.iter().map(|of| of.sum_ns)),
        some(lines.iter().map(|of| of.max_ns)),
        some(lines.iter().map(|of| of.measured_ns)),
        some(lines.iter().map(|of| of.lost)),
        some(lines.iter().map(|of| of.bucket.map(|of| text(of.0)))),
        some(lines.iter().map(|of| of.bucket.map(|of| of.1))),
        some(lines.iter().map(|of| of.stall)),
        some(lines.iter().map(|of| of.place.map(|of| of.0))),
        some(lines.iter().map(|of| of.place.map(|of| of.1))),
        some(lines.iter().map(|of| of.phase.map(text))),
    ]
}

fn repeated<C: Cell + Clone>(value: C, rows: usize) -> Cells {
    all(std::iter::repeat_n(value, rows))
}
