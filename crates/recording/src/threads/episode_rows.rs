//! Writes the stalls of followed threads as the rows of a run.

use crate::engine::Batch;
use jitterscope_attribute::ThreadFollower;
use jitterscope_model::{
    Attribution, CpuId, IntervalRow, Nanos, Sink, SinkError, Stall, StallId, TickRate, Ticks,
};
use std::collections::BTreeMap;

/// Length of a reporting interval.
pub(crate) const INTERVAL: Nanos = Nanos(1_000_000_000);

pub(crate) struct EpisodeRows {
    threshold: Ticks,
    rate: TickRate,
    interval: Ticks,
    pub(crate) next_id: u64,
    pub(crate) worst: Nanos,
    interval_start: Ticks,
    sums: BTreeMap<CpuId, Sums>,
    batch: Batch,
}

struct Sums {
    count: u64,
    max: Nanos,
    stolen: Nanos,
    lengths: hdrhistogram::Histogram<u64>,
}

impl EpisodeRows {
    pub(crate) fn new(threshold: Nanos, rate: TickRate, start: Ticks) -> EpisodeRows {
        EpisodeRows {
            threshold: rate.ticks(threshold),
            rate,
            interval: rate.ticks(INTERVAL),
            next_id: 0,
            worst: Nanos::ZERO,
            interval_start: start,
            sums: BTreeMap::new(),
            batch: Batch::default(),
        }
    }

    /// Sets another length of the reporting intervals.
    pub(crate) fn every(self, interval: Nanos) -> EpisodeRows {
        EpisodeRows {
            interval: self.rate.ticks(interval),
            ..self
        }
    }

    pub(crate) fn take_in(
        &mut self,
        follower: &mut ThreadFollower,
        now: Ticks,
        sink: &mut dyn Sink,
    ) -> Result<(), SinkError> {
        for episode in follower.take_episodes() {
            if episode.length() >= self.threshold {
                self.stall(|id, rate| episode.as_stall(id, rate), sink)?;
            }
        }
        self.until(now, sink)
    }

    /// Adds a stall with its attribution.
    pub(crate) fn stall(
        &mut self,
        make: impl FnOnce(StallId, TickRate) -> (Stall, Attribution),
        sink: &mut dyn Sink,
    ) -> Result<(), SinkError> {
        let (stall, attribution) = make(StallId(self.next_id), self.rate);
        self.next_id += 1;
        let length = self.rate.nanos(stall.length());
        self.worst = self.worst.max(length);
        if let Some(sums) = sums_of(&mut self.sums, stall.cpu) {
            sums.count += 1;
            sums.max = sums.max.max(length);
            sums.stolen += length;
            sums.lengths.saturating_record(length.0);
        }
        self.batch.stall(sink, stall, Some(attribution))
    }

    /// All stalls of a turn are there: writes them, and the current interval if it is over.
    pub(crate) fn until(&mut self, now: Ticks, sink: &mut dyn Sink) -> Result<(), SinkError> {
        self.batch.flush(sink)?;
        if now.since(self.interval_start) >= self.interval {
            self.close_interval(now, sink)?;
        }
        Ok(())
    }

    /// A stall counts in the interval in which it was taken in, at most a drain after its end.
    pub(crate) fn close_interval(
        &mut self,
        now: Ticks,
        sink: &mut dyn Sink,
    ) -> Result<(), SinkError> {
        for (cpu, sums) in std::mem::take(&mut self.sums) {
            let row = IntervalRow {
                cpu,
                start: self.interval_start,
                end: now,
                count: sums.count,
                max: sums.max,
                stolen: sums.stolen,
            };
            self.batch.interval(sink, &row, &sums.lengths)?;
        }
        self.interval_start = now;
        Ok(())
    }
}

fn sums_of(sums: &mut BTreeMap<CpuId, Sums>, cpu: CpuId) -> Option<&mut Sums> {
    use std::collections::btree_map::Entry;
    Some(match sums.entry(cpu) {
        Entry::Occupied(there) => there.into_mut(),
        Entry::Vacant(room) => {
            let lengths = hdrhistogram::Histogram::new_with_bounds(1, 3_600_000_000_000, 3).ok()?;
            room.insert(Sums {
                count: 0,
                max: Nanos::ZERO,
                stolen: Nanos::ZERO,
                lengths,
            })
        }
    })
}
