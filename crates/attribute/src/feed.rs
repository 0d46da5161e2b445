//! What one measured CPU still has to be told, in order of time.

use crate::occupancy::{Frame, Machine, NameTable, Record};
use jitterscope_model::{KernelEvent, TickRate, Ticks};
use std::collections::VecDeque;

/// Things told beside the records that wait for their moment.
const MOST_ASIDE: usize = 4096;

/// What is told beside the CPU's own records.
#[derive(Clone, Copy, Debug)]
enum Aside {
    /// A thread comes from another CPU.
    Arrived(i32),
    /// Records were lost.
    Lost(Ticks, Ticks),
    /// A thread had something under way when it left.
    Parked(i32, Frame),
}

/// A CPU's machine, and what it was not yet given: it is fed no further than what is asked of it, so that an
/// answer depends on nothing that came later.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) machine: Machine,
    pending: VecDeque<Record>,
    aside: VecDeque<(Ticks, Aside)>,
}

impl Feed {
    pub(crate) fn new(rate: TickRate) -> Feed {
        Feed { machine: Machine::new(rate), pending: VecDeque::new(), aside: VecDeque::new() }
    }

    /// A record of this CPU.
    pub(crate) fn event(&mut self, event: &KernelEvent, names: &mut NameTable) {
        self.pending.push_back(Record::new(event, names));
    }

    /// A thread came from another CPU.
    pub(crate) fn arrived(&mut self, tid: i32, at: Ticks) {
        self.tell(at, Aside::Arrived(tid));
    }

    /// Records between two times were lost.
    pub(crate) fn lost(&mut self, from: Ticks, to: Ticks) {
        // What was recorded at `from` was not.
        self.tell(from + Ticks(1), Aside::Lost(from, to));
    }

    /// A thread had something under way when it left.
    pub(crate) fn parked(&mut self, tid: i32, at: Ticks, frame: Frame) {
        self.tell(at, Aside::Parked(tid, frame));
    }

    fn tell(&mut self, at: Ticks, what: Aside) {
        if self.aside.len() >= MOST_ASIDE {
            self.aside.pop_front();
        }
        // Other CPUs' records arrive buffer by buffer.
        let place = self.aside.iter().rposition(|(other, _)| *other <= at).map_or(0, |before| before + 1);
        self.aside.insert(place, (at, what));
    }

    /// Whether a thread came from another CPU after `from` and not after `until`, as far as the machine was
    /// not told yet.
    pub(crate) fn arrives(&self, tid: i32, from: Ticks, until: Ticks) -> bool {
        self.aside.iter().any(|(at, what)| {
            matches!(what, Aside::Arrived(other) if *other == tid) && from < *at && *at <= until
        })
    }

    /// Gives the machine what lies before `until`, and what lies at it if it is `inclusive`. `seen` is told of
    /// each record.
    pub(crate) fn advance(&mut self, until: Ticks, inclusive: bool, mut seen: impl FnMut(Ticks)) {
        let due = |at: Ticks| at < until || (inclusive && at == until);
        while let Some(record) = self.pending.front().filter(|record| due(record.time)).copied() {
            self.pending.pop_front();
            self.tell_while(|at| at <= record.time);
            seen(record.time);
            self.machine.record(&record);
        }
        self.tell_while(due);
    }

    fn tell_while(&mut self, due: impl Fn(Ticks) -> bool) {
        while let Some((at, what)) = self.aside.front().filter(|(at, _)| due(*at)).copied() {
            self.aside.pop_front();
            match what {
                Aside::Arrived(tid) => self.machine.arrived(tid, at),
                Aside::Lost(from, to) => self.machine.lost(from, to),
                Aside::Parked(tid, frame) => self.machine.park(tid, at, frame),
            }
        }
    }
}
