//! The state machine of a CPU: takes records, always knows the stack, and keeps slices while a mark is open.

use super::frame::{Class, Frame, Outcome};
use super::names::CommId;
use super::parked::{Left, Parked};
use super::plan::{Beside, Effect};
use super::record::{Record, RecordKind};
use super::ring::{Mark, Ring};
use super::slice::Slice;
use super::window::Window;
use jitterscope_model::{ExecutionContext, Nanos, TickRate, Ticks};

/// `EXIT_DEAD` and `EXIT_ZOMBIE` of a switch's state.
const ENDED: u16 = 0x30;
/// Marks a thread that was preempted within the kernel.
const PREEMPTED: u16 = 0x100;
/// The time from the end of an interrupt to the switch or softirq that it causes is shorter.
const AFTER_INTERRUPT: Nanos = Nanos(50_000);
/// A thread that is being frozen is interrupted or woken, and sleeps within this time.
const AT_ONCE: Nanos = Nanos(100_000);
/// Two frames of the ring's limit are reserved for things that no record shows.
const DEEPEST: usize = Ring::DEEPEST - 2;

/// A turn without a recorded switch, and the time before it without a known thread: the scheduler's next charge may
/// show where one ends and the other begins.
#[derive(Clone, Copy, Debug)]
struct Inferred {
    /// The beginning of the time without a known thread.
    from: Ticks,
    /// Number of its slice; the next one is the turn's.
    slice: Option<u64>,
}

/// One CPU. All input comes in order of time: its records, arrivals of threads from other CPUs, losses, and proofs.
/// Each record costs the same, and needs no memory unless a mark is open.
#[derive(Debug)]
pub(crate) struct Machine {
    rate: TickRate,
    ring: Ring,
    parked: Parked,
    /// The beginning of the current slice.
    since: Ticks,
    /// The last record up to `since`.
    began: Option<Beside>,
    /// Time of the last input.
    now: Ticks,
    /// When the thread whose turn it is was last known to have the CPU.
    known: Ticks,
    /// When an interrupt or a softirq last ended; `None` before the first one.
    interrupted: Option<Ticks>,
    /// When an interrupt that a timer may have caused, or a softirq right after it, last ended.
    timed: Option<Ticks>,
    inferred: Option<Inferred>,
    switches: u64,
    unrecorded: u64,
}

impl Machine {
    pub(crate) fn new(rate: TickRate) -> Machine {
        Machine {
            rate,
            ring: Ring::new(Frame::nobody(Class::NotSeen, Ticks(0))),
            parked: Parked::default(),
            since: Ticks(0),
            began: None,
            now: Ticks(0),
            known: Ticks(0),
            interrupted: None,
            timed: None,
            inferred: None,
            switches: 0,
            unrecorded: 0,
        }
    }

    /// Sets the limit in bytes beyond which slices are folded.
    #[must_use]
    pub(crate) fn with_cap(mut self, bytes: usize) -> Machine {
        self.ring.set_cap(bytes);
        self
    }

    /// Whether a thread has the CPU without a recorded switch, and without a charge that shows since when.
    pub(crate) fn was_put_on_unseen(&self, tid: i32) -> bool {
        self.inferred.is_some() && self.ring.root().tid == tid
    }

    /// The number of recorded switches.
    pub(crate) fn switches(&self) -> u64 {
        self.switches
    }

    /// The number of switches that must have happened without a record.
    pub(crate) fn unrecorded_switches(&self) -> u64 {
        self.unrecorded
    }

