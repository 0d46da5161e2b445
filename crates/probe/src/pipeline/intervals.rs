//! Slow messages per interval: all of them, including those dropped by a full queue.

use super::account::Scale;
use hdrhistogram::{CreationError, Histogram};
use jitterscope_model::{CpuId, Ticks};
use rtrb::{Consumer, Producer, RingBuffer};

/// Longest time with a bucket of its own in an interval's histogram: an hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// The slow messages of one consumer in one interval. They overlap while messages queue up, so the consumer was behind
/// for the union of their times.
#[derive(Clone, Debug)]
pub struct SlowInterval {
    /// The consumer's CPU at the end of the interval.
    pub cpu: CpuId,
    pub start: Ticks,
    pub end: Ticks,
    /// Slow messages received in it.
    pub count: u64,
    /// The longest of them, from the intended time.
    pub max: Ticks,
    /// How long the consumer was behind.
    pub behind: Ticks,
    /// Their times in nanoseconds, three digits.
    pub lengths: Histogram<u64>,
}

/// The receiving end of one consumer's intervals.
pub struct SlowIntervals {
    done: Consumer<SlowInterval>,
    free: Producer<Histogram<u64>>,
}

impl SlowIntervals {
    /// The remaining intervals of a consumer that has ended.
    #[must_use]
    pub fn left(intervals: Vec<SlowInterval>) -> SlowIntervals {
        let (mut sender, done) = RingBuffer::new(intervals.len().max(1));
        for interval in intervals {
            // There is room for each.
            let _ = sender.push(interval);
        }
        SlowIntervals {
            done,
            free: RingBuffer::new(1).0,
        }
    }

    /// The next complete interval.
    pub fn take(&mut self) -> Option<SlowInterval> {
        self.done.pop().ok()
    }

    /// Returns an interval's memory for reuse.
    pub fn give_back(&mut self, interval: SlowInterval) {
        let mut lengths = interval.lengths;
        lengths.reset();
        // There is room for every histogram ever made.
        let _ = self.free.push(lengths);
    }
}

pub(super) struct IntervalAccount {
    lengths: Option<Histogram<u64>>,
    done: Producer<SlowInterval>,
    free: Consumer<Histogram<u64>>,
    every: u64,
    start: u64,
    /// Its planned end; never before the first message that counts.
    next: u64,
    count: u64,
    max: u64,
    behind: u64,
    /// The time behind is counted up to here.
    covered: u64,
}

impl IntervalAccount {
    /// For intervals of `every` ticks; `waiting` of them may wait to be taken.
    pub(super) fn new(
        every: Ticks,
        waiting: usize,
    ) -> Result<(IntervalAccount, SlowIntervals), CreationError> {
        let waiting = waiting.max(1);
        let (done, taken) = RingBuffer::new(waiting + 1);
        let (mut given, free) = RingBuffer::new(waiting + 1);
        for _ in 0..waiting {
            let mut lengths = Histogram::new_with_bounds(1, LONGEST_NS, 3)?;
            // Writes to every page.
            lengths.reset();
            let _ = given.push(lengths);
        }
        let mut lengths = Histogram::new_with_bounds(1, LONGEST_NS, 3)?;
        lengths.reset();
        let account = IntervalAccount {
            lengths: Some(lengths),
            done,
            free,
            every: every.0.max(1),
            start: 0,
            next: u64::MAX,
            count: 0,
            max: 0,
            behind: 0,
            covered: 0,
        };
        Ok((
            account,
            SlowIntervals {
                done: taken,
                free: given,
            },
        ))
    }

    #[inline(always)]
    pub(super) fn is_over(&self, now: u64) -> bool {
        now >= self.next
    }

    /// The first message that counts was due at `start`.
    #[cold]
    pub(super) fn begin(&mut self, start: u64) {
        (self.start, self.covered) = (start, start);
        self.next = start.saturating_add(self.every);
    }

