//! A target, opened: the one place that knows all formats.

use crate::csv::Csv;
use crate::destination::Destination;
use crate::error::ExportError;
use crate::hgrm::Hgrm;
use crate::hlog::Hlog;
use crate::influx;
use crate::json::Json;
use crate::output::Output;
use crate::pace::Pace;
use jitterscope_model::Sink;

impl Destination {
    /// Opens it: files are made, servers asked. A live target's threads run where the caller may run, so
    /// call it from a thread that keeps off the measured CPUs.
    ///
    /// # Errors
    /// A file cannot be written, a host not resolved, a server not reached.
    pub fn open(&self, pace: Pace) -> Result<Box<dyn Sink + Send>, ExportError> {
        Ok(match self {
            Destination::Csv { path, rows, formulas } => {
                Box::new(Csv::new(Output::open(path, pace)?, rows.unwrap_or_default(), *formulas))
            }
            Destination::Json { path } => Box::new(Json::new(Output::open(path, pace)?)),
            Destination::Hlog { path } => Box::new(Hlog::new(Output::open(path, pace)?)),
            Destination::Hgrm { path, cpu, of } => {
                Box::new(Hgrm::new(Output::open(path, pace)?, *cpu, of.clone()))
            }
            Destination::Parquet { .. } => return Err(ExportError::StoredOnly("parquet")),
            Destination::InfluxUdp { address } => Box::new(influx::udp(address, pace)?),
            Destination::InfluxHttp(place) => Box::new(influx::http(place, pace)?),
        })
    }
}
