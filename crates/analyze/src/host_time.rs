//! The time that a hypervisor took from the measured CPUs, as the kernel counts it.

use crate::RunSummary;
use jitterscope_model::{CounterTotal, Nanos};

/// The prefix of counters of `/proc/stat`, and the counter of time that the hypervisor took.
const STAT: &str = "stat ";
const STEAL: &str = "stat steal";

impl RunSummary {
    /// One step of the kernel's counter.
    pub const HOST_STEP: Nanos = Nanos(10_000_000);

    /// The time that the host took; zero on a machine without a hypervisor, `None` if the kernel's counter was not read.
    #[must_use]
    pub fn host_ns(&self) -> Option<Nanos> {
        let counted = |prefix| {
            let all = self.counters.iter();
            all.filter(move |counter: &&CounterTotal| counter.name.starts_with(prefix))
        };
        counted(STAT).next()?;
        if self.run.hypervisor.is_none() {
            return Some(Nanos::ZERO);
        }
        let steps = counted(STEAL).fold(0, |sum: u64, of| sum.saturating_add(of.total));
        Some(Nanos(steps.saturating_mul(RunSummary::HOST_STEP.0)))
    }
}
