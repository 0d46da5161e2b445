//! The parts of a stall, summed piece by piece.

use jitterscope_model::{Confidence, CpuId, Culprit, Evidence, Keyed, Nanos, Part, Phase};
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock};

/// Shared by all, because making its keys takes longer than a short sum.
static HASHER: LazyLock<Keyed> = LazyLock::new(Keyed::default);

/// The key that pieces of the same part share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PartKey<'a> {
    pub(crate) culprit: &'a Arc<Culprit>,
    pub(crate) phase: &'a Phase,
    /// The CPU that the victim was moved away from meanwhile.
    pub(crate) moved_from: Option<CpuId>,
    pub(crate) evidence: &'a Evidence,
}

impl PartKey<'_> {
    fn is_of(&self, part: &Part) -> bool {
        part.culprit == *self.culprit
            && part.phase.as_ref() == Some(self.phase)
            && part.moved_from == self.moved_from
            && part.evidence == *self.evidence
    }

    fn part(&self) -> Part {
        let part = Part::inside(Arc::clone(self.culprit), Nanos::ZERO, self.evidence.clone());
        let part = Part {
            moved_from: self.moved_from,
            turns: 0,
            ..part.in_phase(self.phase.clone())
        };
        let confidence = match part.culprit.subject.as_verdict() {
            Some(verdict) => verdict.confidence(),
            // The host may have had this time.
            None if is_perhaps_hosts(self.evidence) => Confidence::Medium,
            None => part.culprit.kind().confidence(),
        };
        Part { confidence, ..part }
    }
}

fn is_perhaps_hosts(evidence: &Evidence) -> bool {
    matches!(
        evidence,
        Evidence::LateInterruptInVm | Evidence::UnchargedInVm
    )
}

/// The number of stretches that a piece of time adds to a part. `sums`: how many it sums, 0 if it is one. `goes_on`:
/// whether the time just before it belongs to the same part.
pub(crate) fn turns(sums: u32, goes_on: bool) -> u32 {
    match sums {
        0 => u32::from(!goes_on),
        sums => sums,
    }
}

/// Parts in the order of their first pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartSums {
    parts: Vec<Part>,
    /// Indices by the hash of their keys, or by the next free number.
    places: FxHashMap<u64, usize>,
    /// The index of the part that was added to last.
    last: Option<usize>,
}

impl PartSums {
    /// Adds time to a part, or begins one with the confidence of its culprit's kind. The time directly follows that of
    /// the last call. `sums`: the number of stretches that it sums, 0 if it is one.
    pub(crate) fn add(&mut self, key: PartKey<'_>, net: Nanos, sums: u32) {
        let mut hash = HASHER.hash_one(key);
        let place = loop {
            let place = *self.places.entry(hash).or_insert(self.parts.len());
            match self.parts.get(place) {
                None => self.parts.push(key.part()),
                // Another key with the same hash.
                Some(part) if !key.is_of(part) => {
                    hash = hash.wrapping_add(1);
                    continue;
                }
                Some(_) => {}
            }
            break place;
        };
        let part = &mut self.parts[place];
        part.net += net;
        part.gross += net;
        part.turns = part
            .turns
            .saturating_add(turns(sums, self.last == Some(place)));
        self.last = Some(place);
    }

    pub(crate) fn into_parts(self) -> Vec<Part> {
        self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Subject, Verdict};

    #[test]
    fn what_is_the_same_in_every_respect_is_one_part() {
        let (switch, idle) = (
            Subject::verdict(Verdict::ContextSwitch).into(),
            Subject::verdict(Verdict::IdleExit).into(),
        );
        let first = PartKey {
            culprit: &switch,
            phase: &Phase::Preempted,
            moved_from: None,
            evidence: &Evidence::ThreadRecords,
        };
        let mut sums = PartSums::default();
        sums.add(first, Nanos(5), 0);
        sums.add(first, Nanos(7), 0);
        assert_eq!(
            (sums.parts.len(), sums.parts[0].net, sums.parts[0].gross),
            (1, Nanos(12), Nanos(12))
        );
        for (count, other) in [
            PartKey {
                culprit: &idle,
                ..first
            },
            PartKey {
                phase: &Phase::Interrupted,
                ..first
            },
            PartKey {
                evidence: &Evidence::QuotaCount,
                ..first
            },
            PartKey {
                moved_from: Some(CpuId(3)),
                ..first
            },
        ]
        .into_iter()
        .enumerate()
        {
            sums.add(other, Nanos(1), 0);
            assert_eq!(sums.parts.len(), 2 + count);
            assert_eq!(sums.parts[0].net, Nanos(12));
        }
    }

