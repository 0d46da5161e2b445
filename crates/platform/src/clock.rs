//! The clocks that probes read.

use jitterscope_model::{ClockKind, ClockReading, Ticks};
use rustix::time::{ClockId, clock_gettime};

/// A clock cheap enough to be read back to back. Implementations are zero-sized, so that a probe's loop
/// is compiled once for each and holds no indirect call.
pub trait Clock: Copy + Send + Sync + 'static {
    /// Which one it is.
    const KIND: ClockKind;

    /// Reads it. Successive reads on one CPU never run backwards.
    fn now(self) -> Ticks;

    /// Reads it once all loads before it in the program have their value: a stamp that belongs to what
    /// another thread wrote, or that must not be taken while a copy still waits for memory. As
    /// `clock_gettime` does, for some nanoseconds more than [`Clock::now`].
    #[inline(always)]
    fn now_after_loads(self) -> Ticks {
        self.now()
    }
}

/// The time stamp counter, unserialised: neighbouring instructions may overlap the read by a few ticks,
/// which is far less than a fence costs.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Tsc;

#[cfg(target_arch = "x86_64")]
impl Clock for Tsc {
    const KIND: ClockKind = ClockKind::Tsc;

    #[inline(always)]
    fn now(self) -> Ticks {
        // SAFETY: `rdtsc` reads a register and touches no memory; every x86-64 CPU has it, and Linux
        // allows it in user mode unless the thread asked otherwise with PR_SET_TSC.
        Ticks(unsafe { core::arch::x86_64::_rdtsc() })
    }

    #[inline(always)]
    fn now_after_loads(self) -> Ticks {
        // SAFETY: `lfence` orders instructions and does nothing else; every x86-64 CPU has it.
        unsafe { core::arch::x86_64::_mm_lfence() };
        self.now()
    }
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: never stepped or slewed.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicRaw;

impl Clock for MonotonicRaw {
    const KIND: ClockKind = ClockKind::MonotonicRaw;

    #[inline(always)]
    fn now(self) -> Ticks {
        Ticks(read_ns(ClockId::MonotonicRaw))
    }
}

fn read_ns(id: ClockId) -> u64 {
    let ts = clock_gettime(id);
    let seconds = u64::try_from(ts.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(ts.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}

/// Reads the clock of this kind once, for code that is not in a hot loop.
#[must_use]
pub fn now(kind: ClockKind) -> Ticks {
    match kind {
        #[cfg(target_arch = "x86_64")]
        ClockKind::Tsc => Tsc.now(),
        #[cfg(not(target_arch = "x86_64"))]
        ClockKind::Tsc => MonotonicRaw.now(),
        ClockKind::MonotonicRaw => MonotonicRaw.now(),
    }
}

/// Reads the measuring clock, `CLOCK_MONOTONIC_RAW` and `CLOCK_REALTIME` as closely together as a few
/// dozen tries allow; the tightest try wins.
#[must_use]
pub fn read_all(kind: ClockKind) -> ClockReading {
    let attempt = || {
        let first = now(kind);
        let monotonic_raw_ns = read_ns(ClockId::MonotonicRaw);
        let realtime_ns = read_ns(ClockId::Realtime);
        let last = now(kind);
        let width = last.since(first);
        ClockReading {
            ticks: Ticks(first.0 + width.0 / 2),
            monotonic_raw_ns,
            realtime_ns,
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
    #[cfg(target_arch = "x86_64")]
    fn an_ordered_stamp_lies_between_its_neighbours() {
        // Each waits for those before it; a plain read may overlap, but not run backwards on one CPU.
        let stamps = [(); 4].map(|()| Tsc.now_after_loads());
        assert!(stamps.windows(2).all(|pair| pair[0] < pair[1]), "{stamps:?}");
        assert!(MonotonicRaw.now() <= MonotonicRaw.now_after_loads());
    }

    #[test]
    fn readings_move_forwards_on_every_clock() {
        let first = read_all(ClockKind::MonotonicRaw);
        let second = read_all(ClockKind::MonotonicRaw);
        assert!(second.ticks >= first.ticks);
        assert!(second.monotonic_raw_ns >= first.monotonic_raw_ns);
        assert!(now(ClockKind::Tsc) <= now(ClockKind::Tsc));
    }
}
