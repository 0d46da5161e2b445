//! The cost of the kernel's records: how many of each kind, and how long a record delays the thread that causes it.

use jitterscope_model::{
    ClockKind, CpuId, CpuSet, EventClass, EventKind, EventPrice, KernelEvent, Nanos, RecordCost,
    TickRate, Ticks,
};
use jitterscope_platform::{Machine, OwnName, Topology, clock, current_cpu};
use std::hint::black_box;

/// Consecutive calls timed with warm caches; the fastest row counts.
const IN_A_ROW: u32 = 16;
const ROWS: usize = 12;
/// Calls timed with caches that were filled with other data before each; their median counts.
const COLD: usize = 24;
/// Twice the size of a core's own caches is read: caches do not evict strictly the oldest lines.
const OVERFILL: u64 = 2;
/// Assumed cache size if the kernel does not state it; [`MOST_CACHE_BYTES`] is the maximum.
const CACHE_BYTES: u64 = 4 << 20;
const MOST_CACHE_BYTES: u64 = 32 << 20;
const LINE: usize = 64;
/// A record takes at least this long: a smaller difference is noise.
const LEAST_RECORD: Nanos = Nanos(10);

/// How long a thread takes to rename itself.
#[derive(Clone, Copy, Debug)]
struct CallTimes {
    warm: Ticks,
    cold: Ticks,
}

/// Times the same call before and after its event is recorded: the difference is the cost of a record.
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

    /// Times the call before anything is recorded; `None` if the call fails.
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

    /// Times the call again, now recorded on this CPU; `None` unless it `is_recorded`.
    pub(crate) fn after(mut self, is_recorded: bool) -> Option<TimedRecord> {
        is_recorded.then(|| TimedRecord {
            bare: self.bare,
            recorded: self.time(),
        })
    }

    /// How much longer the call takes now than before anything was recorded; `None` without a measurable difference.
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

/// A call timed with and without its record, in ticks of a clock whose rate may be unknown yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedRecord {
    bare: CallTimes,
    recorded: CallTimes,
}

impl TimedRecord {
    /// The cost of the record; `None` without a measurable difference.
    pub(crate) fn cost(&self, rate: TickRate) -> Option<RecordCost> {
        difference(self.bare, self.recorded, rate)
    }
}

/// The cost of a record, from the call's times without and with it.
fn difference(bare: CallTimes, recorded: CallTimes, rate: TickRate) -> Option<RecordCost> {
    let warm_ns = rate.nanos(recorded.warm.since(bare.warm));
    // A cold record takes at least as long as a warm one; if the difference is lost in noise, the warm cost is the
    // result.
    let cold_ns = rate.nanos(recorded.cold.since(bare.cold)).max(warm_ns);
    (warm_ns >= LEAST_RECORD).then_some(RecordCost { warm_ns, cold_ns })
}

/// Counts the records of the measured time.
#[derive(Debug)]
pub(crate) struct PriceTally {
    /// CPUs that are measured, watched, or run followed threads.
    measured: CpuSet,
    record: Option<RecordCost>,
    from: Ticks,
    until: Ticks,
    counts: [u64; EventClass::KNOWN.len()],
    on_measured: u64,
    /// The last CPU seen, and whether it is measured.
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

    /// Sets the cost of a record, if it is known.
    pub(crate) fn record_takes(&mut self, cost: Option<RecordCost>) {
        self.record = cost;
    }

    /// Starts counting the records between these times.
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
            stacks: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::ExecutionContext;

    #[test]
    fn records_count_in_measured_time_and_by_measured_cpu() {
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
        // With bare times of zero, any second timing would look slower.
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
        // A cold record is never cheaper.
        assert_eq!(of(call(260, 800)), cost(60, 60));
    }
}
