//! The verdict of a comparison.

use super::design::Design;
use super::effect::{Effect, Interval, middle};
use super::poisson::{Count, rate_ratio};
use super::{Grain, Margin, Scale, fewest, needed, noise};
use serde::Serialize;

/// The verdict on the second arm against the first. Lower figures are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Less was lost, and not by chance.
    Better,
    /// More was lost, and not by chance.
    Worse,
    /// The difference is below the margin.
    Equivalent,
    Inconclusive,
    /// Neither arm saw it.
    NotSeen,
}

/// Why a comparison is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "because")]
pub enum Undecided {
    /// A single run in each arm shows no run-to-run variation.
    SingleRuns,
    /// Single runs whose events came in bursts.
    Bursts {
        /// Variance over mean of the counts of a run's blocks.
        dispersion: f64,
    },
    /// The test cannot reach significance with so few runs.
    TooFewRuns {
        /// The fewest runs in each arm that could.
        fewest: usize,
    },
    /// The difference may be chance, and may exceed the margin.
    Chance,
    /// Not every run has the figure.
    NotMeasured,
}

/// One figure of the second arm, compared with the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What can be said.
    pub verdict: Verdict,
    /// Why there is no verdict; null if there is one.
    pub undecided: Option<Undecided>,
    /// The scale of `change` and its bounds.
    pub scale: Scale,
    /// The first arm's figure: the geometric mean of its runs, or the mean if some are zero.
    pub first: Option<f64>,
    /// The second arm's.
    pub second: Option<f64>,
    /// The difference of the second arm, as a share of the first (-0.3: 30 % less) or in the figure's unit.
    pub change: Option<f64>,
    /// The confidence interval of `change`, at one minus the test's alpha; null for single runs.
    pub interval: Option<Interval>,
    /// The interval at 90 %. If it lies within the margin the arms are equivalent; if its upper end does, the second is
    /// not worse.
    pub interval_90: Option<Interval>,
    /// The largest difference that does not matter, in the unit of `change`.
    pub margin: f64,
    /// The probability that chance alone does this, adjusted for the other tests.
    pub probability: Option<f64>,
    /// The largest probability that counts as a difference.
    pub alpha: f64,
    /// The largest change that two arms of one setting would show, given the scatter of the runs.
    pub noise_floor: Option<f64>,
    /// Further runs in each arm that would decide; null if there is nothing to decide, or no practical number would.
    pub more_runs: Option<usize>,
    /// The 95 % upper bounds of both rates per second, if neither arm saw an event.
    pub not_seen_below_per_sec: Option<[f64; 2]>,
}

impl Comparison {
    /// Whether the second arm is not worse beyond the margin, at 95 %.
    #[must_use]
    pub fn not_worse(&self) -> bool {
        match self.verdict {
            Verdict::Better | Verdict::Equivalent | Verdict::NotSeen => true,
            // A change may be significant and still be within the margin.
            Verdict::Worse | Verdict::Inconclusive => self
                .interval_90
                .is_some_and(|interval| interval.high <= self.margin),
        }
    }

    fn of(first: &[f64], second: &[f64], margin: Margin, alpha: f64) -> Comparison {
        let scale = Scale::of(first.iter().chain(second).copied());
        let figure = |arm: &[f64]| (!arm.is_empty()).then(|| middle(scale, arm));
        let (a, b) = (figure(first), figure(second));
        Comparison {
            verdict: Verdict::Inconclusive,
            undecided: None,
            scale,
            first: a,
            second: b,
            change: a.zip(b).map(|(a, b)| match scale {
                Scale::Ratio => b / a - 1.0,
                Scale::Difference => b - a,
            }),
            interval: None,
            interval_90: None,
            margin: margin.change(scale, a.unwrap_or(0.0)),
            probability: None,
            alpha,
            noise_floor: None,
            more_runs: None,
            not_seen_below_per_sec: None,
        }
    }

    /// A figure that not every run has.
    pub(super) fn not_measured(alpha: f64) -> Comparison {
        let undecided = Some(Undecided::NotMeasured);
        Comparison {
            undecided,
            ..Comparison::of(&[], &[], Margin::default(), alpha)
        }
    }

