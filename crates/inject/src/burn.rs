//! Running for a known time.

use super::Injection;
use jitterscope_model::{ClockKind, Nanos, TickRate, Ticks};
use jitterscope_platform::clock;

/// A longer time between two clock reads means an interruption of our loop by an interrupt, another thread or the host.
const INTERRUPTED: Nanos = Nanos(2_000);

/// The limit of the wall-clock time, as a multiple of the wanted length. Without it, a SCHED_FIFO thread on a machine
/// where every step looks like an interruption would never leave the CPU.
const PATIENCE: u64 = 50;

/// Runs until its own running time reaches `length`; interruptions do not count.
pub(super) fn burn(kind: ClockKind, rate: TickRate, length: Nanos) -> Injection {
    let wanted = rate.ticks(length);
    let interrupted = rate.ticks(INTERRUPTED);
    let start = clock::now(kind);
    let mut last = start;
    let mut own = Ticks(0);
    while own < wanted && last.since(start).0 < wanted.0.saturating_mul(PATIENCE) {
        let now = clock::now(kind);
        let step = now.since(last);
        if step < interrupted {
            own = own + step;
        }
        last = now;
    }
    Injection {
        start_ticks: start,
        end_ticks: last,
        length_ticks: Some(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_for_at_least_what_was_asked_and_counts_only_that() {
        let rate = TickRate::NANOSECONDS;
        let injection = burn(ClockKind::MonotonicRaw, rate, Nanos(50_000));
        let own = injection.length_ticks.unwrap();
        assert!(own >= Ticks(50_000) && own < Ticks(52_000));
        assert!(injection.end_ticks.since(injection.start_ticks) >= own);
    }
}
