//! The resolution of a figure: how exactly it can be known even if all runs agree.
//!
//! Three events in each of six runs show no scatter, yet the rate is not known exactly. So an interval is never
//! narrower than the Poisson error of its counts, or the histogram bucket behind it, allows.

use super::distribution::{normal_quantile, poisson_bounds};
use super::poisson::{Count, rate_ratio};
use super::sample::mean;
use super::{Interval, Margin, Scale};

/// The number of bisections of a probability.
const HALVINGS: usize = 30;

/// The basis of one run's figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Basis {
    /// Many lengths, each measured to a clock tick: equal values of two runs mean an equal figure.
    Lengths,
    /// A count of events. Also the basis of the time that the events took: the time is known no better than the count,
    /// because varying lengths only add scatter.
    Events(Count),
    /// A percentile from a bucket of this width, as a share of the value.
    Bucket(f64),
    /// A percentile with fewer than ten values above it, next to the maximum: its scatter between runs is all that is
    /// known about it. A run this many times as long would have ten.
    Few(f64),
}

/// The basis of the figure of two arms, pooled over their runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Grain {
    /// The scatter between runs is the whole uncertainty.
    #[default]
    Fine,
    /// The pooled counts of the arms.
    Counted([Count; 2]),
    /// The widest bucket, as a share of the figure.
    Buckets(f64),
}

impl Grain {
    /// The basis of two arms. If their runs differ in kind, only their scatter counts.
    #[must_use]
    pub fn of(arms: [&[Basis]; 2]) -> Grain {
        let mut counts = [Count {
            events: 0,
            seconds: 0.0,
        }; 2];
        let (mut counted, mut widest, mut buckets, mut all) = (0, 0.0f64, 0, 0);
        for (arm, count) in arms.iter().zip(&mut counts) {
            for basis in *arm {
                all += 1;
                match *basis {
                    Basis::Lengths | Basis::Few(_) => {}
                    Basis::Events(more) => {
                        counted += 1;
                        count.events = count.events.saturating_add(more.events);
                        count.seconds += more.seconds;
                    }
                    Basis::Bucket(share) => {
                        buckets += 1;
                        widest = widest.max(share);
                    }
                }
            }
        }
        match all {
            0 => Grain::Fine,
            all if counted == all => Grain::Counted(counts),
            all if buckets == all => Grain::Buckets(widest),
            _ => Grain::Fine,
        }
    }

    /// The narrowest possible interval of the change between figures with these centres: for a ratio of rates given the
    /// sum of both counts (Clopper and Pearson); for a difference from the exact bounds of each count (Garwood),
    /// combined by the method of Zou and Donner. `None` if the scatter of the runs suffices.
    pub(super) fn interval(
        self,
        scale: Scale,
        first: f64,
        second: f64,
        level: f64,
    ) -> Option<Interval> {
        let bounds = match (self, scale) {
            (Grain::Fine, _) => return None,
            (Grain::Counted([a, b]), Scale::Ratio) => {
                let ratio = rate_ratio(a, b, level)?;
                // Scaled to the figure itself: stolen time is in no fixed proportion to a count.
                let factor = second / first / (b.rate() / a.rate());
                (ratio.low * factor - 1.0, ratio.high * factor - 1.0)
            }
            (Grain::Counted([a, b]), Scale::Difference) => {
                difference([(first, a), (second, b)], level)?
            }
            (Grain::Buckets(share), Scale::Ratio) => {
                let ratio = second / first;
                (ratio / (1.0 + share) - 1.0, ratio * (1.0 + share) - 1.0)
            }
            (Grain::Buckets(share), Scale::Difference) => {
                let (change, step) = (second - first, share * first.max(second));
                (change - step, change + step)
            }
        };
        let (low, high) = bounds;
        (low.is_finite() && high.is_finite()).then_some(Interval { low, high, level })
    }

