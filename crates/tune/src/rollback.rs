//! Putting everything back, from the journal alone.

use crate::apply::boot_id;
use crate::hands::Hands;
use crate::journal::{Record, Step};
use crate::op::{Op, Outcome, Standing, classify};
use crate::permit::{self, Forbidden};
use crate::state_dir::{StateDir, StateError};
use crate::threads;
use jitterscope_model::SCHEMA_VERSION;
use jitterscope_platform::Machine;
use serde::Serialize;
use std::collections::BTreeMap;

/// A value that is neither what we wrote nor what was there before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The knob.
    pub knob: String,
    /// What.
    pub path: String,
    /// Before the apply.
    pub original: String,
    /// What the apply wrote.
    pub ours: String,
    /// What somebody else has made of it.
    pub now: String,
}

/// What to do about a drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDrift {
    /// Put the original back all the same.
    Restore,
    /// Leave the other's value, and forget ours.
    Keep,
    /// Decide later: the step stays in force.
    Later,
}

/// What became of one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Undoing {
    /// The original is back.
    Restored,
    /// It was as before already.
    WasOriginal,
    /// The thing is gone; why.
    Gone {
        /// Why.
        why: String,
    },
    /// It goes with the cgroup that it is a file of, which the apply made.
    GoesWithItsCgroup,
    /// A reboot had undone it.
    UndoneByReboot,
    /// Somebody else has changed it, and his value was kept.
    KeptForeign {
        /// That value.
        now: String,
    },
    /// Somebody else has changed it: not decided.
    Drifted {
        /// That value.
        now: String,
    },
    /// It is no change that a knob of this version makes: nothing was done about it, and it stays in the
    /// journal.
    Forbidden {
        /// Why.
        why: String,
    },
    /// It could not be put back.
    Failed {
        /// What the system said, and what that means.
        why: String,
    },
}

impl Undoing {
    fn is_settled(&self) -> bool {
        !matches!(self, Undoing::Drifted { .. } | Undoing::Forbidden { .. } | Undoing::Failed { .. })
    }
}

/// One step of a rollback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RolledBack {
    /// The knob.
    pub knob: String,
    /// What.
    pub path: String,
    /// What was there before the apply.
    pub original: String,
    /// What became of it.
    #[serde(flatten)]
    pub undoing: Undoing,
}

/// A rollback.
#[derive(Clone, Debug, Serialize)]
pub struct RollbackReport {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// Each step, latest first.
    pub steps: Vec<RolledBack>,
    /// Threads started since, which had inherited a confinement and were freed: how many.
    pub inherited_freed: usize,
    /// Whether the machine was rebooted since the apply.
    pub rebooted: bool,
    /// Whether a drop-in for the boot loader was removed, so that its configuration must be made anew.
    pub update_boot_loader: bool,
}

impl RollbackReport {
    /// Steps that are still in force.
    pub fn unsettled(&self) -> impl Iterator<Item = &RolledBack> {
        self.steps.iter().filter(|s| !s.undoing.is_settled())
    }
}