    /// Bytes of the slices and frames that are kept now.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.ring.bytes()
    }

    /// The root frame, which says whose turn it is.
    pub(crate) fn turn(&self) -> &Frame {
        self.ring.root()
    }

    /// The thread that has the CPU, if no frame is open inside its turn: then it runs its own code.
    pub(crate) fn in_its_own_code(&self) -> Option<i32> {
        let root = self.ring.root();
        (self.ring.stack.len() == 1 && root.class == Class::Turn).then_some(root.tid)
    }

    /// Whether the thread that has the CPU has only just got it, or has just been interrupted.
    pub(crate) fn has_just_begun(&self, at: Ticks) -> bool {
        let since = self.interrupted.unwrap_or_default();
        at.since(since.max(self.ring.root().start)) <= self.rate.ticks(AT_ONCE)
    }

    /// Whether an interrupt or a softirq is in progress.
    pub(crate) fn is_interrupted(&self) -> bool {
        let interrupts =
            |class: Class| class.is_vector() || matches!(class, Class::Irq | Class::Softirq);
        self.ring.stack[1..]
            .iter()
            .any(|index| interrupts(self.ring.frame(*index).class))
    }

    pub(crate) fn record(&mut self, record: &Record) {
        if record.context == ExecutionContext::Nmi && record.kind != RecordKind::Nmi {
            // Inside an NMI handler, which writes its own record when it ends.
            return;
        }
        // Records per CPU are in order; but even if a page is misread, time must not run backwards.
        let at = record.time.max(self.now);
        self.now = at;
        let beside = record.kind.beside();
        let effect = record.kind.effect();
        if effect == Effect::Nmi {
            self.nmi(record, at);
        } else {
            if record.kind.proves() {
                self.prove(record, at, beside);
            }
            match effect {
                Effect::Switch => self.switch(record, at),
                Effect::Open(class) => self.enter(class, record, at, beside),
                Effect::Close(class) => self.exit(class, record, at, beside),
                Effect::Replace(class) => self.replace(class, record, at, beside),
                Effect::Idle => self.idle(record, at, beside),
                Effect::Charge => {
                    self.charge(record, at);
                    self.point(at, beside);
                }
                Effect::Point | Effect::Nmi => self.point(at, beside),
            }
            if record.kind.proves() {
                self.known = at;
            }
        }
        self.began = Some(beside);
    }

    /// A thread comes to this CPU from another one, or its id is reused: frames that it left open here are no longer
    /// open.
    pub(crate) fn arrived(&mut self, tid: i32, at: Ticks) {
        self.parked.forget_before(tid, at);
    }

    /// A thread is renamed. If it has this CPU, its turn is split at the new name; inside an interrupt, the turn gets
    /// both names.
    pub(crate) fn renamed(&mut self, tid: i32, (old, comm): (CommId, CommId), at: Ticks) {
        let root = *self.ring.root();
        let of_thread = |index: &u32| self.ring.frame(*index).class.is_of_thread();
        if root.class != Class::Turn
            || root.tid != tid
            || !self.ring.stack[1..].iter().all(of_thread)
        {
            return;
        }
        let at = at.max(self.now);
        self.cut(at, Some(Beside::Other));
        let mut left = Left::new(at);
        while self.ring.stack.len() > 1 {
            left.push(self.ring.pop(at, Outcome::Closed));
        }
        self.ring.root_mut().end_comm = old;
        let renamed = Frame {
            start: at,
            end: at,
            comm,
            ..root
        };
        self.ring.replace_root(at, Outcome::Closed, renamed);
        self.reopen(&left, at);
        (self.now, self.inferred, self.began) = (at, None, Some(Beside::Other));
    }

    /// Records between two times were lost: the stack is unknown from then on.
    pub(crate) fn lost(&mut self, from: Ticks, to: Ticks) {
        let from = from.max(self.since);
        self.cut(from, None);
        self.unwind(1, from);
        self.parked.clear();
        self.ring
            .replace_root(from, Outcome::Unseen, Frame::nobody(Class::Lost, from));
        let to = to.max(from).max(self.now);
        (self.interrupted, self.timed) = (None, None);
        self.cut(to, None);
        self.ring
            .replace_root(to, Outcome::Closed, Frame::nobody(Class::NotSeen, to));
        (self.now, self.known, self.inferred, self.began) = (to, to, None, None);
    }

    /// A thread is known to run in its own code at `at`: no interrupt is open then, even if records suggest otherwise.
    pub(crate) fn running(&mut self, tid: i32, at: Ticks) {
        let at = at.max(self.now);
        self.cut(at, None);
        self.unwind(1, at);
        let root = *self.ring.root();
        if root.class != Class::Turn || root.tid != tid {
            self.ring
                .replace_root(at, Outcome::Unseen, Frame::inferred_turn(tid, at));
        }
        self.parked.take(tid);
        (self.now, self.known, self.inferred, self.began) = (at, at, None, None);
    }

    /// Opens a mark: keeps slices from `at` on, but none before the current slice.
    pub(crate) fn open_mark(&mut self, at: Ticks) -> Mark {
        self.ring.open(at.max(self.since))
    }

    /// The CPU's activity from a mark to `until`.
    pub(crate) fn close_mark(&mut self, mark: Mark, until: Ticks, window: &mut Window) {
        let under_way = self.under_way(until);
        self.ring.close(mark, until, under_way, window);
    }

    /// The same, but the mark stays open.
    pub(crate) fn peek(&self, mark: &Mark, until: Ticks, window: &mut Window) {
        self.ring.peek(mark, until, self.under_way(until), window);
    }

    /// Closes a mark without a result.
    pub(crate) fn release(&mut self, mark: Mark) {
        self.ring.release(mark);
    }

    fn under_way(&self, until: Ticks) -> Slice {
        Slice {
            start: self.since,
            end: until.max(self.since),
            frame: self.ring.top(),
            began: self.began,
            ended: None,
            sums: 0,
        }
    }

    /// Work items and softirqs that threads had in progress when they left: tid, time of leaving, and the frames,
    /// outermost first.
    pub(crate) fn parked(&self) -> impl Iterator<Item = (i32, Ticks, Vec<Frame>)> {
        self.parked
            .iter()
            .map(|(tid, left)| (tid, left.at, left.frames().copied().collect()))
    }

    /// Adds a frame that a thread had in progress when it left, as if it had been recorded.
    pub(crate) fn park(&mut self, tid: i32, at: Ticks, frame: Frame) {
        if self.ring.root().class == Class::Turn && self.ring.root().tid == tid {
            return;
        }
        let mut left = Left::new(at);
        left.push(frame);
        self.parked.put(tid, left);
    }

    /// Ends the current slice.
    fn cut(&mut self, at: Ticks, ended: Option<Beside>) -> Option<u64> {
        if at <= self.since {
            return None;
        }
        let slice = Slice {
            start: self.since,
            end: at,
            frame: self.ring.top(),
            began: self.began,
            ended,
            sums: 0,
        };
        self.since = at;
        self.ring.is_recording().then(|| self.ring.keep(slice))
    }

    fn open(&mut self, class: Class, record: &Record, at: Ticks) {
        if self.ring.stack.len() >= DEEPEST {
            self.unwind(1, at);
        }
        self.ring.push(Frame::inside(class, record, at));
    }

    /// Closes all but the lowest `keep` frames: their exits left no record.
    fn unwind(&mut self, keep: usize, at: Ticks) {
        while self.ring.stack.len() > keep {
            let class = self.ring.frame(self.ring.top()).class;
            let seen = class.is_endless() || class == Class::Idle;
            self.ring.pop(
                at,
                if seen {
                    Outcome::Closed
                } else {
                    Outcome::Unseen
                },
            );
        }
    }

    /// A record that opens and closes no frame still ends a slice of the thread's own time, because the edges of a
    /// stall lie between records.
    fn point(&mut self, at: Ticks, beside: Beside) {
        if self.ring.stack.len() == 1 {
            self.cut(at, Some(beside));
        }
    }

    fn enter(&mut self, class: Class, record: &Record, at: Ticks, beside: Beside) {
        self.cut(at, Some(beside));
        // Interrupts of one class do not nest, nor do softirqs: an open one lost its exit.
        let twin = |open: Class| match class {
            Class::LocalTimer | Class::Vector => open.is_vector(),
            Class::Irq | Class::Softirq => open == class,
            _ => false,
        };
        let frames = &self.ring;
        if let Some(depth) = frames
            .stack
            .iter()
            .rposition(|index| twin(frames.frame(*index).class))
        {
            self.unwind(depth, at);
        }
        let interrupts = class.is_vector() || matches!(class, Class::Irq | Class::Softirq);
        if interrupts && self.ring.root().tid == 0 && self.ring.root().class == Class::Turn {
            self.leave_idle_state(record, at);
        }
        self.open(class, record, at);
    }

    /// An interrupt ends the current idle state.
    fn leave_idle_state(&mut self, record: &Record, at: Ticks) {
        let top = *self.ring.frame(self.ring.top());
        let in_state = top.class == Class::Idle && top.key != Record::IDLE_ENDS;
        if in_state {
            self.ring.pop(at, Outcome::Closed);
        }
        if in_state || self.ring.stack.len() == 1 {
            let frame = Frame::inside(Class::Idle, record, at);
            self.ring.push(Frame {
                key: Record::IDLE_ENDS,
                subject: 0,
                ..frame
            });
        }
    }

    fn exit(&mut self, class: Class, record: &Record, at: Ticks, beside: Beside) {
        if class.is_vector() || matches!(class, Class::Irq | Class::Softirq) {
            self.interrupted = Some(at);
        }
        let frames = &self.ring;
        let opened = |index: &u32| frames.frame(*index).is_closed_by(class, record);
        let opened = frames.stack.iter().rposition(opened);
        let follows = |depth: usize, ended| {
            let start = frames.frame(frames.stack[depth]).start;
            start.since(ended) <= self.rate.ticks(AFTER_INTERRUPT)
        };
        // Some architectures' timers are ordinary interrupts.
        let is_timed = match class {
            Class::LocalTimer | Class::Irq => true,
            Class::Softirq => opened.zip(self.timed).is_some_and(|(d, t)| follows(d, t)),
            _ => false,
        };
        if is_timed {
            self.timed = Some(at);
        }
        match opened {
            Some(depth) => {
                self.cut(at, Some(beside));
                self.unwind(depth + 1, at);
                self.ring.pop(at, Outcome::Closed);
            }
            None => self.point(at, beside),
        }
    }

    /// An exception ends where the next one begins.
    fn replace(&mut self, class: Class, record: &Record, at: Ticks, beside: Beside) {
        self.cut(at, Some(beside));
        let frames = &self.ring;
        if let Some(depth) = frames
            .stack
            .iter()
            .rposition(|index| frames.frame(*index).class.is_endless())
        {
            self.unwind(depth, at);
        }
        self.open(class, record, at);
    }

    fn idle(&mut self, record: &Record, at: Ticks, beside: Beside) {
        let root = self.ring.root();
        if root.class != Class::Turn || root.tid != 0 {
            return self.point(at, beside);
        }
        self.cut(at, Some(beside));
        self.unwind(1, at);
        self.open(Class::Idle, record, at);
    }

    /// The record is written when the handler ends. No other record of this CPU can be in between.
    fn nmi(&mut self, record: &Record, at: Ticks) {
        let start = (at - self.rate.ticks(Nanos(record.subject)))
            .max(self.known)
            .max(self.since);
        self.cut(start, Some(Beside::Other));
        self.ring.push(Frame::inside(Class::Nmi, record, start));
        self.cut(at, Some(Beside::Other));
        self.ring.pop(at, Outcome::Closed);
    }

    fn switch(&mut self, record: &Record, at: Ticks) {
        self.switches += 1;
        self.cut(at, Some(Beside::Switch));
        let (prev, next) = (record.prev(), record.next());
        self.leave(prev.tid, record.prev_state() & ENDED != 0, at);
        let after = self.rate.ticks(AFTER_INTERRUPT);
        let turn = self.ring.root().start;
        let preempted = record.prev_state() & PREEMPTED != 0;
        let by_itself = !preempted
            && self
                .timed
                .is_some_and(|ended| ended < turn || at.since(ended) > after);
        let root = self.ring.root_mut();
        root.end_comm = prev.comm;
        root.end_prio = prev.prio;
        self.ring
            .replace_root(at, Outcome::Closed, Frame::turn(record, by_itself, at));
        self.resume(next.tid, at);
        self.inferred = None;
    }

    /// A thread leaves the CPU: its frames continue when it comes back.
    fn leave(&mut self, tid: i32, ended: bool, at: Ticks) {
        if self.ring.stack.len() == 1 {
            self.parked.take(tid);
            return;
        }
        let mut left = Left::new(at);
        while self.ring.stack.len() > 1 {
            let class = self.ring.frame(self.ring.top()).class;
            if class.is_of_thread() && !ended {
                left.push(self.ring.pop(at, Outcome::Closed));
            } else {
                let seen = class.is_endless() || class == Class::Idle;
                self.ring.pop(
                    at,
                    if seen {
                        Outcome::Closed
                    } else {
                        Outcome::Unseen
                    },
                );
            }
        }
        self.parked.put(tid, left);
    }

    fn resume(&mut self, tid: i32, at: Ticks) {
        if let Some(left) = self.parked.take(tid) {
            self.reopen(&left, at);
        }
    }

    fn reopen(&mut self, left: &Left, at: Ticks) {
        for frame in left.frames() {
            self.ring.push(Frame {
                start: at,
                end: at,
                outcome: Outcome::Open,
                ..*frame
            });
        }
    }

    /// A record names the thread that has the CPU.
    fn prove(&mut self, record: &Record, at: Ticks, beside: Beside) {
        let tid = record.tid;
        let root = *self.ring.root();
        match root.class {
            Class::Turn if root.tid == tid => {}
            Class::Turn => {
                // Somewhere between its last record and this one, a switch left no record.
                self.unrecorded += 1;
                let from = self.known.max(self.since);
                self.cut(from, Some(Beside::Other));
                self.leave(root.tid, false, from);
                // The thread that has the CPU at the end may have had it all the time; no record shows since when.
                let comm = if record.kind == RecordKind::Switch {
                    record.prev().comm
                } else {
                    CommId::UNKNOWN
                };
                let subject = u64::from(tid as u32);
                let nobody = Frame {
                    subject,
                    comm,
                    ..Frame::nobody(Class::Unrecorded, from)
                };
                self.ring.replace_root(from, Outcome::Closed, nobody);
                self.infer(tid, from, at, beside);
            }
            _ => self.infer(tid, root.start, at, beside),
        }
    }

    /// Ends time without a known thread by the turn of a thread that was seen.
    fn infer(&mut self, tid: i32, from: Ticks, at: Ticks, beside: Beside) {
        let slice = self.cut(at, Some(beside));
        self.ring
            .replace_root(at, Outcome::Closed, Frame::inferred_turn(tid, at));
        if slice.is_some() {
            // Adds a slice that a later charge may assign to the turn.
            let began = Some(beside);
            let turn = self.ring.top();
            self.ring.keep(Slice {
                start: at,
                end: at,
                frame: turn,
                began,
                ended: began,
                sums: 0,
            });
        }
        self.inferred = Some(Inferred { from, slice });
        self.resume(tid, at);
    }

    /// The scheduler charges the running thread for its run time: it has had the CPU for at least that long.
    fn charge(&mut self, record: &Record, at: Ticks) {
        if record.charged() != record.tid {
            return;
        }
        let Some(Inferred { from, slice }) = self.inferred.take() else {
            return;
        };
        let root = self.ring.root_mut();
        let began = (at - self.rate.ticks(Nanos(record.subject)))
            .max(from)
            .min(root.start);
        let found = root.start;
        (root.start, root.opened) = (began, began);
        let Some(slice) = slice else { return };
        let Some(nobodys) = self
            .ring
            .slice_mut(slice)
            .filter(|slice| slice.end == found)
        else {
            return;
        };
        // A mark may be in the middle.
        nobodys.end = began.max(nobodys.start);
        let (began, frame) = (nobodys.end, nobodys.frame);
        if let Some(turn) = self.ring.slice_mut(slice + 1) {
            turn.start = began;
        }
        if let Some(frame) = self.ring.frames.get_mut(frame as usize) {
            frame.end = began;
        }
    }
}
