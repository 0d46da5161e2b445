//! What is watched, and how.

use jitterscope_model::{Comm, CpuSet, TickRate, Ticks};

/// How CPUs are watched.
#[derive(Clone, Debug)]
pub struct PassiveSettings {
    /// Ticks to nanoseconds.
    pub rate: TickRate,
    /// Which.
    pub cpus: CpuSet,
    /// Stretches of stolen time no further apart count as one.
    pub join_within: Ticks,
    /// Stretches of this length or longer are stalls; all count in sums.
    pub threshold: Ticks,
    /// Whether threads that a belonging process makes belong, too.
    pub new_threads: bool,
    /// Threads of these names belong wherever they are met.
    pub names: Vec<Comm>,
}
