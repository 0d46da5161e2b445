//! The consumers: accumulator and journaller. Both stamp, check and account for every message; the journaller also
//! writes a record.

use super::account::{Scale, Times};
use super::control::PipelineControl;
use super::intervals::IntervalAccount;
use super::journal::Journal;
use super::message::{Message, flag};
use super::way::{Inlet, Polled};
use super::{ConsumerResult, PipelineSettings, Role, SlowMessage};
use hdrhistogram::CreationError;
use jitterscope_clock::Clock;
use jitterscope_model::{JournalEntry, Nanos, TickRate, Ticks};
use rtrb::Producer;

/// Without a given threshold, slow messages must be slower than this share of the warm-up's messages. It is below 99%,
/// so that everything above the 99th percentile of the measurement is included.
const SLOWER_THAN: f64 = 0.98;
/// The highest learned threshold: a warm-up worse than this does not show the usual times.
const LEARNT_AT_MOST: Nanos = Nanos(100_000);
/// The threshold if none is given and there is no warm-up to learn it from.
const SLOW_WITHOUT_WARM_UP: Nanos = Nanos(10_000);

/// A consumer and its end of the ring.
pub(super) struct Receiver<C, S, R> {
    ring: R,
    desk: Desk<C, S>,
}

/// The sending end of the slow message reports.
pub(super) struct Telling {
    pub(super) messages: Producer<SlowMessage>,
    pub(super) intervals: IntervalAccount,
}

/// A consumer's handling of a message, with all the memory that it touches.
struct Desk<C, S> {
    role: Role,
    clock: C,
    rate: TickRate,
    scale: Scale,
    slow: Telling,
    journal: Option<Journal<S>>,
    settings: PipelineSettings,
    transit: Times,
    from_intended: Times,
    inter: Times,
    expected: u64,
    disordered: u64,
    previous: u64,
    slow_above: u64,
    slow_count: u64,
    slow_dropped: u64,
    received: u64,
    end: u64,
    is_warm: bool,
}

impl<C: Clock, S: AsMut<[u8]>, R: Inlet> Receiver<C, S, R> {
    pub(super) fn new(
        role: Role,
        (clock, rate): (C, TickRate),
        (ring, slow, journal): (R, Telling, Option<Journal<S>>),
        settings: PipelineSettings,
    ) -> Result<Receiver<C, S, R>, CreationError> {
        let slow_above = settings
            .slow_above
            .unwrap_or_else(|| rate.ticks(SLOW_WITHOUT_WARM_UP));
        let desk = Desk {
            role,
            clock,
            rate,
            scale: Scale::new(rate),
            slow,
            journal,
            settings,
            transit: Times::new()?,
            from_intended: Times::new()?,
            inter: Times::new()?,
            expected: 0,
            disordered: 0,
            previous: 0,
            slow_above: slow_above.0,
            slow_count: 0,
            slow_dropped: 0,
            received: 0,
            end: 0,
            is_warm: false,
        };
        Ok(Receiver { ring, desk })
    }

    /// Writes to all memory that will be written to.
    pub(super) fn prefault(&mut self) {
        let desk = &mut self.desk;
        desk.forget();
        if let Some(journal) = &mut desk.journal {
            journal.prefault();
        }
        let free = desk.slow.messages.slots();
        if let Ok(chunk) = desk.slow.messages.write_chunk(free) {
            // Filled with default values and dropped uncommitted: the queue stays empty.
            drop(chunk);
        }
    }

    /// Receives until the ring ends.
    pub(super) fn run(mut self, control: &PipelineControl) -> ConsumerResult {
        if self.desk.settings.warm_up_messages == 0 {
            self.desk.end_warm_up(control);
        }
        loop {
            let desk = &mut self.desk;
            match self.ring.poll(|message| desk.receive(message, control)) {
                Polled::Some | Polled::None => {}
                // The message that says so may be lost.
                Polled::Settled if !self.desk.is_warm => self.desk.end_warm_up(control),
                Polled::Settled => {}
                Polled::End => break,
            }
        }
        self.desk.result()
    }
}

