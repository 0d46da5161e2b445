//! Which culprits took part in the same stalls.

use crate::KeyedMap;
use crate::PutInOrder;

/// Maximum of distinct sets; a stall with a further set counts only for its largest culprit.
const MOST_SETS: usize = 65_536;
/// Maximum of indices in all sets together: a stall may have thousands of culprits, and other users choose their names.
const MOST_PLACES: usize = 1 << 20;

/// Counts stalls by the set of culprits that took part in them. A culprit is an index into a list.
#[derive(Clone, Debug, Default)]
pub struct StallSets {
    stalls: KeyedMap<Vec<u32>, u64>,
    /// The number of indices in all sets.
    places: usize,
}

impl StallSets {
    /// Counts a stall of these culprits, largest first, possibly with duplicates. Leaves the list sorted and without
    /// duplicates.
    pub fn add(&mut self, culprits: &mut Vec<u32>) {
        let largest = culprits.first().copied();
        culprits.sort_unstable();
        culprits.dedup();
        if let Some(stalls) = self.stalls.get_mut(culprits.as_slice()) {
            *stalls += 1;
            return;
        }
        let set = match largest {
            Some(largest)
                if self.stalls.len() >= MOST_SETS || self.places + culprits.len() > MOST_PLACES =>
            {
                vec![largest]
            }
            _ => culprits.clone(),
        };
        self.places += set.len();
        *self.stalls.entry(set).or_default() += 1;
    }

    /// All sets, each with ascending indices and its number of stalls, in ascending order.
    #[must_use]
    pub fn into_rows(self) -> Vec<(Vec<u32>, u64)> {
        let mut rows: Vec<(Vec<u32>, u64)> = self.stalls.into_iter().collect();
        rows.put_in_order();
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_culprit_is_in_a_set_once_wherever_it_stood() {
        let mut sets = StallSets::default();
        for mut stall in [vec![0, 1, 0, 1, 1], vec![1, 0], vec![1], vec![]] {
            sets.add(&mut stall);
        }
        assert_eq!(
            sets.into_rows(),
            [(vec![], 1), (vec![0, 1], 2), (vec![1], 1)]
        );
    }

    #[test]
    fn sets_beyond_those_told_apart_count_for_their_largest_culprit() {
        let mut sets = StallSets::default();
        (0..MOST_SETS as u32).for_each(|n| sets.add(&mut vec![n + 1, 0]));
        assert_eq!(sets.stalls.len(), MOST_SETS);
        // A known set still counts for all of its culprits.
        sets.add(&mut vec![0, 5]);
        assert_eq!(sets.stalls[&vec![0, 5]], 2);
        sets.add(&mut vec![9, 7]);
        sets.add(&mut vec![9, 8]);
        assert_eq!(
            (sets.stalls[&vec![9]], sets.stalls.len()),
            (2, MOST_SETS + 1)
        );
    }

    #[test]
    fn sets_of_very_many_culprits_do_not_fill_the_memory() {
        let mut sets = StallSets::default();
        for first in 0..2_000 {
            sets.add(&mut (first..first + 4_000).collect());
        }
        let kept: usize = sets.stalls.keys().map(Vec::len).sum();
        assert!(kept <= MOST_PLACES + 2_000, "{kept}");
        assert_eq!(sets.stalls.values().sum::<u64>(), 2_000);
    }
}
