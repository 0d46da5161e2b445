//! Moves the records of the probes and of the kernel to attribution and to the store.

use crate::counters::CounterWatch;
use crate::engine::Batch;
use crate::error::RecordError;
use crate::interval_lengths::IntervalLengths;
use crate::kernel_events::EventsEnded;
use crate::moved::Movers;
use crate::observer::Progress;
use crate::probe_events::ProbeEvents;
use crate::probes::Probes;
use hdrhistogram::CreationError;
use jitterscope_attribute::{Edge, EdgeCosts, FrequencyChanges, GroupThrottled};
use jitterscope_model::{
    Comm, CounterTotal, CpuId, DrainTurn, EdgeCostRow, EventsInGaps, Gap, IntervalRow, Nanos,
    ProbeResult, SelfNoise, Sink, SinkError, SleepingWork, Stall, StallId, ThreadRef, TickRate,
    Ticks, WarmUpTurn,
};
use jitterscope_probe::{IntervalMark, SpinOutput};
use std::collections::BTreeMap;

/// The receiving end of one probe, and what is being collected from it.
struct Channel {
    output: SpinOutput,
    victim: ThreadRef,
    /// Whether the mark between warm-up and measurement has arrived.
    measured: bool,
    /// Warm-up stalls that attribution learned from.
    learnt: u64,
    /// Stalls of the current interval.
    lengths: IntervalLengths,
}

#[derive(Clone, Copy)]
enum Phase {
    WarmUp,
    Measuring { start: Ticks },
}

/// Empties the queues and the trace buffers repeatedly.
pub(crate) struct Drain {
    channels: Vec<Channel>,
    pub(crate) events: Option<ProbeEvents>,
    pub(crate) counters: Option<CounterWatch>,
    rate: TickRate,
    phase: Phase,
    next_id: u64,
    worst: Nanos,
    batch: Batch,
    costs_at_start: Vec<EdgeCostRow>,
    sleeping_at_start: Vec<SleepingWork>,
    movers: Movers,
}

impl Drain {
    pub(crate) fn new(
        probes: &Probes,
        outputs: Vec<SpinOutput>,
        events: Option<ProbeEvents>,
        rate: TickRate,
    ) -> Result<Drain, RecordError> {
        let mut events = events;
        let mut channel = |output: SpinOutput| {
            let comm = Comm::new(probes.thread_name(output.cpu));
            let victim = ThreadRef {
                tid: probes.tid(output.cpu),
                comm,
            };
            if let Some(events) = &mut events {
                events.watch(output.cpu, victim.tid);
            }
            Ok(Channel {
                victim,
                measured: false,
                learnt: 0,
                lengths: IntervalLengths::new()?,
                output,
            })
        };
        let channels: Result<Vec<Channel>, CreationError> =
            outputs.into_iter().map(&mut channel).collect();
        Ok(Drain {
            channels: channels?,
            events,
            counters: None,
            rate,
            phase: Phase::WarmUp,
            next_id: 0,
            worst: Nanos::ZERO,
            batch: Batch::default(),
            costs_at_start: Vec::new(),
            sleeping_at_start: Vec::new(),
            movers: Movers::default(),
        })
    }

    /// Counts stalls at or above `threshold` from `start` on.
    pub(crate) fn begin(&mut self, start: Ticks, end: Ticks, threshold: Ticks) {
        self.phase = Phase::Measuring { start };
        if let Some(events) = &mut self.events {
            events.measure(start, end, threshold);
            self.costs_at_start = events.costs().to_rows();
        }
    }

    /// Whether each CPU has had enough stalls, and all CPUs together enough tick edges, to estimate what a tick costs
    /// at its edges. Always false without kernel events, because the estimate is learned from them.
    pub(crate) fn has_learnt(&self) -> bool {
        let enough = |edge| {
            let of_all = EdgeCosts::ENOUGH.saturating_mul(self.channels.len() as u64);
            self.events
                .as_ref()
                .is_some_and(|events| events.costs().get(edge).samples >= of_all)
        };
        enough(Edge::LeadInterrupt)
            && enough(Edge::TrailInterrupt)
            && self
                .channels
                .iter()
                .all(|channel| channel.learnt >= EdgeCosts::ENOUGH)
    }

