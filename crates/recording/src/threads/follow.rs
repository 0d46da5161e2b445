//! Hands kernel events to a [`ThreadFollower`], in time order across all CPUs.

use crate::kernel_events::KernelEvents;
use jitterscope_attribute::{FollowerSettings, Following, NameResolver, Start, ThreadFollower};
use jitterscope_model::{
    Comm, CpuId, DrainTurn, KernelEvent, PipelineRole, Record, Setup, Sink, SinkError, SleepStack,
    Source, ThreadAccount, ThreadRef, Ticks, Verdict,
};
use jitterscope_platform::current_tid;

enum Entry {
    Event(KernelEvent),
    Stack(SleepStack),
    /// CPU, end of the loss, and the verdict for it.
    Lost(CpuId, Ticks, Verdict),
}

/// Takes records of all CPUs in time order.
pub(crate) trait TakesRecords {
    fn measure(&mut self, from: Ticks, until: Ticks);

    fn event(&mut self, event: &KernelEvent, names: &dyn NameResolver);

    /// A thread that goes to sleep has this stack.
    fn stack(&mut self, _stack: &SleepStack, _names: &dyn NameResolver) {}

    /// Records of a CPU between two times were lost or are not trusted.
    fn lost(&mut self, cpu: CpuId, of: (Ticks, Ticks), why: Verdict, names: &dyn NameResolver);

    fn senders_lost(&mut self, from: Ticks, to: Ticks);

    /// In a replay: a setup step of the recorder.
    fn set(&mut self, step: &Setup);

    /// CPU quota counts up to the end of the records that follow.
    fn quotas(&mut self, _turn: &DrainTurn) {}

    /// Threads whose quotas must be counted from now on.
    fn take_newly_followed(&mut self) -> Vec<i32> {
        Vec::new()
    }

    /// Whether too many switches left no record: then only the scheduler's charges show since when a thread has its
    /// CPU.
    fn needs_charges(&self) -> bool {
        false
    }
}

impl TakesRecords for ThreadFollower {
    fn measure(&mut self, from: Ticks, until: Ticks) {
        ThreadFollower::measure(self, from, until);
    }

    fn event(&mut self, event: &KernelEvent, names: &dyn NameResolver) {
        ThreadFollower::event(self, event, names);
    }

    fn stack(&mut self, stack: &SleepStack, names: &dyn NameResolver) {
        ThreadFollower::stack(self, stack, names);
    }

    fn lost(&mut self, cpu: CpuId, of: (Ticks, Ticks), why: Verdict, names: &dyn NameResolver) {
        ThreadFollower::lost(self, cpu, of, why, names);
    }

    fn senders_lost(&mut self, from: Ticks, to: Ticks) {
        ThreadFollower::senders_lost(self, from, to);
    }

    fn set(&mut self, step: &Setup) {
        let Setup::Follow {
            at,
            tid,
            comm,
            role,
            asleep,
            stopped_by,
        } = step
        else {
            return;
        };
        let following = Following {
            thread: ThreadRef {
                tid: *tid,
                comm: Comm::new(comm),
            },
            role: role.map(PipelineRole::as_str),
            start: match (stopped_by, asleep) {
                (Some(by), _) => Start::Stopped(*by),
                (None, true) => Start::Asleep,
                (None, false) => Start::Unknown,
            },
        };
        self.follow(following, *at);
    }

    fn quotas(&mut self, turn: &DrainTurn) {
        ThreadFollower::quotas(self, turn);
    }

    fn take_newly_followed(&mut self) -> Vec<i32> {
        ThreadFollower::take_newly_followed(self)
    }

    fn needs_charges(&self) -> bool {
        self.misses_switches()
    }
}

/// Sorts the records of all CPUs for a follower, live or in a replay.
pub(crate) struct InOrder<F = ThreadFollower> {
    pub(crate) follower: F,
    /// Not yet handed over; sorted by time.
    waiting: Vec<(Ticks, Entry)>,
    from: Ticks,
    until: Ticks,
    events_counted: u64,
}

