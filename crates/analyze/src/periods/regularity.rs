//! Whether what comes regularly is driven by a clock.
//!
//! A clock's pulses are late by chance, but each is due at a multiple of the period whatever the one before
//! did: a long interval is followed by a short one, so that neighbouring intervals are correlated by -1/2.
//! Who sleeps for a time, works and sleeps again starts from when it woke: its intervals are independent,
//! their errors add up, and its phase drifts. The lag-one correlation of intervals tells one from the other
//! (von Neumann 1941; the same distinction as white phase and white frequency noise of oscillators).

use serde::{Deserialize, Serialize};

/// What keeps a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regularity {
    /// A clock: lateness does not add up.
    Clocked,
    /// Each interval starts from the event before: the phase drifts.
    Drifting,
    /// Too few neighbouring intervals to tell.
    Undecided,
}

impl Regularity {
    /// Its name in JSON and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Regularity::Clocked => "clocked",
            Regularity::Drifting => "drifting",
            Regularity::Undecided => "undecided",
        }
    }
}

/// Fewest pairs of neighbouring intervals.
const FEWEST_PAIRS: usize = 20;
/// Standard errors that the correlation must lie from the other hypothesis: one in some 10,000.
const SURE: f64 = 3.7;
/// A deviation of this share of the period is another event, not a late one.
const CLOSE: f64 = 0.25;

/// Intervals that differ by no more than this share of the period (in the median) are as even as a clock's,
/// whatever drives them: their errors would take a hundred thousand periods to add up to one.
const EVEN: f64 = 1e-5;

/// Judges events (ascending, seconds) that come about every `period` seconds.
pub(super) fn judge(times: &[f64], period: f64) -> Regularity {
    // Deviations of intervals from whole periods; `None` where what comes next is no neighbour.
    let deviations: Vec<Option<f64>> = times
        .windows(2)
        .map(|pair| {
            let interval = pair[1] - pair[0];
            let deviation = interval - period;
            (deviation.abs() <= CLOSE * period).then_some(deviation)
        })
        .collect();
    let known: Vec<f64> = deviations.iter().flatten().copied().collect();
    let pairs: Vec<(f64, f64)> =
        deviations.windows(2).filter_map(|pair| Some((pair[0]?, pair[1]?))).collect();
    if pairs.len() < FEWEST_PAIRS {
        return Regularity::Undecided;
    }
    let centre = median(known.clone());
    if median(known.iter().map(|deviation| (deviation - centre).abs()).collect()) <= EVEN * period {
        return Regularity::Clocked;
    }
    let correlation = rank_correlation(&pairs);
    let error = 1.0 / (pairs.len() as f64).sqrt();
    match correlation {
        // Independent intervals have none.
        r if r < -SURE * error => Regularity::Clocked,
        // A clock's have -1/2 (their ranks -0.48).
        r if r > -0.48 + SURE * error => Regularity::Drifting,
        _ => Regularity::Undecided,
    }
}

/// The median; zero of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Spearman's: lateness has a heavy tail, which a plain correlation would hang on.
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
    let square = |of: &[f64]| of.iter().map(|rank| (rank - mean) * (rank - mean)).sum::<f64>();
    let scale = (square(&a) * square(&b)).sqrt();
    if scale > 0.0 { product / scale } else { 0.0 }
}