    /// Runs one turn. The order matters: gaps are read before kernel events, so that all events of a gap have arrived
    /// when it is attributed.
    pub(crate) fn cycle(&mut self, sink: &mut dyn Sink) -> Result<(), SinkError> {
        let mut batches: Vec<(Vec<IntervalMark>, Vec<Gap>)> =
            Vec::with_capacity(self.channels.len());
        for channel in &mut self.channels {
            batches.push(take_both(
                &mut channel.output.intervals,
                &mut channel.output.gaps,
            ));
        }
        if let Some(events) = &mut self.events {
            events.drain(sink)?;
            for (channel, (_, gaps)) in self.channels.iter().zip(&batches) {
                let cpu = channel.output.cpu;
                for gap in gaps {
                    if gap.is_beginning() {
                        events.begin(cpu, gap.start);
                    } else {
                        events.announce(cpu, *gap);
                    }
                }
            }
        }
        let mut warm_up = Vec::new();
        for (index, (marks, gaps)) in batches.into_iter().enumerate() {
            if self.events.is_some() && !self.channels[index].measured {
                warm_up.extend(before_measurement(self.channels[index].output.cpu, &gaps));
            }
            let mut marks = marks.into_iter().peekable();
            for gap in gaps {
                while let Some(mark) = marks.next_if(|mark| mark.end < gap.end()) {
                    self.close_interval(sink, index, mark)?;
                }
                self.stall(sink, index, gap)?;
            }
            for mark in marks {
                self.close_interval(sink, index, mark)?;
            }
        }
        self.batch.flush(sink)?;
        if let Some(events) = &mut self.events {
            let measuring = matches!(self.phase, Phase::Measuring { .. });
            let turn = DrainTurn {
                measuring,
                warm_up,
                stalls: self.next_id,
                ..DrainTurn::default()
            };
            events.end_turn(sink, turn)?;
        }
        Ok(())
    }

    fn stall(&mut self, sink: &mut dyn Sink, index: usize, gap: Gap) -> Result<(), SinkError> {
        let channel = &mut self.channels[index];
        if gap.is_beginning() {
            channel.measured = true;
            if let Some(events) = &self.events {
                self.sleeping_at_start
                    .extend(events.sleeping_works(channel.output.cpu, gap.start));
            }
            return Ok(());
        }
        let stall = Stall {
            id: StallId(self.next_id),
            cpu: channel.output.cpu,
            victim: channel.victim,
            start: gap.start,
            end: gap.end(),
        };
        if !channel.measured {
            match (&mut self.events, self.phase) {
                (Some(events), Phase::WarmUp) => {
                    events.learn(&stall);
                    channel.learnt += 1;
                }
                // The costs of the start are recorded by now.
                (Some(events), Phase::Measuring { .. }) => events.pass_over(&stall),
                (None, _) => {}
            }
            return Ok(());
        }
        let length = self.rate.nanos(gap.length);
        channel.lengths.record(length);
        if let Some(counters) = &mut self.counters {
            counters.stolen(channel.output.cpu, length);
        }
        self.worst = self.worst.max(length);
        self.next_id += 1;
        let attribution = self.events.as_mut().map(|events| events.attribute(&stall));
        if let Some(attribution) = &attribution {
            self.movers.stall(stall.cpu, attribution);
        }
        self.batch.stall(sink, stall, attribution)
    }

    fn close_interval(
        &mut self,
        sink: &mut dyn Sink,
        index: usize,
        mark: IntervalMark,
    ) -> Result<(), SinkError> {
        let rate = self.rate;
        let channel = &mut self.channels[index];
        let cpu = channel.output.cpu;
        let row = IntervalRow {
            cpu,
            start: mark.start,
            end: mark.end,
            count: mark.count,
            max: rate.nanos(mark.max),
            stolen: rate.nanos(mark.sum),
        };
        let lengths = channel.lengths.complete(row.count, row.stolen, row.max);
        self.batch.interval(sink, &row, lengths)?;
        channel.lengths.reset();
        Ok(())
    }

    /// Called about once a second.
    pub(crate) fn read_counters(&mut self) {
        if let Some(counters) = &mut self.counters {
            counters.tick();
        }
    }

    /// The probes have ended: reads what remains and sums up.
    pub(crate) fn finish(
        mut self,
        sink: &mut dyn Sink,
        results: &[ProbeResult],
    ) -> Result<Found, SinkError> {
        if let Some(events) = &mut self.events {
            events.stop();
        }
        self.cycle(sink)?;
        let rate = self.rate;
        let mut found = Found {
            counters: self.counters.map(CounterWatch::finish).unwrap_or_default(),
            events_in_gaps: EventsInGaps::default(),
            edge_costs: self.costs_at_start,
            sleeping_works: self.sleeping_at_start,
            costs: SelfNoise::default(),
            unrecorded_switches: BTreeMap::new(),
            folded: Nanos::ZERO,
            senders_dropped: 0,
            throttled: Vec::new(),
            frequencies: BTreeMap::new(),
            movers: self.movers,
            events: None,
        };
        if let Some(mut events) = self.events {
            let ends: Vec<_> = results
                .iter()
                .map(|result| (result.cpu, result.end))
                .collect();
            found.events_in_gaps = events.finish(&ends);
            found.throttled = events.throttled();
            found.senders_dropped = events.senders_dropped();
            found.frequencies = events.frequencies();
            let (unrecorded, folded) = events.limits();
            (found.unrecorded_switches, found.folded) = (unrecorded, rate.nanos(folded));
            let entry = events.costs().get(Edge::LeadInterrupt);
            found.costs.entry_cost_ns = rate.nanos(entry.smallest);
            found.costs.exit_cost_ns =
                rate.nanos(events.costs().get(Edge::TrailInterrupt).smallest);
            found.costs.cost_samples = entry.samples;
            found.events = Some((events.ended(), events));
        }
        Ok(found)
    }

