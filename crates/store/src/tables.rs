//! The columns of the parquet files, and rows to and from them.

use arrow_array::builder::{Int32Builder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use jitterscope_model::{
    Attribution, Comm, Confidence, CpuId, Culprit, CulpritKind, ExecutionContext, IntervalRow, Nanos, Part,
    Placement, Sender, Stall, StallId, ThreadRef, TickRate, Ticks,
};
use std::sync::Arc;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Unsigned, 64 bits.
    U64,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// UTF-8.
    Text,
    /// UTF-8, may be null.
    TextOrNull,
    /// Signed, 32 bits, may be null.
    I32OrNull,
    /// Unsigned, 32 bits, may be null.
    U32OrNull,
}

/// One table: file, and its columns with type and meaning, in order.
type Table = (&'static str, &'static [(&'static str, Column, &'static str)]);

pub(crate) const GAPS: &str = "gaps.parquet";
pub(crate) const ATTRIBUTIONS: &str = "attributions.parquet";
pub(crate) const INTERVALS: &str = "intervals.parquet";

/// All tables. Columns are only ever added; readers find them by name.
pub const SCHEMA: [Table; 3] = [
    (
        GAPS,
        &[
            ("stall_id", Column::U64, "number within the run, ascending"),
            ("cpu", Column::U32, "CPU that stalled"),
            ("tid", Column::I32, "thread that was stalled"),
            ("comm", Column::Text, "its name"),
            ("start_ticks", Column::U64, "last clock read before"),
            ("end_ticks", Column::U64, "first clock read after"),
            ("start_realtime_ns", Column::U64, "start, nanoseconds since the epoch"),
            ("duration_ns", Column::U64, "length"),
        ],
    ),
    (
        ATTRIBUTIONS,
        &[
            ("stall_id", Column::U64, "joins gaps.parquet"),
            ("kind", Column::Text, "kind of culprit"),
            ("name", Column::Text, "culprit"),
            ("detail", Column::Text, "what else identifies it"),
            ("sender_comm", Column::TextOrNull, "who set it going: thread name, null where none had a part"),
            ("sender_tid", Column::I32OrNull, "thread id, 0 where no thread had a part"),
            ("sender_cpu", Column::U32OrNull, "the CPU it ran on"),
            ("sender_via", Column::TextOrNull, "kernel function that sent"),
            (
                "sender_context",
                Column::TextOrNull,
                "thread, or what was on top of it: softirq, interrupt, nmi",
            ),
            ("net_ns", Column::U64, "time as the innermost thing running"),
            ("gross_ns", Column::U64, "time with what nested inside"),
            ("placement", Column::Text, "inside, lead, hole, trail or whole"),
            ("confidence", Column::Text, "low, medium or high"),
            ("evidence", Column::Text, "what the verdict rests on"),
        ],
    ),
    (
        INTERVALS,
        &[
            ("cpu", Column::U32, "CPU"),
            ("start_ticks", Column::U64, "start of the interval"),
            ("end_ticks", Column::U64, "its end"),
            ("start_realtime_ns", Column::U64, "start, nanoseconds since the epoch"),
            ("count", Column::U64, "stalls that ended in it"),
            ("max_ns", Column::U64, "the longest"),
            ("stolen_ns", Column::U64, "their sum"),
        ],
    ),
];

/// The arrow schema of a table of [`SCHEMA`].
pub(crate) fn schema(file: &str) -> Arc<Schema> {
    let columns = SCHEMA.iter().find(|(name, _)| *name == file).map_or(&[][..], |(_, columns)| columns);
    let field = |(name, column, _): &(&str, Column, &str)| {
        let (data, nullable) = match column {
            Column::U64 => (DataType::UInt64, false),
            Column::U32 => (DataType::UInt32, false),
            Column::I32 => (DataType::Int32, false),
            Column::Text => (DataType::Utf8, false),
            Column::TextOrNull => (DataType::Utf8, true),
            Column::I32OrNull => (DataType::Int32, true),
            Column::U32OrNull => (DataType::UInt32, true),
        };
        Field::new(*name, data, nullable)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Rows on their way into a table.
pub(crate) trait Rows: Default {
    const FILE: &'static str;
    fn len(&self) -> usize;
    fn columns(&mut self) -> Vec<ArrayRef>;

    fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(schema(Self::FILE), self.columns())
    }
}

/// Ticks to nanoseconds since the epoch.
pub(crate) type Realtime<'a> = &'a dyn Fn(Ticks) -> u64;

#[derive(Default)]
pub(crate) struct GapRows {
    stall_id: UInt64Builder,
    cpu: UInt32Builder,
    tid: Int32Builder,
    comm: StringBuilder,
    start: UInt64Builder,
    end: UInt64Builder,
    realtime: UInt64Builder,
    duration: UInt64Builder,
}

impl GapRows {
    pub(crate) fn push(&mut self, stall: &Stall, rate: TickRate, realtime: Realtime<'_>) {
        self.stall_id.append_value(stall.id.0);
        self.cpu.append_value(stall.cpu.0);
        self.tid.append_value(stall.victim.tid);
        self.comm.append_value(stall.victim.comm.to_string());
        self.start.append_value(stall.start.0);
        self.end.append_value(stall.end.0);
        self.realtime.append_value(realtime(stall.start));
        self.duration.append_value(rate.nanos(stall.length()).0);
    }
}

impl Rows for GapRows {
    const FILE: &'static str = GAPS;

    fn len(&self) -> usize {
        arrow_array::builder::ArrayBuilder::len(&self.stall_id)
    }

    fn columns(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.stall_id.finish()),
            Arc::new(self.cpu.finish()),
            Arc::new(self.tid.finish()),
            Arc::new(self.comm.finish()),
            Arc::new(self.start.finish()),
            Arc::new(self.end.finish()),
            Arc::new(self.realtime.finish()),
            Arc::new(self.duration.finish()),
        ]
    }
}

