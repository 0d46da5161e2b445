//! Who triggered what: senders of IPIs, wakers of threads, queuers of work, by what they sent.

use crate::lexicon::Lexicon;
use crate::sent::{Sent, SentQueue};
use jitterscope_model::{
    Comm, CpuId, EventKind, ExecutionContext, KernelAddr, KernelEvent, Name, Nanos, Sender,
    TickRate, Ticks,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::hash::Hash;

/// Records are kept for so long, and of each key the last one before that: attribution follows recording by
/// less, and a sender of before is asked for only if none came since.
const WINDOW: Nanos = Nanos(2_000_000_000);
/// Keys kept a kind before those of before the window are dropped.
const KEYS: usize = 4096;
/// Keys kept a kind at most.
const MOST_KEYS: usize = 1 << 16;
/// Records kept a kind at most: beyond half a million a second within the window the oldest are dropped, and
/// counted.
const MOST: usize = 1 << 20;

/// Losses told apart; beyond, the oldest are taken as one.
const MOST_LOSSES: usize = 256;

/// Sleep states of a switch; the bit above them marks a preempted thread, which is runnable.
const TASK_STATES: u64 = 0xff;

/// Records by key, newest last.
#[derive(Clone, Debug)]
struct Index<K, T> {
    sent: FxHashMap<K, SentQueue<T>>,
    /// Records of all keys.
    total: usize,
    /// With so many keys it is looked which of them are still used.
    sweep_at: usize,
    /// Records of within the window that were dropped.
    dropped: u64,
}

impl<K, T> Default for Index<K, T> {
    fn default() -> Self {
        Index {
            sent: FxHashMap::default(),
            total: 0,
            sweep_at: KEYS,
            dropped: 0,
        }
    }
}

impl<K: Hash + Eq + Copy, T> Index<K, T> {
    fn insert(&mut self, key: K, event: &KernelEvent, what: T, window: Ticks) {
        if self.sent.len() >= self.sweep_at && !self.sent.contains_key(&key) {
            self.sweep(event.time - window);
        }
        let queue = self.sent.entry(key).or_default();
        queue.insert(Sent::of(event, what));
        self.total += 1;
        let newest = queue.last().map_or(event.time, |last| last.time);
        while queue
            .get(1)
            .is_some_and(|second| second.time <= newest - window)
        {
            queue.drop_first();
            self.total -= 1;
        }
        if self.total > MOST && queue.len() > 1 {
            queue.drop_first();
            self.total -= 1;
            self.dropped += 1;
        }
    }

    /// Drops keys not used since `before`; if those that are left are too many, the older half of them.
    fn sweep(&mut self, before: Ticks) {
        self.sent
            .retain(|_, queue| queue.last().is_some_and(|last| last.time >= before));
        if self.sent.len() >= MOST_KEYS {
            let mut newest: Vec<Ticks> = self
                .sent
                .values()
                .filter_map(|queue| queue.last().map(|last| last.time))
                .collect();
            newest.sort_unstable();
            let median = newest.get(newest.len() / 2).copied().unwrap_or_default();
            self.sent
                .retain(|_, queue| queue.last().is_some_and(|last| last.time > median));
        }
        self.total = self.sent.values().map(SentQueue::len).sum();
        self.sweep_at = (self.sent.len() * 2).clamp(KEYS, MOST_KEYS);
    }

    /// The last record of `key` that is not after `time`.
    fn before(&self, key: K, time: Ticks) -> Option<&Sent<T>> {
        self.sent.get(&key)?.before(time)
    }
}

/// Who sent something, as its record has it: equal ones have equal names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Trigger {
    tid: i32,
    context: ExecutionContext,
    cpu: CpuId,
    /// The function through which it was sent; 0 where that is not recorded.
    via: KernelAddr,
}

impl Trigger {
    fn of<T>(sent: &Sent<T>, via: KernelAddr) -> Trigger {
        Trigger {
            tid: sent.tid,
            context: sent.context,
            cpu: sent.cpu,
            via,
        }
    }

    fn directly<T>(sent: &Sent<T>) -> Trigger {
        Trigger::of(sent, KernelAddr(0))
    }
}

