//! Kernel events on their way to a [`ThreadFollower`], in order of time over all CPUs.

use crate::kernel_events::{Item, KernelEvents, PageKeeper};
use jitterscope_attribute::{FollowerSettings, ThreadFollower};
use jitterscope_model::{CpuId, KernelEvent, ThreadAccount, Ticks};

/// What waits for its turn.
enum Entry {
    Event(KernelEvent),
    Lost(CpuId, Ticks),
}

/// Threads being followed. Dropping it ends the recording of events.
pub(crate) struct Follow {
    pub(crate) events: KernelEvents,
    pub(crate) follower: ThreadFollower,
    /// Not yet handed over, by time.
    waiting: Vec<(Ticks, Entry)>,
    from: Ticks,
    until: Ticks,
    events_counted: u64,
}

impl Follow {
    pub(crate) fn new(events: KernelEvents, settings: FollowerSettings) -> Follow {
        Follow {
            events,
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

    /// Reads everything that the kernel has recorded. `now` was read before: all records up to it are in
    /// the buffers by then, on whichever CPU, and can be put in order.
    pub(crate) fn drain(&mut self, now: Ticks, keeper: &mut dyn PageKeeper) {
        let waiting = &mut self.waiting;
        self.events.drain(keeper, |item, _| {
            waiting.push(match item {
                Item::Sender(event) | Item::Local(event) => (event.time, Entry::Event(event)),
                Item::Lost(cpu, from, to) => (from, Entry::Lost(cpu, to)),
            });
        });
        self.hand_over(now);
    }

    fn hand_over(&mut self, now: Ticks) {
        // Stable: of one instant, senders' records come first, as they were read.
        self.waiting.sort_by_key(|(time, _)| *time);
        let ready = self.waiting.partition_point(|(time, _)| *time <= now);
        let names = &self.events.names;
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

    /// Ends recording and takes in what is still under way.
    pub(crate) fn finish(&mut self, at: Ticks, keeper: &mut dyn PageKeeper) -> Vec<ThreadAccount> {
        self.events.stop();
        self.drain(Ticks(u64::MAX), keeper);
        self.follower.finish(at, &self.events.names)
    }

    /// Kernel events of the measured time.
    pub(crate) fn events_counted(&self) -> u64 {
        self.events_counted
    }
}
