//! The wake-up probe: sleeps to absolute deadlines and measures how late it woke.
//!
//! Deadlines are always one period apart. A wake-up that is later than a period has missed the deadlines after its own;
//! they are skipped and counted. Lateness is kept twice: as measured, and with the missed deadlines filled in, which
//! corrects for coordinated omission (a sleeper due at each of them would have been late by one period less each). The
//! first wake-up does not count: it has cold caches and a timer that was never armed before.

mod account;

use crate::control::ProbeControl;
use crate::gap_queue::GapQueue;
use crate::spin::{IntervalMark, SpinOutput};
use account::Account;
use jitterscope_clock::Clock;
use jitterscope_model::{CpuId, EndedEarly, Gap, Nanos, TickRate, Ticks, WakeupResult};
use jitterscope_platform::{PinError, monotonic_now, no_timer_slack, sleep_until};
use rtrb::{Producer, RingBuffer};
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub struct WakeupSettings {
    pub cpu: CpuId,
    /// Time between deadlines; at least [`WakeupSettings::SHORTEST_PERIOD`].
    pub period: Nanos,
    /// Wake-ups at least this late are stalls.
    pub threshold: Nanos,
    /// Length of a reporting interval.
    pub interval: Ticks,
    /// Rate of the measuring clock.
    pub rate: TickRate,
    /// SCHED_FIFO priority, `None` for the fair class.
    pub fifo_priority: Option<u32>,
    /// Capacity of the queue of stalls to the drain thread.
    pub queue: usize,
}

impl WakeupSettings {
    /// With a shorter period, a machine does little but sleep and wake.
    pub const SHORTEST_PERIOD: Nanos = Nanos(50_000);
    /// Longest period: the end of the measurement is only noticed at a wake-up.
    pub const LONGEST_PERIOD: Nanos = Nanos(1_000_000_000);
}

/// A wake-up probe that cannot measure.
#[derive(Debug, thiserror::Error)]
pub enum WakeupError {
    /// Pinning or the scheduling class was refused.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The period is out of range.
    #[error("a period of {0} is out of range: 50us to 1s")]
    Period(Nanos),
    /// The histograms cannot be made.
    #[error("the histograms of lateness cannot be made: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
    /// The kernel cannot sleep to deadlines.
    #[error("sleeping to a deadline failed: {0}")]
    Sleep(#[from] std::io::Error),
}

/// A wake-up probe with its memory allocated, not yet on its CPU.
pub struct WakeupProbe<C: Clock> {
    clock: C,
    settings: WakeupSettings,
    account: Account,
    gaps: GapQueue,
    intervals: Producer<IntervalMark>,
}

/// Capacity of the interval queue: a second at the shortest interval of 1 ms.
const INTERVAL_QUEUE: usize = 1024;

impl<C: Clock> WakeupProbe<C> {
    /// Allocates everything that the probe will touch. A stall is sent as the gap from the deadline to the wake-up.
    ///
    /// # Errors
    /// The period is out of range.
    pub fn new(
        clock: C,
        settings: WakeupSettings,
    ) -> Result<(WakeupProbe<C>, SpinOutput), WakeupError> {
        let periods = WakeupSettings::SHORTEST_PERIOD..=WakeupSettings::LONGEST_PERIOD;
        if !periods.contains(&settings.period) {
            return Err(WakeupError::Period(settings.period));
        }
        let (gap_sender, gaps) =
            GapQueue::new(settings.queue, settings.rate.ticks(settings.threshold));
        let (interval_sender, intervals) = RingBuffer::new(INTERVAL_QUEUE);
        let account = Account::new(settings.period)?;
        let output = SpinOutput {
            cpu: settings.cpu,
            gaps,
            intervals,
        };
        Ok((
            WakeupProbe {
                clock,
                settings,
                account,
                gaps: gap_sender,
                intervals: interval_sender,
            },
            output,
        ))
    }

