//! The machine that a run was made on, for comparing runs: what it is, how it is set, and what else it did
//! meanwhile. Kept in the run's `machine.json`, apart from the manifest, which a list of runs reads.
//!
//! Nothing here names an owner but the boot line, paths of cpusets, names of devices' interrupts and of who
//! applied a tuning: no serial numbers, UUIDs or asset tags.

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

/// Everything about the machine that decides whether two runs are comparable. Taken before the
/// measurement, but for `load`. What a kernel does not tell is a [`Reading`] that says so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineState {
    /// Firmware and product.
    pub firmware: Firmware,
    /// Processors: model, microcode, topology, frequency and idle governors.
    pub processors: Processors,
    /// The kernel: release, build, boot line, clock source, mitigations.
    pub kernel: KernelState,
    /// Memory: sizes, huge pages, swap.
    pub memory: MemoryState,
    /// Device interrupts and where they may go.
    pub interrupts: Interrupts,
    /// Where unbound work items may run.
    pub workqueues: Workqueues,
    /// cpusets that restrict or reserve CPUs.
    pub cpusets: Cpusets,
    /// Busy shares during the measurement of the CPUs that were not measured.
    pub load: Reading<Vec<CpuLoad>>,
    /// Knobs, findings of the audit, and what `tune` had applied; absent when nobody looked.
    pub tuning: Reading<TuningState>,
}
