//! Families of hypotheses that share one alpha.

use super::flips::sign_flips;
use super::max_t::MaxT;
use super::shuffles::{Arms, permutations};
use super::tested::Tested;
use super::{Comparison, Design, Grain, Margin, Scale};

/// A figure of two arms, one number a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Hypothesis {
    /// The values of the first arm's runs; `None` for a run without the figure.
    pub first: Vec<Option<f64>>,
    /// The values of the second arm's runs.
    pub second: Vec<Option<f64>>,
    /// The largest difference that does not matter.
    pub margin: Margin,
    /// Seconds of observation in each arm.
    pub seconds: [f64; 2],
    /// The resolution of the figure: no interval is narrower.
    pub grain: Grain,
}

enum Kind {
    Missing,
    NotSeen([usize; 2]),
    Several(Arms),
}

fn kind(hypothesis: &Hypothesis) -> Kind {
    let all = |arm: &[Option<f64>]| arm.iter().copied().collect::<Option<Vec<f64>>>();
    let (Some(first), Some(second)) = (all(&hypothesis.first), all(&hypothesis.second)) else {
        return Kind::Missing;
    };
    if first.is_empty() || second.is_empty() {
        return Kind::Missing;
    }
    if first.iter().chain(&second).all(|figure| *figure == 0.0) {
        return Kind::NotSeen([first.len(), second.len()]);
    }
    Kind::Several((first, second))
}

fn least_error(grain: Grain, (first, second): &Arms) -> f64 {
    let scale = Scale::of(first.iter().chain(second).copied());
    grain.least_error(scale, [first, second])
}

