//! Who had a CPU instead of somebody else: how often, how long, how long at worst.

use jitterscope_model::{CulpritSums, KeyLevel, RanInstead, Subject, TickRate, Ticks};

/// Culprits told apart; the rest share a row a kind.
const MOST_CULPRITS: usize = 2048;

#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    count: u64,
    min: Ticks,
    max: Ticks,
    sum: Ticks,
}

/// Sums in ticks until the end.
#[derive(Debug)]
pub(crate) struct Instead(CulpritSums<(), Turns>);

impl Default for Instead {
    fn default() -> Instead {
        Instead(CulpritSums::new(KeyLevel::Name, MOST_CULPRITS))
    }
}

impl Instead {
    /// Once, for so long.
    pub(crate) fn add(&mut self, subject: &Subject, length: Ticks) {
        let turns = self.0.of((), subject);
        turns.min = if turns.count == 0 { length } else { turns.min.min(length) };
        turns.max = turns.max.max(length);
        turns.sum = turns.sum + length;
        turns.count += 1;
    }

    /// In nanoseconds, most time first.
    pub(crate) fn rows(&self, rate: TickRate) -> Vec<RanInstead> {
        let rows = self.0.rows().map(|row| RanInstead {
            subject: row.subject.clone(),
            threads: row.threads(),
            count: row.value.count,
            min_ns: rate.nanos(row.value.min),
            max_ns: rate.nanos(row.value.max),
            total_ns: rate.nanos(row.value.sum),
        });
        let mut rows: Vec<RanInstead> = rows.collect();
        rows.sort_by(|a, b| (b.total_ns, &a.subject).cmp(&(a.total_ns, &b.subject)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Nanos, Verdict};

    #[test]
    fn of_each_culprit_the_shortest_the_longest_and_the_sum_are_told_most_time_first() {
        let mut sums = Instead::default();
        let (much, little) = (Subject::Softirq(1), Subject::verdict(Verdict::Smi));
        let equal = Subject::Softirq(9);
        for (subject, length) in
            [(&little, 7), (&much, 30), (&much, 10), (&much, 20), (&little, 5), (&equal, 60), (&much, 0)]
        {
            sums.add(subject, Ticks(length));
        }
        let rows = sums.rows(TickRate::NANOSECONDS);
        let told = |row: &RanInstead| (row.count, row.min_ns.0, row.max_ns.0, row.total_ns.0);
        let rows: Vec<_> = rows.iter().map(|row| (row.subject.clone(), told(row))).collect();
        let mut wanted = [(much, (4, 0, 30, 60)), (equal, (1, 60, 60, 60)), (little, (2, 5, 7, 12))];
        // Of equal sums the order is that of the subjects.
        wanted[..2].sort();
        assert_eq!(rows, wanted);
        // In ticks until the end: each thirtieth of a nanosecond counts.
        let mut sums = Instead::default();
        let fast = TickRate { hz: 30_000_000_000, ..TickRate::NANOSECONDS };
        (0..30).for_each(|_| sums.add(&wanted[0].0, Ticks(1)));
        assert_eq!(sums.rows(fast)[0].total_ns, Nanos(1));
    }
}
