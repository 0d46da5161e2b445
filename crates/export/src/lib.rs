//! Runs, stored or live, in the formats of other tools.
//!
//! Every format is an [`Exporter`] in a file of its own, and is named by a [`Target`]:
//!
//! | target | what is written |
//! |---|---|
//! | `csv://FILE` | stalls, one a line; `?rows=intervals` for the intervals, `?rows=series` for those with a stall |
//! | `json://FILE` | JSON lines: the run, its stalls with their culprits, its intervals, its end |
//! | `hlog://FILE` | HdrHistogram V2 interval log, a tag a CPU, values in ns |
//! | `hgrm://FILE` | percentiles of all stalls, values in ns; `?cpu=N` for one CPU; of a pipeline its accumulator's transit, `?of=TAG` for another of its histograms |
//! | `parquet://FOLDER` | the store's own tables (stored runs only) |
//! | `influx://HOST:PORT` | line protocol over UDP, as InfluxDB 1 takes it |
//! | `influx+http://HOST:PORT/?db=NAME` | InfluxDB 1, `/write` |
//! | `influx2+http://HOST:PORT/?org=ORG&bucket=NAME` | InfluxDB 2, `/api/v2/write` |
//! | `influx3+http://HOST:PORT/?db=NAME` | InfluxDB 3, `/api/v3/write_lp` |
//!
//! (`https` for `http` where wanted; the token comes from `INFLUX_TOKEN` or `token_file=`.) A file named
//! `-` is standard output. A target is opened before anything is measured, so that an unreachable server
//! or an unwritable file shows then. What is lost on the way is counted and told ([`Delivery`]).
#![forbid(unsafe_code)]

mod beside;
mod csv;
mod error;
mod facts;
mod hgrm;
mod hlog;
pub mod influx;
mod json;
mod message_times;
mod output;
mod parquet;
mod replay;
mod target;
mod together;

pub use csv::{CsvRows, Formulas};
pub use error::{ExportError, TargetError};
pub use facts::RunFacts;
pub use message_times::write_message_times;
pub use output::WholeFile;
pub use replay::{export_redacted, export_run};
pub use target::{Pace, Target};
pub use together::{begin_all, distinct};

use hdrhistogram::Histogram;
use jitterscope_model::{Attribution, IntervalRow, ProbeResult, Stall, Ticks};

/// Takes a run's rows in one format. Rows come in about the order of time; the calls must not wait for
/// anything slower than a local disk when the run is live.
pub trait Exporter: Send {
    /// Whether [`Exporter::begin`] can be refused for what the run is, or by somebody else. A file, once
    /// open, does not refuse.
    fn may_refuse(&self) -> bool {
        false
    }

    /// The run is about to be measured, or to be read.
    ///
    /// # Errors
    /// The target refuses; nothing was written.
    fn begin(&mut self, facts: &RunFacts) -> Result<(), ExportError>;

    /// One stall, and who was to blame where that is known.
    ///
    /// # Errors
    /// The target cannot be written any more.
    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>) -> Result<(), ExportError>;

    /// One interval of one CPU, and the lengths of its stalls in nanoseconds.
    ///
    /// # Errors
    /// As [`Exporter::stall`].
    fn interval(&mut self, row: &IntervalRow, lengths: &Histogram<u64>) -> Result<(), ExportError>;

    /// A histogram of the whole measurement, in nanoseconds, under a tag of its own: a pipeline's times.
    ///
    /// # Errors
    /// As [`Exporter::stall`].
    fn whole(
        &mut self,
        _tag: &str,
        _span: (Ticks, Ticks),
        _times: &Histogram<u64>,
    ) -> Result<(), ExportError> {
        Ok(())
    }

    /// Some time has passed: what was held back to be written together may go out.
    ///
    /// # Errors
    /// As [`Exporter::stall`].
    fn tick(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    /// The end: everything out, and what became of it.
    ///
    /// # Errors
    /// As [`Exporter::stall`].
    fn finish(self: Box<Self>, results: &[ProbeResult]) -> Result<Delivery, ExportError>;
}

/// What became of the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Rows written or accepted.
    pub delivered: u64,
    /// Rows known to be lost: refused, or dropped because the queue was full.
    pub lost: u64,
    /// Deliveries that were tried again.
    pub retries: u64,
    /// Whether `delivered` is known; over UDP it is what was sent.
    pub confirmed: bool,
    /// The last thing that went wrong.
    pub problem: Option<String>,
}

impl Delivery {
    /// Everything delivered, for targets that cannot lose.
    fn of(rows: u64) -> Delivery {
        Delivery { delivered: rows, confirmed: true, ..Delivery::default() }
    }
}
