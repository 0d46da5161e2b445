//! Attributions on their way into their table: one row a part.
//!
//! The same few culprits have a part in stall after stall, and most columns concern a few kinds of them: a row
//! holds the numbers of its subject and its sender, and their columns are made of these when a batch is full.

use super::shared::Shared;
use super::{ATTRIBUTIONS, TableRows};
use arrow_array::ArrayRef;
use arrow_array::builder::{ArrayBuilder, UInt32Builder, UInt64Builder};
use arrow_array::types::{Int32Type, UInt32Type, UInt64Type};
use jitterscope_model::{
    Attribution, Confidence, Evidence, Phase, Placement, Sender, Subject, SubjectFields, TimerSource,
};
use std::sync::Arc;

/// Stands between the names in `untraced`.
pub(super) const SEPARATOR: char = ',';
/// A subject in its flat form.
struct Flat {
    fields: SubjectFields,
    untraced: Option<String>,
}

impl From<&Subject> for Flat {
    fn from(subject: &Subject) -> Flat {
        let fields = SubjectFields::from(subject);
        let names = fields.untraced.join(SEPARATOR.encode_utf8(&mut [0; 4]));
        Flat { untraced: (!fields.untraced.is_empty()).then_some(names), fields }
    }
}

#[derive(Default)]
pub(crate) struct AttributionRows {
    stall_id: UInt64Builder,
    subjects: Shared<Subject, Flat>,
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
            self.subjects.push(&part.culprit.subject, |subject| Flat::from(subject));
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
        fn text(name: &Option<jitterscope_model::Name>) -> Option<&str> {
            name.as_deref()
        }
        let (of, by) = (&self.subjects, &self.senders);
        let words = |get: fn(&SubjectFields) -> Option<&str>| of.texts(move |flat| get(&flat.fields));
        let signed =
            |get: fn(&SubjectFields) -> Option<i32>| of.numbers::<Int32Type>(|flat| get(&flat.fields));
        let small =
            |get: fn(&SubjectFields) -> Option<u32>| of.numbers::<UInt32Type>(|flat| get(&flat.fields));
        let long =
            |get: fn(&SubjectFields) -> Option<u64>| of.numbers::<UInt64Type>(|flat| get(&flat.fields));
        let columns = vec![
            ("stall_id", Arc::new(self.stall_id.finish()) as ArrayRef),
            ("kind", words(|f| Some(&f.kind))),
            ("name", words(|f| Some(&f.name))),
            ("tid", signed(|f| f.tid)),
            ("tgid", signed(|f| f.tgid)),
            ("process", words(|f| text(&f.process))),
            ("comm", words(|f| text(&f.comm))),
            ("class", words(|f| text(&f.class))),
            ("priority", small(|f| f.priority.map(u32::from))),
            ("nice", signed(|f| f.nice.map(i32::from))),
            ("uid", small(|f| f.uid)),
            ("space", words(|f| text(&f.space))),
            ("cgroup", words(|f| text(&f.cgroup))),
            ("quota_us", long(|f| f.quota_us)),
            ("period_us", long(|f| f.period_us)),
            ("function", words(|f| text(&f.function))),
            ("workqueue", words(|f| text(&f.workqueue))),
            ("irq", small(|f| f.irq)),
            ("vector", words(|f| text(&f.vector))),
            ("softirq", small(|f| f.softirq)),
            ("timer", words(|f| f.timer.as_ref().map(TimerSource::as_str))),
            ("bank", small(|f| f.bank)),
            ("idle_state", small(|f| f.idle_state)),
            ("meanwhile", words(|f| text(&f.meanwhile))),
            ("untraced", of.texts(|flat| flat.untraced.as_deref())),
            ("unseen_cpu", small(|f| f.unseen_cpu.map(|cpu| cpu.0))),
            ("frame", words(|f| f.frame.as_ref().map(Evidence::as_str))),
            ("detail", words(|f| text(&f.detail))),
            ("sender_comm", by.texts(|s| s.as_ref()?.comm.as_deref())),
            ("sender_tid", by.numbers::<Int32Type>(|s| s.as_ref().map(|s| s.tid))),
            ("sender_tgid", by.numbers::<Int32Type>(|s| s.as_ref()?.tgid)),
            ("sender_cpu", by.numbers::<UInt32Type>(|s| s.as_ref().map(|s| s.cpu.0))),
            ("sender_via", by.texts(|s| s.as_ref()?.via.as_deref())),
            ("sender_context", by.texts(|s| s.as_ref().map(|s| s.context.as_str()))),
            ("phase", self.phase.texts(|phase| phase.as_ref().map(Phase::as_str))),
            ("moved_from_cpu", Arc::new(self.moved_from.finish())),
            ("net_ns", Arc::new(self.net.finish())),
            ("gross_ns", Arc::new(self.gross.finish())),
            ("placement", self.placement.texts(|placement| Some(placement.as_str()))),
            ("confidence", self.confidence.texts(|confidence| Some(confidence.as_str()))),
            ("evidence", self.evidence.texts(|evidence| Some(evidence.as_str()))),
            ("others_stalled", Arc::new(self.others_stalled.finish())),
        ];
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
