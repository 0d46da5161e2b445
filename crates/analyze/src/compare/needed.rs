//! The number of runs that would decide.

use super::distribution::t_quantile;
use super::{Design, Effect, smallest_of_flips, smallest_of_shuffles};

/// The probability of detecting a true effect as large as the observed one.
const POWER: f64 = 0.8;
/// The power of each of the two one-sided tests of equivalence.
const POWER_OF_EQUIVALENCE: f64 = 0.9;
/// More runs than this are not worth advising.
const MOST: usize = 1000;

/// The fewest runs in each arm with which the test can reach this probability.
#[must_use]
pub fn fewest(design: Design, alpha: f64) -> usize {
    let enough = |runs: &usize| reaches(design, [*runs; 2], alpha);
    (2..MOST).find(enough).unwrap_or(MOST)
}

/// Whether the test of this many runs of each arm can reach this probability.
pub(super) fn reaches(design: Design, [first, second]: [usize; 2], alpha: f64) -> bool {
    let smallest = match design {
        Design::Paired => smallest_of_flips(first.min(second)),
        Design::Unpaired | Design::Blocks => smallest_of_shuffles(first, second),
    };
    smallest <= alpha
}

fn freedom(design: Design, runs: usize) -> f64 {
    match design {
        Design::Paired => (runs - 1) as f64,
        Design::Unpaired | Design::Blocks => 2.0 * (runs - 1) as f64,
    }
}

/// The total runs in each arm that would decide if distance and scatter stay the same: that there is a difference, or
/// that there is none beyond the margin (a distance on the scale), whichever takes fewer. `None` beyond a practical
/// number.
pub(super) fn runs(design: Design, effect: &Effect, alpha: f64, margin: f64) -> Option<usize> {
    let distance = effect.distance.abs();
    let enough = |runs: usize| {
        let (freedom, error) = (
            freedom(design, runs),
            effect.deviation / (runs as f64).sqrt(),
        );
        let quantile = |p: f64| t_quantile(p, freedom) * error;
        let differs = distance >= quantile(1.0 - alpha / 2.0) + quantile(POWER) && distance > 0.0;
        let alike = margin - distance >= quantile(1.0 - alpha) + quantile(POWER_OF_EQUIVALENCE)
            && margin > 0.0;
        differs || alike
    };
    // Each further run makes both easier, so halving finds the first that is enough.
    let (mut few, mut many) = (fewest(design, alpha), MOST);
    while few < many {
        let middle = usize::midpoint(few, many);
        if enough(middle) {
            many = middle;
        } else {
            few = middle + 1;
        }
    }
    (few < MOST).then_some(few)
}

/// The quantile of t that makes a difference found with probability 0.8.
pub(super) fn quantile_of_power(design: Design, runs: usize) -> f64 {
    t_quantile(POWER, freedom(design, runs))
}

/// The distance on the scale that this many runs in each arm detect with probability 0.8, given the scatter.
#[must_use]
pub fn detectable(design: Design, deviation: f64, runs: usize, alpha: f64) -> Option<f64> {
    (runs >= fewest(design, alpha)).then(|| {
        let freedom = freedom(design, runs);
        let error = deviation / (runs as f64).sqrt();
        (t_quantile(1.0 - alpha / 2.0, freedom) + quantile_of_power(design, runs)) * error
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Scale;

    fn effect(distance: f64, deviation: f64) -> Effect {
        Effect {
            scale: Scale::Difference,
            distance,
            error: 0.0,
            freedom: 1.0,
            deviation,
        }
    }

    #[test]
    fn a_small_effect_takes_more_runs_than_a_large_one() {
        let of = |distance| runs(Design::Paired, &effect(distance, 1.0), 0.05, 0.0);
        // Textbook values: (1.96 + 0.84)^2 = 7.85, and 196 for the second; t needs a few more.
        let (large, small) = (of(1.0).unwrap(), of(0.2).unwrap());
        assert!((9..=12).contains(&large), "{large}");
        assert!((196..=202).contains(&small), "{small}");
        assert_eq!(of(0.0), None);
        assert!(runs(Design::Paired, &effect(0.0, 1.0), 0.05, 1.0).is_some());
    }

    #[test]
    fn the_test_itself_has_a_least_number() {
        assert_eq!(
            (fewest(Design::Paired, 0.05), fewest(Design::Unpaired, 0.05)),
            (6, 4)
        );
        assert_eq!(fewest(Design::Paired, 0.01), 8);
        assert_eq!(detectable(Design::Paired, 1.0, 5, 0.05), None);
        let found = detectable(Design::Paired, 1.0, 11, 0.05).unwrap();
        assert!((0.9..1.05).contains(&found), "{found}");
    }

    #[test]
    fn so_many_runs_find_a_difference_or_that_there_is_none() {
        // From tables of t: paired with n - 1 degrees of freedom, unpaired with 2 (n - 1).
        for (design, distance, margin, wanted) in [
            (Design::Paired, 1.0, 0.0, 10),
            (Design::Unpaired, 1.0, 0.0, 9),
            (Design::Paired, 0.2, 0.0, 199),
            (Design::Paired, 0.0, 1.0, 11),
            (Design::Unpaired, 0.0, 1.0, 10),
            (Design::Paired, 0.25, 0.75, 36),
            (Design::Unpaired, 0.5, 1.2, 19),
        ] {
            for distance in [distance, -distance] {
                let found = runs(design, &effect(distance, 1.0), 0.05, margin);
                assert_eq!(found, Some(wanted), "{design:?} {distance} {margin}");
            }
        }
        // Never fewer than the test needs, and none for zero distance and zero margin.
        assert_eq!(runs(Design::Paired, &effect(9.0, 0.1), 0.05, 0.0), Some(6));
        assert_eq!(runs(Design::Paired, &effect(0.0, 0.0), 0.05, 0.0), None);
        assert_eq!(runs(Design::Paired, &effect(0.01, 1.0), 0.05, 0.0), None);
    }

    #[test]
    fn what_can_be_detected_is_that_of_the_tables() {
        for (design, runs, wanted) in [
            (Design::Paired, 11, 0.936_855),
            (Design::Unpaired, 11, 0.888_231),
        ] {
            let found = detectable(design, 1.0, runs, 0.05).unwrap();
            assert!((found - wanted).abs() < 1e-5, "{design:?}: {found}");
            let twice = detectable(design, 2.0, runs, 0.05).unwrap();
            assert!((twice - 2.0 * found).abs() < 1e-9);
        }
        assert!(detectable(Design::Paired, 1.0, 6, 0.05).is_some());
    }
}
