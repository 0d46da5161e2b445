//! Why a source of evidence is unavailable, as data. The sentences, and the advice on each, are made for display.

use crate::{AnyVersion, ClockFailure, CpuId, CpuSet, EventGrain, TscFlaw};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Why a source is partly or fully unavailable. In JSON it has its stable `id` beside its fields.
///
/// The system's error message (`system`) is kept verbatim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum SourceProblem {
    /// tracefs exists, but this user may not use it.
    NoPermission {
        /// The refused file.
        path: String,
    },
    /// This user can make tracing instances, or another user was given their folder. But an instance belongs to the
    /// folder's owner, who alone can write to its files; a group can only read them.
    InstancesOfOwner {
        /// The folder.
        path: String,
        /// The owner's user id; null if this process's user namespace does not map it.
        owner: Option<u32>,
    },
    /// A permission is missing, and the process is in a user namespace, whose capabilities do not count.
    UserNamespace {
        /// The process's user outside; null if the namespace does not map it.
        user: Option<u32>,
        /// What is not permitted.
        problem: Box<SourceProblem>,
    },
    /// tracefs is not mounted, and this user may not mount it.
    MountDenied,
    /// tracefs is not mounted, and the kernel refused to mount it.
    MountRefused {
        path: String,
        /// Whether a permission was missing.
        denied: bool,
        system: String,
    },
    /// The kernel has no tracefs, or an unsuitable one.
    TracefsUnusable { flaw: TracefsFlaw },
    /// The kernel is locked down: it hides its events even from root.
    LockedDown,
    /// This process is in a PID namespace of its own: the kernel's records have the machine's thread ids, so it does not
    /// find its own threads in them.
    PidNamespace,
    /// The kernel cannot stamp events with the clock of the probe.
    TraceClock {
        /// The kernel's name of the required clock.
        wanted: String,
        offered: String,
    },
    /// The ring buffer could not get the requested size.
    BufferRefused {
        /// Requested size, KiB per CPU.
        kib: u64,
        system: String,
    },
    /// A control file refused a value.
    ValueRefused {
        value: String,
        path: String,
        /// Whether a permission was missing.
        denied: bool,
        system: String,
    },
    /// A control file of tracefs cannot be read.
    ControlUnreadable {
        path: String,
        /// Whether a permission was missing.
        denied: bool,
        system: String,
    },
    /// A tracing instance could not be made.
    InstanceRefused {
        path: String,
        /// Whether a permission was missing.
        denied: bool,
        system: String,
    },
    /// Some of the required events do not exist here.
    EventsMissing {
        /// Each as `system:event`.
        events: Vec<String>,
    },
    /// Another tool's file has no record of some events.
    NotInFile {
        /// Each as `system:event`.
        events: Vec<String>,
    },
    /// Another tool's file has records of some CPUs, but not their switches: which thread had such a CPU is unknown.
    CpusWithoutSwitches { cpus: CpuSet },
    /// Some events were not requested.
    EventsNotAsked { grain: EventGrain },
    /// None of the required events exists or can be enabled.
    NoEvents {
        /// Each as `system:event`.
        events: Vec<String>,
    },
    /// The kernel describes its pages or records in a format that cannot be parsed.
    FormatUnreadable { parser: String },
    /// The ring buffer was overwritten before it was read.
    EventsLost { lost: u64 },
    /// Records of function calls were overwritten before they were read.
    CallsLost { lost: u64 },
    /// Stacks of threads that went to sleep were overwritten before they were read.
    StacksLost { lost: u64 },
    /// Stacks of threads that go to sleep were not requested.
    StacksNotAsked,
    /// A CPU has no trace buffer: it does not exist, or is offline.
    NoTraceBuffer { cpu: CpuId, system: String },
    /// The kernel was built without a tracer.
    NoTracer { tracer: String },
    /// `function_graph` cannot run in a tracing instance.
    GraphForOne,
    /// Another process has chosen the functions for `function_graph`.
    GraphTaken {
        /// As in `set_graph_function`.
        functions: String,
    },
    /// The kernel has no such function, or cannot trace it.
    NoFunction {
        /// As the user named it.
        function: String,
    },
    /// `/proc/kallsyms` shows zeros instead of addresses.
    AddressesHidden {
        /// `kernel.kptr_restrict`, or `unknown`.
        kptr_restrict: String,
    },
    /// `/proc/kallsyms` lists no function.
    NoFunctionNames,
    /// `/proc/kallsyms` cannot be read.
    FunctionNamesUnreadable {
        /// Whether a permission was missing.
        denied: bool,
        system: String,
    },
    /// A file of counters does not exist.
    CountersMissing { path: String },
    /// A file of counters cannot be read.
    CountersUnreadable { path: String, system: String },
    /// A file of counters has no row for a CPU.
    NoCpuRow { path: String },
    /// A file of counters has no column of stolen time.
    NoStealColumn { path: String },
    /// A file of counters has an unknown format version.
    CountersVersion {
        path: String,
        /// The version in the file.
        version: String,
    },
    /// In a virtual machine, the count of system management interrupts does not include the host's firmware.
    VirtualSmiCount,
    /// There is no device for reading a CPU's registers.
    NoMsrDevice {
        cpu: CpuId,
        /// Whether this is a virtual machine.
        virtual_machine: bool,
    },
    /// The device for reading a CPU's registers exists, but this user may not use it.
    MsrDenied {
        cpu: CpuId,
        /// Whether this is a virtual machine.
        virtual_machine: bool,
    },
    /// The processor does not count system management interrupts.
    NoSmiCount {
        cpu: CpuId,
        /// Whether this is a virtual machine.
        virtual_machine: bool,
    },
    /// A CPU's register cannot be read.
    MsrUnreadable {
        cpu: CpuId,
        /// Whether this is a virtual machine.
        virtual_machine: bool,
        system: String,
    },
    /// The TSC is not used.
    NoTsc { because: AnyVersion<TscFlaw> },
    /// No clock can be used.
    NoClock { because: AnyVersion<ClockFailure> },
    /// Written by a newer version.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