impl<C: Clock, S: AsMut<[u8]>> Desk<C, S> {
    #[inline]
    fn receive(&mut self, message: &Message, control: &PipelineControl) {
        // Read only after the ring's cursor was seen to move: otherwise the CPU would read the clock early.
        let now = self.clock.now_after_loads();
        self.disordered += u64::from(message.sequence != self.expected);
        self.expected = message.sequence + 1;
        if self.received == 0 {
            if message.is(flag::MEASURED) {
                self.slow.intervals.begin(message.intended);
            }
            // The first message's predecessor would have been due an interval earlier.
            self.previous = message.intended.saturating_sub(self.settings.interval.0);
        }
        self.received += 1;
        let since_intended = now.saturating_sub(message.intended);
        let transit = self.scale.nanos(now.saturating_sub(message.published));
        self.transit.record(transit);
        self.from_intended.record(self.scale.nanos(since_intended));
        self.inter
            .record(self.scale.nanos(now.saturating_sub(self.previous)));
        let measured = message.is(flag::MEASURED);
        if let Some(journal) = &mut self.journal {
            let published = self.scale.nanos(message.published) as i64;
            let entry = JournalEntry {
                published_ns: published,
                journalled_ns: published.wrapping_add(transit as i64),
                delta_ns: transit as i64,
                sequence: message
                    .sequence
                    .wrapping_sub(self.settings.warm_up_messages) as i32,
            };
            if measured {
                journal.append(entry, control);
            } else {
                journal.rehearse(entry);
            }
        }
        if measured {
            if self.slow.intervals.is_over(now) {
                self.slow.intervals.close(now);
            }
            if since_intended >= self.slow_above {
                self.slow(message, now);
            }
        }
        self.previous = now;
        self.end = now;
        if message.is(flag::LAST_OF_WARMUP) {
            self.end_warm_up(control);
        }
    }

    #[cold]
    fn slow(&mut self, message: &Message, now: u64) {
        self.slow_count += 1;
        self.slow.intervals.slow(message.intended, now, self.scale);
        let slow = SlowMessage {
            role: self.role,
            // From the vDSO: no system call.
            cpu: jitterscope_platform::current_cpu(),
            sequence: message
                .sequence
                .wrapping_sub(self.settings.warm_up_messages),
            intended: Ticks(message.intended),
            published: Ticks(message.published),
            received: Ticks(now),
            published_before: Ticks(message.previous),
            received_before: Ticks(self.previous),
            waited: Ticks(message.waited),
        };
        self.slow_dropped += u64::from(self.slow.messages.push(slow).is_err());
    }

    /// Learns the threshold and discards the rest.
    #[cold]
    fn end_warm_up(&mut self, control: &PipelineControl) {
        if self.settings.slow_above.is_none() && self.from_intended.count() > 0 {
            let usual = Nanos(self.from_intended.quantile_ns(SLOWER_THAN)).min(LEARNT_AT_MOST);
            self.slow_above = self.rate.ticks(usual).0.max(1);
        }
        self.forget();
        self.is_warm = true;
        control.report_warm();
    }

    fn forget(&mut self) {
        self.transit.reset();
        self.from_intended.reset();
        self.inter.reset();
        self.received = 0;
        if let Some(journal) = &mut self.journal {
            journal.reset();
        }
    }

    fn result(mut self) -> ConsumerResult {
        self.slow.intervals.finish(self.end);
        if let Some(journal) = &mut self.journal {
            journal.finish();
        }
        ConsumerResult {
            role: self.role,
            received: self.received,
            disordered: self.disordered,
            end: Ticks(self.end),
            transit: self.transit,
            from_intended: self.from_intended,
            inter: self.inter,
            slow_above: Ticks(self.slow_above),
            slow: self.slow_count,
            slow_dropped: self.slow_dropped,
            journal: self.journal.map(|journal| journal.account),
        }
    }
}
