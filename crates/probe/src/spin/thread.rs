//! The work around the loop, and the handling of its stalls and intervals.

use super::counts::{ShortCounts, Stalls};
use super::{IntervalMark, SpinSettings};
use crate::control::ProbeControl;
use crate::gap_queue::{GapQueue, fault_in};
use jitterscope_clock::{AtMark, Clock, Watcher, spin};
use jitterscope_model::{CpuId, EndedEarly, Gap, ProbeResult, Ticks};
use rtrb::Producer;

/// A spin probe's memory: the loop's counters and everything kept of its results.
pub(super) struct Spinner {
    short: ShortCounts,
    events: Events,
    start: u64,
    end: u64,
    planned_end: u64,
}

/// The state of the loop's watchers.
struct Events {
    settings: SpinSettings,
    stalls: Stalls,
    gaps: GapQueue,
    intervals: Producer<IntervalMark>,
    interval: IntervalMark,
    next_interval: u64,
    /// Whether the interval is overdue because its queue is full.
    unsent: bool,
    dropped: u64,
    /// End of the last stall: the work of handling it lies in the delta that begins here.
    told_at: u64,
    /// Stalls that were only that work.
    own: u64,
    /// The mark between warm-up and measurement, until the queue has accepted it.
    beginning: Option<Gap>,
    /// Set if a stall ended on another CPU than it began on.
    moved_to: Option<u32>,
}

impl Spinner {
    pub(super) fn new(
        settings: SpinSettings,
        stalls: Stalls,
        gaps: GapQueue,
        intervals: Producer<IntervalMark>,
    ) -> Spinner {
        let events = Events {
            settings,
            stalls,
            gaps,
            intervals,
            interval: IntervalMark::default(),
            next_interval: u64::MAX,
            unsent: false,
            dropped: 0,
            told_at: 0,
            own: 0,
            beginning: None,
            moved_to: None,
        };
        let short = ShortCounts::new(settings.threshold);
        Spinner {
            short,
            events,
            start: 0,
            end: 0,
            planned_end: 0,
        }
    }

    /// Faults in all memory. Writes the queues' slots through the unused part of their buffers.
    pub(super) fn prefault(&mut self) {
        self.short.prefault();
        self.events.stalls.reset();
        self.events.gaps.fault_in();
        fault_in(&mut self.events.intervals);
    }

    /// Spins as in the measurement until its start, and sends gaps, too; nothing of it counts.
    pub(super) fn warm_up<C: Clock>(&mut self, clock: C, control: &ProbeControl) {
        let poll = (self.events.settings.poll.0 / SpinSettings::WARM_UP_LOOKS).max(1);
        let first = clock.now();
        let mut warm_up = WarmUp {
            events: &mut self.events,
            control,
            poll,
        };
        spin(
            clock,
            &mut self.short.deltas(),
            &mut warm_up,
            first,
            first + poll,
        );
    }

    /// Measures until the planned end, until it is stopped, or until it loses its CPU.
    pub(super) fn measure<C: Clock>(&mut self, clock: C, control: &ProbeControl) {
        let events = &mut self.events;
        self.short.reset();
        events.stalls.reset();
        (events.dropped, events.own) = (0, 0);
        self.planned_end = control.end().0;
        let (poll, interval) = (
            events.settings.poll.0.max(1),
            events.settings.interval.0.max(1),
        );
        let planned_end = self.planned_end;
        let first = clock.now();
        self.start = first;
        events.beginning = Some(Gap::measurement_begins(Ticks(first)));
        events.send_beginning();
        events.next_interval = first.saturating_add(interval);
        events.interval = IntervalMark {
            start: Ticks(first),
            ..IntervalMark::default()
        };
        let first_mark = (first + poll).min(events.next_interval).min(planned_end);
        let mut measurement = Measurement {
            events,
            control,
            poll,
            planned_end,
        };
        self.end = spin(
            clock,
            &mut self.short.deltas(),
            &mut measurement,
            first,
            first_mark,
        );
        // The measurement is over, so there is time to wait for room.
        let events = &mut self.events;
        while events.unsent && !events.intervals.is_abandoned() {
            std::thread::yield_now();
            events.unsent = events.intervals.push(events.interval).is_err();
        }
    }

    /// Stores a stall as a measurement does.
    pub(super) fn store(&mut self, start: u64, length: u64) {
        self.events.stalled(start, length);
    }

