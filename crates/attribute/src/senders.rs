//! Who set things going: senders of IPIs, wakers of threads, queuers of work, by what they sent.

use crate::lexicon::Lexicon;
use jitterscope_model::{CpuId, EventKind, ExecutionContext, KernelAddr, KernelEvent, Name, Sender, Ticks};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

/// Records kept a key. Attribution follows recording by a fraction of a second, in which hardly any key
/// is used this often; an older sender is then unknown, not wrong.
const PER_KEY: usize = 32;
/// Keys kept a kind before those not used lately are dropped.
const KEYS: usize = 1024;

/// Sleep states of a switch; the bit above them marks a preempted thread, which is runnable.
const TASK_STATES: u64 = 0xff;

#[derive(Clone, Debug)]
struct Sent<T> {
    time: Ticks,
    tid: i32,
    context: ExecutionContext,
    cpu: CpuId,
    what: T,
}

/// Records by key, newest last.
#[derive(Clone, Debug)]
struct Index<K, T> {
    sent: HashMap<K, VecDeque<Sent<T>>>,
}

impl<K, T> Default for Index<K, T> {
    fn default() -> Self {
        Index { sent: HashMap::new() }
    }
}

impl<K: Hash + Eq + Copy, T> Index<K, T> {
    fn insert(&mut self, key: K, event: &KernelEvent, what: T) {
        if self.sent.len() >= KEYS && !self.sent.contains_key(&key) {
            self.drop_older_half();
        }
        let queue = self.sent.entry(key).or_default();
        if queue.len() >= PER_KEY {
            queue.pop_front();
        }
        let KernelEvent { time, tid, context, cpu, .. } = *event;
        let record = Sent { time, tid, context, cpu, what };
        // Several CPUs' records arrive buffer by buffer, so the newest need not come last.
        let at = queue.iter().rposition(|s| s.time <= record.time).map_or(0, |i| i + 1);
        queue.insert(at, record);
    }

    fn drop_older_half(&mut self) {
        let mut newest: Vec<Ticks> = self.sent.values().filter_map(|q| q.back().map(|s| s.time)).collect();
        newest.sort_unstable();
        let median = newest.get(newest.len() / 2).copied().unwrap_or_default();
        self.sent.retain(|_, q| q.back().is_some_and(|s| s.time > median));
    }

    /// The last record of `key` that is not after `time`.
    fn before(&self, key: K, time: Ticks) -> Option<&Sent<T>> {
        self.sent.get(&key)?.iter().rev().find(|s| s.time <= time)
    }
}

/// An index over the records of the sending side.
#[derive(Clone, Debug, Default)]
pub struct Senders {
    /// By the thread woken, with the CPU where it had run before.
    wakers: Index<i32, CpuId>,
    /// When threads went to sleep.
    sleeps: Index<i32, ()>,
    /// When threads came to a CPU.
    arrivals: Index<(i32, CpuId), ()>,
    callers: Index<(u64, KernelAddr), KernelAddr>,
    queuers: Index<u64, Name>,
    reschedules: Index<CpuId, KernelAddr>,
    /// Threads that only read the clock.
    spinners: BTreeSet<i32>,
}

impl Senders {
    /// Takes note of a record, if it is one of a sender.
    pub fn note(&mut self, event: &KernelEvent) {
        match &event.kind {
            EventKind::SchedWaking { task, target } => self.wakers.insert(task.tid, event, *target),
            EventKind::SchedMigrate { task, to, .. } => self.arrivals.insert((task.tid, *to), event, ()),
            EventKind::SchedSwitch { prev, prev_state, .. } if *prev_state & TASK_STATES != 0 => {
                self.sleeps.insert(prev.tid, event, ());
            }
            EventKind::CsdQueued { function, csd, callsite, .. } => {
                self.callers.insert((*csd, *function), event, *callsite);
            }
            EventKind::WorkQueued { work, workqueue, .. } => {
                self.queuers.insert(*work, event, workqueue.clone());
            }
            EventKind::IpiSendCpu { target, callsite, callback } if *callback == KernelAddr(0) => {
                self.reschedules.insert(*target, event, *callsite);
            }
            _ => {}
        }
    }

    /// This thread only reads the clock: it raises no softirq, so one on top of it is not its doing.
    pub fn spins(&mut self, tid: i32) {
        self.spinners.insert(tid);
    }

    /// Who woke a thread that was put on a CPU at `time`: after it last slept, or nobody. A wake-up is recorded
    /// with the CPU where the thread had run before: one that names this CPU is of an earlier stay, if the
    /// thread has come here from another one since.
    pub(crate) fn waker(&self, tid: i32, cpu: CpuId, time: Ticks, lexicon: &dyn Lexicon) -> Option<Sender> {
        let sent = self.wakers.before(tid, time)?;
        let slept = self.sleeps.before(tid, time).is_some_and(|sleep| sleep.time > sent.time);
        let came = self.arrivals.before((tid, cpu), time).is_some_and(|arrival| arrival.time > sent.time);
        let earlier_stay = slept || (came && sent.what == cpu);
        (!earlier_stay).then(|| self.sender(sent, None, lexicon))
    }

