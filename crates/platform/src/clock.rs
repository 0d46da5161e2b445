//! Reading the clock of a recording, outside of hot loops.

use jitterscope_clock::{Clock, MonotonicRaw};
use jitterscope_model::{ClockKind, ClockReading, Nanos, Ticks};
use rustix::time::{ClockId, clock_gettime};

fn read_ns(clock: ClockId) -> u64 {
    let ts = clock_gettime(clock);
    let seconds = u64::try_from(ts.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(ts.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}

/// Reads a clock of this kind once, for code outside of hot loops.
#[must_use]
pub fn now(kind: ClockKind) -> Ticks {
    Ticks(match kind {
        #[cfg(target_arch = "x86_64")]
        ClockKind::Tsc => jitterscope_clock::Tsc.now(),
        #[cfg(not(target_arch = "x86_64"))]
        ClockKind::Tsc => MonotonicRaw.now(),
        ClockKind::MonotonicRaw => MonotonicRaw.now(),
    })
}

/// The CPU time of all threads of this process so far, ended ones included.
#[must_use]
pub fn process_cpu_time() -> Nanos {
    Nanos(read_ns(ClockId::ProcessCPUTime))
}

/// Reads the measuring clock, `CLOCK_MONOTONIC_RAW`, `CLOCK_BOOTTIME` and `CLOCK_REALTIME` as closely together as
/// possible: the tightest of a few dozen tries.
#[must_use]
pub fn read_all(kind: ClockKind) -> ClockReading {
    let attempt = || {
        let first = now(kind);
        let monotonic_raw_ns = MonotonicRaw.now();
        let boottime_ns = read_ns(ClockId::Boottime);
        let realtime_ns = read_ns(ClockId::Realtime);
        let last = now(kind);
        let width = last.since(first);
        ClockReading {
            ticks: Ticks(first.0 + width.0 / 2),
            monotonic_raw_ns,
            realtime_ns,
            boottime_ns: Some(boottime_ns),
            width_ticks: width.0,
        }
    };
    let mut best = attempt();
    for _ in 0..50 {
        let next = attempt();
        if next.width_ticks < best.width_ticks {
            best = next;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_move_forwards_on_every_clock() {
        let first = read_all(ClockKind::MonotonicRaw);
        let second = read_all(ClockKind::MonotonicRaw);
        assert!(second.ticks >= first.ticks);
        assert!(second.monotonic_raw_ns >= first.monotonic_raw_ns);
        assert!(now(ClockKind::Tsc) <= now(ClockKind::Tsc));
    }
}
