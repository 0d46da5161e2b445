//! Distributions of a run, as curves on the scale of nines.

use crate::FineNanos;
use crate::counts::Counts;
use crate::cpu::SUPPORT;
use jitterscope_model::{
    CpuId, MessageTimes, PipelineRole, ProbeResult, PutInOrder, RunManifest, TickRate, WakeupResult,
};
use std::collections::HashMap;

/// The number of CPUs with their own curve.
const MOST_CPUS: usize = 4;

/// The quantity of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveOf {
    /// How long a random moment waits for the next clock read, over all measured CPUs. Percentiles of the reads
    /// themselves would hide what is lost: ten million short ones a second outweigh any stall.
    Waits,
    /// The same for one CPU.
    WaitsOf(CpuId),
    /// The plain lateness of wake-ups.
    Lateness,
    /// The lateness with missed deadlines filled in.
    LatenessCorrected,
    /// From the actual publication to the reception.
    Transit(PipelineRole),
    /// From the intended publication to the reception.
    FromIntended(PipelineRole),
    Inter(PipelineRole),
    Stalls,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    pub of: CurveOf,
    /// The number of values; of waits, the time of all moments in nanoseconds.
    pub count: u64,
    /// Values, ascending, each with its count.
    pub counts: Vec<(FineNanos, u64)>,
}

impl CurveOf {
    /// Whether its values are those of moments, so that a long one counts by its length.
    #[must_use]
    pub fn is_of_moments(self) -> bool {
        matches!(self, CurveOf::Waits | CurveOf::WaitsOf(_))
    }
}

impl Curve {
    fn new(of: CurveOf, counts: impl Iterator<Item = (FineNanos, u64)>) -> Option<Curve> {
        let counts: Vec<(FineNanos, u64)> = counts.filter(|(_, n)| *n > 0).collect();
        let count = counts.iter().map(|(_, n)| *n).fold(0, u64::saturating_add);
        (count > 0).then_some(Curve { of, count, counts })
    }

    /// How many values of this length are in a part of all counts.
    fn held(&self, part: f64, length: f64) -> f64 {
        if self.of.is_of_moments() {
            part / length.max(1.0)
        } else {
            part
        }
    }

    /// Whether enough values lie above the value that this share of all does not exceed.
    #[must_use]
    pub fn supports(&self, share: f64) -> bool {
        let above = self.count as f64 * (1.0 - share) * (1.0 + 1e-9);
        self.held(above, self.quantile(share).0) >= SUPPORT as f64
    }

    /// The share above each value, on the scale of nines (0 at the smallest, 1 at 90 %, 2 at 99 %, ...), thinned to
    /// visible differences. It ends where [`SUPPORT`] values lie above: beyond that only the longest is shown
    /// ([`Curve::longest`]).
    #[must_use]
    pub fn nines(&self) -> Vec<(f64, f64)> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut below = 0u64;
        let mut last = None;
        for (value, n) in &self.counts {
            let above = self.count - below;
            if self.held(above as f64, value.0) < SUPPORT as f64 {
                break;
            }
            // The value holds from the share below it on.
            let above = above as f64 / self.count as f64;
            below = below.saturating_add(*n).min(self.count);
            let nines = -above.log10();
            let near = points.last().is_some_and(|(x, y)| {
                (nines - x).abs() < 0.008 && (value.0 / y.max(1e-3)).ln().abs() < 0.02
            });
            if !near {
                points.push((nines.max(0.0), value.0));
            }
            last = Some(value.0);
        }
        let end = last.map(|value| (self.held(self.count as f64, value) / SUPPORT as f64).log10());
        if let (Some((x, _)), Some(end), Some(value)) = (points.last(), end, last)
            && end > *x
            && !self.of.is_of_moments()
        {
            points.push((end, value));
        }
        points
    }

    /// The longest value, at the position where one of all lies above. Of moments, that is where half of the longest
    /// lies above half of the longest.
    #[must_use]
    pub fn longest(&self) -> (f64, f64) {
        let longest = self.counts.last().map_or(0.0, |(value, _)| value.0);
        let all = self.held(self.count as f64, longest / 2.0);
        (all.log10().max(0.0), longest)
    }

    /// The value that this share of all does not exceed.
    #[must_use]
    pub fn quantile(&self, share: f64) -> FineNanos {
        let rank = ((share * self.count as f64 * (1.0 - f64::EPSILON)).ceil() as u64).max(1);
        let mut seen = 0u64;
        let found = self.counts.iter().find(|(_, n)| {
            seen = seen.saturating_add(*n);
            seen >= rank
        });
        found
            .or(self.counts.last())
            .map_or(FineNanos(0.0), |(value, _)| *value)
    }
}

