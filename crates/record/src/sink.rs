//! The store as a recording sees it: a failure to write must not end the measurement.

use crate::kernel_events::PageKeeper;
use crate::warnings::Circumstance;
use hdrhistogram::Histogram;
use jitterscope_model::{
    Attribution, ClockReading, CpuId, DrainTurn, IntervalRow, MachineState, RunManifest, Stall, TickRate,
    Ticks,
};
use jitterscope_store::{RunWriter, StoreError, TraceRole};
use jitterscope_trace::{Role, TraceContext};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Takes in a recording's rows. Pages of the trace come through [`PageKeeper`].
pub(crate) trait Rows: PageKeeper {
    /// From here on rows count.
    fn begin(&mut self, clock: ClockReading, rate: TickRate) -> Result<(), StoreError>;

    /// One stall, and its attribution where there is one.
    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>);

    /// The attribution of a stall that was taken in before; in order of their ids.
    fn attribution(&mut self, _attribution: &Attribution) {}

    /// One interval of one CPU.
    fn interval(&mut self, row: &IntervalRow, lengths: &Histogram<u64>);

    /// What is needed to decode the trace.
    fn context(&mut self, _context: &TraceContext) {}

    /// Time for what must be done now and then.
    fn keep_room(&mut self) {}
}

/// Writes a run. The first error is kept for the end; what follows it is dropped. A full disk is no such
/// error: the raw trace is given up for it, and then the recording ends with what is stored.
pub(crate) struct Sink {
    writer: RunWriter,
    /// Names the histograms.
    probe: &'static str,
    error: Option<StoreError>,
    begun: bool,
    last_look: Instant,
    room: Room,
    /// Whether a row found no room. None is stored after it, lest there be a hole.
    cut: bool,
    /// Stalls that are not stored.
    unstored: u64,
}

/// How the disk is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// There is space.
    Ample,
    /// There was none; the raw trace was given up and there is again.
    TraceGivenUp,
    /// There is none even so: the recording must end while it can still be closed.
    None,
}

/// How often the free space is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Sink {
    pub(crate) fn new(writer: RunWriter, probe: &'static str) -> Sink {
        Sink {
            writer,
            probe,
            error: None,
            begun: false,
            last_look: Instant::now(),
            room: Room::Ample,
            cut: false,
            unstored: 0,
        }
    }

    /// Whether it was written.
    fn attempt(&mut self, write: impl Fn(&mut RunWriter) -> Result<(), StoreError>) -> bool {
        self.begun && self.attempt_now(write)
    }

    /// The same before the measurement, too: the trace of the warm-up is kept, so that a replay begins as the
    /// recording did.
    fn attempt_now(&mut self, write: impl Fn(&mut RunWriter) -> Result<(), StoreError>) -> bool {
        if self.error.is_some() {
            return false;
        }
        let mut result = write(&mut self.writer);
        if self.room == Room::Ample && result.as_ref().is_err_and(StoreError::is_full) {
            self.room = Room::TraceGivenUp;
            result = self.writer.discard_trace().and_then(|()| write(&mut self.writer));
        }
        match result {
            Ok(()) => return true,
            Err(error) if error.is_full() => self.room = Room::None,
            Err(error) => self.error = Some(error),
        }
        false
    }

    /// Whether the recording must end: nothing more can be written.
    pub(crate) fn is_stuck(&self) -> bool {
        self.error.is_some() || self.room == Room::None
    }

    /// What to say of the disk, once everything but the manifest is written.
    pub(crate) fn of_room(&self) -> Option<Circumstance> {
        match self.room {
            Room::Ample => None,
            Room::TraceGivenUp => {
                Some(Circumstance::TraceDiscarded { why: "the disk was filling up".into() })
            }
            Room::None => Some(Circumstance::DiskFull { unstored: self.unstored }),
        }
    }

    /// A histogram of a whole measurement, under a tag of its own.
    pub(crate) fn tagged(&mut self, tag: &str, start: Ticks, end: Ticks, histogram: &Histogram<u64>) {
        self.attempt(|w| w.tagged_histogram(tag, start, end, histogram));
    }

    /// The machine that it was made on.
    pub(crate) fn machine(&mut self, state: &MachineState) {
        self.attempt(|w| w.machine(state));
    }

    /// Closes the run.
    pub(crate) fn finish(self, manifest: RunManifest) -> Result<PathBuf, StoreError> {
        match self.error {
            Some(error) => Err(error),
            None => self.writer.finish(manifest),
        }
    }
}

