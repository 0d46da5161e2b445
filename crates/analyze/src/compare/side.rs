//! Runs of one setting: a sample.

use super::conditions::ConditionDifference;
use super::run::ComparedRun;
use crate::{DifferenceClass, MachineDifference, compare_machines};
use jitterscope_model::CpuSet;

/// What differs between machines from run to run without anybody having set it.
const BY_ITSELF: [&str; 4] = ["load.", "tuning.competitors", "tuning.findings", "cpusets"];

/// Runs of one setting, oldest first.
#[derive(Clone, Debug)]
pub struct Side {
    /// What the user called it.
    pub name: String,
    /// At least one.
    pub(super) runs: Vec<ComparedRun>,
}

/// Why runs are no sample of one setting.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PoolError {
    /// Nothing to pool.
    #[error("{name}: no runs")]
    Empty {
        /// What the user called it.
        name: String,
    },
    /// One recording stands there more than once: it would count as several.
    #[error(
        "{name} has run {run} more than once (a copy of its folder?): it would count as several runs; name each \
         once, or take the copy out of the folder of runs"
    )]
    Repeated {
        /// What the user called it.
        name: String,
        /// Its id.
        run: String,
    },
    /// They were measured or set differently.
    #[error(
        "{name} has runs of different settings, which are no sample of either (runs {first} and {other}); name by id \
         the runs that belong together"
    )]
    Different {
        /// What the user called it.
        name: String,
        /// A run.
        first: String,
        /// One that is not like it.
        other: String,
        /// What differs.
        what: Box<SettingDifference>,
        /// How much else does.
        more: usize,
    },
}

/// Something by which two runs are not of one setting.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingDifference {
    /// How they were measured.
    Condition(ConditionDifference),
    /// Which CPUs were.
    Cpus([CpuSet; 2]),
    /// How their machines were set.
    Machine(MachineDifference),
}

/// One run stands on both sides of a comparison: it would be compared with itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "run {run} is in both {first} and {other}: nothing can be said of a run beside itself; name by id the runs of \
     each, or leave out one of the two"
)]
pub struct SharedRun {
    /// Its id.
    pub run: String,
    /// What the user called the one side.
    pub first: String,
    /// And the other.
    pub other: String,
}

impl Side {
    /// Refuses sides that have a run in common with the first, however they are called: by a label, an id, a folder
    /// or a copy of that. A run's CPUs may be compared with one another.
    ///
    /// # Errors
    /// Which run, and in which sides.
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

    /// Puts runs together.
    ///
    /// # Errors
    /// There are none, one is there twice, or they are not all of one setting.
    pub fn pool(name: &str, mut runs: Vec<ComparedRun>) -> Result<Side, PoolError> {
        runs.sort_by_key(|run| run.started_realtime_ns);
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
                .map(SettingDifference::Condition)
                .collect();
            // Where threads go that were followed is an outcome, not a setting.
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

    /// Runs of one arm of an experiment, which has seen to it that they are of one setting; those of both
    /// arms in the order of their pairs.
    ///
    /// # Errors
    /// There are none.
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

/// What somebody set differently on the machines of two runs.
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
