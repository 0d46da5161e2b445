//! What became of the time of CPUs that were watched and not probed.

use crate::{AnyVersion, CpuId, EndedEarly, Nanos, RanInstead, Ticks};
use serde::{Deserialize, Serialize};

/// One CPU while it was watched. Running, interrupted, waiting, beside, idle and unknown time sum to the time
/// that it was watched, but for the rounding of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PassiveCpu {
    /// The CPU.
    pub cpu: CpuId,
    /// Watched from.
    pub from_ticks: Ticks,
    /// Watched until.
    pub until_ticks: Ticks,
    /// The threads that belong there and had the CPU, most time first, [`PassiveCpu::MOST_THREADS`] at most.
    pub threads: Vec<BelongingThread>,
    /// Threads that belong there and had the CPU, all of them.
    pub thread_count: u64,
    /// How the thread was found; `None` where the user named who belongs there.
    pub chosen: Option<ChosenThread>,
    /// What belongs there had the CPU, and nothing interrupted it.
    pub running_ns: Nanos,
    /// What belongs there had the CPU, and interrupts or softirqs ran on it: stolen.
    pub interrupted_ns: Nanos,
    /// Something that belongs there could run and nothing of it had the CPU: stolen.
    pub waiting_ns: Nanos,
    /// Nothing that belongs there could run, and something else did: no theft.
    pub beside_ns: Nanos,
    /// Nothing that belongs there could run, and the CPU idled.
    pub idle_ns: Nanos,
    /// No record tells: before the first one, where records were lost, and after the CPU went offline.
    pub unknown_ns: Nanos,
    /// Stretches of stolen time, of any length.
    pub stretches: u64,
    /// Those at or above the threshold: the stalls that the run has rows of.
    pub stalls: u64,
    /// The longest.
    pub longest_ns: Nanos,
    /// Page faults of what belongs there. They have no end in the kernel's records, so they are counted, and
    /// their time is in `running_ns`.
    pub page_faults: u64,
    /// Who had the stolen time, most time first.
    pub ran_instead: Vec<RanInstead>,
    /// Who had the time beside, most time first.
    pub ran_beside: Vec<RanInstead>,
    /// Why it was not watched to the end.
    pub ended_early: Option<AnyVersion<EndedEarly>>,
}

impl PassiveCpu {
    /// Threads listed at most.
    pub const MOST_THREADS: usize = 64;

    /// Time taken from what belongs there.
    #[must_use]
    pub fn stolen_ns(&self) -> Nanos {
        self.interrupted_ns + self.waiting_ns
    }

    /// Time in which something that belongs there could use it, whether it had it or not.
    #[must_use]
    pub fn wanted_ns(&self) -> Nanos {
        self.running_ns + self.stolen_ns()
    }

    /// All of the time that it was watched.
    #[must_use]
    pub fn watched_ns(&self) -> Nanos {
        self.running_ns + self.stolen_ns() + self.beside_ns + self.idle_ns + self.unknown_ns
    }
}

/// A thread that belongs on a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BelongingThread {
    /// Kernel thread id.
    pub tid: i32,
    /// Its name, as last seen.
    pub comm: String,
    /// Times it was put on the CPU while the CPU was watched.
    pub runs: u64,
    /// On the CPU, without what interrupted it.
    pub running_ns: Nanos,
}

/// How the thread that belongs on a CPU was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChosenThread {
    /// Kernel thread id.
    pub tid: i32,
    /// Its name.
    pub comm: String,
    /// Its share of the CPU in the look, interrupts included.
    pub share: f64,
    /// Length of the look, just before the CPU was watched.
    pub look_ns: Nanos,
}
