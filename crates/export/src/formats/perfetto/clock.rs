//! The times of a trace. Perfetto takes kernel events only on `CLOCK_BOOTTIME` and a few other clocks, so every time is
//! converted to that.

use jitterscope_model::{ClockReading, Nanos, RunFacts, RunManifest, TickRate, Ticks};

/// Converts instants: `CLOCK_BOOTTIME` at the start of the measurement, plus the time that the measuring clock counted
/// since. So lengths are exact, and the error is only one of place.
#[derive(Clone, Copy, Debug)]
pub(super) struct BootClock {
    start: ClockReading,
    /// The clock's value then.
    base: u64,
    rate: TickRate,
}

impl BootClock {
    pub(super) fn new(facts: &RunFacts) -> BootClock {
        let start = facts.clock;
        BootClock {
            start,
            base: start.boottime_ns.unwrap_or(start.monotonic_raw_ns),
            rate: facts.rate,
        }
    }

    /// An instant in nanoseconds of `CLOCK_BOOTTIME`.
    pub(super) fn ns(&self, at: Ticks) -> u64 {
        self.start.moved(self.base, at, self.rate)
    }

    pub(super) fn length(&self, ticks: Ticks) -> Nanos {
        self.rate.nanos(ticks)
    }

    /// The readings at the start.
    pub(super) fn start(&self) -> &ClockReading {
        &self.start
    }

    /// The start in nanoseconds of `CLOCK_BOOTTIME`.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// States the error of the times.
    pub(super) fn remark(&self, run: &RunManifest) -> String {
        let start = self.rate.nanos(Ticks(self.start.width_ticks));
        let Some(boot) = self.start.boottime_ns else {
            return format!(
                "times are CLOCK_MONOTONIC_RAW where Perfetto expects CLOCK_BOOTTIME, which the run did not read: \
                 within the file they are exact to {start}"
            );
        };
        let head = format!("times are CLOCK_BOOTTIME to {start} at the start of the measurement");
        let end = &run.clock_end;
        let Some(end_boot) = end.boottime_ns else {
            return format!("{head}; the end was not compared");
        };
        // The kernel corrects BOOTTIME, but neither the measuring clock nor MONOTONIC_RAW.
        let boot = end_boot.saturating_sub(boot);
        let raw = end
            .monotonic_raw_ns
            .saturating_sub(self.start.monotonic_raw_ns);
        let of_rate = u128::from(raw) * u128::from(self.rate.error_ppb) / 1_000_000_000;
        let of_rate = u64::try_from(of_rate).unwrap_or(u64::MAX);
        let error = start + Nanos(boot.abs_diff(raw)) + Nanos(of_rate);
        format!("{head} and to {error} at its end")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::RateSource;

    #[test]
    fn a_time_is_the_starts_boottime_plus_what_was_measured() {
        let start = ClockReading {
            ticks: Ticks(3_000),
            monotonic_raw_ns: 500,
            realtime_ns: 9,
            boottime_ns: Some(7_000),
            width_ticks: 30,
        };
        let rate = TickRate {
            hz: 3_000_000_000,
            error_ppb: 0,
            source: RateSource::Cpuid,
        };
        let clock = BootClock {
            start,
            base: 7_000,
            rate,
        };
        assert_eq!(clock.ns(Ticks(6_000)), 8_000);
        assert_eq!(clock.ns(Ticks(0)), 6_000);
        assert_eq!(BootClock { base: 10, ..clock }.ns(Ticks(0)), 0);
    }
}
