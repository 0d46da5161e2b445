//! The wanted state of a knob, as data.

use jitterscope_model::CpuSet;
use schemars::JsonSchema;
use serde::Serialize;

/// The wanted state of a knob on this machine. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Wanted {
    /// Values of control files.
    Values {
        /// One for each sort of file, without duplicates.
        values: Vec<WantedValue>,
    },
    BootParameters {
        parameters: Vec<String>,
    },
    Partition {
        cpus: CpuSet,
    },
    /// The scheduler balances load only among the other CPUs.
    BalancedAmong {
        cpus: CpuSet,
    },
    /// No movable thread may run on the isolated CPUs.
    NoThreads,
    /// To be done once, before the program starts.
    Once,
    /// No CPU quota for the program's control group.
    NoQuota,
    /// irqbalance stopped, or kept off these CPUs.
    IrqbalanceOff {
        cpus: CpuSet,
    },
    /// Limit on the receive queues of a network device.
    QueuesAtMost {
        /// The number of housekeeping CPUs.
        most: usize,
    },
    /// No program that holds performance events.
    NoPerfEvents,
    /// No program that does this, or only for housekeeping CPUs.
    NoneRuns,
    /// The ordinary scheduling class for the kernel's threads on these CPUs, or the lowest real-time priority.
    NoRealTime,
    Value {
        value: &'static str,
    },
}

/// The wanted value of a control file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum WantedValue {
    /// One of these; the first is written.
    OneOf {
        values: &'static [&'static str],
    },
    /// At least `enough`; otherwise `write` is written.
    AtLeast {
        enough: i64,
        write: i64,
    },
    /// At most `enough`; otherwise `write` is written.
    AtMost {
        enough: i64,
        write: i64,
    },
    NoCpuOf {
        cpus: CpuSet,
    },
    /// The contents of the file with this name in the same folder.
    SameAs {
        file: &'static str,
    },
    /// The description in the knob's declaration.
    AsDeclared {
        words: &'static str,
    },
}
