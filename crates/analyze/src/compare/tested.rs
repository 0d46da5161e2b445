//! What the test of a family says of one of its figures: interval, probability and verdict, by one rule.

use super::design::Design;
use super::effect::Effect;
use super::needed::{self, reaches};
use super::{Comparison, Grain, Interval, Margin, Undecided, Verdict, fewest, noise};

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

impl Comparison {
    /// Several runs; `grain` is the resolution of the figure.
    pub(super) fn of_runs(
        design: Design,
        [first, second]: [&[f64]; 2],
        grain: Grain,
        margin: Margin,
        tested: Tested,
    ) -> Comparison {
        let alpha = tested.alpha;
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
        found.probability = Some(tested.probability);
        let runs = first.len().min(second.len());
        let counted = grain
            .deviation(scale, middles[0], middles[1], runs, 1.0 - 2.0 * alpha)
            .unwrap_or(0.0);
        // A test that cannot come out states nothing, neither a direction nor that the arms are alike.
        let enough = effect.filter(|_| reaches(design, [first.len(), second.len()], alpha));
        if let Some(effect) = &enough {
            let least_error = grain.least_error(scale, [first, second]);
            let half = effect.half_width(level, tested.critical, least_error);
            let own = effect.probability().max(tested.probability);
            found.interval = effect
                .change_interval_within(level, half)
                .filter(|own_interval| own <= alpha || !excludes_zero(own_interval))
                .map(|own| own.and(least(level)));
            let of_grain = match own <= alpha {
                true => grain.probability(scale, middles[0], middles[1], alpha),
                false => 0.0,
            };
            found.probability = Some(own.max(of_grain));
            let level = 1.0 - 2.0 * alpha;
            found.equivalence_interval = Some(effect.change_interval(level).and(least(level)));
            let error = effect.error.max(counted / (runs as f64).sqrt());
            let counted = Effect { error, ..*effect };
            let half = counted.half_width(level, tested.critical, least_error);
            let power = needed::quantile_of_power(design, runs);
            found.detectable =
                Some(scale.change(half + power * error)).filter(|change| change.is_finite());
        }
        let alike = found
            .equivalence_interval
            .is_some_and(|interval| margin.holds(&interval, scale, middles[0]));
        found.verdict = found.decided(alike);
        if found.verdict == Verdict::Inconclusive {
            let least = fewest(design, alpha);
            found.undecided = Some(match enough {
                None if first.len().max(second.len()) < 2 => Undecided::SingleRuns,
                None => Undecided::TooFewRuns { fewest: least },
                Some(_) => Undecided::Chance,
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
    fn decided(&self, alike: bool) -> Verdict {
        let chance = self.probability.is_none_or(|of| of > self.alpha);
        match self.interval {
            _ if alike => Verdict::Equivalent,
            Some(interval) if !chance && interval.high < 0.0 => Verdict::Better,
            Some(interval) if !chance && interval.low > 0.0 => Verdict::Worse,
            _ => Verdict::Inconclusive,
        }
    }
}

fn excludes_zero(interval: &Interval) -> bool {
    interval.low > 0.0 || interval.high < 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Basis, Count, Hypothesis, family};
    use jitterscope_testing::SplitMix64;

    const LESS: [f64; 4] = [1.0, 1.1, 0.9, 1.0];
    const MORE: [f64; 4] = [2.0, 2.2, 1.8, 2.0];

    fn of_runs(first: &[f64], second: &[f64], probability: f64) -> Comparison {
        let (margin, alpha) = (Margin::default(), 0.05);
        // As rearrangements give them: the observed t is beyond the critical one if the probability is small.
        let effect = Effect::unpaired(first, second);
        let t = effect.map_or(0.0, |effect| (effect.distance / effect.error).abs());
        let critical = if probability <= alpha {
            0.5 * t
        } else {
            2.0 * t
        };
        Comparison::of_runs(
            Design::Unpaired,
            [first, second],
            Grain::Fine,
            margin,
            Tested {
                alpha,
                probability,
                critical,
            },
        )
    }

    #[test]
    fn a_direction_takes_an_interval_without_zero() {
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
            assert_eq!(found.verdict, wanted, "{found:?}");
            let open = wanted == Verdict::Inconclusive;
            assert_eq!(
                (found.undecided.is_some(), found.more_runs.is_some()),
                (open, open)
            );
        }
    }

    /// Families of rates and times, with scatter and without, of pairs and labels.
    #[test]
    fn interval_probability_and_verdict_agree() {
        let mut random = SplitMix64(9);
        let mut directions = 0;
        for at in 0..600 {
            let (design, runs) = [
                (Design::Paired, 8),
                (Design::Paired, 6),
                (Design::Unpaired, 4),
                (Design::Unpaired, 5),
            ][at % 4];
            let among = 1 + random.below(6) as usize;
            let mut hypothesis = || {
                let (change, scatter) = (
                    [0.5, 0.8, 1.0, 1.02, 2.0][random.below(5) as usize],
                    [0.0, 0.02, 0.2][random.below(3) as usize],
                );
                let counts = random.below(2) == 0;
                let mean = [0.5, 3.0, 40.0][random.below(3) as usize];
                let mut arm = |factor: f64| -> Vec<f64> {
                    let mut one = || {
                        let figure = mean * factor * (scatter * random.normal()).exp();
                        if counts { figure.round() } else { figure }
                    };
                    (0..runs).map(|_| one()).collect()
                };
                let arms = [arm(1.0), arm(change)];
                let basis = arms.each_ref().map(|arm| -> Vec<Basis> {
                    let of = |figure: &f64| match counts {
                        true => Basis::Events(Count {
                            events: *figure as u64,
                            seconds: 1.0,
                        }),
                        false => Basis::Lengths,
                    };
                    arm.iter().map(of).collect()
                });
                let [first, second] = arms.map(|arm| arm.into_iter().map(Some).collect::<Vec<_>>());
                Hypothesis {
                    first,
                    second,
                    margin: Margin::default(),
                    seconds: [runs as f64; 2],
                    grain: Grain::of([&basis[0], &basis[1]]),
                }
            };
            let all: Vec<Hypothesis> = (0..among).map(|_| hypothesis()).collect();
            for found in family(design, 0.05, &all) {
                let directed = matches!(found.verdict, Verdict::Better | Verdict::Worse);
                directions += usize::from(directed);
                let Some(interval) = found.interval else {
                    assert!(!directed, "{found:?}");
                    continue;
                };
                let significant = found.probability.is_some_and(|of| of <= found.alpha);
                assert_eq!(excludes_zero(&interval), significant, "{found:?}");
                assert!(
                    significant && directed
                        || found.verdict == Verdict::Equivalent
                        || !significant && !directed,
                    "{found:?}"
                );
                // The bounds are computed: no bound stands just beyond zero.
                for bound in [interval.low, interval.high] {
                    assert!(bound == 0.0 || bound.abs() > 1e-300, "{found:?}");
                }
            }
        }
        assert!(directions > 100, "{directions}");
    }

    #[test]
    fn counts_that_leave_zero_open_leave_no_direction() {
        // One event more in every run: the runs do not scatter, and five against ten events is chance.
        let rates = |each: f64| vec![Some(each); 5];
        let basis = |events| {
            vec![
                Basis::Events(Count {
                    events,
                    seconds: 1.0
                });
                5
            ]
        };
        let hypothesis = Hypothesis {
            first: rates(1.0),
            second: rates(2.0),
            margin: Margin::default(),
            seconds: [5.0; 2],
            grain: Grain::of([&basis(1), &basis(2)]),
        };
        let grain = hypothesis.grain;
        let found = family(Design::Unpaired, 0.05, &[hypothesis]).remove(0);
        assert_eq!(found.verdict, Verdict::Inconclusive);
        assert!(found.probability.unwrap() > 0.05, "{found:?}");
        assert!(!excludes_zero(&found.interval.unwrap()), "{found:?}");
        // Twice the tail of the binomial: ten of fifteen or more.
        let wanted = 2.0 * (3003.0 + 1365.0 + 455.0 + 105.0 + 15.0 + 1.0) / 32768.0;
        let probability = grain.probability(found.scale, 1.0, 2.0, 0.05);
        assert!(
            (probability - wanted).abs() < 1e-6,
            "{probability} {wanted}"
        );
    }

    #[test]
    fn a_change_that_is_surely_within_the_margin_is_none() {
        let few: Vec<f64> = [1.0, 1.001, 0.999, 1.0].to_vec();
        let shifted = |by: f64| few.iter().map(|figure| figure * by).collect::<Vec<f64>>();
        assert_eq!(
            of_runs(&few, &shifted(1.02), 0.03).verdict,
            Verdict::Equivalent
        );
        // Here it is more.
        assert_eq!(of_runs(&few, &shifted(1.12), 0.03).verdict, Verdict::Worse);
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
    fn a_family_whose_test_bounds_nothing_has_no_interval() {
        let found = Comparison::of_runs(
            Design::Unpaired,
            [&LESS, &MORE],
            Grain::Fine,
            Margin::default(),
            Tested {
                alpha: 0.05,
                probability: 0.2,
                critical: f64::INFINITY,
            },
        );
        assert_eq!(
            (found.interval, found.verdict),
            (None, Verdict::Inconclusive)
        );
    }

    #[test]
    fn a_missing_verdict_has_a_reason() {
        let why = |first: &[f64], second: &[f64]| of_runs(first, second, 1.0).undecided;
        assert_eq!(why(&[1.0], &[2.0]), Some(Undecided::SingleRuns));
        assert_eq!(
            why(&[1.0], &[2.0, 2.1]),
            Some(Undecided::TooFewRuns { fewest: 4 })
        );
        assert_eq!(
            why(&LESS[..3], &LESS[..3]),
            Some(Undecided::TooFewRuns { fewest: 4 })
        );
        assert_eq!(why(&LESS, &MORE), Some(Undecided::Chance));
    }

    #[test]
    fn too_few_runs_state_nothing_however_alike_they_are() {
        for (first, second) in [
            (&[1.0, 1.001][..], &[1.0, 1.001][..]),
            (&[1.0; 3], &[1.0; 3]),
            (&[1.0], &[1.0]),
        ] {
            let found = of_runs(first, second, 1.0);
            assert_eq!(found.verdict, Verdict::Inconclusive, "{found:?}");
            assert!(!found.not_worse(), "{found:?}");
            assert_eq!((found.interval, found.equivalence_interval), (None, None));
        }
    }
}
