//! Interned culprits, shared by all windows.

use crate::culprits::Origin;
use jitterscope_model::{Culprit, KeyedMap};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Maximum of culprits: a machine's usual ones, each with its usual senders.
const MOST: usize = 1 << 12;

/// The number of a culprit: equal numbers mean equal culprits, until [`NumberedCulprits::bound`] forgets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CulpritNo(u32);

/// The known culprits, each once, because the same few recur in window after window.
#[derive(Debug, Default)]
pub(super) struct NumberedCulprits {
    all: Vec<Arc<Culprit>>,
    numbers: KeyedMap<Arc<Culprit>, CulpritNo>,
    origins: FxHashMap<Origin, CulpritNo>,
}

impl NumberedCulprits {
    pub(super) fn number(&mut self, culprit: Culprit) -> CulpritNo {
        if let Some(known) = self.numbers.get(&culprit) {
            return *known;
        }
        let (shared, number) = (Arc::new(culprit), CulpritNo(self.all.len() as u32));
        self.all.push(Arc::clone(&shared));
        self.numbers.insert(shared, number);
        number
    }

    /// The shared value of all equal culprits.
    pub(super) fn share(&mut self, culprit: Culprit) -> Arc<Culprit> {
        let number = self.number(culprit);
        Arc::clone(self.culprit(number))
    }

    /// The number of the culprit with this origin; `make` creates the culprit if the origin is new.
    pub(super) fn of(&mut self, origin: Origin, make: impl FnOnce() -> Culprit) -> CulpritNo {
        if let Some(known) = self.origins.get(&origin) {
            return *known;
        }
        let number = self.number(make());
        self.origins.insert(origin, number);
        number
    }

    pub(super) fn culprit(&self, number: CulpritNo) -> &Arc<Culprit> {
        &self.all[number.0 as usize]
    }

    /// From now on names may differ from earlier ones, so known origins are invalid.
    pub(super) fn forget_names(&mut self) {
        self.origins.clear();
    }

    /// Forgets all culprits and their numbers if there are too many.
    pub(super) fn bound(&mut self) {
        if self.all.len() > MOST {
            *self = NumberedCulprits::default();
        }
        if self.origins.len() > MOST {
            self.origins.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Subject, Verdict};

    fn culprit(n: usize) -> Culprit {
        Subject::Softirq(u32::try_from(n).unwrap()).into()
    }

    #[test]
    fn equal_culprits_have_one_number_and_no_more_are_remembered_than_fit() {
        let mut all = NumberedCulprits::default();
        let first = all.number(culprit(1));
        assert_eq!(all.number(culprit(1)), first);
        assert_ne!(all.number(culprit(2)), first);
        assert_eq!(**all.culprit(first), culprit(1));
        for n in 2..=MOST {
            all.number(culprit(n));
        }
        all.bound();
        assert_eq!((all.all.len(), all.number(culprit(1))), (MOST, first));
        all.number(culprit(MOST + 1));
        all.bound();
        assert!(all.all.is_empty() && all.numbers.is_empty());
    }

    #[test]
    fn an_origin_has_the_culprit_that_it_had_until_names_may_be_others() {
        let mut all = NumberedCulprits::default();
        let origin = Origin::Verdict(Verdict::ContextSwitch);
        let first = all.of(origin, || culprit(1));
        assert_eq!(all.of(origin, || unreachable!()), first);
        // Another origin with the same culprit has the same number.
        assert_eq!(
            all.of(Origin::Verdict(Verdict::LateTimer), || culprit(1)),
            first
        );
        all.forget_names();
        assert_ne!(all.of(origin, || culprit(2)), first);
    }
}
