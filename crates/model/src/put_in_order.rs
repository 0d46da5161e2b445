//! Sorting where size counts more than speed.
//!
//! The standard library compiles its sorts anew for each type and each comparison, at four kilobytes a time. Here all
//! share one, and a call adds little more than its comparison. It is slower: sort what can be long, and what is sorted
//! for each stall or record, with the standard library.

use std::cmp::Ordering;
use std::mem;

/// Stable sorts: equal elements keep their order.
pub trait PutInOrder<T> {
    /// Sorts by `compare`.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by `key`, which may be called several times for an element.
    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|a, b| key(a).cmp(&key(b)));
    }

    /// Sorts by the elements' own order.
    fn put_in_order(&mut self)
    where
        T: Ord,
    {
        self.order_by(T::cmp);
    }
}

impl<T> PutInOrder<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        for (a, b) in swaps(self.len(), &mut |a, b| compare(&self[a], &self[b]).is_lt()) {
            self.swap(a, b);
        }
    }
}

/// Returns the swaps that put `len` elements in order. `less` gets the places where two elements are before the swaps.
fn swaps(len: usize, less: &mut dyn FnMut(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..len).collect();
    let mut merged = Vec::with_capacity(len);
    let mut width = 1;
    while width < len {
        for two in order.chunks(2 * width) {
            let (mut left, mut right) = two.split_at(width.min(two.len()));
            while let ([first, later @ ..], [second, latest @ ..]) = (left, right) {
                if less(*second, *first) {
                    merged.push(*second);
                    right = latest;
                } else {
                    merged.push(*first);
                    left = later;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        mem::swap(&mut order, &mut merged);
        merged.clear();
        width *= 2;
    }
    // `order` has for each place where its element is now. Each cycle takes one swap less than it has elements.
    let mut swaps = Vec::new();
    for start in 0..len {
        let mut place = start;
        loop {
            let from = mem::replace(&mut order[place], place);
            if from == start {
                break;
            }
            swaps.push((place, from));
            place = from;
        }
    }
    swaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::cmp::Reverse;

    proptest! {
        #[test]
        fn the_order_is_the_standard_librarys(keys in vec(0..40_u8, 0..200)) {
            // The number of an element shows whether equal keys kept their order.
            let mut ours: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut theirs = ours.clone();
            ours.order_by_key(|(key, _)| Reverse(*key));
            theirs.sort_by_key(|(key, _)| Reverse(*key));
            prop_assert_eq!(&ours, &theirs);
            ours.put_in_order();
            theirs.sort();
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn a_comparison_that_contradicts_itself_loses_nothing(
            len in 0..100_u32,
            answers in vec(any::<bool>(), 1..50),
        ) {
            let mut elements: Vec<u32> = (0..len).collect();
            let mut answers = answers.iter().cycle();
            elements.order_by(|_, _| answers.next().cmp(&Some(&true)));
            elements.sort();
            prop_assert_eq!(elements, (0..len).collect::<Vec<_>>());
        }
    }
}
