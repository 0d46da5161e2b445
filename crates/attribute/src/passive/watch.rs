//! Tracks which thread waits for which watched CPU, and splits the CPU's time.

use super::cpu::Cpu;
use super::members::{Belonging, Member, Members, State, Wait};
use super::settings::PassiveSettings;
use super::stall::PassiveStall;
use crate::bandwidth::{Bandwidth, GroupThrottled};
use crate::culprits::{Naming, Waits};
use crate::name_resolver::NameResolver;
use crate::occupancy::{NameTable, Record, Window, frame_priority};
use crate::senders::Senders;
use crate::windows::passive::{Change, Piece, Waiting, pieces};
use crate::windows::throttled::{self, Throttling};
use crate::windows::{Named, Scratch};
use jitterscope_model::{
    Comm, CpuId, DrainTurn, EndedEarly, EventKind, KernelEvent, Name, Nanos, PassiveCpu, Phase,
    TaskRef, ThreadRef, Ticks, Verdict,
};
use std::collections::BTreeMap;

/// Sleep states of a switch; the bit above them marks a preempted thread, which is runnable.
const TASK_STATES: u64 = 0xff;
/// `EXIT_DEAD` and `EXIT_ZOMBIE`.
const ENDED: u64 = 0x30;
/// A wake-up within this time before its thread went to sleep may have come while the thread was going to sleep; a move
/// within this time after a wake-up, by the waker itself, is the choice of the thread's CPU.
const AT_ONCE: Nanos = Nanos(20_000);
/// Maximum of waits per window; beyond it the window is closed.
const MOST_WAITS: usize = 1024;
/// An id of no thread.
const NOBODY: i32 = -1;

/// Watches CPUs. Pass the records of all CPUs in order of time.
#[derive(Debug)]
pub struct PassiveWatch {
    settings: PassiveSettings,
    cpus: BTreeMap<CpuId, Cpu>,
    members: Members,
    names: NameTable,
    senders: Senders,
    bandwidth: Bandwidth,
    window: Window,
    /// Memory for its names.
    scratch: Scratch,
    finished: Vec<PassiveStall>,
    from: Ticks,
    until: Ticks,
    now: Ticks,
    folded: Ticks,
}

impl PassiveWatch {
    /// Maximum of belonging threads.
    pub const MOST_THREADS: usize = 4096;

    #[must_use]
    pub fn new(settings: PassiveSettings) -> PassiveWatch {
        PassiveWatch {
            cpus: settings
                .cpus
                .iter()
                .map(|id| (id, Cpu::new(id, settings.rate)))
                .collect(),
            members: Members::new(settings.names.clone(), PassiveWatch::MOST_THREADS),
            senders: senders_of(&settings),
            settings,
            names: NameTable::default(),
            bandwidth: Bandwidth::default(),
            window: Window::default(),
            scratch: Scratch::default(),
            finished: Vec::new(),
            from: Ticks(u64::MAX),
            until: Ticks(u64::MAX),
            now: Ticks(0),
            folded: Ticks(0),
        }
    }

    /// Sets the time span that counts; before this call none does.
    pub fn measure(&mut self, from: Ticks, until: Ticks) {
        (self.from, self.until) = (from, until);
    }

    /// A thread belongs from now on.
    pub fn belongs(&mut self, who: Belonging) {
        self.members.add(who);
    }

    /// Whether any thread ever belonged.
    #[must_use]
    pub fn met_owner(&self) -> bool {
        self.members.ever
    }