/// An index over the records of the sending side.
#[derive(Clone, Debug)]
pub struct Senders {
    /// How long records are kept.
    window: Ticks,
    /// By the thread woken, with the CPU where it had run before.
    wakers: Index<i32, CpuId>,
    /// When threads went to sleep.
    sleeps: Index<i32, ()>,
    /// When threads came to a CPU.
    arrivals: Index<(i32, CpuId), ()>,
    callers: Index<(u64, KernelAddr), KernelAddr>,
    queuers: Index<u64, Name>,
    reschedules: Index<CpuId, KernelAddr>,
    /// By the thread that a stop signal was for.
    stops: Index<i32, ()>,
    /// Times of which records were lost, in the order in which that was learnt.
    losses: VecDeque<(Ticks, Ticks)>,
    /// Threads that only read the clock.
    spinners: BTreeSet<i32>,
}

impl Senders {
    /// Nobody has sent anything yet.
    #[must_use]
    pub fn new(rate: TickRate) -> Senders {
        Senders {
            window: rate.ticks(WINDOW),
            wakers: Index::default(),
            sleeps: Index::default(),
            arrivals: Index::default(),
            callers: Index::default(),
            queuers: Index::default(),
            reschedules: Index::default(),
            stops: Index::default(),
            losses: VecDeque::new(),
            spinners: BTreeSet::new(),
        }
    }

    /// Takes note of a record, if it is one of a sender.
    pub fn note(&mut self, event: &KernelEvent) {
        let window = self.window;
        match &event.kind {
            EventKind::SchedWaking { task, target } => {
                self.wakers.insert(task.tid, event, *target, window)
            }
            EventKind::SchedMigrate { task, to, .. } => {
                self.arrivals.insert((task.tid, *to), event, (), window);
            }
            EventKind::SchedSwitch {
                prev, prev_state, ..
            } if *prev_state & TASK_STATES != 0 => {
                self.sleeps.insert(prev.tid, event, (), window);
            }
            // What woke the last bearer of its id did not wake it.
            EventKind::TaskNew { tid, .. } => self.sleeps.insert(*tid, event, (), window),
            EventKind::CsdQueued {
                function,
                csd,
                callsite,
                ..
            } => {
                self.callers
                    .insert((*csd, *function), event, *callsite, window);
            }
            EventKind::WorkQueued {
                work, workqueue, ..
            } => {
                self.queuers.insert(*work, event, workqueue.clone(), window);
            }
            EventKind::IpiSendCpu {
                target,
                callsite,
                callback,
            } if *callback == KernelAddr(0) => {
                self.reschedules.insert(*target, event, *callsite, window);
            }
            EventKind::StopSignal { tid } => self.stops.insert(*tid, event, (), window),
            _ => {}
        }
    }

    /// Records were lost between two times: whoever sent something before may not have been the last to.
    pub fn lost(&mut self, from: Ticks, to: Ticks) {
        if self.losses.len() >= MOST_LOSSES
            && let (Some(first), Some(second)) = (self.losses.pop_front(), self.losses.front_mut())
        {
            *second = (first.0.min(second.0), first.1.max(second.1));
        }
        self.losses.push_back((from, to));
    }

