//! The table of intervals.

use super::{Batch, Cells, INTERVALS, Realtime, TableRows, all};
use jitterscope_model::{CpuId, IntervalRow, Nanos, Ticks};
use std::mem::take;

#[derive(Default)]
pub(crate) struct IntervalRows {
    cpu: Vec<u32>,
    start: Vec<u64>,
    end: Vec<u64>,
    realtime: Vec<u64>,
    count: Vec<u64>,
    max: Vec<u64>,
    stolen: Vec<u64>,
}

impl IntervalRows {
    pub(crate) fn push(&mut self, row: &IntervalRow, realtime: Realtime<'_>) {
        self.cpu.push(row.cpu.0);
        self.start.push(row.start.0);
        self.end.push(row.end.0);
        self.realtime.push(realtime(row.start));
        self.count.push(row.count);
        self.max.push(row.max.0);
        self.stolen.push(row.stolen.0);
    }
}

impl TableRows for IntervalRows {
    const FILE: &'static str = INTERVALS;

    fn len(&self) -> usize {
        self.cpu.len()
    }

    fn columns(&mut self) -> Vec<Cells> {
        vec![
            all(take(&mut self.cpu)),
            all(take(&mut self.start)),
            all(take(&mut self.end)),
            all(take(&mut self.realtime)),
            all(take(&mut self.count)),
            all(take(&mut self.max)),
            all(take(&mut self.stolen)),
        ]
    }
}

/// The intervals of a batch.
pub(crate) fn intervals(batch: &Batch) -> Result<Vec<IntervalRow>, String> {
    let cpu = batch.column::<u32>("cpu")?;
    let number = |name| batch.column::<u64>(name);
    let (start, end) = (number("start_ticks")?, number("end_ticks")?);
    let (count, max, stolen) = (number("count")?, number("max_ns")?, number("stolen_ns")?);
    let interval = |row| IntervalRow {
        cpu: CpuId(cpu[row]),
        start: Ticks(start[row]),
        end: Ticks(end[row]),
        count: count[row],
        max: Nanos(max[row]),
        stolen: Nanos(stolen[row]),
    };
    Ok((0..batch.rows).map(interval).collect())
}
