//! Applies a plan: each change is journaled, made and read back.

use crate::gone::GoneBecause;
use crate::in_force::{self, InForceBy};
use crate::journal::{Begun, JOURNAL_VERSION, Journal, Record, State, Who};
use crate::machine_writer::MachineWriter;
use crate::op::{Op, Outcome};
use crate::permit;
use crate::plan::Plan;
use crate::refusal::{Meaning, Refusal};
use crate::state_dir::{StateDir, StateError};
use crate::threads::TICK;
use jitterscope_model::{CpuSet, Nanos};
use jitterscope_platform::{Machine, boot_id};
use schemars::JsonSchema;
use serde::Serialize;

/// What to do if the kernel refuses a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRefusal {
    /// Note it and continue.
    #[default]
    GoOn,
    /// Skip the rest; completed changes stay until they are rolled back.
    Stop,
}

/// Why nothing was applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The state folder or the journal is unusable.
    #[error(transparent)]
    State(#[from] StateError),
    /// The last apply was interrupted.
    #[error(
        "an earlier apply (by {by}) is incomplete: run `jitterscope tune rollback` first to restore everything"
    )]
    Unfinished { by: String },
    /// The active apply is for other CPUs.
    #[error(
        "an apply for CPUs {active} is active, but this one is for CPUs {asked}: roll it back first, or use the same CPUs"
    )]
    OtherCpus { active: CpuSet, asked: CpuSet },
    /// The journal is from before a reboot.
    #[error(
        "the machine was rebooted since the last apply: run `jitterscope tune rollback` (or `status`) first to clean up the rest"
    )]
    Rebooted,
}

/// The result of one change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Applied {
    pub knob: &'static str,
    pub path: String,
    pub from: String,
    pub to: String,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// When it is in force, which may be later than it reads back; `None` if it was not made. In JSON, view adds the words.
    #[serde(skip)]
    pub in_force_by: Option<InForceBy>,
}

/// The version of [`ApplyReport`] in JSON. 3: an error of the system is `system`, and a forbidden change is `forbidden`.
const APPLY_VERSION: u32 = 3;

/// The result of a plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ApplyReport {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// The attempted changes, in order. In JSON, view adds the words.
    #[serde(skip)]
    pub applied: Vec<Applied>,
    /// Number of changes skipped after a refusal.
    pub not_tried: usize,
    /// Whether it was added to an active apply.
    pub merged: bool,
}

impl ApplyReport {
    /// Changes that are not in force.
    pub fn failures(&self) -> impl Iterator<Item = &Applied> {
        self.applied.iter().filter(|a| !a.outcome.is_success())
    }

    /// Failed changes that were possible. An interrupt placed by the kernel is known only from the attempt, so its
    /// refusal counts only if no change succeeded.
    pub fn refused(&self) -> impl Iterator<Item = &Applied> {
        let any = self
            .applied
            .iter()
            .any(|applied| applied.outcome.is_success());
        self.failures()
            .filter(move |applied| !any || !applied.outcome.is_managed())
    }
}

/// A name for the user and process.
#[must_use]
pub fn called(who: &Who) -> String {
    match &who.name {
        Some(name) => format!("{name}, pid {}", who.pid),
        None => format!("uid {}, pid {}", who.uid, who.pid),
    }
}

fn may_merge(state: &State, plan: &Plan, boot: &str) -> Result<bool, ApplyError> {
    if !state.is_active() {
        return Ok(false);
    }
    let Some(last) = state.begins.last() else {
        return Ok(false);
    };
    if last.boot_id != boot {
        return Err(ApplyError::Rebooted);
    }
    if let Some(cut) = state.begins.iter().find(|b: &&Begun| !b.ended) {
        return Err(ApplyError::Unfinished {
            by: called(&cut.who),
        });
    }
    if last.goal.isolated != plan.goal.isolated {
        return Err(ApplyError::OtherCpus {
            active: last.goal.isolated.clone(),
            asked: plan.goal.isolated.clone(),
        });
    }
    Ok(true)
}

