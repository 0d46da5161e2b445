//! The lengths of an interval's stalls, of which some may have no record.

use hdrhistogram::{CreationError, Histogram};
use jitterscope_model::Nanos;

/// Longest stall that is told apart: an hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Gathers those that have a record, and completes them from the probe's own account: it counts and sums up every
/// stall, whatever the queue has room for.
pub(crate) struct IntervalLengths {
    recorded: Histogram<u64>,
    sum: Nanos,
}

impl IntervalLengths {
    pub(crate) fn new() -> Result<IntervalLengths, CreationError> {
        Ok(IntervalLengths {
            recorded: Histogram::new_with_bounds(1, LONGEST_NS, 3)?,
            sum: Nanos::ZERO,
        })
    }

    pub(crate) fn record(&mut self, length: Nanos) {
        self.recorded.saturating_record(length.0);
        self.sum = Nanos(self.sum.0.saturating_add(length.0));
    }

    /// The interval's histogram: `count` stalls of `sum` in all, none longer than `longest`. Those without a record
    /// are in it with their mean length: the shortest lose theirs first, so that they are much alike, and none of
    /// them is among the longest.
    pub(crate) fn complete(&mut self, count: u64, sum: Nanos, longest: Nanos) -> &Histogram<u64> {
        let missing = count.saturating_sub(self.recorded.len());
        if let Some(mean) = sum.0.saturating_sub(self.sum.0).checked_div(missing) {
            let mean = mean.clamp(self.recorded.low(), longest.0.max(self.recorded.low()));
            self.recorded.saturating_record_n(mean, missing);
        }
        &self.recorded
    }

    /// For the next interval.
    pub(crate) fn reset(&mut self) {
        self.recorded.reset();
        self.sum = Nanos::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_without_a_record_are_counted_with_their_mean_length() {
        let mut lengths = IntervalLengths::new().unwrap();
        for length in [5_000, 90_000] {
            lengths.record(Nanos(length));
        }
        let whole = lengths.complete(1_002, Nanos(95_000 + 400_000), Nanos(90_000));
        assert_eq!(
            (whole.len(), whole.min(), whole.count_at(400)),
            (1_002, 400, 1_000)
        );
        assert!((89_900..=90_100).contains(&whole.max()), "{}", whole.max());
        lengths.reset();
        lengths.record(Nanos(700));
        assert_eq!(lengths.complete(1, Nanos(700), Nanos(700)).len(), 1);
        // Rounded to ticks, the sums may differ by a little.
        lengths.reset();
        lengths.record(Nanos(700));
        assert_eq!(lengths.complete(2, Nanos(699), Nanos(700)).len(), 2);
    }
}
