//! Follows the pipeline's threads in the kernel, to find what made each slow message slow.

use super::follow::{Followed, Follower, SlowRow};
use crate::kernel_events::KernelEvents;
use crate::threads::Follow;
use jitterscope_attribute::{
    FollowerSettings, Following, MessageWindow, NameResolver, Start, ThreadFollower,
};
use jitterscope_model::{
    Attribution, ClockKind, DrainTurn, MessageTimesRow, Nanos, PipelineRole, PipelineVia, Sink,
    SinkError, Stall, ThreadRef, TickRate, Ticks,
};
use jitterscope_platform::clock;

/// How long a thread's stalls are remembered. A slower message is split from the stalls that remain.
const REMEMBER: Nanos = Nanos(10_000_000_000);

pub(crate) struct Tracing {
    follow: Follow,
    clock: ClockKind,
    producer: Option<i32>,
    via: PipelineVia,
    /// The next stall number.
    stalls: u64,
}

impl Tracing {
    pub(crate) fn new(
        events: KernelEvents,
        clock: ClockKind,
        rate: TickRate,
        virtual_machine: bool,
        via: PipelineVia,
    ) -> Tracing {
        let settings = FollowerSettings {
            rate,
            join_within: Ticks(0),
            remember: rate.ticks(REMEMBER),
            new_threads: false,
            children: false,
            names: Vec::new(),
            user: None,
            most_threads: 3,
            virtual_machine,
            stacks: false,
            switches: None,
        };
        Tracing {
            follow: Follow::new(events, settings),
            clock,
            producer: None,
            via,
            stalls: 0,
        }
    }
}

impl Follower for Tracing {
    fn threads(&mut self, threads: &[(PipelineRole, ThreadRef)]) {
        let now = clock::now(self.clock);
        for (role, thread) in threads {
            if *role == PipelineRole::Producer {
                self.producer = Some(thread.tid);
            }
            let following = Following {
                thread: *thread,
                role: Some(role.as_str()),
                start: Start::Unknown,
            };
            self.follow.follow(following, Some(*role), now);
        }
    }

    fn measuring(&mut self, start: Ticks, end: Option<Ticks>) {
        self.follow.measure(start, end.unwrap_or(Ticks(u64::MAX)));
    }

    fn cycle(
        &mut self,
        slow: &[SlowRow],
        keep: &mut dyn Sink,
    ) -> Result<Vec<Attribution>, SinkError> {
        // The rows were popped before, so everything up to their reception is recorded.
        let now = clock::now(self.clock);
        self.follow.drain(now, keep)?;
        // They are not reported as episodes; the threads' sums include them.
        self.follow.follower_mut().take_episodes();
        let (follower, names) = (self.follow.follower(), &self.follow.events.names);
        let attributions = match self.producer.map(|producer| (producer, self.via)) {
            Some(path) => slow
                .iter()
                .map(|row| split(follower, path, &row.stall, &times(row), names))
                .collect(),
            None => Vec::new(),
        };
        let messages: Vec<MessageTimesRow> = slow.iter().map(times).collect();
        // Their stalls become rows later.
        let stalls = slow.last().map_or(self.stalls, |row| row.stall.id.0 + 1);
        self.stalls = stalls;
        self.follow.end_turn(
            keep,
            DrainTurn {
                messages,
                stalls,
                ..DrainTurn::default()
            },
        )?;
        Ok(attributions)
    }

    fn finish(
        self: Box<Self>,
        end: Ticks,
        keep: &mut dyn Sink,
    ) -> Result<Option<Followed>, SinkError> {
        let mut follow = self.follow;
        let threads = follow.finish(end, keep)?;
        let turn = DrainTurn {
            stalls: self.stalls,
            end: Some(end),
            ..DrainTurn::default()
        };
        follow.end_turn(keep, turn)?;
        Ok(Some(Followed {
            threads,
            ended: follow.events.ended(),
            unrecorded_switches: follow.follower().unrecorded_switches(),
            folded: follow.follower().folded(),
            senders_dropped: follow.follower().senders_dropped(),
            throttled: follow.follower().throttled().cloned().collect(),
            events: follow.events_counted(),
            recorder: follow.events,
        }))
    }
}

/// The message's times that its stall does not hold.
fn times(row: &SlowRow) -> MessageTimesRow {
    let message = &row.message;
    MessageTimesRow {
        stall: row.stall.id,
        published: message.published,
        published_before: message.published_before,
        received_before: message.received_before,
        waited: message.waited,
    }
}

/// Splits a slow message whose victim is its consumer, live or in a replay. `producer`: who sent it, and by which way.
pub(crate) fn split(
    follower: &ThreadFollower,
    (producer, via): (i32, PipelineVia),
    stall: &Stall,
    times: &MessageTimesRow,
    names: &dyn NameResolver,
) -> Attribution {
    let window = MessageWindow {
        intended: stall.start,
        published: times.published,
        received: stall.end,
        published_before: times.published_before,
        received_before: times.received_before,
        waited: times.waited,
        in_kernel: via.is_in_kernel(),
    };
    follower.split(stall.id, (producer, stall.victim.tid), &window, names)
}