#[derive(Default)]
pub(crate) struct AttributionRows {
    stall_id: UInt64Builder,
    kind: StringBuilder,
    name: StringBuilder,
    detail: StringBuilder,
    sender_comm: StringBuilder,
    sender_tid: Int32Builder,
    sender_cpu: UInt32Builder,
    sender_via: StringBuilder,
    sender_context: StringBuilder,
    net: UInt64Builder,
    gross: UInt64Builder,
    placement: StringBuilder,
    confidence: StringBuilder,
    evidence: StringBuilder,
}

impl AttributionRows {
    pub(crate) fn push(&mut self, attribution: &Attribution) {
        for part in &attribution.parts {
            let sender = part.culprit.sender.as_ref();
            self.stall_id.append_value(attribution.stall.0);
            self.kind.append_value(part.culprit.kind.as_str());
            self.name.append_value(&part.culprit.name);
            self.detail.append_value(&part.culprit.detail);
            self.sender_comm.append_option(sender.and_then(|s| s.comm.as_deref()));
            self.sender_tid.append_option(sender.map(|s| s.tid));
            self.sender_cpu.append_option(sender.map(|s| s.cpu.0));
            self.sender_via.append_option(sender.and_then(|s| s.via.as_deref()));
            self.sender_context.append_option(sender.map(|s| s.context.as_str()));
            self.net.append_value(part.net.0);
            self.gross.append_value(part.gross.0);
            self.placement.append_value(part.placement.as_str());
            self.confidence.append_value(part.confidence.as_str());
            self.evidence.append_value(&part.evidence);
        }
    }
}

impl Rows for AttributionRows {
    const FILE: &'static str = ATTRIBUTIONS;

    fn len(&self) -> usize {
        arrow_array::builder::ArrayBuilder::len(&self.stall_id)
    }

    fn columns(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.stall_id.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.name.finish()),
            Arc::new(self.detail.finish()),
            Arc::new(self.sender_comm.finish()),
            Arc::new(self.sender_tid.finish()),
            Arc::new(self.sender_cpu.finish()),
            Arc::new(self.sender_via.finish()),
            Arc::new(self.sender_context.finish()),
            Arc::new(self.net.finish()),
            Arc::new(self.gross.finish()),
            Arc::new(self.placement.finish()),
            Arc::new(self.confidence.finish()),
            Arc::new(self.evidence.finish()),
        ]
    }
}

#[derive(Default)]
pub(crate) struct IntervalRows {
    cpu: UInt32Builder,
    start: UInt64Builder,
    end: UInt64Builder,
    realtime: UInt64Builder,
    count: UInt64Builder,
    max: UInt64Builder,
    stolen: UInt64Builder,
}

impl IntervalRows {
    pub(crate) fn push(&mut self, row: &IntervalRow, realtime: Realtime<'_>) {
        self.cpu.append_value(row.cpu.0);
        self.start.append_value(row.start.0);
        self.end.append_value(row.end.0);
        self.realtime.append_value(realtime(row.start));
        self.count.append_value(row.count);
        self.max.append_value(row.max.0);
        self.stolen.append_value(row.stolen.0);
    }
}

impl Rows for IntervalRows {
    const FILE: &'static str = INTERVALS;

    fn len(&self) -> usize {
        arrow_array::builder::ArrayBuilder::len(&self.cpu)
    }

