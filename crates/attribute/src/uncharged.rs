//! Time of a thread's turn that the scheduler did not charge the thread for: on a virtual machine, the host had the CPU.
//!
//! A charge (`sched_stat_runtime`) says how long the thread has run since the charge before it, or since it got the CPU.
//! The kernel leaves out the time that the host reports as stolen. Where in between the host had the CPU is unknown: the
//! end of that time stands for it. Some kernels leave out interrupts, too, so these are taken off.

use jitterscope_model::{EventKind, KernelEvent, Nanos, TickRate, Ticks};
use std::collections::VecDeque;

/// Less is the inaccuracy of the kernel's clocks.
const LEAST: Nanos = Nanos(40_000);
/// Maximum of stretches per CPU.
const MOST: usize = 1024;
/// Priorities from here on are fair: those threads are charged whenever they leave.
const FIRST_FAIR: i32 = 100;

/// The uncharged time of one CPU's turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uncharged {
    /// Whether charges are recorded.
    charges: bool,
    /// Whose turn it is, once a switch showed it.
    tid: Option<i32>,
    /// Its own time since its last charge: what is complete, and since when it continues, or where an interrupt ended
    /// it.
    own: Ticks,
    resumed: Ticks,
    interrupted: Option<Ticks>,
    /// Beginnings and ends, in order.
    found: VecDeque<(Ticks, Ticks)>,
}

impl Uncharged {
    /// Takes a record. `interrupted`: whether an interrupt is in progress after it.
    pub(crate) fn note(&mut self, event: &KernelEvent, interrupted: bool, rate: TickRate) {
        let now = event.time;
        match &event.kind {
            EventKind::SchedSwitch { prev, next, .. } => {
                if self.charges && self.tid == Some(prev.tid) && prev.prio >= FIRST_FAIR {
                    self.charge(now, Ticks(0), rate);
                }
                (self.tid, self.interrupted) = (Some(next.tid), None);
                (self.own, self.resumed) = (Ticks(0), now);
            }
            EventKind::StatRuntime { tid, runtime_ns } if *tid == event.tid => {
                self.charges = true;
                if self.tid == Some(*tid) {
                    self.charge(now, rate.ticks(Nanos(*runtime_ns)), rate);
                }
            }
            _ => match (self.interrupted, interrupted) {
                (None, true) => {
                    self.own = self.own + now.since(self.resumed);
                    self.interrupted = Some(now);
                }
                (Some(_), false) => (self.interrupted, self.resumed) = (None, now),
                _ => {}
            },
        }
    }

    /// The thread is charged for `ran` of its own time.
    fn charge(&mut self, now: Ticks, ran: Ticks, rate: TickRate) {
        let end = self.interrupted.unwrap_or(now);
        let going_on = match self.interrupted {
            Some(_) => Ticks(0),
            None => now.since(self.resumed),
        };
        let beyond = (self.own + going_on) - ran;
        if beyond >= rate.ticks(LEAST) {
            if self.found.len() >= MOST {
                self.found.pop_front();
            }
            self.found.push_back((end - beyond, end));
        }
        (self.own, self.resumed) = (Ticks(0), now);
    }

    /// Records were lost: the next switch shows whose turn it is.
    pub(crate) fn lost(&mut self) {
        (self.tid, self.interrupted) = (None, None);
    }

    /// The uncharged time that touches a span.
    pub(crate) fn within(&self, from: Ticks, to: Ticks) -> impl Iterator<Item = (Ticks, Ticks)> {
        let first = self.found.partition_point(|(_, end)| *end <= from);
        let later = self.found.range(first..);
        later.copied().take_while(move |(start, _)| *start < to)
    }
}
