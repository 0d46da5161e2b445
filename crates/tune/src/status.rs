//! What is in force, by whom, and what has drifted.

use crate::apply::boot_id;
use crate::journal::Who;
use crate::op::{Op, Outcome, Standing};
use crate::permit;
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
    /// Somebody else has changed it.
    Drifted {
        /// To.
        reads: String,
    },
    /// Gone; why.
    Gone {
        /// Why.
        why: String,
    },
    /// It was refused when applied.
    Refused {
        /// Why.
        why: String,
    },
    /// A reboot has undone it.
    UndoneByReboot,
    /// It is no change that a knob of this version makes: nothing of it is looked at or undone.
    Forbidden {
        /// Why.
        why: String,
    },
}

/// One applied change.
#[derive(Clone, Debug, Serialize)]
pub struct StatusEntry {
    /// The knob.
    pub knob: String,
    /// What.
    pub path: String,
    /// Before.
    pub original: String,
    /// What was asked for.
    pub asked: String,
    /// When, nanoseconds since the epoch.
    pub since_realtime_ns: u64,
    /// How it stands.
    #[serde(flatten)]
    pub standing: NowIs,
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
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// Whether anything is.
    pub active: bool,
    /// The applies, oldest first.
    pub applies: Vec<StatusApply>,
    /// Their changes, in order.
    pub changes: Vec<StatusEntry>,
}

impl Status {
    /// Changes that somebody else has changed since.
    pub fn drifted(&self) -> impl Iterator<Item = &StatusEntry> {
        self.changes.iter().filter(|c| matches!(c.standing, NowIs::Drifted { .. }))
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
    let mut changes: Vec<StatusEntry> = state
        .standing()
        .map(|step| StatusEntry {
            knob: step.knob.clone(),
            path: step.op.what(),
            original: step.op.from_text(),
            asked: step.op.to_text(),
            since_realtime_ns: state.begins.get(step.begin).map_or(0, |b| b.who.at_realtime_ns),
            standing: match permit::check(machine, &step.knob, &step.op) {
                Ok(()) => now_is(machine, &step.op, step.outcome.as_ref(), old(step.begin)),
                Err(why) => NowIs::Forbidden { why: why.to_string() },
            },
        })
        .collect();
    changes.reverse();
    let applies = if state.is_active() { state.begins.as_slice() } else { &[] };
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
    })
}

fn now_is(machine: &Machine, op: &Op, outcome: Option<&Outcome>, rebooted: bool) -> NowIs {
    let on_disk = matches!(op, Op::PutFile { .. } | Op::MakeDir { cgroup: false, .. });
    match op.standing(machine) {
        _ if rebooted && matches!(op, Op::Thread { .. }) => NowIs::UndoneByReboot,
        Standing::Original | Standing::Foreign(_) | Standing::Gone(_) if rebooted && !on_disk => {
            NowIs::UndoneByReboot
        }
        Standing::Original => match outcome {
            Some(Outcome::Refused { why, .. }) => NowIs::Refused { why: why.clone() },
            _ => NowIs::Original,
        },
        Standing::Gone(why) => NowIs::Gone { why },
        Standing::Foreign(reads) => match outcome {
            Some(Outcome::Ignored { reads: then }) if *then == reads => {
                NowIs::Refused { why: format!("the kernel made {reads} of it") }
            }
            _ => NowIs::Drifted { reads },
        },
        Standing::Ours => match op {
            Op::Write { kind, to, effective: Some(file), .. } => {
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