    /// Who called a function on this CPU before `time`.
    pub(crate) fn caller(
        &self,
        csd: u64,
        function: KernelAddr,
        time: Ticks,
        lexicon: &dyn Lexicon,
    ) -> Option<Sender> {
        self.callers.before((csd, function), time).map(|sent| self.sender(sent, Some(sent.what), lexicon))
    }

    /// Who queued a work item before `time`, and on which workqueue.
    pub(crate) fn queuer(
        &self,
        work: u64,
        time: Ticks,
        lexicon: &dyn Lexicon,
    ) -> (Option<Sender>, Option<Name>) {
        match self.queuers.before(work, time) {
            Some(sent) => (Some(self.sender(sent, None, lexicon)), Some(sent.what.clone())),
            None => (None, None),
        }
    }

    /// Who last sent a reschedule interrupt to a CPU before `time`.
    pub(crate) fn rescheduler(&self, cpu: CpuId, time: Ticks, lexicon: &dyn Lexicon) -> Option<Sender> {
        self.reschedules.before(cpu, time).map(|sent| self.sender(sent, Some(sent.what), lexicon))
    }

    fn sender<T>(&self, sent: &Sent<T>, via: Option<KernelAddr>, lexicon: &dyn Lexicon) -> Sender {
        let involved = match sent.context {
            ExecutionContext::Thread => true,
            ExecutionContext::Softirq => !self.spinners.contains(&sent.tid),
            ExecutionContext::Interrupt | ExecutionContext::Nmi | ExecutionContext::Unknown => false,
        };
        let comm = involved.then(|| lexicon.comm(sent.tid)).flatten();
        let tgid = comm.as_ref().and_then(|comm| lexicon.identity(sent.tid, comm).tgid);
        Sender {
            context: sent.context,
            comm,
            tid: if involved { sent.tid } else { 0 },
            tgid,
            cpu: sent.cpu,
            via: via.filter(|addr| addr.0 != 0).map(|addr| lexicon.function(addr)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, TaskRef};

    struct NoNames;
    impl Lexicon for NoNames {
        fn function(&self, addr: KernelAddr) -> Name {
            format!("{:#x}", addr.0).into()
        }
        fn comm(&self, _: i32) -> Option<Name> {
            None
        }
    }

    fn waking(time: u64, waker: i32, woken: i32) -> KernelEvent {
        let task = TaskRef { tid: woken, comm: Comm::new("x"), prio: 120 };
        let kind = EventKind::SchedWaking { task, target: CpuId(1) };
        KernelEvent { time: Ticks(time), cpu: CpuId(0), tid: waker, context: ExecutionContext::Thread, kind }
    }

    #[test]
    fn the_last_sender_before_the_moment_counts_whatever_the_order_of_arrival() {
        let mut senders = Senders::default();
        for event in [waking(300, 3, 9), waking(100, 1, 9), waking(200, 2, 9)] {
            senders.note(&event);
        }
        let at = |time| senders.waker(9, CpuId(1), Ticks(time), &NoNames).map(|s| s.tid);
        assert_eq!([at(99), at(100), at(250), at(1000)], [None, Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn memory_stays_bounded_over_many_keys() {
        let mut senders = Senders::default();
        for n in 0..100_000 {
            senders.note(&waking(n, 1, i32::try_from(n).unwrap()));
        }
        assert!(senders.wakers.sent.len() <= KEYS);
        assert!(senders.waker(99_999, CpuId(1), Ticks(100_000), &NoNames).is_some());
    }

    #[test]
    fn a_wake_up_before_the_thread_slept_again_is_not_that_of_its_turn() {
        let task = |tid| TaskRef { tid, comm: Comm::new("x"), prio: 120 };
        let slept = |time, cpu, prev_state| {
            let kind = EventKind::SchedSwitch { prev: task(9), prev_state, next: task(0) };
            let context = ExecutionContext::Thread;
            KernelEvent { time: Ticks(time), cpu: CpuId(cpu), tid: 9, context, kind }
        };
        let moved = |time, to| {
            let kind = EventKind::SchedMigrate { task: task(9), from: CpuId(1 - to), to: CpuId(to) };
            KernelEvent { kind, ..waking(time, 4, 9) }
        };
        let waker = |events: &[KernelEvent], cpu| {
            let mut senders = Senders::default();
            events.iter().for_each(|event| senders.note(event));
            senders.waker(9, CpuId(cpu), Ticks(1000), &NoNames).map(|sender| sender.tid)
        };
        assert_eq!(waker(&[waking(100, 3, 9), slept(50, 1, 1)], 1), Some(3));
        assert_eq!(waker(&[waking(100, 3, 9), slept(200, 1, 1)], 1), None);
        // It was preempted: it did not sleep.
        assert_eq!(waker(&[waking(100, 3, 9), slept(200, 1, 0)], 1), Some(3));
        assert_eq!(waker(&[waking(100, 3, 9), slept(200, 1, 0x100)], 1), Some(3));
        // Woken where it had run, and put elsewhere: that is its wake-up. Not so when it came back since.
        assert_eq!(waker(&[waking(100, 3, 9), moved(101, 0)], 0), Some(3));
        assert_eq!(waker(&[waking(100, 3, 9), moved(300, 0), moved(900, 1)], 1), None);
    }
}
