//! The effect of each record on the threads that it concerns.

use super::closing::{Tail, append};
use super::cpus::Asking;
use super::follower::{Following, ThreadFollower};
use super::state::{ENDED, Leg, Start, State, Thread};
use super::stopped::stopped_by;
use super::summed::summed;
use super::{Episode, EpisodeKind};
use crate::name_resolver::NameResolver;
use crate::occupancy::{Frame, Mark, frame_priority};
use jitterscope_model::{
    Comm, CpuId, EventKind, KernelEvent, Nanos, Sender, TaskRef, ThreadRef, Ticks,
};

/// Sleep states of `prev_state`; the bit above them marks a preempted task, which is runnable.
const TASK_STATES: u64 = 0xff;
/// A wake-up within this time before its thread went to sleep may have come while the thread was going to sleep.
const WOKEN_ON_THE_WAY: Nanos = Nanos(1_000_000);
/// Maximum of episodes per thread for splitting messages.
const MOST_HISTORY: usize = 1 << 14;

/// The beginning of a wait after a wake-up.
#[derive(Default)]
struct Waking {
    waker: Option<Sender>,
    guessed: bool,
    prio: i16,
}

impl ThreadFollower {
    pub(super) fn begun(
        &mut self,
        event: &KernelEvent,
        tid: i32,
        comm: Comm,
        is_thread: bool,
        resolver: &dyn NameResolver,
    ) {
        self.cpus.begun(tid, event.time);
        self.bandwidth.begun(tid, event.tid);
        let known = |thread: &Thread| !matches!(thread.state, State::Unknown { lossy: false });
        if self.threads.get(&tid).is_some_and(known) {
            // The earlier thread with this id has ended without a record.
            self.account(tid, event.time);
            self.retire(tid);
        }
        let wanted = if is_thread {
            self.settings.new_threads
        } else {
            self.settings.children
        };
        if (wanted && self.threads.contains_key(&event.tid)) || self.is_meant(tid, comm, resolver) {
            let thread = ThreadRef { tid, comm };
            self.follow(
                Following {
                    thread,
                    role: None,
                    start: Start::Unknown,
                },
                event.time,
            );
        }
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        thread.appeared = true;
        thread.from = event.time;
        thread.since = event.time;
        thread.id.comm = comm;
        // It is put on a run queue at once.
        self.wait_for(
            tid,
            event.time,
            event.cpu,
            Waking {
                prio: Frame::NO_PRIORITY,
                ..Waking::default()
            },
        );
    }

    /// A thread has ended: its account is kept.
    fn retire(&mut self, tid: i32) {
        if let Some(mut thread) = self.threads.remove(&tid) {
            if let State::Runnable { leg, .. } = std::mem::replace(&mut thread.state, State::Exited)
            {
                self.cpus.release(leg.cpu, leg.mark);
            }
            thread.settle(&mut self.reasons, self.settings.stacks);
            self.finished.extend(thread.pending.take());
            self.ended.push(thread);
        }
    }

