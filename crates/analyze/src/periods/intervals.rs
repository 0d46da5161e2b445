//! Periods without a clock: intervals of equal length whose phase drifts too far for a spectrum.
//!
//! For a process without memory, the logarithm of an interval is spread over more than a factor of two: of exponential
//! intervals 2w/e lie within ±w of any length, of a mixture fewer, and of those after a dead time of half the shortest
//! period (see `thinned`) at most twice as many. So if a share well above [`BY_CHANCE`] lies within ±[`WIDTH`] of one
//! length, the intervals are regular.

/// The relative half width of "equal length".
const WIDTH: f64 = 0.05;
/// The share of intervals within it that a process without memory can have: 4 · WIDTH / e is 0.074.
const BY_CHANCE: f64 = 0.1;
/// The share that must lie within it for the events to count as regular, however many they are.
const MOST: f64 = 0.5;

/// The length (seconds) that most intervals have, and ln of the probability of this by chance over all tried lengths;
/// `None` if no length has most of them.
pub(super) fn regular(times: &[f64]) -> Option<(f64, f64)> {
    let mut intervals: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    intervals.sort_by(f64::total_cmp);
    let n = intervals.len();
    let (mut best, mut end) = ((0, 0), 0);
    for start in 0..n {
        let limit = intervals[start] * (1.0 + WIDTH) / (1.0 - WIDTH);
        while end < n && intervals[end] <= limit {
            end += 1;
        }
        if end - start > best.1 - best.0 {
            best = (start, end);
        }
    }
    let count = best.1 - best.0;
    if n < 2 || (count as f64) < MOST * n as f64 {
        return None;
    }
    // The interval that starts the window is given.
    let ln = ln_tail(n - 1, count - 1) + (n as f64).ln();
    Some((intervals[best.0 + count / 2], ln))
}

/// ln P(at least `k` of `n`) with probability [`BY_CHANCE`], by Chernoff's bound.
fn ln_tail(n: usize, k: usize) -> f64 {
    let (n, share) = (n as f64, k as f64 / n as f64);
    if share <= BY_CHANCE {
        return 0.0;
    }
    let part = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 };
    -n * (part(share, BY_CHANCE) + part(1.0 - share, 1.0 - BY_CHANCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_that_was_tried_counts_against_the_one_that_was_found() {
        let times: Vec<f64> = (0..=10).map(f64::from).collect();
        let (length, ln) = regular(&times).unwrap();
        // Nine intervals as long as the first, by chance one in ten each, and ten lengths tried.
        assert!(
            (length - 1.0).abs() < 1e-9 && (ln - (9.0 * 0.1f64.ln() + 10f64.ln())).abs() < 1e-9,
            "{ln}"
        );
    }

    #[test]
    fn intervals_of_which_fewer_than_half_are_alike_are_not_regular() {
        let of = |alike: i32| -> Vec<f64> {
            let lengths = (0..20).map(|n| if n < alike { 1.0 } else { 2f64.powi(n) });
            lengths
                .scan(0.0, |at, length| {
                    *at += length;
                    Some(*at)
                })
                .collect()
        };
        assert_eq!(regular(&of(8)), None);
        assert!(regular(&of(15)).is_some());
        assert_eq!(regular(&[1.0, 2.0]), None);
    }

    #[test]
    fn a_share_within_chance_proves_nothing_by_chernoffs_bound() {
        let part = |p: f64, q: f64| p * (p / q).ln();
        for (n, k, wanted) in [
            (10, 0, 0.0),
            (10, 1, 0.0),
            (10, 10, 10.0 * 0.1f64.ln()),
            (10, 5, -10.0 * (part(0.5, 0.1) + part(0.5, 0.9))),
            (40, 10, -40.0 * (part(0.25, 0.1) + part(0.75, 0.9))),
        ] {
            assert!(
                (ln_tail(n, k) - wanted).abs() < 1e-9,
                "{k} of {n}: {}",
                ln_tail(n, k)
            );
        }
    }

    #[test]
    fn intervals_are_of_one_length_within_a_twentieth_to_either_side() {
        let of = |lengths: &[f64]| {
            let mut at = 0.0;
            let ends = lengths.iter().map(|length| {
                at += length;
                at
            });
            regular(&std::iter::once(0.0).chain(ends).collect::<Vec<f64>>())
        };
        let near = |found: Option<(f64, f64)>, length: f64, alike: usize, all: usize| {
            let (found, ln) = found.unwrap();
            let wanted = ln_tail(all - 1, alike - 1) + (all as f64).ln();
            assert!(
                (found - length).abs() < 1e-9 && (ln - wanted).abs() < 1e-9,
                "{found} {ln}"
            );
        };
        // 1.05 over 0.95 is 1.105.
        near(of(&[1.0, 1.1]), 1.1, 2, 2);
        near(of(&[1.0, 1.11]), 1.0, 1, 2);
        // The middle one of the equal ones, wherever they lie among the rest.
        near(of(&[1.02, 0.2, 1.0, 9.0, 1.04]), 1.02, 3, 5);
        near(of(&[1.0, 1.0, 1.0, 1.05, 1.05, 3.0]), 1.0, 5, 6);
        assert_eq!([of(&[]), of(&[1.0])], [None; 2]);
    }
}