impl InOrder {
    pub(crate) fn new(settings: FollowerSettings) -> InOrder {
        InOrder::of(ThreadFollower::new(settings))
    }
}

impl<F: TakesRecords> InOrder<F> {
    pub(crate) fn of(follower: F) -> InOrder<F> {
        InOrder {
            follower,
            waiting: Vec::new(),
            from: Ticks(u64::MAX),
            until: Ticks(u64::MAX),
            events_counted: 0,
        }
    }

    /// Counts records between these times.
    pub(crate) fn measure(&mut self, from: Ticks, until: Ticks) {
        (self.from, self.until) = (from, until);
        self.follower.measure(from, until);
    }

    pub(crate) fn take(&mut self, record: Record<'_>) {
        match record {
            Record::Sender(event) | Record::Local(event) => {
                self.waiting.push((event.time, Entry::Event(event.clone())));
            }
            Record::Stack(stack) => {
                self.waiting.push((stack.time, Entry::Stack(stack.clone())));
            }
            Record::Lost(cpu, from, to) => {
                let lost = Entry::Lost(cpu, to, Verdict::TraceDataLost);
                self.waiting.push((from, lost));
            }
            Record::Disturbed(cpus, from, to) => {
                self.waiting.retain(|(time, _)| *time < from);
                let lost = |cpu| (from, Entry::Lost(cpu, to, Verdict::TraceDisturbed));
                self.waiting.extend(cpus.iter().map(lost));
                self.follower.senders_lost(from, to);
            }
            Record::SendersLost(from, to) => self.follower.senders_lost(from, to),
            Record::Setup(Setup::Measure { from, until }) => self.measure(*from, *until),
            Record::Setup(step) => self.follower.set(step),
        }
    }

    /// Hands over everything up to `now`.
    pub(crate) fn hand_over(&mut self, now: Ticks, names: &dyn NameResolver) {
        // A stable sort: at the same time, senders' records come first, in the order read.
        self.waiting.sort_by_key(|(time, _)| *time);
        let ready = self.waiting.partition_point(|(time, _)| *time <= now);
        for (time, entry) in self.waiting.drain(..ready) {
            match entry {
                Entry::Event(event) => {
                    self.events_counted += u64::from(self.from <= time && time <= self.until);
                    self.follower.event(&event, names);
                }
                Entry::Stack(stack) => self.follower.stack(&stack, names),
                Entry::Lost(cpu, to, why) => self.follower.lost(cpu, (time, to), why, names),
            }
        }
    }

    pub(crate) fn events_counted(&self) -> u64 {
        self.events_counted
    }
}

/// Followed threads. Dropping this ends the recording of events.
pub(crate) struct Follow<F = ThreadFollower> {
    pub(crate) events: KernelEvents,
    records: InOrder<F>,
    /// The records of the current turn were handed over up to here.
    now: Ticks,
    /// Whether the scheduler's charges were requested.
    charged: bool,
}

impl Follow {
    pub(crate) fn new(events: KernelEvents, settings: FollowerSettings) -> Follow {
        let kept = kept(&settings);
        Follow::of(events, kept, ThreadFollower::new(settings))
    }

    /// Follows a thread from `at` on.
    pub(crate) fn follow(&mut self, who: Following, role: Option<PipelineRole>, at: Ticks) {
        self.events.set(Setup::Follow {
            at,
            tid: who.thread.tid,
            comm: who.thread.comm.to_string(),
            role,
            asleep: who.start == Start::Asleep,
            stopped_by: match who.start {
                Start::Stopped(by) => Some(by),
                Start::Asleep | Start::Unknown => None,
            },
        });
        self.events.quotas.watch(who.thread.tid);
        if let Some(stacks) = self.events.stacks() {
            stacks.follow(who.thread.tid);
        }
        if role.is_some() {
            self.events.cross_check.watch(who.thread.tid);
        }
        self.records.follower.follow(who, at);
    }