    /// Several runs; `probability` is the test's, `grain` the resolution of the figure.
    pub(super) fn of_runs(
        design: Design,
        [first, second]: [&[f64]; 2],
        grain: Grain,
        margin: Margin,
        alpha: f64,
        probability: f64,
    ) -> Comparison {
        let mut found = Comparison::of(first, second, margin, alpha);
        let (scale, level) = (found.scale, 1.0 - alpha);
        let effect = match design {
            Design::Paired => Effect::paired(first, second),
            Design::Unpaired => Effect::unpaired(first, second),
        };
        let floor = match design {
            Design::Paired => noise::of_pairs(first, second, scale, level),
            Design::Unpaired => noise::of_runs(first, second, scale, level),
        };
        let middles = [found.first.unwrap_or(0.0), found.second.unwrap_or(0.0)];
        // Identical runs are still no more exact than their counts or buckets.
        let least = |level: f64| grain.interval(scale, middles[0], middles[1], level);
        let noise = grain
            .interval(scale, middles[0], middles[0], level)
            .map_or(0.0, |least| least.high);
        found.noise_floor = floor.map(|distance| scale.change(distance).max(noise));
        found.probability = Some(probability);
        let runs = first.len().min(second.len());
        if let Some(effect) = &effect {
            let interval = |level: f64| effect.change_interval(level).and(least(level));
            (found.interval, found.interval_90) = (Some(interval(level)), Some(interval(0.9)));
        }
        let least = fewest(design, alpha);
        // If the test cannot reach significance, the arms do not count as equivalent.
        let alike = runs >= least
            && found
                .interval_90
                .is_some_and(|interval| margin.holds(&interval, scale, middles[0]));
        // A significant change has a direction, however small it is.
        found.verdict = match found.change {
            Some(change) if probability <= alpha && change < 0.0 => Verdict::Better,
            Some(change) if probability <= alpha && change > 0.0 => Verdict::Worse,
            _ if alike => Verdict::Equivalent,
            _ => Verdict::Inconclusive,
        };
        if found.verdict == Verdict::Inconclusive {
            found.undecided = Some(match runs {
                0 | 1 if first.len().max(second.len()) < 2 => Undecided::SingleRuns,
                few if few < least => Undecided::TooFewRuns { fewest: least },
                _ => Undecided::Chance,
            });
            let distance = margin.distance(scale, middles[0]);
            let counted = grain
                .deviation(scale, middles[0], middles[1], runs)
                .unwrap_or(0.0);
            let all = match effect {
                Some(effect) => {
                    let effect = Effect {
                        deviation: effect.deviation.max(counted),
                        ..effect
                    };
                    needed::runs(design, &effect, alpha, distance)
                }
                None => Some(least),
            };
            // The predicted number was reached without a decision; one more run is the least that can decide.
            found.more_runs = all.map(|all| all.saturating_sub(runs).max(1));
        }
        found
    }

