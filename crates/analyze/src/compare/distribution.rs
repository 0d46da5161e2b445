//! Quantiles and tails, each where its arguments make sense.

use statrs::distribution::{Beta, ContinuousCDF, Gamma, Normal, StudentsT};
use statrs::function::beta::beta_reg;

/// The quantile of Student's t; infinite without a degree of freedom.
pub(super) fn t_quantile(probability: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(probability))
}

/// Student's t up to `x`; a half without a degree of freedom, for then nothing is known.
pub(super) fn t_below(x: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(0.5, |t| t.cdf(x))
}

/// The quantile of the normal distribution.
pub(super) fn normal_quantile(probability: f64) -> f64 {
    Normal::new(0.0, 1.0).map_or(f64::INFINITY, |normal| normal.inverse_cdf(probability))
}

/// The interval of Garwood for the mean of which a count is one draw, where events come independently of one another.
pub(super) fn poisson_bounds(events: u64, level: f64) -> (f64, f64) {
    let tail = (1.0 - level) / 2.0;
    let quantile =
        |shape: f64, at: f64| Gamma::new(shape, 1.0).map_or(f64::NAN, |gamma| gamma.inverse_cdf(at));
    let low = if events == 0 { 0.0 } else { quantile(events as f64, tail) };
    (low, quantile(events as f64 + 1.0, 1.0 - tail))
}

/// P(X >= k) of a binomial of `n` trials of this probability.
pub(super) fn binomial_at_least(k: u64, n: u64, probability: f64) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if k > n {
        return 0.0;
    }
    beta_reg(k as f64, (n - k) as f64 + 1.0, probability)
}

/// The interval of Clopper and Pearson for the probability of which `k` of `n` trials came true.
pub(super) fn binomial_interval(k: u64, n: u64, level: f64) -> (f64, f64) {
    let tail = (1.0 - level) / 2.0;
    let quantile = |a: f64, b: f64, at: f64| Beta::new(a, b).map_or(f64::NAN, |beta| beta.inverse_cdf(at));
    let (successes, failures) = (k as f64, n.saturating_sub(k) as f64);
    let low = if k == 0 { 0.0 } else { quantile(successes, failures + 1.0, tail) };
    let high = if k >= n { 1.0 } else { quantile(successes + 1.0, failures, 1.0 - tail) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (events, low, high) in
            [(0, 0.0, 3.688_9), (1, 0.025_3, 5.571_6), (8, 3.453_8, 15.763_2), (100, 81.364, 121.627)]
        {
            let found = poisson_bounds(events, 0.95);
            assert!((found.0 - low).abs() < 1e-3 && (found.1 - high).abs() < 1e-3, "{events}: {found:?}");
        }
        assert!((normal_quantile(0.95) - 1.644_9).abs() < 1e-4);
    }

    #[test]
    fn tails_of_a_fair_coin() {
        assert!((binomial_at_least(8, 8, 0.5) - 1.0 / 256.0).abs() < 1e-9);
        assert!((binomial_at_least(1, 2, 0.5) - 0.75).abs() < 1e-9);
        assert_eq!((binomial_at_least(0, 3, 0.5), binomial_at_least(4, 3, 0.5)), (1.0, 0.0));
        // The rule of three: nothing in n trials is below 3.69 / n at 97.5 %.
        let (low, high) = binomial_interval(0, 100, 0.95);
        assert!(low == 0.0 && (high - 0.036_2).abs() < 1e-3, "{high}");
        assert_eq!(binomial_interval(5, 5, 0.95).1, 1.0);
    }
}
