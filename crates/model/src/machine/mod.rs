//! The machine of a run, for comparing runs: its hardware, its settings, and its other load during the run. Stored in
//! the run's `machine.json`, separate from the manifest, which a list of runs reads.
//!
//! Only the boot line, paths of cpusets, names of interrupt handlers and the user who applied a tuning can identify an
//! owner: there are no serial numbers, UUIDs or asset tags.

mod cpusets;
mod firmware;
mod interrupts;
mod kernel;
mod load;
mod memory;
mod per_cpu;
mod processors;
mod reading;
mod tuning;
mod workqueues;

pub use cpusets::{CpusetGroup, Cpusets, Hierarchy};
pub use firmware::Firmware;
pub use interrupts::{InterruptRow, Interrupts};
pub use kernel::KernelState;
pub use load::CpuLoad;
pub use memory::{HugePages, MemoryState};
pub use per_cpu::{CpuGroup, PerCpu};
pub use processors::{FrequencyPolicy, IdlePolicy, IdleState, NumaNode, Processors, Smt};
pub use reading::{Reading, ReadingFlaw};
pub use tuning::{
    AppliedChange, AppliedTuning, ChangeNow, KnobFinding, KnobSetting, KnobVerdict, SettingValue,
    TuningApply, TuningState,
};
pub use workqueues::{WorkqueueMask, Workqueues};

use serde::{Deserialize, Serialize};

/// Everything about the machine that decides whether two runs are comparable. Read before the measurement, except for
/// `load`. A value that the kernel does not provide is a [`Reading`] that says so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineState {
    pub firmware: Firmware,
    /// Processors: model, microcode, topology, frequency and idle governors.
    pub processors: Processors,
    /// The kernel: release, build, boot line, clock source, mitigations.
    pub kernel: KernelState,
    /// Memory: sizes, huge pages, swap.
    pub memory: MemoryState,
    /// Device interrupts and their CPU affinity.
    pub interrupts: Interrupts,
    /// CPUs for unbound work items.
    pub workqueues: Workqueues,
    /// cpusets that restrict or reserve CPUs.
    pub cpusets: Cpusets,
    /// Busy shares of the unmeasured CPUs during the measurement.
    pub load: Reading<Vec<CpuLoad>>,
    /// Knobs, findings of the audit, and changes that `tune` applied; absent if they were not read.
    pub tuning: Reading<TuningState>,
}
