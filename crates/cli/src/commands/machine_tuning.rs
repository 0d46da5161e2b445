//! The state of the machine's knobs for a recording. It is read here, because the recording crate must not depend on
//! code that changes settings.

use jitterscope_model::{CpuSet, TuningState};
use jitterscope_platform::Machine;
use jitterscope_tune::{
    DEFAULT_STATE_DIR, FindingWords, Goal, StateDir, online_cpus, tuning_state,
};
use jitterscope_view::tuning;
use std::path::PathBuf;

/// The knobs' state for the measured CPUs, or for all if they are unknown; `None` if the machine does not list its
/// CPUs.
pub fn of(machine: &Machine, measured: &CpuSet) -> Option<TuningState> {
    let online = online_cpus(machine).ok()?;
    let cpus = measured.intersection(&online);
    let goal = Goal::to_audit(machine, if cpus.is_empty() { online } else { cpus }).ok()?;
    let words = FindingWords {
        found: tuning::finding,
        wanted: tuning::wanted,
        reason: tuning::knob_reason,
    };
    Some(tuning_state(machine, &goal, &state_dir(), &words))
}

/// The folder of `tune`'s journal.
pub fn state_dir() -> StateDir {
    let dir = std::env::var_os("JITTERSCOPE_STATE").filter(|dir| !dir.is_empty());
    StateDir::at(&dir.map_or_else(|| PathBuf::from(DEFAULT_STATE_DIR), PathBuf::from))
}
