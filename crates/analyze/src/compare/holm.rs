//! Holm's adjustment, for tests of unknown dependence.

/// Each probability, adjusted for all of them.
#[must_use]
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut adjusted = vec![1.0; probabilities.len()];
    let mut so_far = 0f64;
    for (rank, at) in order.into_iter().enumerate() {
        so_far = so_far
            .max(probabilities[at] * (probabilities.len() - rank) as f64)
            .min(1.0);
        adjusted[at] = so_far;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_pays_for_all_and_none_falls_behind() {
        let adjusted = holm(&[0.04, 0.01, 0.03]);
        for (found, wanted) in adjusted.iter().zip([0.06, 0.03, 0.06]) {
            assert!((found - wanted).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
