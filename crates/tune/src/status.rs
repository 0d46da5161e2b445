//! What is in force, by whom, and what has drifted.

use crate::apply::boot_id;
use crate::forbidden::Forbidden;
use crate::gone::GoneBecause;
use crate::in_force::{self, InForceBy};
use crate::journal::{State, Who};
use crate::op::{Op, OpFamily, Outcome, Standing};
use crate::permit;
use crate::refusal::Meaning;
use crate::state_dir::{StateDir, StateError};
use jitterscope_model::{CpuSet, SCHEMA_VERSION};
use jitterscope_platform::Machine;
use serde::Serialize;

/// How one applied change stands now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "now", rename_all = "snake_case")]
pub enum NowIs {
    /// As applied.
    InForce,
    /// As applied, but not in force yet.
    Pending {
        /// What is in force.
        effective: String,
    },
    /// As it was before.
    Original,
    /// A later change of ours stands on it.
    ChangedAgain,
    /// Somebody else has changed it.
    Drifted {
        /// To.
        reads: String,
    },
    /// Gone.
    Gone {
        /// Why.
        cause: GoneBecause,
    },
    /// It was refused when applied.
    Refused {
        /// What the system said; in journals of earlier programs with what that means.
        #[serde(rename = "system")]
        why: String,
        /// What that means; `None` in such journals, and where `why` says all.
        means: Option<Meaning>,
    },
    /// A reboot has undone it.
    UndoneByReboot,
    /// It is no change that a knob of this version makes: nothing of it is looked at or undone.
    Forbidden {
        /// Why.
        cause: Forbidden,
    },
}

/// One applied change.
#[derive(Clone, Debug)]
pub struct StatusEntry {
    /// The knob.
    pub knob: String,
    /// What.
    pub path: String,
    /// Of which family the change is, if many alike were made.
    pub family: Option<OpFamily>,
    /// Before.
    pub original: String,
    /// What was asked for.
    pub asked: String,
    /// When, nanoseconds since the epoch.
    pub since_realtime_ns: u64,
    /// How it stands.
    pub standing: NowIs,
    /// When it is in force, where the journal tells when it was made; else `None`.
    pub in_force_by: Option<InForceBy>,
}

/// A change that was rolled back and whose undoing is not yet in force everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settling {
    /// The knob.
    pub knob: String,
    /// What.
    pub path: String,
    /// What it reads again.
    pub original: String,
    /// When that is in force.
    pub in_force_by: InForceBy,
}

/// One apply in force.
#[derive(Clone, Debug, Serialize)]
pub struct StatusApply {
    /// Who.
    pub who: Who,
    /// CPUs to be quiet.
    pub isolated: CpuSet,
    /// Whether it came to its end; otherwise it was cut off.
    pub finished: bool,
    /// Whether it was in an earlier boot.
    pub before_reboot: bool,
}

/// What is in force.
#[derive(Clone, Debug)]
pub struct Status {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// Whether anything is.
    pub active: bool,
    /// The applies, oldest first.
    pub applies: Vec<StatusApply>,
    /// Their changes, in order.
    pub changes: Vec<StatusEntry>,
    /// Knobs rolled back by themselves while the rest stays applied.
    pub rolled_back: Vec<String>,
    /// What was rolled back in this boot and takes its time to be in force, as far as a time limits it.
    pub settling: Vec<Settling>,
}

impl Status {
    /// Those of these knobs that are applied.
    #[must_use]
    pub fn applied_of(&self, knobs: &[String]) -> Vec<String> {
        knobs
            .iter()
            .filter(|knob| self.changes.iter().any(|of| of.knob == **knob))
            .cloned()
            .collect()
    }

    /// Changes that somebody else has changed since.
    pub fn drifted(&self) -> impl Iterator<Item = &StatusEntry> {
        self.changes
            .iter()
            .filter(|c| matches!(c.standing, NowIs::Drifted { .. }))
    }
}