    /// Two counts, one run in each arm; `probability` is the test's, `dispersion` the higher of the runs' blocks.
    pub(super) fn of_counts(
        first: Count,
        second: Count,
        dispersion: Option<f64>,
        margin: Margin,
        alpha: f64,
        probability: f64,
    ) -> Comparison {
        let mut found = Comparison::of(&[first.rate()], &[second.rate()], margin, alpha);
        let least = fewest(Design::Unpaired, alpha);
        match dispersion {
            Some(dispersion) if dispersion > 1.0 => {
                found.undecided = Some(Undecided::Bursts { dispersion });
                found.more_runs = Some(least - 1);
                return found;
            }
            None => {
                found.undecided = Some(Undecided::SingleRuns);
                found.more_runs = Some(least - 1);
                return found;
            }
            Some(_) => {}
        }
        found.probability = Some(probability);
        // A ratio has bounds even if one count is zero; they are on the scale of the change.
        let bounds = |level: f64| {
            let ratio = rate_ratio(first, second, level)?;
            let of = |ratio: f64| match found.scale {
                Scale::Ratio => ratio - 1.0,
                Scale::Difference => (ratio - 1.0) * first.rate(),
            };
            let interval = Interval {
                low: of(ratio.low),
                high: of(ratio.high),
                level,
            };
            (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
        };
        (found.interval, found.interval_90) = (bounds(1.0 - alpha), bounds(0.9));
        let alike = found
            .interval_90
            .is_some_and(|interval| margin.holds(&interval, found.scale, first.rate()));
        found.verdict = match found.change {
            Some(change) if probability <= alpha && change < 0.0 => Verdict::Better,
            Some(change) if probability <= alpha && change > 0.0 => Verdict::Worse,
            _ if alike => Verdict::Equivalent,
            _ => Verdict::Inconclusive,
        };
        if found.verdict == Verdict::Inconclusive {
            found.undecided = Some(Undecided::Chance);
            found.more_runs = Some(least - 1);
        }
        found
    }

    /// Neither arm saw the event; `seconds` are the observation times.
    pub(super) fn not_seen(
        seconds: [f64; 2],
        runs: [usize; 2],
        margin: Margin,
        alpha: f64,
    ) -> Comparison {
        let zeros = runs.map(|runs| vec![0.0; runs]);
        let below = seconds.map(|seconds| 3.0 / seconds);
        Comparison {
            verdict: Verdict::NotSeen,
            not_seen_below_per_sec: below.iter().all(|b| b.is_finite()).then_some(below),
            ..Comparison::of(&zeros[0], &zeros[1], margin, alpha)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LESS: [f64; 4] = [1.0, 1.1, 0.9, 1.0];
    const MORE: [f64; 4] = [2.0, 2.2, 1.8, 2.0];

    fn of_runs(first: &[f64], second: &[f64], probability: f64) -> Comparison {
        let (margin, alpha) = (Margin::default(), 0.05);
        Comparison::of_runs(
            Design::Unpaired,
            [first, second],
            Grain::Fine,
            margin,
            alpha,
            probability,
        )
    }

    fn of_counts(first: u64, second: u64, dispersion: f64, probability: f64) -> Comparison {
        let count = |events| Count {
            events,
            seconds: 8.0,
        };
        Comparison::of_counts(
            count(first),
            count(second),
            Some(dispersion),
            Margin::default(),
            0.05,
            probability,
        )
    }

    #[test]
    fn a_direction_takes_a_change_and_a_probability_of_alpha_at_most() {
        for (first, second, probability, wanted) in [
            (LESS, MORE, 0.05, Verdict::Worse),
            (MORE, LESS, 0.05, Verdict::Better),
            (LESS, MORE, 0.051, Verdict::Inconclusive),
            (MORE, LESS, 0.051, Verdict::Inconclusive),
            // Equal arms have no direction, whatever the test says.
            ([1.0; 4], [1.0; 4], 0.0, Verdict::Equivalent),
            ([1.0; 4], [1.0; 4], 1.0, Verdict::Equivalent),
        ] {
            let found = of_runs(&first, &second, probability);
            assert_eq!(
                (found.verdict, found.probability),
                (wanted, Some(probability)),
                "{found:?}"
            );
            let open = wanted == Verdict::Inconclusive;
            assert_eq!(
                (found.undecided.is_some(), found.more_runs.is_some()),
                (open, open)
            );
        }
        for (first, second, probability, wanted) in [
            (8, 0, 0.05, Verdict::Better),
            (0, 8, 0.05, Verdict::Worse),
            (8, 0, 0.051, Verdict::Inconclusive),
            (0, 8, 0.051, Verdict::Inconclusive),
            (100_000, 100_000, 0.0, Verdict::Equivalent),
            (8, 8, 0.0, Verdict::Inconclusive),
        ] {
            let found = of_counts(first, second, 1.0, probability);
            assert_eq!(
                (found.verdict, found.probability),
                (wanted, Some(probability)),
                "{found:?}"
            );
            let open = wanted == Verdict::Inconclusive;
            assert_eq!(found.more_runs, open.then_some(3));
        }
    }

    #[test]
    fn why_nothing_can_be_said_is_told() {
        let why = |first: &[f64], second: &[f64]| of_runs(first, second, 1.0).undecided;
        assert_eq!(why(&[1.0], &[2.0]), Some(Undecided::SingleRuns));
        assert_eq!(
            why(&[1.0], &[2.0, 2.1]),
            Some(Undecided::TooFewRuns { fewest: 4 })
        );
        assert_eq!(
            why(&LESS[..3], &MORE),
            Some(Undecided::TooFewRuns { fewest: 4 })
        );
        assert_eq!(why(&LESS, &MORE), Some(Undecided::Chance));
        let bursts = of_counts(8, 0, 1.001, 0.0);
        assert_eq!(
            bursts.undecided,
            Some(Undecided::Bursts { dispersion: 1.001 })
        );
        assert_eq!((bursts.interval, bursts.probability), (None, None));
    }

    #[test]
    fn a_ratio_of_counts_has_bounds_on_the_scale_of_the_change() {
        let near =
            |found: f64, wanted: f64| assert!((found - wanted).abs() < 2e-3, "{found} {wanted}");
        let ratio = rate_ratio(
            Count {
                events: 10,
                seconds: 8.0,
            },
            Count {
                events: 40,
                seconds: 8.0,
            },
            0.95,
        );
        let (found, ratio) = (
            of_counts(10, 40, 0.5, 1.0).interval.unwrap(),
            ratio.unwrap(),
        );
        near(found.low, ratio.low - 1.0);
        near(found.high, ratio.high - 1.0);
        // From twice a second to none: 100 % less, up to what zero of sixteen leaves possible (20.6 %).
        let gone = of_counts(16, 0, 0.5, 1.0);
        let interval = gone.interval.unwrap();
        near(interval.low, -2.0);
        near(interval.high, 2.0 * (0.205_9 / 0.794_1 - 1.0));
        assert_eq!(
            of_counts(0, 16, 0.5, 1.0).interval,
            None,
            "there is no ratio to none"
        );
    }

    #[test]
    fn what_lies_within_the_margin_at_ninety_per_cent_is_not_worse() {
        let of = |verdict, high: Option<f64>| {
            let interval_90 = high.map(|high| Interval {
                low: -0.5,
                high,
                level: 0.9,
            });
            Comparison {
                verdict,
                interval_90,
                margin: 0.1,
                ..Comparison::not_measured(0.05)
            }
            .not_worse()
        };
        for verdict in [Verdict::Worse, Verdict::Inconclusive] {
            assert_eq!(
                [Some(0.1), Some(0.101), None].map(|high| of(verdict, high)),
                [true, false, false]
            );
        }
        for verdict in [Verdict::Better, Verdict::Equivalent, Verdict::NotSeen] {
            assert!(of(verdict, None));
        }
    }

    #[test]
    fn what_was_not_looked_for_has_no_bound() {
        let of = |seconds| {
            Comparison::not_seen(seconds, [1, 1], Margin::default(), 0.05).not_seen_below_per_sec
        };
        assert_eq!([of([6.0, 3.0]), of([6.0, 0.0])], [Some([0.5, 1.0]), None]);
    }
}
