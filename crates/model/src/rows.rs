//! What a recording says as it goes, and who takes it.
//!
//! A recording begins, hands over its rows in batches, and ends. The store keeps them, a summary adds them up,
//! an exporter writes them in another tool's format: each is a [`Sink`], and each is given the same rows in the
//! same order, whether they come from a measurement or from a stored run.

use crate::{
    Attribution, ClockReading, CpuId, CpuSet, DrainTurn, IntervalRow, Nanos, RunManifest, Stall,
    TickRate, Ticks,
};
use hdrhistogram::Histogram;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// What whoever writes the lengths of intervals' stalls into a file says there: a probe counts and sums up every
/// stall, but keeps the length of each only where its queue has room.
pub const LENGTHS_REMARK: &str =
    "[Stalls without a record of their own are in an interval's histogram with their mean length]";

/// What is known of a run before its first row: whose rows they are, and the clock to date them with.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    /// The run's id.
    pub id: String,
    /// The user's name for the configuration.
    pub label: String,
    /// The machine.
    pub hostname: String,
    /// The probe.
    pub probe: String,
    /// CPUs measured.
    pub cpus: CpuSet,
    /// Shortest stall; zero where it is learnt while recording.
    pub threshold: Nanos,
    /// Length of an interval.
    pub interval: Nanos,
    /// Rate of the measuring clock.
    pub rate: TickRate,
    /// Clocks at the start: rows are dated from here on the measuring clock, so that a step of the wall
    /// clock bends nothing.
    pub clock: ClockReading,
}

impl RunFacts {
    /// Those of a stored run.
    #[must_use]
    pub fn of(manifest: &RunManifest) -> RunFacts {
        RunFacts {
            id: manifest.id.clone(),
            label: manifest.label.clone(),
            hostname: manifest.host.hostname.clone(),
            probe: manifest.probe.kind.clone(),
            cpus: manifest.probe.cpus.clone(),
            threshold: manifest.probe.threshold_ns,
            interval: manifest.probe.interval_ns,
            rate: manifest.rate,
            clock: manifest.clock_start,
        }
    }

    /// An instant in nanoseconds since the epoch.
    #[must_use]
    pub fn epoch_ns(&self, at: Ticks) -> u64 {
        self.clock.realtime_of(at, self.rate)
    }
}

/// Which side of a recording of kernel events a page comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceRole {
    /// What ran on the measured CPUs.
    Local,
    /// What was aimed at the measured CPUs, from any CPU.
    Senders,
    /// The kernel's functions that ran on the measured CPUs, as its tracer `function_graph` records them.
    Graph,
}

impl TraceRole {
    /// Its name, in the name of a tracing instance and on disk.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            TraceRole::Local => "local",
            TraceRole::Senders => "senders",
            TraceRole::Graph => "graph",
        }
    }
}

/// A page of the kernel's ring buffer as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawPage<'a> {
    /// Whose buffer it is from.
    pub role: TraceRole,
    /// Its CPU.
    pub cpu: CpuId,
    /// Time of its first record.
    pub first: Ticks,
    /// Time of its last record.
    pub last: Ticks,
    /// All of it.
    pub bytes: &'a [u8],
}

