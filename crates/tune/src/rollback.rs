//! Restores everything, or one knob's changes, from the journal alone.

use crate::forbidden::Forbidden;
use crate::gone::GoneBecause;
use crate::in_force::{self, InForceBy};
use crate::journal::{Journal, Record, State, Step};
use crate::machine_writer::MachineWriter;
use crate::op::{Op, Outcome, Standing, classify, exact_file};
use crate::permit;
use crate::persist::{self, PERSIST, Without};
use crate::refusal::Meaning;
use crate::state_dir::{Locked, StateDir, StateError};
use crate::threads::{self, TICK};
use jitterscope_model::{Nanos, PutInOrder, SCHEMA_VERSION};
use jitterscope_platform::{Machine, boot_id};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A value that is neither ours nor the original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drift {
    pub knob: String,
    pub path: String,
    pub original: String,
    /// The value that the apply wrote.
    pub ours: String,
    /// The current value, set by another process.
    pub now: String,
}

/// What to do about a drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDrift {
    /// Restore the original anyway.
    Restore,
    /// Keep the current value, and forget ours.
    Keep,
    /// Decide later: the step stays in force.
    Later,
}

/// The result of undoing one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Undoing {
    /// The original is back.
    Restored,
    /// The original value was already there.
    WasOriginal,
    /// The target is gone.
    Gone { cause: GoneBecause },
    /// It is a file of a cgroup that the apply created, and is removed with it.
    GoesWithItsCgroup,
    /// A reboot had undone it.
    UndoneByReboot,
    /// Another process has changed it, and that value was kept.
    KeptForeign { now: String },
    /// Another process has changed it; undecided.
    Drifted { now: String },
    /// It is not a change that a knob of this version makes: it was not undone, and it stays in the journal.
    Forbidden { cause: Forbidden },
    /// It could not be restored.
    Failed {
        #[serde(rename = "system")]
        why: String,
        means: Meaning,
    },
}

impl Undoing {
    fn is_settled(&self) -> bool {
        !matches!(
            self,
            Undoing::Drifted { .. } | Undoing::Forbidden { .. } | Undoing::Failed { .. }
        )
    }
}

/// One step of a rollback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RolledBack {
    pub knob: String,
    pub path: String,
    /// The original before the apply.
    pub original: String,
    #[serde(flatten)]
    pub undoing: Undoing,
    /// When the original is in force again, which may be later than it reads back; `None` if nothing was written back.
    /// In JSON, view adds the words.
    #[serde(skip)]
    pub in_force_by: Option<InForceBy>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RollbackReport {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// In JSON, view adds the words.
    #[serde(skip)]
    pub steps: Vec<RolledBack>,
    /// Number of threads started since that had inherited a confinement and were freed.
    pub inherited_freed: usize,
    /// Whether the machine was rebooted since the apply.
    pub rebooted: bool,
    /// Whether a drop-in for the boot loader was removed, so that its configuration must be regenerated.
    pub update_boot_loader: bool,
    /// Number of changes of other knobs, which stay applied.
    pub stays: usize,
    /// Drop-ins of ours that still restore a change at the next boot, and why. In JSON, view adds the words.
    #[serde(skip)]
    pub lasting: Vec<Lasts>,
}

/// A drop-in that still contains an undone change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lasts {
    pub path: String,
    pub cause: LastsBecause,
}

