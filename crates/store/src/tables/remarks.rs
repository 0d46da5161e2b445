//! The table of remarks on parts: one row for each combination.

use super::culprits::{Texts, number, text};
use super::{Batch, REMARKS, TableRows};
use arrow_array::{ArrayRef, UInt32Array};
use jitterscope_model::{Confidence, CpuId, Evidence, Phase, Placement, Remark, RemarkId};
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct RemarkRows(Vec<(RemarkId, Remark)>);

impl RemarkRows {
    pub(crate) fn push(&mut self, id: RemarkId, remark: Remark) {
        self.0.push((id, remark));
    }
}

impl TableRows for RemarkRows {
    const FILE: &'static str = REMARKS;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn columns(&mut self) -> Vec<ArrayRef> {
        let rows = std::mem::take(&mut self.0);
        let id: UInt32Array = rows.iter().map(|(id, _)| Some(id.0)).collect();
        let of = || rows.iter().map(|(_, remark)| remark);
        let numbers = |get: fn(&Remark) -> Option<u32>| -> ArrayRef {
            Arc::new(of().map(get).collect::<UInt32Array>())
        };
        vec![
            Arc::new(id),
            text(of(), |remark| Some(remark.phase.as_ref()?.as_str().into())),
            numbers(|remark| Some(remark.moved_from?.0)),
            text(of(), |remark| Some(remark.placement.as_str().into())),
            text(of(), |remark| Some(remark.confidence.as_str().into())),
            text(of(), |remark| Some(remark.evidence.as_str().into())),
            numbers(|remark| remark.others_stalled),
        ]
    }
}

/// The remarks of a batch.
pub(crate) fn remarks(batch: &Batch) -> Result<Vec<(u32, Remark)>, String> {
    let id = batch.column::<UInt32Array>("remark_id")?;
    let texts = |name| batch.column_if_any(name).map(Texts);
    let (phase, evidence) = (texts("phase")?, texts("evidence")?);
    let (placement, confidence) = (texts("placement")?, texts("confidence")?);
    let moved_from = batch.column_if_any::<UInt32Array>("moved_from_cpu")?;
    let others_stalled = batch.column_if_any::<UInt32Array>("others_stalled")?;
    let remark = |row| Remark {
        phase: phase.word(row).map(Phase::from_word),
        moved_from: number(moved_from, row).map(CpuId),
        placement: placement
            .word(row)
            .map_or(Placement::Unknown, Placement::from_word),
        confidence: confidence
            .word(row)
            .map_or(Confidence::Unknown, Confidence::from_word),
        evidence: evidence
            .word(row)
            .map_or(Evidence::Nothing, Evidence::from_word),
        others_stalled: number(others_stalled, row),
    };
    Ok((0..batch.len())
        .map(|row| (id.value(row), remark(row)))
        .collect())
}
