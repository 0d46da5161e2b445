//! The account of lateness.

use hdrhistogram::{CreationError, Histogram};
use jitterscope_model::{Nanos, WakeupResult};

/// Longest lateness with a bucket of its own; later wake-ups count as this late in the histograms, and exactly in the
/// maximum and the sum.
const LONGEST: u64 = 3_600_000_000_000;

/// Lateness as measured, and corrected for coordinated omission.
pub(super) struct Account {
    period: Nanos,
    plain: Histogram<u64>,
    corrected: Histogram<u64>,
    wakeups: u64,
    min: Nanos,
    max: Nanos,
    sum: Nanos,
}

impl Account {
    pub(super) fn new(period: Nanos) -> Result<Account, CreationError> {
        Ok(Account {
            period,
            plain: Histogram::new_with_bounds(1, LONGEST, 3)?,
            corrected: Histogram::new_with_bounds(1, LONGEST, 3)?,
            wakeups: 0,
            min: Nanos(u64::MAX),
            max: Nanos::ZERO,
            sum: Nanos::ZERO,
        })
    }

    /// Writes to the memory of both histograms.
    pub(super) fn prefault(&mut self) {
        for histogram in [&mut self.plain, &mut self.corrected] {
            // A value in each power of two touches each of their pages.
            for shift in 0..42 {
                histogram.saturating_record(1 << shift);
            }
            histogram.reset();
        }
    }

    /// Counts one wake-up. Returns how many further deadlines it missed.
    pub(super) fn wake_up(&mut self, late: Nanos) -> u64 {
        self.wakeups += 1;
        self.min = self.min.min(late);
        self.max = self.max.max(late);
        self.sum += late;
        self.plain.saturating_record(late.0);
        self.corrected.saturating_record(late.0);
        let missed = late.0 / self.period.0;
        // A sleeper due at the k-th missed deadline was late by k periods less. The loop stops at the longest
        // distinguished lateness, so that an outage never costs much time here.
        for k in 1..=missed.min(LONGEST / self.period.0) {
            self.corrected.saturating_record(late.0 - k * self.period.0);
        }
        missed
    }

    /// Stores the counts in the result.
    pub(super) fn fill(&self, result: &mut WakeupResult) {
        result.wakeups = self.wakeups;
        result.min = if self.wakeups == 0 {
            Nanos::ZERO
        } else {
            self.min
        };
        result.max = self.max;
        result.sum = self.sum;
        result.plain = rows(&self.plain, self.max);
        result.corrected = rows(&self.corrected, self.max);
    }
}

fn rows(histogram: &Histogram<u64>, max: Nanos) -> Vec<(u64, u64)> {
    let mut rows: Vec<(u64, u64)> = histogram
        .iter_recorded()
        .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
        .collect();
    if let Some(last) = rows.last_mut() {
        last.0 = max.0;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_deadlines_are_filled_in_once() {
        let mut account = Account::new(Nanos(1000)).unwrap();
        account.prefault();
        assert_eq!(
            [10, 999, 1000, 3500].map(|late| account.wake_up(Nanos(late))),
            [0, 0, 1, 3]
        );
        let mut result = WakeupResult::default();
        account.fill(&mut result);
        assert_eq!(
            (result.wakeups, result.min, result.max, result.sum.0),
            (4, Nanos(10), Nanos(3500), 5509)
        );
        let count = |rows: &[(u64, u64)]| rows.iter().map(|row| row.1).sum::<u64>();
        assert_eq!((count(&result.plain), count(&result.corrected)), (4, 8));
        let values: Vec<u64> = result.corrected.iter().map(|row| row.0).collect();
        // 0 from 1000; 500, 1500 and 2500 from 3500; each as the highest value of its bucket.
        assert_eq!(values, [0, 10, 500, 999, 1000, 1500, 2501, 3500]);
    }

    #[test]
    fn nothing_counted_is_all_zero() {
        let mut result = WakeupResult::default();
        Account::new(Nanos(1000)).unwrap().fill(&mut result);
        assert_eq!(result, WakeupResult::default());
    }
}
