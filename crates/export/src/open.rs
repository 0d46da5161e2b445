//! A target, opened: the one place that knows all formats.

use crate::csv::Csv;
use crate::error::ExportError;
use crate::hgrm::Hgrm;
use crate::hlog::Hlog;
use crate::influx;
use crate::json::Json;
use crate::output::Output;
use crate::pace::Pace;
use crate::target::Target;
use jitterscope_model::Sink;

impl Target {
    /// Opens it: files are made, servers asked. A live target's threads run where the caller may run, so
    /// call it from a thread that keeps off the measured CPUs.
    ///
    /// # Errors
    /// A file cannot be written, a host not resolved, a server not reached.
    pub fn open(&self, pace: Pace) -> Result<Box<dyn Sink + Send>, ExportError> {
        Ok(match self {
            Target::Csv { path, rows, formulas } => {
                Box::new(Csv::new(Output::open(path, pace)?, rows.unwrap_or_default(), *formulas))
            }
            Target::Json { path } => Box::new(Json::new(Output::open(path, pace)?)),
            Target::Hlog { path } => Box::new(Hlog::new(Output::open(path, pace)?)),
            Target::Hgrm { path, cpu, of } => {
                Box::new(Hgrm::new(Output::open(path, pace)?, *cpu, of.clone()))
            }
            Target::Parquet { .. } => return Err(ExportError::StoredOnly("parquet")),
            Target::InfluxUdp { address } => Box::new(influx::udp(address, pace)?),
            Target::InfluxHttp(place) => Box::new(influx::http(place, pace)?),
        })
    }
}
