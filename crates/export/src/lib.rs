//! Runs, stored or live, in the formats of other tools.
//!
//! Every format is a [`Sink`](jitterscope_model::Sink) in a file of its own, and is named by a [`Destination`]:
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
//! or an unwritable file shows then. What is lost on the way is counted and told ([`Delivery`](jitterscope_model::Delivery)).
#![forbid(unsafe_code)]

mod beside;
mod csv;
mod destination;
mod error;
mod hgrm;
mod hlog;
pub mod influx;
mod json;
mod largest_part;
mod message_times;
mod open;
mod output;
mod pace;
mod parquet;
mod replay;
mod together;

pub use csv::{CsvRows, Formulas};
pub use destination::Destination;
pub use error::{DestinationError, ExportError};
pub use message_times::write_message_times;
pub use output::WholeFile;
pub use pace::Pace;
pub use replay::{export_redacted, export_run};
pub use together::distinct;
