//! The schedule of injections: absolute deadlines, so that a late injection does not shift the later ones.

use super::{DisturbError, Injection, Injector, lifetime};
use jitterscope_model::Nanos;
use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Time between `go` and the first deadline, for the injector to reach its CPU.
const LEAD: Nanos = Nanos(2_000_000);

/// `CLOCK_MONOTONIC`, which timers use.
pub(super) fn monotonic() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    Nanos(part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec))
}

/// Converts a length or an instant of `CLOCK_MONOTONIC` for system calls.
pub(super) fn timespec(time: Nanos) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (time.0 % 1_000_000_000).cast_signed(),
    }
}

/// Sleeps until `deadline`; false if it has to end before.
pub(super) fn sleep_until(deadline: Nanos) -> Result<bool, DisturbError> {
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &timespec(deadline)) {
            Ok(()) => return Ok(!lifetime::must_end()),
            Err(Errno::INTR) if lifetime::must_end() => return Ok(false),
            Err(Errno::INTR) => {}
            Err(e) => {
                return Err(DisturbError::refused("sleeping until the next injection")(
                    e,
                ));
            }
        }
    }
}

/// Injects `count` times, one `period` apart, and returns the injections. Skips deadlines that have already passed.
/// Ends early on the parent's request, and always after twice the planned time.
pub(super) fn inject_all(
    injector: &mut dyn Injector,
    period: Nanos,
    count: u32,
) -> Result<Vec<Injection>, DisturbError> {
    let period = Nanos(period.0.max(1));
    // Touched here, so that storing injections later causes no page fault.
    let mut injections = vec![
        Injection {
            start_ticks: Default::default(),
            end_ticks: Default::default(),
            length_ticks: None
        };
        count as usize
    ];
    injections.clear();
    injector.begin()?;
    let start = monotonic() + LEAD;
    let last = start + Nanos(period.0.saturating_mul(u64::from(count) * 2)) + Nanos(1_000_000_000);
    let mut deadline = start;
    while injections.len() < count as usize && deadline <= last {
        match injector.inject(deadline)? {
            Some(injection) => injections.push(injection),
            None => break,
        }
        deadline = next_deadline(start, period, monotonic().0.max(deadline.0));
    }
    Ok(injections)
}

/// The first deadline after `now`.
fn next_deadline(start: Nanos, period: Nanos, now: u64) -> Nanos {
    let passed = now.saturating_sub(start.0) / period.0;
    start + Nanos((passed + 1).saturating_mul(period.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_stay_on_their_grid_and_skip_what_has_passed() {
        let next = |now| next_deadline(Nanos(1_000), Nanos(100), now).0;
        assert_eq!(next(1_000), 1_100);
        assert_eq!(next(1_099), 1_100);
        assert_eq!(next(1_100), 1_200);
        assert_eq!(next(1_555), 1_600);
        assert_eq!(next(0), 1_100);
    }
}
