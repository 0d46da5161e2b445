//! The pipeline's threads, followed through the kernel: who made each slow message slow.

use super::follow::{Followed, Follower, SlowRow};
use crate::kernel_events::{KernelEvents, PageKeeper};
use crate::threads::Follow;
use jitterscope_attribute::{FollowerSettings, Following, MessageWindow, Start};
use jitterscope_model::{Attribution, ClockKind, Nanos, PipelineRole, ThreadRef, TickRate, Ticks};
use jitterscope_platform::clock;

/// How long a thread's stalls are remembered. A message that is slower than this is split from what is
/// left of them.
const REMEMBER: Nanos = Nanos(10_000_000_000);

/// Follows the threads by kernel events.
pub(crate) struct Tracing {
    follow: Follow,
    clock: ClockKind,
    producer: Option<i32>,
}

impl Tracing {
    pub(crate) fn new(events: KernelEvents, clock: ClockKind, rate: TickRate) -> Tracing {
        let settings = FollowerSettings {
            rate,
            join_within: Ticks(0),
            remember: rate.ticks(REMEMBER),
            new_threads: false,
            children: false,
            names: Vec::new(),
            most_threads: 3,
        };
        Tracing { follow: Follow::new(events, settings), clock, producer: None }
    }
}

impl Follower for Tracing {
    fn threads(&mut self, threads: &[(PipelineRole, ThreadRef)]) {
        let now = clock::now(self.clock);
        for (role, thread) in threads {
            if *role == PipelineRole::Producer {
                self.producer = Some(thread.tid);
            }
            let role = Some(role.as_str());
            self.follow.follower.follow(Following { thread: *thread, role, start: Start::Unknown }, now);
        }
    }

    fn measuring(&mut self, start: Ticks, end: Option<Ticks>) {
        self.follow.measure(start, end.unwrap_or(Ticks(u64::MAX)));
    }

    fn cycle(&mut self, slow: &[SlowRow], keeper: &mut dyn PageKeeper) -> Vec<Attribution> {
        // After the rows were popped: everything up to their reception is on record.
        let now = clock::now(self.clock);
        self.follow.drain(now, keeper);
        // Told as episodes of their own nowhere; the threads' sums have them.
        self.follow.follower.take_episodes();
        let Some(producer) = self.producer else { return Vec::new() };
        let split = |row: &SlowRow| {
            let message = &row.message;
            let window = MessageWindow {
                intended: row.stall.start,
                published: message.published,
                received: row.stall.end,
                published_before: message.published_before,
                received_before: message.received_before,
                waited: message.waited,
            };
            let names = &self.follow.events.names;
            self.follow.follower.split(row.stall.id, (producer, row.stall.victim.tid), &window, names)
        };
        slow.iter().map(split).collect()
    }

    fn finish(self: Box<Self>, end: Ticks, keeper: &mut dyn PageKeeper) -> Option<Followed> {
        let mut follow = self.follow;
        let threads = follow.finish(end, keeper);
        Some(Followed {
            threads,
            sources: follow.events.reports(),
            context: follow.events.context(),
            unrecorded_switches: follow.follower.unrecorded_switches(),
            events: follow.events_counted(),
        })
    }
}
