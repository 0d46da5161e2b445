//! Undoes the knobs of an experiment that could not do so itself.

use jitterscope_experiment::ExperimentError;
use jitterscope_platform::Machine;
use jitterscope_tune::{HostWriter, OnDrift, StateDir, StateError, rollback_only, status};
use std::time::{Duration, Instant};

/// How long to wait for another process's lock on the journal.
pub(super) const LOCKED: Duration = Duration::from_secs(20);

/// Undoes those of these knobs that the journal lists as changed.
///
/// # Errors
/// Some could not be restored; the journal keeps them.
pub fn undo(machine: &Machine, dir: &StateDir, knobs: &[String]) -> Result<(), ExperimentError> {
    let failed = |why: String| ExperimentError::NotReverted(why);
    let begun = Instant::now();
    loop {
        let standing = status(machine, dir).map_err(|error| failed(error.to_string()))?;
        let ours = standing.applied_of(knobs);
        if ours.is_empty() {
            return Ok(());
        }
        match rollback_only(&mut HostWriter::new(machine), dir, &ours, &mut |_| {
            OnDrift::Keep
        }) {
            Ok(report) if report.unsettled().next().is_none() => return Ok(()),
            Ok(_) => return Err(failed(format!("not all of {} was undone", ours.join(", ")))),
            Err(jitterscope_tune::RollbackError::State(StateError::Locked { .. }))
                if begun.elapsed() < LOCKED =>
            {
                std::thread::sleep(Duration::from_millis(100));
            }
            Err(error) => return Err(failed(error.to_string())),
        }
    }
}
