//! What a recording tells while it runs.

use jitterscope_model::{CpuSet, Nanos};

/// How far a recording is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Measured so far.
    pub elapsed: Nanos,
    /// To be measured in all.
    pub total: Nanos,
    /// Stalls so far.
    pub stalls: u64,
    /// The longest so far.
    pub worst: Nanos,
}

/// Looks on. Called on the thread that called [`record`](crate::record()), a few times a second; it must
/// not block for long, for that thread drains the probes.
pub trait Observer {
    /// The CPUs to measure are known, and where our own threads will keep.
    fn starting(&mut self, _measured: &CpuSet, _helpers: &CpuSet) {}

    /// No thread of this name has been met yet; the time to measure has not begun.
    fn awaiting(&mut self, _name: &str) {}

    /// Some time has passed.
    fn progress(&mut self, _progress: &Progress) {}
}

/// Looks away.
impl Observer for () {}
