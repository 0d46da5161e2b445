//! Many hypotheses at once: Westfall and Young's step-down maximum of t.

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
    /// are this many errors wide to either side hold together.
    pub(super) fn critical(&self, alpha: f64) -> f64 {
        let at = (alpha * self.maxima.len() as f64 * (1.0 + ALIKE)).floor() as usize;
        self.maxima.get(at).copied().unwrap_or(0.0)
    }
}

/// For each hypothesis, the probability that chance alone makes a statistic this large among all those that are no
/// larger. The result is adjusted for their number, and exact if the rearrangements are enumerated. `rearranged` fills
/// in the statistics of the next rearrangement, and returns false at the end. With `drawn`, the rearrangements are a
/// sample, to which the observed one is added.
pub(super) fn step_down(
    observed: &[f64],
    drawn: bool,
    mut rearranged: impl FnMut(&mut [f64]) -> bool,
) -> MaxT {
    let mut order: Vec<usize> = (0..observed.len()).collect();
    order.sort_by(|a, b| observed[*b].total_cmp(&observed[*a]));
    let mut at_least = vec![u64::from(drawn); observed.len()];
    let mut all = u64::from(drawn);
    let mut statistics = vec![0.0; observed.len()];
    let largest_of = |of: &[f64]| of.iter().copied().fold(0f64, f64::max);
    let mut maxima: Vec<f64> = drawn.then(|| largest_of(observed)).into_iter().collect();
    while rearranged(&mut statistics) {
        all += 1;
        // From the smallest observed statistic upwards: the running maximum.
        let mut largest = 0f64;
        for at in order.iter().rev() {
            largest = largest.max(statistics[*at]);
            at_least[*at] += u64::from(largest >= observed[*at] * (1.0 - ALIKE));
        }
        maxima.push(largest);
    }
    let mut adjusted = vec![1.0; observed.len()];
    let mut so_far = 0f64;
    for at in order {
        so_far = so_far.max(at_least[at] as f64 / all.max(1) as f64);
        adjusted[at] = so_far;
    }
    maxima.sort_unstable_by(|a, b| b.total_cmp(a));
    MaxT { adjusted, maxima }
}
