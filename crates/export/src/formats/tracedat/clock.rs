//! How a reader of the file gets times from the pages: a scale of 32 bits, and an offset.

use jitterscope_model::{ClockKind, Nanos, RunManifest};

/// The scale's numerator stays below this, because readers keep it in a signed word.
const MOST: u64 = 1 << 31;

/// Nanoseconds are `(ticks * mult >> shift) + offset`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileClock {
    /// `mult` and `shift`; `None` for a clock that counts nanoseconds.
    pub(super) scale: Option<(u32, u32)>,
    pub(super) offset: i64,
    /// The kernel's name of the clock.
    pub(super) name: String,
    /// Whether times are `CLOCK_BOOTTIME`.
    boottime: bool,
    /// How far the scale is off at the end of the run.
    drift: Nanos,
    width: Nanos,
}

impl FileClock {
    /// The clock of a run's pages. Its times are `CLOCK_BOOTTIME` at the start of the measurement, plus the time that
    /// the measuring clock counted since.
    pub(super) fn new(run: &RunManifest) -> FileClock {
        let start = run.clock_start;
        let (scale, name) = match run.clock {
            ClockKind::Tsc => (Some(scale(run.rate.hz)), "x86-tsc"),
            ClockKind::MonotonicRaw => (None, "mono_raw"),
        };
        // An imported run has the clock of its file.
        let name = match &run.imported {
            Some(from) => from.clock.clone(),
            None => name.to_owned(),
        };
        let base = start.boottime_ns.unwrap_or(start.monotonic_raw_ns);
        let scaled = |ticks: u64| match scale {
            Some((mult, shift)) => ((u128::from(ticks) * u128::from(mult)) >> shift) as i128,
            None => i128::from(ticks),
        };
        let offset = i128::from(base) - scaled(start.ticks.0);
        let end = run.clock_end.ticks;
        let exact = i128::from(start.moved(base, end, run.rate));
        let drift = (scaled(end.0) + offset - exact).unsigned_abs();
        FileClock {
            scale,
            offset: i64::try_from(offset).unwrap_or(0),
            name,
            boottime: start.boottime_ns.is_some(),
            drift: Nanos(u64::try_from(drift).unwrap_or(u64::MAX)),
            width: run.rate.nanos(jitterscope_model::Ticks(start.width_ticks)),
        }
    }

    /// States what the times are, and their error.
    pub(super) fn remarks(&self) -> Vec<String> {
        let (width, drift) = (self.width, self.drift);
        let clock = if self.boottime {
            "CLOCK_BOOTTIME"
        } else {
            "CLOCK_MONOTONIC_RAW"
        };
        let mut remarks = vec![format!(
            "times are {clock} to {width} at the start of the measurement"
        )];
        if drift > Nanos(1) {
            remarks.push(format!(
                "at the end of the measurement they are {drift} off: the file's clock rate has 32 bits"
            ));
        }
        remarks
    }
}

/// The largest scale that readers take for a rate.
fn scale(hz: u64) -> (u32, u32) {
    let hz = u128::from(hz.max(1));
    let of = |shift: u32| ((1_000_000_000_u128 << shift) + hz / 2) / hz;
    let shift = (0..=62).rev().find(|shift| of(*shift) < u128::from(MOST));
    let shift = shift.unwrap_or(0);
    (u32::try_from(of(shift)).unwrap_or(u32::MAX >> 1), shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_scale_is_as_exact_as_its_bits(hz in 1_000_000u64..10_000_000_000, ticks in 1u64 << 32..1 << 50) {
            let (mult, shift) = scale(hz);
            prop_assert!(u64::from(mult) < MOST);
            let scaled = ((u128::from(ticks) * u128::from(mult)) >> shift) as f64;
            let exact = ticks as f64 * 1e9 / hz as f64;
            prop_assert!((scaled / exact - 1.0).abs() < 1e-9, "{mult} {shift}");
        }
    }

    #[test]
    fn no_rate_makes_it_panic() {
        for hz in [0, 1, u64::MAX] {
            scale(hz);
        }
    }
}
