//! Slow messages, from the consumers' queues to the run's rows.

use super::follow::{Followed, Follower, SlowRow};
use crate::engine::Batch;
use hdrhistogram::{CreationError, Histogram};
use jitterscope_model::{
    CpuId, IntervalRow, Nanos, PipelineRole, Sink, SinkError, Stall, StallId, ThreadRef, TickRate, Ticks,
};
use jitterscope_platform::Machine;
use jitterscope_probe::pipeline::SlowMessage;
use rtrb::Consumer;

/// Longest time that an interval's histogram tells apart: an hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Slow messages of one turn that get a row: more than the slowest in a hundred of a million a second. Of a
/// burst the longest do.
const MOST_ROWS: usize = 1000;

/// Where a consumer runs.
enum Where {
    Pinned(CpuId),
    /// Last seen there, in this file of the kernel's.
    Seen(CpuId, String),
}

impl Where {
    fn cpu(&self) -> CpuId {
        match self {
            Where::Pinned(cpu) | Where::Seen(cpu, _) => *cpu,
        }
    }

    fn look(&mut self, machine: &Machine) {
        if let Where::Seen(cpu, file) = self
            && let Some(now) = machine.read(&*file).ok().as_deref().and_then(last_cpu)
        {
            *cpu = now;
        }
    }
}

/// The CPU in a `/proc/PID/task/TID/stat`: its field 39. The name in field 2 may hold anything.
fn last_cpu(stat: &str) -> Option<CpuId> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(36)?.parse().ok().map(CpuId)
}

/// Which of them get a row: of a burst the longest, which say most of the time that was lost.
fn longest(rows: &[(usize, SlowRow)]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    if rows.len() > MOST_ROWS {
        order.sort_by_key(|at| std::cmp::Reverse(rows[*at].1.stall.length()));
        order.truncate(MOST_ROWS);
    }
    let mut kept = vec![false; rows.len()];
    order.into_iter().for_each(|at| kept[at] = true);
    kept
}

/// One consumer's slow messages.
struct Channel {
    queue: Consumer<SlowMessage>,
    victim: ThreadRef,
    at: Where,
    interval: Interval,
    /// Slow messages that got no row, for there were too many at once.
    unkept: u64,
}

/// Slow messages of the interval that is not yet complete. They overlap while messages queue up, so that
/// the time in which the consumer was behind is that of their union.
struct Interval {
    start: Ticks,
    count: u64,
    max: Nanos,
    behind: Ticks,
    covered: Ticks,
    lengths: Histogram<u64>,
}

impl Interval {
    fn new() -> Result<Interval, CreationError> {
        let lengths = Histogram::new_with_bounds(1, LONGEST_NS, 3)?;
        let (start, covered) = (Ticks(0), Ticks(0));
        Ok(Interval { start, count: 0, max: Nanos::ZERO, behind: Ticks(0), covered, lengths })
    }

    fn add(&mut self, stall: &Stall, rate: TickRate) {
        let length = rate.nanos(stall.length());
        self.count += 1;
        self.max = self.max.max(length);
        self.behind = self.behind + stall.end.since(stall.start.max(self.covered));
        self.covered = self.covered.max(stall.end);
        self.lengths.saturating_record(length.0);
    }

    fn close(
        &mut self,
        end: Ticks,
        cpu: CpuId,
        rate: TickRate,
        (batch, sink): (&mut Batch, &mut dyn Sink),
    ) -> Result<(), SinkError> {
        let (start, count, max) = (self.start, self.count, self.max);
        let row = IntervalRow { cpu, start, end, count, max, stolen: rate.nanos(self.behind) };
        batch.interval(sink, &row, &self.lengths)?;
        self.lengths.reset();
        (self.start, self.count, self.max, self.behind) = (end, 0, Nanos::ZERO, Ticks(0));
        Ok(())
    }
}

/// Empties the queues, again and again.
pub(crate) struct SlowDrain {
    machine: Machine,
    channels: Vec<Channel>,
    pub(crate) follower: Box<dyn Follower>,
    rate: TickRate,
    /// Length of an interval.
    every: Ticks,
    /// An interval is complete so long after its end: its last message was in the queue by then.
    margin: Ticks,
    begun: bool,
    next_id: u64,
    worst: Nanos,
    batch: Batch,
}

