//! What is remembered of one CPU: who has it, and its records as long as somebody waits for it.

use jitterscope_model::{EventKind, KernelEvent, Ticks};
use std::collections::{HashMap, VecDeque};

/// Records kept while threads wait: beyond it the oldest go, and waits that began before them are told as
/// not seen in that part.
const MOST_RECORDS: usize = 1 << 15;
/// Interrupts nested deeper than any kernel nests them mean that exits were lost.
const DEEPEST: u32 = 16;
/// Workers with an item under way; beyond it all are forgotten, which costs names, not time.
const MOST_WORKERS: usize = 4096;

/// Where in a CPU's records a wait began, and what stood at that moment.
#[derive(Clone, Debug)]
pub(super) struct Bookmark {
    /// Position of the first record after it.
    position: u64,
    /// The switch that began the turn under way, its work item, and the entries of open interrupts.
    standing: Vec<KernelEvent>,
}

/// One CPU.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    /// The switch that began the turn under way.
    turn: Option<KernelEvent>,
    /// The work item under way in it.
    work: Option<KernelEvent>,
    /// Items of workers that sleep in the middle of one.
    sleeping_works: HashMap<i32, KernelEvent>,
    /// Records since the oldest open bookmark or interrupt.
    records: VecDeque<KernelEvent>,
    /// Position of the first of them.
    base: u64,
    /// How many waits need the records.
    waits: usize,
    /// Open interrupts, nested.
    depth: u32,
    /// When the outermost of them began.
    pub(super) interrupted_since: Option<Ticks>,
    /// The position of its entry.
    interrupt_position: u64,
    /// Switches that must have been and are not recorded: one leaves the CPU that was never put on it.
    pub(super) unrecorded: u64,
}

impl Cpu {
    /// Takes in a record of this CPU. True when an interrupt that began at depth 0 has ended with it.
    pub(super) fn record(&mut self, event: &KernelEvent) -> bool {
        let mut ended = false;
        match &event.kind {
            EventKind::SchedSwitch { prev, next, .. } => {
                // Whatever interrupt seems open lost its exit: none is while the scheduler runs.
                self.depth = 0;
                self.interrupted_since = None;
                match self.work.take() {
                    Some(work) if self.sleeping_works.len() < MOST_WORKERS => {
                        self.sleeping_works.insert(prev.tid, work);
                    }
                    Some(_) => self.sleeping_works.clear(),
                    None => {}
                }
                self.work = self.sleeping_works.remove(&next.tid);
                let expected = self.turn.as_ref().and_then(|turn| match &turn.kind {
                    EventKind::SchedSwitch { next, .. } => Some(next.tid),
                    _ => None,
                });
                self.unrecorded += u64::from(expected.is_some_and(|tid| tid != prev.tid));
                self.turn = Some(event.clone());
            }
            EventKind::WorkStart { .. } => self.work = Some(event.clone()),
            EventKind::WorkEnd { .. } => self.work = None,
            EventKind::IrqEntry { .. } | EventKind::VectorEntry { .. } | EventKind::SoftirqEntry { .. } => {
                if self.depth == 0 || self.depth >= DEEPEST {
                    self.depth = 0;
                    self.interrupted_since = Some(event.time);
                    self.interrupt_position = self.next_position();
                }
                self.depth += 1;
            }
            EventKind::IrqExit { .. } | EventKind::VectorExit { .. } | EventKind::SoftirqExit { .. } => {
                ended = self.depth == 1;
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {}
        }
        self.keep(event);
        if let (EventKind::SchedSwitch { .. }, Some(work)) = (&event.kind, self.work.clone()) {
            // The turn goes on with an item that was begun in an earlier one; its time says when.
            self.keep(&work);
        }
        ended
    }

    /// A thread comes from another CPU, where it may have ended what it had begun here.
    pub(super) fn arrived(&mut self, tid: i32) {
        self.sleeping_works.remove(&tid);
    }

    /// The interrupt that [`Cpu::record`] said has ended is dealt with.
    pub(super) fn interrupt_done(&mut self) {
        self.interrupted_since = None;
        self.tidy();
    }

    fn next_position(&self) -> u64 {
        self.base + self.records.len() as u64
    }

    fn keep(&mut self, event: &KernelEvent) {
        if self.waits == 0 && self.interrupted_since.is_none() {
            return;
        }
        if self.records.len() >= MOST_RECORDS {
            let gone = self.records.pop_front();
            self.base += 1;
            // The item that the turn went on with says nothing without the turn.
            if gone.zip(self.records.front()).is_some_and(|(gone, next)| next.time < gone.time) {
                self.records.pop_front();
                self.base += 1;
            }
        }
        self.records.push_back(event.clone());
    }

    /// Forgets records that nobody needs.
    fn tidy(&mut self) {
        if self.waits == 0 {
            let needed = if self.interrupted_since.is_some() { self.interrupt_position } else { u64::MAX };
            while self.base < needed && self.records.pop_front().is_some() {
                self.base += 1;
            }
        }
    }

    /// Somebody begins to wait for this CPU.
    pub(super) fn open(&mut self) -> Bookmark {
        self.tidy();
        self.waits += 1;
        let mut standing: Vec<KernelEvent> = self.turn.iter().chain(&self.work).cloned().collect();
        if self.interrupted_since.is_some() {
            let from = self.interrupt_position.saturating_sub(self.base) as usize;
            standing.extend(self.records.iter().skip(from).cloned());
        }
        Bookmark { position: self.next_position(), standing }
    }

    /// The same just before the switch that begins the wait is recorded, which says all that is needed.
    pub(super) fn open_before_switch(&mut self) -> Bookmark {
        let mark = self.open();
        Bookmark { standing: Vec::new(), ..mark }
    }

    /// The records since a bookmark, with what stood then. They are in order of time, but for the
    /// beginnings of work items that a turn goes on with, which follow its switch. And since when there
    /// are records at all, should the oldest have been dropped.
    pub(super) fn since(&self, mark: &Bookmark) -> (Vec<KernelEvent>, Option<Ticks>) {
        let lost = mark.position < self.base;
        let skip = mark.position.saturating_sub(self.base) as usize;
        let kept = self.records.iter().skip(skip).cloned();
        if lost {
            let seen_from = self.records.front().map_or(Ticks(u64::MAX), |event| event.time);
            return (kept.collect(), Some(seen_from));
        }
        (mark.standing.iter().cloned().chain(kept).collect(), None)
    }

    /// The records of the interrupt that has just ended.
    pub(super) fn interrupt(&self) -> Vec<KernelEvent> {
        let skip = self.interrupt_position.saturating_sub(self.base) as usize;
        self.records.iter().skip(skip).cloned().collect()
    }

    /// The wait of a bookmark is over.
    pub(super) fn close(&mut self, _mark: Bookmark) {
        self.waits = self.waits.saturating_sub(1);
        self.tidy();
    }

    /// Records were lost: nothing of what stood is known any more.
    pub(super) fn lost(&mut self) {
        self.turn = None;
        self.work = None;
        self.sleeping_works.clear();
        self.depth = 0;
        self.interrupted_since = None;
        // One more, so that no bookmark of before seems to have everything since.
        self.base += self.records.len() as u64 + 1;
        self.records.clear();
    }
}
