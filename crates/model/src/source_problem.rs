//! What stands between a recorder and a source of evidence, as data. The sentences, and what to do about each, are
//! made where a person reads them.

use crate::{AnyVersion, ClockFailure, CpuId, EventGrain, TscFlaw};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Why there is less of a source than there could be. In JSON it has its stable `id` beside its fields.
///
/// What the system said (`system`) is kept in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum SourceProblem {
    /// tracefs is there, but not for this user.
    NoPermission {
        /// What was refused.
        path: String,
    },
    /// tracefs is not mounted, and this user may not mount it.
    MountDenied,
    /// tracefs is not mounted, and the kernel refused to.
    MountRefused {
        /// Where.
        path: String,
        /// For want of a permission.
        denied: bool,
        /// What the system said.
        system: String,
    },
    /// The kernel has no tracefs, or none that will do.
    TracefsUnusable {
        /// What of it.
        flaw: TracefsFlaw,
    },
    /// The kernel is locked down: it keeps its events to itself, from root too.
    LockedDown,
    /// The kernel does not stamp events with the clock of the probe.
    TraceClock {
        /// The kernel's name of the clock that is wanted.
        wanted: String,
        /// Those that it has.
        offered: String,
    },
    /// The ring buffer could not be made as large as asked.
    BufferRefused {
        /// Size asked for, KiB a CPU.
        kib: u64,
        /// What the system said.
        system: String,
    },
    /// A control file refused a value.
    ValueRefused {
        /// The value.
        value: String,
        /// The file.
        path: String,
        /// For want of a permission.
        denied: bool,
        /// What the system said.
        system: String,
    },
    /// A control file of tracefs cannot be read.
    ControlUnreadable {
        /// The file.
        path: String,
        /// For want of a permission.
        denied: bool,
        /// What the system said.
        system: String,
    },
    /// A tracing instance could not be made.
    InstanceRefused {
        /// Where.
        path: String,
        /// For want of a permission.
        denied: bool,
        /// What the system said.
        system: String,
    },
    /// Some of the wanted events do not exist here.
    EventsMissing {
        /// Each as `system:event`.
        events: Vec<String>,
    },
    /// Some of them were not asked for.
    EventsNotAsked {
        /// What was asked for.
        grain: EventGrain,
    },
    /// None of the wanted events exists or can be enabled.
    NoEvents {
        /// Each as `system:event`.
        events: Vec<String>,
    },
    /// The kernel does not describe its pages or records in a way that can be read.
    FormatUnreadable {
        /// What is wrong, as the parser has it.
        parser: String,
    },
    /// The ring buffer was overwritten before it was read.
    EventsLost {
        /// Events.
        lost: u64,
    },
    /// The same of records of function calls.
    CallsLost {
        /// Records.
        lost: u64,
    },
    /// A CPU has no trace buffer: it is not there, or offline.
    NoTraceBuffer {
        /// The CPU.
        cpu: CpuId,
        /// What the system said.
        system: String,
    },
    /// The kernel was built without a tracer.
    NoTracer {
        /// Its name.
        tracer: String,
    },
    /// `function_graph` cannot run in a tracing instance.
    GraphForOne,
    /// Somebody else has chosen what `function_graph` looks into.
    GraphTaken {
        /// As `set_graph_function` has it.
        functions: String,
    },
    /// The kernel has no such function, or none that can be traced.
    NoFunction {
        /// As it was asked for.
        function: String,
    },
    /// `/proc/kallsyms` shows zeros in place of addresses.
    AddressesHidden {
        /// `kernel.kptr_restrict`, or `unknown`.
        kptr_restrict: String,
    },
    /// `/proc/kallsyms` lists no function.
    NoFunctionNames,
    /// `/proc/kallsyms` cannot be read.
    FunctionNamesUnreadable {
        /// For want of a permission.
        denied: bool,
        /// What the system said.
        system: String,
    },
    /// A file of counters is not there.
    CountersMissing {
        /// The file.
        path: String,
    },
    /// It is, and cannot be read.
    CountersUnreadable {
        /// The file.
        path: String,
        /// What the system said.
        system: String,
    },
    /// It has no row for a CPU.
    NoCpuRow {
        /// The file.
        path: String,
    },
    /// It has no column of stolen time.
    NoStealColumn {
        /// The file.
        path: String,
    },
    /// Its format is of a version that is not known.
    CountersVersion {
        /// The file.
        path: String,
        /// The version that it states.
        version: String,
    },
    /// The count of system management interrupts is that of a virtual machine: it does not see the host's firmware.
    VirtualSmiCount,
    /// There is no device to read a CPU's registers from.
    NoMsrDevice {
        /// The CPU.
        cpu: CpuId,
        /// This is a virtual machine.
        virtual_machine: bool,
    },
    /// There is, but not for this user.
    MsrDenied {
        /// The CPU.
        cpu: CpuId,
        /// This is a virtual machine.
        virtual_machine: bool,
    },
    /// The processor does not count system management interrupts.
    NoSmiCount {
        /// The CPU.
        cpu: CpuId,
        /// This is a virtual machine.
        virtual_machine: bool,
    },
    /// A CPU's register cannot be read.
    MsrUnreadable {
        /// The CPU.
        cpu: CpuId,
        /// This is a virtual machine.
        virtual_machine: bool,
        /// What the system said.
        system: String,
    },
    /// The TSC is not used.
    NoTsc {
        /// Why not.
        because: AnyVersion<TscFlaw>,
    },
    /// No clock can be used.
    NoClock {
        /// Why not.
        because: AnyVersion<ClockFailure>,
    },
    /// In the words of an earlier version.
    Worded {
        /// Why.
        #[serde(default)]
        reason: String,
        /// The narrowest way to have it; empty where there is none.
        #[serde(default)]
        fix: String,
    },
    /// What a newer version wrote.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

