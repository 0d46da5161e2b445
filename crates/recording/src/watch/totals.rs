//! Sums over the life of a watch, for its metrics: they only grow, and no time is lost or counted twice.
//!
//! Every name may have a row of its own only while there are few. A name that takes less than a row needs stays in the
//! row of the others of its kind, and so does what it took before it has a row. No row is ever taken away, because a
//! counter that falls reads as one that began anew.

use super::slots::{OTHER, Slots};
use jitterscope_model::{Attribution, Delivery, Row, RunFacts, RunManifest, Sink, SinkError};
use jitterscope_model::{Nanos, QuotaRead, ThrottledGroup, TickRate, exponential_bucket};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of stalls that have no attribution.
pub const UNATTRIBUTED: &str = "unattributed";
/// The most rows of names, and of control groups.
const MOST_CULPRITS: usize = 64;
const MOST_GROUPS: usize = 32;
/// The upper bounds of the histogram's buckets, nanoseconds.
pub const BOUNDS: [u64; 19] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];

/// The sums.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Stalls by length: one count for each of [`BOUNDS`], and one for those above the last.
    pub lengths: [u64; BOUNDS.len() + 1],
    /// Stalls by [`exponential_bucket`].
    pub buckets: BTreeMap<i32, u64>,
    /// The time of all stalls, nanoseconds.
    pub stalled_ns: u64,
    culprits: Slots,
    throttled: Slots,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals {
            lengths: [0; BOUNDS.len() + 1],
            buckets: BTreeMap::new(),
            stalled_ns: 0,
            culprits: Slots::new(MOST_CULPRITS),
            throttled: Slots::new(MOST_GROUPS),
        }
    }
}

impl Totals {
    /// Stolen time in nanoseconds by kind and name; [`OTHER`] is the row of a kind's other names.
    #[must_use]
    pub fn culprits(&self) -> BTreeMap<(&str, &str), u64> {
        self.culprits.rows()
    }

    /// Throttled time of control groups in nanoseconds, summed over the CPUs; [`OTHER`] is the row of the other groups.
    #[must_use]
    pub fn throttled(&self) -> BTreeMap<&str, u64> {
        let rows = self.throttled.rows().into_iter();
        rows.map(|((_, group), time)| (group, time)).collect()
    }

    fn stall(&mut self, length_ns: u64, attribution: Option<&Attribution>) {
        let at = BOUNDS.partition_point(|bound| *bound < length_ns);
        self.lengths[at] += 1;
        *self
            .buckets
            .entry(exponential_bucket(Nanos(length_ns)))
            .or_default() += 1;
        self.stalled_ns = self.stalled_ns.saturating_add(length_ns);
        // Parts may add up to less or more than the length by the rounding of ticks.
        let mut left = length_ns;
        for part in attribution.iter().flat_map(|of| &of.parts) {
            let time = part.net.0.min(left);
            left -= time;
            let subject = &part.culprit.subject;
            self.culprits
                .add(subject.kind_word(), &subject.name(), time);
        }
        if left > 0 {
            // It is part of the last culprit, or the stall has none.
            match attribution.and_then(|of| of.parts.last()) {
                Some(part) => {
                    let subject = &part.culprit.subject;
                    self.culprits
                        .add(subject.kind_word(), &subject.name(), left);
                }
                None => self.culprits.add(UNATTRIBUTED, OTHER, left),
            }
        }
    }

    fn throttling(&mut self, groups: &[ThrottledGroup]) {
        for group in groups {
            self.throttled.add("", &group.cgroup, group.throttled().0);
        }
    }
}

/// The sums, shared by the thread that takes the rows and those that show them.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedTotals(Arc<Mutex<Totals>>);

impl SharedTotals {
    pub(super) fn lock(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sums as an output of a recording.
pub(super) struct TotalsSink {
    totals: SharedTotals,
    rate: Option<TickRate>,
}

impl TotalsSink {
    pub(super) fn new(totals: SharedTotals) -> TotalsSink {
        TotalsSink { totals, rate: None }
    }
}

impl Sink for TotalsSink {
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        self.rate = Some(facts.rate);
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        let Some(rate) = self.rate else {
            return Ok(());
        };
        let mut totals = self.totals.lock();
        for row in batch {
            match row {
                Row::Stall(stall, attribution) => {
                    totals.stall(rate.nanos(stall.length()).0, *attribution);
                }
                Row::Turn(turn) => {
                    for QuotaRead { throttled, .. } in &turn.quota_reads {
                        totals.throttling(throttled);
                    }
                    totals.throttling(&turn.throttled);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..) | Row::Turn(..))
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        Ok(0)
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::of(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_counts_at_the_first_bound_that_it_does_not_exceed() {
        let mut totals = Totals::default();
        for length in [1, 1_000, 1_001, 1_000_000_000, 1_000_000_001, u64::MAX / 2] {
            totals.stall(length, None);
        }
        assert_eq!(totals.lengths[..2], [2, 1]);
        assert_eq!(totals.lengths[BOUNDS.len() - 1..], [1, 2]);
        let all: u64 = totals.culprits().values().sum();
        assert_eq!(all, totals.stalled_ns, "no time is lost");
        assert_eq!(totals.culprits().len(), 1);
    }

    #[test]
    fn groups_are_summed_over_every_read() {
        let group = |name: &str, throttled_us| ThrottledGroup {
            cgroup: name.into(),
            quota_us: 10_000,
            period_us: 100_000,
            times: 1,
            throttled_us,
            changed: false,
        };
        let mut totals = Totals::default();
        totals.throttling(&[group("/a", 2000), group("/b", 3000)]);
        totals.throttling(&[group("/a", 5000)]);
        let rows = totals.throttled();
        assert_eq!(rows.values().sum::<u64>(), 10_000_000);
        assert_eq!(rows["/a"], 7_000_000);
    }
}
