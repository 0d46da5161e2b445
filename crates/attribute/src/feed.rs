//! The input queue of one measured CPU's machine, in order of time.

use crate::occupancy::{CommId, Frame, Machine, NameTable, Record};
use jitterscope_model::{KernelEvent, TickRate, Ticks};
use std::collections::VecDeque;

/// Maximum of queued facts other than records.
const MOST_ASIDE: usize = 4096;

/// A fact for the machine, other than the CPU's own records.
#[derive(Clone, Copy, Debug)]
enum Aside {
    /// A thread comes from another CPU.
    Arrived(i32),
    /// A thread is renamed: the old name, and the new one.
    Renamed(i32, CommId, CommId),
    Lost(Ticks, Ticks),
    /// A thread left with this frame open.
    Parked(i32, Frame),
}

/// The thread that was in its own code before a record, and after it; `None` if the kernel or an unknown thread had the
/// CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turns {
    pub(crate) before: Option<i32>,
    pub(crate) after: Option<i32>,
}

/// A CPU's machine and its input queue. The machine is fed no further than a question requires, so that an answer does
/// not depend on later records.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) machine: Machine,
    pending: VecDeque<Record>,
    aside: VecDeque<(Ticks, Aside)>,
}

impl Feed {
    pub(crate) fn new(rate: TickRate) -> Feed {
        Feed {
            machine: Machine::new(rate),
            pending: VecDeque::new(),
            aside: VecDeque::new(),
        }
    }

    /// A record of this CPU.
    pub(crate) fn event(&mut self, event: &KernelEvent, names: &mut NameTable) {
        self.pending.push_back(Record::new(event, names));
    }

    /// A thread comes from another CPU.
    pub(crate) fn arrived(&mut self, tid: i32, at: Ticks) {
        self.tell(at, Aside::Arrived(tid));
    }

    /// A thread is renamed. If too many are, their turns show both names.
    pub(crate) fn renamed(&mut self, tid: i32, (old, comm): (CommId, CommId), at: Ticks) {
        if self.aside.len() < MOST_ASIDE / 2 {
            self.tell(at, Aside::Renamed(tid, old, comm));
        }
    }

    /// Records between two times were lost.
    pub(crate) fn lost(&mut self, from: Ticks, to: Ticks) {
        // The record at `from` itself was not lost.
        self.tell(from + Ticks(1), Aside::Lost(from, to));
    }

    /// Discards the input from this time on, because it is not trusted. The machine has not been fed beyond it.
    pub(crate) fn forget_since(&mut self, from: Ticks) {
        let kept = self.pending.partition_point(|record| record.time < from);
        self.pending.truncate(kept);
        self.aside.retain(|(at, _)| *at < from);
    }

    /// A thread left with this frame open.
    pub(crate) fn parked(&mut self, tid: i32, at: Ticks, frame: Frame) {
        self.tell(at, Aside::Parked(tid, frame));
    }

    fn tell(&mut self, at: Ticks, what: Aside) {
        if self.aside.len() >= MOST_ASIDE {
            self.aside.pop_front();
        }
        // Records of other CPUs arrive buffer by buffer.
        let place = self
            .aside
            .iter()
            .rposition(|(other, _)| *other <= at)
            .map_or(0, |before| before + 1);
        self.aside.insert(place, (at, what));
    }

    /// Whether the queue has a thread's arrival from another CPU after `from` and not after `until`.
    pub(crate) fn arrives(&self, tid: i32, from: Ticks, until: Ticks) -> bool {
        self.aside.iter().any(|(at, what)| {
            matches!(what, Aside::Arrived(other) if *other == tid) && from < *at && *at <= until
        })
    }

    /// Feeds the machine all input before `until`, and input at `until` if `inclusive`. Calls `seen` for each record,
    /// with the threads that were in their own code before and after it.
    pub(crate) fn advance(
        &mut self,
        until: Ticks,
        inclusive: bool,
        mut seen: impl FnMut(Ticks, Turns),
    ) {
        let due = |at: Ticks| at < until || (inclusive && at == until);
        while let Some(record) = self
            .pending
            .front()
            .filter(|record| due(record.time))
            .copied()
        {
            self.pending.pop_front();
            self.tell_while(|at| at <= record.time);
            let before = self.machine.in_its_own_code();
            self.machine.record(&record);
            seen(
                record.time,
                Turns {
                    before,
                    after: self.machine.in_its_own_code(),
                },
            );
        }
        self.tell_while(due);
    }

