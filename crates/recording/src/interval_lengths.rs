//! The stall lengths of an interval. Some stalls may have no record.

use hdrhistogram::{CreationError, Histogram};
use jitterscope_model::Nanos;

/// Longest stall with a bucket of its own: an hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Collects the stalls with a record and adds the others from the probe's own sums: the probe counts and sums every
/// stall, even when the queue is full.
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

    /// The interval's histogram: `count` stalls of `sum` in total, none longer than `longest`. Stalls without a record
    /// enter with their mean length: the shortest lose their records first, so they are similar, and none of them is
    /// among the longest.
    pub(crate) fn complete(&mut self, count: u64, sum: Nanos, longest: Nanos) -> &Histogram<u64> {
        let missing = count.saturating_sub(self.recorded.len());
        if let Some(mean) = sum.0.saturating_sub(self.sum.0).checked_div(missing) {
            let mean = mean.clamp(self.recorded.low(), longest.0.max(self.recorded.low()));
            self.recorded.saturating_record_n(mean, missing);
        }
        &self.recorded
    }

    /// Prepares for the next interval.
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
        // The sums are rounded to ticks and may differ slightly.
        lengths.reset();
        lengths.record(Nanos(700));
        assert_eq!(lengths.complete(2, Nanos(699), Nanos(700)).len(), 2);
    }
}