/// Why a drop-in was left. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum LastsBecause {
    /// Other knobs may need its boot parameters, too.
    Shared,
    /// It was edited by a user.
    Edited,
    /// Writing it was refused.
    Refused {
        why: String,
        /// Its meaning; `None` if the error says everything.
        means: Option<Meaning>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// The state folder or the journal is unusable.
    #[error(transparent)]
    State(#[from] StateError),
    /// A named knob has no applied change.
    #[error("nothing of {} is applied; applied {}", asked.join(", "), applied_text(applied))]
    NotApplied {
        /// The knobs without applied changes.
        asked: Vec<String>,
        /// The knobs with applied changes.
        applied: Vec<String>,
    },
}

fn applied_text(applied: &[String]) -> String {
    if applied.is_empty() {
        "is nothing at all".into()
    } else {
        format!("are: {}", applied.join(", "))
    }
}

impl RollbackReport {
    /// Steps that are still in force.
    pub fn unsettled(&self) -> impl Iterator<Item = &RolledBack> {
        self.steps.iter().filter(|s| !s.undoing.is_settled())
    }
}

/// Restores everything in the journal, latest first. `on_drift` decides about values that another process has changed
/// since. Steps that cannot be settled stay in the journal.
///
/// # Errors
/// Another process is changing the machine, or the journal cannot be read or written.
pub fn rollback(
    hands: &mut dyn MachineWriter,
    dir: &StateDir,
    on_drift: &mut dyn FnMut(&Drift) -> OnDrift,
) -> Result<RollbackReport, StateError> {
    let locked = dir.lock()?;
    let state = locked.load()?;
    undo_steps(hands, &locked, &state, &|_| true, on_drift)
}

/// Restores what these knobs changed, and removes them from the drop-ins; all other changes stay applied and in the
/// journal. Steps that cannot be settled stay in the journal. `persist` names the drop-ins.
///
/// # Errors
/// One of the knobs has no applied change; another process is changing the machine, or the journal cannot be read or
/// written.
pub fn rollback_only(
    hands: &mut dyn MachineWriter,
    dir: &StateDir,
    knobs: &[String],
    on_drift: &mut dyn FnMut(&Drift) -> OnDrift,
) -> Result<RollbackReport, RollbackError> {
    let locked = dir.lock()?;
    let mut state = locked.load()?;
    let mut applied: Vec<String> = state.standing().map(|s| s.knob.clone()).collect();
    applied.put_in_order();
    applied.dedup();
    let asked: Vec<String> = knobs
        .iter()
        .filter(|id| !applied.contains(id))
        .cloned()
        .collect();
    if !asked.is_empty() {
        return Err(RollbackError::NotApplied { asked, applied });
    }
    let chosen = |step: &Step| knobs.contains(&step.knob);
    let mut lasting = Vec::new();
    if !knobs.iter().any(|id| id == PERSIST) {
        // Before the values: an interrupted rollback is repeated, and then finds the knob still applied.
        lasting = forget_at_boot(hands, &locked, &state, &chosen)?;
        state = locked.load()?;
    }
    let mut report = undo_steps(hands, &locked, &state, &chosen, on_drift)?;
    report.lasting = lasting;
    Ok(report)
}

/// Removes the chosen steps' values from the drop-ins, each as a new step on top of the one that made the drop-in.
/// Returns the drop-ins that still contain some of them.
fn forget_at_boot(
    hands: &mut dyn MachineWriter,
    locked: &Locked,
    state: &State,
    chosen: &dyn Fn(&Step) -> bool,
) -> Result<Vec<Lasts>, StateError> {
    let undone: Vec<(&str, &Op)> = state
        .standing()
        .filter(|s| chosen(s))
        .map(|s| (s.knob.as_str(), &s.op))
        .collect();
    let mut lasting = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut next = state.next_seq();
    for step in state.standing().filter(|s| s.knob == PERSIST) {
        let Op::PutFile { path, from, to, .. } = &step.op else {
            continue;
        };
        if seen.contains(&path.as_str())
            || permit::check(hands.machine(), PERSIST, &step.op).is_err()
        {
            continue;
        }
        seen.push(path);
        let mut lasts = |cause| {
            lasting.push(Lasts {
                path: path.clone(),
                cause,
            })
        };
        let Ok(Some((now, access))) = exact_file(hands.machine(), path) else {
            continue;
        };
        let without = match persist::without(path, &now, &undone) {
            Without::Same => continue,
            Without::Shared => {
                lasts(LastsBecause::Shared);
                continue;
            }
            Without::Text(text) => text,
        };
        if now != *to && Some(&now) != from.as_ref() {
            lasts(LastsBecause::Edited);
            continue;
        }
        let op = Op::PutFile {
            path: path.clone(),
            from: Some(now),
            to: without,
            access: Some(access),
        };
        let mut journal = locked.journal()?;
        journal.append(&[Record::Intend {
            seq: next,
            knob: PERSIST.to_owned(),
            op: op.clone(),
        }])?;
        let outcome = op.perform(hands);
        if let Outcome::Refused { why, means, .. } = &outcome {
            lasts(LastsBecause::Refused {
                why: why.clone(),
                means: *means,
            });
        }
        let at_realtime_ns = Some(in_force::realtime_ns());
        journal.append(&[Record::Done {
            seq: next,
            outcome,
            at_realtime_ns,
        }])?;
        next += 1;
    }
    Ok(lasting)
}

fn undo_steps(
    hands: &mut dyn MachineWriter,
    locked: &Locked,
    state: &State,
    chosen: &dyn Fn(&Step) -> bool,
    on_drift: &mut dyn FnMut(&Drift) -> OnDrift,
) -> Result<RollbackReport, StateError> {
    let mut report = RollbackReport {
        schema_version: SCHEMA_VERSION,
        steps: Vec::new(),
        inherited_freed: 0,
        rebooted: false,
        update_boot_loader: false,
        stays: state.standing().filter(|s| !chosen(s)).count(),
        lasting: Vec::new(),
    };
    if !state.is_active() {
        return Ok(report);
    }
    let boot = boot_id(hands.machine());
    let mut journal = locked.journal()?;
    let steps: Vec<(&Step, Result<(), Forbidden>)> = state
        .standing()
        .filter(|s| chosen(s))
        .map(|s| (s, permit::check(hands.machine(), &s.knob, &s.op)))
        .collect();
    let sound: Vec<&Step> = steps
        .iter()
        .filter(|(_, check)| check.is_ok())
        .map(|(s, _)| *s)
        .collect();
    let of_this_boot = |step: &&&Step| {
        state
            .begins
            .get(step.begin)
            .is_some_and(|begun| begun.boot_id == boot)
    };
    let heirs = heirs(
        hands.machine(),
        sound.iter().filter(of_this_boot).map(|step| {
            let begun = state.begins.get(step.begin);
            (&step.op, begun.and_then(|begun| begun.uptime))
        }),
    );
    for (step, check) in &steps {
        let rebooted = state
            .begins
            .get(step.begin)
            .is_some_and(|b| b.boot_id != boot);
        report.rebooted |= rebooted;
        let undoing = if let Err(cause) = check {
            Undoing::Forbidden {
                cause: cause.clone(),
            }
        } else if sound.iter().any(|made| is_file_of(&step.op, &made.op)) {
            // A cpuset with members accepts no empty list of CPUs; the whole cgroup is removed next.
            Undoing::GoesWithItsCgroup
        } else {
            undo(hands, step, rebooted, on_drift)
        };
        report.update_boot_loader |= undoing == Undoing::Restored
            && matches!(&step.op, Op::PutFile { path, .. } if path.starts_with("/etc/default/grub.d/"));
        report.steps.push(noted(
            hands.machine(),
            &mut journal,
            step,
            rebooted,
            undoing,
        )?);
    }
    // A value may have been blocked by one that was restored later: a thread's CPUs by a cpuset.
    for ((step, _), row) in steps.iter().zip(&mut report.steps) {
        if matches!(row.undoing, Undoing::Failed { .. }) {
            let undoing = undo(hands, step, false, on_drift);
            *row = noted(hands.machine(), &mut journal, step, false, undoing)?;
        }
    }
    report.inherited_freed = free_heirs(hands, heirs);
    if report.unsettled().next().is_none() && report.stays == 0 {
        drop(journal);
        locked.put_away()?;
    }
    Ok(report)
}

/// Journals the result of a step, if it is settled.
fn noted(
    machine: &Machine,
    journal: &mut Journal,
    step: &Step,
    rebooted: bool,
    undoing: Undoing,
) -> Result<RolledBack, StateError> {
    // Repeats a rollback that was interrupted after its write: the original is back since now at the latest.
    let written_back = undoing == Undoing::Restored
        || (undoing == Undoing::WasOriginal && !rebooted && was_in_force(step));
    let at = written_back.then(in_force::realtime_ns);
    if undoing.is_settled() {
        let how = serde_json::to_string(&undoing).unwrap_or_default();
        journal.append(&[Record::Undone {
            seq: step.seq,
            how,
            restored_realtime_ns: at,
        }])?;
    }
    Ok(RolledBack {
        knob: step.knob.clone(),
        path: step.op.what(),
        original: step.op.from_text(),
        undoing,
        in_force_by: at.and_then(|at| in_force::undone(machine, &step.knob, &step.op, at)),
    })
}

/// Whether the step was made and the machine accepted it.
fn was_in_force(step: &Step) -> bool {
    matches!(
        step.outcome,
        Some(Outcome::Applied { .. } | Outcome::Pending { .. })
    )
}

/// Whether `op` writes a file of the cgroup that `made` creates.
fn is_file_of(op: &Op, made: &Op) -> bool {
    match (op, made) {
        (Op::Write { path: file, .. }, Op::MakeDir { path, cgroup: true }) => file
            .strip_prefix(path.as_str())
            .is_some_and(|rest| rest.starts_with('/')),
        _ => false,
    }
}

fn undo(
    hands: &mut dyn MachineWriter,
    step: &Step,
    rebooted: bool,
    on_drift: &mut dyn FnMut(&Drift) -> OnDrift,
) -> Undoing {
    let on_disk = match &step.op {
        Op::PutFile { .. } => true,
        Op::MakeDir { cgroup, .. } => !cgroup,
        _ => false,
    };
    if rebooted && matches!(step.op, Op::Thread { .. }) {
        return Undoing::UndoneByReboot;
    }
    let standing = if was_in_force(step) && !rebooted {
        step.op.settled(hands.machine(), &Standing::Ours)
    } else {
        step.op.standing(hands.machine())
    };
    match standing {
        Standing::Original if rebooted && !on_disk => Undoing::UndoneByReboot,
        Standing::Original => Undoing::WasOriginal,
        Standing::Gone(_) if rebooted => Undoing::UndoneByReboot,
        Standing::Gone(cause) => Undoing::Gone { cause },
        // After a reboot, a value that is neither is the boot default.
        Standing::Foreign(_) if rebooted && !on_disk => Undoing::UndoneByReboot,
        Standing::Ours => restore(hands, step),
        // The kernel stored the value in its own form when it was applied, and no process has changed it since.
        Standing::Foreign(now) if step.outcome == Some(Outcome::Ignored { reads: now.clone() }) => {
            restore(hands, step)
        }
        Standing::Foreign(now) => {
            let drift = Drift {
                knob: step.knob.clone(),
                path: step.op.what(),
                original: step.op.from_text(),
                ours: step.op.to_text(),
                now: now.clone(),
            };
            match on_drift(&drift) {
                OnDrift::Restore => restore(hands, step),
                OnDrift::Keep => Undoing::KeptForeign { now },
                OnDrift::Later => Undoing::Drifted { now },
            }
        }
    }
}

fn restore(hands: &mut dyn MachineWriter, step: &Step) -> Undoing {
    match step.op.undo(hands) {
        Ok(()) => Undoing::Restored,
        Err(e) => match step.op.standing(hands.machine()) {
            Standing::Gone(cause) => Undoing::Gone { cause },
            _ => Undoing::Failed {
                why: e.to_string(),
                means: classify(&step.op, &e).1,
            },
        },
    }
}

/// Threads started by confined ones, which inherited their affinity, with the affinity that they would have had. A thread
/// that is older than the confinement has its affinity from somebody else. Each step comes with the time from the boot to
/// its apply, if known.
fn heirs<'a>(machine: &Machine, steps: impl Iterator<Item = (&'a Op, Option<Nanos>)>) -> Vec<Op> {
    let mut moved = BTreeMap::new();
    let mut known = Vec::new();
    for (op, applied) in steps {
        if let Op::Thread {
            pid,
            tid,
            start_time,
            from,
            to,
            ..
        } = op
        {
            moved.insert(*pid, (from, to, applied));
            known.push((*tid, *start_time));
        }
    }
    if moved.is_empty() {
        return Vec::new();
    }
    let parents = threads::parents(machine);
    let mut found = Vec::new();
    for thread in threads::all(machine) {
        if thread.kernel || known.contains(&(thread.tid, thread.start_time)) {
            continue;
        }
        // Up the ancestors to one that we moved.
        let mut ancestor = thread.pid;
        for _ in 0..64 {
            if let Some((from, to, applied)) = moved.get(&ancestor) {
                let is_older = applied.is_some_and(|at| thread.started() + TICK <= at);
                if thread.allowed == **to && from != to && !is_older {
                    found.push(Op::Thread {
                        pid: thread.pid,
                        tid: thread.tid,
                        start_time: thread.start_time,
                        comm: thread.comm.clone(),
                        from: (*from).clone(),
                        to: thread.allowed.clone(),
                    });
                }
                break;
            }
            match parents.get(&ancestor) {
                Some(parent) if *parent > 0 && *parent != ancestor => ancestor = *parent,
                _ => break,
            }
        }
    }
    found
}

fn free_heirs(hands: &mut dyn MachineWriter, heirs: Vec<Op>) -> usize {
    heirs
        .into_iter()
        .filter(|op| op.standing(hands.machine()) == Standing::Ours && op.undo(hands).is_ok())
        .count()
}

/// Reads the journal again to see whether nothing is in force.
///
/// # Errors
/// It cannot be read.
pub fn is_clean(dir: &StateDir) -> Result<bool, StateError> {
    Ok(!dir.look()?.is_active())
}

#[cfg(test)]
#[path = "rollback_tests.rs"]
mod tests;
