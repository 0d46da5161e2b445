//! Decides whether a clock drives regular events.
//!
//! A clock's pulses are late by chance, but each is due at a multiple of the period regardless of the previous one: a
//! long interval is followed by a short one, so neighbouring intervals are correlated by -1/2. A process that sleeps
//! for a time, works and sleeps again starts from its own wake-up: its intervals are independent, their errors add up,
//! and its phase drifts. The lag-one correlation of intervals separates the two (von Neumann 1941; the same distinction
//! as white phase and white frequency noise of oscillators).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The driver of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Regularity {
    /// A clock: lateness does not add up.
    Clocked,
    /// Each interval starts at the previous event: the phase drifts.
    Drifting,
    /// Too few neighbouring intervals to decide.
    Undecided,
}

impl Regularity {
    /// The word in JSON and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Regularity::Clocked => "clocked",
            Regularity::Drifting => "drifting",
            Regularity::Undecided => "undecided",
        }
    }
}

/// The fewest pairs of neighbouring intervals.
const FEWEST_PAIRS: usize = 20;
/// The distance, in standard errors, of the correlation from the rejected hypothesis: one in about 10,000.
const SURE: f64 = 3.7;
/// An interval that deviates by more than this share of the period belongs to another event, not a late one.
const CLOSE: f64 = 0.25;

/// Intervals whose median deviation is at most this share of the period count as clocked, whatever drives them: their
/// errors would take a hundred thousand periods to add up to one.
const EVEN: f64 = 1e-5;

/// Judges events (ascending, seconds) about every `period` seconds.
pub(super) fn judge(times: &[f64], period: f64) -> Regularity {
    // Deviations of intervals from whole periods; `None` where the next event is not a neighbour.
    let deviations: Vec<Option<f64>> = times
        .windows(2)
        .map(|pair| {
            let interval = pair[1] - pair[0];
            let deviation = interval - period;
            (deviation.abs() <= CLOSE * period).then_some(deviation)
        })
        .collect();
    let known: Vec<f64> = deviations.iter().flatten().copied().collect();
    let pairs: Vec<(f64, f64)> = deviations
        .windows(2)
        .filter_map(|pair| Some((pair[0]?, pair[1]?)))
        .collect();
    if pairs.len() < FEWEST_PAIRS {
        return Regularity::Undecided;
    }
    let centre = median(known.clone());
    if median(
        known
            .iter()
            .map(|deviation| (deviation - centre).abs())
            .collect(),
    ) <= EVEN * period
    {
        return Regularity::Clocked;
    }
    let correlation = rank_correlation(&pairs);
    let error = 1.0 / (pairs.len() as f64).sqrt();
    match correlation {
        // Independent intervals have a correlation of 0.
        r if r < -SURE * error => Regularity::Clocked,
        // A clock's intervals have -1/2 (their ranks -0.48).
        r if r > -0.48 + SURE * error => Regularity::Drifting,
        _ => Regularity::Undecided,
    }
}