/// Compares the journal with the machine; changes neither.
///
/// # Errors
/// The journal cannot be read or is damaged.
pub fn status(machine: &Machine, dir: &StateDir) -> Result<Status, StateError> {
    let state = dir.look()?;
    let boot = boot_id(machine);
    let old = |begin: usize| state.begins.get(begin).is_some_and(|b| b.boot_id != boot);
    let now = in_force::realtime_ns();
    // Paths of the changes seen so far, which are the later ones.
    let mut later: Vec<String> = Vec::new();
    let mut changes: Vec<StatusEntry> = Vec::new();
    for step in state.standing() {
        let path = step.op.what();
        let mut standing = match permit::check(machine, &step.knob, &step.op) {
            Ok(()) => now_is(machine, &step.op, step.outcome.as_ref(), old(step.begin)),
            Err(cause) => NowIs::Forbidden { cause },
        };
        // What it reads is the later change's business.
        if later.contains(&path) && matches!(standing, NowIs::Drifted { .. } | NowIs::Original) {
            standing = NowIs::ChangedAgain;
        }
        let in_force_by = match (&standing, &step.outcome, step.done_at) {
            (NowIs::InForce | NowIs::Pending { .. }, Some(outcome), Some(at)) => {
                in_force::applied(machine, &step.knob, &step.op, outcome, at).map(|by| by.at(now))
            }
            _ => None,
        };
        changes.push(StatusEntry {
            knob: step.knob.clone(),
            path: path.clone(),
            family: step.op.family(),
            original: step.op.from_text(),
            asked: step.op.to_text(),
            since_realtime_ns: state
                .begins
                .get(step.begin)
                .map_or(0, |b| b.who.at_realtime_ns),
            standing,
            in_force_by,
        });
        later.push(path);
    }
    changes.reverse();
    let applies = if state.is_active() {
        state.begins.as_slice()
    } else {
        &[]
    };
    let still: Vec<&str> = state.standing().map(|s| s.knob.as_str()).collect();
    let mut rolled_back: Vec<String> = state
        .steps
        .iter()
        .filter(|s| {
            state.is_active() && s.restored_at.is_some() && !still.contains(&s.knob.as_str())
        })
        .map(|s| s.knob.clone())
        .collect();
    rolled_back.sort();
    rolled_back.dedup();
    // The journal before this one tells only what may be settling still: if it cannot be read, nothing is lost.
    let last = dir.look_at_last().unwrap_or_default();
    // What was applied anew since is not being undone any more.
    let settling = settling(machine, &last, &boot, now)
        .chain(settling(machine, &state, &boot, now))
        .filter(|s| !later.contains(&s.path))
        .collect();
    Ok(Status {
        schema_version: SCHEMA_VERSION,
        active: state.is_active(),
        applies: applies
            .iter()
            .map(|b| StatusApply {
                who: b.who.clone(),
                isolated: b.goal.isolated.clone(),
                finished: b.ended,
                before_reboot: b.boot_id != boot,
            })
            .collect(),
        changes,
        rolled_back,
        settling,
    })
}

/// What was rolled back in this boot, and for how long what was applied still has its effect.
fn settling<'a>(
    machine: &'a Machine,
    state: &'a State,
    boot: &'a str,
    now: u64,
) -> impl Iterator<Item = Settling> + 'a {
    state.steps.iter().filter_map(move |step| {
        let in_this_boot = state
            .begins
            .get(step.begin)
            .is_some_and(|b| b.boot_id == boot);
        let at = step.restored_at.filter(|_| in_this_boot)?;
        let in_force_by = in_force::undone(machine, &step.knob, &step.op, at)?;
        let timed = matches!(in_force_by, InForceBy::AtLatest { .. });
        (timed && in_force_by.is_ahead(now)).then(|| Settling {
            knob: step.knob.clone(),
            path: step.op.what(),
            original: step.op.from_text(),
            in_force_by,
        })
    })
}

pub(crate) fn now_is(
    machine: &Machine,
    op: &Op,
    outcome: Option<&Outcome>,
    rebooted: bool,
) -> NowIs {
    let on_disk = matches!(op, Op::PutFile { .. } | Op::MakeDir { cgroup: false, .. });
    match op.standing(machine) {
        _ if rebooted && matches!(op, Op::Thread { .. }) => NowIs::UndoneByReboot,
        Standing::Original | Standing::Foreign(_) | Standing::Gone(_) if rebooted && !on_disk => {
            NowIs::UndoneByReboot
        }
        Standing::Original => match outcome {
            Some(Outcome::Refused { why, means, .. }) => NowIs::Refused {
                why: why.clone(),
                means: *means,
            },
            _ => NowIs::Original,
        },
        Standing::Gone(cause) => NowIs::Gone { cause },
        Standing::Foreign(reads) => match outcome {
            Some(Outcome::Ignored { reads: then }) if *then == reads => NowIs::Refused {
                why: reads,
                means: Some(Meaning::MadeOtherwise),
            },
            _ => NowIs::Drifted { reads },
        },
        Standing::Ours => match op {
            Op::Write {
                kind,
                to,
                effective: Some(file),
                ..
            } => {
                let effective = machine.read_trimmed(file).unwrap_or_default();
                match (kind.cpus(&effective), kind.cpus(to)) {
                    (Some(now), Some(asked)) if !now.difference(&asked).is_empty() => {
                        NowIs::Pending { effective }
                    }
                    _ => NowIs::InForce,
                }
            }
            _ => NowIs::InForce,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_knobs_that_are_asked_for_those_with_a_change_are_applied() {
        let change = |knob: &str| StatusEntry {
            knob: knob.into(),
            path: String::new(),
            family: None,
            original: String::new(),
            asked: String::new(),
            since_realtime_ns: 0,
            standing: NowIs::InForce,
            in_force_by: None,
        };
        let status = Status {
            schema_version: 0,
            active: true,
            applies: Vec::new(),
            changes: ["a", "b", "b"].map(change).into(),
            rolled_back: Vec::new(),
            settling: Vec::new(),
        };
        let asked = ["c", "b"].map(str::to_owned);
        assert_eq!(status.applied_of(&asked), ["b"]);
        assert_eq!(status.applied_of(&asked[..1]), Vec::<String>::new());
    }
}