    /// The least standard error on the scale of the distance between the means of arms with so many runs: the Poisson
    /// error of the counts, or the rounding to buckets. 0 if the scatter of the runs suffices. Runs of one setting can
    /// change arms without changing it, as the test of a family requires. Without it, a count that differs by exactly one
    /// event in every pair has no scatter in one rearrangement. Its infinite t there makes every change of another figure
    /// look like chance.
    pub(super) fn least_error(self, scale: Scale, arms: [&[f64]; 2]) -> f64 {
        let runs = arms.map(|arm| arm.len() as f64);
        let of_both = 1.0 / runs[0] + 1.0 / runs[1];
        let share = match self {
            Grain::Fine => return 0.0,
            Grain::Counted([a, b]) => {
                ((runs[0] + runs[1]) / a.events.saturating_add(b.events) as f64 * of_both).sqrt()
            }
            // A rounded number has the deviation of a uniform one: its width over the root of 12.
            Grain::Buckets(width) => width * (of_both / 12.0).sqrt(),
        };
        let error = match scale {
            Scale::Ratio => share,
            Scale::Difference => share * mean(&arms.concat()),
        };
        if error.is_finite() { error } else { 0.0 }
    }

    /// The smallest alpha at which the narrowest interval excludes zero, if that is more than `least`; else 0.
    pub(super) fn probability(self, scale: Scale, first: f64, second: f64, least: f64) -> f64 {
        let excludes = |alpha: f64| {
            let interval = self.interval(scale, first, second, 1.0 - alpha);
            interval.is_none_or(|of| of.low > 0.0 || of.high < 0.0)
        };
        if excludes(least) {
            return 0.0;
        }
        let (mut low, mut high) = (least, 1.0);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if excludes(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }

    /// Whether counts `times` as large could show two equal arms to be equivalent at this level.
    pub(super) fn could_hold(
        self,
        times: f64,
        margin: Margin,
        scale: Scale,
        middle: f64,
        level: f64,
    ) -> bool {
        let larger = |count: Count| Count {
            events: (count.events as f64 * times).round() as u64,
            seconds: count.seconds * times,
        };
        let grain = match self {
            Grain::Counted(counts) => Grain::Counted(counts.map(larger)),
            other => other,
        };
        let narrowest = grain.interval(scale, middle, middle, level);
        narrowest.is_none_or(|narrowest| margin.holds(&narrowest, scale, middle))
    }

    /// The standard deviation on the scale, of one pair or one run of each arm, at which `runs` runs have the narrowest
    /// interval of this level. `None` if the scatter of the runs suffices, or more runs do not narrow it.
    pub(super) fn deviation(
        self,
        scale: Scale,
        first: f64,
        second: f64,
        runs: usize,
        level: f64,
    ) -> Option<f64> {
        let Grain::Counted(_) = self else { return None };
        let Interval { low, high, .. } = self.interval(scale, first, second, level)?;
        let width = match scale {
            Scale::Ratio => high.ln_1p() - low.ln_1p(),
            Scale::Difference => high - low,
        };
        let error = width / 2.0 / normal_quantile(0.5 + level / 2.0);
        (error.is_finite()).then(|| error * (runs as f64).sqrt())
    }
}

/// The bounds of the difference of two figures, each with its count.
fn difference([first, second]: [(f64, Count); 2], level: f64) -> Option<(f64, f64)> {
    let (a, b) = (first.1, second.1);
    if a.seconds <= 0.0 || b.seconds <= 0.0 || a.events.saturating_add(b.events) == 0 {
        return None;
    }
    // The figure of one event per second; an arm without events uses that of the other.
    let unit = |(figure, count): (f64, Count)| (count.events > 0).then(|| figure / count.rate());
    let bounds = |of: (f64, Count), other: (f64, Count)| {
        let unit = unit(of).or(unit(other)).unwrap_or(1.0);
        let (low, high) = poisson_bounds(of.1.events, level);
        (low / of.1.seconds * unit, high / of.1.seconds * unit)
    };
    let ((low_a, high_a), (low_b, high_b)) = (bounds(first, second), bounds(second, first));
    let change = second.0 - first.0;
    Some((
        change - (second.0 - low_b).hypot(high_a - first.0),
        change + (high_b - second.0).hypot(first.0 - low_a),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(events: u64) -> Count {
        Count {
            events,
            seconds: 16.0,
        }
    }

    #[test]
    fn what_runs_rest_on_adds_up() {
        let run = Basis::Events(Count {
            events: 3,
            seconds: 8.0,
        });
        assert_eq!(
            Grain::of([&[run, run], &[run, run]]),
            Grain::Counted([count(6), count(6)])
        );
        assert_eq!(
            Grain::of([&[Basis::Bucket(0.001)], &[Basis::Bucket(0.02)]]),
            Grain::Buckets(0.02)
        );
        assert_eq!(
            Grain::of([&[Basis::Lengths], &[Basis::Lengths]]),
            Grain::Fine
        );
        assert_eq!(Grain::of([&[], &[]]), Grain::Fine);
    }

    #[test]
    fn an_interval_lies_about_the_figure_as_its_counts_leave_it() {
        let counted = Grain::Counted([count(10), count(40)]);
        let of = |first, second| counted.interval(Scale::Ratio, first, second, 0.95).unwrap();
        let rate = of(10.0 / 16.0, 40.0 / 16.0);
        assert!(
            rate.low > 0.9 && rate.low < 1.1 && rate.high > 7.5 && rate.high < 8.5,
            "{rate:?}"
        );
        // Each event took half as long, with the same uncertainty.
        let stolen = of(2e-6, 4e-6);
        assert!(
            (stolen.high + 1.0 - (rate.high + 1.0) / 2.0).abs() < 1e-9,
            "{stolen:?}"
        );
        assert_eq!(Grain::Fine.interval(Scale::Ratio, 1.0, 1.0, 0.95), None);
    }

    #[test]
    fn a_difference_from_none_has_the_bounds_of_each_count() {
        // 8 and 0: 3.454 to 15.763, and up to 3.689 (tables of exact Poisson bounds at 95 %).
        let counted = Grain::Counted([count(8), count(0)]);
        let found = counted.interval(Scale::Difference, 0.5, 0.0, 0.95).unwrap();
        let low = (-8.0 - (15.763f64 - 8.0)) / 16.0;
        let high = (-8.0 + 3.689f64.hypot(8.0 - 3.454)) / 16.0;
        assert!(
            (found.low - low).abs() < 1e-3 && (found.high - high).abs() < 1e-3,
            "{found:?}"
        );
        let nothing = Grain::Counted([count(0), count(0)]);
        assert_eq!(nothing.interval(Scale::Difference, 0.0, 0.0, 0.95), None);
    }

    #[test]
    fn buckets_are_as_wide_as_they_are() {
        let found = Grain::Buckets(0.01)
            .interval(Scale::Ratio, 200.0, 200.0, 0.95)
            .unwrap();
        assert!(
            (found.high - 0.01).abs() < 1e-12 && found.low < -0.0099,
            "{found:?}"
        );
        let zero = Grain::Buckets(0.01)
            .interval(Scale::Difference, 0.0, 100.0, 0.95)
            .unwrap();
        assert_eq!((zero.low, zero.high), (99.0, 101.0));
    }

    #[test]
    fn the_least_error_is_that_of_poisson_counts_or_of_rounding() {
        // Two counts of 50: their logarithms differ with the variance 1/50 + 1/50, whatever the number of runs.
        let counted = Grain::Counted([count(50), count(50)]);
        let arm = [3.0; 4];
        let ratio = counted.least_error(Scale::Ratio, [&arm, &arm]);
        assert!((ratio - 0.2).abs() < 1e-12, "{ratio}");
        // The error of a figure of 3 is three times its share.
        let difference = counted.least_error(Scale::Difference, [&arm, &arm]);
        assert!((difference - 0.6).abs() < 1e-12, "{difference}");
        // Twice as many runs in one arm: 67 and 33 events by chance.
        let uneven = counted.least_error(Scale::Ratio, [&[3.0; 4], &[3.0; 2]]);
        assert!(
            (uneven - (0.015f64 + 0.03).sqrt()).abs() < 1e-12,
            "{uneven}"
        );
        let rounded = Grain::Buckets(0.12).least_error(Scale::Ratio, [&[7.0; 6], &[7.0; 6]]);
        assert!((rounded - 0.02).abs() < 1e-12, "{rounded}");
        let none = Grain::Counted([count(0), count(0)]);
        for grain in [Grain::Fine, none] {
            assert_eq!(grain.least_error(Scale::Difference, [&[0.0], &[0.0]]), 0.0);
        }
    }

    #[test]
    fn few_events_could_never_tell_that_arms_are_alike_and_many_could() {
        let could = |events| {
            Grain::Counted([count(events); 2]).could_hold(
                2.0,
                Margin::default(),
                Scale::Ratio,
                1.0,
                0.9,
            )
        };
        assert!(!could(50) && could(500));
        assert!(Grain::Fine.could_hold(1.0, Margin::default(), Scale::Ratio, 1.0, 0.9));
    }

    #[test]
    fn intervals_scale_with_figures_and_invert_with_swapped_arms() {
        let of = |[a, b]: [(f64, Count); 2]| {
            Grain::Counted([a.1, b.1])
                .interval(Scale::Difference, a.0, b.0, 0.95)
                .unwrap()
        };
        let longer = |events| Count {
            events,
            seconds: 40.0,
        };
        for (a, b) in [
            (count(8), longer(12)),
            (count(8), longer(0)),
            (count(0), longer(5)),
        ] {
            let one = of([(a.rate(), a), (b.rate(), b)]);
            assert!(
                one.low < b.rate() - a.rate() && b.rate() - a.rate() < one.high,
                "{one:?}"
            );
            // Each event takes three times as long.
            let stolen = of([(3.0 * a.rate(), a), (3.0 * b.rate(), b)]);
            let turned = of([(b.rate(), b), (a.rate(), a)]);
            for (found, wanted) in [
                (stolen.low, 3.0 * one.low),
                (stolen.high, 3.0 * one.high),
                (turned.low, -one.high),
                (turned.high, -one.low),
            ] {
                assert!(
                    (found - wanted).abs() < 1e-9,
                    "{a:?} {b:?}: {found} {wanted}"
                );
            }
        }
        // 8 in 16 s and 12 in 40 s: 3.454 to 15.763, and 6.201 to 20.962 (tables at 95 %).
        let found = of([(0.5, count(8)), (0.3, longer(12))]);
        let low = -0.2 - (0.3 - 6.201f64 / 40.0).hypot(15.763 / 16.0 - 0.5);
        let high = -0.2 + (20.962f64 / 40.0 - 0.3).hypot(0.5 - 3.454 / 16.0);
        assert!(
            (found.low - low).abs() < 1e-4 && (found.high - high).abs() < 1e-4,
            "{found:?}"
        );
        let never = Count {
            events: 3,
            seconds: 0.0,
        };
        for arms in [[never, count(3)], [count(3), never]] {
            assert_eq!(
                Grain::Counted(arms).interval(Scale::Difference, 1.0, 1.0, 0.95),
                None
            );
        }
    }

    #[test]
    fn a_bucket_is_as_wide_to_either_side_of_any_change() {
        let found = Grain::Buckets(0.01)
            .interval(Scale::Ratio, 200.0, 100.0, 0.95)
            .unwrap();
        assert!((found.low - (0.5 / 1.01 - 1.0)).abs() < 1e-12, "{found:?}");
        assert!((found.high - (0.5 * 1.01 - 1.0)).abs() < 1e-12, "{found:?}");
        let found = Grain::Buckets(0.01)
            .interval(Scale::Difference, 200.0, 100.0, 0.95)
            .unwrap();
        assert_eq!((found.low, found.high), (-102.0, -98.0));
        assert_eq!(
            Grain::of([&[Basis::Bucket(0.1)], &[Basis::Lengths]]),
            Grain::Fine
        );
        assert_eq!(
            Grain::of([&[Basis::Bucket(0.1)], &[Basis::Events(count(1))]]),
            Grain::Fine
        );
        assert_eq!(
            Grain::of([&[Basis::Few(2.0)], &[Basis::Few(9.0)]]),
            Grain::Fine
        );
        // There is no ratio from zero events.
        let from_none = Grain::Counted([count(0), count(5)]);
        assert_eq!(from_none.interval(Scale::Ratio, 1.0, 1.0, 0.95), None);
    }

    #[test]
    fn runs_that_scatter_by_their_counts_alone_have_the_narrowest_interval() {
        let grain = Grain::Counted([count(10), count(40)]);
        for scale in [Scale::Ratio, Scale::Difference] {
            let least = grain.interval(scale, 0.625, 2.5, 0.9).unwrap();
            let width = match scale {
                Scale::Ratio => ((1.0 + least.high) / (1.0 + least.low)).ln(),
                Scale::Difference => least.width(),
            };
            for runs in [1usize, 4] {
                let deviation = grain.deviation(scale, 0.625, 2.5, runs, 0.9).unwrap();
                let half = 1.644_854 * deviation / (runs as f64).sqrt();
                assert!(
                    (2.0 * half - width).abs() < 1e-5,
                    "{scale:?} {runs}: {half} {width}"
                );
            }
        }
        assert_eq!(Grain::Fine.deviation(Scale::Ratio, 1.0, 1.0, 4, 0.9), None);
        assert_eq!(
            Grain::Buckets(0.1).deviation(Scale::Ratio, 1.0, 1.0, 4, 0.9),
            None
        );
    }
}