    /// Runs on the calling thread, which it pins: sleeps and wakes until [`ProbeControl::measure`]'s start without
    /// counting, and then counts until its end or until [`ProbeControl::stop`].
    ///
    /// # Errors
    /// The thread cannot be put on its CPU or in its scheduling class, or cannot sleep to a deadline.
    pub fn run(mut self, control: &Arc<ProbeControl>) -> Result<WakeupResult, WakeupError> {
        let settings = self.settings;
        jitterscope_platform::pin_current_thread(settings.cpu)?;
        if let Some(priority) = settings.fifo_priority {
            jitterscope_platform::set_fifo(priority)?;
        }
        // A kernel without timer slack has none to turn off.
        let _ = no_timer_slack();
        self.account.prefault();
        control.report_ready();
        let mut deadline = monotonic_now() + settings.period;
        let mut measuring: Option<Measuring> = None;
        let mut result = WakeupResult {
            cpu: settings.cpu,
            tid: jitterscope_platform::current_tid(),
            ..WakeupResult::default()
        };
        loop {
            sleep_until(deadline)?;
            let woke = monotonic_now();
            let now = Ticks(self.clock.now());
            let late = woke.saturating_sub(deadline);
            let gap_length = settings.rate.ticks(late);
            let gap = Gap {
                start: now - gap_length,
                length: gap_length,
            };
            if let Some(measuring) = &mut measuring {
                let missed = self.account.wake_up(late);
                result.missed += missed;
                if late >= settings.threshold && late > Nanos::ZERO {
                    result.stalls += 1;
                    measuring.interval.count += 1;
                    measuring.interval.sum = measuring.interval.sum + gap.length;
                    measuring.interval.max = measuring.interval.max.max(gap.length);
                    if !self.gaps.send(gap) {
                        result.dropped_records += 1;
                    }
                }
                let elsewhere = jitterscope_platform::current_cpu();
                if elsewhere != settings.cpu {
                    let (cpu, to_cpu) = (settings.cpu, elsewhere);
                    result.ended_early = Some(
                        EndedEarly::Moved {
                            cpu,
                            to_cpu,
                            because: None,
                        }
                        .into(),
                    );
                }
                let ended =
                    now >= control.end() || control.stopped() || result.ended_early.is_some();
                if ended || now >= measuring.next_interval {
                    measuring.close(now, settings.interval, &mut self.intervals);
                }
                if ended {
                    // The measurement is over, so there is time to wait for room.
                    while measuring.unsent && !self.intervals.is_abandoned() {
                        std::thread::yield_now();
                        measuring.unsent = self.intervals.push(measuring.interval).is_err();
                    }
                    result.end = now;
                    break;
                }
            } else if control.stopped() {
                result.start = now;
                result.end = now;
                break;
            } else if now >= control.start() {
                // This wake-up is the first of the measurement and does not count.
                result.start = now;
                // The queue is empty here: nothing was sent before.
                let _ = self.gaps.send_mark(Gap::measurement_begins(now));
                measuring = Some(Measuring::from(now, settings.interval));
            }
            deadline += settings.period;
            // The deadlines that have passed meanwhile were counted as missed.
            if deadline <= woke {
                let behind = woke.saturating_sub(deadline).0 / settings.period.0 + 1;
                deadline = Nanos(deadline.0 + behind * settings.period.0);
            }
        }
        self.account.fill(&mut result);
        Ok(result)
    }
}

struct Measuring {
    interval: IntervalMark,
    next_interval: Ticks,
    /// Whether the interval is overdue because its queue is full.
    unsent: bool,
}

impl Measuring {
    fn from(now: Ticks, length: Ticks) -> Measuring {
        let interval = IntervalMark {
            start: now,
            ..IntervalMark::default()
        };
        Measuring {
            interval,
            next_interval: now + length.max(Ticks(1)),
            unsent: false,
        }
    }

    fn close(&mut self, now: Ticks, length: Ticks, queue: &mut Producer<IntervalMark>) {
        self.interval.end = now;
        // A full queue means that the drain thread was delayed: the interval continues until there is room, and nothing
        // is lost.
        self.unsent = queue.push(self.interval).is_err();
        if !self.unsent {
            self.interval = IntervalMark {
                start: now,
                ..IntervalMark::default()
            };
        }
        let step = length.0.max(1);
        let behind = now.since(self.next_interval).0 / step;
        let next = Ticks(self.next_interval.0.saturating_add((behind + 1) * step));
        self.next_interval = next;
    }
}