    /// Counts a slow message, due at `intended` and received at `received`.
    pub(super) fn slow(&mut self, intended: u64, received: u64, scale: Scale) {
        let length = received.saturating_sub(intended);
        self.count += 1;
        self.max = self.max.max(length);
        self.behind += received.saturating_sub(intended.max(self.covered));
        self.covered = self.covered.max(received);
        if let Some(lengths) = &mut self.lengths {
            lengths.saturating_record(scale.nanos(length));
        }
    }

    /// Ends the interval at its planned end; messages after that belong to the next one. If no interval was taken,
    /// there is no memory for another one, and the interval continues.
    #[cold]
    pub(super) fn close(&mut self, now: u64) {
        if let Ok(lengths) = self.free.pop() {
            self.send(self.next);
            self.lengths = Some(lengths);
        }
        let behind = now.saturating_sub(self.next) / self.every;
        self.next = self
            .next
            .saturating_add((behind + 1).saturating_mul(self.every));
    }

    pub(super) fn finish(&mut self, end: u64) {
        if self.next != u64::MAX && (end > self.start || self.count > 0) {
            self.send(end.max(self.start + 1));
        }
    }

    fn send(&mut self, end: u64) {
        let Some(lengths) = self.lengths.take() else {
            return;
        };
        let done = SlowInterval {
            cpu: jitterscope_platform::current_cpu(),
            start: Ticks(self.start),
            end: Ticks(end),
            count: self.count,
            max: Ticks(self.max),
            behind: Ticks(self.behind),
            lengths,
        };
        // There is room for every interval ever made.
        let _ = self.done.push(done);
        (self.start, self.count, self.max, self.behind) = (end, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::TickRate;

    #[test]
    fn every_slow_message_is_in_one_interval_whoever_takes_them() {
        let (mut account, mut intervals) = IntervalAccount::new(Ticks(1000), 2).unwrap();
        let scale = Scale::new(TickRate::NANOSECONDS);
        account.begin(10_000);
        let mut sent = 0;
        for received in (10_100u64..30_000).step_by(100) {
            if account.is_over(received) {
                account.close(received);
            }
            account.slow(received - 150, received, scale);
            sent += 1;
            // The receiver is delayed for a while, and then absent.
            if received < 15_000
                && let Some(done) = intervals.take()
            {
                assert_eq!(
                    (done.end, done.lengths.len()),
                    (done.start + Ticks(1000), done.count)
                );
                sent -= done.count;
                intervals.give_back(done);
            }
        }
        account.finish(29_900);
        let rest: Vec<SlowInterval> = std::iter::from_fn(|| intervals.take()).collect();
        assert_eq!(rest.iter().map(|row| row.count).sum::<u64>(), sent);
        assert!(rest.windows(2).all(|two| two[0].end == two[1].start));
        let last = rest.last().unwrap();
        assert_eq!(
            (last.end, last.max, last.lengths.len()),
            (Ticks(29_900), Ticks(150), last.count)
        );
        assert!(last.end.since(last.start).0 > 10_000, "it went on");
        // They overlap: the consumer was behind all the time. A message that was due earlier counts in the interval in
        // which it arrives.
        let behind = last.behind.0 as i64 - last.end.since(last.start).0 as i64;
        assert!((0..=150).contains(&behind), "{behind}");
    }

    #[test]
    fn empty_intervals_join_the_next_and_send_nothing() {
        let (mut account, mut intervals) = IntervalAccount::new(Ticks(1000), 4).unwrap();
        account.finish(500);
        assert!(intervals.take().is_none());
        account.begin(0);
        account.slow(0, 400, Scale::new(TickRate::NANOSECONDS));
        assert!(!account.is_over(999) && account.is_over(5_500));
        account.close(5_500);
        account.finish(5_500);
        let first = intervals.take().unwrap();
        assert_eq!(
            (first.start, first.end, first.count, first.behind),
            (Ticks(0), Ticks(1000), 1, Ticks(400))
        );
        let second = intervals.take().unwrap();
        assert_eq!(
            (second.start, second.end, second.count),
            (Ticks(1000), Ticks(5_500), 0)
        );
    }
}
