//! Quantiles and tails of distributions, each with a method that suits its arguments.

use statrs::distribution::{ContinuousCDF, Gamma, Normal, StudentsT};
use statrs::function::beta::beta_reg;

/// The quantile of Student's t; infinite without a degree of freedom.
pub(crate) fn t_quantile(probability: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(probability))
}

/// The distribution function of Student's t; 0.5 without a degree of freedom, because nothing is known then.
pub(super) fn t_below(x: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(0.5, |t| t.cdf(x))
}

/// The quantile of the normal distribution.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    Normal::new(0.0, 1.0).map_or(f64::INFINITY, |normal| normal.inverse_cdf(probability))
}

/// From this many events on, approximations are exact to a thousandth of their standard deviation and the library's
/// iterations fail: its Newton steps for the gamma distribution diverge from about 10^5 on, and those for the beta
/// distribution do not end for shapes such as 10^7 and 10.
const MANY: f64 = 1e4;
/// The same limit for the smaller shape of the beta distribution.
const MANY_OF_BOTH: f64 = 1e3;
/// The number of bisections of a range of log odds, which is about 100 wide.
const HALVINGS: usize = 64;

/// The quantile of a gamma distribution of unit scale and large shape, by the cube-root approximation of Wilson and
/// Hilferty.
fn gamma_of_many(shape: f64, at: f64) -> f64 {
    let root = 1.0 - 1.0 / (9.0 * shape) + normal_quantile(at) / (3.0 * shape.sqrt());
    shape * root.powi(3)
}

/// The quantile of a beta distribution of two shapes of at least 1, of any size.
fn beta_quantile(a: f64, b: f64, at: f64) -> f64 {
    if a.min(b) >= MANY_OF_BOTH {
        return beta_of_many(a, b, at);
    }
    // Searches by odds, which lie near a / b for any size of either.
    let of = |log_odds: f64| {
        let odds = log_odds.exp();
        odds / (1.0 + odds)
    };
    let (mut low, mut high) = ((a / b).ln() - 50.0, (a / b).ln() + 50.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let x = of(middle);
        if x < 1.0 && beta_reg(a, b, x) < at {
            low = middle;
        } else {
            high = middle;
        }
    }
    of(f64::midpoint(low, high))
}

/// The beta quantile for two large shapes: its odds are those of two gamma variables, whose cube roots are normal
/// (Paulson's form of the F distribution).
fn beta_of_many(a: f64, b: f64, at: f64) -> f64 {
    let (of_a, of_b, z) = (1.0 / (9.0 * a), 1.0 / (9.0 * b), normal_quantile(at));
    // z = ((1 - of_b) r - (1 - of_a)) / sqrt(of_b r^2 + of_a), for the cube root r of (odds b / a).
    let (mean_a, mean_b) = (1.0 - of_a, 1.0 - of_b);
    let square = mean_b * mean_b - z * z * of_b;
    let under = mean_a * mean_a * of_b + mean_b * mean_b * of_a - z * z * of_a * of_b;
    let root = (mean_a * mean_b + z * under.max(0.0).sqrt()) / square;
    let odds = root.powi(3) * a / b;
    odds / (1.0 + odds)
}

/// Garwood's confidence interval for the mean of a Poisson count.
pub(super) fn poisson_bounds(events: u64, level: f64) -> (f64, f64) {
    let tail = (1.0 - level) / 2.0;
    let quantile = |shape: f64, at: f64| {
        if shape > MANY {
            return gamma_of_many(shape, at);
        }
        Gamma::new(shape, 1.0).map_or(f64::NAN, |gamma| gamma.inverse_cdf(at))
    };
    let low = if events == 0 {
        0.0
    } else {
        quantile(events as f64, tail)
    };
    (low, quantile(events as f64 + 1.0, 1.0 - tail))
}

