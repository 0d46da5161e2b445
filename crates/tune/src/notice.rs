//! What to know when a knob is used, as data.

use jitterscope_model::CpuSet;
use serde::Serialize;

/// What to know. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Notice {
    /// Only programs that are started in this cgroup may run on the isolated CPUs.
    StartInGroup {
        /// The cgroup's folder.
        group: String,
    },
    /// Programs must be pinned to the isolated CPUs, for nothing balances load there.
    PinPrograms {
        /// The isolated CPUs.
        cpus: CpuSet,
    },
    /// Interrupts that are set right, and move when they next fire.
    MoveLater {
        /// How many.
        interrupts: usize,
    },
}

/// What to know about a knob of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KnobNotice {
    /// The knob's id.
    pub knob: &'static str,
    /// What.
    pub notice: Notice,
}
