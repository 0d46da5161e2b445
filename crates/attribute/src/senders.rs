//! The triggers of activity: senders of IPIs, wakers of threads, queuers of work, indexed by what they sent.

use crate::name_resolver::NameResolver;
use crate::sent::{Sent, SentQueue};
use jitterscope_model::{
    Comm, CpuId, CpuSet, EventKind, ExecutionContext, KernelAddr, KernelEvent, Name, Nanos, Sender,
    TickRate, Ticks,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeSet, VecDeque};
use std::hash::Hash;
use std::ops::RangeInclusive;

/// How long records are kept; plus the last older one of each key. Attribution lags behind recording by less than this,
/// and needs an older sender only if there is no newer one.
const WINDOW: Nanos = Nanos(2_000_000_000);
/// Keys per kind before keys with only old records are dropped.
const KEYS: usize = 4096;
/// Maximum of keys per kind: half the capacity of a hash table of 2^16 slots. A fuller table would double when it
/// reclaims the slots of removed keys.
const MOST_KEYS: usize = 28 << 10;
/// Maximum of records per kind: above half a million a second the oldest are dropped, and counted.
const MOST: usize = 1 << 20;

/// Maximum of losses; beyond it the oldest two are joined.
const MOST_LOSSES: usize = 256;

/// The name prefix of kernel threads that move running threads.
const STOPPER: &str = "migration/";

/// SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU.
const STOP_SIGNALS: RangeInclusive<i32> = 19..=22;
const SIGALRM: i32 = 14;
/// Signal code of sigaction(2): a timer of `timer_create` expired.
const SI_TIMER: i32 = -2;
/// Signal code of the kernel: SIGALRM of `setitimer`.
const SI_KERNEL: i32 = 0x80;

/// Sleep states of a switch; the bit above them marks a preempted thread, which is runnable.
const TASK_STATES: u64 = 0xff;

/// Records by key, newest last.
#[derive(Clone, Debug)]
struct Index<K, T> {
    sent: FxHashMap<K, SentQueue<T>>,
    /// The number of records of all keys.
    total: usize,
    /// The next check for unused keys happens at this number of keys.
    sweep_at: usize,
    /// The number of dropped records that were not yet old.
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

    /// Drops keys not used since `before`; if too many remain, also drops the older half of them.
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

    /// The last record of `key` up to `time`.
    fn before(&self, key: K, time: Ticks) -> Option<&Sent<T>> {
        self.sent.get(&key)?.before(time)
    }
}

/// The sender in a record: equal triggers have equal names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Trigger {
    tid: i32,
    context: ExecutionContext,
    cpu: CpuId,
    /// The function through which it was sent; 0 if not recorded.
    via: KernelAddr,
    called: Called,
}

/// What is known about a thread's name at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Called {
    /// The current name: no record shows another one.
    AsNow,
    /// This name, until a later renaming.
    Then(Comm),
    /// This name by an earlier record; if the current name differs, the time of the renaming is unknown.
    Since(Comm),
    /// Unknown: it was another thread with the same id.
    Unknown,
}

/// An index of the records of the sending side.
#[derive(Clone, Debug)]
pub struct Senders {
    /// How long records are kept.
    window: Ticks,
    /// By woken thread; the value is the CPU where it had run before.
    wakers: Index<i32, CpuId>,
    /// When threads went to sleep.
    sleeps: Index<i32, ()>,
    /// When threads came to a CPU; the value is the CPU that they came from.
    arrivals: Index<(i32, CpuId), CpuId>,
    callers: Index<(u64, KernelAddr), KernelAddr>,
    queuers: Index<u64, Name>,
    reschedules: Index<CpuId, KernelAddr>,
    /// By the target thread of a stop signal.
    stops: Index<i32, ()>,
    /// By the CPU on which a process's timer expired; the value is the target thread of its signal.
    expiries: Index<CpuId, i32>,
    /// When threads were renamed; the values are the old and the new name. Empty names mean that the id was reused.
    renames: Index<i32, (Comm, Comm)>,
    /// Times with lost records, in the order of discovery.
    losses: VecDeque<(Ticks, Ticks)>,
    /// Threads that only read the clock.
    spinners: BTreeSet<i32>,
    /// The CPUs for whose threads wake-ups are recorded; `None` means all.
    wakings_of: Option<CpuSet>,
}

