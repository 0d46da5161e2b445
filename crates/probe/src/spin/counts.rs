//! The exact account of every delta.

use hdrhistogram::{CreationError, Histogram};
use jitterscope_model::Ticks;

/// Steps of the unrolled loop, each with a table of its own: increments of one counter then lie a whole
/// turn apart, and the store-to-load forwarding between them is off the critical path.
pub(super) const STEPS: usize = 8;

/// Longest stall that the histogram tells apart; longer ones count as this long there (and exactly in
/// the sums): 2^44 ticks are about an hour and a half at 3 GHz.
const LONGEST: u64 = 1 << 44;

/// Per-tick counts below the threshold; count, sum, sum of squares, maximum and histogram above it.
pub(super) struct Counts {
    threshold: usize,
    /// `STEPS` tables of `threshold` counters, one behind the other.
    tables: Box<[u64]>,
    above: Histogram<u64>,
    pub(super) stalls: u64,
    pub(super) stalled: u128,
    stalled_squares: u128,
    longest: u64,
}

impl Counts {
    pub(super) fn new(threshold: Ticks) -> Result<Counts, CreationError> {
        let threshold = usize::try_from(threshold.0).unwrap_or(usize::MAX);
        Ok(Counts {
            threshold,
            tables: vec![0; threshold.saturating_mul(STEPS)].into_boxed_slice(),
            above: Histogram::new_with_bounds(1, LONGEST, 3)?,
            stalls: 0,
            stalled: 0,
            stalled_squares: 0,
            longest: 0,
        })
    }

    /// Writes to every page of the tables and of the histogram, and locks the tables.
    pub(super) fn prefault(&mut self) {
        self.tables.fill(1);
        // Refused locks leave the pages merely faulted in, which is all that an unprivileged user gets;
        // faults that follow are counted and reported.
        let _ = jitterscope_platform::lock_in_memory(&mut self.tables);
        self.reset();
    }

    /// Forgets everything, keeping the memory.
    pub(super) fn reset(&mut self) {
        self.tables.fill(0);
        self.above.reset();
        (self.stalls, self.stalled, self.stalled_squares, self.longest) = (0, 0, 0, 0);
    }

    /// Counts a delta in the table of `step`; false when it is a stall and was not counted.
    #[inline(always)]
    pub(super) fn count_short(&mut self, step: usize, delta: u64) -> bool {
        if delta < self.threshold as u64 {
            debug_assert!(step < STEPS);
            // SAFETY: `delta < threshold` was just tested and `step < STEPS` holds at every call (the
            // unrolled loop's constants), and `tables` holds `STEPS * threshold` counters.
            unsafe { *self.tables.get_unchecked_mut(step * self.threshold + delta as usize) += 1 };
            true
        } else {
            false
        }
    }

    /// Counts a stall.
    pub(super) fn count_stall(&mut self, delta: u64) {
        self.above.saturating_record(delta);
        self.stalls += 1;
        self.stalled += u128::from(delta);
        self.stalled_squares += u128::from(delta) * u128::from(delta);
        self.longest = self.longest.max(delta);
    }

    /// (length, count) below the threshold, ascending, without zeros.
    pub(super) fn below(&self) -> Vec<(u32, u64)> {
        (0..self.threshold)
            .filter_map(|delta| {
                let count = (0..STEPS).map(|step| self.tables[step * self.threshold + delta]).sum();
                (count > 0).then_some((delta as u32, count))
            })
            .collect()
    }

    /// (length, count) of the stalls; the last one is the exact maximum.
    pub(super) fn above(&self) -> Vec<(u64, u64)> {
        let mut rows: Vec<(u64, u64)> = self
            .above
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
            .collect();
        if let Some(last) = rows.last_mut() {
            last.0 = self.longest;
        }
        rows
    }

    /// Sum of the squares of all deltas.
    pub(super) fn sum_squares(&self, below: &[(u32, u64)]) -> u128 {
        let square = |(delta, count): &(u32, u64)| u128::from(*delta).pow(2) * u128::from(*count);
        below.iter().map(square).sum::<u128>() + self.stalled_squares
    }

    pub(super) fn longest(&self) -> u64 {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delta_is_in_exactly_one_account() {
        let mut counts = Counts::new(Ticks(100)).unwrap();
        counts.prefault();
        for delta in [0, 7, 7, 99, 100, 5_000_000] {
            for step in 0..STEPS {
                if !counts.count_short(step, delta) {
                    counts.count_stall(delta);
                }
            }
        }
        assert_eq!(counts.below(), [(0, 8), (7, 16), (99, 8)]);
        assert_eq!(counts.above(), [(100, 8), (5_000_000, 8)]);
        assert_eq!((counts.stalls, counts.stalled), (16, 8 * 5_000_100));
        let expected = 8 * (2 * 49 + 99 * 99 + 100 * 100 + 5_000_000u128 * 5_000_000);
        assert_eq!(counts.sum_squares(&counts.below()), expected);
        counts.reset();
        assert!(counts.below().is_empty() && counts.above().is_empty());
    }
}
