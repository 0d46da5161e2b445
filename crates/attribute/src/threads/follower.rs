//! The state machine: takes records, returns episodes and accounts.

use super::Episode;
use super::account::Account;
use super::cpus::Cpus;
use super::freezes::Freezes;
use super::sleeps::Reasons;
use super::state::{ENDED, Start, State, Thread};
use super::summed::Room;
use crate::bandwidth::{Bandwidth, GroupThrottled};
use crate::culprits;
use crate::name_resolver::NameResolver;
use crate::senders::Senders;
use crate::windows::{MessageWindow, split_message};
use jitterscope_model::{
    Attribution, Comm, CpuId, CpuSet, DrainTurn, EventKind, KernelEvent, Nanos, Phase, PutInOrder,
    StallId, ThreadAccount, ThreadRef, TickRate, Ticks, Verdict,
};
use std::collections::{BTreeMap, VecDeque};

const MOST_LOSSES: usize = 256;

/// How threads are followed.
#[derive(Clone, Debug)]
pub struct FollowerSettings {
    /// Ticks to nanoseconds.
    pub rate: TickRate,
    /// Episodes of a thread with at most this distance count as one.
    pub join_within: Ticks,
    /// How long episodes are kept for messages; zero without messages.
    pub remember: Ticks,
    /// Whether later threads of a followed process are followed, too.
    pub new_threads: bool,
    /// Whether processes that a followed process makes are followed, too.
    pub children: bool,
    /// Threads with these names are followed wherever they appear.
    pub names: Vec<Comm>,
    /// Restricts `names` to this user, because any user may use a name. A thread is not followed until its user is
    /// known.
    pub user: Option<u32>,
    /// Maximum of followed threads.
    pub most_threads: usize,
    /// A virtual machine: its host may stop a CPU in the middle of a turn.
    pub virtual_machine: bool,
    /// Whether the stacks of threads that go to sleep are recorded.
    pub stacks: bool,
    /// The CPUs whose switches are recorded; `None` for all. Of any other CPU it is unknown who has it, and who waits.
    pub switches: Option<CpuSet>,
}

/// A thread to follow.
#[derive(Clone, Copy, Debug)]
pub struct Following {
    pub thread: ThreadRef,
    /// Its role in a probe.
    pub role: Option<&'static str>,
    /// Its known state at the start.
    pub start: Start,
}

/// Follows threads. Pass the records of all CPUs in order of time.
#[derive(Debug)]
pub struct ThreadFollower {
    pub(super) settings: FollowerSettings,
    pub(super) threads: BTreeMap<i32, Thread>,
    pub(super) ended: Vec<Thread>,
    pub(super) cpus: Cpus,
    pub(super) senders: Senders,
    pub(super) bandwidth: Bandwidth,
    pub(super) freezes: Freezes,
    /// Threads followed since the last `take_newly_followed`.
    newly: Vec<i32>,
    pub(super) finished: Vec<Episode>,
    pub(super) from: Ticks,
    pub(super) until: Ticks,
    pub(super) now: Ticks,
    pub(super) refused: u64,
    pub(super) met_late: u64,
    pub(super) missed: u64,
    pub(super) losses: VecDeque<(Ticks, Ticks, Verdict)>,
    /// The remaining capacity for slices of waits.
    pub(super) room: Room,
    /// The end of each CPU's last loss.
    pub(super) blind: BTreeMap<CpuId, Ticks>,
    /// Whether a charge of the scheduler has been recorded.
    pub(super) has_charges: bool,
    pub(super) reasons: Reasons,
}

