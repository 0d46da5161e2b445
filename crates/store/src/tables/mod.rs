//! The columns of the Parquet files, and the conversion of rows to and from them.

mod cells;
mod culprits;
mod facts;
mod intervals;
mod parts;
mod remarks;
mod stalls;
mod views;

use crate::rollup::ROLLUPS;
use jitterscope_model::Ticks;
use parquet::errors::ParquetError;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type};
use std::sync::Arc;

pub(crate) use cells::{Batch, Cell, Cells, Text, all, some};
pub(crate) use culprits::{CulpritRows, culprits};
use facts::{FACTS, column};
pub(crate) use intervals::{IntervalRows, intervals};
pub(crate) use parts::{PartRows, StoredPart, parts};
pub(crate) use remarks::{RemarkRows, remarks};
pub(crate) use stalls::{StallRows, stalls};
pub use views::{VIEWS, views};

/// The type of a column.
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
pub type Named = (&'static str, Column, &'static str);

/// One table: file, and its columns in order.
pub type Table = (&'static str, &'static [Named]);

pub(crate) const STALLS: &str = "stalls.parquet";
pub(crate) const PARTS: &str = "parts.parquet";
pub(crate) const CULPRITS: &str = "culprits.parquet";
pub(crate) const REMARKS: &str = "remarks.parquet";
pub(crate) const INTERVALS: &str = "intervals.parquet";

/// Columns of a culprit before the facts of its subject.
const BEFORE: [Named; 3] = [
    (
        "culprit_id",
        Column::U32,
        "id within the run, ascending; joins parts.parquet. A culprit may have several ids",
    ),
    ("kind", Column::Text, "kind of culprit"),
    (
        "name",
        Column::Text,
        "thread name, function, handler or verdict",
    ),
];

/// Columns of a culprit after those facts: its trigger, null where none is known.
const BEHIND: [Named; 7] = [
    (
        "sender_comm",
        Column::TextOrNull,
        "name of the sending thread, null if no thread sent",
    ),
    (
        "sender_tid",
        Column::I32OrNull,
        "id of the sending thread, 0 if no thread sent",
    ),
    ("sender_tgid", Column::I32OrNull, "process id, if known"),
    ("sender_cpu", Column::U32OrNull, "CPU of the sender"),
    (
        "sender_via",
        Column::TextOrNull,
        "kernel function that sent",
    ),
    (
        "sender_context",
        Column::TextOrNull,
        "context of the sender: thread, softirq, interrupt or nmi",
    ),
    (
        "sender_beneath",
        Column::TextOrNull,
        "thread that a softirq interrupted; it may have raised the softirq or be unrelated",
    ),
];

const CULPRIT: [Named; BEFORE.len() + FACTS.len() + BEHIND.len()] = {
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

/// All tables. Stalls and parts are many rows of numbers; culprits and remarks are few rows of text. New versions only
/// ever add columns; readers find them by name.
pub const SCHEMA: [Table; 5] = [
    (
        STALLS,
        &[
            ("stall_id", Column::U64, "id within the run, ascending"),
            ("cpu", Column::U32, "CPU that stalled"),
            ("tid", Column::I32, "stalled thread"),
            ("comm", Column::Text, "thread name"),
            (
                "start_ticks",
                Column::U64,
                "last clock read before the stall",
            ),
            ("end_ticks", Column::U64, "first clock read after the stall"),
            (
                "start_realtime_ns",
                Column::U64,
                "start, nanoseconds since the epoch",
            ),
            ("duration_ns", Column::U64, "length"),
        ],
    ),
    (
        PARTS,
        &[
            ("stall_id", Column::U64, "joins stalls.parquet"),
            ("culprit_id", Column::U32, "joins culprits.parquet"),
            ("remark_id", Column::U32, "joins remarks.parquet"),
            ("net_ns", Column::U64, "time as the innermost frame"),
            (
                "gross_ns",
                Column::U64OrNull,
                "time including nested frames, null if equal to net_ns",
            ),
            (
                "turns",
                Column::U32OrNull,
                "stretches of time that it sums, null where that is 1",
            ),
        ],
    ),
    (CULPRITS, &CULPRIT),
    (
        REMARKS,
        &[
            (
                "remark_id",
                Column::U32,
                "id within the run, ascending; joins parts.parquet",
            ),
            (
                "phase",
                Column::TextOrNull,
                "which phase of a wake-up, message or followed thread the part delayed",
            ),
            (
                "moved_from_cpu",
                Column::U32OrNull,
                "CPU from which the victim was moved during the part",
            ),
            (
                "placement",
                Column::Text,
                "inside, lead, hole, trail or whole",
            ),
            ("confidence", Column::Text, "low, medium or high"),
            ("evidence", Column::Text, "evidence for the verdict"),
            (
                "others_stalled",
                Column::U32OrNull,
                "number of CPUs that stalled simultaneously, without events",
            ),
        ],
    ),
    (
        INTERVALS,
        &[
            ("cpu", Column::U32, "CPU"),
            ("start_ticks", Column::U64, "start of the interval"),
            ("end_ticks", Column::U64, "end of the interval"),
            (
                "start_realtime_ns",
                Column::U64,
                "start, nanoseconds since the epoch",
            ),
            ("count", Column::U64, "stalls that ended in the interval"),
            ("max_ns", Column::U64, "longest of them"),
            ("stolen_ns", Column::U64, "sum of their lengths"),
        ],
    ),
];

/// The columns of a table of [`SCHEMA`], or of [`ROLLUPS`]; none for another file.
pub(crate) fn columns(file: &str) -> &'static [Named] {
    let mut tables = SCHEMA.iter().chain([&ROLLUPS]);
    let table = tables.find(|(name, _)| *name == file);
    table.map_or(&[], |(_, columns)| columns)
}

