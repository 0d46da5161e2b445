//! The exact account of every delta.

use hdrhistogram::{CreationError, Histogram};
use jitterscope_clock::ShortDeltas;
use jitterscope_model::Ticks;

/// Longest stall with a histogram bucket of its own. Longer ones count as this long there, and exactly in the sums:
/// 2^44 ticks are about an hour and a half at 3 GHz.
const LONGEST: u64 = 1 << 44;

/// The memory in which the loop counts the deltas below the threshold.
pub(super) struct ShortCounts(Box<[u64]>);

impl ShortCounts {
    pub(super) fn new(threshold: Ticks) -> ShortCounts {
        let threshold = usize::try_from(threshold.0).unwrap_or(usize::MAX);
        ShortCounts(vec![0; ShortDeltas::counters(threshold)].into_boxed_slice())
    }

    /// Writes to every page and locks them.
    pub(super) fn prefault(&mut self) {
        self.0.fill(1);
        // If locking is refused, as it is for an unprivileged user, the pages are only faulted in; later faults are
        // counted and reported.
        let _ = jitterscope_platform::lock_in_memory(&mut self.0);
        self.reset();
    }

    /// Clears everything and keeps the memory.
    pub(super) fn reset(&mut self) {
        self.0.fill(0);
    }

    #[inline(always)]
    pub(super) fn deltas(&mut self) -> ShortDeltas<'_> {
        ShortDeltas::within(&mut self.0)
    }

    /// (length, count), ascending, without zero counts.
    pub(super) fn rows(&self) -> Vec<(u32, u64)> {
        ShortDeltas::seen(&self.0).collect()
    }
}

/// Count, sum, sum of squares, maximum and histogram of the deltas at or above the threshold.
pub(super) struct Stalls {
    lengths: Histogram<u64>,
    pub(super) count: u64,
    pub(super) sum: u128,
    pub(super) squares: u128,
    pub(super) longest: u64,
}

impl Stalls {
    pub(super) fn new() -> Result<Stalls, CreationError> {
        let lengths = Histogram::new_with_bounds(1, LONGEST, 3)?;
        Ok(Stalls {
            lengths,
            count: 0,
            sum: 0,
            squares: 0,
            longest: 0,
        })
    }

    /// Clears everything and keeps the memory; writes to every page.
    pub(super) fn reset(&mut self) {
        self.lengths.reset();
        (self.count, self.sum, self.squares, self.longest) = (0, 0, 0, 0);
    }

    pub(super) fn record(&mut self, length: u64) {
        self.lengths.saturating_record(length);
        self.count += 1;
        self.sum += u128::from(length);
        self.squares += u128::from(length) * u128::from(length);
        self.longest = self.longest.max(length);
    }

    /// (length, count) of the stalls; the last one is the exact maximum.
    pub(super) fn rows(&self) -> Vec<(u64, u64)> {
        let mut rows: Vec<(u64, u64)> = self
            .lengths
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
            .collect();
        if let Some(last) = rows.last_mut() {
            last.0 = self.longest;
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_summed_exactly_and_forgotten_whole() {
        let mut stalls = Stalls::new().unwrap();
        stalls.reset();
        for length in [100, 5_000_000, 5_000_000, u64::MAX] {
            stalls.record(length);
        }
        assert_eq!(stalls.rows(), [(100, 1), (5_001_215, 2), (u64::MAX, 1)]);
        assert_eq!((stalls.count, stalls.longest), (4, u64::MAX));
        assert_eq!(stalls.sum, 10_000_100 + u128::from(u64::MAX));
        let squares = 10_000 + 2 * 5_000_000u128.pow(2) + u128::from(u64::MAX).pow(2);
        assert_eq!(stalls.squares, squares);
        stalls.reset();
        assert!(
            stalls.rows().is_empty()
                && stalls.sum == 0
                && stalls.squares == 0
                && stalls.longest == 0
        );
    }

    #[test]
    fn prefaulting_leaves_no_count_behind() {
        let mut counts = ShortCounts::new(Ticks(100));
        counts.prefault();
        assert!(counts.rows().is_empty());
    }
}
