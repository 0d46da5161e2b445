//! The rows of a recording, and their consumers.
//!
//! A recording begins, delivers its rows in batches, and ends. The store keeps them, a summary adds them up, an
//! exporter writes them in another tool's format. Each is a [`Sink`], and each gets the same rows in the same order,
//! from a measurement as well as from a stored run.

use crate::{
    Attribution, ClockReading, CpuId, CpuSet, DrainTurn, IntervalRow, Nanos, RunManifest, Stall,
    TickRate, Ticks,
};
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The remark that files with the lengths of stalls contain: a probe counts and sums every stall, but keeps its length
/// only if its queue has room.
pub const LENGTHS_REMARK: &str =
    "[Stalls without a record of their own are in an interval's histogram with their mean length]";

/// The facts about a run that are known before its first row, including the clock for the rows' timestamps.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFacts {
    pub id: String,
    /// The user's name for the configuration.
    pub label: String,
    pub hostname: String,
    pub probe: String,
    pub cpus: CpuSet,
    /// Shortest stall; zero if it is derived during the recording.
    pub threshold: Nanos,
    /// Length of an interval.
    pub interval: Nanos,
    /// Rate of the measuring clock.
    pub rate: TickRate,
    /// Clocks at the start. Rows are dated from here on the measuring clock, so a step of the wall clock distorts
    /// nothing.
    pub clock: ClockReading,
}

impl RunFacts {
    /// The facts of a stored run.
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

    /// Converts an instant to nanoseconds since the epoch.
    #[must_use]
    pub fn epoch_ns(&self, at: Ticks) -> u64 {
        self.clock.realtime_of(at, self.rate)
    }
}

/// The side of a recording that a page of kernel events belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceRole {
    /// Events on the measured CPUs.
    Local,
    /// Events on any CPU that target the measured CPUs.
    Senders,
    /// Kernel functions on the measured CPUs, from the tracer `function_graph`.
    Graph,
    /// Kernel stacks of followed threads that are switched out to sleep.
    Stacks,
}

impl TraceRole {
    /// All roles.
    pub const ALL: [TraceRole; 4] = [
        TraceRole::Local,
        TraceRole::Senders,
        TraceRole::Graph,
        TraceRole::Stacks,
    ];

    /// Whether its records show who had a CPU, and why. The others add to that.
    #[must_use]
    pub const fn has_events(self) -> bool {
        matches!(self, TraceRole::Local | TraceRole::Senders)
    }

    /// Its name, for a tracing instance and for files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            TraceRole::Local => "local",
            TraceRole::Senders => "senders",
            TraceRole::Graph => "graph",
            TraceRole::Stacks => "stacks",
        }
    }
}

/// A page of the kernel's ring buffer, as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawPage<'a> {
    pub role: TraceRole,
    pub cpu: CpuId,
    /// Time of its first record.
    pub first: Ticks,
    /// Time of its last record.
    pub last: Ticks,
    /// The whole page.
    pub bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// A stall, with its attribution if it has one. Ids ascend.
    Stall(&'a Stall, Option<&'a Attribution>),
    /// An interval of a CPU, with the lengths of its stalls in nanoseconds. Comes after its stalls.
    Interval(&'a IntervalRow, &'a Histogram<u64>),
    /// A histogram of the whole measurement, in nanoseconds: its tag, its time span, and its data. Comes after all
    /// intervals.
    Whole(&'a str, (Ticks, Ticks), &'a Histogram<u64>),
    /// A page of kernel records. Pages and turns of the warm-up come before the measurement.
    Page(RawPage<'a>),
    /// The recorder's other inputs of a turn. Comes after the turn's pages.
    Turn(&'a DrainTurn),
    /// What is needed to decode the pages so far, as JSON. Replaces the one before.
    Context(&'a [u8]),
}

/// A stall, with its attribution if it has one.
pub type AttributedStall = (Stall, Option<Attribution>);

/// A consumer of rows. During a recording, one thread at a time calls it, which may be the one that drains the probes:
/// so no call may wait for anything slower than a local disk.
pub trait Sink {
    /// Whether [`Sink::begin`] can fail because of the run's properties, or because a server refuses. An open file does
    /// not refuse.
    fn may_refuse(&self) -> bool {
        false
    }

    /// Called before the measurement, or before a stored run is read. Only this call may wait for a server.
    ///
    /// # Errors
    /// The sink refuses the run; it has written nothing.
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError>;

    /// Takes rows, approximately in order of time.
    ///
    /// # Errors
    /// The sink cannot take more. It may have taken some rows of this call.
    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError>;

    /// Takes rows of stalls that the caller no longer needs, so that a sink on another thread can move them there.
    /// Leaves the list empty.
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

    /// Whether the sink uses this row; it ignores the others.
    fn takes(&self, _row: &Row<'_>) -> bool {
        false
    }

    /// Called as time passes: the sink may write the rows that it has collected. Returns how many rows are finally
    /// written so far.
    ///
    /// # Errors
    /// As [`Sink::rows`].
    fn tick(&mut self) -> Result<u64, SinkError> {
        Ok(0)
    }

    /// The end, with the final facts about the run. Writes all remaining rows, and returns the result.
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

/// Keeps nothing, for a replay, whose rows are already stored.
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

/// Begins all sinks. Those that may refuse come first, so that a refusal leaves the earlier output of the others
/// intact.
///
/// # Errors
/// One of them refuses.
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

/// The result of a sink's deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Delivery {
    /// Rows that the target has, as far as is known.
    pub delivered: u64,
    /// Rows known to be lost: refused, dropped because a queue was full, or after an error.
    pub lost: u64,
    /// Repeated deliveries.
    pub retries: u64,
    /// Whether `delivered` is confirmed; over UDP it is only what was sent.
    pub confirmed: bool,
    /// Why rows were lost or sent again; null if none were, and if redacted.
    pub problem: Option<String>,
    /// What of the run the target's format cannot show, and the error of what it shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

impl Delivery {
    /// All rows delivered, for sinks that cannot lose any.
    #[must_use]
    pub fn of(rows: u64) -> Delivery {
        Delivery {
            delivered: rows,
            confirmed: true,
            ..Delivery::default()
        }
    }
}

/// A sink that refuses rows, or cannot take more.
#[derive(Clone, Debug)]
pub struct SinkError {
    source: Arc<dyn Error + Send + Sync>,
    usage: bool,
}

impl SinkError {
    /// The destination has a problem.
    pub fn new(source: impl Error + Send + Sync + 'static) -> SinkError {
        SinkError {
            source: Arc::new(source),
            usage: false,
        }
    }

    /// The sink's options are wrong.
    pub fn usage(source: impl Error + Send + Sync + 'static) -> SinkError {
        SinkError {
            source: Arc::new(source),
            usage: true,
        }
    }

    /// Whether the sink's options are wrong, as opposed to a problem with the destination.
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