/// The curves of a run. `lengths`: the stalls, for a run whose manifest has no distribution.
pub(super) fn of(manifest: &RunManifest, lengths: HashMap<u64, u64>) -> Vec<Curve> {
    if let Some(pipeline) = &manifest.pipeline {
        let times = |of, times: &MessageTimes| {
            Curve::new(
                of,
                times
                    .plain
                    .iter()
                    .map(|(ns, n)| (FineNanos(*ns as f64), *n)),
            )
        };
        return pipeline
            .consumers
            .iter()
            .flat_map(|c| {
                [
                    times(CurveOf::Transit(c.role), &c.transit),
                    times(CurveOf::FromIntended(c.role), &c.from_intended),
                    times(CurveOf::Inter(c.role), &c.inter),
                ]
            })
            .flatten()
            .collect();
    }
    let control = manifest.idle_control();
    if !manifest.wakeups.is_empty() {
        let late = |of, counts: fn(&WakeupResult) -> &Vec<(u64, u64)>| {
            let measured = manifest.wakeups.iter().filter(|w| Some(w.cpu) != control);
            let all = measured.fold(Counts::default(), |sum, w| {
                sum.merged(&Counts::of(counts(w)))
            });
            Curve::new(of, all.iter().map(|(ns, n)| (FineNanos(ns as f64), n)))
        };
        return [
            late(CurveOf::Lateness, |w| &w.plain),
            late(CurveOf::LatenessCorrected, |w| &w.corrected),
        ]
        .into_iter()
        .flatten()
        .collect();
    }
    if !manifest.results.is_empty() {
        return waits(&manifest.results, manifest.rate);
    }
    let mut lengths: Vec<(u64, u64)> = lengths.into_iter().collect();
    lengths.sort_unstable();
    Curve::new(
        CurveOf::Stalls,
        lengths.into_iter().map(|(ns, n)| (FineNanos(ns as f64), n)),
    )
    .into_iter()
    .collect()
}