/// The Clopper-Pearson interval for the probability of a success, given `k` of `n`.
pub(super) fn binomial_interval(k: u64, n: u64, level: f64) -> (f64, f64) {
    let tail = (1.0 - level) / 2.0;
    let quantile = beta_quantile;
    let (successes, failures) = (k as f64, n.saturating_sub(k) as f64);
    let low = if k == 0 {
        0.0
    } else {
        quantile(successes, failures + 1.0, tail)
    };
    let high = if k >= n {
        1.0
    } else {
        quantile(successes + 1.0, failures, 1.0 - tail)
    };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distribution function that [`beta_of_many`] inverts.
    fn beta_below_of_many(a: f64, b: f64, x: f64) -> f64 {
        if x <= 0.0 || x >= 1.0 {
            return if x <= 0.0 { 0.0 } else { 1.0 };
        }
        let (of_a, of_b) = (1.0 / (9.0 * a), 1.0 / (9.0 * b));
        let root = (x / (1.0 - x) * b / a).cbrt();
        let z = ((1.0 - of_b) * root - (1.0 - of_a)) / (of_b * root * root + of_a).sqrt();
        Normal::new(0.0, 1.0).map_or(f64::NAN, |normal| normal.cdf(z))
    }

    /// P(X >= k) of a binomial of `n` trials of this probability.
    fn binomial_at_least(k: u64, n: u64, probability: f64) -> f64 {
        if k == 0 {
            return 1.0;
        }
        if k > n {
            return 0.0;
        }
        let (a, b) = (k as f64, (n - k) as f64 + 1.0);
        if a.min(b) >= MANY_OF_BOTH {
            return beta_below_of_many(a, b, probability);
        }
        beta_reg(a, b, probability)
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (found, table) in [
            (t_quantile(0.975, 7.0), 2.364_6),
            (t_quantile(0.995, 15.0), 2.946_7),
            (t_quantile(0.95, 1.0), 6.313_8),
            (t_below(2.364_6, 7.0), 0.975),
            (t_below(1.0, 1.0), 0.75),
        ] {
            assert!((found - table).abs() < 1e-3, "{found} is not {table}");
        }
        assert!(t_quantile(0.975, 0.0).is_infinite());
    }

    #[test]
    fn bounds_of_counts_are_those_of_the_tables() {
        for (events, low, high) in [
            (0, 0.0, 3.688_9),
            (1, 0.025_3, 5.571_6),
            (8, 3.453_8, 15.763_2),
            (100, 81.364, 121.627),
        ] {
            let found = poisson_bounds(events, 0.95);
            assert!(
                (found.0 - low).abs() < 1e-3 && (found.1 - high).abs() < 1e-3,
                "{events}: {found:?}"
            );
        }
        assert!((normal_quantile(0.95) - 1.644_9).abs() < 1e-4);
    }

    #[test]
    fn bounds_of_many_events_go_on_from_those_of_few() {
        // sqrt(n) times the normal quantile, plus the skew term: exact to far less than a hundredth of it.
        for events in [
            9_999u64,
            10_000,
            150_000,
            300_000,
            3_000_000,
            10_000_000,
            5_000_000_000,
        ] {
            let n = events as f64;
            let (low, high) = poisson_bounds(events, 0.95);
            let expected = (
                n - 1.959_964 * n.sqrt() + 0.947,
                n + 1.959_964 * n.sqrt() + 1.947,
            );
            let off = |found: f64, expected: f64| (found - expected).abs() / n.sqrt();
            assert!(
                off(low, expected.0) < 0.001 && off(high, expected.1) < 0.001,
                "{events}: {low} {high}"
            );
        }
    }

    #[test]
    fn proportions_of_any_counts_have_bounds() {
        // One large count: Garwood's interval of the small one over the large one, because the share is small.
        for (k, n) in [
            (10u64, 8_000_000u64),
            (10, 10_000_000),
            (50, 10_000_000),
            (4_000, 500_000_000),
        ] {
            let (low, high) = binomial_interval(k, n, 0.95);
            let of = poisson_bounds(k, 0.95);
            for (found, expected) in [(low, of.0), (high, of.1)] {
                assert!(
                    (found * n as f64 / expected - 1.0).abs() < 1e-3,
                    "{k} of {n}: {found} {expected}"
                );
            }
            let mirrored = binomial_interval(n - k, n, 0.95);
            assert!(
                (1.0 - mirrored.1 - low).abs() < 1e-3 * low,
                "{k} of {n}: {mirrored:?}"
            );
            assert!(
                (1.0 - mirrored.0 - high).abs() < 1e-3 * high,
                "{k} of {n}: {mirrored:?}"
            );
        }
        // Both large: the normal interval, on either side of the change of method.
        for (k, n) in [
            (990u64, 2_000u64),
            (1_005, 2_010),
            (999, 500_000),
            (1_001, 500_000),
            (1 << 40, 1 << 42),
        ] {
            let (low, high) = binomial_interval(k, n, 0.95);
            let (share, n) = (k as f64 / n as f64, n as f64);
            let deviation = (share * (1.0 - share) / n).sqrt();
            let center = f64::midpoint(low, high);
            assert!(
                (center - share).abs() < 0.06 * deviation,
                "{k}: {low} {high}"
            );
            assert!(
                ((high - low) / (2.0 * 1.959_964 * deviation) - 1.0).abs() < 0.03,
                "{k}: {low} {high}"
            );
        }
        for (k, n) in [
            (1_500u64, 400_000u64),
            (5_000_000, 11_000_000),
            (1 << 40, 1 << 42),
        ] {
            let (low, high) = binomial_interval(k, n, 0.95);
            assert!(
                (binomial_at_least(k, n, low) - 0.025).abs() < 1e-4,
                "{k} of {n}"
            );
            assert!(
                (1.0 - binomial_at_least(k + 1, n, high) - 0.025).abs() < 1e-4,
                "{k} of {n}"
            );
        }
        let (before, after) = (
            binomial_interval(998, 300_000, 0.95),
            binomial_interval(1_002, 300_000, 0.95),
        );
        assert!(
            (after.0 - before.0 - 4.0 / 3e5).abs() < 1e-6
                && (after.1 - before.1 - 4.0 / 3e5).abs() < 1e-6
        );
    }

    #[test]
    fn tails_of_a_fair_coin() {
        assert!((binomial_at_least(8, 8, 0.5) - 1.0 / 256.0).abs() < 1e-9);
        assert!((binomial_at_least(1, 2, 0.5) - 0.75).abs() < 1e-9);
        assert_eq!(
            (binomial_at_least(0, 3, 0.5), binomial_at_least(4, 3, 0.5)),
            (1.0, 0.0)
        );
        // The rule of three: nothing in n trials is below 3.69 / n at 97.5 %.
        let (low, high) = binomial_interval(0, 100, 0.95);
        assert!(low == 0.0 && (high - 0.036_2).abs() < 1e-3, "{high}");
        assert_eq!(binomial_interval(5, 5, 0.95).1, 1.0);
    }

    #[test]
    fn what_lies_below_a_quantile_of_many_is_its_probability() {
        for (a, b) in [
            (9.0, 30.0),
            (40.0, 12.0),
            (1e3, 1e3),
            (5e3, 1e6),
            (1e9, 2e3),
        ] {
            for at in [1e-4, 0.025, 0.3, 0.5, 0.9, 0.999] {
                let below = beta_below_of_many(a, b, beta_of_many(a, b, at));
                assert!((below - at).abs() < 1e-7, "{a} {b}: {below} is not {at}");
            }
            // Values beyond the ends.
            let ends = [-0.5, 0.0, 1.0, 1.5].map(|x| beta_below_of_many(a, b, x));
            assert_eq!(ends, [0.0, 0.0, 1.0, 1.0], "{a} {b}");
        }
    }

    #[test]
    fn one_of_however_many_has_the_bounds_of_one() {
        let (low, high) = poisson_bounds(1, 0.95);
        for n in [1u64 << 20, 1 << 30, 1 << 40] {
            let found = binomial_interval(1, n, 0.95);
            for (found, expected) in [(found.0, low), (found.1, high)] {
                assert!(
                    (found * n as f64 / expected - 1.0).abs() < 1e-3,
                    "{n}: {found}"
                );
            }
        }
    }
}
