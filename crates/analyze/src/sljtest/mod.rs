//! Clock deltas in SLJ Test's bins: linear up to a knee, two bins a decade above it.

mod outliers;

pub use outliers::{CpuBins, Outliers};

use jitterscope_model::{ProbeResult, Ticks};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaBins {
    /// Upper bounds, inclusive; the last bin has none and takes all longer deltas.
    pub upper: Vec<Ticks>,
    /// The number of deltas in each bin: one more than there are bounds.
    pub counts: Vec<u64>,
    /// Their sums, ticks.
    pub sums: Vec<u128>,
}

impl DeltaBins {
    /// `bins` bins (even, at least two): the lower half from `min` to `knee` in equal steps, the upper half at 2 and 10
    /// times the knee, 20 and 100 times, and so on; the last one is open.
    #[must_use]
    pub fn new(bins: usize, min: Ticks, knee: Ticks) -> DeltaBins {
        let half = (bins / 2).max(1);
        let span = u128::from(knee.since(min).0);
        let linear = (1..=half as u128).map(|i| {
            let step = u64::try_from(span * i / half as u128).unwrap_or(u64::MAX);
            Ticks(min.0.saturating_add(step))
        });
        let mut decade = knee.0;
        let pairs = std::iter::from_fn(|| {
            let pair = [decade.saturating_mul(2), decade.saturating_mul(10)];
            decade = pair[1];
            Some(pair)
        });
        let steep = pairs.flatten().map(Ticks).take(half - 1);
        let upper: Vec<Ticks> = linear.chain(steep).collect();
        let bins = upper.len() + 1;
        DeltaBins {
            upper,
            counts: vec![0; bins],
            sums: vec![0; bins],
        }
    }

    /// Adds `count` deltas of this length.
    pub fn add(&mut self, delta: Ticks, count: u64) {
        let bin = self.upper.partition_point(|upper| *upper < delta);
        self.counts[bin] += count;
        self.sums[bin] += u128::from(delta.0) * u128::from(count);
    }

    /// Adds a result's deltas below its threshold, which are exact.
    pub fn add_below(&mut self, result: &ProbeResult) {
        for (delta, count) in &result.below {
            self.add(Ticks(u64::from(*delta)), *count);
        }
    }

    /// Adds a result's stalls from its histogram, to three significant digits, if not every stall was kept.
    pub fn add_above(&mut self, result: &ProbeResult) {
        for (delta, count) in &result.above {
            self.add(Ticks(*delta), *count);
        }
    }

    /// The number of bins below the knee.
    #[must_use]
    pub fn lower_half(&self) -> usize {
        self.counts.len() / 2
    }
}

