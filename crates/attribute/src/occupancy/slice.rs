//! A stretch of a CPU's time in which the same frame was innermost.

use super::plan::Beside;
use jitterscope_model::Ticks;

/// Slices are in order, adjacent, and fill the requested time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
    /// Index of the innermost frame.
    pub(crate) frame: u32,
    /// The last record up to its start; `None` if there is none inside the window.
    pub(crate) began: Option<Beside>,
    /// The record that ended it; `None` if it ends with the window.
    pub(crate) ended: Option<Beside>,
    /// Whether it sums many short ones of its culprit: its length is exact, its position is not.
    pub(crate) folded: bool,
}

const _: () = assert!(size_of::<Slice>() <= 32);

impl Slice {
    pub(crate) fn length(&self) -> Ticks {
        self.end.since(self.start)
    }
}
