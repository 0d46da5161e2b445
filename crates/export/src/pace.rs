//! How rows come.

/// Whether rows come as they are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Now: nothing may be held up, and what does not fit is dropped and counted.
    Live,
    /// From a stored run: the reader waits for the target.
    Stored,
}
