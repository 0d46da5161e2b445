//! Instants and lengths on the measuring clock, and lengths of real time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A reading of, or a length on, the measuring clock: TSC ticks, or nanoseconds of `CLOCK_MONOTONIC_RAW` if the TSC is
/// unreliable ([`ClockKind`] says which).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Ticks(pub u64);

impl Ticks {
    /// Length from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Ticks) -> Ticks {
        Ticks(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Ticks {
    type Output = Ticks;
    fn add(self, other: Ticks) -> Ticks {
        Ticks(self.0.saturating_add(other.0))
    }
}

impl Sub for Ticks {
    type Output = Ticks;
    fn sub(self, other: Ticks) -> Ticks {
        Ticks(self.0.saturating_sub(other.0))
    }
}

/// A length of time in nanoseconds.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    pub const ZERO: Nanos = Nanos(0);

    /// Seconds, for ratios and for display only.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - other`, or zero.
    #[must_use]
    pub fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(iter: I) -> Nanos {
        iter.fold(Nanos::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    /// Three significant digits and a suitable unit: `17 ns`, `1.30 ms`, `12.4 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        let (value, unit) = match ns {
            0..=999 => return f.pad(&format!("{ns} ns")),
            1_000..=999_499 => (ns as f64 / 1e3, "us"),
            999_500..=999_499_999 => (ns as f64 / 1e6, "ms"),
            _ => (ns as f64 / 1e9, "s"),
        };
        let digits = if value < 9.995 {
            2
        } else if value < 99.95 {
            1
        } else {
            0
        };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

/// The clock that the probe reads and that the kernel stamps its events with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// The time stamp counter: `rdtsc` in the probe, `x86-tsc` in the trace.
    Tsc,
    /// `CLOCK_MONOTONIC_RAW`: `clock_gettime` in the probe, `mono_raw` in the trace. One tick is 1 ns.
    MonotonicRaw,
}

/// The source of the clock's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateSource {
    /// CPUID leaf 0x15: crystal frequency and ratio.
    Cpuid,
    /// The hypervisor's CPUID timing leaf (0x40000010).
    HypervisorCpuid,
    /// The kernel's own calibration, read from its log.
    Kernel,
    /// Measured here against `CLOCK_MONOTONIC_RAW`.
    Calibrated,
    /// One tick is one nanosecond by definition of the clock.
    Exact,
}

/// Ticks per second, and the error of this rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickRate {
    /// Ticks per second; never zero.
    pub hz: u64,
    /// Bound of the relative error, parts per billion.
    pub error_ppb: u64,
    pub source: RateSource,
}

impl TickRate {
    /// The rate of a clock that counts nanoseconds.
    pub const NANOSECONDS: TickRate = TickRate {
        hz: 1_000_000_000,
        error_ppb: 0,
        source: RateSource::Exact,
    };

    /// Converts a length in ticks to nanoseconds, rounded down.
    #[must_use]
    pub fn nanos(&self, ticks: Ticks) -> Nanos {
        let ns = u128::from(ticks.0) * 1_000_000_000 / u128::from(self.hz.max(1));
        Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Converts nanoseconds to ticks, rounded up.
    #[must_use]
    pub fn ticks(&self, nanos: Nanos) -> Ticks {
        let ticks = (u128::from(nanos.0) * u128::from(self.hz)).div_ceil(1_000_000_000);
        Ticks(u64::try_from(ticks).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nanos_print_three_digits() {
        let shown = [
            0,
            17,
            999,
            1_000,
            12_345,
            999_499,
            999_500,
            1_300_000,
            47_800_000,
            61_000_000_000,
        ]
        .map(|n| Nanos(n).to_string());
        assert_eq!(
            shown,
            [
                "0 ns", "17 ns", "999 ns", "1.00 us", "12.3 us", "999 us", "1.00 ms", "1.30 ms",
                "47.8 ms", "61.0 s"
            ]
        );
    }

    proptest! {
        #[test]
        fn ticks_survive_a_round_trip_within_one_tick(hz in 1_000_000_000u64..6_000_000_000, t in 0u64..1 << 50) {
            let rate = TickRate { hz, error_ppb: 0, source: RateSource::Cpuid };
            let back = rate.ticks(rate.nanos(Ticks(t)));
            prop_assert!(back.0 <= t && t - back.0 <= 6);
        }
    }
}
