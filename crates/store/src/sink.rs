//! The store as a sink of a recording: a write error must not end the measurement.

use crate::error::StoreError;
use crate::writer::RunWriter;
use jitterscope_model::{
    Attribution, Delivery, MachineState, Row, RunFacts, RunManifest, Sink, SinkError, Stall,
};
use serde::Serialize;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The interval between checks of the free space.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The state of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Ample,
    /// The disk was full; removing the raw trace made room.
    TraceGivenUp,
    /// The disk is full even without the raw trace: the recording must end while the run can still be closed.
    None {
        /// The number of stalls that are not stored.
        unstored: u64,
    },
}

/// Writes a run while it is recorded. It keeps the first error for the end and drops everything after it. A full disk
/// is not such an error: the sink removes the raw trace, and if that is not enough, the recording ends with the rows
/// stored so far. [`Sink::rows`] therefore never fails; [`StoreSink::is_stuck`] says whether to go on.
pub struct StoreSink {
    /// `None` once it is closed.
    writer: Option<RunWriter>,
    id: String,
    /// The prefix of the histograms' tags.
    probe: String,
    error: Option<StoreError>,
    begun: bool,
    last_look: Instant,
    room: Room,
    /// Whether a row found no room. No later row is stored, so that there is no gap.
    cut: bool,
    unstored: u64,
    stored: u64,
}

impl StoreSink {
    #[must_use]
    pub fn new(writer: RunWriter) -> StoreSink {
        StoreSink {
            id: writer.id().to_owned(),
            writer: Some(writer),
            probe: String::new(),
            error: None,
            begun: false,
            last_look: Instant::now(),
            room: Room::Ample,
            cut: false,
            unstored: 0,
            stored: 0,
        }
    }

    /// Returns whether the write succeeded.
    fn attempt(&mut self, write: impl Fn(&mut RunWriter) -> Result<(), StoreError>) -> bool {
        self.begun && self.attempt_now(write)
    }

    /// Writes before the measurement too: the trace of the warm-up is kept, so that a replay begins where the recording
    /// did.
    fn attempt_now(&mut self, write: impl Fn(&mut RunWriter) -> Result<(), StoreError>) -> bool {
        let Some(writer) = self.writer.as_mut().filter(|_| self.error.is_none()) else {
            return false;
        };
        let mut result = write(writer);
        if result.as_ref().is_err_and(StoreError::is_full) && writer.give_up_log() {
            result = write(writer);
        }
        if self.room == Room::Ample && result.as_ref().is_err_and(StoreError::is_full) {
            self.room = Room::TraceGivenUp;
            result = writer.discard_trace().and_then(|()| write(writer));
        }
        match result {
            Ok(()) => return true,
            Err(error) if error.is_full() => self.room = Room::None { unstored: 0 },
            Err(error) => self.error = Some(error),
        }
        false
    }

    /// As [`Sink::begin`].
    ///
    /// # Errors
    /// The disk is full or fails.
    pub fn begin_at(&mut self, facts: &RunFacts) -> Result<(), StoreError> {
        self.begun = true;
        self.probe.clone_from(&facts.probe);
        self.writer
            .as_mut()
            .map_or(Err(StoreError::NotBegun), |writer| {
                writer.begin(facts.clock, facts.rate)
            })
    }

    /// The run's id, already before the run has its name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Makes the file of a pipeline's journal in the run's folder. Returns the file and its name.
    ///
    /// # Errors
    /// The file exists already, or cannot be made.
    pub fn make_journal(&self) -> Result<(File, &'static str), StoreError> {
        self.writer
            .as_ref()
            .ok_or(StoreError::NotBegun)?
            .make_journal()
    }

