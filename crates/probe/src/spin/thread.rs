//! The loop itself, and what it does when something happens.

use super::counts::{Counts, STEPS};
use super::{IntervalMark, SpinSettings};
use crate::control::Control;
use jitterscope_model::{Gap, ProbeResult, Ticks};
use jitterscope_platform::clock::Clock;
use rtrb::Producer;

/// What the loop does at a mark.
enum AtMark {
    /// Go on until this time.
    Until(u64),
    /// Leave the loop.
    End,
}

/// Everything that the loop touches.
pub(super) struct Spinner {
    settings: SpinSettings,
    counts: Counts,
    gaps: Producer<Gap>,
    intervals: Producer<IntervalMark>,
    interval: IntervalMark,
    next_interval: u64,
    /// Whether the interval should have ended and found no room.
    unsent: bool,
    dropped: u64,
    start: u64,
    end: u64,
    planned_end: u64,
    /// The mark between warm-up and measurement, until the queue has taken it.
    beginning: Option<Gap>,
    /// Set when a stall ended on another CPU than it began on.
    moved_to: Option<u32>,
}

impl Spinner {
    pub(super) fn new(
        settings: SpinSettings,
        counts: Counts,
        gaps: Producer<Gap>,
        intervals: Producer<IntervalMark>,
    ) -> Spinner {
        Spinner {
            settings,
            counts,
            gaps,
            intervals,
            interval: IntervalMark::default(),
            next_interval: u64::MAX,
            unsent: false,
            dropped: 0,
            start: 0,
            end: 0,
            planned_end: 0,
            beginning: None,
            moved_to: None,
        }
    }

    /// Faults in all memory. The queues' slots are written through the unused part of their buffers.
    pub(super) fn prefault(&mut self) {
        self.counts.prefault();
        fault_in(&mut self.gaps);
        fault_in(&mut self.intervals);
    }

    /// Spins as in the measurement, gaps sent and all, until its start; nothing of it counts.
    pub(super) fn warm_up<C: Clock>(&mut self, clock: C, control: &Control) {
        let poll = self.settings.poll.0.max(1);
        let first = clock.now().0;
        self.spin(clock, first, first + poll, |_, now| {
            let start = control.start().0;
            if now >= start || control.stopped() {
                AtMark::End
            } else {
                AtMark::Until((now + poll).min(start))
            }
        });
    }

    /// Measures until the planned end, until it is stopped, or until the CPU is taken away.
    pub(super) fn measure<C: Clock>(&mut self, clock: C, control: &Control) {
        self.counts.reset();
        self.dropped = 0;
        self.planned_end = control.end().0;
        let (poll, interval) = (self.settings.poll.0.max(1), self.settings.interval.0.max(1));
        let planned_end = self.planned_end;
        let first = clock.now().0;
        self.start = first;
        self.beginning = Some(Gap::measurement_begins(Ticks(first)));
        self.send_beginning();
        self.next_interval = first.saturating_add(interval);
        self.interval = IntervalMark { start: Ticks(first), ..IntervalMark::default() };
        let first_mark = (first + poll).min(self.next_interval).min(planned_end);
        self.end = self.spin(clock, first, first_mark, |spinner, now| {
            let ended = now >= planned_end || spinner.moved_to.is_some() || control.stopped();
            if ended || now >= spinner.next_interval {
                spinner.close_interval(now);
            }
            if ended {
                AtMark::End
            } else {
                AtMark::Until((now + poll).min(spinner.next_interval).min(planned_end))
            }
        });
        // It is measured no more: now there is time to wait for room.
        while self.unsent && !self.intervals.is_abandoned() {
            std::thread::yield_now();
            self.unsent = self.intervals.push(self.interval).is_err();
        }
    }

