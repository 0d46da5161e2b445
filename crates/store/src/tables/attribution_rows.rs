//! Attributions on their way into their table: one row a part.
//!
//! The same few culprits have a part in stall after stall, and most columns concern a few kinds of them: a row
//! holds the numbers of its subject and its sender, and their columns are made of these when a batch is full.

use super::facts::FACTS;
use super::shared::Shared;
use super::{ATTRIBUTIONS, TableRows};
use arrow_array::types::{Int32Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, UInt64Array};
use jitterscope_model::{
    Attribution, Confidence, CpuId, Culprit, Evidence, FactForm, MetCulprits, Part, Phase,
    Placement, Sender, Subject, SubjectFields,
};
use std::sync::Arc;

/// Culprits that are known by where they lie from batch to batch.
const MOST_MET: usize = 1024;

#[derive(Default)]
pub(crate) struct AttributionRows {
    stall_id: Vec<u64>,
    culprits: SharedCulprits,
    net: Vec<u64>,
    gross: Vec<u64>,
    remarks: Shared<Remarks, Remarks>,
}

/// What is said of a part beside its culprit and its times: few combinations occur.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Remarks {
    phase: Option<Phase>,
    placement: Placement,
    confidence: Confidence,
    evidence: Evidence,
    moved_from: Option<CpuId>,
    others_stalled: Option<u32>,
}

impl Remarks {
    fn of(part: &Part) -> Remarks {
        let Part {
            placement,
            confidence,
            moved_from,
            others_stalled,
            ..
        } = *part;
        let (phase, evidence) = (part.phase.clone(), part.evidence.clone());
        Remarks {
            phase,
            placement,
            confidence,
            evidence,
            moved_from,
            others_stalled,
        }
    }
}

/// Subjects and senders of the rows' culprits. The same few come again and again as one value that their parts share:
/// where that lies says which it is, without a look at its names.
#[derive(Default)]
struct SharedCulprits {
    subjects: Shared<Subject, SubjectFields>,
    senders: Shared<Option<Sender>, Option<Sender>>,
    /// The places of a culprit's subject and of its sender.
    met: MetCulprits<(i32, i32)>,
}

impl SharedCulprits {
    fn push(&mut self, culprit: &Arc<Culprit>) {
        let SharedCulprits {
            subjects,
            senders,
            met,
        } = self;
        let (subject, sender) = met.of(culprit, |culprit| {
            let subject = subjects.place(&culprit.subject, |subject| SubjectFields::from(subject));
            (subject, senders.place(&culprit.sender, Clone::clone))
        });
        subjects.push_place(*subject);
        senders.push_place(*sender);
    }

    fn begin_anew(&mut self) {
        let forgotten = [self.subjects.begin_anew(), self.senders.begin_anew()];
        if forgotten.contains(&true) || self.met.len() > MOST_MET {
            self.met.clear();
        }
    }
}

impl AttributionRows {
    pub(crate) fn push(&mut self, attribution: &Attribution) {
        for part in &attribution.parts {
            self.stall_id.push(attribution.stall.0);
            self.culprits.push(&part.culprit);
            self.net.push(part.net.0);
            self.gross.push(part.gross.0);
            self.remarks.push(&Remarks::of(part), Clone::clone);
        }
    }

    /// The columns with their names, in the order of the schema.
    fn named(&mut self) -> Vec<(&'static str, ArrayRef)> {
        let (of, by) = (
            self.culprits.subjects.columns(),
            self.culprits.senders.columns(),
        );
        let remarks = self.remarks.columns();
        let mut columns = vec![
            ("stall_id", plain(&mut self.stall_id)),
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
            (
                "sender_tid",
                by.numbers::<Int32Type>(|s| s.as_ref().map(|s| s.tid)),
            ),
            ("sender_tgid", by.numbers::<Int32Type>(|s| s.as_ref()?.tgid)),
            (
                "sender_cpu",
                by.numbers::<UInt32Type>(|s| s.as_ref().map(|s| s.cpu.0)),
            ),
            ("sender_via", by.texts(|s| s.as_ref()?.via.as_deref())),
            (
                "sender_context",
                by.texts(|s| s.as_ref().map(|s| s.context.as_str())),
            ),
            (
                "phase",
                remarks.texts(|of| of.phase.as_ref().map(Phase::as_str)),
            ),
            (
                "moved_from_cpu",
                remarks.numbers::<UInt32Type>(|of| of.moved_from.map(|cpu| cpu.0)),
            ),
            ("net_ns", plain(&mut self.net)),
            ("gross_ns", plain(&mut self.gross)),
            ("placement", remarks.texts(|of| Some(of.placement.as_str()))),
            (
                "confidence",
                remarks.texts(|of| Some(of.confidence.as_str())),
            ),
            ("evidence", remarks.texts(|of| Some(of.evidence.as_str()))),
            (
                "others_stalled",
                remarks.numbers::<UInt32Type>(|of| of.others_stalled),
            ),
        ]);
        self.culprits.begin_anew();
        self.remarks.begin_anew();
        columns
    }
}