    pub(crate) fn progress(&self, now: Ticks, total: Nanos) -> Progress {
        let elapsed = match self.phase {
            Phase::WarmUp => Nanos::ZERO,
            Phase::Measuring { start } => self.rate.nanos(now.since(start)).min(total),
        };
        Progress {
            elapsed,
            total,
            stalls: self.next_id,
            worst: self.worst,
        }
    }
}

/// The results of a recording besides its rows.
pub(crate) struct Found {
    /// What the kernel event recording left. It has stopped, but its tracing instances still exist.
    pub(crate) events: Option<(EventsEnded, ProbeEvents)>,
    pub(crate) counters: Vec<CounterTotal>,
    pub(crate) events_in_gaps: EventsInGaps,
    /// Costs of tick edges at the start of the measurement.
    pub(crate) edge_costs: Vec<EdgeCostRow>,
    /// Work items that slept at the start of the measurement.
    pub(crate) sleeping_works: Vec<SleepingWork>,
    /// Switches that the kernel did not record, per CPU.
    pub(crate) unrecorded_switches: BTreeMap<CpuId, u64>,
    /// Stalled time for which only sums were kept.
    pub(crate) folded: Nanos,
    pub(crate) senders_dropped: u64,
    /// Throttled control groups above our threads.
    pub(crate) throttled: Vec<GroupThrottled>,
    /// CPUs whose frequency changed.
    pub(crate) frequencies: BTreeMap<CpuId, FrequencyChanges>,
    pub(crate) movers: Movers,
    /// Entry and exit costs; the other fields are not set here.
    pub(crate) costs: SelfNoise,
}

/// The part of a probe's gaps that precedes its measurement; `None` if there is none.
fn before_measurement(cpu: CpuId, gaps: &[Gap]) -> Option<WarmUpTurn> {
    let begins = gaps
        .iter()
        .find(|gap| gap.is_beginning())
        .map(|gap| gap.start);
    let before = gaps.iter().take_while(|gap| !gap.is_beginning());
    let gaps: Vec<(Ticks, Ticks)> = before.map(|gap| (gap.start, gap.length)).collect();
    (begins.is_some() || !gaps.is_empty()).then_some(WarmUpTurn { cpu, gaps, begins })
}

/// Takes everything that is in a queue now.
fn take<T>(queue: &mut rtrb::Consumer<T>) -> Vec<T> {
    let ready = queue.slots();
    let mut taken = Vec::with_capacity(ready);
    for _ in 0..ready {
        match queue.pop() {
            Ok(item) => taken.push(item),
            Err(_) => break,
        }
    }
    taken
}

/// Takes interval marks and gaps so that each interval has exactly its own gaps, even while the probe adds more. Marks
/// are taken before gaps, so that all gaps of an interval have arrived when it is closed. Marks that arrived in between
/// and precede the last gap are then taken too, so that this gap is not counted in an interval that had ended.
fn take_both(
    marks: &mut rtrb::Consumer<IntervalMark>,
    gaps: &mut rtrb::Consumer<Gap>,
) -> (Vec<IntervalMark>, Vec<Gap>) {
    let mut closed = take(marks);
    let gaps = take(gaps);
    let end = gaps.last().map(Gap::end);
    while marks.peek().is_ok_and(|mark| Some(mark.end) < end) {
        closed.extend(marks.pop());
    }
    (closed, gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe adds gaps while they are taken: three per interval; each interval end is a number.
    #[test]
    fn an_interval_has_its_own_gaps_whatever_is_added_meanwhile() {
        const INTERVALS: u64 = 50_000;
        let (mut add_mark, mut marks) = rtrb::RingBuffer::new(64);
        let (mut add_gap, mut gaps) = rtrb::RingBuffer::new(64);
        let mark = |number: u64| IntervalMark {
            start: Ticks(number * 10),
            end: Ticks(number * 10 + 9),
            ..IntervalMark::default()
        };
        let gap = |number: u64, nth: u64| Gap {
            start: Ticks(number * 10 + nth),
            length: Ticks(1),
        };
        let probe = std::thread::spawn(move || {
            for number in 0..INTERVALS {
                for nth in 0..3 {
                    while add_gap.push(gap(number, nth)).is_err() {
                        std::thread::yield_now();
                    }
                }
                while add_mark.push(mark(number)).is_err() {
                    std::thread::yield_now();
                }
            }
        });
        let (mut closed, mut counted) = (0, 0);
        while closed < INTERVALS {
            let (marks, gaps) = take_both(&mut marks, &mut gaps);
            let mut gaps = gaps.into_iter().peekable();
            for mark in marks {
                while gaps.next_if(|gap| gap.end() <= mark.end).is_some() {
                    counted += 1;
                }
                closed += 1;
                assert_eq!(counted, closed * 3, "gaps of the first {closed} intervals");
            }
            let of_the_open = gaps.count() as u64;
            counted += of_the_open;
            assert!(
                counted <= closed * 3 + 3,
                "a gap came before the mark ahead of it"
            );
        }
        probe.join().unwrap();
    }
}
