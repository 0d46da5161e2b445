//! What ran instead of a thread: count, total, minimum and maximum.

use crate::subjects::SubjectNo;
use jitterscope_model::{CulpritKind, PutInOrder, RanInstead, Subject, SumRow, TickRate, Ticks};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Maximum of culprits; further ones share one row per kind.
const MOST_CULPRITS: usize = 2048;

#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    count: u64,
    min: Ticks,
    max: Ticks,
    sum: Ticks,
}

/// Sums, in ticks until the end. There is one per followed thread, so it stores only one bit per subject.
#[derive(Debug, Default)]
pub(crate) struct Instead {
    rows: Vec<SumRow<(), Turns>>,
    /// The index of a row, by its number.
    places: FxHashMap<u32, usize>,
    /// Rows of culprits beyond the maximum.
    others: BTreeMap<CulpritKind, usize>,
    /// Bits by subject number: whether the row has already taken it in.
    taken: Vec<u64>,
}

impl Instead {
    /// Adds one occurrence of this length. All numbers must come from the same [`Subjects`](crate::subjects::Subjects).
    pub(crate) fn add(&mut self, subject: &Subject, number: SubjectNo, length: Ticks) {
        let place = match self.places.get(&number.row) {
            Some(place) => *place,
            None => self.begin(subject, number),
        };
        let row = &mut self.rows[place];
        let is_new = number
            .subject
            .is_none_or(|subject| is_new_bit(&mut self.taken, subject));
        if is_new && !matches!(row.subject, Subject::Others(_)) {
            row.take_in(subject);
        }
        let turns = &mut row.value;
        turns.min = if turns.count == 0 {
            length
        } else {
            turns.min.min(length)
        };
        turns.max = turns.max.max(length);
        turns.sum = turns.sum + length;
        turns.count += 1;
    }

    /// The index of the row for a new subject.
    fn begin(&mut self, subject: &Subject, number: SubjectNo) -> usize {
        let next = self.rows.len();
        let place = if next < MOST_CULPRITS {
            self.rows.push(SumRow::of((), subject, number.level));
            next
        } else {
            let place = *self.others.entry(subject.kind()).or_insert(next);
            if place == next {
                self.rows.push(SumRow::of(
                    (),
                    &Subject::Others(subject.kind()),
                    number.level,
                ));
            }
            place
        };
        self.places.insert(number.row, place);
        place
    }

    /// The rows in nanoseconds, most time first.
    pub(crate) fn rows(&self, rate: TickRate) -> Vec<RanInstead> {
        let rows = self.rows.iter().map(|row| RanInstead {
            subject: row.subject.clone(),
            threads: row.threads(),
            count: row.value.count,
            min_ns: rate.nanos(row.value.min),
            max_ns: rate.nanos(row.value.max),
            total_ns: rate.nanos(row.value.sum),
        });
        let mut rows: Vec<RanInstead> = rows.collect();
        rows.order_by(|a, b| (b.total_ns, &a.subject).cmp(&(a.total_ns, &b.subject)));
        rows
    }
}

/// Sets a bit; true if it was not set.
fn is_new_bit(bits: &mut Vec<u64>, number: u32) -> bool {
    let (word, bit) = (number as usize / 64, 1 << (number % 64));
    if bits.len() <= word {
        bits.resize(word + 1, 0);
    }
    let is_new = bits[word] & bit == 0;
    bits[word] |= bit;
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::Subjects;
    use jitterscope_model::{CulpritSums, Nanos, Task, Verdict};

    /// The rows equal those of an ordinary sum, without numbers.
    #[test]
    fn rows_are_those_of_any_sum_by_name() {
        let thread = |n: i32| {
            let process = (n % 3 == 0).then(|| format!("process {}", n % 40).into());
            let comm = format!("comm {}", n % 700).into();
            Subject::Thread(Task {
                tid: Some(n),
                tgid: Some(n / 2),
                comm,
                process,
                ..Task::default()
            })
        };
        let (mut sums, mut subjects) = (Instead::default(), Subjects::default());
        let mut plain: CulpritSums<(), u64> = CulpritSums::new(Subjects::LEVEL, MOST_CULPRITS);
        for n in 0..40_000 {
            let subject = thread(n / 2 % 18_000);
            sums.add(&subject, subjects.number(&subject), Ticks(n as u64));
            *plain.of((), &subject) += n as u64;
        }
        let summed: Vec<_> = sums
            .rows
            .iter()
            .map(|row| (row.subject.clone(), row.threads(), row.value.sum.0))
            .collect();
        let plain: Vec<_> = plain
            .rows()
            .map(|row| (row.subject.clone(), row.threads(), row.value))
            .collect();
        assert_eq!(summed, plain);
    }

    #[test]
    fn culprits_have_minimum_maximum_and_sum_most_time_first() {
        let (mut sums, mut subjects) = (Instead::default(), Subjects::default());
        let (much, little) = (Subject::Softirq(1), Subject::verdict(Verdict::Smi));
        let equal = Subject::Softirq(9);
        for (subject, length) in [
            (&little, 7),
            (&much, 30),
            (&much, 10),
            (&much, 20),
            (&little, 5),
            (&equal, 60),
            (&much, 0),
        ] {
            sums.add(subject, subjects.number(subject), Ticks(length));
        }
        let rows = sums.rows(TickRate::NANOSECONDS);
        let figures = |row: &RanInstead| (row.count, row.min_ns.0, row.max_ns.0, row.total_ns.0);
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (row.subject.clone(), figures(row)))
            .collect();
        let mut wanted = [
            (much, (4, 0, 30, 60)),
            (equal, (1, 60, 60, 60)),
            (little, (2, 5, 7, 12)),
        ];
        // Equal sums are in the order of their subjects.
        wanted[..2].sort();
        assert_eq!(rows, wanted);
        // In ticks until the end: no thirtieth of a nanosecond is lost.
        let mut sums = Instead::default();
        let fast = TickRate {
            hz: 30_000_000_000,
            ..TickRate::NANOSECONDS
        };
        let number = subjects.number(&wanted[0].0);
        (0..30).for_each(|_| sums.add(&wanted[0].0, number, Ticks(1)));
        assert_eq!(sums.rows(fast)[0].total_ns, Nanos(1));
    }
}
