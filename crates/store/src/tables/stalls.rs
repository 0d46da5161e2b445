//! The table of stalls.

use super::{Batch, Cells, Realtime, STALLS, TableRows, Text, all};
use jitterscope_model::{Comm, CpuId, Stall, StallId, ThreadRef, TickRate, Ticks};
use std::mem::take;

#[derive(Default)]
pub(crate) struct StallRows {
    stall_id: Vec<u64>,
    cpu: Vec<u32>,
    tid: Vec<i32>,
    comm: Vec<Text>,
    start: Vec<u64>,
    end: Vec<u64>,
    realtime: Vec<u64>,
    duration: Vec<u64>,
}

impl StallRows {
    pub(crate) fn push(&mut self, stall: &Stall, rate: TickRate, realtime: Realtime<'_>) {
        self.stall_id.push(stall.id.0);
        self.cpu.push(stall.cpu.0);
        self.tid.push(stall.victim.tid);
        let comm = String::from_utf8_lossy(stall.victim.comm.as_bytes());
        // Most stalls have the victim of the one before.
        let same = self.comm.last().filter(|last| last.as_str() == comm);
        self.comm
            .push(same.cloned().unwrap_or_else(|| comm[..].into()));
        self.start.push(stall.start.0);
        self.end.push(stall.end.0);
        self.realtime.push(realtime(stall.start));
        self.duration.push(rate.nanos(stall.length()).0);
    }
}

impl TableRows for StallRows {
    const FILE: &'static str = STALLS;

    fn len(&self) -> usize {
        self.stall_id.len()
    }

    fn columns(&mut self) -> Vec<Cells> {
        vec![
            all(take(&mut self.stall_id)),
            all(take(&mut self.cpu)),
            all(take(&mut self.tid)),
            all(take(&mut self.comm)),
            all(take(&mut self.start)),
            all(take(&mut self.end)),
            all(take(&mut self.realtime)),
            all(take(&mut self.duration)),
        ]
    }
}

/// The stalls of a batch.
pub(crate) fn stalls(batch: &Batch) -> Result<Vec<Stall>, String> {
    let id = batch.column::<u64>("stall_id")?;
    let cpu = batch.column::<u32>("cpu")?;
    let tid = batch.column::<i32>("tid")?;
    let comm = batch.column::<Text>("comm")?;
    let start = batch.column::<u64>("start_ticks")?;
    let end = batch.column::<u64>("end_ticks")?;
    let stall = |row: usize| Stall {
        id: StallId(id[row]),
        cpu: CpuId(cpu[row]),
        victim: ThreadRef {
            tid: tid[row],
            comm: Comm::new(comm[row].as_str()),
        },
        start: Ticks(start[row]),
        end: Ticks(end[row]),
    };
    Ok((0..batch.rows).map(stall).collect())
}