/// Why a kernel's tracefs is missing or unsuitable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum TracefsFlaw {
    /// The kernel has no such file system.
    NoFileSystem,
    /// None of the usual mount points exists.
    NoFolder,
    /// Its root cannot be read.
    Unreadable { path: String, system: String },
    /// A file of it is missing.
    Missing {
        /// The file, below the root.
        file: String,
    },
    /// The pages of two instances have different layouts.
    PagesDiffer,
    /// `/proc/self/stat` does not show the start time of this process, which is part of its instances' names.
    NoStartTime,
    /// Written by a newer version.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

impl SourceProblem {
    /// The id of a problem that a redacted report leaves out.
    pub const LEFT_OUT: &str = "left_out";

    /// A problem that a redacted report leaves out.
    #[must_use]
    pub fn left_out() -> SourceProblem {
        SourceProblem::Unknown(Map::from_iter([("id".to_owned(), Self::LEFT_OUT.into())]))
    }

    /// The stable name of its kind, as in JSON; empty if it has none.
    #[must_use]
    pub fn id(&self) -> String {
        match serde_json::to_value(self)
            .ok()
            .and_then(|mut value| value.get_mut("id").map(Value::take))
        {
            Some(Value::String(id)) => id,
            _ => String::new(),
        }
    }
}

crate::words::open_words! {
    /// What cannot be observed because a source, or a part of it, is missing.
    SourceLoss {
        /// All lengths.
        Measurement = "measurement",
        /// The lowest noise floor.
        LowestFloor = "lowest_floor",
        /// The cause of a stall.
        Causes = "causes",
        /// The sender of an interrupt, the waker of a thread, or the queuer of work.
        Senders = "senders",
        /// Kernel events on the probe's own clock.
        ProbeClock = "probe_clock",
        /// The functions that take the time inside a kernel function.
        FunctionTimes = "function_times",
        /// The kernel's own measurement of noise.
        SecondOpinion = "second_opinion",
        /// Whether firmware took the time.
        Firmware = "firmware",
        /// Names of kernel functions.
        FunctionNames = "function_names",
        /// The count of each interrupt.
        InterruptCounts = "interrupt_counts",
        /// The count of each softirq.
        SoftirqCounts = "softirq_counts",
        /// The time that the hypervisor took.
        StolenTime = "stolen_time",
        /// The threads' waits for a CPU.
        RunQueueDelays = "run_queue_delays",
        /// The thread that took the CPU.
        Switches = "switches",
        DeviceInterrupts = "device_interrupts",
        Softirqs = "softirqs",
        NmiHandlers = "nmi_handlers",
        /// The work items of kworkers.
        WorkItems = "work_items",
        TimerFunctions = "timer_functions",
        /// High-resolution timer functions.
        HrtimerFunctions = "hrtimer_functions",
        /// What keeps the tick running.
        TickDependency = "tick_dependency",
        /// The functions that other CPUs called.
        CalledFunctions = "called_functions",
        PageFaults = "page_faults",
        /// The reasons of TLB flushes.
        TlbFlushes = "tlb_flushes",
        /// Changes of a CPU's frequency.
        FrequencyChanges = "frequency_changes",
        IdleStates = "idle_states",
        Vectors = "vectors",
        ThreadStarts = "thread_starts",
        /// The time when a thread is renamed.
        Renames = "renames",
        /// The time when a thread got a CPU whose idle thread is not traced.
        Charges = "charges",
        /// The reuse of a thread id.
        ReusedIds = "reused_ids",
        /// The sender of an interrupt to one CPU.
        IpiSender = "ipi_sender",
        /// The sender of an interrupt to several CPUs.
        MaskIpiSender = "mask_ipi_sender",
        /// The caller of a function on the CPU.
        CallSender = "call_sender",
        /// The waker of a thread.
        Wakers = "wakers",
        WorkQueuers = "work_queuers",
        /// The threads that were moved to the CPU.
        Migrations = "migrations",
        /// What stopped a thread.
        Stoppers = "stoppers",
        /// The cause of stalls near lost events.
        NearLostEvents = "near_lost_events",
        /// Function calls inside some stalls.
        SomeCalls = "some_calls",
        /// What blocked threads waited for.
        BlockReasons = "block_reasons",
        /// What blocked threads waited for in some of their sleeps.
        SomeBlockReasons = "some_block_reasons",
    }
}
