//! The permutation test of unpaired runs: if the setting had no effect, any run could equally be of the other arm.

use super::Scale;
use super::max_t::{MaxT, max_t};
use super::sample::Moments;

/// Up to this many divisions of the runs into two arms the test enumerates all.
const EXACT: u64 = 20_000;
/// The number of random divisions beyond that.
const DRAWS: u64 = 10_000;
/// Fixed, so that a repeated comparison has the same result.
const SEED: u64 = 0x6a69_7474_6572;

/// The two arms of a hypothesis.
pub type Arms = (Vec<f64>, Vec<f64>);

/// The two-sided probabilities that chance alone puts the arms of these hypotheses about the same runs this far apart,
/// adjusted for their number. Each must have a figure for every run; the distance between its arms has at least the
/// standard error in `least`.
#[must_use]
pub(super) fn permutations(hypotheses: &[Arms], least: &[f64]) -> MaxT {
    let Some((a, b)) = hypotheses.first().map(|(a, b)| (a.len(), b.len())) else {
        return MaxT::default();
    };
    let all = a + b;
    if a == 0 || b == 0 || all < 3 {
        return MaxT {
            adjusted: vec![1.0; hypotheses.len()],
            maxima: Vec::new(),
        };
    }
    let positions: Vec<Vec<f64>> = hypotheses
        .iter()
        .map(|(first, second)| {
            let figures = || first.iter().chain(second).copied();
            let scale = Scale::of(figures());
            figures().map(|figure| scale.position(figure)).collect()
        })
        .collect();
    let (mut one, mut other) = (Vec::with_capacity(a), Vec::with_capacity(b));
    let mut fill = |in_first: &[bool], statistics: &mut [f64]| {
        for ((statistic, positions), least) in statistics.iter_mut().zip(&positions).zip(least) {
            one.clear();
            other.clear();
            for (position, first) in positions.iter().zip(in_first) {
                if *first {
                    one.push(*position)
                } else {
                    other.push(*position)
                }
            }
            *statistic = welch(&one, &other, *least);
        }
    };
    let mut in_first: Vec<bool> = (0..all).map(|at| at < a).collect();
    let mut observed = vec![0.0; hypotheses.len()];
    fill(&in_first, &mut observed);
    let exact = divisions(all, a).is_some_and(|count| count <= EXACT);
    let mut random = fastrand::Rng::with_seed(SEED);
    let (mut done, mut first_turn) = (0, true);
    max_t(&observed, !exact, |statistics| {
        if exact {
            // The observed division comes first: all `true` first.
            if !first_turn && !next_division(&mut in_first) {
                return false;
            }
            first_turn = false;
        } else {
            if done == DRAWS {
                return false;
            }
            done += 1;
            random.shuffle(&mut in_first);
        }
        fill(&in_first, statistics);
        true
    })
}

/// The smallest probability that arms of these sizes can give.
#[must_use]
pub fn smallest_of_shuffles(first: usize, second: usize) -> f64 {
    let mirrored = if first == second { 2.0 } else { 1.0 };
    let count = divisions(first + second, first).map_or(f64::INFINITY, |count| count as f64);
    (mirrored / count).min(1.0)
}

/// The absolute value of Welch's t, with at least this standard error; infinite if the arms differ and have no error.
fn welch(first: &[f64], second: &[f64], least: f64) -> f64 {
    let apart = |a: f64, b: f64, error: f64| match (a - b).abs() {
        0.0 => 0.0,
        apart if error.max(least) > 0.0 => apart / error.max(least),
        _ => f64::INFINITY,
    };
    match (Moments::of(first), Moments::of(second)) {
        (Some(a), Some(b)) => apart(a.mean, b.mean, a.error().hypot(b.error())),
        // One run against several: only those have scatter.
        (Some(a), None) => apart(a.mean, second[0], a.deviation),
        (None, Some(b)) => apart(first[0], b.mean, b.deviation),
        (None, None) => (first[0] - second[0]).abs(),
    }
}