    pub(super) fn switched_out(&mut self, event: &KernelEvent, prev: &TaskRef, prev_state: u64) {
        let tid = prev.tid;
        let counts = self.counts(event.time);
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        thread.slept_at_once = self.cpus.has_just_begun(event.cpu, event.time);
        match &thread.state {
            State::Running { cpu, .. } if *cpu == event.cpu => {}
            State::Unknown { lossy: false } => {
                thread.state = State::Running {
                    cpu: event.cpu,
                    woken: None,
                };
            }
            // The switch that put it on the CPU left no record.
            State::Runnable { .. } => self.forget(tid),
            _ => {
                self.doubt(tid);
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.state = State::Unknown { lossy: true };
                }
            }
        }
        self.account(tid, event.time);
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        thread.cpu = Some(event.cpu);
        if prev_state & ENDED != 0 {
            self.retire(tid);
        } else if prev_state & TASK_STATES == 0 {
            thread.account.involuntary += u64::from(counts);
            // The wait begins after the switch is recorded, which names the next thread.
            thread.state = State::Blocked;
            self.preempted(event, tid, frame_priority(prev));
        } else if let Some(by) = stopped_by(prev_state) {
            // A wake-up just before comes from the signal itself.
            thread.state = State::Stopped(by);
        } else {
            thread.account.voluntary += u64::from(counts);
            let woken = match thread.state {
                State::Running { woken, .. } => woken,
                _ => None,
            };
            thread.state = State::Blocked;
            self.falls_asleep(event, tid);
            let recent = self.settings.rate.ticks(WOKEN_ON_THE_WAY);
            if let Some((_, target)) = woken.filter(|(at, _)| event.time.since(*at) <= recent) {
                self.wait_for(
                    tid,
                    event.time,
                    target,
                    Waking {
                        waker: None,
                        guessed: true,
                        prio: frame_priority(prev),
                    },
                );
            }
        }
    }

    /// A sleeper has a CPU without a recorded wake-up: it may have waited since records were lost.
    fn doubt(&mut self, tid: i32) {
        let Some(thread) = self.threads.get(&tid) else {
            return;
        };
        if let Some(at) = thread.doubted.filter(|at| thread.since <= *at)
            && matches!(thread.state, State::Blocked)
        {
            self.account(tid, at);
            self.threads
                .entry(tid)
                .and_modify(|thread| thread.state = State::Unknown { lossy: true });
        }
    }

    /// Whether a CPU's records of this time were lost, or its switches are never recorded: a thread that waits there
    /// cannot be observed.
    fn is_blind(&self, cpu: CpuId, at: Ticks) -> bool {
        !self.shows_switches(cpu) || self.blind.get(&cpu).is_some_and(|until| at < *until)
    }

    /// What a thread has done since its state was last known is unknown.
    fn forget(&mut self, tid: i32) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let forgotten = std::mem::replace(&mut thread.state, State::Unknown { lossy: true });
        if let State::Runnable { leg, .. } = forgotten {
            self.cpus.release(leg.cpu, leg.mark);
        }
    }

    /// The same for a thread that waits: it may have left for a CPU whose switches are not recorded.
    pub(super) fn lose_wait(&mut self, tid: i32, at: Ticks) {
        let waits = |thread: &Thread| matches!(thread.state, State::Runnable { .. });
        if self.threads.get(&tid).is_some_and(waits) {
            self.forget(tid);
            self.account(tid, at);
        }
    }

    /// Begins a wait after a wake-up.
    fn wait_for(&mut self, tid: i32, from: Ticks, cpu: CpuId, waking: Waking) {
        let blind = self.is_blind(cpu, from);
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        if blind {
            thread.state = State::Unknown { lossy: true };
            return;
        }
        let Waking {
            waker,
            guessed,
            prio,
        } = waking;
        let leg = Leg {
            cpu,
            from,
            mark: self.cpus.open(cpu, from),
            prio: Some(prio),
        };
        let before = Vec::new();
        thread.state = State::Runnable {
            preempted: false,
            guessed,
            leg,
            before,
            first_cpu: cpu,
            waker,
            prio,
        };
    }

    /// Begins a wait with the switch itself.
    fn preempted(&mut self, event: &KernelEvent, tid: i32, prio: i16) {
        let mark = self.cpus.open(event.cpu, event.time);
        let leg = Leg {
            cpu: event.cpu,
            from: event.time,
            mark,
            prio: None,
        };
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = State::Runnable {
                preempted: true,
                guessed: false,
                leg,
                before: Vec::new(),
                first_cpu: event.cpu,
                waker: None,
                prio,
            };
        }
    }

    pub(super) fn switched_in(
        &mut self,
        event: &KernelEvent,
        next: &TaskRef,
        resolver: &dyn NameResolver,
    ) {
        self.put_on(event.cpu, next.tid, event.time, resolver);
    }

    fn put_on(&mut self, cpu: CpuId, tid: i32, at: Ticks, resolver: &dyn NameResolver) {
        let counts = self.counts(at);
        if !self.threads.contains_key(&tid) {
            return;
        }
        self.doubt(tid);
        self.end_wait(tid, at, resolver);
        self.account(tid, at);
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        thread.settle(&mut self.reasons, self.settings.stacks);
        let moved = thread.cpu.is_some_and(|before| before != cpu);
        thread.cpu = Some(cpu);
        thread.state = State::Running { cpu, woken: None };
        if counts {
            thread.account.run_begins(cpu);
            thread.account.migrations += u64::from(moved);
        }
    }

    /// The scheduler charges a thread for its run time. Some kernels record no switch away from some idle threads: then
    /// this shows when the thread was put on the CPU.
    pub(super) fn charged(
        &mut self,
        event: &KernelEvent,
        tid: i32,
        ran: Nanos,
        resolver: &dyn NameResolver,
    ) {
        self.has_charges = true;
        let followed = self.threads.contains_key(&event.tid);
        let ended = self.cpus.record(event, followed);
        let Some(thread) = self.threads.get(&tid) else {
            return self.seen(event, [None, ended], resolver);
        };
        let since = event.time - self.settings.rate.ticks(ran);
        let unseen = match thread.state {
            State::Running { cpu, .. } => cpu != event.cpu,
            State::Runnable { .. } | State::Stopped(_) | State::Blocked => true,
            State::Unknown { lossy } => lossy,
            State::Exited => false,
        };
        // Not before the time that is already reported.
        let reported_until = match &thread.state {
            State::Runnable { leg, .. } => leg.from.max(thread.since),
            _ => thread.since,
        };
        if unseen && event.tid == tid && self.shows_switches(event.cpu) {
            self.put_on(event.cpu, tid, since.max(reported_until), resolver);
        }
        self.seen(event, [None, ended], resolver);
    }

    pub(super) fn woken(
        &mut self,
        event: &KernelEvent,
        task: &TaskRef,
        target: CpuId,
        resolver: &dyn NameResolver,
    ) {
        self.thawed(event, task.tid, resolver);
        if self.settings.switches.is_some() {
            // It ran and slept meanwhile.
            self.lose_wait(task.tid, event.time);
        }
        let Some(thread) = self.threads.get_mut(&task.tid) else {
            return;
        };
        match &mut thread.state {
            State::Unknown { lossy: false } => thread.state = State::Blocked,
            State::Blocked | State::Unknown { lossy: true } => {}
            State::Running { woken, .. } => {
                *woken = Some((event.time, target));
                return;
            }
            State::Runnable { guessed: true, .. } => {
                // It did sleep.
                if let State::Runnable { leg, .. } =
                    std::mem::replace(&mut thread.state, State::Blocked)
                {
                    self.cpus.release(leg.cpu, leg.mark);
                }
            }
            State::Stopped(_) => self.end_stop(task.tid, event.time, resolver),
            State::Runnable { .. } | State::Exited => return,
        }
        self.account(task.tid, event.time);
        let waker = self.senders.waker(task.tid, target, event.time, resolver);
        let waking = Waking {
            waker,
            guessed: false,
            prio: frame_priority(task),
        };
        self.wait_for(task.tid, event.time, target, waking);
        if let Some(thread) = self.threads.get_mut(&task.tid) {
            thread.cpu.get_or_insert(target);
        }
    }

    pub(super) fn migrated(
        &mut self,
        event: &KernelEvent,
        task: &TaskRef,
        (from, to): (CpuId, CpuId),
        resolver: &dyn NameResolver,
    ) {
        let counts = self.counts(event.time);
        let blind = self.is_blind(to, event.time);
        self.cpus.arrived(to, task.tid, event.time);
        if !self.shows_switches(from) {
            // It had left for that CPU without a record.
            self.lose_wait(task.tid, event.time);
        }
        let watched = self.shows_switches(to);
        let Some(thread) = self.threads.get_mut(&task.tid) else {
            return;
        };
        thread.account.migrations += u64::from(counts && thread.cpu != Some(to));
        thread.cpu = Some(to);
        if blind {
            let is_lost = match thread.state {
                State::Runnable { .. } => true,
                State::Blocked => !watched,
                _ => false,
            };
            if is_lost {
                self.end_wait(task.tid, event.time, resolver);
                self.account(task.tid, event.time);
                self.forget(task.tid);
            }
            return;
        }
        let State::Runnable {
            leg, before, prio, ..
        } = &mut thread.state
        else {
            return;
        };
        let mark = self.cpus.open(to, event.time);
        let next = Leg {
            cpu: to,
            from: event.time,
            mark,
            prio: Some(*prio),
        };
        let done = std::mem::replace(leg, next);
        let (senders, bandwidth) = (&self.senders, &self.bandwidth);
        let asking = Asking {
            thread: thread.id,
            senders,
            resolver,
            bandwidth,
            waits: done.waits(),
        };
        append(
            before,
            self.cpus
                .close(done.cpu, done.mark, (done.from, event.time), &asking),
        );
    }

    /// Any other record: it may begin or end an interrupt in a followed thread's time.
    pub(super) fn on_cpu(&mut self, event: &KernelEvent, resolver: &dyn NameResolver) {
        let followed = self.threads.contains_key(&event.tid);
        let nmi = match event.kind {
            EventKind::NmiHandler { delta_ns, .. }
                if followed && !self.cpus.is_interrupted(event.cpu) =>
            {
                let start = event.time - self.settings.rate.ticks(Nanos(delta_ns));
                Some((start, self.cpus.open(event.cpu, start)))
            }
            _ => None,
        };
        let ended = self.cpus.record(event, followed);
        self.seen(event, [nmi, ended], resolver);
    }

    /// A record shows which thread has its CPU; it may have ended interrupts.
    fn seen(
        &mut self,
        event: &KernelEvent,
        ended: [Option<(Ticks, Mark)>; 2],
        resolver: &dyn NameResolver,
    ) {
        if !self.shows_switches(event.cpu) {
            // It runs there, but since when and until when is unknown.
            if self.threads.contains_key(&event.tid) {
                self.forget(event.tid);
                self.account(event.tid, event.time);
            }
            for (_, mark) in ended.into_iter().flatten() {
                self.cpus.release(event.cpu, mark);
            }
            return;
        }
        let elsewhere = |thread: &Thread| match thread.state {
            State::Running { cpu, .. } => cpu != event.cpu,
            State::Runnable { .. } | State::Stopped(_) | State::Blocked => true,
            State::Unknown { .. } | State::Exited => false,
        };
        // If charges are recorded, one will follow and show since when.
        if !self.has_charges
            && self.cpus.was_put_on_unseen(event.cpu, event.tid)
            && self.threads.get(&event.tid).is_some_and(elsewhere)
        {
            self.put_on(event.cpu, event.tid, event.time, resolver);
        }
        if let Some(thread) = self.threads.get_mut(&event.tid) {
            if matches!(thread.state, State::Unknown { .. }) {
                let lossy = matches!(thread.state, State::Unknown { lossy: true });
                if lossy {
                    self.account(event.tid, event.time);
                }
                if let Some(thread) = self.threads.get_mut(&event.tid) {
                    thread.state = State::Running {
                        cpu: event.cpu,
                        woken: None,
                    };
                    thread.cpu = Some(event.cpu);
                }
            }
            if matches!(event.kind, EventKind::PageFault { .. }) && self.counts(event.time) {
                self.threads
                    .entry(event.tid)
                    .and_modify(|thread| thread.account.page_faults += 1);
            }
        }
        for (start, mark) in ended.into_iter().flatten() {
            self.interrupted(event, start, mark, resolver);
        }
    }

    /// An interrupt ended in a followed thread's time.
    fn interrupted(
        &mut self,
        event: &KernelEvent,
        start: Ticks,
        mark: Mark,
        resolver: &dyn NameResolver,
    ) {
        let running = |thread: &&Thread| matches!(thread.state, State::Running { cpu, .. } if cpu == event.cpu);
        let Some(thread) = self.threads.get(&event.tid).filter(running) else {
            return self.cpus.release(event.cpu, mark);
        };
        // An NMI states its length at its end; it must not overlap what is already reported.
        let start = start.max(thread.since).max(thread.told_until);
        if start >= event.time {
            return self.cpus.release(event.cpu, mark);
        }
        let (senders, bandwidth) = (&self.senders, &self.bandwidth);
        let asking = Asking {
            thread: thread.id,
            senders,
            resolver,
            bandwidth,
            waits: None,
        };
        let slices = self
            .cpus
            .close(event.cpu, mark, (start, event.time), &asking);
        let episode = Episode {
            thread: asking.thread,
            kind: EpisodeKind::Interrupted,
            cpu: event.cpu,
            migrated_from: None,
            start,
            end: event.time,
            slices,
            waker: None,
        };
        self.suffered(episode, false);
    }

    /// Ends a wait or a stop, and reports what had the CPUs meanwhile.
    pub(super) fn end_wait(&mut self, tid: i32, at: Ticks, resolver: &dyn NameResolver) {
        self.end_wait_in(tid, at, None, resolver);
    }

    /// The same; `tail`: the part that it shares with other waits that end now.
    pub(super) fn end_wait_in(
        &mut self,
        tid: i32,
        at: Ticks,
        tail: Option<&mut Tail>,
        resolver: &dyn NameResolver,
    ) {
        self.end_stop(tid, at, resolver);
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        if !matches!(thread.state, State::Runnable { .. }) {
            return;
        }
        let start = thread.since;
        let id = thread.id;
        self.account(tid, at);
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let State::Runnable {
            preempted,
            leg,
            before,
            first_cpu,
            waker,
            ..
        } = std::mem::replace(&mut thread.state, State::Blocked)
        else {
            return;
        };
        let (senders, bandwidth) = (&self.senders, &self.bandwidth);
        let asking = Asking {
            thread: id,
            senders,
            resolver,
            bandwidth,
            waits: leg.waits(),
        };
        let mut slices = before;
        let (cpu, mark, times) = (leg.cpu, leg.mark, (leg.from, at));
        let bounded = tail.is_some();
        let last = match tail {
            Some(tail) => self.cpus.close_into(cpu, mark, times, tail, &asking),
            None => self.cpus.close(cpu, mark, times, &asking),
        };
        append(&mut slices, last);
        let kind = if preempted {
            EpisodeKind::Preempted
        } else {
            EpisodeKind::WaitAfterWakeUp
        };
        let episode = Episode {
            thread: id,
            kind,
            cpu: leg.cpu,
            migrated_from: (first_cpu != leg.cpu).then_some(first_cpu),
            start,
            end: at,
            slices,
            waker,
        };
        self.suffered(episode, bounded);
    }

    /// The observed part of an open wait; `None` if it began after `before`. If the thread must have run since, the
    /// switch to it left no record, and a record of the thread, or the scheduler's charge for it, is still to come.
    pub(super) fn under_way(
        &self,
        tid: i32,
        before: Ticks,
        resolver: &dyn NameResolver,
    ) -> Option<Episode> {
        let thread = self.threads.get(&tid)?;
        if let State::Stopped(by) = thread.state {
            return (thread.since < before).then(|| self.stop(thread, by, self.now, resolver));
        }
        let State::Runnable {
            preempted,
            leg,
            before: earlier,
            first_cpu,
            ..
        } = &thread.state
        else {
            return None;
        };
        let (start, end) = (thread.since, self.now);
        if start >= before || end <= start {
            return None;
        }
        let (senders, bandwidth) = (&self.senders, &self.bandwidth);
        let asking = Asking {
            thread: thread.id,
            senders,
            resolver,
            bandwidth,
            waits: leg.waits(),
        };
        let mut slices = earlier.clone();
        append(
            &mut slices,
            self.cpus.peek(leg.cpu, &leg.mark, (leg.from, end), &asking),
        );
        Some(Episode {
            thread: thread.id,
            kind: if *preempted {
                EpisodeKind::Preempted
            } else {
                EpisodeKind::WaitAfterWakeUp
            },
            cpu: leg.cpu,
            migrated_from: (*first_cpu != leg.cpu).then_some(*first_cpu),
            start,
            end,
            slices,
            waker: None,
        })
    }

    /// `bounded`: whether the caller limits the number of slices.
    pub(super) fn suffered(&mut self, mut episode: Episode, bounded: bool) {
        let (from, until) = (self.from, self.until);
        let Some(thread) = self.threads.get_mut(&episode.thread.tid) else {
            return;
        };
        if self.settings.remember > Ticks(0) {
            let old = self.now - self.settings.remember;
            while thread.history.len() >= MOST_HISTORY
                || thread.history.front().is_some_and(|e| e.end < old)
            {
                thread.history.pop_front();
            }
            thread.history.push_back(episode.clone());
        }
        thread.told_until = episode.end;
        episode.slices = episode.clipped(from, until).collect();
        (episode.start, episode.end) = (episode.start.max(from), episode.end.min(until));
        if episode.start >= episode.end {
            return;
        }
        thread.account.episode(&episode, self.cpus.cache());
        if !bounded
            && !self
                .room
                .takes(episode.end, episode.slices.len(), self.settings.rate)
        {
            episode.slices = summed(&episode.slices);
            self.cpus.fold(episode.length());
        }
        match &mut thread.pending {
            Some(last)
                if episode.start.since(last.end) <= self.settings.join_within
                    && last.joins(&episode) =>
            {
                last.join(episode);
            }
            pending => self.finished.extend(pending.replace(episode)),
        }
    }
}