    fn tell_while(&mut self, due: impl Fn(Ticks) -> bool) {
        while let Some((at, what)) = self.aside.front().filter(|(at, _)| due(*at)).copied() {
            self.aside.pop_front();
            match what {
                Aside::Arrived(tid) => self.machine.arrived(tid, at),
                Aside::Renamed(tid, old, comm) => self.machine.renamed(tid, (old, comm), at),
                Aside::Lost(from, to) => self.machine.lost(from, to),
                Aside::Parked(tid, frame) => self.machine.park(tid, at, frame),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, CpuId, EventKind, ExecutionContext, TaskRef};

    fn switch(time: u64, prev: i32, next: i32) -> KernelEvent {
        let task = |tid| TaskRef {
            tid,
            comm: Comm::new("x"),
            prio: 120,
        };
        let kind = EventKind::SchedSwitch {
            prev: task(prev),
            prev_state: 1,
            next: task(next),
        };
        KernelEvent {
            time: Ticks(time),
            cpu: CpuId(1),
            tid: prev,
            context: ExecutionContext::Thread,
            kind,
        }
    }

    fn feed() -> Feed {
        let (mut feed, mut names) = (Feed::new(TickRate::NANOSECONDS), NameTable::default());
        for event in [switch(100, 1, 2), switch(200, 2, 3), switch(300, 3, 4)] {
            feed.event(&event, &mut names);
        }
        feed
    }

    #[test]
    fn the_machine_gets_no_more_records_than_requested() {
        let mut feed = feed();
        let mut seen = Vec::new();
        let mut turns = Vec::new();
        for (until, inclusive) in [
            (100, false),
            (100, true),
            (200, false),
            (250, false),
            (300, true),
        ] {
            feed.advance(Ticks(until), inclusive, |at, _| seen.push(at.0));
            turns.push((seen.len(), feed.machine.turn().tid));
        }
        assert_eq!(turns, [(0, -1), (1, 2), (1, 2), (2, 3), (3, 4)]);
        assert_eq!(seen, [100, 200, 300]);
    }

    #[test]
    fn an_arrival_counts_between_two_moments_until_reported() {
        let mut feed = feed();
        feed.arrived(7, Ticks(150));
        let arrives = |feed: &Feed, tid, from, until| feed.arrives(tid, Ticks(from), Ticks(until));
        assert!(arrives(&feed, 7, 149, 150) && arrives(&feed, 7, 100, 200));
        assert!(
            !arrives(&feed, 7, 150, 200)
                && !arrives(&feed, 7, 100, 149)
                && !arrives(&feed, 8, 100, 200)
        );
        // Facts of a moment are fed with the records of that moment, or after it.
        feed.advance(Ticks(150), false, |_, _| {});
        assert!(arrives(&feed, 7, 100, 200));
        feed.advance(Ticks(151), false, |_, _| {});
        assert!(!arrives(&feed, 7, 100, 200));
    }

    #[test]
    fn a_loss_hides_what_came_after_its_beginning() {
        let mut feed = feed();
        feed.lost(Ticks(200), Ticks(250));
        // The record at its beginning was not lost, so the machine knows whose turn began.
        feed.advance(Ticks(200), true, |_, _| {});
        assert_eq!(feed.machine.turn().tid, 3);
        feed.advance(Ticks(201), true, |_, _| {});
        assert!(!feed.machine.turn().is_turn());
        feed.advance(Ticks(300), true, |_, _| {});
        assert_eq!(feed.machine.turn().tid, 4);
    }

    #[test]
    fn hints_between_records_are_in_order_and_bounded() {
        let mut feed = feed();
        for n in (0..MOST_ASIDE as u64).rev() {
            feed.arrived(i32::try_from(n).unwrap(), Ticks(1000 + n));
        }
        assert!(feed.aside.iter().is_sorted_by_key(|(at, _)| *at));
        assert_eq!(feed.aside.len(), MOST_ASIDE);
        // Of equal times the first fact stays first.
        feed.arrived(-5, Ticks(1500));
        assert_eq!(
            (feed.aside.len(), feed.aside[0].0),
            (MOST_ASIDE, Ticks(1001))
        );
        let place = feed
            .aside
            .iter()
            .position(|(_, what)| matches!(what, Aside::Arrived(-5)))
            .unwrap();
        assert_eq!(
            (feed.aside[place - 1].0, feed.aside[place + 1].0),
            (Ticks(1500), Ticks(1501))
        );
    }
}