    pub(super) fn result(&self) -> ProbeResult {
        let Spinner { events, .. } = self;
        let below = self.short.rows();
        let short: u128 = below
            .iter()
            .map(|(delta, count)| u128::from(*delta) * u128::from(*count))
            .sum();
        let squares: u128 = below
            .iter()
            .map(|(delta, count)| u128::from(*delta).pow(2) * u128::from(*count))
            .sum();
        let above = events.stalls.rows();
        let shortest_stall = above.first().map_or(0, |row| row.0);
        ProbeResult {
            cpu: events.settings.cpu,
            tid: jitterscope_platform::current_tid(),
            start: Ticks(self.start),
            end: Ticks(self.end),
            planned_end: Ticks(self.planned_end),
            samples: below.iter().map(|row| row.1).sum::<u64>() + events.stalls.count,
            sum_ticks: narrow(short + events.stalls.sum),
            sum_squares: squares + events.stalls.squares,
            min_ticks: below.first().map_or(shortest_stall, |row| u64::from(row.0)),
            max_ticks: events
                .stalls
                .longest
                .max(below.last().map_or(0, |row| u64::from(row.0))),
            threshold_ticks: events.settings.threshold.0,
            below,
            above,
            stalls: events.stalls.count,
            stalled_ticks: narrow(events.stalls.sum),
            dropped_records: events.dropped + events.own,
            own_bookkeeping: events.own,
            page_faults: 0,
            involuntary_switches: 0,
            ended_early: events.moved_to.map(|to_cpu| {
                EndedEarly::Moved {
                    cpu: events.settings.cpu,
                    to_cpu: CpuId(to_cpu),
                    because: None,
                }
                .into()
            }),
        }
    }
}

/// Until the start of the measurement.
struct WarmUp<'a> {
    events: &'a mut Events,
    control: &'a ProbeControl,
    poll: u64,
}

impl Watcher for WarmUp<'_> {
    fn stalled(&mut self, start: u64, length: u64) -> bool {
        self.events.stalled(start, length)
    }

    fn at_mark(&mut self, now: u64) -> AtMark {
        let start = self.control.start().0;
        if now >= start || self.control.stopped() {
            AtMark::End
        } else {
            AtMark::Until((now + self.poll).min(start))
        }
    }
}

/// From the start to the end of the measurement.
struct Measurement<'a> {
    events: &'a mut Events,
    control: &'a ProbeControl,
    poll: u64,
    planned_end: u64,
}

impl Watcher for Measurement<'_> {
    fn stalled(&mut self, start: u64, length: u64) -> bool {
        self.events.stalled(start, length)
    }

    fn at_mark(&mut self, now: u64) -> AtMark {
        let events = &mut *self.events;
        let ended = now >= self.planned_end || events.moved_to.is_some() || self.control.stopped();
        if ended || now >= events.next_interval {
            events.close_interval(now);
        }
        if ended {
            AtMark::End
        } else {
            AtMark::Until(
                (now + self.poll)
                    .min(events.next_interval)
                    .min(self.planned_end),
            )
        }
    }
}

impl Events {
    /// Accounts for a stall; returns true when the thread is first found on another CPU.
    fn stalled(&mut self, start: u64, length: u64) -> bool {
        self.stalls.record(length);
        self.interval.count += 1;
        self.interval.sum = self.interval.sum + Ticks(length);
        self.interval.max = self.interval.max.max(Ticks(length));
        self.send_beginning();
        // If bookkeeping were sent and took longer than the threshold, it would cause further bookkeeping forever.
        let own = start == self.told_at && length <= self.settings.own.0;
        self.told_at = start.wrapping_add(length);
        if own {
            self.own += 1;
        } else if self.beginning.is_some()
            || !self.gaps.send(Gap {
                start: Ticks(start),
                length: Ticks(length),
            })
        {
            self.dropped += 1;
        }
        // A CPU that goes offline moves its threads elsewhere, and every move causes a gap. The CPU number comes from
        // the vDSO: no system call.
        let cpu = jitterscope_platform::current_cpu();
        let moved = cpu != self.settings.cpu && self.moved_to.is_none();
        if moved {
            self.moved_to = Some(cpu.0);
        }
        moved
    }

    /// Sends the mark before the first gap of the measurement, as soon as there is room.
    fn send_beginning(&mut self) {
        if let Some(mark) = self.beginning
            && self.gaps.send_mark(mark)
        {
            self.beginning = None;
        }
    }

    /// Kept out of the loop's code: called once per interval.
    #[cold]
    fn close_interval(&mut self, now: u64) {
        self.interval.end = Ticks(now);
        // The drain thread empties this queue many times a second. If it is delayed for long, the interval continues
        // until there is room: it becomes longer, and nothing is lost.
        self.unsent = self.intervals.push(self.interval).is_err();
        if !self.unsent {
            self.interval = IntervalMark {
                start: Ticks(now),
                ..IntervalMark::default()
            };
        }
        let step = self.settings.interval.0.max(1);
        let behind = now.saturating_sub(self.next_interval) / step;
        self.next_interval = self.next_interval.saturating_add((behind + 1) * step);
    }
}

fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}
