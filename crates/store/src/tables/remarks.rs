//! The table of remarks on parts: one row for each combination.

use super::culprits::{Texts, number};
use super::{Batch, Cells, REMARKS, TableRows, Text, all, some};
use jitterscope_model::{Confidence, CpuId, Evidence, Phase, Placement, Remark, RemarkId};

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

    fn columns(&mut self) -> Vec<Cells> {
        let rows = std::mem::take(&mut self.0);
        let of = || rows.iter().map(|(_, remark)| remark);
        let text = |word: &str| Text::from(word);
        vec![
            all(rows.iter().map(|(id, _)| id.0)),
            some(of().map(|remark| remark.phase.as_ref().map(|phase| text(phase.as_str())))),
            some(of().map(|remark| remark.moved_from.map(|cpu| cpu.0))),
            all(of().map(|remark| text(remark.placement.as_str()))),
            all(of().map(|remark| text(remark.confidence.as_str()))),
            all(of().map(|remark| text(remark.evidence.as_str()))),
            some(of().map(|remark| remark.others_stalled)),
        ]
    }
}

/// The remarks of a batch.
pub(crate) fn remarks(batch: &Batch) -> Result<Vec<(u32, Remark)>, String> {
    let id = batch.column::<u32>("remark_id")?;
    let texts = |name| batch.column_if_any(name).map(Texts);
    let (phase, evidence) = (texts("phase")?, texts("evidence")?);
    let (placement, confidence) = (texts("placement")?, texts("confidence")?);
    let moved_from = batch.column_if_any::<u32>("moved_from_cpu")?;
    let others_stalled = batch.column_if_any::<u32>("others_stalled")?;
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
    Ok((0..batch.rows).map(|row| (id[row], remark(row))).collect())
}