/// The binomial coefficient of `all` and `chosen`; `None` beyond what is ever enumerated.
fn divisions(all: usize, chosen: usize) -> Option<u64> {
    let chosen = chosen.min(all - chosen);
    (0..chosen).try_fold(1u64, |count, at| {
        let count = count.checked_mul((all - at) as u64)? / (at as u64 + 1);
        (count < 1 << 40).then_some(count)
    })
}

/// The next division in descending order; false after the last.
fn next_division(in_first: &mut [bool]) -> bool {
    // As for all permutations: the last true before a false moves one to the right, and those after it follow directly.
    let Some(at) = in_first.windows(2).rposition(|pair| pair[0] && !pair[1]) else {
        return false;
    };
    let behind = in_first[at + 2..].iter().filter(|first| **first).count();
    in_first[at] = false;
    in_first[at + 1..].fill(false);
    in_first[at + 1..at + 2 + behind].fill(true);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn permutation(first: &[f64], second: &[f64]) -> f64 {
        permutations(&[(first.to_vec(), second.to_vec())], &[0.0]).adjusted[0]
    }

    #[test]
    fn every_division_comes_once() {
        let mut division = [true, true, true, false, false, false, false];
        let mut seen = BTreeSet::from([division]);
        while next_division(&mut division) {
            assert_eq!(division.iter().filter(|first| **first).count(), 3);
            assert!(seen.insert(division));
        }
        assert_eq!(seen.len() as u64, divisions(7, 3).unwrap());
    }

    #[test]
    fn arms_that_do_not_overlap_have_the_smallest_probability() {
        let p = permutation(&[1.0, 1.1, 1.2, 1.3, 1.4], &[2.0, 2.2, 2.4, 2.1, 2.3]);
        assert_eq!(p, 2.0 / 252.0);
        assert_eq!(smallest_of_shuffles(5, 5), 2.0 / 252.0);
        assert_eq!(smallest_of_shuffles(1, 1), 1.0);
        assert_eq!(permutation(&[1.0], &[2.0]), 1.0);
        assert_eq!(permutation(&[1.0], &[2.0, 2.1]), 1.0 / 3.0);
        assert_eq!(
            [
                permutation(&[], &[1.0, 2.0, 3.0]),
                permutation(&[1.0, 2.0, 3.0], &[])
            ],
            [1.0; 2]
        );
        assert_eq!(permutation(&[3.0, 3.0], &[3.0, 3.0]), 1.0);
    }

    #[test]
    fn many_runs_are_sampled() {
        let first: Vec<f64> = (0..12).map(|n| 10.0 + f64::from(n % 5)).collect();
        let second: Vec<f64> = (0..12).map(|n| 20.0 + f64::from(n % 5)).collect();
        assert!(permutation(&first, &second) < 0.001);
        assert!(permutation(&first, &first) > 0.9);
    }

    #[test]
    fn one_effect_among_many_is_found_and_alone() {
        let noise =
            |k: u32| -> Vec<f64> { (1..11).map(|n| f64::from((n * n * k) % 11) + 1.0).collect() };
        let mut hypotheses: Vec<Arms> = (1..9)
            .map(|k| (noise(k)[..5].to_vec(), noise(k)[5..].to_vec()))
            .collect();
        hypotheses.push((
            vec![1.0, 1.1, 1.0, 0.9, 1.05],
            vec![50.0, 52.0, 49.0, 51.0, 50.5],
        ));
        let adjusted = permutations(&hypotheses, &[0.0; 9]).adjusted;
        assert!(adjusted[8] < 0.05, "{adjusted:?}");
        assert!(adjusted[..8].iter().all(|p| *p > 0.05), "{adjusted:?}");
    }

    #[test]
    fn labels_with_counts_of_one_event_hide_no_large_change() {
        let clear = (vec![1.0, 1.1, 1.0, 0.9], vec![50.0, 52.0, 49.0, 51.0]);
        let one_event = (vec![1.0, 0.0, 1.0, 0.0], vec![0.0, 1.0, 0.0, 1.0]);
        let both = [clear, one_event];
        assert_eq!(permutations(&both, &[0.0; 2]).adjusted[0], 4.0 / 70.0);
        assert_eq!(permutations(&both, &[0.0, 0.5]).adjusted[0], 2.0 / 70.0);
    }
}