impl SlowDrain {
    pub(crate) fn new(
        machine: &Machine,
        queues: Vec<(PipelineRole, Consumer<SlowMessage>)>,
        threads: &[(PipelineRole, ThreadRef)],
        pinned: impl Fn(PipelineRole) -> Option<CpuId>,
        follower: Box<dyn Follower>,
        (rate, reporting): (TickRate, Nanos),
    ) -> Result<SlowDrain, CreationError> {
        let mut channels = Vec::new();
        for (role, queue) in queues {
            let Some((_, victim)) = threads.iter().find(|(of, _)| *of == role) else { continue };
            let at = match pinned(role) {
                Some(cpu) => Where::Pinned(cpu),
                None => Where::Seen(CpuId(0), format!("/proc/self/task/{}/stat", victim.tid)),
            };
            channels.push(Channel { queue, victim: *victim, at, interval: Interval::new()?, unkept: 0 });
        }
        Ok(SlowDrain {
            machine: machine.clone(),
            channels,
            follower,
            rate,
            every: rate.ticks(reporting),
            margin: rate.ticks(Nanos(5_000_000)),
            begun: false,
            next_id: 0,
            worst: Nanos::ZERO,
            batch: Batch::default(),
        })
    }

    /// The schedule begins at `start`.
    pub(crate) fn begin(&mut self, start: Ticks, end: Option<Ticks>) {
        self.begun = true;
        for channel in &mut self.channels {
            (channel.interval.start, channel.interval.covered) = (start, start);
        }
        self.follower.measuring(start, end);
    }

    /// One turn at `now`. Messages are popped before the follower looks at the kernel's events.
    pub(crate) fn cycle(&mut self, sink: &mut dyn Sink, now: Ticks) -> Result<(), SinkError> {
        let mut rows = Vec::new();
        for (index, channel) in self.channels.iter_mut().enumerate() {
            channel.at.look(&self.machine);
            for _ in 0..channel.queue.slots() {
                let Ok(message) = channel.queue.pop() else { break };
                let stall = Stall {
                    id: StallId(0),
                    cpu: channel.at.cpu(),
                    victim: channel.victim,
                    start: message.intended,
                    end: message.received.max(message.intended),
                };
                rows.push((index, SlowRow { message, stall }));
            }
        }
        rows.sort_by_key(|(_, row)| row.message.received);
        let kept = longest(&rows);
        for ((_, row), _) in rows.iter_mut().zip(&kept).filter(|(_, kept)| **kept) {
            row.stall.id = StallId(self.next_id);
            self.next_id += 1;
            self.worst = self.worst.max(self.rate.nanos(row.stall.length()));
        }
        let slow: Vec<SlowRow> =
            rows.iter().zip(&kept).filter(|(_, kept)| **kept).map(|((_, row), _)| *row).collect();
        let mut attributions = self.follower.cycle(&slow, sink)?.into_iter();
        for ((index, row), kept) in rows.into_iter().zip(kept) {
            self.close_until(sink, index, row.stall.end)?;
            let channel = &mut self.channels[index];
            channel.interval.add(&row.stall, self.rate);
            if kept {
                self.batch.stall(sink, row.stall, attributions.next())?;
            } else {
                channel.unkept += 1;
            }
        }
        self.batch.flush(sink)?;
        if self.begun {
            for index in 0..self.channels.len() {
                self.close_until(sink, index, now - self.margin)?;
            }
        }
        Ok(())
    }

    /// Closes the intervals that ended before `until`.
    fn close_until(&mut self, sink: &mut dyn Sink, index: usize, until: Ticks) -> Result<(), SinkError> {
        let channel = &mut self.channels[index];
        while channel.interval.start + self.every < until {
            let end = channel.interval.start + self.every;
            channel.interval.close(end, channel.at.cpu(), self.rate, (&mut self.batch, sink))?;
        }
        Ok(())
    }

