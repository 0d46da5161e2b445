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
/// hypothesis must have a distance for every pair. The maxima are values of t.
#[must_use]
pub(super) fn sign_flips(hypotheses: &[Vec<f64>]) -> MaxT {
    let pairs = hypotheses.iter().map(Vec::len).min().unwrap_or(0);
    if pairs == 0 {
        return MaxT {
            adjusted: vec![1.0; hypotheses.len()],
            maxima: Vec::new(),
        };
    }
    let scales: Vec<f64> = hypotheses
        .iter()
        .map(|h| h[..pairs].iter().map(|d| d * d).sum::<f64>().sqrt())
        .collect();
    let fill = |signs: &[f64], statistics: &mut [f64]| {
        for ((statistic, distances), scale) in statistics.iter_mut().zip(hypotheses).zip(&scales) {
            let sum: f64 = distances
                .iter()
                .zip(signs)
                .map(|(distance, sign)| distance * sign)
                .sum();
            *statistic = if *scale > 0.0 { sum.abs() / scale } else { 0.0 };
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
    // The statistic is a function of t alone, and quicker.
    let n = pairs as f64;
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
        sign_flips(&[distances.to_vec()]).adjusted[0]
    }

    #[test]
    fn the_limit_of_chance_is_a_value_of_t_that_is_larger_for_many() {
        let one: Vec<f64> = (0..12).map(|n| f64::from(n * 5 % 12) - 5.4).collect();
        let single = sign_flips(std::slice::from_ref(&one)).critical(0.05);
        // The table has 2.201 for eleven degrees of freedom.
        assert!((single - 2.201).abs() < 0.2, "{single}");
        let many: Vec<Vec<f64>> = (1..11)
            .map(|k| {
                (0..12)
                    .map(|n| f64::from((n * n * k + n) % 13) - 6.0)
                    .collect()
            })
            .collect();
        assert!(sign_flips(&many).critical(0.05) > single + 0.3);
        // Five pairs cannot show anything: everything counts as chance.
        let five = sign_flips(&[vec![1.0, 1.1, 0.9, 1.0, 1.2]]);
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
        assert_eq!(sign_flips(&[vec![]]).adjusted, [1.0]);
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
        let adjusted = sign_flips(&hypotheses).adjusted;
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
        let twice = sign_flips(&[distances.clone(), distances.clone()]).adjusted;
        assert_eq!(twice, vec![sign_flip(&distances); 2]);
    }

    #[test]
    fn in_what_unit_a_hypothesis_is_counted_costs_the_others_nothing() {
        let (one, other) = (
            vec![3.0, 1.0, 2.0, 2.5, -0.5, 1.5, 2.0, 1.0],
            vec![1.0, -1.0, 2.0, 0.5, 1.0, -2.0, 1.0, 3.0],
        );
        let of = |unit: f64| {
            sign_flips(&[one.clone(), other.iter().map(|d| d * unit).collect()]).adjusted
        };
        assert!(of(1.0)[0] < of(1.0)[1] && of(1.0)[1] < 1.0, "{:?}", of(1.0));
        // Powers of two do not round.
        for unit in [1024.0, 1.0 / 1024.0] {
            assert_eq!(of(unit), of(1.0));
        }
    }
}