/// Applies a plan. Every original is in the synced journal before it is overwritten, so a crash at any point leaves
/// what `rollback` needs.
///
/// # Errors
/// Nothing was changed: another process is changing the machine, an earlier apply must be settled first, or the journal
/// cannot be written. If the journal fails partway, the error stops the apply there.
pub fn apply(
    hands: &mut dyn MachineWriter,
    dir: &StateDir,
    plan: &Plan,
    who: Who,
    on_refusal: OnRefusal,
) -> Result<ApplyReport, ApplyError> {
    let locked = dir.lock()?;
    let state = locked.load()?;
    let boot = boot_id(hands.machine());
    let merged = may_merge(&state, plan, &boot)?;
    let mut report = ApplyReport {
        schema_version: APPLY_VERSION,
        applied: Vec::new(),
        not_tried: 0,
        merged,
    };
    if plan.changes.is_empty() {
        return Ok(report);
    }
    if !merged {
        locked.put_away()?;
    }
    let first = if merged { state.next_seq() } else { 0 };
    let mut journal = locked.journal()?;
    let mut opening = vec![Record::Begin {
        version: JOURNAL_VERSION,
        boot_id: boot,
        who,
        isolated: plan.goal.isolated.clone(),
        housekeeping: plan.goal.housekeeping.clone(),
        uptime: uptime(hands.machine()),
    }];
    opening.extend(
        (first..)
            .zip(&plan.changes)
            .map(|(seq, change)| Record::Intend {
                seq,
                knob: change.knob.to_owned(),
                op: change.op.clone(),
            }),
    );
    journal.append(&opening).map_err(StateError::from)?;
    let mut stopped = false;
    for (i, (seq, change)) in (first..).zip(&plan.changes).enumerate() {
        let (op, outcome) = step(hands, &mut journal, seq, change.knob, &change.op)?;
        let at = in_force::realtime_ns();
        let done = Record::Done {
            seq,
            outcome: outcome.clone(),
            at_realtime_ns: Some(at),
        };
        journal.append(&[done]).map_err(StateError::from)?;
        // An interrupt placed by the kernel is no failure, and only the attempt shows it.
        let failed = !outcome.is_success() && !outcome.is_managed();
        report.applied.push(Applied {
            knob: change.knob,
            path: change.op.what(),
            from: change.op.from_text(),
            to: change.op.to_text(),
            in_force_by: in_force::applied(hands.machine(), change.knob, &op, &outcome, at),
            outcome,
        });
        if failed && on_refusal == OnRefusal::Stop {
            report.not_tried = plan.changes.len() - i - 1;
            stopped = true;
            break;
        }
    }
    journal
        .append(&[Record::End { stopped }])
        .map_err(StateError::from)?;
    Ok(report)
}

/// Makes one change. Returns it with what it overwrote, and its result.
fn step(
    hands: &mut dyn MachineWriter,
    journal: &mut Journal,
    seq: u64,
    knob: &str,
    op: &Op,
) -> Result<(Op, Outcome), StateError> {
    if let Err(forbidden) = permit::check(hands.machine(), knob, op) {
        // A change that may not be undone is not made and must not be journaled as made.
        let outcome = Outcome::Forbidden {
            cause: forbidden.into(),
        };
        let how = serde_json::to_string(&outcome).unwrap_or_default();
        journal.append(&[Record::Undone {
            seq,
            how,
            restored_realtime_ns: None,
        }])?;
        return Ok((op.clone(), outcome));
    }
    // The current value may be newer than the plan: the journal must contain what is overwritten.
    let now = match op.captured(hands.machine()) {
        Ok(now) => now,
        Err(_) if matches!(op, Op::Thread { .. }) => {
            return Ok((
                op.clone(),
                Outcome::Gone {
                    cause: GoneBecause::EndedUnmoved.into(),
                },
            ));
        }
        Err(e) => return Ok((op.clone(), op.refused(&e))),
    };
    if let (Op::MakeDir { path, .. }, true) = (&now, hands.machine().exists(op.what())) {
        // The folder is not ours to remove, so the step must not be journaled as ours.
        let means = Some(Meaning::MadeByOthers);
        let outcome = Outcome::Refused {
            class: Refusal::Busy,
            why: path.clone(),
            means,
        };
        let how = serde_json::to_string(&outcome).unwrap_or_default();
        journal.append(&[Record::Undone {
            seq,
            how,
            restored_realtime_ns: None,
        }])?;
        return Ok((op.clone(), outcome));
    }
    if now != *op {
        journal.append(&[Record::Intend {
            seq,
            knob: knob.to_owned(),
            op: now.clone(),
        }])?;
    }
    if now.is_already() {
        let reads = now.to_text();
        return Ok((now, Outcome::Applied { reads }));
    }
    let outcome = now.perform(hands);
    Ok((now, outcome))
}

/// Time since the boot, in steps of 10 ms.
fn uptime(machine: &Machine) -> Option<Nanos> {
    let text = machine.read("/proc/uptime").ok()?;
    let (seconds, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    let hundredths: u64 = format!("{seconds}{hundredths}").parse().ok()?;
    (hundredths.checked_mul(TICK.0)).map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_is_called_by_name_where_there_is_one() {
        let who = |name: Option<&str>| Who {
            uid: 1000,
            pid: 12,
            name: name.map(str::to_owned),
            command: String::new(),
            at_realtime_ns: 0,
        };
        assert_eq!(called(&who(Some("alice"))), "alice, pid 12");
        assert_eq!(called(&who(None)), "uid 1000, pid 12");
    }
}
