//! The table of parts of stalls: numbers alone.

use super::{Batch, Cells, PARTS, TableRows, all, some};
use jitterscope_model::{CulpritId, Nanos, Part, RemarkId, StallId};
use std::mem::take;

#[derive(Default)]
pub(crate) struct PartRows {
    stall_id: Vec<u64>,
    culprit_id: Vec<u32>,
    remark_id: Vec<u32>,
    net: Vec<u64>,
    gross: Vec<Option<u64>>,
    turns: Vec<Option<u32>>,
}

impl PartRows {
    pub(crate) fn push(
        &mut self,
        stall: StallId,
        culprit: CulpritId,
        remark: RemarkId,
        part: &Part,
    ) {
        self.stall_id.push(stall.0);
        self.culprit_id.push(culprit.0);
        self.remark_id.push(remark.0);
        self.net.push(part.net.0);
        let gross = Some(part.gross).filter(|gross| *gross != part.net);
        self.gross.push(gross.map(|gross| gross.0));
        self.turns
            .push(Some(part.turns).filter(|turns| *turns != 1));
    }
}

impl TableRows for PartRows {
    const FILE: &'static str = PARTS;

    fn len(&self) -> usize {
        self.stall_id.len()
    }

    fn columns(&mut self) -> Vec<Cells> {
        vec![
            all(take(&mut self.stall_id)),
            all(take(&mut self.culprit_id)),
            all(take(&mut self.remark_id)),
            all(take(&mut self.net)),
            some(take(&mut self.gross)),
            some(take(&mut self.turns)),
        ]
    }
}

/// A part as the table stores it.
pub(crate) struct StoredPart {
    pub(crate) stall: StallId,
    pub(crate) culprit: CulpritId,
    pub(crate) remark: RemarkId,
    pub(crate) net: Nanos,
    pub(crate) gross: Nanos,
    pub(crate) turns: u32,
}

/// The parts of a batch.
pub(crate) fn parts(batch: &Batch) -> Result<Vec<StoredPart>, String> {
    let id = batch.column::<u64>("stall_id")?;
    let culprit = batch.column::<u32>("culprit_id")?;
    let remark = batch.column::<u32>("remark_id")?;
    let net = batch.column::<u64>("net_ns")?;
    let gross = batch.column_if_any::<u64>("gross_ns")?;
    let turns = batch.column_if_any::<u32>("turns")?;
    let part = |row| StoredPart {
        stall: StallId(id[row]),
        culprit: CulpritId(culprit[row]),
        remark: RemarkId(remark[row]),
        net: Nanos(net[row]),
        gross: Nanos(gross.and_then(|gross| gross[row]).unwrap_or(net[row])),
        turns: turns.and_then(|turns| turns[row]).unwrap_or(1),
    };
    Ok((0..batch.rows).map(part).collect())
}