    /// The threads have ended at `end`: takes in the rest. Returns what the follower found, and how many
    /// slow messages of each consumer got no row, in the order of the queues.
    pub(crate) fn finish(
        mut self,
        sink: &mut dyn Sink,
        end: Ticks,
    ) -> Result<(Option<Followed>, Vec<u64>), SinkError> {
        self.cycle(sink, Ticks(0))?;
        for channel in &mut self.channels {
            if channel.interval.start < end || channel.interval.count > 0 {
                let end = end.max(channel.interval.start + Ticks(1));
                channel.interval.close(end, channel.at.cpu(), self.rate, (&mut self.batch, sink))?;
            }
        }
        let followed = self.follower.finish(end, sink)?;
        let unkept = self.channels.iter().map(|channel| channel.unkept).collect();
        Ok((followed, unkept))
    }

    /// Rows so far and the longest.
    pub(crate) fn so_far(&self) -> (u64, Nanos) {
        (self.next_id, self.worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::follow::Blind;
    use jitterscope_model::{Comm, Delivery, Row, RunFacts, RunManifest};

    #[derive(Default)]
    struct Kept {
        stalls: Vec<Stall>,
        intervals: Vec<IntervalRow>,
        lengths: u64,
    }

    impl Sink for Kept {
        fn begin(&mut self, _: &RunFacts) -> Result<(), SinkError> {
            Ok(())
        }
        fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
            for row in batch {
                match row {
                    Row::Stall(stall, _) => self.stalls.push(**stall),
                    Row::Interval(row, lengths) => {
                        self.intervals.push(**row);
                        self.lengths += lengths.len();
                    }
                    _ => {}
                }
            }
            Ok(())
        }
        fn end(&mut self, _: &RunManifest) -> Result<Delivery, SinkError> {
            Ok(Delivery::default())
        }
    }

    #[test]
    fn a_stat_line_tells_the_cpu_whatever_the_name() {
        let fields: Vec<String> = (3..=52).map(|n| n.to_string()).collect();
        assert_eq!(last_cpu(&format!("7 (a) b (c) {}", fields.join(" "))), Some(CpuId(39)));
        assert_eq!(last_cpu("7 (a"), None);
        let own = Machine::host().read("/proc/self/stat").unwrap();
        assert!(last_cpu(&own).is_some());
    }

    #[test]
    fn rows_are_in_order_and_time_behind_counts_once() {
        let (mut sender, queue) = rtrb::RingBuffer::new(16);
        let victim = ThreadRef { tid: 7, comm: Comm::new("js-accumulator") };
        let role = PipelineRole::Accumulator;
        let mut drain = SlowDrain::new(
            &Machine::host(),
            vec![(role, queue)],
            &[(role, victim)],
            |_| Some(CpuId(3)),
            Box::new(Blind),
            (TickRate::NANOSECONDS, Nanos(1_000_000_000)),
        )
        .unwrap();
        let second = 1_000_000_000;
        drain.begin(Ticks(second), None);
        // Three that queued up behind one another, one in the next interval, one after an empty interval.
        for (intended, received) in
            [(10, 500), (20, 510), (30, 520), (second + 5, second + 50), (3 * second, 3 * second + 1)]
        {
            let (intended, received) = (Ticks(second + intended), Ticks(second + received));
            sender.push(SlowMessage { role, intended, received, ..SlowMessage::default() }).unwrap();
        }
        let mut kept = Kept::default();
        drain.cycle(&mut kept, Ticks(2 * second)).unwrap();
        assert_eq!(drain.so_far(), (5, Nanos(490)));
        let (followed, _) = drain.finish(&mut kept, Ticks(4 * second + 500)).unwrap();
        assert!(followed.is_none());
        assert_eq!((kept.stalls.len(), kept.lengths), (5, 5));
        assert!(
            kept.stalls.iter().zip(0..).all(|(stall, n)| stall.id == StallId(n) && stall.cpu == CpuId(3))
        );
        let seen: Vec<(u64, u64, u64)> =
            kept.intervals.iter().map(|row| (row.count, row.max.0, row.stolen.0)).collect();
        assert_eq!(seen, [(3, 490, 510), (1, 45, 45), (0, 0, 0), (1, 1, 1)]);
        assert!(kept.intervals.windows(2).all(|pair| pair[0].end == pair[1].start));
    }
}
