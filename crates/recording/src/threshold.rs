//! The threshold of spinning probes: as requested, or well above the costs of the clock and the probe.

use crate::error::RecordError;
use jitterscope_model::{ClockCosts, ClockKind, CpuId, CpuSet, Nanos, TickRate, Ticks};
use jitterscope_probe::{ClockCosts as OnCpu, SpinError, SpinSettings, costs_of_clock};

/// Factor of a threshold over the tail of the clock reads and over the cost of storing a stall. Over a minute the tail
/// is longer than at the beginning, and a real stall is stored with cold caches.
const ABOVE_READS: u64 = 4;
const ABOVE_STORING: u64 = 2;
/// Thresholds that a recording chooses, nanoseconds: a few round lengths, so that runs of one machine use the same one.
/// The shortest is about the time to enter and leave the kernel.
const THRESHOLDS: [u64; 7] = [300, 500, 1_000, 2_000, 5_000, 10_000, 20_000];
/// How long the clock is read before the probes start, in windows of which the least disturbed one counts: the
/// machine's momentary load must not decide which later runs are comparable.
const LENGTH: Nanos = Nanos(50_000_000);
const WINDOWS: u64 = 5;

/// The threshold and the measured costs of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Threshold {
    pub(crate) nanos: Nanos,
    /// The same in ticks of the clock.
    pub(crate) ticks: Ticks,
    /// The costs that it was compared with.
    pub(crate) costs: ClockCosts,
}

impl Threshold {
    /// Maximum length, in ticks, of a delta directly after a stall that counts as our own bookkeeping. With a threshold
    /// above it, no such delta is a stall.
    pub(crate) fn own(&self, rate: TickRate) -> Ticks {
        rate.ticks(Nanos(self.costs.store_ns.0.saturating_mul(ABOVE_STORING)))
    }

    /// `asked`, or the least threshold that the clock allows: from `shortest` on, or of the usual ones.
    ///
    /// # Errors
    /// The threshold exceeds the counters' range.
    pub(crate) fn choose(
        asked: Option<Nanos>,
        shortest: Option<Nanos>,
        costs: ClockCosts,
        rate: TickRate,
    ) -> Result<Threshold, RecordError> {
        let nanos = asked.unwrap_or_else(|| match shortest {
            Some(shortest) => least(costs).max(shortest),
            None => allowed(costs),
        });
        let ticks = rate.ticks(nanos);
        let costs = ClockCosts {
            decide_threshold: asked.is_none(),
            ..costs
        };
        if (Ticks(1)..=SpinSettings::MAX_THRESHOLD).contains(&ticks) {
            return Ok(Threshold {
                nanos,
                ticks,
                costs,
            });
        }
        Err(RecordError::Threshold {
            threshold: nanos,
            ticks: ticks.0,
            most: rate.nanos(SpinSettings::MAX_THRESHOLD),
        })
    }

    /// The threshold of a sleeping probe, whose measurements contain none of its own work.
    pub(crate) fn of_sleeper(nanos: Nanos, rate: TickRate) -> Threshold {
        Threshold {
            nanos,
            ticks: rate.ticks(nanos),
            costs: ClockCosts::default(),
        }
    }

    /// Raises it to `least` if necessary; `least` is within the counters' range.
    pub(crate) fn at_least(self, least: Ticks, rate: TickRate) -> Threshold {
        if least <= self.ticks {
            return self;
        }
        Threshold {
            nanos: rate.nanos(least),
            ticks: least,
            ..self
        }
    }
}

/// The threshold that a clock with these costs needs by itself.
#[must_use]
pub fn needed_threshold(costs: ClockCosts) -> Nanos {
    allowed(costs)
}

/// What is well above both costs.
fn least(costs: ClockCosts) -> Nanos {
    let reads = costs.read_tail_ns.0.saturating_mul(ABOVE_READS);
    Nanos(reads.max(costs.store_ns.0.saturating_mul(ABOVE_STORING)))
}

/// The smallest usual threshold that is well above both costs.
fn allowed(costs: ClockCosts) -> Nanos {
    let least = least(costs);
    let [.., longest] = THRESHOLDS;
    let mut steps = THRESHOLDS.into_iter().map(Nanos);
    steps.find(|step| *step >= least).unwrap_or(Nanos(longest))
}

