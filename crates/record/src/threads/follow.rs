//! Kernel events on their way to a [`ThreadFollower`], in order of time over all CPUs.

use crate::kernel_events::KernelEvents;
use jitterscope_attribute::{FollowerSettings, Following, Lexicon, Start, ThreadFollower};
use jitterscope_model::{
    Comm, CpuId, DrainTurn, KernelEvent, PipelineRole, Record, Setup, Sink, SinkError, Source, ThreadAccount,
    ThreadRef, Ticks,
};

/// What waits for its turn.
enum Entry {
    Event(KernelEvent),
    Lost(CpuId, Ticks),
}

/// Puts the records of all CPUs in order for a follower: the same while recording and in a replay.
pub(crate) struct InOrder {
    pub(crate) follower: ThreadFollower,
    /// Not yet handed over, by time.
    waiting: Vec<(Ticks, Entry)>,
    from: Ticks,
    until: Ticks,
    events_counted: u64,
}

impl InOrder {
    pub(crate) fn new(settings: FollowerSettings) -> InOrder {
        InOrder {
            follower: ThreadFollower::new(settings),
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
                self.waiting.push((event.time, Entry::Event(event)));
            }
            Record::Lost(cpu, from, to) => self.waiting.push((from, Entry::Lost(cpu, to))),
            Record::Setup(Setup::Measure { from, until }) => self.measure(*from, *until),
            Record::Setup(Setup::Follow { at, tid, comm, role, asleep }) => {
                let following = Following {
                    thread: ThreadRef { tid: *tid, comm: Comm::new(comm) },
                    role: role.map(PipelineRole::as_str),
                    start: if *asleep { Start::Asleep } else { Start::Unknown },
                };
                self.follower.follow(following, *at);
            }
            Record::Setup(Setup::Following { .. } | Setup::Unknown) => {}
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
pub(crate) struct Follow {
    pub(crate) events: KernelEvents,
    records: InOrder,
    /// How far the records of the turn under way were handed over.
    now: Ticks,
}

impl Follow {
    pub(crate) fn new(mut events: KernelEvents, settings: FollowerSettings) -> Follow {
        events.set(kept(&settings));
        Follow { events, records: InOrder::new(settings), now: Ticks(0) }
    }

    pub(crate) fn follower(&self) -> &ThreadFollower {
        &self.records.follower
    }

    pub(crate) fn follower_mut(&mut self) -> &mut ThreadFollower {
        &mut self.records.follower
    }

    /// Follows a thread from `at` on.
    pub(crate) fn follow(&mut self, who: Following, role: Option<PipelineRole>, at: Ticks) {
        self.events.set(Setup::Follow {
            at,
            tid: who.thread.tid,
            comm: who.thread.comm.to_string(),
            role,
            asleep: who.start == Start::Asleep,
        });
        self.events.quotas.watch(who.thread.tid);
        self.records.follower.follow(who, at);
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
        Ok(())
    }

    /// What was drained has become rows.
    pub(crate) fn end_turn(&mut self, keep: &mut dyn Sink, turn: DrainTurn) -> Result<(), SinkError> {
        self.events.end_turn(keep, DrainTurn { now: self.now, measuring: true, ..turn })
    }

    /// Ends recording and takes in what is still under way. A turn: it is to be ended by the caller.
    pub(crate) fn finish(&mut self, at: Ticks, keep: &mut dyn Sink) -> Result<Vec<ThreadAccount>, SinkError> {
        self.events.stop();
        self.drain(Ticks(u64::MAX), keep)?;
        Ok(self.records.follower.finish(at, &self.events.names))
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
