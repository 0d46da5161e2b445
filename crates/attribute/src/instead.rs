//! Who had a CPU in somebody's stead: how often, how long, how long at worst.

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
