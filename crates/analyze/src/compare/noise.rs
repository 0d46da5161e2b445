//! The apparent difference of two arms of the same setting.

use super::Scale;
use super::distribution::t_quantile;
use super::sample::Moments;

/// The noise floor of pairs, as a distance on the scale: half the width of the interval of this level if each run is
/// paired with the next one of the same arm. Slow drift is not included, as it is not in pairs.
pub(super) fn of_pairs(first: &[f64], second: &[f64], scale: Scale, level: f64) -> Option<f64> {
    let neighbours = |arm: &[f64]| -> Vec<f64> {
        arm.windows(2)
            .map(|pair| scale.position(pair[1]) - scale.position(pair[0]))
            .collect()
    };
    let all = [neighbours(first), neighbours(second)].concat();
    if first.len() < 2 || all.is_empty() {
        return None;
    }
    // Both runs have the same setting: the mean is zero.
    let square = all.iter().map(|d| d * d).sum::<f64>() / all.len() as f64;
    let pairs = first.len() as f64;
    Some(t_quantile(0.5 + level / 2.0, pairs - 1.0) * (square / pairs).sqrt())
}

/// The noise floor of unpaired runs, from the scatter within the arms.
pub(super) fn of_runs(first: &[f64], second: &[f64], scale: Scale, level: f64) -> Option<f64> {
    let on_scale = |arm: &[f64]| arm.iter().map(|f| scale.position(*f)).collect::<Vec<f64>>();
    let of = |arm: &[f64]| {
        Moments::of(&on_scale(arm)).map(|m| (m.deviation.powi(2), (m.count - 1) as f64))
    };
    let known: Vec<(f64, f64)> = [of(first), of(second)].into_iter().flatten().collect();
    let freedom: f64 = known.iter().map(|(_, freedom)| freedom).sum();
    if known.is_empty() || first.is_empty() || second.is_empty() {
        return None;
    }
    let variance = known
        .iter()
        .map(|(variance, freedom)| variance * freedom)
        .sum::<f64>()
        / freedom;
    let runs = 1.0 / first.len() as f64 + 1.0 / second.len() as f64;
    Some(t_quantile(0.5 + level / 2.0, freedom) * (variance * runs).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_is_noise_to_runs_and_little_to_pairs() {
        let first: Vec<f64> = (0..8).map(|n| 100.0 + 10.0 * f64::from(n)).collect();
        let second: Vec<f64> = first.iter().map(|f| f + 1.0).collect();
        let pairs = of_pairs(&first, &second, Scale::Difference, 0.95).unwrap();
        let runs = of_runs(&first, &second, Scale::Difference, 0.95).unwrap();
        assert!(
            (pairs - 2.364_6 * 10.0 / 8f64.sqrt()).abs() < 1e-2,
            "{pairs}"
        );
        assert!(runs > 2.0 * pairs, "{runs}");
        assert_eq!(of_runs(&[1.0], &[2.0], Scale::Ratio, 0.95), None);
        assert_eq!(of_pairs(&[1.0], &[2.0], Scale::Ratio, 0.95), None);
    }

    #[test]
    fn runs_are_noisy_by_the_pooled_scatter_of_their_arms() {
        let of = |first: &[f64], second: &[f64]| of_runs(first, second, Scale::Difference, 0.95);
        for (first, second, wanted) in [
            // Variances 2 and 4 of one and two degrees of freedom; t of three.
            (
                &[1.0, 3.0][..],
                &[2.0, 4.0, 6.0][..],
                3.182_446 * (10f64 / 3.0 * 5.0 / 6.0).sqrt(),
            ),
            // Only one arm has scatter; t of one.
            (&[5.0], &[1.0, 3.0], 12.706_2 * 3f64.sqrt()),
        ] {
            for found in [of(first, second), of(second, first)] {
                assert!((found.unwrap() - wanted).abs() < 1e-3, "{found:?} {wanted}");
            }
        }
        assert_eq!([of(&[], &[1.0, 3.0]), of(&[1.0, 3.0], &[])], [None; 2]);
    }

    #[test]
    fn pairs_are_noisy_by_the_steps_within_their_arms() {
        // Steps of 1, 3 and 2 on the scale of each; t of two.
        for (scale, of) in [
            (Scale::Difference, (|f| f) as fn(f64) -> f64),
            (Scale::Ratio, f64::exp),
        ] {
            let arm = |figures: &[f64]| figures.iter().map(|f| of(*f)).collect::<Vec<f64>>();
            let found = of_pairs(&arm(&[1.0, 2.0, 5.0]), &arm(&[4.0, 6.0]), scale, 0.95).unwrap();
            assert!(
                (found - 4.302_653 * (14f64 / 3.0 / 3.0).sqrt()).abs() < 1e-4,
                "{scale:?}: {found}"
            );
        }
        assert!(of_pairs(&[1.0, 3.0], &[], Scale::Difference, 0.95).is_some());
        assert_eq!(of_pairs(&[], &[1.0, 3.0], Scale::Difference, 0.95), None);
    }
}
