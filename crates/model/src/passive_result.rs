//! Time accounts of CPUs that were watched without a probe.

use crate::{AnyVersion, CpuId, EndedEarly, Nanos, RanInstead, Ticks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One CPU while it was watched. Running, interrupted, waiting, beside, idle and unknown time sum to the watched time,
/// up to rounding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PassiveCpu {
    pub cpu: CpuId,
    /// Start of the watched time.
    pub from_ticks: Ticks,
    /// End of the watched time.
    pub until_ticks: Ticks,
    /// The threads that belong on the CPU and had it, most time first, [`PassiveCpu::MOST_THREADS`] at most.
    pub threads: Vec<BelongingThread>,
    /// The number of all threads that belong on the CPU and had it.
    pub thread_count: u64,
    /// How the thread was found; `None` if the user named it.
    pub chosen: Option<ChosenThread>,
    /// A belonging thread had the CPU, without interruption.
    pub running_ns: Nanos,
    /// A belonging thread had the CPU, and interrupts or softirqs ran on it: stolen.
    pub interrupted_ns: Nanos,
    /// A belonging thread was runnable and none had the CPU: stolen.
    pub waiting_ns: Nanos,
    /// No belonging thread was runnable, and another thread ran: not stolen.
    pub beside_ns: Nanos,
    /// No belonging thread was runnable, and the CPU idled.
    pub idle_ns: Nanos,
    /// Unknown: before the first record, where records were lost, and after the CPU went offline.
    pub unknown_ns: Nanos,
    /// The number of stretches of stolen time, of any length.
    pub stretches: u64,
    /// The number of stretches of at least the threshold: the stalls that the run has rows for.
    pub stalls: u64,
    pub longest_ns: Nanos,
    /// Page faults of belonging threads. The kernel does not record their ends, so they are only counted, and their
    /// time is in `running_ns`.
    pub page_faults: u64,
    /// What ran in the stolen time, most time first.
    pub ran_instead: Vec<RanInstead>,
    /// What ran in the time beside, most time first.
    pub ran_beside: Vec<RanInstead>,
    /// Why the watching ended early.
    pub ended_early: Option<AnyVersion<EndedEarly>>,
}

impl PassiveCpu {
    pub const MOST_THREADS: usize = 64;

    /// Time stolen from belonging threads.
    #[must_use]
    pub fn stolen_ns(&self) -> Nanos {
        self.interrupted_ns + self.waiting_ns
    }

    /// Time in which a belonging thread had the CPU or wanted it.
    #[must_use]
    pub fn wanted_ns(&self) -> Nanos {
        self.running_ns + self.stolen_ns()
    }

    /// The whole watched time.
    #[must_use]
    pub fn watched_ns(&self) -> Nanos {
        self.running_ns + self.stolen_ns() + self.beside_ns + self.idle_ns + self.unknown_ns
    }
}

/// A thread that belongs on a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BelongingThread {
    pub tid: i32,
    /// Its name, as last seen.
    pub comm: String,
    /// How often it got the CPU while the CPU was watched.
    pub runs: u64,
    /// Time on the CPU without interruptions.
    pub running_ns: Nanos,
}

/// How the thread that belongs on a CPU was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChosenThread {
    pub tid: i32,
    pub comm: String,
    /// Its share of the CPU in the preliminary look, including interrupts.
    pub share: f64,
    /// Length of the preliminary look, just before the watching began.
    pub look_ns: Nanos,
}
