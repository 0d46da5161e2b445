//! What the kernel's records cost: how many of what, and how long each takes from whom it is written about.

use jitterscope_model::{
    ClockKind, CpuId, CpuSet, EventClass, EventKind, EventPrice, KernelEvent, Nanos, RecordCost,
    TickRate, Ticks,
};
use jitterscope_platform::{Machine, OwnName, Topology, clock, current_cpu};
use std::hint::black_box;

/// Calls timed with everything they need in the caches, in a row; the fastest row counts.
const IN_A_ROW: u32 = 16;
const ROWS: usize = 12;
/// Calls timed each after the caches were filled with something else; their median counts.
const COLD: usize = 24;
/// Twice what a core has for itself is read through: caches do not evict what is oldest to the letter.
const OVERFILL: u64 = 2;
/// Where the kernel does not tell how large that is, and at most.
const CACHE_BYTES: u64 = 4 << 20;
const MOST_CACHE_BYTES: u64 = 32 << 20;
const LINE: usize = 64;
/// No kernel writes a record in less: a smaller difference is noise.
const LEAST_RECORD: Nanos = Nanos(10);

/// How long it takes to give a thread its name.
#[derive(Clone, Copy, Debug)]
struct CallTimes {
    warm: Ticks,
    cold: Ticks,
}

/// The same call before its event is recorded and after: the difference is what a record takes.
#[derive(Debug)]
pub(crate) struct RecordClock {
    name: OwnName,
    kind: ClockKind,
    other: Vec<u8>,
    bare: CallTimes,
}

impl RecordClock {
    /// Calls of each timing.
    pub(crate) const CALLS: u64 = (IN_A_ROW as usize * ROWS + COLD) as u64;

    /// Before anything is recorded; `None` where the call cannot be made.
    pub(crate) fn before(machine: &Machine, kind: ClockKind) -> Option<RecordClock> {
        let caches = Topology::near_cache_bytes(machine, current_cpu()).unwrap_or(CACHE_BYTES);
        let mut found = RecordClock {
            name: OwnName::read()?,
            kind,
            other: vec![1; (caches.min(MOST_CACHE_BYTES) * OVERFILL) as usize],
            bare: CallTimes {
                warm: Ticks(0),
                cold: Ticks(0),
            },
        };
        found.bare = found.time();
        Some(found)
    }

    /// Now that it is recorded on this CPU, if it `is_recorded`; `None` where it is not.
    pub(crate) fn after(mut self, is_recorded: bool) -> Option<TimedRecord> {
        is_recorded.then(|| TimedRecord {
            bare: self.bare,
            recorded: self.time(),
        })
    }

    /// How much longer the call takes now than before anything was recorded; `None` where no difference shows.
    pub(crate) fn longer(&mut self, rate: TickRate) -> Option<RecordCost> {
        let now = self.time();
        difference(self.bare, now, rate)
    }

    fn time(&mut self) -> CallTimes {
        let mut warm = Ticks(u64::MAX);
        for _ in 0..ROWS {
            let start = clock::now(self.kind);
            (0..IN_A_ROW).for_each(|_| self.name.give_again());
            warm = warm.min(Ticks(
                clock::now(self.kind).since(start).0 / u64::from(IN_A_ROW),
            ));
        }
        let mut cold = [Ticks(0); COLD];
        for time in &mut cold {
            self.other
                .iter_mut()
                .step_by(LINE)
                .for_each(|byte| *byte = byte.wrapping_add(1));
            black_box(&self.other);
            let start = clock::now(self.kind);
            self.name.give_again();
            *time = clock::now(self.kind).since(start);
        }
        cold.sort_unstable();
        CallTimes {
            warm,
            cold: cold[COLD / 2],
        }
    }
}

/// A call that was timed without its record and with it, in ticks of a clock whose rate may not be known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedRecord {
    bare: CallTimes,
    recorded: CallTimes,
}

impl TimedRecord {
    /// What the record takes; `None` where no difference shows.
    pub(crate) fn cost(&self, rate: TickRate) -> Option<RecordCost> {
        difference(self.bare, self.recorded, rate)
    }
}

/// What a record takes, from how long the call took without it and with it.
fn difference(bare: CallTimes, recorded: CallTimes, rate: TickRate) -> Option<RecordCost> {
    let warm_ns = rate.nanos(recorded.warm.since(bare.warm));
    // What is cold takes no less; where the difference drowns in noise that is what is known.
    let cold_ns = rate.nanos(recorded.cold.since(bare.cold)).max(warm_ns);
    (warm_ns >= LEAST_RECORD).then_some(RecordCost { warm_ns, cold_ns })
}