impl Rows for Sink {
    fn begin(&mut self, clock: ClockReading, rate: TickRate) -> Result<(), StoreError> {
        self.begun = true;
        self.writer.begin(clock, rate)
    }

    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>) {
        if self.cut || !self.attempt(|w| w.stall(stall)) {
            self.cut |= self.begun;
            self.unstored += u64::from(self.begun);
        } else if let Some(attribution) = attribution {
            self.attribution(attribution);
        }
    }

    fn attribution(&mut self, attribution: &Attribution) {
        self.cut = self.cut || !self.attempt(|w| w.attribution(attribution)) && self.begun;
    }

    fn interval(&mut self, row: &IntervalRow, lengths: &Histogram<u64>) {
        let probe = self.probe;
        // One without the other would set a reader's series against each other.
        if self.attempt(|w| w.interval(row)) {
            self.attempt(|w| w.interval_histogram(probe, row.cpu, row.start, row.end, lengths));
        }
    }

    fn context(&mut self, context: &TraceContext) {
        self.attempt(|w| w.trace_context(context));
    }

    /// Looks at the free space now and then, and gives up the raw trace when it runs out.
    fn keep_room(&mut self) {
        if self.last_look.elapsed() < LOOK_EVERY {
            return;
        }
        self.last_look = Instant::now();
        if !self.writer.is_space_low() {
            return;
        }
        self.room = match self.room {
            Room::Ample => {
                self.attempt(RunWriter::discard_trace);
                Room::TraceGivenUp
            }
            Room::TraceGivenUp | Room::None => Room::None,
        };
    }
}

impl PageKeeper for Sink {
    fn keep(&mut self, role: Role, cpu: CpuId, first: Ticks, last: Ticks, page: &[u8]) {
        let role = match role {
            Role::Local => TraceRole::Local,
            Role::Senders => TraceRole::Senders,
        };
        self.attempt_now(|w| w.trace_page(role, cpu, first, last, page));
    }

    fn turn(&mut self, turn: &DrainTurn) {
        self.attempt_now(|w| w.drain_turn(turn));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, StallId, ThreadRef};
    use jitterscope_testing::Tmpfs;
    use std::io::Write;

    fn stall(n: u64) -> Stall {
        let victim = ThreadRef { tid: 7, comm: Comm::new("x") };
        // Lengths without a pattern, which compression could take away.
        let (start, length) = (Ticks(n << 40), n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30);
        Stall { id: StallId(n), cpu: CpuId(1), victim, start, end: start + Ticks(length) }
    }

    #[test]
    fn a_full_disk_takes_the_trace_first_and_then_ends_the_recording_with_a_count() {
        let Some(disk) = Tmpfs::mount(80 << 20) else { return };
        let clock = ClockReading { ticks: Ticks(0), monotonic_raw_ns: 1, realtime_ns: 1, width_ticks: 1 };
        let mut sink = Sink::new(RunWriter::create(disk.path(), "L", 1).unwrap(), "spin");
        sink.begin(clock, TickRate::NANOSECONDS).unwrap();
        let page = |sink: &mut Sink| sink.keep(Role::Local, CpuId(1), Ticks(1), Ticks(2), &[1; 4096]);
        (0..300).for_each(|_| page(&mut sink));
        assert!(sink.of_room().is_none());
        let mut other = std::fs::File::create(disk.path().join("other")).unwrap();
        while other.write_all(&[1; 4096]).is_ok() {}
        (0..300).for_each(|_| page(&mut sink));
        assert!(matches!(sink.of_room(), Some(Circumstance::TraceDiscarded { .. })) && !sink.is_stuck());
        while other.write_all(&[1; 4096]).is_ok() {}
        let mut stored = 0;
        while !sink.is_stuck() {
            sink.stall(&stall(stored), None);
            stored += 1;
            assert!(stored < 10_000_000, "it never ends");
        }
        (0..9).for_each(|n| sink.stall(&stall(stored + n), None));
        assert_eq!(sink.of_room(), Some(Circumstance::DiskFull { unstored: 10 }));
        let told = sink.of_room().unwrap().warning().text;
        assert!(told.contains("Its last 10 stalls are counted but have no record"), "{told}");
        assert!(sink.error.is_none());
    }
}
