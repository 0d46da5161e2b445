//! Kernel functions as the tracer `function_graph` records them, and the tracer's overhead.

use crate::{CpuId, KernelAddr, Nanos, RecordCost, Ticks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One record of the tracer: the entry or the exit of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRecord {
    pub time: Ticks,
    pub cpu: CpuId,
    /// The thread on which it ran. For a function of an interrupt, this is the interrupted thread.
    pub tid: i32,
    pub function: KernelAddr,
    /// The number of recorded functions that it is nested in.
    pub depth: i32,
    /// Whether this is the exit.
    pub ends: bool,
}

/// The overhead of tracing kernel functions in one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphPrice {
    /// The traced functions; the functions that they call are traced, too.
    pub functions: Vec<String>,
    /// Records within the measured time: two per call.
    pub records: u64,
    /// Records that the kernel had no room for.
    #[serde(default)]
    pub lost: u64,
    /// Cost of one record, measured before the recording; `None` if that was not possible.
    pub record: Option<RecordCost>,
    /// How much longer a system call that sets a thread's name takes on any CPU, although none of its functions is
    /// recorded: the tracer checks every kernel function. `None` if that could not be measured.
    pub beside_ns: Option<Nanos>,
}