impl Senders {
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
            expiries: Index::default(),
            renames: Index::default(),
            losses: VecDeque::new(),
            spinners: BTreeSet::new(),
            wakings_of: None,
        }
    }

    /// The same, if wake-ups are only recorded for threads that last ran on some CPUs.
    #[must_use]
    pub fn of_some_wakings(rate: TickRate) -> Senders {
        Senders {
            wakings_of: Some(CpuSet::new()),
            ..Senders::new(rate)
        }
    }

    /// Adds a CPU to those.
    pub fn records_wakings_of(&mut self, cpu: CpuId) {
        self.wakings_of.iter_mut().for_each(|cpus| {
            cpus.insert(cpu);
        });
    }

    /// Adds a record, if it is a sender's.
    pub fn note(&mut self, event: &KernelEvent) {
        let window = self.window;
        match &event.kind {
            EventKind::SchedWaking { task, target } => {
                self.wakers.insert(task.tid, event, *target, window)
            }
            EventKind::SchedMigrate { task, from, to } => {
                self.arrivals.insert((task.tid, *to), event, *from, window);
            }
            EventKind::SchedSwitch {
                prev, prev_state, ..
            } if *prev_state & TASK_STATES != 0 => {
                self.sleeps.insert(prev.tid, event, (), window);
            }
            EventKind::TaskNew { tid, .. } => {
                // The waker of the id's earlier thread did not wake this one.
                self.sleeps.insert(*tid, event, (), window);
                let nobody = (Comm::default(), Comm::default());
                self.renames.insert(*tid, event, nobody, window);
            }
            EventKind::TaskRename { tid, old, comm } => {
                self.renames.insert(*tid, event, (*old, *comm), window);
            }
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
            EventKind::Signal { tid, sig, .. } if STOP_SIGNALS.contains(sig) => {
                self.stops.insert(*tid, event, (), window);
            }
            EventKind::Signal { tid, sig, code }
                if *code == SI_TIMER || (*sig, *code) == (SIGALRM, SI_KERNEL) =>
            {
                self.expiries.insert(event.cpu, event, *tid, window);
            }
            _ => {}
        }
    }

    /// Records between two times were lost: an earlier sender may not be the last one.
    pub fn lost(&mut self, from: Ticks, to: Ticks) {
        if self.losses.len() >= MOST_LOSSES
            && let (Some(first), Some(second)) = (self.losses.pop_front(), self.losses.front_mut())
        {
            *second = (first.0.min(second.0), first.1.max(second.1));
        }
        self.losses.push_back((from, to));
    }

    /// The last record of `key` up to `time`, unless a later one may have been lost.
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

    /// Records that were dropped although they might have been needed, because there were too many at once.
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
            expiries,
            renames,
            ..
        } = self;
        let of_threads = wakers.dropped + sleeps.dropped + arrivals.dropped;
        let of_threads = of_threads + stops.dropped + expiries.dropped + renames.dropped;
        of_threads + callers.dropped + queuers.dropped + reschedules.dropped
    }

    /// The last sender of a stop signal to a thread, or to its process, before `time`.
    pub(crate) fn stopper(
        &self,
        tid: i32,
        time: Ticks,
        resolver: &dyn NameResolver,
    ) -> Option<Sender> {
        let process = resolver
            .comm(tid)
            .and_then(|comm| resolver.identity(tid, Comm::new(&comm)).tgid);
        let of_process = process
            .filter(|tgid| *tgid != tid)
            .and_then(|tgid| self.last(&self.stops, tgid, time));
        let of_thread = self.last(&self.stops, tid, time);
        let last = of_thread
            .into_iter()
            .chain(of_process)
            .max_by_key(|sent| sent.time)?;
        Some(self.sender(self.directly(last), resolver))
    }

    /// The owner of the timer whose function ran on a CPU from `from` to `to`: such a timer signals a thread of the
    /// process that armed it.
    pub(crate) fn armed_by(&self, cpu: CpuId, (from, to): (Ticks, Ticks)) -> Option<Trigger> {
        let signal = self.last(&self.expiries, cpu, to)?;
        (signal.time >= from).then(|| Trigger {
            tid: signal.what,
            context: ExecutionContext::Thread,
            cpu,
            via: KernelAddr(0),
            called: self.called(signal.what, signal.time),
        })
    }

    /// Notes that this thread only reads the clock: it raises no softirq, so a softirq on top of it is not its own.
    pub fn spins(&mut self, tid: i32) {
        self.spinners.insert(tid);
    }

    pub(crate) fn is_spinner(&self, tid: i32) -> bool {
        self.spinners.contains(&tid)
    }

    /// The waker of a thread that was put on a CPU at `time`; `None` if no wake-up is known since it last slept. A
    /// wake-up's record has the CPU where the thread had run before. If that is this CPU, and the thread has come here
    /// from another CPU since, the record belongs to an earlier stay.
    pub(crate) fn woken_by(
        &self,
        tid: i32,
        cpu: CpuId,
        time: Ticks,
        resolver: &dyn NameResolver,
    ) -> Option<Trigger> {
        let slept = self.sleeps.before(tid, time).map(|sleep| sleep.time);
        let came = self.last(&self.arrivals, (tid, cpu), time);
        let woken = self.last(&self.wakers, tid, time).filter(|woken| {
            let came = came.is_some_and(|came| came.time > woken.time);
            slept.is_none_or(|slept| slept <= woken.time) && !(came && woken.what == cpu)
        });
        if let Some(woken) = woken {
            return Some(self.directly(woken));
        }
        came.filter(|came| slept.is_none_or(|slept| slept <= came.time))
            .filter(|came| self.was_woken_here(came, (tid, cpu), time, resolver))
            .map(|came| self.directly(came))
    }

    /// Whether the move of a thread to a CPU was part of a wake-up: a waker chooses the thread's CPU and moves it
    /// there, which shows the waker if the wake-up itself is not recorded. Load balancing also moves runnable threads.
    fn was_woken_here(
        &self,
        came: &Sent<CpuId>,
        (tid, cpu): (i32, CpuId),
        time: Ticks,
        resolver: &dyn NameResolver,
    ) -> bool {
        let recorded = |wakings_of: &CpuSet| wakings_of.contains(came.what);
        if self.wakings_of.as_ref().is_none_or(recorded) || came.tid == tid {
            return false;
        }
        match came.context {
            ExecutionContext::Interrupt => true,
            ExecutionContext::Thread => {
                // A CPU that is idle, or about to idle, pulls threads from others.
                let slept = self.sleeps.before(came.tid, time);
                let left = slept.is_some_and(|slept| slept.time == time && came.cpu == cpu);
                let stopper = || {
                    let comm = resolver.comm(came.tid);
                    comm.is_some_and(|comm| comm.starts_with(STOPPER))
                };
                came.tid != 0 && !left && !stopper()
            }
            ExecutionContext::Softirq | ExecutionContext::Nmi | ExecutionContext::Unknown => false,
        }
    }

    /// The same with names.
    pub(crate) fn waker(
        &self,
        tid: i32,
        cpu: CpuId,
        time: Ticks,
        resolver: &dyn NameResolver,
    ) -> Option<Sender> {
        self.woken_by(tid, cpu, time, resolver)
            .map(|trigger| self.sender(trigger, resolver))
    }

    /// The last caller of a function on this CPU before `time`.
    pub(crate) fn called_by(&self, csd: u64, function: KernelAddr, time: Ticks) -> Option<Trigger> {
        self.called_with(csd, function, time)
            .map(|sent| self.trigger(sent, sent.what))
    }

    /// The record of a call, unless the trace does not state which one.
    fn called_with(
        &self,
        csd: u64,
        function: KernelAddr,
        time: Ticks,
    ) -> Option<&Sent<KernelAddr>> {
        let found = self.last(&self.callers, (csd, function), time);
        found.filter(|_| csd != 0)
    }

    /// When the call of a function that runs on this CPU at `time` was sent.
    pub(crate) fn called_at(&self, csd: u64, function: KernelAddr, time: Ticks) -> Option<Ticks> {
        self.called_with(csd, function, time).map(|sent| sent.time)
    }

    /// When the last reschedule interrupt before `time` was sent to a CPU.
    pub(crate) fn rescheduled_at(&self, cpu: CpuId, time: Ticks) -> Option<Ticks> {
        self.last(&self.reschedules, cpu, time)
            .map(|sent| sent.time)
    }

    /// The last queuer of a work item before `time`.
    pub(crate) fn queued_by(&self, work: u64, time: Ticks) -> Option<Trigger> {
        self.queued(work, time).map(|sent| self.directly(sent))
    }

    /// Who queued a work item last. Another tool's trace may not state which one ran: its address is zero.
    fn queued(&self, work: u64, time: Ticks) -> Option<&Sent<Name>> {
        self.last(&self.queuers, work, time).filter(|_| work != 0)
    }

    /// The workqueue of a work item.
    pub(crate) fn workqueue(&self, work: u64, time: Ticks) -> Option<Name> {
        self.queued(work, time).map(|sent| sent.what.clone())
    }

    /// The last sender of a reschedule interrupt to a CPU before `time`.
    pub(crate) fn rescheduled_by(&self, cpu: CpuId, time: Ticks) -> Option<Trigger> {
        self.last(&self.reschedules, cpu, time)
            .map(|sent| self.trigger(sent, sent.what))
    }

    fn trigger<T>(&self, sent: &Sent<T>, via: KernelAddr) -> Trigger {
        Trigger {
            tid: sent.tid,
            context: sent.context,
            cpu: sent.cpu,
            via,
            called: self.called(sent.tid, sent.time),
        }
    }

    fn directly<T>(&self, sent: &Sent<T>) -> Trigger {
        self.trigger(sent, KernelAddr(0))
    }

    /// What is known about a thread's name at some time.
    fn called(&self, tid: i32, time: Ticks) -> Called {
        let Some(renames) = self.renames.sent.get(&tid) else {
            return Called::AsNow;
        };
        let next = renames.after(time).map(|next| next.what);
        let last = renames.before(time).map(|last| last.what);
        match (next, last) {
            (Some((old, _)), _) if old.is_empty() => Called::Unknown,
            (Some((old, _)), _) => Called::Then(old),
            (None, Some((_, taken))) if !taken.is_empty() => Called::Since(taken),
            (None, _) => Called::AsNow,
        }
    }

    /// The name that a thread had, and the text for it; the text has both names if it is unknown which one applied.
    fn name(&self, tid: i32, called: Called, resolver: &dyn NameResolver) -> Option<(Comm, Name)> {
        let now = || resolver.comm(tid);
        match called {
            Called::Unknown => None,
            Called::Then(comm) => Some((comm, resolver.text(comm))),
            Called::AsNow => now().map(|name| (Comm::new(&name), name)),
            Called::Since(comm) => {
                let (taken, now) = (resolver.text(comm), now());
                let other = now.filter(|now| *now != taken);
                let both = other.map(|now| format!("{taken} or {now}").into());
                Some((comm, both.unwrap_or(taken)))
            }
        }
    }

    /// A trigger with its names.
    pub(crate) fn sender(&self, trigger: Trigger, resolver: &dyn NameResolver) -> Sender {
        let Trigger {
            tid,
            context,
            cpu,
            via,
            called,
        } = trigger;
        let is_thread = context == ExecutionContext::Thread;
        let is_softirq = context == ExecutionContext::Softirq && !self.spinners.contains(&tid);
        let name = (is_thread || is_softirq)
            .then(|| self.name(tid, called, resolver))
            .flatten();
        let own = name.as_ref().filter(|_| is_thread);
        let tgid = own.and_then(|(comm, _)| resolver.identity(tid, *comm).tgid);
        Sender {
            context,
            comm: own.map(|(_, text)| text.clone()),
            tid: if is_thread { tid } else { 0 },
            tgid,
            cpu,
            via: (via.0 != 0).then(|| resolver.function(via)),
            beneath: name.filter(|_| is_softirq).map(|(_, text)| text),
        }
    }
}

#[cfg(test)]
#[path = "senders_tests.rs"]
mod tests;