/// One thing that a recording says.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// A stall, with its attribution where it has one. Ids ascend.
    Stall(&'a Stall, Option<&'a Attribution>),
    /// An interval of a CPU, with the lengths of its stalls in nanoseconds. Its stalls come before it.
    Interval(&'a IntervalRow, &'a Histogram<u64>),
    /// A histogram of the whole measurement, in nanoseconds: its tag, the time it is of, and itself. After
    /// all intervals.
    Whole(&'a str, (Ticks, Ticks), &'a Histogram<u64>),
    /// A page of kernel records. Pages and turns come before the beginning, too: of the warm-up.
    Page(RawPage<'a>),
    /// What else the recorder did in the turn whose pages came before this.
    Turn(&'a DrainTurn),
}

/// A stall, with its attribution where it has one.
pub type AttributedStall = (Stall, Option<Attribution>);

/// Takes what a recording says. While recording, it is called by one thread at a time, which may be the one that
/// drains the probes: a call must not wait for anything slower than a local disk.
pub trait Sink {
    /// Whether [`Sink::begin`] can be refused for what the run is, or by somebody else. A file, once open,
    /// does not refuse.
    fn may_refuse(&self) -> bool {
        false
    }

    /// The run is about to be measured, or to be read. It is the one call that may wait for somebody.
    ///
    /// # Errors
    /// The run is refused; nothing was written.
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError>;

    /// Rows, in about the order of time.
    ///
    /// # Errors
    /// No more can be taken. The rows of this call may have been taken in part.
    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError>;

    /// Rows of stalls that whoever has them needs no more: what hands them to another thread moves them there. The
    /// list is empty afterwards.
    ///
    /// # Errors
    /// As [`Sink::rows`].
    fn stalls(&mut self, stalls: &mut Vec<AttributedStall>) -> Result<(), SinkError> {
        let rows: Vec<Row<'_>> = stalls
            .iter()
            .map(|(stall, own)| Row::Stall(stall, own.as_ref()))
            .collect();
        let taken = self.rows(&rows);
        stalls.clear();
        taken
    }

    /// Whether this row becomes something here; the others are passed over.
    fn takes(&self, _row: &Row<'_>) -> bool {
        false
    }

    /// Some time has passed: what was held back to be written together may go out. Returns how many rows are
    /// out for good by now.
    ///
    /// # Errors
    /// As [`Sink::rows`].
    fn tick(&mut self) -> Result<u64, SinkError> {
        Ok(0)
    }

    /// The end, with what the run turned out to be: everything out, and what became of it.
    ///
    /// # Errors
    /// As [`Sink::rows`].
    fn end(&mut self, run: &RunManifest) -> Result<Delivery, SinkError>;
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn may_refuse(&self) -> bool {
        (**self).may_refuse()
    }

    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        (**self).begin(facts)
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        (**self).rows(batch)
    }

    fn stalls(&mut self, stalls: &mut Vec<AttributedStall>) -> Result<(), SinkError> {
        (**self).stalls(stalls)
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        (**self).takes(row)
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        (**self).tick()
    }

    fn end(&mut self, run: &RunManifest) -> Result<Delivery, SinkError> {
        (**self).end(run)
    }
}

/// Keeps nothing: of a replay, whose rows are stored already.
impl Sink for () {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), SinkError> {
        Ok(())
    }

    fn rows(&mut self, _batch: &[Row<'_>]) -> Result<(), SinkError> {
        Ok(())
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::default())
    }
}

/// Begins them all. Those that may say no come first: what another one had is then still there.
///
/// # Errors
/// One refuses.
pub fn begin_all<S: Sink + ?Sized>(
    sinks: &mut [&mut S],
    facts: &RunFacts,
) -> Result<(), SinkError> {
    for may_refuse in [true, false] {
        for sink in sinks
            .iter_mut()
            .filter(|sink| sink.may_refuse() == may_refuse)
        {
            sink.begin(facts)?;
        }
    }
    Ok(())
}

/// What became of the rows that a sink was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Rows written or accepted.
    pub delivered: u64,
    /// Rows known to be lost: refused, dropped because a queue was full, or after an error.
    pub lost: u64,
    /// Deliveries that were tried again.
    pub retries: u64,
    /// Whether `delivered` is known; over UDP it is what was sent.
    pub confirmed: bool,
    /// The last thing that went wrong.
    pub problem: Option<String>,
}

impl Delivery {
    /// Everything delivered, for sinks that cannot lose.
    #[must_use]
    pub fn of(rows: u64) -> Delivery {
        Delivery {
            delivered: rows,
            confirmed: true,
            ..Delivery::default()
        }
    }
}

/// A sink that takes no rows, or no more of them.
#[derive(Clone, Debug)]
pub struct SinkError {
    source: Arc<dyn Error + Send + Sync>,
    usage: bool,
}

impl SinkError {
    /// Something is wrong with where the rows go.
    pub fn new(source: impl Error + Send + Sync + 'static) -> SinkError {
        SinkError {
            source: Arc::new(source),
            usage: false,
        }
    }

    /// The sink was asked for wrongly.
    pub fn usage(source: impl Error + Send + Sync + 'static) -> SinkError {
        SinkError {
            source: Arc::new(source),
            usage: true,
        }
    }

    /// Whether it was asked for wrongly, as opposed to something being wrong with where the rows go.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        self.usage
    }
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Error for SinkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}
