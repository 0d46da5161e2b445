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
    /// The number of slices of one culprit that it sums: its length is exact, its position is not. 0: it is no sum.
    pub(crate) sums: u32,
}

const _: () = assert!(size_of::<Slice>() <= 32);

impl Slice {
    pub(crate) fn length(&self) -> Ticks {
        self.end.since(self.start)
    }

    /// Whether it is a sum, even if only of one slice.
    pub(crate) fn is_folded(&self) -> bool {
        self.sums > 0
    }

    /// The number of stretches that it stands for.
    pub(crate) fn turns(&self) -> u32 {
        self.sums.max(1)
    }
}
