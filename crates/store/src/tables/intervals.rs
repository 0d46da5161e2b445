//! The table of intervals.

use super::{Batch, INTERVALS, Realtime, TableRows};
use arrow_array::builder::{UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, UInt32Array, UInt64Array};
use jitterscope_model::{CpuId, IntervalRow, Nanos, Ticks};
use std::sync::Arc;

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

impl TableRows for IntervalRows {
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

/// The intervals of a batch.
pub(crate) fn intervals(batch: &Batch) -> Result<Vec<IntervalRow>, String> {
    let cpu = batch.column::<UInt32Array>("cpu")?;
    let number = |name| batch.column::<UInt64Array>(name);
    let (start, end) = (number("start_ticks")?, number("end_ticks")?);
    let (count, max, stolen) = (number("count")?, number("max_ns")?, number("stolen_ns")?);
    Ok((0..batch.len())
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