    /// The loop: reads the clock from `first` on and accounts for every delta; at the first read past
    /// each mark asks `at_mark` what to do. Returns the last read.
    #[inline(always)]
    fn spin<C: Clock>(
        &mut self,
        clock: C,
        first: u64,
        first_mark: u64,
        mut at_mark: impl FnMut(&mut Spinner, u64) -> AtMark,
    ) -> u64 {
        let mut previous = first;
        let mut mark = first_mark;
        loop {
            // A constant bound: the compiler unrolls it, and `step` becomes a constant offset.
            for step in 0..STEPS {
                let now = clock.now().0;
                let delta = now.wrapping_sub(previous);
                if !self.counts.count_short(step, delta) {
                    self.stalled(previous, delta, &mut mark);
                }
                previous = now;
            }
            if previous >= mark {
                match at_mark(self, previous) {
                    AtMark::Until(next) => mark = next,
                    AtMark::End => return previous,
                }
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn stalled(&mut self, start: u64, length: u64, mark: &mut u64) {
        self.counts.count_stall(length);
        self.interval.count += 1;
        self.interval.sum = self.interval.sum + Ticks(length);
        self.interval.max = self.interval.max.max(Ticks(length));
        self.send_beginning();
        let gap = Gap { start: Ticks(start), length: Ticks(length) };
        if self.beginning.is_some() || self.gaps.push(gap).is_err() {
            self.dropped += 1;
        }
        // A CPU that goes offline pushes its threads elsewhere, and no move happens without a gap. The
        // number comes from the vDSO: no system call.
        let cpu = jitterscope_platform::current_cpu();
        if cpu != self.settings.cpu && self.moved_to.is_none() {
            self.moved_to = Some(cpu.0);
            *mark = start;
        }
    }

    /// Puts the mark before the first gap of the measurement, as soon as there is room.
    fn send_beginning(&mut self) {
        if let Some(mark) = self.beginning
            && self.gaps.push(mark).is_ok()
        {
            self.beginning = None;
        }
    }

    /// Cold like [`Spinner::stalled`]: called once an interval.
    #[cold]
    fn close_interval(&mut self, now: u64) {
        self.interval.end = Ticks(now);
        // The drain thread empties this queue many times a second. Should it be held up for long, the
        // interval goes on until there is room: it is longer then, and nothing of it is lost.
        self.unsent = self.intervals.push(self.interval).is_err();
        if !self.unsent {
            self.interval = IntervalMark { start: Ticks(now), ..IntervalMark::default() };
        }
        let step = self.settings.interval.0.max(1);
        let behind = now.saturating_sub(self.next_interval) / step;
        self.next_interval = self.next_interval.saturating_add((behind + 1) * step);
    }

    /// The account of the measurement.
    pub(super) fn result(&self) -> ProbeResult {
        let below = self.counts.below();
        let short: u128 = below.iter().map(|(delta, count)| u128::from(*delta) * u128::from(*count)).sum();
        let above = self.counts.above();
        let shortest_stall = above.first().map_or(0, |row| row.0);
        ProbeResult {
            cpu: self.settings.cpu,
            tid: jitterscope_platform::current_tid(),
            start: Ticks(self.start),
            end: Ticks(self.end),
            planned_end: Ticks(self.planned_end),
            samples: below.iter().map(|row| row.1).sum::<u64>() + self.counts.stalls,
            sum_ticks: narrow(short + self.counts.stalled),
            sum_squares: self.counts.sum_squares(&below),
            min_ticks: below.first().map_or(shortest_stall, |row| u64::from(row.0)),
            max_ticks: self.counts.longest().max(below.last().map_or(0, |row| u64::from(row.0))),
            threshold_ticks: self.settings.threshold.0,
            below,
            above,
            stalls: self.counts.stalls,
            stalled_ticks: narrow(self.counts.stalled),
            dropped_records: self.dropped,
            page_faults: 0,
            involuntary_switches: 0,
            ended_early: self.moved_to.map(|cpu| {
                format!(
                    "CPU {} was taken away (offline?): the probe was moved to CPU {cpu}",
                    self.settings.cpu
                )
            }),
        }
    }
}

fn narrow(wide: u128) -> u64 {
    u64::try_from(wide).unwrap_or(u64::MAX)
}

/// Writes to every slot of an empty queue without publishing any.
fn fault_in<T: Copy + Default>(queue: &mut Producer<T>) {
    let free = queue.slots();
    if let Ok(chunk) = queue.write_chunk(free) {
        // `write_chunk` fills the slots with the default value; dropping it uncommitted leaves the
        // queue empty.
        drop(chunk);
    }
}