/// The median; zero for no values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Spearman's rank correlation: lateness has a heavy tail, which would dominate a plain correlation.
fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        order.sort_by(|a, b| of(&pairs[*a]).total_cmp(&of(&pairs[*b])));
        let mut ranks = vec![0.0; pairs.len()];
        let mut first = 0;
        for equal in order.chunk_by(|a, b| of(&pairs[*a]) == of(&pairs[*b])) {
            for at in equal {
                ranks[*at] = first as f64 + (equal.len() - 1) as f64 / 2.0;
            }
            first += equal.len();
        }
        ranks
    };
    let (a, b) = (ranks(&|p| p.0), ranks(&|p| p.1));
    let mean = (pairs.len() - 1) as f64 / 2.0;
    let product: f64 = a.iter().zip(&b).map(|(a, b)| (a - mean) * (b - mean)).sum();
    let square = |of: &[f64]| {
        of.iter()
            .map(|rank| (rank - mean) * (rank - mean))
            .sum::<f64>()
    };
    let scale = (square(&a) * square(&b)).sqrt();
    if scale > 0.0 { product / scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_testing::SplitMix64;

    /// Events of a one-second clock, each late by up to `late`.
    fn clock(events: usize, late: f64) -> Vec<f64> {
        let mut random = SplitMix64(4);
        (0..events)
            .map(|n| n as f64 + late * random.uniform())
            .collect()
    }

    /// Events of a one-second sleeper, each sleep longer by up to `longer`.
    fn sleeper(events: usize, longer: f64) -> Vec<f64> {
        let (mut random, mut at) = (SplitMix64(4), 0.0);
        (0..events)
            .map(|_| {
                at += 1.0 + longer * random.uniform();
                at
            })
            .collect()
    }

    #[test]
    fn ranks_go_together_as_spearman_has_it() {
        for (pairs, wanted) in [
            (&[(1.0, 10.0), (2.0, 11.0), (3.0, 900.0)][..], 1.0),
            (&[(1.0, 9.0), (2.0, 8.0), (3.0, -900.0)], -1.0),
            (&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)], 0.5),
            // Equal values share their ranks: 0.5, 0.5, 2 beside 0, 1, 2.
            (&[(1.0, 1.0), (1.0, 2.0), (2.0, 3.0)], 0.75f64.sqrt()),
            (&[(1.0, 1.0), (1.0, 2.0)], 0.0),
        ] {
            let found = rank_correlation(pairs);
            assert!((found - wanted).abs() < 1e-12, "{pairs:?}: {found}");
        }
        assert_eq!(
            [
                median(vec![3.0, 1.0, 2.0]),
                median(vec![4.0, 1.0, 2.0, 3.0]),
                median(vec![])
            ],
            [2.0, 3.0, 0.0]
        );
    }

    #[test]
    fn a_clocks_lateness_does_not_add_up_and_a_sleepers_does() {
        use Regularity::{Clocked, Drifting, Undecided};
        for (what, times, wanted) in [
            ("a clock", clock(400, 0.01), Clocked),
            ("a sleeper", sleeper(400, 0.01), Drifting),
            ("thirty of a clock", clock(30, 0.01), Undecided),
            ("thirty of a sleeper", sleeper(30, 0.01), Undecided),
            (
                "a sleeper who is as even as a clock",
                sleeper(400, 1e-5),
                Clocked,
            ),
            ("a sleeper who is not quite", sleeper(400, 1e-4), Drifting),
            ("nothing", vec![], Undecided),
        ] {
            assert_eq!(judge(&times, 1.0), wanted, "{what}");
        }
        // A clock that is off by a hundredth still is a clock.
        let slow: Vec<f64> = clock(400, 1e-6).iter().map(|time| time * 1.01).collect();
        assert_eq!(judge(&slow, 1.0), Clocked);
    }

    #[test]
    fn twenty_neighbours_are_enough_of_what_is_even() {
        assert_eq!(judge(&clock(22, 0.0), 1.0), Regularity::Clocked);
        assert_eq!(judge(&clock(21, 0.0), 1.0), Regularity::Undecided);
        // A missing event separates its neighbours: of 22 events, the intervals beside the gap do not count.
        let mut gap = clock(24, 0.0);
        gap.remove(10);
        assert_eq!(judge(&gap, 1.0), Regularity::Undecided);
        let mut gap = clock(26, 0.0);
        gap.remove(10);
        assert_eq!(judge(&gap, 1.0), Regularity::Clocked);
        // A quarter of the period early or late still is a neighbour.
        let at = |length: f64| (0..40).map(|n| f64::from(n) * length).collect::<Vec<f64>>();
        let judged = [0.74, 0.75, 1.25, 1.26].map(|length| judge(&at(length), 1.0));
        assert_eq!(
            judged.map(|of| of == Regularity::Clocked),
            [false, true, true, false]
        );
    }

    #[test]
    fn names_are_those_of_the_json() {
        for of in [
            Regularity::Clocked,
            Regularity::Drifting,
            Regularity::Undecided,
        ] {
            assert_eq!(serde_json::to_value(of).unwrap(), of.as_str());
        }
    }
}
