//! The kernel's functions as its tracer `function_graph` records them, and what that costs.

use crate::{CpuId, KernelAddr, Nanos, RecordCost, Ticks};
use serde::{Deserialize, Serialize};

/// One record of the tracer: a function begins, or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// When.
    pub time: Ticks,
    /// Where.
    pub cpu: CpuId,
    /// The thread on which it ran; an interrupt's functions run on the thread that it interrupted.
    pub tid: i32,
    /// Which function.
    pub function: KernelAddr,
    /// How many recorded functions it is nested in.
    pub depth: i32,
    /// Whether it ends here.
    pub ends: bool,
}

/// The price of looking into kernel functions in one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphPrice {
    /// The functions that were looked into, with all that they call.
    pub functions: Vec<String>,
    /// Records of the measured time: two for each call.
    pub records: u64,
    /// Records that the kernel had no room for.
    #[serde(default)]
    pub lost: u64,
    /// What one record cost, as measured before the recording; `None` where that could not be measured.
    pub record: Option<RecordCost>,
    /// How much longer a system call that names a thread took on any CPU although nothing of it was recorded: every
    /// function of the kernel is looked at meanwhile. `None` where that could not be measured.
    pub beside_ns: Option<Nanos>,
}
