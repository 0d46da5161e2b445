//! A stretch of a CPU's time in which the same frame was innermost.

use super::plan::Beside;
use jitterscope_model::Ticks;

/// Slices are in order, touch, and fill the time that they were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// From.
    pub(crate) start: Ticks,
    /// To.
    pub(crate) end: Ticks,
    /// Position of the innermost frame.
    pub(crate) frame: u32,
    /// The last record that is not after its start; `None` when there is none inside the window.
    pub(crate) began: Option<Beside>,
    /// The record that ended it; `None` when the window ends with it.
    pub(crate) ended: Option<Beside>,
    /// It stands for many short ones of its culprit: the length is exact, the place is not.
    pub(crate) folded: bool,
}

const _: () = assert!(size_of::<Slice>() <= 32);

impl Slice {
    /// How long.
    pub(crate) fn length(&self) -> Ticks {
        self.end.since(self.start)
    }
}
