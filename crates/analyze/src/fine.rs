//! Lengths with a resolution below a nanosecond.

use jitterscope_model::{Nanos, TickRate};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// A length in nanoseconds with a fraction, for values near the clock's tick: floors, means, deviations and
/// percentiles. Rounded to a picosecond, below which nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct FineNanos(pub f64);

impl FineNanos {
    /// From (fractions of) ticks.
    #[must_use]
    pub fn from_ticks(ticks: f64, rate: TickRate) -> FineNanos {
        FineNanos::from_nanos(ticks * 1e9 / rate.hz.max(1) as f64)
    }

    /// From (fractions of) nanoseconds.
    #[must_use]
    pub fn from_nanos(ns: f64) -> FineNanos {
        FineNanos((ns * 1e3).round() / 1e3)
    }

    /// Rounded to whole nanoseconds.
    #[must_use]
    pub fn rounded(self) -> Nanos {
        // A float cast saturates, and turns NaN into zero.
        Nanos(self.0.round() as u64)
    }
}

impl fmt::Display for FineNanos {
    /// Three significant digits and a suitable unit: `6.92 ns`, `13.8 ns`, `1.30 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns > 0.0 && ns < 9.995 => f.pad(&format!("{ns:.2} ns")),
            ns if (9.995..99.95).contains(&ns) => f.pad(&format!("{ns:.1} ns")),
            _ => self.rounded().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::RateSource;

    #[test]
    fn shows_three_digits() {
        let rate = TickRate {
            hz: 2_600_000_000,
            error_ppb: 0,
            source: RateSource::Cpuid,
        };
        assert_eq!(FineNanos::from_ticks(18.0, rate).to_string(), "6.92 ns");
        assert_eq!(FineNanos::from_ticks(36.0, rate).to_string(), "13.8 ns");
        assert_eq!(FineNanos::from_ticks(2600.0, rate).to_string(), "1.00 us");
        // Also at the borders, on whichever side binary fractions fall.
        assert_eq!(
            [9.994, 9.995, 99.94].map(|ns| FineNanos(ns).to_string()),
            ["9.99 ns", "10.0 ns", "99.9 ns"]
        );
        assert_eq!(FineNanos(99.95).to_string(), "100 ns");
        assert_eq!(FineNanos(0.0).to_string(), "0 ns");
        assert_eq!(FineNanos::from_ticks(18.0, rate).0, 6.923);
    }
}
