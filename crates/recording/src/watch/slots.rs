//! Sums by kind and name with a bounded number of rows, none of which ever falls or disappears.

use std::collections::BTreeMap;

/// The row of what no other row counts.
pub const OTHER: &str = "other";
/// What a name must have taken to get a row while there are many, nanoseconds. Each halving of the free rows asks for
/// ten times as much: a flood of new names, each of which takes a little, leaves room for one that takes much.
const LEAST: u64 = 1_000_000;
/// Names without a row whose time is known: bounds the memory, however often threads rename themselves.
const MOST_CANDIDATES: usize = 1024;
/// The longest name, bytes.
const LONGEST: usize = 128;

type Names = BTreeMap<String, u64>;

/// The sums.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    most: usize,
    used: usize,
    /// By kind and name.
    rows: BTreeMap<String, Names>,
    /// By kind: what no row of its own counts.
    other: BTreeMap<String, u64>,
    /// What names without a row have taken; it is part of `other`.
    candidates: BTreeMap<String, Names>,
    waiting: usize,
}

impl Slots {
    pub(super) fn new(most: usize) -> Slots {
        Slots {
            most,
            used: 0,
            rows: BTreeMap::new(),
            other: BTreeMap::new(),
            candidates: BTreeMap::new(),
            waiting: 0,
        }
    }

    /// What a name must have taken to get the next row; `None` without a free one.
    fn price(&self) -> Option<u64> {
        let free = self.most.saturating_sub(self.used);
        let halvings = (self.most / free.max(1)).checked_ilog2().unwrap_or(0);
        (free > 0).then(|| LEAST.saturating_mul(10_u64.saturating_pow(halvings)))
    }

    /// Adds time that a name took.
    pub(super) fn add(&mut self, kind: &str, name: &str, time: u64) {
        let tidy;
        let name = match name.len() <= LONGEST && !name.chars().any(char::is_control) {
            true => name,
            false => {
                tidy = tidied(name);
                &tidy
            }
        };
        if name == OTHER {
            let other = self.other.entry(kind.to_owned()).or_default();
            *other = other.saturating_add(time);
            return;
        }
        let row = self.rows.get_mut(kind).and_then(|of| of.get_mut(name));
        if let Some(sum) = row {
            *sum = sum.saturating_add(time);
            return;
        }
        let known = self.candidates.get(kind).and_then(|of| of.get(name));
        let taken = known.copied().unwrap_or(0).saturating_add(time);
        if self.price().is_some_and(|price| taken >= price) {
            if let Some(of) = self.candidates.get_mut(kind) {
                self.waiting -= usize::from(of.remove(name).is_some());
            }
            let names = self.rows.entry(kind.to_owned()).or_default();
            names.insert(name.to_owned(), time);
            self.used += 1;
            return;
        }
        if known.is_none() && self.waiting >= MOST_CANDIDATES {
            self.forget_half();
        }
        let names = self.candidates.entry(kind.to_owned()).or_default();
        self.waiting += usize::from(names.insert(name.to_owned(), taken).is_none());
        let other = self.other.entry(kind.to_owned()).or_default();
        *other = other.saturating_add(time);
    }

    /// Forgets the half of the candidates that took less; their time stays in the row of the others.
    fn forget_half(&mut self) {
        let all = self.candidates.values().flat_map(BTreeMap::values);
        let mut times: Vec<u64> = all.copied().collect();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or(0);
        for names in self.candidates.values_mut() {
            names.retain(|_, time| *time > median);
        }
        self.candidates.retain(|_, names| !names.is_empty());
        self.waiting = self.candidates.values().map(BTreeMap::len).sum();
    }

    /// The rows; the others of a kind have the name [`OTHER`], together with a culprit of this name.
    pub(super) fn rows(&self) -> BTreeMap<(&str, &str), u64> {
        let mut rows = BTreeMap::new();
        let mut add = |kind, name, time: u64| {
            let sum: &mut u64 = rows.entry((kind, name)).or_default();
            *sum = sum.saturating_add(time);
        };
        for (kind, names) in &self.rows {
            for (name, time) in names {
                add(kind.as_str(), name.as_str(), *time);
            }
        }
        for (kind, time) in &self.other {
            add(kind.as_str(), OTHER, *time);
        }
        rows
    }
}

/// A name of limited length without control characters.
fn tidied(name: &str) -> String {
    let mut tidy = String::new();
    for letter in name.chars() {
        if tidy.len() + letter.len_utf8() > LONGEST {
            break;
        }
        tidy.push(match letter.is_control() {
            true => char::REPLACEMENT_CHARACTER,
            false => letter,
        });
        if tidy.len() > LONGEST {
            tidy.pop();
            break;
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_flood_of_names_leaves_room_for_one_that_takes_much() {
        let mut slots = Slots::new(64);
        for n in 0..100_000 {
            slots.add("thread", &format!("t{n}"), 2 * LEAST);
        }
        assert_eq!(slots.used, 32, "the next row costs ten times as much");
        assert!(slots.waiting <= MOST_CANDIDATES);
        slots.add("thread", "thief", 1000 * LEAST);
        slots.add("irq", "disk", 1000 * LEAST);
        let rows = slots.rows();
        assert_eq!(rows[&("thread", "thief")], 1000 * LEAST);
        assert_eq!(rows[&("irq", "disk")], 1000 * LEAST);
        let all: u64 = rows.values().sum();
        assert_eq!(all, 202_000 * LEAST, "no time is lost");
    }

    #[test]
    fn names_that_look_alike_share_a_row() {
        let mut slots = Slots::new(4);
        slots.add("thread", "a\nb", LEAST);
        slots.add("thread", "a\rb", LEAST);
        slots.add("thread", &"\u{e9}".repeat(500), LEAST);
        let rows = slots.rows();
        assert_eq!(rows[&("thread", "a\u{fffd}b")], 2 * LEAST);
        assert!(rows.keys().all(|(_, name)| name.len() <= LONGEST));
    }

    proptest! {
        /// Whatever comes: every row only grows, none disappears, their number is bounded, and their sum is exact.
        #[test]
        fn rows_only_grow(adds in proptest::collection::vec((0u8..3, 0u16..60, 0u64..20_000_000), 1..400)) {
            let mut slots = Slots::new(8);
            let mut before: BTreeMap<(String, String), u64> = BTreeMap::new();
            let mut sum = 0;
            for (kind, name, time) in adds {
                slots.add(&format!("k{kind}"), &format!("n{name}"), time);
                sum += time;
                let now: BTreeMap<_, _> = slots
                    .rows()
                    .into_iter()
                    .map(|((kind, name), time)| ((kind.to_owned(), name.to_owned()), time))
                    .collect();
                for (key, earlier) in &before {
                    prop_assert!(now.get(key).is_some_and(|time| time >= earlier), "{:?}", key);
                }
                prop_assert_eq!(now.values().sum::<u64>(), sum);
                prop_assert!(now.len() <= 8 + 3);
                before = now;
            }
        }
    }
}