/// Counts the records of the measured time.
#[derive(Debug)]
pub(crate) struct PriceTally {
    /// CPUs whose time is measured, watched, or that of followed threads.
    measured: CpuSet,
    record: Option<RecordCost>,
    from: Ticks,
    until: Ticks,
    counts: [u64; EventClass::KNOWN.len()],
    on_measured: u64,
    /// Whether the CPU that was met last is measured.
    last: (CpuId, bool),
}

impl PriceTally {
    pub(crate) fn new(measured: CpuSet) -> PriceTally {
        let first = CpuId(0);
        PriceTally {
            last: (first, measured.contains(first)),
            measured,
            record: None,
            from: Ticks(u64::MAX),
            until: Ticks(u64::MAX),
            counts: [0; EventClass::KNOWN.len()],
            on_measured: 0,
        }
    }

    /// What a record takes, as far as it is known.
    pub(crate) fn record_takes(&mut self, cost: Option<RecordCost>) {
        self.record = cost;
    }

    /// Records between these count, and none did before.
    pub(crate) fn measure(&mut self, from: Ticks, until: Ticks) {
        (self.from, self.until, self.on_measured) = (from, until, 0);
        self.counts = [0; EventClass::KNOWN.len()];
    }

    #[inline]
    pub(crate) fn event(&mut self, event: &KernelEvent) {
        let KernelEvent {
            time,
            cpu,
            ref kind,
            ..
        } = *event;
        if time < self.from || time > self.until {
            return;
        }
        self.counts[EventKind::class_index(kind)] += 1;
        if self.last.0 != cpu {
            self.last = (cpu, self.measured.contains(cpu));
        }
        self.on_measured += u64::from(self.last.1);
    }

    pub(crate) fn so_far(&self) -> EventPrice {
        let all = EventClass::KNOWN.iter().cloned().zip(self.counts);
        EventPrice {
            events: all.filter(|(_, count)| *count > 0).collect(),
            on_measured: self.on_measured,
            record: self.record,
            helper_ns: Nanos::ZERO,
            graph: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::ExecutionContext;

    #[test]
    fn records_of_the_measured_time_count_and_those_of_measured_cpus_are_told_apart() {
        let mut tally = PriceTally::new([CpuId(1)].into_iter().collect());
        let event = |time, cpu, kind| {
            let context = ExecutionContext::Thread;
            KernelEvent {
                time: Ticks(time),
                cpu: CpuId(cpu),
                tid: 1,
                context,
                kind,
            }
        };
        let softirq = |time, cpu| event(time, cpu, EventKind::SoftirqExit { vec: 1 });
        tally.event(&softirq(5, 1));
        assert_eq!(tally.so_far().records(), 0, "nothing is measured yet");
        tally.measure(Ticks(10), Ticks(20));
        let idle = event(15, 1, EventKind::CpuIdle { state: None });
        [
            softirq(9, 1),
            softirq(10, 1),
            softirq(20, 0),
            idle,
            softirq(21, 1),
        ]
        .iter()
        .for_each(|event| tally.event(event));
        let price = tally.so_far();
        let events: Vec<_> = price
            .events
            .iter()
            .map(|(class, count)| (class.as_str(), *count))
            .collect();
        assert_eq!(events, [("softirqs", 2), ("power", 1)]);
        assert_eq!(price.on_measured, 2);
    }

    #[test]
    fn a_call_that_is_not_recorded_has_no_price() {
        let Some(clock) = RecordClock::before(&Machine::host(), ClockKind::MonotonicRaw) else {
            panic!("the kernel names threads");
        };
        let bare = clock.bare;
        assert!(bare.warm > Ticks(0) && bare.cold >= bare.warm, "{bare:?}");
        // Whatever a second look would have found by chance.
        let slower = RecordClock {
            bare: CallTimes {
                warm: Ticks(0),
                cold: Ticks(0),
            },
            ..clock
        };
        assert!(slower.after(false).is_none());
    }

    #[test]
    fn a_difference_too_small_for_a_record_is_none() {
        let call = |warm, cold| CallTimes {
            warm: Ticks(warm),
            cold: Ticks(cold),
        };
        let of = |recorded| difference(call(200, 900), recorded, TickRate::NANOSECONDS);
        assert_eq!(
            [
                of(call(200, 2000)),
                of(call(209, 2000)),
                of(call(150, 2000))
            ],
            [None; 3]
        );
        let cost = |warm, cold| {
            Some(RecordCost {
                warm_ns: Nanos(warm),
                cold_ns: Nanos(cold),
            })
        };
        assert_eq!(of(call(260, 1300)), cost(60, 400));
        // Nothing is cheaper cold.
        assert_eq!(of(call(260, 800)), cost(60, 60));
    }
}
