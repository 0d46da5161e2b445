//! How many runs would decide.

use super::distribution::t_quantile;
use super::{Design, Effect, smallest_of_flips, smallest_of_shuffles};

/// The chance that a true effect as large as the one seen is to have of being found.
const POWER: f64 = 0.8;
/// Each of the two ends of an equivalence has to be missed rarely.
const POWER_OF_EQUIVALENCE: f64 = 0.9;
/// More runs than this are not advice.
const MOST: usize = 1000;

/// The fewest runs an arm of which the test can come out at this probability at all.
#[must_use]
pub fn fewest(design: Design, alpha: f64) -> usize {
    let reaches = |runs: &usize| match design {
        Design::Paired => smallest_of_flips(*runs) <= alpha,
        Design::Unpaired => smallest_of_shuffles(*runs, *runs) <= alpha,
    };
    (2..MOST).find(reaches).unwrap_or(MOST)
}

fn freedom(design: Design, runs: usize) -> f64 {
    match design {
        Design::Paired => (runs - 1) as f64,
        Design::Unpaired => 2.0 * (runs - 1) as f64,
    }
}

/// Runs an arm in all that would decide, if distance and scatter stay as they are: that there is a
/// difference, or that there is none beyond the margin (a distance on the scale), whichever takes fewer.
/// `None` where that is more than anybody makes.
pub(super) fn runs(design: Design, effect: &Effect, alpha: f64, margin: f64) -> Option<usize> {
    let distance = effect.distance.abs();
    let enough = |runs: &usize| {
        let (freedom, error) = (freedom(design, *runs), effect.deviation / (*runs as f64).sqrt());
        let quantile = |p: f64| t_quantile(p, freedom) * error;
        let differs = distance >= quantile(1.0 - alpha / 2.0) + quantile(POWER) && distance > 0.0;
        let alike = margin - distance >= quantile(0.95) + quantile(POWER_OF_EQUIVALENCE) && margin > 0.0;
        differs || alike
    };
    (fewest(design, alpha)..MOST).find(enough)
}

/// The distance on the scale that so many runs an arm would find four times in five, where runs scatter like
/// this.
#[must_use]
pub fn detectable(design: Design, deviation: f64, runs: usize, alpha: f64) -> Option<f64> {
    (runs >= fewest(design, alpha)).then(|| {
        let freedom = freedom(design, runs);
        let error = deviation / (runs as f64).sqrt();
        (t_quantile(1.0 - alpha / 2.0, freedom) + t_quantile(POWER, freedom)) * error
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Scale;

    fn effect(distance: f64, deviation: f64) -> Effect {
        Effect { scale: Scale::Difference, distance, error: 0.0, freedom: 1.0, deviation }
    }

    #[test]
    fn a_small_effect_takes_more_runs_than_a_large_one() {
        let of = |distance| runs(Design::Paired, &effect(distance, 1.0), 0.05, 0.0);
        // The textbook: (1.96 + 0.84)^2 = 7.85 and 196 at these, some more for t.
        let (large, small) = (of(1.0).unwrap(), of(0.2).unwrap());
        assert!((9..=12).contains(&large), "{large}");
        assert!((196..=202).contains(&small), "{small}");
        assert_eq!(of(0.0), None);
        assert!(runs(Design::Paired, &effect(0.0, 1.0), 0.05, 1.0).is_some());
    }

    #[test]
    fn the_test_itself_has_a_least_number() {
        assert_eq!((fewest(Design::Paired, 0.05), fewest(Design::Unpaired, 0.05)), (6, 4));
        assert_eq!(fewest(Design::Paired, 0.01), 8);
        assert_eq!(detectable(Design::Paired, 1.0, 5, 0.05), None);
        let found = detectable(Design::Paired, 1.0, 11, 0.05).unwrap();
        assert!((0.9..1.05).contains(&found), "{found}");
    }
}