impl ThreadFollower {
    /// Follows no thread yet.
    #[must_use]
    pub fn new(settings: FollowerSettings) -> ThreadFollower {
        ThreadFollower {
            cpus: Cpus::new(settings.rate, settings.virtual_machine),
            senders: Senders::new(settings.rate),
            threads: BTreeMap::new(),
            ended: Vec::new(),
            bandwidth: Bandwidth::default(),
            freezes: Freezes::new(settings.rate),
            settings,
            newly: Vec::new(),
            finished: Vec::new(),
            from: Ticks(u64::MAX),
            until: Ticks(u64::MAX),
            now: Ticks(0),
            refused: 0,
            met_late: 0,
            missed: 0,
            losses: VecDeque::new(),
            room: Room::default(),
            blind: BTreeMap::new(),
            has_charges: false,
            reasons: Reasons::default(),
        }
    }

    /// Follows a thread from `at` on. Records after `at` must not have been passed yet.
    pub fn follow(&mut self, who: Following, at: Ticks) {
        if self.threads.contains_key(&who.thread.tid) {
            return;
        }
        if self.threads.len() + self.ended.len() >= self.settings.most_threads {
            self.refused += 1;
            return;
        }
        let state = match who.start {
            // A CPU without switches may have had it before the first record that shows it.
            Start::Unknown => State::Unknown {
                lossy: self.settings.switches.is_some(),
            },
            Start::Asleep => State::Blocked,
            Start::Stopped(by) => State::Stopped(by),
        };
        let thread = Thread {
            id: who.thread,
            role: who.role,
            state,
            since: at,
            from: at,
            appeared: false,
            cpu: None,
            account: Account::default(),
            pending: None,
            told_until: Ticks(0),
            doubted: None,
            history: VecDeque::new(),
            slept_at_once: false,
            sleep: None,
            early: None,
        };
        self.newly.push(who.thread.tid);
        self.threads.insert(who.thread.tid, thread);
    }

    /// Sets the time span that counts; before this call none does.
    pub fn measure(&mut self, from: Ticks, until: Ticks) {
        (self.from, self.until) = (from, until);
    }