    /// Threads that do not count as belonging because there were too many.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.members.refused
    }

    /// Switches that must have happened but were not recorded, by CPU.
    #[must_use]
    pub fn unrecorded_switches(&self) -> BTreeMap<CpuId, u64> {
        let all = self
            .cpus
            .iter()
            .map(|(id, cpu)| (*id, cpu.machine.unrecorded_switches()));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// Time with more activity than can be kept in order.
    #[must_use]
    pub fn folded(&self) -> Ticks {
        self.folded
    }

    /// Records of the sending side were lost between two times.
    pub fn senders_lost(&mut self, from: Ticks, to: Ticks) {
        self.senders.lost(from, to);
    }

    /// Records of senders that were dropped although they might have been needed, because there were too many at once.
    #[must_use]
    pub fn senders_dropped(&self) -> u64 {
        self.senders.dropped()
    }

    /// The counts of CPU quotas up to the end of the next records.
    pub fn quotas(&mut self, turn: &DrainTurn) {
        self.bandwidth.turn(turn, self.from <= self.now);
    }

    /// Control groups that were throttled.
    pub fn throttled(&self) -> impl Iterator<Item = &GroupThrottled> {
        self.bandwidth.throttled()
    }

    /// Threads that changed their control group since the last call, of a process its first thread, and the path of the new
    /// group if a record names it. None unless owners are control groups.
    pub fn take_moved(&mut self) -> Vec<(i32, Option<Name>)> {
        std::mem::take(&mut self.members.moved)
    }

    /// Threads that belong since the last call.
    pub fn take_newly_followed(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.members.newly)
    }

    /// A record of the watched CPUs or of a sender.
    pub fn event(&mut self, event: &KernelEvent, resolver: &dyn NameResolver) {
        self.now = self.now.max(event.time);
        self.senders.note(event);
        match &event.kind {
            // These come from all CPUs, and affect the threads that they name.
            EventKind::SchedWaking { task, target } => {
                self.members.meet(task.tid, task.comm);
                return self.woken(event, task, *target, resolver);
            }
            EventKind::SchedMigrate { task, from, to } => {
                self.members.meet(task.tid, task.comm);
                if let Some(cpu) = self.cpus.get_mut(to) {
                    cpu.machine.arrived(task.tid, event.time);
                }
                return self.migrated(event, task, (*from, *to), resolver);
            }
            EventKind::TaskNew {
                tid,
                comm,
                thread,
                into_cgroup,
            } => {
                self.bandwidth.begun(*tid, event.tid);
                if *into_cgroup {
                    self.members.moved(*tid, None, &self.settings);
                }
                let inherits = match (*thread, *into_cgroup) {
                    (_, true) => false,
                    (true, false) => self.settings.new_threads,
                    (false, false) => self.settings.children,
                };
                return self.begun(event, *tid, *comm, inherits);
            }
            EventKind::CgroupAttach { tid, path, .. } => {
                return self.members.moved(*tid, Some(path), &self.settings);
            }
            EventKind::TaskRename { tid, old, comm } => {
                let names = (self.names.comm_id(*old), self.names.comm_id(*comm));
                for cpu in self.cpus.values_mut() {
                    cpu.machine.renamed(*tid, names, event.time);
                }
                return self.members.meet(*tid, *comm);
            }
            EventKind::CsdQueued { .. }
            | EventKind::WorkQueued { .. }
            | EventKind::IpiSendCpu { .. }
            | EventKind::IpiSendCpumask { .. } => return,
            _ => {}
        }
        self.on_cpu(event, resolver);
    }

    fn on_cpu(&mut self, event: &KernelEvent, resolver: &dyn NameResolver) {
        let (id, at) = (event.cpu, event.time);
        let Some(cpu) = self.cpus.get_mut(&id) else {
            return;
        };
        if cpu.gone.is_some_and(|gone| gone < at) {
            // It is back online.
            let last = cpu.last;
            cpu.gone = None;
            self.lost(id, (last, at), Verdict::TraceDataLost, resolver);
        }
        let Some(cpu) = self.cpus.get_mut(&id) else {
            return;
        };
        let record = Record::new(event, &mut self.names);
        let was = cpu.machine.is_interrupted();
        cpu.machine.record(&record);
        cpu.last = cpu.last.max(at);
        let ended = was && !cpu.machine.is_interrupted();
        let turn = *cpu.machine.turn();
        if let EventKind::SchedSwitch {
            prev,
            prev_state,
            next,
        } = &event.kind
        {
            self.members.meet(prev.tid, prev.comm);
            self.members.meet(next.tid, next.comm);
            return self.switched(event, (prev, *prev_state), next, resolver);
        }
        let own = turn.is_turn() && self.members.on(id, turn.tid).is_some();
        if own && matches!(event.kind, EventKind::PageFault { .. }) && self.counts(at) {
            self.cpus
                .entry(id)
                .and_modify(|cpu| cpu.account.page_faults += 1);
        }
        if own
            && self
                .members
                .get(turn.tid)
                .is_some_and(|member| !is_running(member, id))
        {
            // No recorded switch put it on the CPU.
            self.put_on(id, turn.tid, at);
        }
        if ended && own {
            self.close(id, at, resolver);
        }
    }

    fn switched(
        &mut self,
        event: &KernelEvent,
        (prev, prev_state): (&TaskRef, u64),
        next: &TaskRef,
        resolver: &dyn NameResolver,
    ) {
        let (id, at) = (event.cpu, event.time);
        let belongs = |tid: i32| self.members.on(id, tid).is_some();
        let (left, came) = (belongs(prev.tid), belongs(next.tid));
        let waits = self
            .cpus
            .get(&id)
            .is_some_and(|cpu| cpu.waits.iter().any(|w| w.until.is_none()));
        // A wait is one window, so that its culprits are named with all available facts; so is another thread's turn.
        if left || came || !waits {
            self.close(id, at, resolver);
        }
        if prev_state & ENDED != 0 {
            if let Some(member) = self.members.remove(prev.tid) {
                self.end_wait_of(&member, at);
            }
        } else if left {
            self.switched_out(id, prev.tid, prev_state, at);
        } else if let Some(member) = self.members.get_mut(prev.tid) {
            // It belongs on another CPU.
            member.state = State::Unknown;
        }
        if came {
            self.put_on(id, next.tid, at);
            let thread = self.members.on(id, next.tid).filter(|_| self.counts(at));
            if let (Some(thread), Some(cpu)) = (thread, self.cpus.get_mut(&id)) {
                cpu.account.run_begins(thread);
            }
        }
    }

    fn switched_out(&mut self, id: CpuId, tid: i32, prev_state: u64, at: Ticks) {
        let Some(member) = self.members.get_mut(tid) else {
            return;
        };
        let woken = match member.state {
            State::Running { woken, .. } => woken,
            _ => None,
        };
        member.state = State::Asleep;
        let at_once = self.settings.rate.ticks(AT_ONCE);
        let phase = if prev_state & TASK_STATES == 0 {
            Phase::Preempted
        } else if woken.is_some_and(|woken| at.since(woken) <= at_once) {
            Phase::WaitAfterWakeUp
        } else {
            return;
        };
        let guessed = phase == Phase::WaitAfterWakeUp;
        self.wait(id, Wait::of(tid, at, phase), guessed);
    }

    /// A thread begins to wait for a watched CPU.
    fn wait(&mut self, id: CpuId, wait: Wait, guessed: bool) {
        let Some(member) = self.members.get_mut(wait.tid) else {
            return;
        };
        let Some(cpu) = self.cpus.get_mut(&id).filter(|_| member.belongs_on(id)) else {
            member.state = State::Unknown;
            return;
        };
        member.state = State::Waiting { cpu: id, guessed };
        cpu.waits.push(wait);
    }

    fn end_wait_of(&mut self, member: &Member, at: Ticks) {
        let State::Waiting { cpu, .. } = member.state else {
            return;
        };
        let waits = self.cpus.get_mut(&cpu).map(|cpu| &mut cpu.waits);
        let open = |wait: &&mut Wait| wait.tid == member.id.tid && wait.until.is_none();
        if let Some(wait) = waits.into_iter().flatten().find(open) {
            wait.until = Some(at);
        }
    }

    fn put_on(&mut self, id: CpuId, tid: i32, at: Ticks) {
        let Some(member) = self.members.get(tid).copied() else {
            return;
        };
        self.end_wait_of(&member, at);
        if let Some(member) = self.members.get_mut(tid) {
            member.state = State::Running {
                cpu: id,
                woken: None,
            };
        }
    }

    fn woken(
        &mut self,
        event: &KernelEvent,
        task: &TaskRef,
        target: CpuId,
        resolver: &dyn NameResolver,
    ) {
        let (at, tid) = (event.time, task.tid);
        let Some(member) = self.members.get(tid).copied() else {
            return;
        };
        let has = |cpu: &Cpu| cpu.machine.turn().is_turn() && cpu.machine.turn().tid == tid;
        let running = self
            .cpus
            .iter()
            .find(|(_, cpu)| has(cpu))
            .map(|(id, _)| *id);
        match (member.state, running) {
            (State::Running { cpu, .. }, _) | (State::Unknown, Some(cpu)) => {
                if let Some(member) = self.members.get_mut(tid) {
                    member.state = State::Running {
                        cpu,
                        woken: Some(at),
                    };
                }
                return;
            }
            (State::Waiting { guessed: false, .. }, _) => return,
            // It did sleep.
            (State::Waiting { guessed: true, .. }, _) => self.end_wait_of(&member, at),
            (State::Unknown | State::Asleep, _) => {}
        }
        let wait = Wait {
            prio: Some(frame_priority(task)),
            woken_by: Some((event.cpu, event.tid)),
            ..Wait::of(tid, at, Phase::WaitAfterWakeUp)
        };
        self.wait(target, wait, false);
        self.close_if_long(target, at, resolver);
    }

    fn migrated(
        &mut self,
        event: &KernelEvent,
        task: &TaskRef,
        (from, to): (CpuId, CpuId),
        resolver: &dyn NameResolver,
    ) {
        let (at, tid) = (event.time, task.tid);
        let Some(member) = self.members.get(tid).copied() else {
            return;
        };
        let mut phase = Phase::WaitAfterWakeUp;
        if let State::Waiting { cpu, .. } = member.state {
            let at_once = self.settings.rate.ticks(AT_ONCE);
            let by = (event.cpu, event.tid);
            let waits = self.cpus.get_mut(&cpu).map(|cpu| &mut cpu.waits);
            let found = waits.and_then(|waits| {
                let index = waits
                    .iter()
                    .position(|wait| wait.tid == tid && wait.until.is_none())?;
                Some((waits, index))
            });
            if let Some((waits, index)) = found {
                phase = waits[index].phase.clone();
                if waits[index].woken_by == Some(by) && at.since(waits[index].since) <= at_once {
                    // Its waker only chose a CPU for it now: it never waited here.
                    waits.remove(index);
                } else {
                    waits[index].until = Some(at);
                }
            }
        } else if matches!(member.state, State::Running { cpu, .. } if cpu != from) {
            return;
        }
        // Only runnable threads are moved.
        let wait = Wait {
            prio: Some(frame_priority(task)),
            ..Wait::of(tid, at, phase)
        };
        self.wait(to, wait, false);
        self.close_if_long(to, at, resolver);
    }

    /// A thread begins; `inherits`: it belongs if its creator does.
    fn begun(&mut self, event: &KernelEvent, tid: i32, comm: Comm, inherits: bool) {
        for cpu in self.cpus.values_mut() {
            cpu.machine.arrived(tid, event.time);
        }
        // The earlier thread with this id has ended without a record.
        if let Some(before) = self.members.remove(tid) {
            self.end_wait_of(&before, event.time);
        }
        let belongs = inherits && self.members.get(event.tid).is_some();
        if belongs || self.members.is_wanted(comm) {
            self.members.add(Belonging {
                thread: ThreadRef { tid, comm },
                on: None,
                asleep: false,
            });
        }
    }

    /// Records of a CPU were lost between `at` and `to`, or are not trusted, as `why` says.
    pub fn lost(
        &mut self,
        id: CpuId,
        (at, to): (Ticks, Ticks),
        why: Verdict,
        resolver: &dyn NameResolver,
    ) {
        if !self.cpus.contains_key(&id) {
            return;
        }
        self.close(id, at, resolver);
        self.members.forget(id);
        let Some(cpu) = self.cpus.get_mut(&id) else {
            return;
        };
        if let Some(stall) = cpu.pending.as_mut().filter(|stall| stall.end >= at) {
            stall.withhold(why);
        }
        cpu.waits.clear();
        cpu.machine.lost(at, to);
        self.senders.lost(at, to);
    }

    /// A CPU was found to be offline at `at`, some time after its last record: from then on nothing is known of it,
    /// unless it comes back.
    pub fn gone(&mut self, id: CpuId, at: Ticks) {
        if let Some(cpu) = self.cpus.get_mut(&id) {
            cpu.gone = Some(at);
        }
    }

    /// Whether a CPU was found to be offline, and has written no record since.
    #[must_use]
    pub fn is_gone(&self, id: CpuId) -> bool {
        self.cpus.get(&id).is_some_and(|cpu| cpu.gone.is_some())
    }

    /// Stalls that are complete so far: a stall is complete when a record shows what came after it.
    pub fn take_stalls(&mut self) -> Vec<PassiveStall> {
        std::mem::take(&mut self.finished)
    }

    /// The accounts of all CPUs, as of `at`.
    pub fn finish(&mut self, at: Ticks, resolver: &dyn NameResolver) -> Vec<PassiveCpu> {
        let at = at.min(self.until);
        let ids: Vec<CpuId> = self.cpus.keys().copied().collect();
        let threshold = self.settings.threshold;
        let mut results = Vec::new();
        for id in ids {
            if let Some(cpu) = self.cpus.get(&id).filter(|cpu| cpu.gone.is_some()) {
                let last = cpu.last;
                self.lost(id, (last, last), Verdict::TraceDataLost, resolver);
            }
            self.close(id, at, resolver);
            let Some(cpu) = self.cpus.get_mut(&id) else {
                continue;
            };
            cpu.end_stall(threshold, &mut self.finished);
            let watched = (self.from.min(at), at);
            let mut result = cpu.account.sum_up(id, watched, self.settings.rate);
            result.ended_early = cpu.gone.map(|_| EndedEarly::Offline.into());
            results.push(result);
        }
        results
    }

    fn counts(&self, at: Ticks) -> bool {
        self.from <= at && at <= self.until
    }

    fn close_if_long(&mut self, id: CpuId, at: Ticks, resolver: &dyn NameResolver) {
        if self
            .cpus
            .get(&id)
            .is_some_and(|cpu| cpu.waits.len() >= MOST_WAITS)
        {
            self.close(id, at, resolver);
        }
    }

    /// Ends the window of a CPU, evaluates it, and begins the next.
    fn close(&mut self, id: CpuId, at: Ticks, resolver: &dyn NameResolver) {
        let (measured_from, measured_until) = (self.from, self.until);
        let PassiveWatch {
            settings,
            cpus,
            members,
            names,
            senders,
            bandwidth,
            window,
            scratch,
            finished,
            folded,
            ..
        } = self;
        let Some(cpu) = cpus.get_mut(&id) else { return };
        let Some(mark) = cpu.mark.take() else { return };
        cpu.machine.close_mark(mark, at, window);
        cpu.mark = Some(cpu.machine.open_mark(at));
        *folded = *folded + window.folded();
        let changes = changes(&cpu.waits, members);
        let waited: Vec<(i32, Waits)> = cpu.waits.iter().filter_map(Wait::reported).collect();
        cpu.waits.retain(|wait| wait.until.is_none());
        if window.until <= measured_from {
            return;
        }
        // The thread that throttling keeps from the CPU.
        let victim = cpu.waits.first().map_or(NOBODY, |wait| wait.tid);
        let victim = changes
            .iter()
            .find_map(|c| c.waiting.as_ref())
            .map_or(victim, |w| w.thread.tid);
        let of_victim = waited.iter().filter(|(tid, _)| *tid == victim);
        let waits: Vec<Waits> = of_victim.map(|(_, waits)| *waits).collect();
        let throttling = Throttling {
            cpu: id,
            victim,
            waits: &waits,
            bandwidth,
            resolver,
            rate: settings.rate,
            is_over: false,
        };
        throttled::mark(window, &throttling);
        let naming = Naming {
            cpu: id,
            victim,
            names,
            senders,
            resolver,
            quotas: &window.quotas,
            folded: false,
        };
        let named = Named::reusing(std::mem::take(scratch), window, naming, &[], settings.rate);
        let found = pieces(&named, &changes, |tid| members.on(id, tid));
        *scratch = named.into_scratch();
        let clipped = found.into_iter().filter_map(|piece| {
            let (start, end) = (
                piece.start.max(measured_from),
                piece.end.min(measured_until),
            );
            (start < end).then_some(Piece {
                start,
                end,
                ..piece
            })
        });
        cpu.take_in(clipped.collect(), settings, finished);
    }
}

