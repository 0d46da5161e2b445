//! Attributions on their way into their table: one row a part.
//!
//! The same few culprits have a part in stall after stall, and most columns concern a few kinds of them: a row
//! holds the numbers of its subject and its sender, and their columns are made of these when a batch is full.

use super::facts::FACTS;
use super::shared::Shared;
use super::{ATTRIBUTIONS, TableRows};
use arrow_array::ArrayRef;
use arrow_array::builder::{ArrayBuilder, UInt32Builder, UInt64Builder};
use arrow_array::types::{Int32Type, UInt32Type, UInt64Type};
use jitterscope_model::{
    Attribution, Confidence, Evidence, FactForm, Phase, Placement, Sender, Subject, SubjectFields,
};
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct AttributionRows {
    stall_id: UInt64Builder,
    subjects: Shared<Subject, SubjectFields>,
    senders: Shared<Option<Sender>, Option<Sender>>,
    phase: Shared<Option<Phase>, Option<Phase>>,
    moved_from: UInt32Builder,
    net: UInt64Builder,
    gross: UInt64Builder,
    placement: Shared<Placement, Placement>,
    confidence: Shared<Confidence, Confidence>,
    evidence: Shared<Evidence, Evidence>,
    others_stalled: UInt32Builder,
}

impl AttributionRows {
    pub(crate) fn push(&mut self, attribution: &Attribution) {
        for part in &attribution.parts {
            self.stall_id.append_value(attribution.stall.0);
            self.subjects.push(&part.culprit.subject, |subject| SubjectFields::from(subject));
            self.senders.push(&part.culprit.sender, Clone::clone);
            self.phase.push(&part.phase, Clone::clone);
            self.moved_from.append_option(part.moved_from.map(|cpu| cpu.0));
            self.net.append_value(part.net.0);
            self.gross.append_value(part.gross.0);
            self.placement.push(&part.placement, Clone::clone);
            self.confidence.push(&part.confidence, Clone::clone);
            self.evidence.push(&part.evidence, Clone::clone);
            self.others_stalled.append_option(part.others_stalled);
        }
    }

    /// The columns with their names, in the order of the schema.
    fn named(&mut self) -> Vec<(&'static str, ArrayRef)> {
        let (of, by) = (&self.subjects, &self.senders);
        let mut columns = vec![
            ("stall_id", Arc::new(self.stall_id.finish()) as ArrayRef),
            ("kind", of.texts(|fields| Some(&*fields.kind))),
            ("name", of.texts(|fields| Some(&*fields.name))),
        ];
        columns.extend(FACTS.iter().map(|fact| {
            let column = match fact.form {
                FactForm::Text(get, _) => of.texts(get),
                FactForm::I32(get, _) => of.numbers::<Int32Type>(get),
                FactForm::U32(get, _) => of.numbers::<UInt32Type>(get),
                FactForm::U64(get, _) => of.numbers::<UInt64Type>(get),
            };
            (fact.name, column)
        }));
        columns.extend([
            ("sender_comm", by.texts(|s| s.as_ref()?.comm.as_deref())),
            ("sender_tid", by.numbers::<Int32Type>(|s| s.as_ref().map(|s| s.tid))),
            ("sender_tgid", by.numbers::<Int32Type>(|s| s.as_ref()?.tgid)),
            ("sender_cpu", by.numbers::<UInt32Type>(|s| s.as_ref().map(|s| s.cpu.0))),
            ("sender_via", by.texts(|s| s.as_ref()?.via.as_deref())),
            ("sender_context", by.texts(|s| s.as_ref().map(|s| s.context.as_str()))),
            ("phase", self.phase.texts(|phase| phase.as_ref().map(Phase::as_str))),
            ("moved_from_cpu", Arc::new(self.moved_from.finish()) as ArrayRef),
            ("net_ns", Arc::new(self.net.finish())),
            ("gross_ns", Arc::new(self.gross.finish())),
            ("placement", self.placement.texts(|placement| Some(placement.as_str()))),
            ("confidence", self.confidence.texts(|confidence| Some(confidence.as_str()))),
            ("evidence", self.evidence.texts(|evidence| Some(evidence.as_str()))),
            ("others_stalled", Arc::new(self.others_stalled.finish())),
        ]);
        self.subjects.begin_anew();
        self.senders.begin_anew();
        self.phase.begin_anew();
        self.placement.begin_anew();
        self.confidence.begin_anew();
        self.evidence.begin_anew();
        columns
    }
}

impl TableRows for AttributionRows {
    const FILE: &'static str = ATTRIBUTIONS;

    fn len(&self) -> usize {
        self.stall_id.len()
    }

    fn columns(&mut self) -> Vec<ArrayRef> {
        self.named().into_iter().map(|(_, column)| column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::SCHEMA;

    #[test]
    fn the_columns_stand_in_the_order_of_the_schema() {
        let (_, listed) = SCHEMA.iter().find(|(file, _)| *file == ATTRIBUTIONS).unwrap();
        let listed: Vec<&str> = listed.iter().map(|(name, ..)| *name).collect();
        let made: Vec<&str> = AttributionRows::default().named().iter().map(|(name, _)| *name).collect();
        assert_eq!(made, listed);
    }
}
