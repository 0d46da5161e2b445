//! The table of stalls.

use super::{Batch, Realtime, STALLS, TableRows};
use arrow_array::builder::{Int32Builder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, Int32Array, StringViewArray, UInt32Array, UInt64Array};
use jitterscope_model::{Comm, CpuId, Stall, StallId, ThreadRef, TickRate, Ticks};
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct StallRows {
    stall_id: UInt64Builder,
    cpu: UInt32Builder,
    tid: Int32Builder,
    comm: StringBuilder,
    start: UInt64Builder,
    end: UInt64Builder,
    realtime: UInt64Builder,
    duration: UInt64Builder,
}

impl StallRows {
    pub(crate) fn push(&mut self, stall: &Stall, rate: TickRate, realtime: Realtime<'_>) {
        self.stall_id.append_value(stall.id.0);
        self.cpu.append_value(stall.cpu.0);
        self.tid.append_value(stall.victim.tid);
        let comm = stall.victim.comm.as_bytes();
        self.comm.append_value(String::from_utf8_lossy(comm));
        self.start.append_value(stall.start.0);
        self.end.append_value(stall.end.0);
        self.realtime.append_value(realtime(stall.start));
        self.duration.append_value(rate.nanos(stall.length()).0);
    }
}

impl TableRows for StallRows {
    const FILE: &'static str = STALLS;

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

/// The stalls of a batch.
pub(crate) fn stalls(batch: &Batch) -> Result<Vec<Stall>, String> {
    let (id, cpu) = (
        batch.column::<UInt64Array>("stall_id")?,
        batch.column::<UInt32Array>("cpu")?,
    );
    let (tid, comm) = (
        batch.column::<Int32Array>("tid")?,
        batch.column::<StringViewArray>("comm")?,
    );
    let start = batch.column::<UInt64Array>("start_ticks")?;
    let end = batch.column::<UInt64Array>("end_ticks")?;
    Ok((0..batch.len())
        .map(|row| Stall {
            id: StallId(id.value(row)),
            cpu: CpuId(cpu.value(row)),
            victim: ThreadRef {
                tid: tid.value(row),
                comm: Comm::new(comm.value(row)),
            },
            start: Ticks(start.value(row)),
            end: Ticks(end.value(row)),
        })
        .collect())
}