/// Converts the costs to nanoseconds; nothing is decided by them yet.
pub(crate) fn in_nanos(costs: OnCpu, rate: TickRate) -> ClockCosts {
    ClockCosts {
        read_tail_ns: rate.nanos(costs.read_tail),
        store_ns: rate.nanos(costs.store),
        decide_threshold: false,
    }
}

fn least_disturbed(clock: ClockKind, cpu: CpuId, window: Ticks) -> Result<OnCpu, SpinError> {
    let mut least = costs_of_clock(clock, cpu, window)?;
    for _ in 1..WINDOWS {
        let again = costs_of_clock(clock, cpu, window)?;
        least.read_tail = least.read_tail.min(again.read_tail);
        least.store = least.store.min(again.store);
    }
    Ok(least)
}

/// The costs of the clock and the probe on the worst of these CPUs, in ticks, measured on all of them at once as in a
/// recording. `rate` only determines how long to read.
///
/// # Errors
/// A thread cannot be started or pinned to its CPU.
pub(crate) fn costs(clock: ClockKind, rate: TickRate, cpus: &CpuSet) -> Result<OnCpu, RecordError> {
    let length = rate.ticks(Nanos(LENGTH.0 / WINDOWS));
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for cpu in cpus.iter() {
            let thread = std::thread::Builder::new()
                .name(format!("js-clock/{cpu}"))
                .spawn_scoped(scope, move || least_disturbed(clock, cpu, length))
                .map_err(|source| RecordError::Thread { cpu, source })?;
            threads.push((cpu, thread));
        }
        let mut worst = OnCpu::default();
        for (cpu, thread) in threads {
            let found: Result<OnCpu, SpinError> =
                thread.join().map_err(|_| RecordError::ProbePanicked(cpu))?;
            let found = found.map_err(|source| RecordError::Probe {
                cpu,
                source: source.into(),
            })?;
            worst = worst.max(found);
        }
        Ok(worst)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(read_tail: u64, store: u64) -> ClockCosts {
        ClockCosts {
            read_tail_ns: Nanos(read_tail),
            store_ns: Nanos(store),
            decide_threshold: false,
        }
    }

    fn chosen(asked: Option<Nanos>, costs: ClockCosts) -> Threshold {
        Threshold::choose(asked, None, costs, TickRate::NANOSECONDS).unwrap()
    }

    #[test]
    fn a_quick_clock_keeps_the_shortest_threshold_and_a_slow_one_raises_it() {
        for (read_tail, store, threshold) in [
            (0, 0, 300),
            (20, 90, 300),
            (75, 150, 300),
            (76, 150, 500),
            (20, 151, 500),
            (480, 600, 2_000),
            (30, 2_400, 5_000),
            (1 << 14, 100, 20_000),
        ] {
            let found = chosen(None, costs(read_tail, store));
            assert_eq!(found.nanos, Nanos(threshold), "{read_tail} {store}");
            assert!(found.costs.decide_threshold);
            // The bookkeeping with such a clock is no stall.
            assert!(
                found.own(TickRate::NANOSECONDS) <= found.ticks,
                "{read_tail} {store}"
            );
        }
    }

    #[test]
    fn where_short_ones_are_wanted_the_costs_alone_decide() {
        for (shortest, read_tail, store, threshold) in [
            (1, 12, 40, 80),
            (1, 30, 40, 120),
            (150, 12, 40, 150),
            (150, 12, 90, 180),
        ] {
            let costs = costs(read_tail, store);
            let shortest = Some(Nanos(shortest));
            let found = Threshold::choose(None, shortest, costs, TickRate::NANOSECONDS).unwrap();
            assert_eq!(found.nanos, Nanos(threshold), "{read_tail} {store}");
            assert!(found.own(TickRate::NANOSECONDS) <= found.ticks);
        }
    }

    #[test]
    fn a_threshold_that_was_asked_for_holds_and_is_known_to_be_too_short() {
        let found = chosen(Some(Nanos(100)), costs(480, 600));
        assert_eq!(
            (found.nanos, found.ticks, found.costs.decide_threshold),
            (Nanos(100), Ticks(100), false)
        );
        assert_eq!(found.own(TickRate::NANOSECONDS), Ticks(1200));
    }

    #[test]
    fn a_threshold_must_fit_the_counters() {
        for asked in [Nanos(0), Nanos(1_000_000_000)] {
            let refused =
                Threshold::choose(Some(asked), None, costs(20, 90), TickRate::NANOSECONDS);
            assert!(
                matches!(refused, Err(RecordError::Threshold { .. })),
                "{asked}"
            );
        }
    }
}