    /// Whether the recording must end: nothing more can be written.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.error.is_some() || matches!(self.room, Room::None { .. })
    }

    /// The final state of the disk, once everything but the manifest is written.
    #[must_use]
    pub fn room(&self) -> Room {
        match self.room {
            Room::None { .. } => Room::None {
                unstored: self.unstored,
            },
            other => other,
        }
    }

    /// Stores what is known when the measurement begins, for the next start if this process is killed.
    pub fn beginning(&mut self, manifest: &RunManifest) {
        self.attempt(|w| w.beginning(manifest));
    }

    /// Stores the machine of the recording.
    pub fn machine(&mut self, state: &MachineState) {
        self.attempt(|w| w.machine(state));
    }

    /// Stores the summary of the rows.
    pub fn summary(&mut self, sums: &impl Serialize) {
        self.attempt(|w| w.summary(sums));
    }

    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>) {
        if self.cut || !self.attempt(|w| w.stall(stall)) {
            self.cut |= self.begun;
            self.unstored += u64::from(self.begun);
            return;
        }
        self.stored += 1;
        if let Some(attribution) = attribution {
            self.cut = !self.attempt(|w| w.attribution(attribution));
        }
    }

    fn give_up_log(&mut self) -> bool {
        self.writer.as_mut().is_some_and(RunWriter::give_up_log)
    }

    /// Checks the free space at intervals, and removes the raw trace when space runs out.
    fn keep_room(&mut self) {
        if self.last_look.elapsed() < LOOK_EVERY {
            return;
        }
        self.last_look = Instant::now();
        let is_low = |sink: &StoreSink| sink.writer.as_ref().is_some_and(RunWriter::is_space_low);
        // Only a killed recorder needs the log.
        if !is_low(self) || (self.give_up_log() && !is_low(self)) {
            return;
        }
        self.room = match self.room {
            Room::Ample => {
                self.attempt(RunWriter::discard_trace);
                Room::TraceGivenUp
            }
            Room::TraceGivenUp | Room::None { .. } => Room::None { unstored: 0 },
        };
    }

    /// Closes the run and returns its folder.
    ///
    /// # Errors
    /// As [`StoreSink::close`].
    pub fn finish(&mut self, mut manifest: RunManifest) -> Result<PathBuf, StoreError> {
        self.close(&mut manifest)
    }

    /// Closes the run and returns its folder. Afterwards `manifest` equals what a reader of the run finds.
    ///
    /// # Errors
    /// The first error of any write, or the error of closing. Nothing is left then.
    pub fn close(&mut self, manifest: &mut RunManifest) -> Result<PathBuf, StoreError> {
        match (self.error.take(), self.writer.take()) {
            (None, Some(writer)) => writer.close(manifest),
            (Some(error), _) => Err(error),
            (None, None) => Err(StoreError::NotBegun),
        }
    }
}