    /// Whether no followed thread is left.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.threads.is_empty()
    }

    /// Threads that were not followed because there were too many.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether a large share of switches (at least one in a hundred, and four) left no record: then only a charge shows
    /// since when a thread has had its CPU.
    #[must_use]
    pub fn misses_switches(&self) -> bool {
        self.cpus.misses_switches()
    }

    /// Switches that must have happened but were not recorded, by CPU. Some kernels record nothing of some threads, so
    /// that other threads seem to leave a CPU without having been put on it.
    #[must_use]
    pub fn unrecorded_switches(&self) -> BTreeMap<CpuId, u64> {
        let mut unrecorded = self.cpus.unrecorded_switches();
        unrecorded.retain(|cpu, _| self.shows_switches(*cpu));
        unrecorded
    }

    /// Whether the switches of a CPU are recorded.
    pub(super) fn shows_switches(&self, cpu: CpuId) -> bool {
        let recorded = self.settings.switches.as_ref();
        recorded.is_none_or(|cpus| cpus.contains(cpu))
    }

    /// Waiting time of followed threads with more activity than can be kept: sums per culprit are exact there, but the
    /// order of events and their senders are unknown.
    #[must_use]
    pub fn folded(&self) -> Ticks {
        self.cpus.folded()
    }

    /// Records of senders that were dropped although they might have been needed, because there were too many at once.
    #[must_use]
    pub fn senders_dropped(&self) -> u64 {
        self.senders.dropped()
    }

    /// The counts of CPU quotas up to the end of the next records.
    pub fn quotas(&mut self, turn: &DrainTurn) {
        // Threads are only followed from the beginning of the measurement on.
        self.bandwidth.turn(turn, true);
        self.freezes.turn(turn);
    }

    /// Control groups that were throttled.
    pub fn throttled(&self) -> impl Iterator<Item = &GroupThrottled> {
        self.bandwidth.throttled()
    }

    /// Threads followed since the last call.
    pub fn take_newly_followed(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.newly)
    }

    /// A record of the measured CPUs or of a sender.
    pub fn event(&mut self, event: &KernelEvent, resolver: &dyn NameResolver) {
        self.now = self.now.max(event.time);
        self.senders.note(event);
        match &event.kind {
            EventKind::SchedSwitch {
                prev,
                prev_state,
                next,
            } => {
                match prev_state & ENDED {
                    0 => self.meet(prev, event.time, resolver),
                    _ => self.miss(prev, event.time, resolver),
                }
                self.switched_out(event, prev, *prev_state);
                self.cpus.forget_interrupt(event.cpu);
                self.cpus.record(event, false);
                self.meet(next, event.time, resolver);
                self.switched_in(event, next, resolver);
            }
            EventKind::SchedWaking { task, target } => {
                self.meet(task, event.time, resolver);
                self.woken(event, task, *target, resolver);
            }
            EventKind::SchedMigrate { task, from, to } => {
                self.migrated(event, task, (*from, *to), resolver);
            }
            EventKind::StatRuntime { tid, runtime_ns } => {
                self.charged(event, *tid, Nanos(*runtime_ns), resolver);
            }
            EventKind::TaskNew {
                tid, comm, thread, ..
            } => {
                self.begun(event, *tid, *comm, *thread, resolver);
            }
            EventKind::TaskRename { tid, old, comm } => {
                self.cpus.renamed(*tid, (*old, *comm), event.time);
                self.renamed(event, *tid, *comm, resolver);
            }
            _ => self.on_cpu(event, resolver),
        }
    }

    /// Records of a CPU were lost between `at` and `to`, or are not trusted, as `why` says.
    pub fn lost(
        &mut self,
        cpu: CpuId,
        (at, to): (Ticks, Ticks),
        why: Verdict,
        resolver: &dyn NameResolver,
    ) {
        if self.losses.len() >= MOST_LOSSES {
            self.losses.pop_front();
        }
        self.losses.push_back((at, to, why));
        self.senders.lost(at, to);
        let touched: Vec<i32> = self
            .threads
            .iter()
            .filter(|(_, thread)| match &thread.state {
                State::Running { cpu: on, .. } => *on == cpu,
                State::Runnable { leg, .. } => leg.cpu == cpu,
                // The process that let it continue may have done so from any CPU.
                State::Stopped(_) => true,
                _ => false,
            })
            .map(|(tid, _)| *tid)
            .collect();
        for tid in touched {
            // Records of other CPUs may have mentioned it since.
            let at = self
                .threads
                .get(&tid)
                .map_or(at, |thread| thread.since.max(at));
            self.end_wait(tid, at, resolver);
            self.account(tid, at);
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.state = State::Unknown { lossy: true };
            }
        }
        // The wake-up of a sleeper may be among the lost records.
        for thread in self.threads.values_mut() {
            if matches!(thread.state, State::Blocked)
                && thread.doubted.is_none_or(|of| of < thread.since)
            {
                thread.doubted = Some(at.max(thread.since));
            }
        }
        let blind = self.blind.entry(cpu).or_default();
        *blind = to.max(*blind);
        self.cpus.lost(cpu, at, to);
    }

    /// Records of the sending side were lost between two times.
    pub fn senders_lost(&mut self, from: Ticks, to: Ticks) {
        self.senders.lost(from, to);
    }

    /// Episodes that are complete so far.
    pub fn take_episodes(&mut self) -> Vec<Episode> {
        let settled = self.now - self.settings.join_within;
        for thread in self.threads.values_mut() {
            let over = thread
                .pending
                .as_ref()
                .is_some_and(|episode| episode.end < settled);
            if over && let Some(episode) = thread.pending.take() {
                self.finished.push(episode);
            }
        }
        std::mem::take(&mut self.finished)
    }

    /// Splits a slow message between two followed threads. Requires their records up to its reception.
    #[must_use]
    pub fn split(
        &self,
        id: StallId,
        (producer, consumer): (i32, i32),
        window: &MessageWindow,
        resolver: &dyn NameResolver,
    ) -> Attribution {
        let rate = self.settings.rate;
        let touched =
            |(from, to, _): &&(Ticks, Ticks, _)| *from <= window.received && window.intended <= *to;
        if let Some((.., why)) = self.losses.iter().find(touched) {
            let stalled = rate.nanos(window.received.since(window.intended));
            let part = culprits::no_verdict(*why, stalled);
            return Attribution {
                stall: id,
                parts: vec![part.in_phase(Phase::LostRecords)],
            };
        }
        let since = window.intended;
        let producing = match window.in_kernel {
            true => window.received,
            false => window.published,
        };
        let producers = self.under_way(producer, producing, resolver);
        let consumers = self.under_way(consumer, window.received, resolver);
        let producer = self.history(producer, since).chain(&producers);
        let consumer = self.history(consumer, since).chain(&consumers);
        split_message(id, window, producer, consumer, rate)
    }

    /// A followed thread's episodes after `since`, oldest first.
    fn history(&self, tid: i32, since: Ticks) -> impl Iterator<Item = &Episode> + Clone {
        // The last messages of a thread are split after it has ended.
        let ended = || self.ended.iter().rev().find(|thread| thread.id.tid == tid);
        self.threads
            .get(&tid)
            .or_else(ended)
            .into_iter()
            .flat_map(move |thread| {
                let first = thread
                    .history
                    .partition_point(|episode| episode.end <= since);
                thread.history.range(first..)
            })
    }

    /// The accounts of all threads that were ever followed, as of `at`.
    pub fn finish(&mut self, at: Ticks, resolver: &dyn NameResolver) -> Vec<ThreadAccount> {
        let at = at.min(self.until);
        let open: Vec<i32> = self.threads.keys().copied().collect();
        if self.settings.switches.is_some() {
            // A CPU without switches may have taken over who still waits.
            for tid in &open {
                self.lose_wait(*tid, at);
            }
        }
        self.end_common_waits(at, resolver);
        for tid in open {
            self.end_wait(tid, at, resolver);
            self.account(tid, at);
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.settle(&mut self.reasons, self.settings.stacks);
                self.finished.extend(thread.pending.take());
            }
        }
        let (rate, from, reasons) = (self.settings.rate, self.from, &self.reasons);
        let sum_up = |thread: &Thread| ThreadAccount {
            from: thread.from.max(from),
            until: thread.since.max(from).min(at),
            appeared: thread.appeared && thread.from >= from,
            exited: matches!(thread.state, State::Exited),
            ..thread.account.sum_up(thread.id, thread.role, reasons, rate)
        };
        let mut accounts: Vec<ThreadAccount> = self
            .ended
            .iter()
            .chain(self.threads.values())
            // The last pages also contain threads that began after the end.
            .filter(|t| t.since > from && t.from < at)
            .map(sum_up)
            .collect();
        accounts.order_by_key(|account| (account.from, account.tid));
        accounts
    }

    /// Whether events at `at` count.
    pub(super) fn counts(&self, at: Ticks) -> bool {
        self.from <= at && at <= self.until
    }

    /// Adds the time up to `at` to the thread's current state.
    pub(super) fn account(&mut self, tid: i32, at: Ticks) {
        let (from, until) = (self.from, self.until);
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let length = at.min(until).since(thread.since.max(from));
        thread.since = thread.since.max(at);
        let account = &mut thread.account;
        let sum = match &thread.state {
            State::Unknown { .. } => &mut account.unknown,
            State::Running { cpu, .. } => return account.ran(*cpu, length),
            State::Runnable { preempted, .. } => {
                if *preempted {
                    account.preempted = account.preempted + length;
                }
                &mut account.waiting
            }
            State::Stopped(_) => &mut account.stopped,
            State::Blocked => {
                account.blocked = account.blocked + length;
                return thread.slept(length);
            }
            State::Exited => return,
        };
        *sum = *sum + length;
    }
}
