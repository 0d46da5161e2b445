//! The sign-flip test of pairs: if the setting had no effect, each pair's distance could equally have the other sign.

use super::max_t::{MaxT, max_t};

/// Up to this many pairs the test enumerates all flips.
const EXACT: usize = 16;
/// The number of random flips beyond that.
const DRAWS: u64 = 20_000;
/// Fixed, so that a repeated comparison has the same result.
const SEED: u64 = 0x6a69_7474_6572;

/// The two-sided probabilities that chance alone makes the mean distances of these hypotheses this large, adjusted for
/// their number. All distances of a pair are flipped together, so that correlated figures do not count twice. Each
/// hypothesis must have a distance for every pair; its mean has at least the standard error in `least`. The maxima are
/// values of t.
#[must_use]
pub(super) fn sign_flips(hypotheses: &[Vec<f64>], least: &[f64]) -> MaxT {
    let pairs = hypotheses.iter().map(Vec::len).min().unwrap_or(0);
    if pairs == 0 {
        return MaxT {
            adjusted: vec![1.0; hypotheses.len()],
            maxima: Vec::new(),
        };
    }
    let n = pairs as f64;
    // The squares of all distances, whatever their signs, and the least squares about the mean.
    let squares: Vec<[f64; 2]> = hypotheses
        .iter()
        .zip(least)
        .map(|(distances, least)| {
            let all = distances[..pairs].iter().map(|d| d * d).sum();
            [all, n * (n - 1.0) * least * least]
        })
        .collect();
    // The statistic is a function of t alone, quicker, and does not round where the distances have no scatter.
    let fill = |signs: &[f64], statistics: &mut [f64]| {
        for ((statistic, distances), [all, least]) in
            statistics.iter_mut().zip(hypotheses).zip(&squares)
        {
            let sum: f64 = distances
                .iter()
                .zip(signs)
                .map(|(distance, sign)| distance * sign)
                .sum();
            let scale = all.max(least + sum * sum / n).sqrt();
            *statistic = if scale > 0.0 { sum.abs() / scale } else { 0.0 };
        }
    };
    let mut signs = vec![1.0; pairs];
    let mut observed = vec![0.0; hypotheses.len()];
    fill(&signs, &mut observed);
    let exact = pairs <= EXACT;
    // The other half of the flips mirrors the first, with the same statistics.
    let flips = if exact { 1 << (pairs - 1) } else { DRAWS };
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut next = 0u64;
    let mut found = max_t(&observed, !exact, |statistics| {
        if next == flips {
            return false;
        }
        for (at, sign) in signs.iter_mut().enumerate() {
            let flipped = if exact {
                next >> at & 1 == 1
            } else {
                random.bool()
            };
            *sign = if flipped { -1.0 } else { 1.0 };
        }
        fill(&signs, statistics);
        next += 1;
        true
    });
    for of in &mut found.maxima {
        *of *= ((n - 1.0) / (n - *of * *of).max(0.0)).sqrt();
    }
    found
}

