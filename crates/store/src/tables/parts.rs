//! The table of parts of stalls: numbers alone.

use super::{Batch, PARTS, TableRows};
use arrow_array::builder::{ArrayBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{Array, ArrayRef, UInt32Array, UInt64Array};
use jitterscope_model::{CulpritId, Nanos, Part, RemarkId, StallId};
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct PartRows {
    stall_id: UInt64Builder,
    culprit_id: UInt32Builder,
    remark_id: UInt32Builder,
    net: UInt64Builder,
    gross: UInt64Builder,
    turns: UInt32Builder,
}

impl PartRows {
    pub(crate) fn push(
        &mut self,
        stall: StallId,
        culprit: CulpritId,
        remark: RemarkId,
        part: &Part,
    ) {
        self.stall_id.append_value(stall.0);
        self.culprit_id.append_value(culprit.0);
        self.remark_id.append_value(remark.0);
        self.net.append_value(part.net.0);
        let gross = Some(part.gross).filter(|gross| *gross != part.net);
        self.gross.append_option(gross.map(|gross| gross.0));
        self.turns
            .append_option(Some(part.turns).filter(|turns| *turns != 1));
    }
}

impl TableRows for PartRows {
    const FILE: &'static str = PARTS;

    fn len(&self) -> usize {
        self.stall_id.len()
    }

    fn columns(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.stall_id.finish()),
            Arc::new(self.culprit_id.finish()),
            Arc::new(self.remark_id.finish()),
            Arc::new(self.net.finish()),
            Arc::new(self.gross.finish()),
            Arc::new(self.turns.finish()),
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
    let id = batch.column::<UInt64Array>("stall_id")?;
    let culprit = batch.column::<UInt32Array>("culprit_id")?;
    let remark = batch.column::<UInt32Array>("remark_id")?;
    let net = batch.column::<UInt64Array>("net_ns")?;
    let gross = batch.column::<UInt64Array>("gross_ns")?;
    let gross = |row| {
        if gross.is_valid(row) {
            gross.value(row)
        } else {
            net.value(row)
        }
    };
    let turns = batch.column_if_any::<UInt32Array>("turns")?;
    let turns = |row| {
        turns
            .filter(|turns| turns.is_valid(row))
            .map_or(1, |turns| turns.value(row))
    };
    let part = |row| StoredPart {
        stall: StallId(id.value(row)),
        culprit: CulpritId(culprit.value(row)),
        remark: RemarkId(remark.value(row)),
        net: Nanos(net.value(row)),
        gross: Nanos(gross(row)),
        turns: turns(row),
    };
    Ok((0..batch.len()).map(part).collect())
}
