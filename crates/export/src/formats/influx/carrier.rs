//! The transport of lines.

use crate::error::ExportError;
use jitterscope_model::Delivery;

/// Transports lines of line protocol, each with its newline, to a server.
pub(crate) trait Carrier: Send {
    /// Sends the first line at once, and waits for the answer if the protocol has one.
    ///
    /// # Errors
    /// The server rejects the line or is unreachable.
    fn first(&mut self, line: Vec<u8>) -> Result<(), ExportError>;

    /// Sends a further line. A line that finds no room counts as lost.
    fn line(&mut self, line: Vec<u8>);

    /// Marks a point at which gathered lines may be sent.
    fn flush(&mut self);

    /// Sends the rest and returns the outcome of all lines.
    fn finish(self) -> Delivery;
}