    #[test]
    fn a_part_counts_its_stretches_and_those_that_a_sum_stands_for() {
        let (one, other) = (Subject::Softirq(1).into(), Subject::Softirq(2).into());
        fn key(culprit: &Arc<Culprit>) -> PartKey<'_> {
            PartKey {
                culprit,
                phase: &Phase::Preempted,
                moved_from: None,
                evidence: &Evidence::ThreadRecords,
            }
        }
        let turns = |added: &[(&Arc<Culprit>, u32)]| -> Vec<u32> {
            let mut sums = PartSums::default();
            for (culprit, of) in added {
                sums.add(key(culprit), Nanos(1), *of);
            }
            sums.into_parts().iter().map(|part| part.turns).collect()
        };
        assert_eq!(turns(&[(&one, 0), (&other, 0), (&one, 0)]), [2, 1]);
        // What directly follows belongs to the same stretch, unless it is a sum, whose place is unknown.
        assert_eq!(turns(&[(&one, 0), (&one, 0), (&other, 0)]), [1, 1]);
        assert_eq!(turns(&[(&one, 0), (&one, 1), (&one, 7)]), [9]);
        assert_eq!(
            turns(&[(&one, u32::MAX), (&other, 0), (&one, 0)]),
            [u32::MAX, 1]
        );
    }

    #[test]
    fn parts_of_one_hash_are_told_apart() {
        let (one, other) = (Subject::Softirq(1).into(), Subject::Softirq(2).into());
        let key = |culprit| PartKey {
            culprit,
            phase: &Phase::Preempted,
            moved_from: None,
            evidence: &Evidence::ThreadRecords,
        };
        let mut sums = PartSums::default();
        sums.add(key(&one), Nanos(5), 0);
        sums.places.insert(HASHER.hash_one(key(&other)), 0);
        sums.add(key(&other), Nanos(7), 0);
        sums.add(key(&one), Nanos(1), 0);
        sums.add(key(&other), Nanos(1), 0);
        let nets: Vec<Nanos> = sums.into_parts().iter().map(|part| part.net).collect();
        assert_eq!(nets, [Nanos(6), Nanos(8)]);
    }

    #[test]
    fn a_part_is_as_sure_as_its_culprit() {
        let sure = |subject: Subject, evidence: &Evidence| {
            let (culprit, mut sums) = (subject.into(), PartSums::default());
            let (phase, moved_from) = (&Phase::Preempted, None);
            sums.add(
                PartKey {
                    culprit: &culprit,
                    phase,
                    moved_from,
                    evidence,
                },
                Nanos(1),
                0,
            );
            sums.parts[0].confidence
        };
        let softirq = || Subject::Softirq(1);
        assert_eq!(sure(softirq(), &Evidence::ThreadRecords), Confidence::High);
        for (verdict, wanted) in [
            (Verdict::ContextSwitch, Confidence::Medium),
            (Verdict::BetweenEvents, Confidence::Low),
            (Verdict::CpuTaken, Confidence::Low),
            (Verdict::TraceDataLost, Confidence::Low),
        ] {
            assert_eq!(
                sure(Subject::verdict(verdict), &Evidence::ThreadRecords),
                wanted,
                "{verdict:?}"
            );
        }
        assert_eq!(
            sure(Subject::PageFault { user: true }, &Evidence::ThreadRecords),
            Confidence::Medium
        );
    }
}
