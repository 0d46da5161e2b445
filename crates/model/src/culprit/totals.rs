//! What each culprit of a run took, and with which others: what advice on a run rests on.

use super::{CulpritSums, KeyLevel, StallSets, Subject};
use crate::{Attribution, Nanos, StallId};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Culprits told apart; the rest share a row a kind.
const MOST_CULPRITS: usize = 4096;

/// One culprit over a whole run: a program's threads together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CulpritTotal {
    /// What.
    #[serde(flatten)]
    pub subject: Subject,
    /// Time that it took, summed over all stalls.
    pub total_ns: Nanos,
    /// In how many stalls.
    pub count: u64,
}

/// All culprits of a run, and which of them took part in the same stalls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CulpritTotals {
    /// In order of their first stalls.
    pub culprits: Vec<CulpritTotal>,
    /// By their places in `culprits` in ascending order, and in how many stalls.
    pub together: Vec<(Vec<u32>, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Sum {
    total: Nanos,
    count: u64,
    /// The stall that was counted last: a culprit may have several parts of one.
    last: Option<StallId>,
}

/// Takes in attributions and gives the totals of their culprits, in bounded memory.
#[derive(Clone, Debug)]
pub struct CulpritTotalsBuilder {
    sums: CulpritSums<(), Sum>,
    sets: StallSets,
    /// The parts of the stall at hand, the largest first, and the places of their culprits.
    order: Vec<usize>,
    places: Vec<u32>,
}

impl Default for CulpritTotalsBuilder {
    fn default() -> CulpritTotalsBuilder {
        CulpritTotalsBuilder {
            sums: CulpritSums::new(KeyLevel::Program, MOST_CULPRITS),
            sets: StallSets::default(),
            order: Vec::new(),
            places: Vec::new(),
        }
    }
}

impl CulpritTotalsBuilder {
    /// The parts of one stall.
    pub fn add(&mut self, attribution: &Attribution) {
        let CulpritTotalsBuilder {
            sums,
            sets,
            order,
            places,
        } = self;
        let Attribution { stall, parts } = attribution;
        order.clear();
        order.extend(0..parts.len());
        order.sort_by_key(|at| Reverse(parts[*at].net));
        places.clear();
        for at in order.iter() {
            let part = &parts[*at];
            let place = sums.position_of((), &part.culprit);
            let sum = sums.at(place);
            sum.total += part.net;
            sum.count += u64::from(sum.last.replace(*stall) != Some(*stall));
            places.push(u32::try_from(place).unwrap_or(u32::MAX));
        }
        sets.add(places);
    }

    /// The totals.
    #[must_use]
    pub fn finish(self) -> CulpritTotals {
        let culprits = self.sums.into_rows().into_iter().map(|row| CulpritTotal {
            subject: row.subject,
            total_ns: row.value.total,
            count: row.value.count,
        });
        CulpritTotals {
            culprits: culprits.collect(),
            together: self.sets.into_rows(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Evidence, Part, Task};

    #[test]
    fn culprits_stand_in_order_of_their_first_stalls_and_sets_name_their_places() {
        let part = |comm: &str, net| {
            let task = Task {
                comm: comm.into(),
                ..Task::default()
            };
            Part::inside(Subject::Thread(task), Nanos(net), Evidence::SwitchRecords)
        };
        let mut totals = CulpritTotalsBuilder::default();
        for (id, parts) in [
            vec![part("a", 1), part("b", 5), part("a", 2)],
            vec![part("c", 7)],
            vec![part("c", 1), part("a", 4)],
            vec![part("b", 1), part("a", 1)],
        ]
        .into_iter()
        .enumerate()
        {
            totals.add(&Attribution {
                stall: StallId(id as u64),
                parts,
            });
        }
        let CulpritTotals { culprits, together } = totals.finish();
        let told: Vec<_> = culprits
            .iter()
            .map(|of| (of.subject.name(), of.total_ns.0, of.count))
            .collect();
        assert_eq!(
            told,
            [("b".into(), 6, 2), ("a".into(), 8, 3), ("c".into(), 8, 2)]
        );
        assert_eq!(together, [(vec![0, 1], 2), (vec![1, 2], 1), (vec![2], 1)]);
    }
}
