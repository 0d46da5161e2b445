//! The pace of rows.

/// Whether rows arrive while they are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Rows arrive during the measurement. The sender must not wait: what does not fit is dropped and counted.
    Live,
    /// Rows come from a stored run: the reader waits for the target.
    Stored,
}