/// The schema of a table in Parquet's words.
///
/// # Errors
/// The library refuses a name.
pub(crate) fn schema(file: &str) -> Result<SchemaDescPtr, ParquetError> {
    let columns = columns(file).iter();
    let columns = columns.map(|(name, column, _)| Ok(Arc::new(column.described(name)?)));
    let row = Type::group_type_builder("row")
        .with_fields(columns.collect::<Result<_, ParquetError>>()?)
        .build()?;
    Ok(Arc::new(SchemaDescriptor::new(Arc::new(row))))
}

/// Rows gathered for a table.
pub(crate) trait TableRows: Default {
    const FILE: &'static str;
    fn len(&self) -> usize;
    /// Takes the gathered rows, by column in the order of the schema.
    fn columns(&mut self) -> Vec<Cells>;
}

/// Converts ticks to nanoseconds since the epoch.
pub(crate) type Realtime<'a> = &'a dyn Fn(Ticks) -> u64;

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{
        Comm, CpuId, CulpritTable, Evidence, IntervalRow, Nanos, Part, Stall, StallId, Subject,
        ThreadRef, TickRate,
    };

    /// Pushes three rows, and checks how many wait before and after the batch is taken.
    fn counted<R: TableRows>(mut push: impl FnMut(&mut R)) {
        let mut rows = R::default();
        assert_eq!(rows.len(), 0, "{}", R::FILE);
        for n in 1..=3 {
            push(&mut rows);
            assert_eq!(rows.len(), n, "{}", R::FILE);
        }
        let taken = rows.columns();
        assert_eq!(taken.len(), columns(R::FILE).len(), "{}", R::FILE);
        assert!(taken.iter().all(|cells| cells.len() == 3), "{}", R::FILE);
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
        counted::<StallRows>(|rows| rows.push(&stall, TickRate::NANOSECONDS, &|_| 0));
        let row = IntervalRow {
            cpu: CpuId(1),
            start,
            end,
            count: 1,
            max: Nanos(1),
            stolen: Nanos(1),
        };
        counted::<IntervalRows>(|rows| rows.push(&row, &|_| 0));
        let part = Part::inside(Subject::Call("f".into()), Nanos(1), Evidence::LostRecords);
        let mut table = CulpritTable::default();
        let (culprit, remark) = (table.culprit(&part.culprit), table.remark(&part));
        counted::<PartRows>(|rows| rows.push(StallId(1), culprit.id, remark.id, &part));
        counted::<CulpritRows>(|rows| rows.push(culprit.id, culprit.new.clone().unwrap()));
        counted::<RemarkRows>(|rows| rows.push(remark.id, remark.new.clone().unwrap()));
    }
}