fn waits(results: &[ProbeResult], rate: TickRate) -> Vec<Curve> {
    let curve = |of, counts: &Counts| {
        let waits = counts.waits().map(|(ticks, time)| {
            let time = FineNanos::from_ticks(time, rate).rounded();
            (FineNanos::from_ticks(ticks, rate), time.0)
        });
        Curve::new(of, waits)
    };
    if results.len() == 1 {
        let counts = Counts::deltas(&results[0]);
        return curve(CurveOf::WaitsOf(results[0].cpu), &counts)
            .into_iter()
            .collect();
    }
    let all = results
        .iter()
        .fold(Counts::default(), |sum, r| sum.merged(&Counts::deltas(r)));
    let mut worst: Vec<&ProbeResult> = results.iter().collect();
    worst.order_by_key(|r| (std::cmp::Reverse(r.max_ticks), r.cpu));
    worst.truncate(MOST_CPUS);
    worst.order_by_key(|r| r.cpu);
    let each = worst
        .into_iter()
        .filter_map(|r| curve(CurveOf::WaitsOf(r.cpu), &Counts::deltas(r)));
    curve(CurveOf::Waits, &all)
        .into_iter()
        .chain(each)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(counts: &[(u64, u64)]) -> Curve {
        Curve::new(
            CurveOf::Stalls,
            counts.iter().map(|(ns, n)| (FineNanos(*ns as f64), *n)),
        )
        .unwrap()
    }

    #[test]
    fn the_nines_are_where_they_should_be() {
        let points = curve(&[(10, 900), (100, 90), (1000, 9), (9000, 1)]).nines();
        let near = |(x, y): (f64, f64), (wx, wy): (f64, f64)| (x - wx).abs() < 1e-9 && y == wy;
        // Fewer than ten lie beyond 99 %: only the longest is shown there.
        let wanted = [(0.0, 10.0), (1.0, 100.0), (2.0, 1000.0)];
        assert_eq!(points.len(), wanted.len());
        assert!(
            points
                .iter()
                .zip(wanted)
                .all(|(got, wanted)| near(*got, wanted)),
            "{points:?}"
        );
    }

    #[test]
    fn lines_end_where_ten_lie_above_and_the_longest_is_told_apart() {
        for (below, above) in [(9_990, 10), (9_991, 9)] {
            let curve = curve(&[(10, below), (500, above - 1), (7_000, 1)]);
            let points = curve.nines();
            let end = points.last().copied().unwrap();
            assert!((end.0 - 3.0).abs() < 1e-9, "{points:?}");
            assert_eq!(end.1, if above == 10 { 500.0 } else { 10.0 });
            assert_eq!(curve.longest(), (4.0, 7_000.0));
        }
        let few = curve(&[(10, 5), (20, 4)]);
        assert_eq!((few.nines(), few.longest().1), (vec![], 20.0));
    }

    #[test]
    fn quantiles_are_of_the_counts() {
        let curve = curve(&[(10, 900), (100, 90), (1000, 9), (9000, 1)]);
        assert_eq!(
            [0.5, 0.9, 0.99, 0.999, 1.0].map(|q| curve.quantile(q).0),
            [10.0, 10.0, 100.0, 1000.0, 9000.0]
        );
    }

    /// Of ten seconds, 7.2 are lost in stalls of a millisecond; between them a read takes 10 ns.
    #[test]
    fn a_loss_is_seen_from_the_median_on() {
        let at_share = |lost: f64| {
            let reads = ((1.0 - lost) * 1e9) as u64;
            let stalls = (lost * 1e4) as u64;
            let counts = Counts::of(&[(10, reads), (1_000_000, stalls)]);
            let waits = counts
                .waits()
                .map(|(ns, time)| (FineNanos(ns), time as u64));
            Curve::new(CurveOf::Waits, waits).unwrap()
        };
        let [quiet, loaded] = [at_share(0.0001), at_share(0.72)];
        assert!(
            (loaded.count as f64 / 1e10 - 1.0).abs() < 1e-3,
            "{}",
            loaded.count
        );
        // P(R > r) = 0.72 * (1 - r / 1 ms), which is a half at 306 us and a hundredth at 986 us.
        for (share, wanted) in [(0.5, 305_600.0), (0.99, 986_100.0)] {
            let found = loaded.quantile(share).0;
            assert!((found / wanted - 1.0).abs() < 0.03, "{share}: {found}");
            assert!(
                quiet.quantile(share).0 <= 10.5,
                "{share}: {:?}",
                quiet.quantile(share)
            );
        }
    }

    /// One stall of 900 ms in ten seconds supports a percentile as long as ten of its length lie above.
    #[test]
    fn a_line_of_moments_ends_where_ten_waits_lie_above() {
        let counts = Counts::of(&[(10, 910_000_000), (900_000_000, 1)]);
        let waits = counts
            .waits()
            .map(|(ns, time)| (FineNanos(ns), time as u64));
        let curve = Curve::new(CurveOf::Waits, waits).unwrap();
        let (x, end) = curve.nines().pop().unwrap();
        // 900 ms - r is ten times r at 82 ms.
        assert!((end / 81.8e6 - 1.0).abs() < 0.05, "{end}");
        let (mark, longest) = curve.longest();
        assert!(mark > x && longest == 900e6, "{x} {mark}");
        assert!(curve.supports(0.9) && !curve.supports(0.99));
    }

    #[test]
    fn many_values_that_look_alike_are_few_points() {
        let many: Vec<(u64, u64)> = (100_000..120_000).map(|v| (v, 1)).collect();
        assert!(curve(&many).nines().len() < 1500);
    }
}