/// Average and standard deviation of all deltas, in ticks, for display.
#[must_use]
pub fn average_and_deviation(result: &ProbeResult) -> (f64, f64) {
    if result.samples == 0 {
        return (0.0, 0.0);
    }
    let n = result.samples as f64;
    let mean = result.sum_ticks as f64 / n;
    // Exact integers up to here: n * sum of squares - square of the sum cannot be negative.
    let (n_exact, sum) = (u128::from(result.samples), u128::from(result.sum_ticks));
    let spread = match (
        n_exact.checked_mul(result.sum_squares),
        sum.checked_mul(sum),
    ) {
        (Some(a), Some(b)) => a.saturating_sub(b) as f64 / (n * n),
        _ => (result.sum_squares as f64 / n - mean * mean).max(0.0),
    };
    (mean, spread.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::CpuId;
    use proptest::prelude::*;

    fn nothing() -> ProbeResult {
        ProbeResult {
            cpu: CpuId(0),
            tid: 0,
            start: Ticks(0),
            end: Ticks(0),
            planned_end: Ticks(0),
            samples: 0,
            sum_ticks: 0,
            sum_squares: 0,
            min_ticks: 0,
            max_ticks: 0,
            threshold_ticks: 0,
            below: Vec::new(),
            above: Vec::new(),
            stalls: 0,
            stalled_ticks: 0,
            dropped_records: 0,
            own_bookkeeping: 0,
            page_faults: 0,
            involuntary_switches: 0,
            ended_early: None,
        }
    }

    #[test]
    fn the_default_bounds_are_the_documented_ones() {
        let bins = DeltaBins::new(20, Ticks(10), Ticks(50));
        let upper: Vec<u64> = bins.upper.iter().map(|t| t.0).collect();
        assert_eq!(
            upper,
            [
                14, 18, 22, 26, 30, 34, 38, 42, 46, 50, 100, 500, 1000, 5000, 10_000, 50_000,
                100_000, 500_000, 1_000_000
            ]
        );
        assert_eq!((bins.counts.len(), bins.lower_half()), (20, 10));
    }

    #[test]
    fn bounds_belong_to_the_lower_bin() {
        let mut bins = DeltaBins::new(4, Ticks(10), Ticks(50));
        for delta in [0, 30, 31, 50, 51, 100, 101, u64::MAX] {
            bins.add(Ticks(delta), 1);
        }
        assert_eq!(bins.counts, [2, 2, 2, 2]);
        assert_eq!(bins.sums[1], 81);
    }

    #[test]
    fn average_and_deviation_are_those_of_all_deltas() {
        let of = |samples, sum_ticks, sum_squares| {
            average_and_deviation(&ProbeResult {
                samples,
                sum_ticks,
                sum_squares,
                ..nothing()
            })
        };
        assert_eq!(of(0, 0, 0), (0.0, 0.0));
        // 2, 4, 4, 4, 5, 5, 7, 9.
        assert_eq!(of(8, 40, 232), (5.0, 2.0));
        // A billion of 20 ticks and one of a million: the result must not lose the small term to floating point.
        let (mean, deviation) = of(
            1_000_000_001,
            20_001_000_000,
            400_000_000_000 + 1_000_000_000_000,
        );
        assert!(
            (mean - 20.001).abs() < 1e-6 && (deviation - 31.622).abs() < 1e-2,
            "{mean} {deviation}"
        );
        // Half of a billion of a billion ticks each, the others of two more: the squares differ in their last digits.
        let (half, long) = (500_000_000u64, 1_000_000_000u128);
        let squares = u128::from(half) * (long * long + (long + 2) * (long + 2));
        assert_eq!(
            of(2 * half, 2 * half * (1_000_000_000 + 1), squares),
            (1e9 + 1.0, 1.0)
        );
        // Products that do not fit into 128 bits.
        let (mean, deviation) = of(1 << 62, 1 << 63, 20 << 62);
        assert_eq!((mean, deviation), (2.0, 4.0));
        let (_, deviation) = of(u64::MAX, u64::MAX, u128::MAX);
        assert!(
            (deviation / 4_294_967_296.0 - 1.0).abs() < 1e-9,
            "{deviation}"
        );
        // Contradictory sums.
        assert_eq!(of(2, 10, 1).1, 0.0);
    }

    #[test]
    fn a_results_deltas_are_added_below_and_above_its_threshold() {
        let result = ProbeResult {
            below: vec![(10, 3), (40, 2)],
            above: vec![(60, 4)],
            ..nothing()
        };
        let mut bins = DeltaBins::new(4, Ticks(10), Ticks(50));
        bins.add_below(&result);
        assert_eq!(
            (bins.counts.as_slice(), bins.sums.as_slice()),
            (&[3, 2, 0, 0][..], &[30, 80, 0, 0][..])
        );
        bins.add_above(&result);
        assert_eq!(
            (bins.counts.as_slice(), bins.sums.as_slice()),
            (&[3, 2, 4, 0][..], &[30, 80, 240, 0][..])
        );
    }

    proptest! {
        #[test]
        fn every_delta_is_in_one_bin(
            half in 1usize..80,
            min in 0u64..1000,
            span in 1u64..1 << 40,
            deltas in proptest::collection::vec(0u64..u64::MAX, 0..50),
        ) {
            let mut bins = DeltaBins::new(2 * half, Ticks(min), Ticks(min + span));
            prop_assert_eq!(bins.counts.len(), 2 * half);
            for delta in &deltas {
                bins.add(Ticks(*delta), 1);
            }
            prop_assert_eq!(bins.counts.iter().sum::<u64>(), deltas.len() as u64);
        }
    }
}
