//! Results of examining the machine, as data.

use jitterscope_model::CpuSet;
use schemars::JsonSchema;
use serde::Serialize;

/// The setting of a knob, or what exists instead of one. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Finding {
    /// The knob's only control file.
    File(FileValue),
    /// Several control files that need no change.
    FilesAsWanted {
        files: usize,
    },
    /// Several control files, some of which need a change.
    FilesWrong {
        /// The number of those.
        wrong: usize,
        files: usize,
        first: FileValue,
    },
    /// CPUs outside the scheduler's domains.
    Isolated {
        cpus: CpuSet,
    },
    /// The same by a boot parameter or a partition, with cgroups of version 1.
    IsolatedAtBoot {
        cpus: CpuSet,
    },
    /// No CPU is outside the scheduler's domains.
    NoneIsolated,
    /// The cgroup of `cpuset-part` exists and is not as wanted.
    OwnPartition {
        group: String,
        /// The contents of its `cpuset.cpus.partition`.
        state: String,
        cpus: CpuSet,
    },
    /// No cpuset makes the scheduler balance load on these CPUs.
    NotBalanced {
        cpus: CpuSet,
    },
    Balanced {
        cpus: CpuSet,
        cpusets: Vec<String>,
    },
    /// No movable thread may run on the isolated CPUs.
    NoThreadsHere {
        /// Number of threads in the family.
        threads: usize,
        /// Whether they are kernel threads.
        kernel: bool,
    },
    ThreadsHere {
        /// The number of those that can be moved.
        movable: usize,
        threads: usize,
        /// Whether they are kernel threads.
        kernel: bool,
        /// Names of the first ones.
        some: Vec<String>,
    },
    /// The boot parameters as they appear on the kernel command line.
    BootParameters {
        /// Each in its spelling there.
        parameters: Vec<String>,
    },
    /// They are not on the kernel command line.
    NotOnBootLine,
    /// They are not, and `nohz_full` implies them.
    ImpliedByNohzFull,
    /// They are not, and a cpuset now has the same effect.
    CpusetInstead,
    /// CPUs for which a boot parameter is in force.
    Cpus {
        cpus: CpuSet,
    },
    /// The contents of a file that shows whether a boot parameter is in force.
    Value {
        value: String,
    },
    /// A file exists that belongs to the boot parameter.
    FileThere {
        path: String,
    },
    FileGone {
        path: String,
    },
    /// No control group has a CPU quota.
    NoQuota,
    Quotas {
        groups: usize,
        /// The first group's file.
        first: String,
    },
    IrqbalanceStopped,
    /// It runs but leaves the isolated CPUs alone.
    IrqbalanceKeptOff {
        /// CPUs banned by its configuration.
        banned: CpuSet,
    },
    /// It runs and may place interrupts on them.
    IrqbalanceRuns {
        programs: Vec<Program>,
    },
    /// No network device has more receive queues than there are housekeeping CPUs.
    QueuesFit,
    TooManyQueues {
        devices: Vec<Queues>,
    },
    /// No program holds performance events.
    NoPerfEvents,
    PerfEvents {
        programs: Vec<Program>,
    },
    /// None of the programs that do this runs.
    NoneRuns,
    Running {
        programs: Vec<Program>,
    },
    /// No kernel thread of these CPUs but the scheduler's own has a real-time priority above the lowest.
    NoRealTime,
    RealTime {
        threads: Vec<Program>,
    },
    /// KVM's periodic synchronisation of its guests' clocks.
    KvmClockSync {
        value: String,
    },
}

/// The contents of a control file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileValue {
    pub path: String,
    /// Its value in one line; see [`ValueKind::shown`](crate::ValueKind::shown).
    pub reads: String,
    /// The value in force, if another file shows it and it differs.
    pub in_force: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Program {
    pub comm: String,
    pub pid: i32,
}

/// A network device with its receive queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Queues {
    pub device: String,
    pub queues: usize,
}
