//! What is in force, which user applied it, and what has drifted.

use crate::forbidden::Forbidden;
use crate::gone::GoneBecause;
use crate::in_force::{self, InForceBy};
use crate::journal::{State, Who};
use crate::op::{Op, OpFamily, Outcome, Standing};
use crate::permit;
use crate::refusal::Meaning;
use crate::state_dir::{StateDir, StateError};
use jitterscope_model::{CpuSet, PutInOrder, SCHEMA_VERSION};
use jitterscope_platform::{Machine, boot_id};
use schemars::JsonSchema;
use serde::Serialize;

/// The current state of an applied change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "now", rename_all = "snake_case")]
pub enum NowIs {
    InForce,
    /// As applied, but not in force yet.
    Pending {
        /// The value in force.
        effective: String,
    },
    /// As before the apply.
    Original,
    /// A later change of ours is on top of it.
    ChangedAgain,
    /// Another process has changed it.
    Drifted {
        reads: String,
    },
    Gone {
        cause: GoneBecause,
    },
    /// It was refused when applied.
    Refused {
        #[serde(rename = "system")]
        why: String,
        /// Its meaning; `None` if `why` says everything.
        means: Option<Meaning>,
    },
    UndoneByReboot,
    /// It is not a change that a knob of this version makes: it is neither checked nor undone.
    Forbidden {
        cause: Forbidden,
    },
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatusEntry {
    pub knob: String,
    pub path: String,
    /// The family of the change, if there are many similar ones.
    #[serde(skip)]
    pub family: Option<OpFamily>,
    pub original: String,
    pub asked: String,
    /// When it was requested, nanoseconds since the epoch.
    pub since_realtime_ns: u64,
    #[serde(flatten)]
    pub standing: NowIs,
    /// When it is in force, if the journal says when it was made; otherwise `None`. In JSON, view adds the words.
    #[serde(skip)]
    pub in_force_by: Option<InForceBy>,
}

/// A change that was rolled back, but whose undoing is not yet in force everywhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Settling {
    pub knob: String,
    pub path: String,
    pub original: String,
    /// When that value is in force. In JSON, view adds the words.
    #[serde(skip)]
    pub in_force_by: InForceBy,
}

/// One apply in force.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatusApply {
    pub who: Who,
    pub isolated: CpuSet,
    /// Whether it is complete; otherwise it was interrupted.
    pub finished: bool,
    /// Whether it was made in an earlier boot.
    pub before_reboot: bool,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Status {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    pub active: bool,
    pub applies: Vec<StatusApply>,
    /// In JSON, view adds the words.
    #[serde(skip)]
    pub changes: Vec<StatusEntry>,
    /// Knobs rolled back separately while the rest stays applied.
    pub rolled_back: Vec<String>,
    /// Changes rolled back in this boot that take some time to be in force, if that time is limited. In JSON, view adds the words.
    #[serde(skip)]
    pub settling: Vec<Settling>,
}

impl Status {
    /// Those of `knobs` that are applied.
    #[must_use]
    pub fn applied_of(&self, knobs: &[String]) -> Vec<String> {
        knobs
            .iter()
            .filter(|knob| self.changes.iter().any(|of| of.knob == **knob))
            .cloned()
            .collect()
    }

    /// Changes that another process has changed since.
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
    // Paths of the changes seen so far, which are later ones.
    let mut later: Vec<String> = Vec::new();
    let mut changes: Vec<StatusEntry> = Vec::new();
    for step in state.standing() {
        let path = step.op.what();
        let mut standing = match permit::check(machine, &step.knob, &step.op) {
            Ok(()) => now_is(machine, &step.op, step.outcome.as_ref(), old(step.begin)),
            Err(cause) => NowIs::Forbidden { cause },
        };
        // The later change is responsible for its value.
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
    rolled_back.put_in_order();
    rolled_back.dedup();
    // The previous journal only shows what may still be settling, so a read error loses nothing.
    let last = dir.look_at_last().unwrap_or_default();
    // A change applied again since is no longer being undone.
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

/// Changes rolled back in this boot, and how long they still have an effect.
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
