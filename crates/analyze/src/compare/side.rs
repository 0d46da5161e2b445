//! The runs of one setting: a sample.

use super::conditions::{ConditionDifference, ConditionKind};
use super::run::ComparedRun;
use crate::{DifferenceClass, MachineDifference, compare_machines};
use jitterscope_model::{CpuSet, PutInOrder};

/// Machine properties that differ from run to run without anyone's action.
const BY_ITSELF: [&str; 4] = ["load.", "tuning.competitors", "tuning.findings", "cpusets"];

/// Runs of one setting, oldest first.
#[derive(Clone, Debug)]
pub struct Side {
    /// The user's name for the side.
    pub name: String,
    pub(super) runs: Vec<ComparedRun>,
}

/// Why runs are not a sample of one setting.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PoolError {
    #[error("{name}: no runs")]
    Empty { name: String },
    /// One recording appears more than once: it would count as several.
    #[error(
        "{name} has run {run} more than once (a copy of its folder?): it would count as several runs; name each \
         once, or take the copy out of the folder of runs"
    )]
    Repeated { name: String, run: String },
    /// They were measured or set differently.
    #[error(
        "{name} has runs of different settings, which are no sample of either (runs {first} and {other}); name by id \
         the runs that belong together"
    )]
    Different {
        name: String,
        first: String,
        /// A run that differs.
        other: String,
        what: Box<SettingDifference>,
        /// The number of further differences.
        more: usize,
    },
}

/// A difference between two runs of a side.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingDifference {
    Condition(ConditionDifference),
    /// The measured CPUs differ.
    Cpus([CpuSet; 2]),
    /// The machine's settings differ.
    Machine(MachineDifference),
}

/// One run is on both sides of a comparison: it would be compared with itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "run {run} is in both {first} and {other}: nothing can be said of a run beside itself; name by id the runs of \
     each, or leave out one of the two"
)]
pub struct SharedRun {
    pub run: String,
    pub first: String,
    pub other: String,
}

impl Side {
    /// Refuses sides that share a run with the first, by any of its names: a label, an id, a folder or a copy of it.
    /// Different CPUs of one run may be compared.
    ///
    /// # Errors
    /// A run is shared; the error names it and the sides.
    pub fn apart(sides: &[Side]) -> Result<(), SharedRun> {
        let Some((first, others)) = sides.split_first() else {
            return Ok(());
        };
        for other in others {
            for run in &other.runs {
                if first.runs.iter().any(|of| of.is_part_of(run)) {
                    let (first, other) = (first.name.clone(), other.name.clone());
                    return Err(SharedRun {
                        run: run.id.clone(),
                        first,
                        other,
                    });
                }
            }
        }
        Ok(())
    }

    /// Pools runs into a side.
    ///
    /// # Errors
    /// There are no runs, one appears twice, or their settings differ.
    pub fn pool(name: &str, mut runs: Vec<ComparedRun>) -> Result<Side, PoolError> {
        runs.order_by_key(|run| run.started_realtime_ns);
        let Some(first) = runs.first() else {
            return Err(PoolError::Empty {
                name: name.to_owned(),
            });
        };
        for (at, run) in runs.iter().enumerate().skip(1) {
            if runs[..at].iter().any(|before| before.is_part_of(run)) {
                return Err(PoolError::Repeated {
                    name: name.to_owned(),
                    run: run.id.clone(),
                });
            }
            let conditions = first.conditions.differences(&run.conditions);
            let mut differences: Vec<SettingDifference> = conditions
                .into_iter()
                // A threshold that both are counted from is one.
                .filter(|of| of.what != ConditionKind::Threshold || of.incomparable)
                .map(SettingDifference::Condition)
                .collect();
            // The CPUs of followed threads are an outcome, not a setting.
            if first.cpus != run.cpus && !run.follows_threads {
                differences.push(SettingDifference::Cpus([
                    first.cpus.clone(),
                    run.cpus.clone(),
                ]));
            }
            differences.extend(
                settings_between(first, run)
                    .into_iter()
                    .map(SettingDifference::Machine),
            );
            let more = differences.len().saturating_sub(1);
            if let Some(what) = differences.into_iter().next() {
                return Err(PoolError::Different {
                    name: name.to_owned(),
                    first: first.id.clone(),
                    other: run.id.clone(),
                    what: Box::new(what),
                    more,
                });
            }
        }
        Ok(Side {
            name: name.to_owned(),
            runs,
        })
    }

    /// Makes a side of the runs of an experiment's arm, which guarantees one setting. The runs of both arms are in the
    /// order of their pairs.
    ///
    /// # Errors
    /// There are no runs.
    pub fn of_arm(name: &str, runs: Vec<ComparedRun>) -> Result<Side, PoolError> {
        if runs.is_empty() {
            return Err(PoolError::Empty {
                name: name.to_owned(),
            });
        }
        Ok(Side {
            name: name.to_owned(),
            runs,
        })
    }

    /// Its runs, oldest first.
    #[must_use]
    pub fn runs(&self) -> &[ComparedRun] {
        &self.runs
    }

    pub(super) fn seconds(&self) -> f64 {
        self.runs.iter().map(|run| run.seconds).sum()
    }
}

/// Differences between two machines that a user or program set.
fn settings_between(first: &ComparedRun, other: &ComparedRun) -> Vec<MachineDifference> {
    let (Some(before), Some(after)) = (&first.machine, &other.machine) else {
        return Vec::new();
    };
    let set = |d: &MachineDifference| {
        d.class != DifferenceClass::Informational
            && !BY_ITSELF.iter().any(|name| d.what.starts_with(name))
    };
    compare_machines(before, after)
        .into_iter()
        .filter(set)
        .collect()
}
