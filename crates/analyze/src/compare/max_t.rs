//! Many hypotheses at once: Westfall and Young's maximum of t, in a single step.

/// The relative tolerance for equal statistics.
const ALIKE: f64 = 1e-9;

/// The test of a family.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MaxT {
    /// For each hypothesis, the probability of its statistic by chance, adjusted for all.
    pub(super) adjusted: Vec<f64>,
    /// The largest statistic of each rearrangement, in descending order.
    pub(super) maxima: Vec<f64>,
}

impl MaxT {
    /// The largest statistic that still counts as chance in a family with this alpha: intervals of all its members that
    /// are this many errors wide to either side hold together. An adjusted probability is at most alpha if and only if
    /// its statistic is larger.
    pub(super) fn critical(&self, alpha: f64) -> f64 {
        let at = (alpha * self.maxima.len() as f64 * (1.0 + ALIKE)).floor() as usize;
        // A statistic that equals a rearranged one counts as no larger, whatever the rounding.
        self.maxima
            .get(at)
            .map_or(0.0, |largest| largest / (1.0 - ALIKE))
    }
}

/// For each hypothesis, the probability that chance alone makes any statistic of the family this large: exact if the
/// rearrangements are enumerated. `rearranged` fills in the statistics of the next rearrangement, and returns false at
/// the end. With `drawn`, the rearrangements are a sample, to which the observed one is added.
pub(super) fn max_t(
    observed: &[f64],
    drawn: bool,
    mut rearranged: impl FnMut(&mut [f64]) -> bool,
) -> MaxT {
    let largest_of = |of: &[f64]| of.iter().copied().fold(0f64, f64::max);
    let mut maxima: Vec<f64> = drawn.then(|| largest_of(observed)).into_iter().collect();
    let mut statistics = vec![0.0; observed.len()];
    while rearranged(&mut statistics) {
        maxima.push(largest_of(&statistics));
    }
    maxima.sort_by(f64::total_cmp);
    maxima.reverse();
    let probability = |statistic: &f64| {
        let least = statistic * (1.0 - ALIKE);
        let as_large = maxima.partition_point(|largest| *largest >= least);
        as_large as f64 / maxima.len().max(1) as f64
    };
    MaxT {
        adjusted: observed.iter().map(probability).collect(),
        maxima,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_small_where_the_statistic_is_beyond_the_critical_value() {
        let mut rearrangements = (0..40).map(|n| [f64::from(n % 10), f64::from(n * 7 % 20)]);
        let observed = [9.0, 19.0, 18.0, 17.5, 3.0];
        let found = max_t(&observed, false, |statistics| {
            let Some([a, b]) = rearrangements.next() else {
                return false;
            };
            statistics[..2].copy_from_slice(&[a, b]);
            true
        });
        for alpha in [0.01, 0.05, 0.1, 0.15, 0.5] {
            for (statistic, adjusted) in observed.iter().zip(&found.adjusted) {
                assert_eq!(*adjusted <= alpha, *statistic > found.critical(alpha));
            }
        }
        assert_eq!(found.adjusted[..2], [0.6, 0.05]);
        // Rounding makes no equal statistic larger.
        assert!(18.0 * (1.0 + 1e-12) < found.critical(0.05));
    }
}
