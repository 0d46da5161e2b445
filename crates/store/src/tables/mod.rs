//! The columns of the parquet files, and rows to and from them.

mod attribution_rows;
mod attributions;
mod batch;
mod facts;
mod gaps;
mod intervals;
mod shared;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use jitterscope_model::Ticks;
use std::sync::Arc;

pub(crate) use attribution_rows::AttributionRows;
pub(crate) use attributions::{legacy_parts, parts};
pub(crate) use batch::Batch;
use facts::{FACTS, column};
pub(crate) use gaps::{GapRows, stalls};
pub(crate) use intervals::{IntervalRows, intervals};

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
    /// Unsigned, 64 bits, may be null.
    U64OrNull,
}

/// One column: name, type and meaning.
type Named = (&'static str, Column, &'static str);

/// One table: file, and its columns in order.
type Table = (&'static str, &'static [Named]);

pub(crate) const GAPS: &str = "gaps.parquet";
pub(crate) const ATTRIBUTIONS: &str = "attributions.parquet";
pub(crate) const INTERVALS: &str = "intervals.parquet";

/// Of a part of a stall: before the facts of its subject.
const BEFORE: [Named; 3] = [
    ("stall_id", Column::U64, "joins gaps.parquet"),
    ("kind", Column::Text, "kind of culprit"),
    (
        "name",
        Column::Text,
        "culprit: its thread's name, function, handler or the verdict's word",
    ),
];

/// And behind them.
const BEHIND: [Named; 14] = [
    (
        "sender_comm",
        Column::TextOrNull,
        "who triggered it: thread name, null where none had a part",
    ),
    (
        "sender_tid",
        Column::I32OrNull,
        "thread id, 0 where no thread had a part",
    ),
    ("sender_tgid", Column::I32OrNull, "its process, where known"),
    ("sender_cpu", Column::U32OrNull, "the CPU it ran on"),
    (
        "sender_via",
        Column::TextOrNull,
        "kernel function that sent",
    ),
    (
        "sender_context",
        Column::TextOrNull,
        "thread, or what was on top of it: softirq, interrupt, nmi",
    ),
    (
        "phase",
        Column::TextOrNull,
        "what it held up, of a wake-up, a message or a followed thread",
    ),
    (
        "moved_from_cpu",
        Column::U32OrNull,
        "CPU from which the victim was moved meanwhile",
    ),
    ("net_ns", Column::U64, "time as the innermost thing running"),
    ("gross_ns", Column::U64, "time with what nested inside"),
    (
        "placement",
        Column::Text,
        "inside, lead, hole, trail or whole",
    ),
    ("confidence", Column::Text, "low, medium or high"),
    ("evidence", Column::Text, "what the verdict rests on"),
    (
        "others_stalled",
        Column::U32OrNull,
        "CPUs that stalled at the same instant, without events",
    ),
];

const PARTS: [Named; BEFORE.len() + FACTS.len() + BEHIND.len()] = {
    let mut all = [BEFORE[0]; BEFORE.len() + FACTS.len() + BEHIND.len()];
    let mut at = 0;
    while at < all.len() {
        let fact = at.saturating_sub(BEFORE.len());
        all[at] = if at < BEFORE.len() {
            BEFORE[at]
        } else if fact < FACTS.len() {
            (
                FACTS[fact].name,
                column(&FACTS[fact].form),
                FACTS[fact].meaning,
            )
        } else {
            BEHIND[fact - FACTS.len()]
        };
        at += 1;
    }
    all
};

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
            (
                "start_realtime_ns",
                Column::U64,
                "start, nanoseconds since the epoch",
            ),
            ("duration_ns", Column::U64, "length"),
        ],
    ),
    (ATTRIBUTIONS, &PARTS),
    (
        INTERVALS,
        &[
            ("cpu", Column::U32, "CPU"),
            ("start_ticks", Column::U64, "start of the interval"),
            ("end_ticks", Column::U64, "its end"),
            (
                "start_realtime_ns",
                Column::U64,
                "start, nanoseconds since the epoch",
            ),
            ("count", Column::U64, "stalls that ended in it"),
            ("max_ns", Column::U64, "the longest"),
            ("stolen_ns", Column::U64, "their sum"),
        ],
    ),
];

/// The schema by which rows of a table of [`SCHEMA`] are handed to the encoder. Readers see texts as texts.
pub(crate) fn schema(file: &str) -> Arc<Schema> {
    let columns = SCHEMA
        .iter()
        .find(|(name, _)| *name == file)
        .map_or(&[][..], |(_, columns)| columns);
    let field = |(name, column, _): &(&str, Column, &str)| {
        let (data, nullable) = match column {
            Column::U64 => (DataType::UInt64, false),
            Column::U32 => (DataType::UInt32, false),
            Column::I32 => (DataType::Int32, false),
            Column::Text => (shared::text(), false),
            Column::TextOrNull => (shared::text(), true),
            Column::I32OrNull => (DataType::Int32, true),
            Column::U32OrNull => (DataType::UInt32, true),
            Column::U64OrNull => (DataType::UInt64, true),
        };
        Field::new(*name, data, nullable)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Rows on their way into a table.
pub(crate) trait TableRows: Default {
    const FILE: &'static str;
    fn len(&self) -> usize;
    fn columns(&mut self) -> Vec<ArrayRef>;

    /// With the schema of its file.
    fn batch(&mut self, schema: &Arc<Schema>) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(Arc::clone(schema), self.columns())
    }
}

/// Ticks to nanoseconds since the epoch.
pub(crate) type Realtime<'a> = &'a dyn Fn(Ticks) -> u64;

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{
        Attribution, Comm, CpuId, Evidence, IntervalRow, Nanos, Part, Stall, StallId, Subject,
        ThreadRef, TickRate,
    };

    /// Pushes three times, and looks at how many rows wait before and after they are handed over.
    fn counted<R: TableRows>(mut push: impl FnMut(&mut R), rows_each: usize) {
        let mut rows = R::default();
        assert_eq!(rows.len(), 0, "{}", R::FILE);
        for n in 1..=3 {
            push(&mut rows);
            assert_eq!(rows.len(), n * rows_each, "{}", R::FILE);
        }
        assert_eq!(
            rows.batch(&schema(R::FILE)).unwrap().num_rows(),
            3 * rows_each,
            "{}",
            R::FILE
        );
        assert_eq!(rows.len(), 0, "{}", R::FILE);
    }

    #[test]
    fn rows_that_wait_are_counted_until_they_are_handed_over() {
        let victim = ThreadRef {
            tid: 1,
            comm: Comm::new("x"),
        };
        let (start, end) = (Ticks(1), Ticks(2));
        let stall = Stall {
            id: StallId(1),
            cpu: CpuId(1),
            victim,
            start,
            end,
        };
        counted::<GapRows>(|rows| rows.push(&stall, TickRate::NANOSECONDS, &|_| 0), 1);
        let row = IntervalRow {
            cpu: CpuId(1),
            start,
            end,
            count: 1,
            max: Nanos(1),
            stolen: Nanos(1),
        };
        counted::<IntervalRows>(|rows| rows.push(&row, &|_| 0), 1);
        let part = || Part::inside(Subject::Call("f".into()), Nanos(1), Evidence::LostRecords);
        let attribution = Attribution {
            stall: StallId(1),
            parts: vec![part(), part()],
        };
        counted::<AttributionRows>(|rows| rows.push(&attribution), 2);
    }
}