/// Decides a whole family at once: with probability `alpha` at most, chance makes any of them look different. The
/// maximum of t over rearrangements of whole runs adjusts them (Westfall and Young), in a single step, so that one
/// critical value gives their verdicts and their intervals. A figure that neither arm saw does not cost the others
/// anything.
#[must_use]
pub fn family(design: Design, alpha: f64, hypotheses: &[Hypothesis]) -> Vec<Comparison> {
    let kinds: Vec<Kind> = hypotheses.iter().map(kind).collect();
    let (several, least): (Vec<&Arms>, Vec<f64>) = hypotheses
        .iter()
        .zip(&kinds)
        .filter_map(|(hypothesis, kind)| match kind {
            Kind::Several(arms) => Some((arms, least_error(hypothesis.grain, arms))),
            Kind::Missing | Kind::NotSeen(_) => None,
        })
        .unzip();
    let tested = match design {
        Design::Paired => {
            let distances = several.iter().map(|(a, b)| super::distances(a, b).1);
            sign_flips(&distances.collect::<Vec<_>>(), &least)
        }
        // Nothing that the test could rearrange.
        Design::Blocks => MaxT::default(),
        Design::Unpaired => {
            let arms = several.iter().map(|arms| (*arms).clone());
            permutations(&arms.collect::<Vec<_>>(), &least)
        }
    };
    let critical = tested.critical(alpha);
    let mut of_several = tested.adjusted.into_iter();
    let decide = |(hypothesis, kind): (&Hypothesis, Kind)| match kind {
        Kind::Missing => Comparison::not_measured(alpha),
        Kind::NotSeen(runs) => {
            Comparison::not_seen(hypothesis.seconds, runs, hypothesis.margin, alpha)
        }
        Kind::Several((first, second)) if design == Design::Blocks => {
            Comparison::of_blocks(&first, &second, hypothesis.margin, alpha)
        }
        Kind::Several((first, second)) => {
            let tested = Tested {
                alpha,
                probability: of_several.next().unwrap_or(1.0),
                critical,
            };
            let Hypothesis { margin, grain, .. } = *hypothesis;
            Comparison::of_runs(design, [&first, &second], grain, margin, tested)
        }
    };
    hypotheses.iter().zip(kinds).map(decide).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Basis, Count, Undecided, Verdict};

    fn hypothesis(first: &[f64], second: &[f64]) -> Hypothesis {
        let of = |arm: &[f64]| arm.iter().map(|figure| Some(*figure)).collect();
        Hypothesis {
            first: of(first),
            second: of(second),
            margin: Margin::default(),
            seconds: [8.0 * first.len() as f64, 8.0 * second.len() as f64],
            grain: Grain::Fine,
        }
    }

    fn one(design: Design, hypothesis: Hypothesis) -> Comparison {
        family(design, 0.05, &[hypothesis]).remove(0)
    }

    /// Observed on a virtual machine: one setting twice.
    #[test]
    fn single_runs_have_no_verdict() {
        let same = Hypothesis {
            margin: Margin {
                relative: 0.1,
                absolute: Margin::STOLEN,
            },
            ..hypothesis(&[0.0347], &[0.0128])
        };
        let total = one(Design::Unpaired, same);
        assert_eq!(
            (total.verdict, total.undecided),
            (Verdict::Inconclusive, Some(Undecided::SingleRuns))
        );
        assert_eq!(total.more_runs, Some(3));
        assert!(total.interval.is_none());
    }

    #[test]
    fn zero_against_zero_is_not_seen_with_a_bound() {
        let none = one(Design::Unpaired, hypothesis(&[0.0, 0.0], &[0.0, 0.0, 0.0]));
        assert_eq!(none.verdict, Verdict::NotSeen);
        assert_eq!(none.not_seen_below_per_sec, Some([3.0 / 16.0, 3.0 / 24.0]));
        assert!(none.not_worse());
    }

    #[test]
    fn arms_that_are_alike_are_equivalent_and_a_small_shift_has_a_direction() {
        let first = [1.0, 1.02, 0.98, 1.01, 0.99, 1.0, 1.03, 0.97];
        let same = [1.01, 1.0, 0.99, 1.0, 1.0, 0.99, 1.02, 0.98];
        assert_eq!(
            one(Design::Paired, hypothesis(&first, &same)).verdict,
            Verdict::Equivalent
        );
        let less = first.map(|f| f * 0.5);
        let better = one(Design::Paired, hypothesis(&first, &less));
        assert_eq!((better.verdict, better.alpha), (Verdict::Better, 0.05));
        assert!((better.change.unwrap() + 0.5).abs() < 1e-9);
        assert_eq!(
            one(Design::Paired, hypothesis(&less, &first)).verdict,
            Verdict::Worse
        );
        assert!(!one(Design::Paired, hypothesis(&less, &first)).not_worse());
    }

    /// Counts of runs of eight seconds, as rates.
    fn events(first: &[u64], second: &[u64]) -> Hypothesis {
        let rates = |arm: &[u64]| {
            arm.iter()
                .map(|events| *events as f64 / 8.0)
                .collect::<Vec<f64>>()
        };
        let basis = |arm: &[u64]| -> Vec<Basis> {
            arm.iter()
                .map(|events| {
                    Basis::Events(Count {
                        events: *events,
                        seconds: 8.0,
                    })
                })
                .collect()
        };
        let grain = Grain::of([&basis(first), &basis(second)]);
        Hypothesis {
            grain,
            ..hypothesis(&rates(first), &rates(second))
        }
    }

    #[test]
    fn counts_that_are_the_same_in_every_run_are_not_known_exactly() {
        for (runs, each) in [(6, 3), (8, 1), (8, 8)] {
            for design in [Design::Paired, Design::Unpaired] {
                let found = one(design, events(&vec![each; runs], &vec![each; runs]));
                assert_eq!(
                    found.verdict,
                    Verdict::Inconclusive,
                    "{runs} runs of {each}: {found:?}"
                );
                let interval = found.interval.unwrap();
                // At 95 %, about 2 sqrt(2 / events) to either side, and more for few events.
                let events = (runs as u64 * each) as f64;
                assert!(
                    interval.high > 1.9 * (2.0 / events).sqrt() && interval.low < -0.2,
                    "{found:?}"
                );
                assert!(
                    found.noise_floor.unwrap() >= 1.9 * (2.0 / events).sqrt(),
                    "{found:?}"
                );
            }
        }
        let many = one(Design::Paired, events(&[200; 8], &[200; 8]));
        assert_eq!(many.verdict, Verdict::Equivalent, "{many:?}");
        // Seen in some runs only: the scale is a difference, with the same uncertainty.
        let some = one(
            Design::Paired,
            events(&[1, 0, 1, 0, 1, 0], &[1, 0, 1, 0, 1, 0]),
        );
        assert!(some.interval.unwrap().width() > 0.1, "{some:?}");
        assert!(some.more_runs.is_none_or(|more| more > 100), "{some:?}");
    }

    #[test]
    fn percentiles_of_one_bucket_are_known_to_its_width() {
        let basis = [Basis::Bucket(0.01); 8];
        let grain = Grain::of([&basis, &basis]);
        let found = one(
            Design::Paired,
            Hypothesis {
                grain,
                ..hypothesis(&[100.0; 8], &[100.0; 8])
            },
        );
        assert_eq!(found.verdict, Verdict::Equivalent);
        assert!(found.interval.unwrap().width() > 0.0199, "{found:?}");
        // A bucket that is wider than the margin decides nothing.
        let basis = [Basis::Bucket(0.2); 8];
        let grain = Grain::of([&basis, &basis]);
        let found = one(
            Design::Paired,
            Hypothesis {
                grain,
                ..hypothesis(&[100.0; 8], &[100.0; 8])
            },
        );
        assert_eq!(found.verdict, Verdict::Inconclusive, "{found:?}");
    }

    #[test]
    fn fewer_runs_than_the_test_takes_are_not_called_equivalent() {
        let alike = one(Design::Unpaired, hypothesis(&[1.0, 1.001], &[1.0, 1.001]));
        assert_eq!(
            alike.undecided,
            Some(Undecided::TooFewRuns { fewest: 4 }),
            "{alike:?}"
        );
    }

    #[test]
    fn few_runs_say_how_many_would_do() {
        let few = one(Design::Unpaired, hypothesis(&[1.0, 1.1], &[5.0, 5.2]));
        assert_eq!(few.undecided, Some(Undecided::TooFewRuns { fewest: 4 }));
        assert_eq!(few.more_runs, Some(2));
        assert!(few.noise_floor.is_some());
        let one_each = one(Design::Unpaired, hypothesis(&[1.0], &[5.0, 5.2, 5.1]));
        assert_eq!(one_each.verdict, Verdict::Inconclusive);
    }

    #[test]
    fn a_run_without_the_figure_decides_nothing() {
        let mut missing = hypothesis(&[1.0; 8], &[2.0; 8]);
        missing.second[3] = None;
        assert_eq!(
            one(Design::Paired, missing).undecided,
            Some(Undecided::NotMeasured)
        );
        assert!(family(Design::Paired, 0.05, &[]).is_empty());
    }

    #[test]
    fn an_arm_without_runs_was_not_measured() {
        for (first, second) in [(&[][..], &[1.0][..]), (&[1.0], &[]), (&[], &[])] {
            let none = one(Design::Unpaired, hypothesis(first, second));
            assert_eq!(
                none.undecided,
                Some(Undecided::NotMeasured),
                "{first:?} {second:?}"
            );
        }
    }
}
