//! The threshold of spinning probes: as asked for, or well above what the clock and the probe do themselves.

use crate::error::RecordError;
use jitterscope_clock::{Clock, MonotonicRaw};
use jitterscope_model::{ClockCosts, ClockKind, CpuId, CpuSet, Nanos, TickRate, Ticks};
use jitterscope_probe::{ClockCosts as OnCpu, SpinError, SpinSettings, clock_costs};

/// The shortest stall where the clock allows it: entering the kernel and leaving it again takes about so long.
const SHORTEST: Nanos = Nanos(300);
/// How far above the reads' own tail, and above what storing a stall takes, is well above: the tail of a minute
/// is longer than that of its beginning, and a stall in earnest is stored from cold caches.
const ABOVE_READS: u64 = 4;
const ABOVE_STORING: u64 = 2;
/// Thresholds are of a few round lengths, so that runs of one machine have the same.
const STEPS: [u64; 7] = [300, 500, 1_000, 2_000, 5_000, 10_000, 20_000];
/// How long the clock is read before the probes start, in windows of which the least disturbed counts: what else
/// runs on the machine just then must not decide what its later runs can be compared with.
const LENGTH: Nanos = Nanos(50_000_000);
const WINDOWS: u64 = 5;

/// What the threshold is, and what is known of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Threshold {
    /// The threshold.
    pub(crate) nanos: Nanos,
    /// In ticks of the clock.
    pub(crate) ticks: Ticks,
    /// What it was held against.
    pub(crate) costs: ClockCosts,
}

impl Threshold {
    /// Deltas that directly follow a stall and are no longer than this are our own bookkeeping, in ticks: where
    /// the threshold is above it, nothing of the kind is a stall.
    pub(crate) fn own(&self, rate: TickRate) -> Ticks {
        rate.ticks(Nanos(self.costs.store_ns.0.saturating_mul(ABOVE_STORING)))
    }

    /// `asked`, or what the clock allows, from `shortest` on; that is 300 ns unless said otherwise.
    ///
    /// # Errors
    /// The threshold does not fit the counters.
    pub(crate) fn choose(
        asked: Option<Nanos>,
        shortest: Option<Nanos>,
        costs: ClockCosts,
        rate: TickRate,
    ) -> Result<Threshold, RecordError> {
        let nanos = asked.unwrap_or_else(|| allowed(costs, shortest.unwrap_or(SHORTEST)));
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

    /// That of a probe that sleeps, which has nothing of its own in what it measures.
    pub(crate) fn of_sleeper(nanos: Nanos, rate: TickRate) -> Threshold {
        Threshold {
            nanos,
            ticks: rate.ticks(nanos),
            costs: ClockCosts::default(),
        }
    }

    /// The same, but no less than `least`, which fits the counters.
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

/// The least threshold that is well above both costs.
fn allowed(costs: ClockCosts, shortest: Nanos) -> Nanos {
    let least = (costs.read_tail_ns.0.saturating_mul(ABOVE_READS))
        .max(costs.store_ns.0.saturating_mul(ABOVE_STORING));
    if least <= shortest.0 {
        return shortest;
    }
    let [.., longest] = STEPS;
    Nanos(
        STEPS
            .into_iter()
            .find(|step| *step >= least)
            .unwrap_or(longest),
    )
}

/// What the clock and the probe take on the worst of these CPUs, in ticks, all at the same time as in a measurement.
/// `rate` only says how long to look.
///
/// # Errors
/// A thread cannot be had, or not be put on its CPU.
pub(crate) fn costs(kind: ClockKind, rate: TickRate, cpus: &CpuSet) -> Result<OnCpu, RecordError> {
    match kind {
        #[cfg(target_arch = "x86_64")]
        ClockKind::Tsc => worst(jitterscope_clock::Tsc, rate, cpus),
        #[cfg(not(target_arch = "x86_64"))]
        ClockKind::Tsc => worst(MonotonicRaw, rate, cpus),
        ClockKind::MonotonicRaw => worst(MonotonicRaw, rate, cpus),
    }
}

/// The same in nanoseconds; nothing is decided by them yet.
pub(crate) fn in_nanos(costs: OnCpu, rate: TickRate) -> ClockCosts {
    ClockCosts {
        read_tail_ns: rate.nanos(costs.read_tail),
        store_ns: rate.nanos(costs.store),
        decide_threshold: false,
    }
}

fn least_disturbed<C: Clock>(clock: C, cpu: CpuId, window: Ticks) -> Result<OnCpu, SpinError> {
    let mut least = clock_costs(clock, cpu, window)?;
    for _ in 1..WINDOWS {
        let again = clock_costs(clock, cpu, window)?;
        least.read_tail = least.read_tail.min(again.read_tail);
        least.store = least.store.min(again.store);
    }
    Ok(least)
}

fn worst<C: Clock>(clock: C, rate: TickRate, cpus: &CpuSet) -> Result<OnCpu, RecordError> {
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
            // The bookkeeping of such a clock is no stall.
            assert!(
                found.own(TickRate::NANOSECONDS) <= found.ticks,
                "{read_tail} {store}"
            );
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
