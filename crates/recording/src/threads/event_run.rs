//! A running recording that uses only kernel events: the common part of following threads and watching CPUs.

use super::episode_rows::EpisodeRows;
use super::follow::{Follow, TakesRecords};
use crate::observer::Progress;
use jitterscope_attribute::{NameResolver, ThreadFollower};
use jitterscope_model::{ClockKind, DrainTurn, Nanos, Sink, SinkError, TickRate, Ticks};
use jitterscope_platform::clock;

/// Stolen stretches, waits and interruptions closer together than this are one stall.
pub(crate) const JOIN_WITHIN: Nanos = Nanos(1_000);

/// Turns records into rows.
pub(crate) trait MakesRows: TakesRecords {
    /// Hands over complete stalls, and the current interval if it is over.
    fn make_rows(
        &mut self,
        rows: &mut EpisodeRows,
        now: Ticks,
        sink: &mut dyn Sink,
    ) -> Result<(), SinkError>;
}

impl MakesRows for ThreadFollower {
    fn make_rows(
        &mut self,
        rows: &mut EpisodeRows,
        now: Ticks,
        sink: &mut dyn Sink,
    ) -> Result<(), SinkError> {
        rows.take_in(self, now, sink)
    }
}

/// Kernel events that become rows turn by turn, until a given time or until it is stopped.
pub(crate) struct EventRun<F = ThreadFollower> {
    pub(crate) follow: Follow<F>,
    rows: EpisodeRows,
    clock: ClockKind,
    rate: TickRate,
    threshold: Nanos,
    pub(crate) start: Ticks,
    /// The kernel's events were drained up to here.
    pub(crate) now: Ticks,
    pub(crate) end: Ticks,
    /// Whether no more records arrive, or it was stopped.
    pub(crate) over: bool,
}

impl<F: MakesRows> EventRun<F> {
    /// Not measuring yet. `threshold`: the shortest stall that gets a row.
    pub(crate) fn new(
        follow: Follow<F>,
        threshold: Nanos,
        (clock, rate): (ClockKind, TickRate),
    ) -> EventRun<F> {
        EventRun {
            follow,
            rows: EpisodeRows::new(threshold, rate, Ticks(0)),
            clock,
            rate,
            threshold,
            start: Ticks(0),
            now: Ticks(0),
            end: Ticks(u64::MAX),
            over: false,
        }
    }

    pub(crate) fn begin(&mut self, start: Ticks, end: Ticks, interval: Nanos) {
        (self.start, self.now) = (start, start);
        self.rows = EpisodeRows::new(self.threshold, self.rate, start).every(interval);
        self.measure_until(end);
    }

    pub(crate) fn measure_until(&mut self, end: Ticks) {
        self.end = end;
        self.follow.measure(self.start, end);
    }

    /// Reads everything that the kernel has recorded. The caller must end the turn.
    pub(crate) fn drain(&mut self, outputs: &mut dyn Sink) -> Result<(), SinkError> {
        self.now = clock::now(self.clock);
        self.follow.drain(self.now, outputs)
    }

    /// Turns what was drained into rows.
    pub(crate) fn end_turn(&mut self, outputs: &mut dyn Sink) -> Result<(), SinkError> {
        self.follow
            .follower_mut()
            .make_rows(&mut self.rows, self.now.min(self.end), outputs)?;
        self.follow.end_turn(
            outputs,
            DrainTurn {
                stalls: self.rows.next_id,
                ..DrainTurn::default()
            },
        )
    }

    /// The progress of `total` since `from`.
    pub(crate) fn progress(&self, from: Ticks, total: Nanos) -> Progress {
        let elapsed = self.rate.nanos(self.now.since(from));
        Progress {
            elapsed,
            total,
            stalls: self.rows.next_id,
            worst: self.rows.worst,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over || self.now >= self.end
    }

    /// Stops recording and writes the remaining rows up to `last`. Calls `close` with the follower once it has every
    /// record, and returns its result.
    pub(crate) fn finish<T>(
        &mut self,
        last: Ticks,
        outputs: &mut dyn Sink,
        close: impl FnOnce(&mut F, &dyn NameResolver) -> T,
    ) -> Result<T, SinkError> {
        self.follow.last_drain(outputs)?;
        let (follower, names) = self.follow.follower_and_names();
        let closed = close(follower, names);
        follower.make_rows(&mut self.rows, last, outputs)?;
        let turn = DrainTurn {
            stalls: self.rows.next_id,
            end: Some(last),
            ..DrainTurn::default()
        };
        self.follow.end_turn(outputs, turn)?;
        self.rows.close_interval(last, outputs)?;
        Ok(closed)
    }
}
