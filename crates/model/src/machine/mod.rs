//! The machine of a run, for comparing runs: its hardware, its settings, and its other load during the run. Stored in
//! the run's `machine.json`, separate from the manifest, which a list of runs reads.
//!
//! Only the boot line, paths of cpusets, names of interrupt handlers and the user who applied a tuning can identify an
//! owner: there are no serial numbers, UUIDs or asset tags.

mod entries;
mod reading;
mod setting;
mod table;
mod tuning;

pub use entries::{MachineEntry, MachineSettings, Scalar};
pub use reading::{Reading, ReadingFlaw};
pub use setting::{
    Compared, DifferenceClass, FileForm, KeptNames, KeptText, MachineSetting, ReadFrom,
};
pub use table::MACHINE_SETTINGS;
pub use tuning::{
    AppliedChange, AppliedTuning, ChangeNow, KnobFinding, KnobSetting, KnobVerdict, SettingValue,
    TuningApply, TuningState,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything about the machine that decides whether two runs are comparable. Read before the measurement, except for
/// the load of the other CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MachineState {
    #[schemars(with = "std::collections::BTreeMap<String, Vec<MachineEntry>>")]
    pub settings: MachineSettings,
    /// Knobs, findings of the audit, and changes that `tune` applied; absent if they were not read.
    pub tuning: Reading<TuningState>,
}
