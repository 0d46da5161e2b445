//! What was found out of culprits that parts share, known by where they lie.

use super::Culprit;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Something of each culprit that was met: found without a look at its names where the same value comes again. It is kept
/// as long as it is remembered, so that no other can lie in its place.
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
    /// What is known of this one.
    #[must_use]
    pub fn get(&self, culprit: &Arc<Culprit>) -> Option<&V> {
        self.met
            .get(&Arc::as_ptr(culprit).addr())
            .map(|(_, value)| value)
    }

    /// The same; what `find` says where it was not met before.
    pub fn of(&mut self, culprit: &Arc<Culprit>, find: impl FnOnce(&Culprit) -> V) -> &mut V {
        let met = self.met.entry(Arc::as_ptr(culprit).addr());
        &mut met
            .or_insert_with(|| (Arc::clone(culprit), find(culprit)))
            .1
    }

    /// How many were met.
    #[must_use]
    pub fn len(&self) -> usize {
        self.met.len()
    }

    /// Whether none was.
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
    fn a_culprit_is_known_by_where_it_lies_and_keeps_its_place_until_it_is_forgotten() {
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
        // Whoever comes next lies elsewhere.
        drop((first, equal));
        (0..100).for_each(|n| assert_eq!(*met.of(&make(n), |_| 7), 7));
        met.clear();
        assert!(met.is_empty());
    }
}
