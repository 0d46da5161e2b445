//! What a look at the machine found, as data.

use jitterscope_model::CpuSet;
use serde::Serialize;

/// What a knob is set to, or what there is in place of a setting. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Finding {
    /// The only control file of the knob.
    File(FileValue),
    /// Several control files, none of which needs a change.
    FilesAsWanted {
        /// How many.
        files: usize,
    },
    /// Several control files, some of which need a change.
    FilesWrong {
        /// So many of them.
        wrong: usize,
        /// Of these.
        files: usize,
        /// The first that does.
        first: FileValue,
    },
    /// CPUs outside of the scheduler's domains.
    Isolated {
        /// Which.
        cpus: CpuSet,
    },
    /// The same, by a boot parameter or a partition, where cgroups are of version 1.
    IsolatedAtBoot {
        /// Which.
        cpus: CpuSet,
    },
    /// No CPU is outside of the scheduler's domains.
    NoneIsolated,
    /// The cgroup that `cpuset-part` makes is there, and is not as wanted.
    OwnPartition {
        /// The cgroup.
        group: String,
        /// What its `cpuset.cpus.partition` reads.
        state: String,
        /// Its CPUs.
        cpus: CpuSet,
    },
    /// No cpuset has the scheduler balance load on these CPUs.
    NotBalanced {
        /// The isolated CPUs.
        cpus: CpuSet,
    },
    /// Some cpusets do.
    Balanced {
        /// The isolated CPUs.
        cpus: CpuSet,
        /// The cpusets.
        cpusets: Vec<String>,
    },
    /// No thread that can be moved may run on the isolated CPUs.
    NoThreadsHere {
        /// All threads of the family.
        threads: usize,
        /// Whether they are the kernel's.
        kernel: bool,
    },
    /// Some may.
    ThreadsHere {
        /// So many.
        movable: usize,
        /// Of these.
        threads: usize,
        /// Whether they are the kernel's.
        kernel: bool,
        /// Names of the first.
        some: Vec<String>,
    },
    /// The boot parameters as they stand on the kernel command line.
    BootParameters {
        /// Each as it stands there.
        parameters: Vec<String>,
    },
    /// They do not stand there.
    NotOnBootLine,
    /// They do not, and `nohz_full` implies them.
    ImpliedByNohzFull,
    /// They do not, and a cpuset does the same since.
    CpusetInstead,
    /// CPUs for which a boot parameter is in force.
    Cpus {
        /// Which.
        cpus: CpuSet,
    },
    /// What a file reads by which a boot parameter is seen to be in force.
    Value {
        /// The value.
        value: String,
    },
    /// A file is there that goes with the boot parameter.
    FileThere {
        /// The file.
        path: String,
    },
    /// It is not.
    FileGone {
        /// The file.
        path: String,
    },
    /// No control group has a CPU quota.
    NoQuota,
    /// Some have.
    Quotas {
        /// How many.
        groups: usize,
        /// The file of the first.
        first: String,
    },
    /// irqbalance does not run.
    IrqbalanceStopped,
    /// It runs, and keeps off the isolated CPUs.
    IrqbalanceKeptOff {
        /// CPUs that its configuration bans.
        banned: CpuSet,
    },
    /// It runs, and may put interrupts on them.
    IrqbalanceRuns {
        /// Its processes.
        programs: Vec<Program>,
    },
    /// No network device has more receive queues than there are housekeeping CPUs.
    QueuesFit,
    /// Some have.
    TooManyQueues {
        /// Which.
        devices: Vec<Queues>,
    },
    /// No program holds performance events.
    NoPerfEvents,
    /// Some do.
    PerfEvents {
        /// Which.
        programs: Vec<Program>,
    },
    /// None of the known programs runs that read registers of other CPUs.
    NoMsrTool,
    /// Some do.
    MsrTools {
        /// Which.
        programs: Vec<Program>,
    },
    /// KVM's periodic synchronisation of its guests' clocks.
    KvmClockSync {
        /// What the parameter reads.
        value: String,
    },
}

/// What a control file reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileValue {
    /// The file.
    pub path: String,
    /// Its value in one line; see [`ValueKind::shown`](crate::ValueKind::shown).
    pub reads: String,
    /// What is in force, where another file says so and it differs.
    pub in_force: Option<String>,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Program {
    /// Its name.
    pub comm: String,
    /// Its id.
    pub pid: i32,
}

/// A network device with its receive queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Queues {
    /// The device.
    pub device: String,
    /// How many it has.
    pub queues: usize,
}
