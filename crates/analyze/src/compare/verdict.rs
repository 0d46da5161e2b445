//! What a comparison comes to.

use super::design::Design;
use super::effect::{Effect, Interval, middle};
use super::poisson::{Count, rate_ratio};
use super::{Grain, Margin, Scale, fewest, needed, noise};
use serde::Serialize;

/// What can be said of the second arm beside the first. Of all figures less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Less was lost, and not by chance.
    Better,
    /// More was lost, and not by chance.
    Worse,
    /// It differs by less than what matters.
    Equivalent,
    /// It is undecided.
    Inconclusive,
    /// It was there in neither.
    NotSeen,
}

/// Why it is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "because")]
pub enum Undecided {
    /// One run an arm says nothing of how runs differ.
    SingleRuns,
    /// One run an arm, and what is counted came in bursts.
    Bursts {
        /// Variance over mean of the counts of its blocks.
        dispersion: f64,
    },
    /// No test of so few runs can come out.
    TooFewRuns {
        /// Runs an arm that could.
        fewest: usize,
    },
    /// It may be chance, and it may be more than what matters.
    Chance,
    /// Not every run has the figure.
    NotMeasured,
}

/// How one figure of the second arm stands beside that of the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What can be said.
    pub verdict: Verdict,
    /// Why nothing can; null where something can.
    pub undecided: Option<Undecided>,
    /// What `change` and its bounds are.
    pub scale: Scale,
    /// The first arm's figure: the geometric mean of its runs, or the mean where some are zero.
    pub first: Option<f64>,
    /// The second arm's.
    pub second: Option<f64>,
    /// By how much the second differs, as a share of the first (-0.3: a third less) or in the figure's unit.
    pub change: Option<f64>,
    /// Where that lies, at one minus the test's alpha; null for single runs.
    pub interval: Option<Interval>,
    /// The same at 90 %: within the margin it is equivalent, below its upper end it is not worse.
    pub interval_90: Option<Interval>,
    /// What counts as no difference, in the unit of `change`.
    pub margin: f64,
    /// The probability that chance alone does this, adjusted for what was tested beside it.
    pub probability: Option<f64>,
    /// What such a probability had to be at most.
    pub alpha: f64,
    /// The change that two arms of one setting would show at most, as runs scatter here.
    pub noise_floor: Option<f64>,
    /// Runs an arm beyond those there are that would decide; null where nothing is to be decided, or no
    /// number that anybody makes would.
    pub more_runs: Option<usize>,
    /// Below which rates a second of both arms lie that saw nothing, at 95 %.
    pub not_seen_below_per_sec: Option<[f64; 2]>,
}

impl Comparison {
    /// Whether the second arm is not worse beyond the margin, at 95 %.
    #[must_use]
    pub fn not_worse(&self) -> bool {
        match self.verdict {
            Verdict::Better | Verdict::Equivalent | Verdict::NotSeen => true,
            // Chance may be excluded where what it differs by does not matter.
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

    /// Of several runs, where `probability` is what the test says and `grain` what the figure rests on.
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
        // However alike the runs are, what they count or read from buckets is known no better than that.
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
        // What the test could not tell apart whatever it is, is not alike for that either.
        let alike = runs >= least
            && found
                .interval_90
                .is_some_and(|interval| margin.holds(&interval, scale, middles[0]));
        // Where chance is excluded there is a direction, however little it may matter.
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
            // A number that was reached already was a hope; one more is the least that can decide.
            found.more_runs = all.map(|all| all.saturating_sub(runs).max(1));
        }
        found
    }

    /// Of two counts, one run an arm, where `probability` is what the test says. `dispersion` is that of the
    /// blocks of the runs, the higher of both.
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
        // A ratio has bounds even where one of the counts is zero; they are given on the scale of the change.
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

    /// Of what was there in neither arm, in so many seconds each.
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
            // What is the same has none, whatever a test says.
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
        // From twice a second to none: all of it less, to what none of sixteen leaves possible (20.6 %).
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
