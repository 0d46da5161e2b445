//! Many hypotheses at once: Westfall and Young's step-down maximum of t.

/// The relative tolerance for equal statistics.
const ALIKE: f64 = 1e-9;

/// For each hypothesis, the probability that chance alone makes a statistic this large among all those that are no
/// larger. The result is adjusted for their number, and exact if the rearrangements are enumerated. `rearranged` fills
/// in the statistics of the next rearrangement, and returns false at the end. With `drawn`, the rearrangements are a
/// sample, to which the observed one is added.
pub(super) fn step_down(
    observed: &[f64],
    drawn: bool,
    mut rearranged: impl FnMut(&mut [f64]) -> bool,
) -> Vec<f64> {
    let mut order: Vec<usize> = (0..observed.len()).collect();
    order.sort_by(|a, b| observed[*b].total_cmp(&observed[*a]));
    let mut at_least = vec![u64::from(drawn); observed.len()];
    let mut all = u64::from(drawn);
    let mut statistics = vec![0.0; observed.len()];
    while rearranged(&mut statistics) {
        all += 1;
        // From the smallest observed statistic upwards: the running maximum.
        let mut largest = 0f64;
        for at in order.iter().rev() {
            largest = largest.max(statistics[*at]);
            at_least[*at] += u64::from(largest >= observed[*at] * (1.0 - ALIKE));
        }
    }
    let mut adjusted = vec![1.0; observed.len()];
    let mut so_far = 0f64;
    for at in order {
        so_far = so_far.max(at_least[at] as f64 / all.max(1) as f64);
        adjusted[at] = so_far;
    }
    adjusted
}