/// A column of numbers that no rows share.
fn plain(rows: &mut Vec<u64>) -> ArrayRef {
    let next = Vec::with_capacity(rows.len());
    Arc::new(UInt64Array::from(std::mem::replace(rows, next)))
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
    use arrow_array::{StringArray, cast::AsArray};
    use jitterscope_model::{CulpritPool, ExecutionContext, Nanos, StallId};

    /// Whatever is remembered, each row has the names of its own culprit: of shared ones and of others, of more than are
    /// remembered, in memory where another has lain.
    #[test]
    fn each_row_has_its_own_culprit_from_batch_to_batch() {
        let culprit = |n: u32| Culprit {
            subject: Subject::Call(format!("function {n}").into()),
            sender: (!n.is_multiple_of(3)).then(|| Sender {
                context: ExecutionContext::Thread,
                comm: Some(format!("comm {}", n % 90).into()),
                tid: n as i32,
                tgid: None,
                cpu: CpuId(0),
                via: None,
            }),
        };
        let (mut rows, mut pool) = (AttributionRows::default(), CulpritPool::default());
        for batch in 0..8u32 {
            let numbers: Vec<u32> = (0..600)
                .map(|row| (row * 7 + batch * 150) % (300 + 200 * batch))
                .collect();
            for n in &numbers {
                let culprit = match n % 4 {
                    0 => Arc::new(culprit(*n)),
                    _ => pool.share(culprit(*n)),
                };
                let part = Part::inside(culprit, Nanos(1), Evidence::LostRecords);
                rows.push(&Attribution {
                    stall: StallId(1),
                    parts: vec![part],
                });
            }
            let text = |rows: &mut AttributionRows, wanted: &str| -> Vec<Option<String>> {
                let columns = rows.named();
                let (_, column) = columns.iter().find(|(name, _)| *name == wanted).unwrap();
                let texts = column
                    .as_dictionary::<Int32Type>()
                    .downcast_dict::<StringArray>()
                    .unwrap();
                texts
                    .into_iter()
                    .map(|text| text.map(str::to_owned))
                    .collect()
            };
            let (wanted, of): (&str, fn(&Culprit) -> Option<String>) = match batch % 2 {
                0 => ("name", |culprit| Some(culprit.subject.name().into_owned())),
                _ => ("sender_comm", |culprit| {
                    Some(culprit.sender.as_ref()?.comm.as_ref()?.to_string())
                }),
            };
            let expected: Vec<Option<String>> = numbers.iter().map(|n| of(&culprit(*n))).collect();
            assert_eq!(text(&mut rows, wanted), expected, "batch {batch}");
            assert!(rows.culprits.met.len() <= MOST_MET);
            if batch == 4 {
                pool = CulpritPool::default();
            }
        }
    }

    #[test]
    fn culprits_that_lie_apart_are_met_up_to_a_number_and_forgotten_beyond_it() {
        let met = |culprits: usize| {
            let mut rows = AttributionRows::default();
            // One by its names.
            for _ in 0..culprits {
                let part = Part::inside(Subject::Call("f".into()), Nanos(1), Evidence::LostRecords);
                rows.push(&Attribution {
                    stall: StallId(1),
                    parts: vec![part],
                });
            }
            rows.columns();
            rows.culprits.met.len()
        };
        assert_eq!([met(1), met(MOST_MET), met(MOST_MET + 1)], [1, MOST_MET, 0]);
    }

    #[test]
    fn the_columns_stand_in_the_order_of_the_schema() {
        let (_, listed) = SCHEMA
            .iter()
            .find(|(file, _)| *file == ATTRIBUTIONS)
            .unwrap();
        let listed: Vec<&str> = listed.iter().map(|(name, ..)| *name).collect();
        let made: Vec<&str> = AttributionRows::default()
            .named()
            .iter()
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(made, listed);
    }
}
