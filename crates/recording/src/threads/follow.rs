//! Kernel events on their way to a [`ThreadFollower`], in order of time over all CPUs.

use crate::kernel_events::KernelEvents;
use jitterscope_attribute::{FollowerSettings, Following, Lexicon, Start, ThreadFollower};
use jitterscope_model::{
    Comm, CpuId, DrainTurn, KernelEvent, PipelineRole, Record, Setup, Sink, SinkError, Source,
    ThreadAccount, ThreadRef, Ticks,
};

/// What waits for its turn.
enum Entry {
    Event(KernelEvent),
    Lost(CpuId, Ticks),
}

/// Takes records of all CPUs in order of time.
pub(crate) trait TakesRecords {
    fn measure(&mut self, from: Ticks, until: Ticks);

    fn event(&mut self, event: &KernelEvent, names: &dyn Lexicon);

    fn lost(&mut self, cpu: CpuId, from: Ticks, to: Ticks, names: &dyn Lexicon);

    /// Records of the sending side were lost.
    fn senders_lost(&mut self, from: Ticks, to: Ticks);

    /// What its recorder set, in a replay.
    fn set(&mut self, step: &Setup);

    /// What was counted of CPU quotas up to the end of the records that are handed over next.
    fn quotas(&mut self, _turn: &DrainTurn) {}

    /// Threads whose quotas are to be counted from now on.
    fn take_newly_followed(&mut self) -> Vec<i32> {
        Vec::new()
    }

    /// Whether too many switches left no record: only the scheduler's charges say then since when a thread has its CPU.
    fn needs_charges(&self) -> bool {
        false
    }
}

impl TakesRecords for ThreadFollower {
    fn measure(&mut self, from: Ticks, until: Ticks) {
        ThreadFollower::measure(self, from, until);
    }

    fn event(&mut self, event: &KernelEvent, names: &dyn Lexicon) {
        ThreadFollower::event(self, event, names);
    }

    fn lost(&mut self, cpu: CpuId, from: Ticks, to: Ticks, names: &dyn Lexicon) {
        ThreadFollower::lost(self, cpu, from, to, names);
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

/// Puts the records of all CPUs in order for a follower: the same while recording and in a replay.
pub(crate) struct InOrder<F = ThreadFollower> {
    pub(crate) follower: F,
    /// Not yet handed over, by time.
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

    /// Time between these counts.
    pub(crate) fn measure(&mut self, from: Ticks, until: Ticks) {
        (self.from, self.until) = (from, until);
        self.follower.measure(from, until);
    }

    pub(crate) fn take(&mut self, record: Record<'_>) {
        match record {
            Record::Sender(event) | Record::Local(event) => {
                self.waiting.push((event.time, Entry::Event(event.clone())));
            }
            Record::Lost(cpu, from, to) => self.waiting.push((from, Entry::Lost(cpu, to))),
            Record::SendersLost(from, to) => self.follower.senders_lost(from, to),
            Record::Setup(Setup::Measure { from, until }) => self.measure(*from, *until),
            Record::Setup(step) => self.follower.set(step),
        }
    }

    /// Hands over what happened up to `now`.
    pub(crate) fn hand_over(&mut self, now: Ticks, names: &dyn Lexicon) {
        // Stable: of one instant, senders' records come first, as they were read.
        self.waiting.sort_by_key(|(time, _)| *time);
        let ready = self.waiting.partition_point(|(time, _)| *time <= now);
        for (time, entry) in self.waiting.drain(..ready) {
            match entry {
                Entry::Event(event) => {
                    self.events_counted += u64::from(self.from <= time && time <= self.until);
                    self.follower.event(&event, names);
                }
                Entry::Lost(cpu, to) => self.follower.lost(cpu, time, to, names),
            }
        }
    }

    /// Kernel events of the measured time.
    pub(crate) fn events_counted(&self) -> u64 {
        self.events_counted
    }
}

/// Threads being followed. Dropping it ends the recording of events.
pub(crate) struct Follow<F = ThreadFollower> {
    pub(crate) events: KernelEvents,
    records: InOrder<F>,
    /// How far the records of the turn under way were handed over.
    now: Ticks,
    /// Whether the scheduler's charges were asked for.
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
        self.records.follower.follow(who, at);
    }

    /// Ends recording and takes in what is still under way. A turn: it is to be ended by the caller.
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
    /// `setup`: how the follower is set.
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

    /// The follower, and who knows names.
    pub(crate) fn follower_and_names(&mut self) -> (&mut F, &dyn Lexicon) {
        (&mut self.records.follower, &self.events.names)
    }

    /// Time between these counts.
    pub(crate) fn measure(&mut self, from: Ticks, until: Ticks) {
        self.events.set(Setup::Measure { from, until });
        self.records.measure(from, until);
    }

    /// Reads everything that the kernel has recorded. `now` was read before: all records up to it are in
    /// the buffers by then, on whichever CPU, and can be put in order.
    pub(crate) fn drain(&mut self, now: Ticks, keep: &mut dyn Sink) -> Result<(), SinkError> {
        for tid in self.records.follower.take_newly_followed() {
            self.events.quotas.watch(tid);
        }
        let records = &mut self.records;
        self.events.turn(keep, &mut |record| records.take(record))?;
        self.records.follower.quotas(self.events.count_quotas());
        self.records.hand_over(now, &self.events.names);
        self.now = now;
        if !self.charged && self.records.follower.needs_charges() {
            self.charged = true;
            self.events.record_charges();
        }
        Ok(())
    }

    /// What was drained has become rows.
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

    /// Ends recording and takes in what the buffers still hold.
    pub(crate) fn last_drain(&mut self, keep: &mut dyn Sink) -> Result<(), SinkError> {
        self.events.stop();
        self.drain(Ticks(u64::MAX), keep)
    }

    /// Kernel events of the measured time.
    pub(crate) fn events_counted(&self) -> u64 {
        self.records.events_counted()
    }
}

fn kept(settings: &FollowerSettings) -> Setup {
    Setup::Following {
        join_within: settings.join_within,
        remember: settings.remember,
        new_threads: settings.new_threads,
        children: settings.children,
        names: settings.names.iter().map(ToString::to_string).collect(),
        most_threads: settings.most_threads as u64,
    }
}
