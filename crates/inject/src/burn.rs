//! Running for a known time.

use super::Injection;
use jitterscope_model::{ClockKind, Nanos, TickRate, Ticks};
use jitterscope_platform::clock;

/// A longer time than this between two clock reads was not spent in our loop: an interrupt, another
/// thread or the host took it.
const INTERRUPTED: Nanos = Nanos(2_000);

/// How many times the wanted length it may take by the wall clock. Without a limit, a SCHED_FIFO thread
/// on a machine so slow that no step is short enough would never leave the CPU.
const PATIENCE: u64 = 50;

/// Runs until it has itself run for `length`; what interrupted it does not count.
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
