//! The verdict of a comparison.

use super::design::Design;
use super::effect::{Effect, Interval, middle};
use super::poisson::{Count, RUNS_DIFFER, rate_ratio};
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
    /// All runs of one arm precede those of the other, or nearly all: the setting cannot be told from the time.
    OneAfterTheOther,
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

/// What the test of a family found about one of its figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tested {
    /// The alpha of the family.
    pub(super) alpha: f64,
    /// The probability by chance, adjusted for the family.
    pub(super) probability: f64,
    /// The largest t that counts as chance in this family.
    pub(super) critical: f64,
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
    /// The confidence interval of `change`, at one minus the test's alpha and adjusted for the same figures: it excludes
    /// zero if and only if the test does. Those of all looks of an experiment hold together, at 95 %. Null for single
    /// runs, and if the arms were recorded one after the other.
    pub interval: Option<Interval>,
    /// The interval at one minus twice the alpha (98, 97 and 95 % at the looks of an experiment, else 90 %): two
    /// one-sided tests at alpha. If it lies within the margin the arms are equivalent; if its upper end does, the
    /// second is not worse.
    pub equivalence_interval: Option<Interval>,
    /// The largest difference that does not matter, in the unit of `change`.
    pub margin: f64,
    /// The probability that chance alone does this, adjusted for the other tests.
    pub probability: Option<f64>,
    /// The largest probability that counts as a difference.
    pub alpha: f64,
    /// The largest change that two arms of one setting would show, given the scatter of the runs.
    pub noise_floor: Option<f64>,
    /// The power: the smallest change that so many runs with this scatter find four times in five; null if they are too
    /// few for the test.
    pub detectable: Option<f64>,
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
            // A change may be significant, and still certainly be below the margin.
            Verdict::Worse | Verdict::Inconclusive => self
                .equivalence_interval
                .is_some_and(|interval| interval.high <= self.margin),
        }
    }

    /// Takes over the verdict of an earlier look, which is final.
    pub(super) fn settle(&mut self, verdict: Verdict) {
        if self.verdict != verdict {
            (self.verdict, self.undecided, self.more_runs) = (verdict, None, None);
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
            equivalence_interval: None,
            margin: margin.change(scale, a.unwrap_or(0.0)),
            probability: None,
            alpha,
            noise_floor: None,
            detectable: None,
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

    /// Several runs of each arm, recorded one arm after the other: the difference is shown, and nothing is claimed.
    pub(super) fn of_blocks(
        first: &[f64],
        second: &[f64],
        margin: Margin,
        alpha: f64,
    ) -> Comparison {
        let found = Comparison::of(first, second, margin, alpha);
        match first.len().max(second.len()) {
            1 => Comparison {
                undecided: Some(Undecided::SingleRuns),
                more_runs: Some(fewest(Design::Unpaired, alpha) - 1),
                ..found
            },
            _ => found.or_withheld(),
        }
    }

    /// The same; if it is undecided, then because of the order of its runs.
    pub(super) fn or_withheld(self) -> Comparison {
        match self.verdict {
            Verdict::Inconclusive => Comparison {
                undecided: Some(Undecided::OneAfterTheOther),
                more_runs: None,
                ..self
            },
            _ => self,
        }
    }

    /// Several runs; `grain` is the resolution of the figure.
    pub(super) fn of_runs(
        design: Design,
        [first, second]: [&[f64]; 2],
        grain: Grain,
        margin: Margin,
        tested: Tested,
    ) -> Comparison {
        let Tested {
            alpha,
            probability,
            critical,
        } = tested;
        let mut found = Comparison::of(first, second, margin, alpha);
        let (scale, level) = (found.scale, 1.0 - alpha);
        let effect = match design {
            Design::Paired => Effect::paired(first, second),
            Design::Unpaired | Design::Blocks => Effect::unpaired(first, second),
        };
        let floor = match design {
            Design::Paired => noise::of_pairs(first, second, scale, level),
            Design::Unpaired | Design::Blocks => noise::of_runs(first, second, scale, level),
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
        let counted = grain
            .deviation(scale, middles[0], middles[1], runs, 1.0 - 2.0 * alpha)
            .unwrap_or(0.0);
        let effect = effect.map(|effect| (effect, effect.limit(level, critical)));
        if let Some((effect, limit)) = &effect {
            let own = effect.change_interval_of(level, *limit).and(least(level));
            found.interval = Some(found.as_tested(own, probability <= alpha));
            let level = 1.0 - 2.0 * alpha;
            found.equivalence_interval = Some(effect.change_interval(level).and(least(level)));
            let error = effect.error.max(counted / (runs as f64).sqrt());
            let power = needed::quantile_of_power(design, runs);
            found.detectable = (runs >= fewest(design, alpha))
                .then(|| scale.change((limit + power) * error))
                .filter(|change| change.is_finite());
        }
        let effect = effect.map(|(effect, _)| effect);
        let least = fewest(design, alpha);
        // If the test cannot reach significance, the arms do not count as equivalent.
        let alike = runs >= least
            && found
                .equivalence_interval
                .is_some_and(|interval| margin.holds(&interval, scale, middles[0]));
        found.verdict = found.decided(alike, probability);
        if found.verdict == Verdict::Inconclusive {
            found.undecided = Some(match runs {
                0 | 1 if first.len().max(second.len()) < 2 => Undecided::SingleRuns,
                few if few < least => Undecided::TooFewRuns { fewest: least },
                _ => Undecided::Chance,
            });
            let distance = margin.distance(scale, middles[0]);
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

    /// The verdict: a change that is certainly within the margin is none, even if its direction is certain, too.
    fn decided(&self, alike: bool, probability: f64) -> Verdict {
        match self.change {
            _ if alike => Verdict::Equivalent,
            Some(change) if probability <= self.alpha && change < 0.0 => Verdict::Better,
            Some(change) if probability <= self.alpha && change > 0.0 => Verdict::Worse,
            _ => Verdict::Inconclusive,
        }
    }

    /// An interval as the test sees zero: excluded or not.
    fn as_tested(&self, interval: Interval, differs: bool) -> Interval {
        let (low, high) = (interval.low, interval.high);
        let (low, high) = match self.change {
            Some(change) if differs && change < 0.0 => (low, high.min(-f64::MIN_POSITIVE)),
            Some(change) if differs && change > 0.0 => (low.max(f64::MIN_POSITIVE), high),
            _ => (low.min(0.0), high.max(0.0)),
        };
        Interval {
            low,
            high,
            ..interval
        }
    }

    /// Two counts, one run or one stretch of time in each arm; `probability` is the test's, adjusted for `among` counts,
    /// `dispersion` the higher of the runs' blocks.
    pub(super) fn of_counts(
        first: Count,
        second: Count,
        dispersion: Option<f64>,
        margin: Margin,
        (alpha, among): (f64, usize),
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
        let bounds = |level: f64, runs_differ: f64| {
            let ratio = rate_ratio(first, second, level)?;
            let of = |ratio: f64| match found.scale {
                Scale::Ratio => ratio - 1.0,
                Scale::Difference => (ratio - 1.0) * first.rate(),
            };
            let interval = Interval {
                low: of(ratio.low / runs_differ),
                high: of(ratio.high * runs_differ),
                level,
            };
            (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
        };
        // As the test of each: what one run of each may differ by, and Holm's first step.
        found.interval = bounds(1.0 - alpha / among.max(1) as f64, RUNS_DIFFER);
        found.equivalence_interval = bounds(1.0 - 2.0 * alpha, 1.0);
        let alike = found
            .equivalence_interval
            .is_some_and(|interval| margin.holds(&interval, found.scale, first.rate()));
        found.verdict = found.decided(alike, probability);
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
            Tested {
                alpha,
                probability,
                critical: 0.0,
            },
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
            (0.05, 1),
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
    fn an_interval_excludes_zero_where_the_test_does() {
        for (first, second, probability) in [
            (LESS, MORE, 0.05),
            (LESS, MORE, 0.06),
            (MORE, LESS, 0.05),
            (MORE, LESS, 0.06),
            (LESS, [1.3, 1.0, 1.2, 1.1], 0.04),
            (LESS, [1.3, 1.0, 1.2, 1.1], 0.06),
        ] {
            let found = of_runs(&first, &second, probability);
            let interval = found.interval.unwrap();
            let excluded = interval.low > 0.0 || interval.high < 0.0;
            assert_eq!(excluded, probability <= 0.05, "{found:?}");
            assert_eq!(
                excluded,
                found.verdict != Verdict::Inconclusive,
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_change_that_is_surely_within_the_margin_is_none() {
        let shifted = LESS.map(|figure| figure * 1.02);
        let few: Vec<f64> = [1.0, 1.001, 0.999, 1.0].to_vec();
        let more: Vec<f64> = few.iter().map(|figure| figure * 1.02).collect();
        assert_eq!(of_runs(&few, &more, 0.03).verdict, Verdict::Equivalent);
        // Here it may be more.
        assert_eq!(of_runs(&LESS, &shifted, 0.03).verdict, Verdict::Worse);
    }

    #[test]
    fn the_limit_of_a_large_family_makes_its_intervals_wider() {
        let of = |critical| {
            let (margin, alpha, probability) = (Margin::default(), 0.05, 0.01);
            let tested = Tested {
                alpha,
                probability,
                critical,
            };
            Comparison::of_runs(
                Design::Unpaired,
                [&LESS, &MORE],
                Grain::Fine,
                margin,
                tested,
            )
        };
        let (one, many) = (of(0.0), of(5.0));
        assert!(many.interval.unwrap().width() > 1.5 * one.interval.unwrap().width());
        assert!(many.detectable.unwrap() > 1.3 * one.detectable.unwrap());
        assert_eq!(one.equivalence_interval, many.equivalence_interval);
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
        near(found.low, ratio.low / RUNS_DIFFER - 1.0);
        near(found.high, ratio.high * RUNS_DIFFER - 1.0);
        // From twice a second to none: 100 % less, up to what zero of sixteen leaves possible (20.6 %).
        let gone = of_counts(16, 0, 0.5, 1.0);
        let interval = gone.interval.unwrap();
        near(interval.low, -2.0);
        near(interval.high, 2.0 * (1.5 * 0.205_9 / 0.794_1 - 1.0));
        assert_eq!(
            of_counts(0, 16, 0.5, 1.0).interval,
            None,
            "there is no ratio to none"
        );
    }

    #[test]
    fn what_lies_within_the_margin_at_ninety_per_cent_is_not_worse() {
        let of = |verdict, high: Option<f64>| {
            let equivalence_interval = high.map(|high| Interval {
                low: -0.5,
                high,
                level: 0.9,
            });
            Comparison {
                verdict,
                equivalence_interval,
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
