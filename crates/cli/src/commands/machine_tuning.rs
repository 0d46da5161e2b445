//! The machine's knobs as a recording keeps them: made here, for a recording changes nothing and links
//! nothing that could.

use jitterscope_model::{CpuSet, TuningState};
use jitterscope_platform::Machine;
use jitterscope_tune::{
    DEFAULT_STATE_DIR, FindingWords, Goal, StateDir, online_cpus, tuning_state,
};
use jitterscope_view::tuning;
use std::path::PathBuf;

/// The knobs as they stand for the CPUs that will be measured, or for all when it is not known which; `None`
/// when the machine does not tell which CPUs it has.
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

/// Where the journal is of what `tune` has in force.
pub fn state_dir() -> StateDir {
    let dir = std::env::var_os("JITTERSCOPE_STATE").filter(|dir| !dir.is_empty());
    StateDir::at(&dir.map_or_else(|| PathBuf::from(DEFAULT_STATE_DIR), PathBuf::from))
}