/// The smallest probability that this many pairs can give.
#[must_use]
pub fn smallest_of_flips(pairs: usize) -> f64 {
    if pairs == 0 {
        1.0
    } else {
        0.5f64.powi(i32::try_from(pairs - 1).unwrap_or(i32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign_flip(distances: &[f64]) -> f64 {
        of(&[distances.to_vec()]).adjusted[0]
    }

    fn of(hypotheses: &[Vec<f64>]) -> MaxT {
        sign_flips(hypotheses, &vec![0.0; hypotheses.len()])
    }

    #[test]
    fn the_limit_of_chance_is_a_value_of_t_that_is_larger_for_many() {
        let one: Vec<f64> = (0..12).map(|n| f64::from(n * 5 % 12) - 5.4).collect();
        let single = of(std::slice::from_ref(&one)).critical(0.05);
        // The table has 2.201 for eleven degrees of freedom.
        assert!((single - 2.201).abs() < 0.2, "{single}");
        let many: Vec<Vec<f64>> = (1..11)
            .map(|k| {
                (0..12)
                    .map(|n| f64::from((n * n * k + n) % 13) - 6.0)
                    .collect()
            })
            .collect();
        assert!(of(&many).critical(0.05) > single + 0.3);
        // Five pairs cannot show anything: everything counts as chance.
        let five = of(&[vec![1.0, 1.1, 0.9, 1.0, 1.2]]);
        assert!(
            five.adjusted[0] > 0.05 && five.critical(0.05) > 10.0,
            "{five:?}"
        );
    }

    #[test]
    fn all_pairs_in_one_direction_are_one_flip_in_half_of_all() {
        assert_eq!(sign_flip(&[1.0; 8]), 1.0 / 128.0);
        assert_eq!(
            sign_flip(&[-3.0, -1.0, -2.0, -1.0, -5.0, -1.0, -1.0, -2.0]),
            1.0 / 128.0
        );
        assert_eq!(smallest_of_flips(8), 1.0 / 128.0);
        // One against seven: the observed flip, and the flips with a larger sum.
        assert_eq!(
            sign_flip(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0]),
            9.0 / 128.0
        );
        assert_eq!(sign_flip(&[0.0; 8]), 1.0);
        assert_eq!(of(&[vec![]]).adjusted, [1.0]);
    }

    #[test]
    fn a_sample_of_flips_agrees_with_all_of_them() {
        let many: Vec<f64> = (0..20).map(|n| f64::from(n % 7) - 2.2).collect();
        let exact = {
            let total: f64 = many.iter().sum::<f64>().abs();
            let hits = (0..1u32 << 19)
                .filter(|signs| {
                    let sum: f64 = many
                        .iter()
                        .enumerate()
                        .map(|(n, d)| if signs >> n & 1 == 1 { -d } else { *d })
                        .sum();
                    sum.abs() >= total * (1.0 - 1e-9)
                })
                .count();
            hits as f64 / f64::from(1u32 << 19)
        };
        assert!(
            (sign_flip(&many) - exact).abs() < 0.015,
            "{} and {exact}",
            sign_flip(&many)
        );
        assert!(sign_flip(&[1.0; 100]) < 1e-4);
    }

    #[test]
    fn one_clear_effect_among_many_is_found_and_alone() {
        let noise = |k: i32| {
            (0..8)
                .map(|n| f64::from((n * k * 7 + k) % 11) - 5.0)
                .collect::<Vec<f64>>()
        };
        let mut hypotheses: Vec<Vec<f64>> = (1..11).map(noise).collect();
        hypotheses.push(vec![10.0, 11.0, 9.0, 10.0, 10.0, 12.0, 9.0, 10.0]);
        let adjusted = of(&hypotheses).adjusted;
        assert!(adjusted[10] <= 2.0 / 128.0, "{adjusted:?}");
        assert!(adjusted[..10].iter().all(|p| *p > 0.05), "{adjusted:?}");
        // Adjusting never makes a probability smaller.
        for (hypothesis, p) in hypotheses.iter().zip(&adjusted) {
            assert!(*p >= sign_flip(hypothesis) - 1e-12);
        }
    }

    #[test]
    fn the_same_hypothesis_twice_costs_nothing() {
        let distances = vec![3.0, 1.0, 2.0, 2.5, -0.5, 1.5, 2.0, 1.0];
        let twice = of(&[distances.clone(), distances.clone()]).adjusted;
        assert_eq!(twice, vec![sign_flip(&distances); 2]);
    }

    #[test]
    fn in_what_unit_a_hypothesis_is_counted_costs_the_others_nothing() {
        let (one, other) = (
            vec![3.0, 1.0, 2.0, 2.5, -0.5, 1.5, 2.0, 1.0],
            vec![1.0, -1.0, 2.0, 0.5, 1.0, -2.0, 1.0, 3.0],
        );
        let in_unit =
            |unit: f64| of(&[one.clone(), other.iter().map(|d| d * unit).collect()]).adjusted;
        let plain = in_unit(1.0);
        assert!(plain[0] < plain[1] && plain[1] < 1.0, "{plain:?}");
        // Powers of two do not round.
        for unit in [1024.0, 1.0 / 1024.0] {
            assert_eq!(in_unit(unit), plain);
        }
    }

    /// Observed in an experiment: the larger t of a rearrangement was that of a count of one event a run.
    #[test]
    fn counts_that_differ_by_one_event_hide_no_large_change() {
        let clear = vec![73.0, 74.5, 73.6, 75.0, 72.8, 73.9, 74.4, 73.2];
        let one_event = vec![3.3, -3.3, -3.3, 3.3, 3.3, -3.3, 3.3, 3.3];
        let both = [clear, one_event];
        assert_eq!(sign_flips(&both, &[0.0; 2]).adjusted[0], 2.0 / 128.0);
        // Eight events in runs of 0.3 s.
        let least = 8f64.sqrt() / 8.0 / 0.3;
        let found = sign_flips(&both, &[0.0, least]);
        assert_eq!(found.adjusted[0], 1.0 / 128.0);
        let t = 73.0f64;
        assert!(found.critical(1.0 / 128.0) < t, "{found:?}");
        // t itself, where the least error is larger than the scatter.
        let alone = sign_flips(&[vec![2.0; 8]], &[0.5]);
        assert!((alone.maxima[0] - 4.0).abs() < 1e-12, "{alone:?}");
    }
}
