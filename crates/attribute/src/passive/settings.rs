//! The settings of watching.

use jitterscope_model::{Comm, CpuSet, TickRate, Ticks};

/// How CPUs are watched.
#[derive(Clone, Debug)]
pub struct PassiveSettings {
    /// Ticks to nanoseconds.
    pub rate: TickRate,
    pub cpus: CpuSet,
    /// Stretches of stolen time with at most this distance count as one.
    pub join_within: Ticks,
    /// Stretches of at least this length are stalls; all stretches count in sums.
    pub threshold: Ticks,
    /// Whether threads that a belonging process makes also belong.
    pub new_threads: bool,
    /// Whether processes that a belonging thread makes also belong: owners are control groups, which are inherited.
    pub children: bool,
    /// Threads with these names belong wherever they appear.
    pub names: Vec<Comm>,
}
