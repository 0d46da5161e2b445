//! The time of each culprit of a run, and which culprits occur together: the basis of advice on a run.

use super::{CulpritSums, KeyLevel, StallSets, Subject};
use crate::{Attribution, Name, Nanos, StallId};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Maximum of culprits; further ones share one row per kind.
const MOST_CULPRITS: usize = 4096;

/// One culprit over a whole run: all threads of a program that may run on the same CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CulpritTotal {
    #[serde(flatten)]
    pub subject: Subject,
    /// Its time, summed over all stalls.
    pub total_ns: Nanos,
    /// The number of its stalls.
    pub count: u64,
}

/// All culprits of a run, and which of them took part in the same stalls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CulpritTotals {
    /// In order of their first stalls.
    pub culprits: Vec<CulpritTotal>,
    /// Sets of indices into `culprits`, ascending, with the number of their stalls.
    pub together: Vec<(Vec<u32>, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Sum {
    total: Nanos,
    count: u64,
    /// The last stall that was counted: a culprit may have several parts of one stall.
    last: Option<StallId>,
}

/// Collects attributions, and computes the totals of their culprits in bounded memory.
#[derive(Clone, Debug)]
pub struct CulpritTotalsBuilder {
    /// Threads of a program that may run on different CPUs stay separate: a remedy for one may not affect the other.
    sums: CulpritSums<Option<Name>, Sum>,
    sets: StallSets,
    /// Scratch: the rows of the current stall's parts, largest first, and the indices of their culprits.
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
    /// Adds the parts of one stall.
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
            let place = sums.position_of(part.culprit.subject.allowed(), &part.culprit);
            let sum = sums.at(place);
            sum.total += part.net;
            sum.count += u64::from(sum.last.replace(*stall) != Some(*stall));
            places.push(u32::try_from(place).unwrap_or(u32::MAX));
        }
        sets.add(places);
    }

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
    fn culprits_are_sorted_by_first_stall_and_sets_use_their_places() {
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
        let reported: Vec<_> = culprits
            .iter()
            .map(|of| (of.subject.name(), of.total_ns.0, of.count))
            .collect();
        assert_eq!(
            reported,
            [("b".into(), 6, 2), ("a".into(), 8, 3), ("c".into(), 8, 2)]
        );
        assert_eq!(together, [(vec![0, 1], 2), (vec![1, 2], 1), (vec![2], 1)]);
    }
}
