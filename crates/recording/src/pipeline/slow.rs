//! Slow messages, from the consumers' queues to the run's rows.

use super::follow::{Followed, Follower, SlowRow};
use crate::engine::Batch;
use jitterscope_model::{
    IntervalRow, Nanos, PipelineRole, Sink, SinkError, Stall, StallId, ThreadRef, TickRate, Ticks,
};
use jitterscope_probe::pipeline::SlowOutput;

/// Slow messages per turn that get a row: more than the slowest 1% at a million messages a second. Of a burst, the
/// longest get one.
const MOST_ROWS: usize = 1000;

/// Selects the messages that get a row: of a burst the longest, which cover most of the lost time.
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

struct Channel {
    output: SlowOutput,
    victim: ThreadRef,
    /// Slow messages without a row, because there were too many at once.
    unkept: u64,
}

/// Empties the queues repeatedly.
pub(crate) struct SlowDrain {
    channels: Vec<Channel>,
    pub(crate) follower: Box<dyn Follower>,
    rate: TickRate,
    next_id: u64,
    worst: Nanos,
    batch: Batch,
}

impl SlowDrain {
    pub(crate) fn new(
        outputs: Vec<(PipelineRole, SlowOutput)>,
        threads: &[(PipelineRole, ThreadRef)],
        follower: Box<dyn Follower>,
        rate: TickRate,
    ) -> SlowDrain {
        let mut channels = Vec::new();
        for (role, output) in outputs {
            let Some((_, victim)) = threads.iter().find(|(of, _)| *of == role) else {
                continue;
            };
            channels.push(Channel {
                output,
                victim: *victim,
                unkept: 0,
            });
        }
        let batch = Batch::default();
        SlowDrain {
            channels,
            follower,
            rate,
            next_id: 0,
            worst: Nanos::ZERO,
            batch,
        }
    }

    pub(crate) fn begin(&mut self, start: Ticks, end: Option<Ticks>) {
        self.follower.measuring(start, end);
    }

    /// Runs one turn. Messages are popped before the follower reads the kernel's events.
    pub(crate) fn cycle(&mut self, sink: &mut dyn Sink) -> Result<(), SinkError> {
        let mut rows = Vec::new();
        for (index, channel) in self.channels.iter_mut().enumerate() {
            for _ in 0..channel.output.messages.slots() {
                let Ok(message) = channel.output.messages.pop() else {
                    break;
                };
                let stall = Stall {
                    id: StallId(0),
                    cpu: message.cpu,
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
        let slow: Vec<SlowRow> = rows
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| **kept)
            .map(|((_, row), _)| *row)
            .collect();
        let mut attributions = self.follower.cycle(&slow, sink)?.into_iter();
        for ((index, row), kept) in rows.into_iter().zip(kept) {
            if kept {
                self.batch.stall(sink, row.stall, attributions.next())?;
            } else {
                self.channels[index].unkept += 1;
            }
        }
        self.batch.flush(sink)?;
        self.intervals(sink)
    }

    /// Hands over complete intervals: they count every slow message, with or without a record.
    fn intervals(&mut self, sink: &mut dyn Sink) -> Result<(), SinkError> {
        let rate = self.rate;
        for channel in &mut self.channels {
            while let Some(done) = channel.output.intervals.take() {
                let row = IntervalRow {
                    cpu: done.cpu,
                    start: done.start,
                    end: done.end,
                    count: done.count,
                    max: rate.nanos(done.max),
                    stolen: rate.nanos(done.behind),
                };
                self.batch.interval(sink, &row, &done.lengths)?;
                channel.output.intervals.give_back(done);
            }
        }
        Ok(())
    }

    /// The threads have ended at `end`: takes in the rest. Returns the follower's results and, in the order of the
    /// queues, the number of each consumer's slow messages without a row.
    pub(crate) fn finish(
        mut self,
        sink: &mut dyn Sink,
        end: Ticks,
    ) -> Result<(Option<Followed>, Vec<u64>), SinkError> {
        self.cycle(sink)?;
        let followed = self.follower.finish(end, sink)?;
        let unkept = self.channels.iter().map(|channel| channel.unkept).collect();
        Ok((followed, unkept))
    }

    /// The number of rows so far, and the longest.
    pub(crate) fn so_far(&self) -> (u64, Nanos) {
        (self.next_id, self.worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::follow::Blind;
    use hdrhistogram::Histogram;
    use jitterscope_model::{Comm, CpuId, Delivery, Row, RunFacts, RunManifest};
    use jitterscope_probe::pipeline::{SlowInterval, SlowIntervals, SlowMessage};

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
    fn rows_are_in_order_and_intervals_count_what_the_queue_had_no_room_for() {
        let (mut sender, messages) = rtrb::RingBuffer::new(2);
        let victim = ThreadRef {
            tid: 7,
            comm: Comm::new("js-accumulator"),
        };
        let role = PipelineRole::Accumulator;
        let interval = |cpu, start, count| {
            let mut lengths = Histogram::new(3).unwrap();
            lengths.record_n(490, count).unwrap();
            let (start, end, max) = (Ticks(start), Ticks(start + 1000), Ticks(490));
            SlowInterval {
                cpu: CpuId(cpu),
                start,
                end,
                count,
                max,
                behind: Ticks(510),
                lengths,
            }
        };
        let intervals = SlowIntervals::left(vec![interval(3, 1000, 280), interval(2, 2000, 3)]);
        let outputs = vec![(
            role,
            SlowOutput {
                messages,
                intervals,
            },
        )];
        let mut drain = SlowDrain::new(
            outputs,
            &[(role, victim)],
            Box::new(Blind),
            TickRate::NANOSECONDS,
        );
        drain.begin(Ticks(1000), None);
        for (cpu, intended, received) in [(3, 1020, 1510), (2, 2005, 2050)] {
            let (intended, received) = (Ticks(intended), Ticks(received));
            let slow = SlowMessage {
                role,
                cpu: CpuId(cpu),
                intended,
                received,
                ..SlowMessage::default()
            };
            sender.push(slow).unwrap();
        }
        let mut kept = Kept::default();
        drain.cycle(&mut kept).unwrap();
        assert_eq!(drain.so_far(), (2, Nanos(490)));
        let (followed, _) = drain.finish(&mut kept, Ticks(3000)).unwrap();
        assert!(followed.is_none());
        let rows: Vec<(StallId, CpuId)> = kept
            .stalls
            .iter()
            .map(|stall| (stall.id, stall.cpu))
            .collect();
        assert_eq!(rows, [(StallId(0), CpuId(3)), (StallId(1), CpuId(2))]);
        let seen: Vec<(CpuId, u64, u64, u64)> = kept
            .intervals
            .iter()
            .map(|row| (row.cpu, row.count, row.max.0, row.stolen.0))
            .collect();
        assert_eq!(seen, [(CpuId(3), 280, 490, 510), (CpuId(2), 3, 490, 510)]);
        assert_eq!(kept.lengths, 283);
    }
}
