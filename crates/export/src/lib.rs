//! Exports stored and live runs in the formats of other tools.
//!
//! A [`Destination`] names a format and a place. Each format is a module and a row of [`FORMATS`]; most make a
//! [`Sink`](jitterscope_model::Sink).
#![forbid(unsafe_code)]

mod address;
mod destination;
mod error;
mod exporter;
mod formats;
mod largest_part;
mod line_file;
mod message_times;
mod output;
mod pace;
mod partial;
mod partial_folder;
mod replay;
mod together;
mod trace_rows;

pub use destination::Destination;
pub use error::{DestinationError, ExportError};
pub use formats::{FORMATS, Format, JsonLine, help, influx};
pub use message_times::write_message_times;
pub use output::WholeFile;
pub use pace::Pace;
pub use replay::{export_redacted, export_run};
pub use together::{distinct, same_file};
