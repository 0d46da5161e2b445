//! The producer: stamps records and publishes them on schedule.

use super::account::{Scale, Times};
use super::control::PipelineControl;
use super::message::flag;
use super::way::Outlet;
use super::{Length, Pacing, PipelineSettings, ProducerResult};
use hdrhistogram::CreationError;
use jitterscope_clock::{Clock, wait_until};
use jitterscope_model::Ticks;

/// Number of messages between two reports of progress.
const REPORT_EVERY: u64 = 128;

/// All the memory that the producer touches.
pub(super) struct Publisher<C, P, I> {
    clock: C,
    ring: P,
    input: I,
    settings: PipelineSettings,
    scale: Scale,
    /// Records in the input.
    records: u64,
    inter: Times,
    lateness: Times,
    sequence: u64,
    previous: u64,
    measured: u64,
    full_waits: u64,
    full_ticks: u64,
    full_longest: u64,
}

impl<C: Clock, P: Outlet, I: AsRef<[u8]>> Publisher<C, P, I> {
    pub(super) fn new(
        clock: C,
        ring: P,
        input: I,
        settings: PipelineSettings,
        scale: Scale,
    ) -> Result<Publisher<C, P, I>, CreationError> {
        let records = (input.as_ref().len() / settings.record_length.max(1)) as u64;
        Ok(Publisher {
            clock,
            ring,
            input,
            settings,
            scale,
            records,
            inter: Times::new()?,
            lateness: Times::new()?,
            sequence: 0,
            previous: 0,
            measured: 0,
            full_waits: 0,
            full_ticks: 0,
            full_longest: 0,
        })
    }

    /// Reads the whole input once, to fault in its pages.
    pub(super) fn prefault(&mut self) {
        let sum = self
            .input
            .as_ref()
            .iter()
            .fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        std::hint::black_box(sum);
        self.inter.reset();
        self.lateness.reset();
    }

    /// Publishes the warm-up, waits for the start, and publishes the messages that count.
    pub(super) fn run(mut self, control: &PipelineControl) -> ProducerResult {
        let warm_up = self.settings.warm_up_messages;
        self.pause_until(control, || control.may_warm_up().then_some(()));
        let start = self.clock.now();
        self.stream(
            control,
            start,
            Some(warm_up),
            u64::MAX,
            0,
            flag::LAST_OF_WARMUP,
        );
        self.ring.settle();
        self.forget();
        control.report_warm();
        let warmed_up = self.sequence;
        let (mut began, mut completed) = (0, false);
        let window = self.pause_until(control, || control.window());
        if let Some((start, end)) = window {
            began = start;
            self.previous = start.saturating_sub(self.settings.interval.0);
            let messages = match self.settings.length {
                Length::Messages(count) => Some(count),
                Length::UntilEnd => None,
            };
            self.ring.resume();
            completed = self.stream(
                control,
                start,
                messages,
                end,
                flag::MEASURED,
                flag::LAST_IN_STREAM,
            );
        }
        control.report_sent(self.measured);
        // Dropping the ring's producer signals the end to the consumers.
        drop(self.ring);
        ProducerResult {
            start: Ticks(began),
            end: Ticks(self.previous),
            warmed_up,
            sent: self.measured,
            inter: self.inter,
            lateness: self.lateness,
            full_waits: self.full_waits,
            full_waited: Ticks(self.full_ticks),
            full_longest: Ticks(self.full_longest),
            completed,
        }
    }

    /// Sleeps, a millisecond at a time, until `ready` has something; `None` if stopped.
    fn pause_until<T>(
        &self,
        control: &PipelineControl,
        ready: impl Fn() -> Option<T>,
    ) -> Option<T> {
        loop {
            if let Some(found) = ready() {
                return Some(found);
            }
            if control.stopped() {
                return None;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn forget(&mut self) {
        self.inter.reset();
        self.lateness.reset();
        (self.full_waits, self.full_ticks, self.full_longest) = (0, 0, 0);
    }

    /// Publishes `messages`, or until the schedule reaches `end`. Sets the flag `last` on the last message if it is
    /// known to be the last. Returns false if stopped.
    fn stream(
        &mut self,
        control: &PipelineControl,
        start: u64,
        messages: Option<u64>,
        end: u64,
        flags: u8,
        last: u8,
    ) -> bool {
        let interval = self.settings.interval.0;
        let mut intended = start;
        let mut count = 0;
        while messages.is_none_or(|messages| count < messages) && intended < end {
            if control.stopped() {
                return false;
            }
            let now = wait_until(self.clock, intended);
            if interval == 0 {
                intended = now.min(end.saturating_sub(1)).max(intended);
            }
            let next = match self.settings.pacing {
                Pacing::Schedule => intended.saturating_add(interval),
                Pacing::AfterPublication => 0,
            };
            count += 1;
            let is_last = messages == Some(count) || (messages.is_none() && next >= end);
            let flags = if is_last { flags | last } else { flags };
            if !self.publish(control, intended, flags) {
                return false;
            }
            intended = match self.settings.pacing {
                Pacing::Schedule => next,
                Pacing::AfterPublication => self.previous.saturating_add(interval),
            };
        }
        true
    }

    /// Publishes one message, and waits for room if necessary; false if stopped meanwhile.
    #[inline]
    fn publish(&mut self, control: &PipelineControl, intended: u64, flags: u8) -> bool {
        let (clock, sequence, previous) = (self.clock, self.sequence, self.previous);
        let length = self.settings.record_length;
        let in_file = sequence % self.records.max(1);
        let begin = in_file as usize * length;
        let record = self
            .input
            .as_ref()
            .get(begin..begin + length)
            .unwrap_or_default();
        let flags = if in_file + 1 == self.records {
            flags | flag::LAST_IN_FILE
        } else {
            flags
        };
        let mut published = 0;
        let mut waiting_since = 0;
        let mut waited = 0;
        loop {
            let is_sent = self.ring.try_send(control, |message| {
                if message.payload.len() == record.len() {
                    message.payload.copy_from_slice(record);
                }
                message.intended = intended;
                message.previous = previous;
                message.sequence = sequence;
                message.in_file = in_file as u32;
                message.flags = flags;
                // Read only after the record was loaded from memory; otherwise that load would count as transit.
                published = clock.now_after_loads();
                waited = if waiting_since == 0 {
                    0
                } else {
                    published.saturating_sub(waiting_since)
                };
                message.waited = waited;
                message.published = published;
            });
            if is_sent {
                break;
            }
            if waiting_since == 0 {
                waiting_since = clock.now();
                self.full_waits += 1;
            }
            if control.stopped() {
                return false;
            }
        }
        self.full_ticks += waited;
        self.full_longest = self.full_longest.max(waited);
        self.sequence += 1;
        self.inter
            .record(self.scale.nanos(published.saturating_sub(previous)));
        self.lateness
            .record(self.scale.nanos(published.saturating_sub(intended)));
        self.previous = published;
        if flags & flag::MEASURED != 0 {
            self.measured += 1;
            if self.measured.is_multiple_of(REPORT_EVERY) {
                control.report_sent(self.measured);
            }
        }
        true
    }
}
