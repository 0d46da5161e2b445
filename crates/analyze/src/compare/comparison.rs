//! One figure of two arms, compared.

use super::design::Design;
use super::effect::{Interval, middle};
use super::{Margin, Scale, Undecided, Verdict, fewest};
use crate::rate_bound;
use schemars::JsonSchema;
use serde::Serialize;

/// One figure of the second arm, compared with the first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// What can be said.
    pub verdict: Verdict,
    /// Why there is no verdict; null if there is one.
    pub undecided: Option<Undecided>,
    /// The number of runs that it rests on, of the first arm and of the second.
    pub runs: [usize; 2],
    /// The scale of `change` and its bounds.
    pub scale: Scale,
    /// The first arm's figure: the geometric mean of its runs, or the mean if some are zero.
    pub first: Option<f64>,
    /// The second arm's.
    pub second: Option<f64>,
    /// The difference of the second arm, as a share of the first (-0.3: 30 % less) or in the figure's unit.
    pub change: Option<f64>,
    /// The confidence interval of `change`, at one minus `alpha`. It spans the estimate plus and minus so many standard
    /// errors as the larger of two critical values says: that of the family's test, so that all intervals of the family
    /// hold together, and that of Student's t. It also spans what the counts or buckets behind the figure leave open.
    /// The verdict is `better` or `worse` only if it excludes zero, and then `probability` is at most `alpha`. The
    /// intervals of all looks of an experiment hold together, at 95 %. Null with fewer runs than the test takes, if the
    /// arms were recorded one after the other, and where the family's test bounds nothing.
    pub interval: Option<Interval>,
    /// The interval at one minus twice the alpha (98, 97 and 95 % at the looks of an experiment, else 90 %): two
    /// one-sided tests at alpha. If it lies within the margin the arms are equivalent; if its upper end does, the
    /// second is not worse. Null with fewer runs than the test takes.
    pub equivalence_interval: Option<Interval>,
    /// The largest difference that does not matter, in the unit of `change`.
    pub margin: f64,
    /// The probability that chance alone does this: the larger of that of the family's test, adjusted for the other
    /// figures, and that of Student's t. If both are at most `alpha`, it is no smaller than that of the counts or buckets.
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
    /// Whether the second arm is not worse beyond the margin, at one minus alpha.
    #[must_use]
    pub fn not_worse(&self) -> bool {
        match self.verdict {
            Verdict::Better | Verdict::Equivalent | Verdict::NotSeen => true,
            Verdict::Worse => false,
            Verdict::Inconclusive => self
                .equivalence_interval
                .is_some_and(|interval| interval.high <= self.margin),
        }
    }

    /// The observed difference, without a statement.
    pub(super) fn of(first: &[f64], second: &[f64], margin: Margin, alpha: f64) -> Comparison {
        let scale = Scale::of(first.iter().chain(second).copied());
        let figure = |arm: &[f64]| (!arm.is_empty()).then(|| middle(scale, arm));
        let (a, b) = (figure(first), figure(second));
        Comparison {
            verdict: Verdict::Inconclusive,
            undecided: None,
            runs: [first.len(), second.len()],
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

    /// Arms that were recorded one after the other: the difference is shown, and nothing is claimed.
    pub(super) fn of_blocks(
        first: &[f64],
        second: &[f64],
        margin: Margin,
        alpha: f64,
    ) -> Comparison {
        let single = first.len().max(second.len()) == 1;
        let (why, more_runs) = match single {
            true => (
                Undecided::SingleRuns,
                Some(fewest(Design::Unpaired, alpha) - 1),
            ),
            false => (Undecided::OneAfterTheOther, None),
        };
        Comparison {
            undecided: Some(why),
            more_runs,
            ..Comparison::of(first, second, margin, alpha)
        }
    }

    /// Neither arm saw the event; `seconds` are the observation times.
    pub(super) fn not_seen(
        seconds: [f64; 2],
        runs: [usize; 2],
        margin: Margin,
        alpha: f64,
    ) -> Comparison {
        let zeros = runs.map(|runs| vec![0.0; runs]);
        let below = match seconds.map(rate_bound) {
            [Some(first), Some(second)] => Some([first, second]),
            _ => None,
        };
        Comparison {
            verdict: Verdict::NotSeen,
            not_seen_below_per_sec: below,
            ..Comparison::of(&zeros[0], &zeros[1], margin, alpha)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            [Some(0.1), Some(0.101), None].map(|high| of(Verdict::Inconclusive, high)),
            [true, false, false]
        );
        assert!(!of(Verdict::Worse, Some(0.1)));
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