    /// Stops recording and takes in what remains, as a turn that the caller must end.
    pub(crate) fn finish(
        &mut self,
        at: Ticks,
        keep: &mut dyn Sink,
    ) -> Result<Vec<ThreadAccount>, SinkError> {
        self.last_drain(keep)?;
        Ok(self.records.follower.finish(at, &self.events.names))
    }
}

impl<F: TakesRecords> Follow<F> {
    /// `setup`: the follower's configuration.
    pub(crate) fn of(mut events: KernelEvents, setup: Setup, follower: F) -> Follow<F> {
        events.set(setup);
        Follow {
            events,
            records: InOrder::of(follower),
            now: Ticks(0),
            charged: false,
        }
    }

    pub(crate) fn follower(&self) -> &F {
        &self.records.follower
    }

    pub(crate) fn follower_mut(&mut self) -> &mut F {
        &mut self.records.follower
    }

    pub(crate) fn follower_and_names(&mut self) -> (&mut F, &dyn NameResolver) {
        (&mut self.records.follower, &self.events.names)
    }

    /// Counts records between these times.
    pub(crate) fn measure(&mut self, from: Ticks, until: Ticks) {
        self.events.set(Setup::Measure { from, until });
        self.records.measure(from, until);
    }

    /// Reads everything that the kernel has recorded. `now` was read before, so the buffers of all CPUs contain all
    /// records up to it, and they can be sorted.
    pub(crate) fn drain(&mut self, now: Ticks, keep: &mut dyn Sink) -> Result<(), SinkError> {
        for tid in self.records.follower.take_newly_followed() {
            self.events.quotas.watch(tid);
            if let Some(stacks) = self.events.stacks() {
                stacks.found(tid);
            }
        }
        self.record_stacks();
        let records = &mut self.records;
        self.events.turn(keep, &mut |record| records.take(record))?;
        self.records.follower.quotas(self.events.count_quotas());
        self.records.hand_over(now, &self.events.names);
        self.now = now;
        if self.records.follower.needs_charges() {
            self.charge();
        }
        Ok(())
    }

    /// Records the stacks of this thread, too: then the kernel adds a process that it makes before that has run.
    /// Otherwise a command might already sleep when its number is handed over. Nobody reads this thread's own stacks.
    pub(crate) fn record_stacks_of_command(&mut self) {
        if let Some(stacks) = self.events.stacks() {
            stacks.follow(current_tid());
            stacks.hand_over();
        }
    }

    /// Records the stacks of the threads that are followed by now.
    pub(crate) fn record_stacks(&mut self) {
        if let Some(stacks) = self.events.stacks() {
            stacks.hand_over();
        }
    }

    /// Records the scheduler's charges from now on.
    pub(crate) fn charge(&mut self) {
        if !std::mem::replace(&mut self.charged, true) {
            self.events.record_charges();
        }
    }

    /// Everything drained has become rows.
    pub(crate) fn end_turn(
        &mut self,
        keep: &mut dyn Sink,
        turn: DrainTurn,
    ) -> Result<(), SinkError> {
        self.events.end_turn(
            keep,
            DrainTurn {
                now: self.now,
                measuring: true,
                ..turn
            },
        )
    }

    /// Stops recording and reads the rest of the buffers.
    pub(crate) fn last_drain(&mut self, keep: &mut dyn Sink) -> Result<(), SinkError> {
        self.events.stop();
        self.drain(Ticks(u64::MAX), keep)
    }

    pub(crate) fn events_counted(&self) -> u64 {
        self.records.events_counted()
    }
}

/// The settings as the run stores them.
pub(crate) fn kept(settings: &FollowerSettings) -> Setup {
    Setup::Following {
        join_within: settings.join_within,
        remember: settings.remember,
        new_threads: settings.new_threads,
        children: settings.children,
        names: settings.names.iter().map(ToString::to_string).collect(),
        user: settings.user,
        most_threads: settings.most_threads as u64,
        stacks: settings.stacks,
        switches: settings.switches.clone(),
    }
}