fn senders_of(settings: &PassiveSettings) -> Senders {
    let mut senders = Senders::of_some_wakings(settings.rate);
    let cpus = settings.cpus.iter();
    cpus.for_each(|cpu| senders.records_wakings_of(cpu));
    senders
}

fn is_running(member: &Member, on: CpuId) -> bool {
    matches!(member.state, State::Running { cpu, .. } if cpu == on)
}

/// The first of all waiting threads, over time.
fn changes(waits: &[Wait], members: &Members) -> Vec<Change> {
    let mut moments: Vec<Ticks> = waits
        .iter()
        .flat_map(|wait| [Some(wait.since), wait.until])
        .flatten()
        .collect();
    moments.sort_unstable();
    moments.dedup();
    let first = |at: Ticks| {
        let open = |wait: &&Wait| wait.since <= at && wait.until.is_none_or(|until| at < until);
        waits.iter().find(open).map(|wait| {
            let thread = members.get(wait.tid).map(|member| member.id);
            let thread = thread.unwrap_or(ThreadRef {
                tid: wait.tid,
                comm: Comm::default(),
            });
            Waiting {
                thread,
                phase: wait.phase.clone(),
            }
        })
    };
    moments
        .into_iter()
        .map(|at| Change {
            at,
            waiting: first(at),
        })
        .collect()
}
