//! Mean and standard deviation from exact sums.

/// Mean and standard deviation (of the whole population) in ticks; `None` if `n` is 0.
///
/// The variance is `(n * sum of squares - sum^2) / n^2`. Its numerator is a difference of two large and nearly equal
/// numbers, so it uses integers: floating point would lose a deviation that is small against the mean.
pub(crate) fn mean_and_deviation(n: u64, sum: u64, squares: u128) -> Option<(f64, f64)> {
    if n == 0 {
        return None;
    }
    let mean = sum as f64 / n as f64;
    let exact = u128::from(n)
        .checked_mul(squares)
        .and_then(|scaled| scaled.checked_sub(u128::from(sum) * u128::from(sum)));
    let variance = match exact {
        Some(numerator) => numerator as f64 / (n as f64 * n as f64),
        // 128 bits overflow after years of measuring, and for contradictory sums.
        None => (squares as f64 / n as f64 - mean * mean).max(0.0),
    };
    Some((mean, variance.sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_deviations_beside_large_counts_survive() {
        // A billion deltas of 18 ticks and one of 19, twice.
        let (n, sum, squares) = (
            2_000_000_002u64,
            36_000_000_038u64,
            2_000_000_000u128 * 324 + 2 * 361,
        );
        let (mean, deviation) = mean_and_deviation(n, sum, squares).unwrap();
        assert!((mean - 18.000_000_001).abs() < 1e-9);
        assert!((deviation - 1e-9f64.sqrt()).abs() < 1e-9, "{deviation}");
        assert_eq!(mean_and_deviation(0, 0, 0), None);
    }

    #[test]
    fn where_128_bits_are_too_few_it_is_taken_in_floating_point() {
        // Half of 2^60 values are 0, half are 4.
        assert_eq!(
            mean_and_deviation(1 << 60, 1 << 61, 8 << 60),
            Some((2.0, 2.0))
        );
        // 2^60 values of mean 12, the squares' mean is 400: their product needs 129 bits.
        assert_eq!(
            mean_and_deviation(1 << 60, 12 << 60, 400 << 60),
            Some((12.0, 16.0))
        );
        let (mean, deviation) = mean_and_deviation(1 << 60, 3 << 60, 1 << 100).unwrap();
        assert!((mean - 3.0).abs() < 1e-9);
        assert!(
            (deviation - ((1u64 << 40) as f64 - 9.0).sqrt()).abs() < 1e-3,
            "{deviation}"
        );
    }

    proptest! {
        #[test]
        fn as_computed_naively(values in proptest::collection::vec(0u64..1 << 40, 1..200)) {
            let n = values.len() as f64;
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / n;
            let deviation = (values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / n).sqrt();
            let squares = values.iter().map(|v| u128::from(*v).pow(2)).sum();
            let (m, d) = mean_and_deviation(values.len() as u64, values.iter().sum(), squares).unwrap();
            prop_assert!((m - mean).abs() <= 1e-9 * mean.max(1.0));
            prop_assert!((d - deviation).abs() <= 1e-6 * deviation.max(1.0));
        }

        #[test]
        fn contradicting_sums_do_not_panic(n: u64, sum: u64, squares: u128) {
            let _ = mean_and_deviation(n, sum, squares);
        }
    }
}