    fn columns(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.cpu.finish()),
            Arc::new(self.start.finish()),
            Arc::new(self.end.finish()),
            Arc::new(self.realtime.finish()),
            Arc::new(self.count.finish()),
            Arc::new(self.max.finish()),
            Arc::new(self.stolen.finish()),
        ]
    }
}

/// A batch read back, its columns found by name.
pub(crate) struct Batch(pub(crate) RecordBatch);

impl Batch {
    fn column<T: Array + 'static>(&self, name: &str) -> Result<&T, String> {
        let column = self.0.column_by_name(name).ok_or_else(|| format!("it has no column '{name}'"))?;
        column.as_any().downcast_ref::<T>().ok_or_else(|| format!("column '{name}' has another type"))
    }

    pub(crate) fn stalls(&self) -> Result<Vec<Stall>, String> {
        let (id, cpu) = (self.column::<UInt64Array>("stall_id")?, self.column::<UInt32Array>("cpu")?);
        let (tid, comm) = (self.column::<Int32Array>("tid")?, self.column::<StringArray>("comm")?);
        let start = self.column::<UInt64Array>("start_ticks")?;
        let end = self.column::<UInt64Array>("end_ticks")?;
        Ok((0..self.0.num_rows())
            .map(|row| Stall {
                id: StallId(id.value(row)),
                cpu: CpuId(cpu.value(row)),
                victim: ThreadRef { tid: tid.value(row), comm: Comm::new(comm.value(row)) },
                start: Ticks(start.value(row)),
                end: Ticks(end.value(row)),
            })
            .collect())
    }

    /// (stall, part) rows.
    pub(crate) fn parts(&self) -> Result<Vec<(StallId, Part)>, String> {
        let id = self.column::<UInt64Array>("stall_id")?;
        let text = |name| self.column::<StringArray>(name);
        let (kind, name, detail) = (text("kind")?, text("name")?, text("detail")?);
        let (sender_comm, sender_via) = (text("sender_comm")?, text("sender_via")?);
        // Runs of before this column name the thread, whatever was on top of it.
        let sender_context = text("sender_context").ok();
        let context = |row| match sender_context {
            Some(column) if !column.is_null(row) => {
                known(ExecutionContext::parse(column.value(row)), "sender_context", column.value(row))
            }
            _ => Ok(ExecutionContext::Thread),
        };
        let sender_tid = self.column::<Int32Array>("sender_tid")?;
        let sender_cpu = self.column::<UInt32Array>("sender_cpu")?;
        let (net, gross) = (self.column::<UInt64Array>("net_ns")?, self.column::<UInt64Array>("gross_ns")?);
        let (placement, confidence) = (text("placement")?, text("confidence")?);
        let evidence = text("evidence")?;
        let optional =
            |column: &StringArray, row| (!column.is_null(row)).then(|| Arc::<str>::from(column.value(row)));
        (0..self.0.num_rows())
            .map(|row| {
                let context = context(row)?;
                let sender = (!sender_tid.is_null(row)).then(|| Sender {
                    context,
                    comm: optional(sender_comm, row),
                    tid: sender_tid.value(row),
                    cpu: CpuId(sender_cpu.value(row)),
                    via: optional(sender_via, row),
                });
                let part = Part {
                    culprit: Culprit {
                        kind: known(CulpritKind::parse(kind.value(row)), "kind", kind.value(row))?,
                        name: name.value(row).into(),
                        detail: detail.value(row).into(),
                        sender,
                    },
                    net: Nanos(net.value(row)),
                    gross: Nanos(gross.value(row)),
                    placement: known(
                        Placement::parse(placement.value(row)),
                        "placement",
                        placement.value(row),
                    )?,
                    confidence: known(
                        Confidence::parse(confidence.value(row)),
                        "confidence",
                        confidence.value(row),
                    )?,
                    evidence: evidence.value(row).to_owned(),
                };
                Ok((StallId(id.value(row)), part))
            })
            .collect()
    }

    pub(crate) fn intervals(&self) -> Result<Vec<IntervalRow>, String> {
        let cpu = self.column::<UInt32Array>("cpu")?;
        let number = |name| self.column::<UInt64Array>(name);
        let (start, end) = (number("start_ticks")?, number("end_ticks")?);
        let (count, max, stolen) = (number("count")?, number("max_ns")?, number("stolen_ns")?);
        Ok((0..self.0.num_rows())
            .map(|row| IntervalRow {
                cpu: CpuId(cpu.value(row)),
                start: Ticks(start.value(row)),
                end: Ticks(end.value(row)),
                count: count.value(row),
                max: Nanos(max.value(row)),
                stolen: Nanos(stolen.value(row)),
            })
            .collect())
    }
}

fn known<T>(value: Option<T>, column: &str, text: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("'{text}' in column '{column}' is not known to this version"))
}
