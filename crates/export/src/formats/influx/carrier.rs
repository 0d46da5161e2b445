//! How lines travel.

use crate::error::ExportError;
use jitterscope_model::Delivery;

/// Takes lines of line protocol, each with its newline, and brings them to a server.
pub(crate) trait Carrier: Send {
    /// The first line, at once, waiting for the answer where there is one.
    ///
    /// # Errors
    /// The server refuses or cannot be reached.
    fn first(&mut self, line: Vec<u8>) -> Result<(), ExportError>;

    /// Any further line. What cannot be taken is counted as lost.
    fn line(&mut self, line: Vec<u8>);

    /// What was gathered may go.
    fn flush(&mut self);

    /// Brings the rest, and says what became of all.
    fn finish(self) -> Delivery;
}