impl Sink for StoreSink {
    fn may_refuse(&self) -> bool {
        true
    }

    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        self.begin_at(facts).map_err(SinkError::new)
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        for row in batch {
            match row {
                Row::Stall(stall, attribution) => self.stall(stall, *attribution),
                Row::Interval(row, lengths) => {
                    // An interval and its histogram are stored together or not at all: a reader's series would be
                    // shifted otherwise.
                    if self.attempt(|w| w.interval(row)) {
                        let probe = std::mem::take(&mut self.probe);
                        self.attempt(|w| {
                            w.interval_histogram(&probe, row.cpu, row.start, row.end, lengths)
                        });
                        self.probe = probe;
                    }
                }
                Row::Whole(tag, (start, end), times) => {
                    self.attempt(|w| w.tagged_histogram(tag, *start, *end, times));
                }
                Row::Page(page) => {
                    self.attempt_now(|w| {
                        w.trace_page(page.role, page.cpu, page.first, page.last, page.bytes)
                    });
                }
                Row::Turn(turn) => {
                    self.attempt_now(|w| w.drain_turn(turn));
                }
                Row::Context(json) => {
                    self.attempt_now(|w| w.trace_context(json));
                }
            }
        }
        Ok(())
    }

    fn takes(&self, _row: &Row<'_>) -> bool {
        true
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        self.keep_room();
        self.attempt(RunWriter::tick);
        Ok(self.stored)
    }

    fn end(&mut self, run: &RunManifest) -> Result<Delivery, SinkError> {
        self.finish(run.clone()).map_err(SinkError::new)?;
        Ok(Delivery {
            lost: self.unstored,
            ..Delivery::of(self.stored)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{
        ClockReading, Comm, CpuId, Nanos, RawPage, StallId, ThreadRef, TickRate, Ticks, TraceRole,
    };
    use jitterscope_testing::Tmpfs;
    use std::io::Write;

    fn stall(n: u64) -> Stall {
        let victim = ThreadRef {
            tid: 7,
            comm: Comm::new("x"),
        };
        // Lengths without a pattern, so that they do not compress.
        let (start, length) = (Ticks(n << 40), n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30);
        Stall {
            id: StallId(n),
            cpu: CpuId(1),
            victim,
            start,
            end: start + Ticks(length),
        }
    }

    fn facts() -> RunFacts {
        RunFacts {
            id: String::new(),
            label: "L".into(),
            hostname: "host".into(),
            probe: "spin".into(),
            cpus: [CpuId(1)].into_iter().collect(),
            threshold: Nanos(300),
            interval: Nanos(1_000_000_000),
            rate: TickRate::NANOSECONDS,
            clock: ClockReading {
                ticks: Ticks(0),
                monotonic_raw_ns: 1,
                realtime_ns: 1,
                boottime_ns: None,
                width_ticks: 1,
            },
        }
    }

    #[test]
    fn a_full_disk_costs_the_trace_first_then_ends_the_recording() {
        let Some(disk) = Tmpfs::mount_or_run_where_it_can(80 << 20) else {
            return;
        };
        let mut sink = StoreSink::new(RunWriter::create(disk.path(), "L", 1).unwrap());
        sink.begin(&facts()).unwrap();
        let (first, last, bytes) = (Ticks(1), Ticks(2), &[1; 4096]);
        let page = RawPage {
            role: TraceRole::Local,
            cpu: CpuId(1),
            first,
            last,
            bytes,
        };
        let page = |sink: &mut StoreSink| sink.rows(&[Row::Page(page)]).unwrap();
        (0..300).for_each(|_| page(&mut sink));
        assert_eq!(sink.room(), Room::Ample);
        let mut other = std::fs::File::create(disk.path().join("other")).unwrap();
        while other.write_all(&[1; 4096]).is_ok() {}
        (0..300).for_each(|_| page(&mut sink));
        assert!(sink.room() == Room::TraceGivenUp && !sink.is_stuck());
        while other.write_all(&[1; 4096]).is_ok() {}
        let mut stored = 0;
        let row = |sink: &mut StoreSink, n| sink.rows(&[Row::Stall(&stall(n), None)]).unwrap();
        while !sink.is_stuck() {
            row(&mut sink, stored);
            stored += 1;
            assert!(stored < 10_000_000, "it never ends");
        }
        (0..9).for_each(|n| row(&mut sink, stored + n));
        assert_eq!(sink.room(), Room::None { unstored: 10 });
        assert!(sink.error.is_none());
    }

    #[test]
    fn low_disk_ends_the_trace_first_then_the_recording() {
        let Some(disk) = Tmpfs::mount_or_run_where_it_can(80 << 20) else {
            return;
        };
        let mut sink = StoreSink::new(RunWriter::create(disk.path(), "L", 1).unwrap());
        sink.begin(&facts()).unwrap();
        // Pretends that the last check was `ago`.
        let look = |sink: &mut StoreSink, ago: Duration| {
            sink.last_look = Instant::now().checked_sub(ago).unwrap();
            sink.tick().unwrap();
            sink.room()
        };
        assert_eq!(look(&mut sink, LOOK_EVERY), Room::Ample, "there is space");
        let mut other = std::fs::File::create(disk.path().join("other")).unwrap();
        (0..50).for_each(|_| other.write_all(&[1; 1 << 20]).unwrap());
        assert_eq!(
            look(&mut sink, LOOK_EVERY / 2),
            Room::Ample,
            "nobody has looked"
        );
        assert_eq!(look(&mut sink, LOOK_EVERY), Room::TraceGivenUp);
        assert_eq!(sink.tick().unwrap(), 0);
        assert_eq!(
            sink.room(),
            Room::TraceGivenUp,
            "it has just been looked at"
        );
        assert!(!sink.is_stuck());
        assert_eq!(look(&mut sink, LOOK_EVERY), Room::None { unstored: 0 });
        assert!(sink.is_stuck());
    }
}