/// Puts everything back that the journal tells of, latest first. `on_drift` decides about values that
/// somebody else has changed since. What cannot be settled stays in the journal.
///
/// # Errors
/// Somebody else is changing the machine, or the journal cannot be read or written.
pub fn rollback(
    hands: &mut dyn Hands,
    dir: &StateDir,
    on_drift: &mut dyn FnMut(&Drift) -> OnDrift,
) -> Result<RollbackReport, StateError> {
    let mut report = RollbackReport {
        schema_version: SCHEMA_VERSION,
        steps: Vec::new(),
        inherited_freed: 0,
        rebooted: false,
        update_boot_loader: false,
    };
    let locked = dir.lock()?;
    let state = locked.load()?;
    if !state.is_active() {
        return Ok(report);
    }
    let boot = boot_id(hands.machine());
    let mut journal = locked.journal()?;
    let steps: Vec<(&Step, Result<(), Forbidden>)> =
        state.standing().map(|s| (s, permit::check(hands.machine(), &s.knob, &s.op))).collect();
    let sound: Vec<&Step> = steps.iter().filter(|(_, check)| check.is_ok()).map(|(s, _)| *s).collect();
    let of_this_boot =
        |step: &&&Step| state.begins.get(step.begin).is_some_and(|begun| begun.boot_id == boot);
    let heirs = heirs(hands.machine(), sound.iter().filter(of_this_boot).map(|step| &step.op));
    for (step, check) in &steps {
        let rebooted = state.begins.get(step.begin).is_some_and(|b| b.boot_id != boot);
        report.rebooted |= rebooted;
        let undoing = if let Err(why) = check {
            Undoing::Forbidden { why: why.to_string() }
        } else if sound.iter().any(|made| is_file_of(&step.op, &made.op)) {
            // A cpuset with members takes no empty list of CPUs; the whole cgroup goes presently.
            Undoing::GoesWithItsCgroup
        } else {
            undo(hands, step, rebooted, on_drift)
        };
        if undoing.is_settled() {
            let how = serde_json::to_string(&undoing).unwrap_or_default();
            journal.append(&[Record::Undone { seq: step.seq, how }])?;
        }
        report.update_boot_loader |= undoing == Undoing::Restored
            && matches!(&step.op, Op::PutFile { path, .. } if path.starts_with("/etc/default/grub.d/"));
        report.steps.push(RolledBack {
            knob: step.knob.clone(),
            path: step.op.what(),
            original: step.op.from_text(),
            undoing,
        });
    }
    report.inherited_freed = free_heirs(hands, heirs);
    if report.unsettled().next().is_none() {
        drop(journal);
        locked.put_away()?;
    }
    Ok(report)
}

/// Whether `op` writes a file of the cgroup that `made` makes.
fn is_file_of(op: &Op, made: &Op) -> bool {
    match (op, made) {
        (Op::Write { path: file, .. }, Op::MakeDir { path, cgroup: true }) => {
            file.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'))
        }
        _ => false,
    }
}

fn undo(
    hands: &mut dyn Hands,
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
    let is_in_force = matches!(step.outcome, Some(Outcome::Applied { .. } | Outcome::Pending { .. }));
    let standing = if is_in_force && !rebooted {
        step.op.settled(hands.machine(), &Standing::Ours)
    } else {
        step.op.standing(hands.machine())
    };
    match standing {
        Standing::Original if rebooted && !on_disk => Undoing::UndoneByReboot,
        Standing::Original => Undoing::WasOriginal,
        Standing::Gone(_) if rebooted => Undoing::UndoneByReboot,
        Standing::Gone(why) => Undoing::Gone { why },
        // After a reboot a value of neither kind is what the machine boots with.
        Standing::Foreign(_) if rebooted && !on_disk => Undoing::UndoneByReboot,
        Standing::Ours => restore(hands, step),
        // The kernel took the value in its own way when it was applied; nobody has touched it since.
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

fn restore(hands: &mut dyn Hands, step: &Step) -> Undoing {
    match step.op.undo(hands) {
        Ok(()) => Undoing::Restored,
        Err(e) => match step.op.standing(hands.machine()) {
            Standing::Gone(why) => Undoing::Gone { why },
            _ => Undoing::Failed { why: classify(&step.op, &e).1 },
        },
    }
}

/// A thread that was started by a confined one and inherited its affinity; what it would have had.
fn heirs<'a>(machine: &Machine, steps: impl Iterator<Item = &'a Op>) -> Vec<Op> {
    let mut moved: BTreeMap<i32, (&jitterscope_model::CpuSet, &jitterscope_model::CpuSet)> = BTreeMap::new();
    let mut known = Vec::new();
    for op in steps {
        if let Op::Thread { pid, tid, start_time, from, to, .. } = op {
            moved.insert(*pid, (from, to));
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
        // Up the family until somebody whom we moved.
        let mut ancestor = thread.pid;
        for _ in 0..64 {
            if let Some((from, to)) = moved.get(&ancestor) {
                if thread.allowed == **to && from != to {
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

fn free_heirs(hands: &mut dyn Hands, heirs: Vec<Op>) -> usize {
    heirs
        .into_iter()
        .filter(|op| op.standing(hands.machine()) == Standing::Ours && op.undo(hands).is_ok())
        .count()
}

/// Opens the journal once more, to see that nothing is in force.
///
/// # Errors
/// It cannot be read.
pub fn is_clean(dir: &StateDir) -> Result<bool, StateError> {
    Ok(!dir.look()?.is_active())
}
