//! What a knob should be, as data.

use jitterscope_model::CpuSet;
use serde::Serialize;

/// What is wanted of a knob on this machine. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Wanted {
    /// Values of control files.
    Values {
        /// One for each sort of file, each once.
        values: Vec<WantedValue>,
    },
    /// Boot parameters.
    BootParameters {
        /// Each as it is typed.
        parameters: Vec<String>,
    },
    /// An isolated partition.
    Partition {
        /// Of these CPUs.
        cpus: CpuSet,
    },
    /// That the scheduler balances load among the other CPUs alone.
    BalancedAmong {
        /// The housekeeping CPUs.
        cpus: CpuSet,
    },
    /// That no thread which can be moved may run on the isolated CPUs.
    NoThreads,
    /// To be done once, before the program starts.
    Once,
    /// No CPU quota for the program's control group.
    NoQuota,
    /// irqbalance stopped, or kept off these CPUs.
    IrqbalanceOff {
        /// The isolated CPUs.
        cpus: CpuSet,
    },
    /// Receive queues of a network device.
    QueuesAtMost {
        /// As many as there are housekeeping CPUs.
        most: usize,
    },
    /// No program that holds performance events.
    NoPerfEvents,
    /// No program that reads registers of other CPUs, or on housekeeping CPUs only.
    NoMsrTool,
    /// A value.
    Value {
        /// Which.
        value: &'static str,
    },
}

/// What the value of a control file should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum WantedValue {
    /// One of these; the first is what is written.
    OneOf {
        /// Not empty.
        values: &'static [&'static str],
    },
    /// At least `enough`; else `write` is written.
    AtLeast {
        /// Good enough.
        enough: i64,
        /// What is written.
        write: i64,
    },
    /// At most `enough`; else `write` is written.
    AtMost {
        /// Good enough.
        enough: i64,
        /// What is written.
        write: i64,
    },
    /// CPUs without these among them.
    NoCpuOf {
        /// The isolated CPUs.
        cpus: CpuSet,
    },
    /// What the file of this name in the same folder reads.
    SameAs {
        /// Its name.
        file: &'static str,
    },
    /// What the knob's declaration says of it.
    AsDeclared {
        /// The declaration's own words.
        words: &'static str,
    },
}
