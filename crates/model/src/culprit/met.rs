//! A cache of facts about shared culprits, keyed by their address.

use super::Culprit;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Culprits to remember; beyond it all are forgotten and looked up again.
const MOST: usize = 1024;

/// A value per culprit, found by address, without comparing names. It keeps each culprit alive while it remembers it,
/// so that no other culprit can get its address.
#[derive(Clone, Debug)]
pub struct MetCulprits<V> {
    met: FxHashMap<usize, (Arc<Culprit>, V)>,
}

impl<V> Default for MetCulprits<V> {
    fn default() -> MetCulprits<V> {
        MetCulprits {
            met: FxHashMap::default(),
        }
    }
}

impl<V> MetCulprits<V> {
    /// The value of this culprit, if known.
    #[must_use]
    pub fn get(&self, culprit: &Arc<Culprit>) -> Option<&V> {
        self.met
            .get(&Arc::as_ptr(culprit).addr())
            .map(|(_, value)| value)
    }

    /// The value of this culprit; `find` computes it if it is not known.
    pub fn of(&mut self, culprit: &Arc<Culprit>, find: impl FnOnce(&Culprit) -> V) -> &mut V {
        let place = Arc::as_ptr(culprit).addr();
        if self.met.len() >= MOST && !self.met.contains_key(&place) {
            self.met.clear();
        }
        let met = self.met.entry(place);
        &mut met
            .or_insert_with(|| (Arc::clone(culprit), find(culprit)))
            .1
    }

    /// The number of remembered culprits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.met.len()
    }

    /// Whether it remembers none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.met.is_empty()
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.met.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Subject;

    #[test]
    fn a_culprit_keeps_its_number_until_it_is_forgotten() {
        let mut met = MetCulprits::default();
        let make = |n: u32| -> Arc<Culprit> { Subject::Softirq(n).into() };
        let (first, equal) = (make(1), make(1));
        assert_eq!(
            (
                *met.of(&first, |_| 1),
                *met.of(&first, |_| 2),
                *met.of(&equal, |_| 3)
            ),
            (1, 1, 3)
        );
        assert_eq!((met.get(&equal), met.len()), (Some(&3), 2));
        // The next culprit has another address.
        drop((first, equal));
        (0..100).for_each(|n| assert_eq!(*met.of(&make(n), |_| 7), 7));
        (0..3 * MOST as u32).for_each(|n| {
            met.of(&make(n), |_| 0);
            assert!(met.len() <= MOST);
        });
        met.clear();
        assert!(met.is_empty());
    }
}
