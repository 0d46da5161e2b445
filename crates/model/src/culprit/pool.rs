//! Culprits that were met: equal ones are one value, which their parts share.

use super::Culprit;
use crate::KeyedSet;
use std::sync::Arc;

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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Subject;

    #[test]
    fn equal_culprits_are_one_value() {
        let mut pool = CulpritPool::default();
        let first = pool.share(Subject::Softirq(1).into());
        assert!(Arc::ptr_eq(&first, &pool.share(Subject::Softirq(1).into())));
        assert!(!Arc::ptr_eq(
            &first,
            &pool.share(Subject::Softirq(2).into())
        ));
    }
}