    /// The last record of `key` that is not after `time`, unless a later one may have been lost.
    fn last<'s, K: Hash + Eq + Copy, T>(
        &self,
        index: &'s Index<K, T>,
        key: K,
        time: Ticks,
    ) -> Option<&'s Sent<T>> {
        let between = |sent: Ticks| {
            self.losses
                .iter()
                .any(|(from, to)| *from < time && *to > sent)
        };
        index.before(key, time).filter(|sent| !between(sent.time))
    }

    /// Records that were dropped though somebody might have asked for them: there were too many at once.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let Senders {
            wakers,
            sleeps,
            arrivals,
            callers,
            queuers,
            reschedules,
            stops,
            ..
        } = self;
        let of_threads = wakers.dropped + sleeps.dropped + arrivals.dropped + stops.dropped;
        of_threads + callers.dropped + queuers.dropped + reschedules.dropped
    }

    /// Who last sent a signal that stops to a thread, or to its process, before `time`.
    pub(crate) fn stopper(&self, tid: i32, time: Ticks, lexicon: &dyn Lexicon) -> Option<Sender> {
        let process = lexicon
            .comm(tid)
            .and_then(|comm| lexicon.identity(tid, Comm::new(&comm)).tgid);
        let of_process = process
            .filter(|tgid| *tgid != tid)
            .and_then(|tgid| self.last(&self.stops, tgid, time));
        let of_thread = self.last(&self.stops, tid, time);
        let last = of_thread
            .into_iter()
            .chain(of_process)
            .max_by_key(|sent| sent.time)?;
        Some(self.sender(Trigger::directly(last), lexicon))
    }

    /// This thread only reads the clock: it raises no softirq, so one on top of it is not its doing.
    pub fn spins(&mut self, tid: i32) {
        self.spinners.insert(tid);
    }

    pub(crate) fn is_spinner(&self, tid: i32) -> bool {
        self.spinners.contains(&tid)
    }

    /// Who woke a thread that was put on a CPU at `time`: after it last slept, or nobody. A wake-up is recorded
    /// with the CPU where the thread had run before: one that names this CPU is of an earlier stay, if the
    /// thread has come here from another one since.
    pub(crate) fn woken_by(&self, tid: i32, cpu: CpuId, time: Ticks) -> Option<Trigger> {
        let sent = self.last(&self.wakers, tid, time)?;
        let slept = self
            .sleeps
            .before(tid, time)
            .is_some_and(|sleep| sleep.time > sent.time);
        let came = self
            .arrivals
            .before((tid, cpu), time)
            .is_some_and(|arrival| arrival.time > sent.time);
        let earlier_stay = slept || (came && sent.what == cpu);
        (!earlier_stay).then(|| Trigger::directly(sent))
    }

    /// The same with its names.
    pub(crate) fn waker(
        &self,
        tid: i32,
        cpu: CpuId,
        time: Ticks,
        lexicon: &dyn Lexicon,
    ) -> Option<Sender> {
        self.woken_by(tid, cpu, time)
            .map(|trigger| self.sender(trigger, lexicon))
    }

    /// Who called a function on this CPU before `time`.
    pub(crate) fn called_by(&self, csd: u64, function: KernelAddr, time: Ticks) -> Option<Trigger> {
        self.last(&self.callers, (csd, function), time)
            .map(|sent| Trigger::of(sent, sent.what))
    }

    /// When the call of a function on this CPU was sent that is under way at `time`.
    pub(crate) fn called_at(&self, csd: u64, function: KernelAddr, time: Ticks) -> Option<Ticks> {
        self.last(&self.callers, (csd, function), time)
            .map(|sent| sent.time)
    }

    /// When a reschedule interrupt was last sent to a CPU before `time`.
    pub(crate) fn rescheduled_at(&self, cpu: CpuId, time: Ticks) -> Option<Ticks> {
        self.last(&self.reschedules, cpu, time)
            .map(|sent| sent.time)
    }

    /// Who queued a work item before `time`.
    pub(crate) fn queued_by(&self, work: u64, time: Ticks) -> Option<Trigger> {
        self.last(&self.queuers, work, time).map(Trigger::directly)
    }

    /// On which workqueue.
    pub(crate) fn workqueue(&self, work: u64, time: Ticks) -> Option<Name> {
        self.last(&self.queuers, work, time)
            .map(|sent| sent.what.clone())
    }

    /// Who last sent a reschedule interrupt to a CPU before `time`.
    pub(crate) fn rescheduled_by(&self, cpu: CpuId, time: Ticks) -> Option<Trigger> {
        self.last(&self.reschedules, cpu, time)
            .map(|sent| Trigger::of(sent, sent.what))
    }

    /// A trigger with its names.
    pub(crate) fn sender(&self, trigger: Trigger, lexicon: &dyn Lexicon) -> Sender {
        let Trigger {
            tid,
            context,
            cpu,
            via,
        } = trigger;
        let involved = match context {
            ExecutionContext::Thread => true,
            ExecutionContext::Softirq => !self.spinners.contains(&tid),
            ExecutionContext::Interrupt | ExecutionContext::Nmi | ExecutionContext::Unknown => {
                false
            }
        };
        let comm = involved.then(|| lexicon.comm(tid)).flatten();
        let tgid = comm
            .as_ref()
            .and_then(|comm| lexicon.identity(tid, Comm::new(comm)).tgid);
        Sender {
            context,
            comm,
            tid: if involved { tid } else { 0 },
            tgid,
            cpu,
            via: (via.0 != 0).then(|| lexicon.function(via)),
        }
    }
}

#[cfg(test)]
#[path = "senders_tests.rs"]
mod tests;
