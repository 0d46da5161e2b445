//! Culprits that were met: equal ones are one value, which their parts share.

use super::Culprit;
use crate::KeyedSet;
use std::sync::Arc;

/// Culprits that are remembered: a machine's usual ones, each with its usual senders.
const MOST: usize = 1 << 12;

/// One value for equal culprits.
#[derive(Debug, Default)]
pub struct CulpritPool {
    known: KeyedSet<Arc<Culprit>>,
}

impl CulpritPool {
    /// The one that equals this.
    pub fn share(&mut self, culprit: Culprit) -> Arc<Culprit> {
        if let Some(known) = self.known.get(&culprit) {
            return Arc::clone(known);
        }
        let shared = Arc::new(culprit);
        self.known.insert(Arc::clone(&shared));
        shared
    }

    /// Forgets all where there are too many. What is shared from then on is another value than what was before.
    pub fn bound(&mut self) {
        if self.known.len() > MOST {
            self.known.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Subject;

    #[test]
    fn equal_culprits_are_one_value_and_no_more_are_remembered_than_fit() {
        let mut pool = CulpritPool::default();
        let first = pool.share(Subject::Softirq(1).into());
        assert!(Arc::ptr_eq(&first, &pool.share(Subject::Softirq(1).into())));
        assert!(!Arc::ptr_eq(&first, &pool.share(Subject::Softirq(2).into())));
        (2..MOST as u32).for_each(|n| drop(pool.share(Subject::Softirq(n).into())));
        pool.bound();
        assert!(Arc::ptr_eq(&first, &pool.share(Subject::Softirq(1).into())));
        (0..2).for_each(|n| drop(pool.share(Subject::Softirq(MOST as u32 + n).into())));
        pool.bound();
        assert!(pool.known.is_empty());
    }
}
