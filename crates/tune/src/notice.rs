//! Notices about the use of a knob, as data.

use jitterscope_model::CpuSet;
use schemars::JsonSchema;
use serde::Serialize;

/// A notice. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Notice {
    /// Only programs started in this cgroup may run on the isolated CPUs.
    StartInGroup { group: String },
    /// Programs must be pinned to the isolated CPUs, because no load is balanced there.
    PinPrograms { cpus: CpuSet },
    /// Interrupts that are set correctly and move when they next fire.
    MoveLater { interrupts: usize },
}

/// A notice about a knob of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KnobNotice {
    pub knob: &'static str,
    pub notice: Notice,
}
