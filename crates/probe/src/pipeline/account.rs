//! Histograms of the hot loops, and conversion of ticks to nanoseconds without a division.

use hdrhistogram::{CreationError, Histogram};
use jitterscope_model::TickRate;

/// Longest time with a bucket of its own: an hour. Longer times count there; the maximum is exact.
const LONGEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;
/// Binary places of [`Scale`]: the error stays under a nanosecond in a year.
const PLACES: u32 = 48;

/// Converts ticks to nanoseconds with one multiplication.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale(u64);

impl Scale {
    pub(super) fn new(rate: TickRate) -> Scale {
        let factor = (1_000_000_000u128 << PLACES) / u128::from(rate.hz.max(1));
        Scale(u64::try_from(factor).unwrap_or(u64::MAX))
    }

    #[inline(always)]
    pub(super) fn nanos(self, ticks: u64) -> u64 {
        // A time beyond u64 must not wrap to a short one.
        u64::try_from((u128::from(ticks) * u128::from(self.0)) >> PLACES).unwrap_or(u64::MAX)
    }
}

/// Times of one kind in nanoseconds: a three-digit histogram with exact minimum, maximum and sum.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u64>,
    min: u64,
    max: u64,
    sum: u128,
}

impl Times {
    pub(super) fn new() -> Result<Times, CreationError> {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)?;
        let mut times = Times {
            histogram,
            min: 0,
            max: 0,
            sum: 0,
        };
        times.reset();
        Ok(times)
    }

    /// Clears everything; writes to every page.
    pub(super) fn reset(&mut self) {
        self.histogram.reset();
        (self.min, self.max, self.sum) = (u64::MAX, 0, 0);
    }

    #[inline]
    pub(super) fn record(&mut self, nanos: u64) {
        self.histogram.saturating_record(nanos);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.sum += u128::from(nanos);
    }

    /// Three significant digits, nanoseconds; times above an hour count as an hour.
    #[must_use]
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The exact minimum; 0 if empty.
    #[must_use]
    pub fn min_ns(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.min }
    }

    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max
    }

    #[must_use]
    pub fn sum_ns(&self) -> u128 {
        self.sum
    }

    /// The mean, rounded down; 0 if empty.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        let mean = self.sum / u128::from(self.count().max(1));
        u64::try_from(mean).unwrap_or(u64::MAX)
    }

    /// The time that this share of all values does not exceed, at most the exact maximum; 0 if empty.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.count() == 0 {
            0
        } else {
            self.histogram.value_at_quantile(quantile).min(self.max)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{RateSource, Ticks};
    use proptest::prelude::*;

    #[test]
    fn times_keep_exact_extremes() {
        let mut times = Times::new().unwrap();
        assert_eq!(
            (
                times.count(),
                times.min_ns(),
                times.max_ns(),
                times.quantile_ns(0.5)
            ),
            (0, 0, 0, 0)
        );
        for nanos in [7, 123_457, 0, 4_000_000_000_000] {
            times.record(nanos);
        }
        assert_eq!(
            (times.count(), times.min_ns(), times.max_ns()),
            (4, 0, 4_000_000_000_000)
        );
        assert_eq!(times.mean_ns(), (4_000_000_000_000 + 123_457 + 7) / 4);
        times.reset();
        assert_eq!(times.count(), 0);
    }

    #[test]
    fn a_time_that_no_number_holds_is_the_longest() {
        let rate = TickRate {
            hz: 1_000_000,
            error_ppb: 0,
            source: RateSource::Cpuid,
        };
        assert_eq!(Scale::new(rate).nanos(18_446_744_073_709_552), u64::MAX);
    }

    proptest! {
        #[test]
        fn the_scale_agrees_with_the_division(hz in 1_000_000u64..6_000_000_000, ticks in 0u64..1 << 56) {
            let rate = TickRate { hz, error_ppb: 0, source: RateSource::Cpuid };
            let exact = rate.nanos(Ticks(ticks)).0;
            let scaled = Scale::new(rate).nanos(ticks);
            // 2^-48 of the ticks, and one for rounding.
            prop_assert!(exact.abs_diff(scaled) <= 1 + (ticks >> 47), "{exact} {scaled}");
        }
    }
}