/// Why a kernel's tracefs cannot be used, or there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum TracefsFlaw {
    /// The kernel has no such file system.
    NoFileSystem,
    /// None of the folders exists that it is mounted at.
    NoFolder,
    /// Its root cannot be read.
    Unreadable {
        /// The root.
        path: String,
        /// What the system said.
        system: String,
    },
    /// A file of it is not there.
    Missing {
        /// Which, below the root.
        file: String,
    },
    /// The pages of two instances are laid out differently.
    PagesDiffer,
    /// `/proc/self/stat` does not tell when this process started, which names its instances.
    NoStartTime,
    /// What a newer version wrote.
    #[serde(untagged)]
    Unknown(Map<String, Value>),
}

impl SourceProblem {
    /// The stable name of its kind, as JSON has it; empty for what has none.
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

    /// What an earlier version said, if it said anything.
    pub(crate) fn worded(reason: String, fix: String) -> Option<SourceProblem> {
        (!reason.is_empty() || !fix.is_empty()).then_some(SourceProblem::Worded { reason, fix })
    }
}

crate::words::open_words! {
    /// What cannot be seen for want of a source, or of a part of it. What an earlier version said in words is
    /// `Other`, like what a newer one wrote.
    SourceLoss {
        /// Any length at all.
        Measurement = "measurement",
        /// The lowest floor.
        LowestFloor = "lowest_floor",
        /// Who caused a stall.
        Causes = "causes",
        /// Who sent an interrupt, woke a thread or queued work.
        Senders = "senders",
        /// Kernel events on the probe's own clock.
        ProbeClock = "probe_clock",
        /// What takes the time inside a kernel function.
        FunctionTimes = "function_times",
        /// The kernel's own measure of noise.
        SecondOpinion = "second_opinion",
        /// Whether firmware took the time.
        Firmware = "firmware",
        /// Names of kernel functions.
        FunctionNames = "function_names",
        /// How often each interrupt came.
        InterruptCounts = "interrupt_counts",
        /// How often each softirq ran.
        SoftirqCounts = "softirq_counts",
        /// How much time the hypervisor took.
        StolenTime = "stolen_time",
        /// How long threads waited for a CPU.
        RunQueueDelays = "run_queue_delays",
        /// Which thread took the CPU.
        Switches = "switches",
        /// Interrupts of devices.
        DeviceInterrupts = "device_interrupts",
        /// Softirqs.
        Softirqs = "softirqs",
        /// NMI handlers.
        NmiHandlers = "nmi_handlers",
        /// What kworkers ran.
        WorkItems = "work_items",
        /// Timer functions.
        TimerFunctions = "timer_functions",
        /// High-resolution timer functions.
        HrtimerFunctions = "hrtimer_functions",
        /// What keeps the tick running.
        TickDependency = "tick_dependency",
        /// What functions other CPUs called.
        CalledFunctions = "called_functions",
        /// Page faults.
        PageFaults = "page_faults",
        /// Why translations were flushed.
        TlbFlushes = "tlb_flushes",
        /// Changes of a CPU's frequency.
        FrequencyChanges = "frequency_changes",
        /// Idle states.
        IdleStates = "idle_states",
        /// Interrupt vectors.
        Vectors = "vectors",
        /// The beginning of threads.
        ThreadStarts = "thread_starts",
        /// Threads that come by exec.
        Renames = "renames",
        /// When a thread was put on a CPU whose idle thread is not traced.
        Charges = "charges",
        /// That a thread id is used again.
        ReusedIds = "reused_ids",
        /// Who sent an interrupt to one CPU.
        IpiSender = "ipi_sender",
        /// Who sent an interrupt to several CPUs.
        MaskIpiSender = "mask_ipi_sender",
        /// Who called a function on the CPU.
        CallSender = "call_sender",
        /// Who woke a thread.
        Wakers = "wakers",
        /// Who queued work.
        WorkQueuers = "work_queuers",
        /// Who was moved to the CPU.
        Migrations = "migrations",
        /// Who stopped a thread.
        Stoppers = "stoppers",
        /// The cause of stalls near lost events.
        NearLostEvents = "near_lost_events",
        /// Calls inside some stalls.
        SomeCalls = "some_calls",
    }
}

impl SourceLoss {
    /// What an earlier version said, if it said anything.
    pub(crate) fn worded(text: &str) -> Option<SourceLoss> {
        (!text.is_empty()).then(|| SourceLoss::from_word(text))
    }
}
