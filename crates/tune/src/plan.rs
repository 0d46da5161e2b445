//! The plan: each change with its reason, made before anything is changed.

use crate::answer::Effect;
use crate::audit::{Competitor, competitors};
use crate::catalogue;
use crate::examine::{Examination, Inspection, KnobState};
use crate::goal::Goal;
use crate::knob::{Knob, Mechanism, Place, Profile, Risk, ThreadFamily};
use crate::left::{LeftTogether, together};
use crate::notice::KnobNotice;
use crate::op::Op;
use crate::persist::{BootLine, Lasting, PERSIST};
use crate::plan_reason::{ChangeReason, Measured, SkipReason};
use crate::run_culprits::RunCulprits;
use jitterscope_model::{PutInOrder, SCHEMA_VERSION};
use jitterscope_platform::Machine;
use schemars::JsonSchema;
use serde::Serialize;
use std::io;

/// How the knobs of a plan are selected.
#[derive(Clone, Debug)]
pub enum Select {
    /// The knobs of a profile.
    Profile(Profile),
    /// The knobs of all profiles.
    All,
    /// These ids, whatever their risk.
    Only(Vec<String>),
    /// The knobs that answer what was measured.
    RunCulprits(RunCulprits),
}

/// One change of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    pub knob: &'static str,
    /// In JSON, view adds its path and its values.
    #[serde(skip)]
    pub op: Op,
    #[serde(rename = "cause")]
    pub why: ChangeReason,
    pub risk: Risk,
}

/// A selected knob without a change in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Skipped {
    pub knob: &'static str,
    /// Why there is nothing to do, or what to do instead.
    #[serde(flatten)]
    pub why: SkipReason,
}

// In JSON, view adds the lists with their words.
/// What would be changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Plan {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    #[serde(flatten)]
    pub goal: Goal,
    /// The changes, in order.
    #[serde(skip)]
    pub changes: Vec<Change>,
    #[serde(skip)]
    pub skipped: Vec<Skipped>,
    /// Threads that stay on the CPUs in any case.
    #[serde(skip)]
    pub left: Vec<LeftTogether>,
    /// What to add to the kernel command line, with `--persist`.
    #[serde(skip)]
    pub boot: Option<BootLine>,
    /// Notices about using the result.
    #[serde(skip)]
    pub notes: Vec<KnobNotice>,
    /// Programs that write the same settings.
    #[serde(skip)]
    pub competitors: Vec<Competitor>,
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A knob that is not in the catalogue.
    #[error("there is no knob '{id}'{}", suggestion(similar))]
    UnknownKnob {
        id: String,
        similar: Vec<&'static str>,
    },
    /// An existing drop-in of ours cannot be read.
    #[error("a drop-in of an earlier run cannot be read: {0}")]
    DropIn(#[from] io::Error),
}

fn suggestion(similar: &[&str]) -> String {
    if similar.is_empty() {
        "; `jitterscope audit --all` lists them".into()
    } else {
        format!("; did you mean {}?", similar.join(", "))
    }
}

/// Makes a plan without the knobs in `except`. `persist` adds what makes it permanent.
///
/// # Errors
/// An unknown knob is named, or an earlier drop-in of ours cannot be read.
pub fn plan(
    machine: &Machine,
    goal: &Goal,
    select: &Select,
    except: &[String],
    persist: bool,
) -> Result<Plan, PlanError> {
    plan_of(&Inspection::new(machine, goal), select, except, persist)
}

/// The plan from an existing inspection.
///
/// # Errors
/// See [`plan`].
pub fn plan_of(
    inspection: &Inspection<'_>,
    select: &Select,
    except: &[String],
    persist: bool,
) -> Result<Plan, PlanError> {
    let Inspection { machine, goal, .. } = *inspection;
    for id in except {
        known(id)?;
    }
    let mut plan = Plan {
        schema_version: SCHEMA_VERSION,
        goal: goal.clone(),
        changes: Vec::new(),
        skipped: Vec::new(),
        left: Vec::new(),
        boot: None,
        notes: Vec::new(),
        competitors: competitors(machine),
    };
    let mut lasting = Lasting::default();
    let mut left = Vec::new();
    for (knob, why) in chosen(select, goal, &mut plan.skipped)? {
        if except.iter().any(|id| id == knob.id) {
            plan.skipped.push(Skipped {
                knob: knob.id,
                why: SkipReason::LeftOut,
            });
            continue;
        }
        let mut found = match select {
            Select::Only(_) => inspection.examine(knob),
            _ => inspection.judge(knob),
        };
        let mut lasts = persist;
        if let ChangeReason::Needed { by } = why {
            // It is made for the other knob's change, if that makes one, and for as long.
            if found.ops.is_empty() || inspection.examine(known(by)?).ops.is_empty() {
                continue;
            }
            lasts = false;
        }
        left.append(&mut found.left);
        if lasts {
            keep(knob, &found, &mut lasting, &mut plan.skipped);
        }
        take(knob, found, why, persist, &mut plan);
    }
    if persist {
        let (ops, boot) = lasting.ops(machine, goal)?;
        plan.boot = boot;
        plan.changes.extend(ops.into_iter().map(|op| Change {
            knob: PERSIST,
            op,
            why: ChangeReason::Lasting,
            risk: Risk::Low,
        }));
    }
    plan.left = together(left);
    Ok(plan)
}

fn known(id: &str) -> Result<&'static Knob, PlanError> {
    catalogue::find(id).ok_or_else(|| PlanError::UnknownKnob {
        id: id.to_owned(),
        similar: catalogue::similar(id),
    })
}

/// The selected knobs in the order in which to apply them, each with its reason.
fn chosen(
    select: &Select,
    goal: &Goal,
    skipped: &mut Vec<Skipped>,
) -> Result<Vec<(&'static Knob, ChangeReason)>, PlanError> {
    let declared = |knob: &'static Knob| {
        (
            knob,
            ChangeReason::AsDeclared {
                words: knob.removes,
            },
        )
    };
    let mut knobs: Vec<(&'static Knob, ChangeReason)> = match select {
        Select::Profile(profile) => catalogue::all()
            .filter(|k| k.profiles.contains(profile))
            .map(declared)
            .collect(),
        Select::All => catalogue::all()
            .filter(|k| !k.profiles.is_empty())
            .map(declared)
            .collect(),
        Select::Only(ids) => ids
            .iter()
            .map(|id| known(id).map(declared))
            .collect::<Result<_, _>>()?,
        Select::RunCulprits(culprits) => {
            let mut out = Vec::new();
            for knob in catalogue::all() {
                let win = culprits.win(knob, &goal.isolated);
                let Some(win) = win.filter(|w| w.effect != Effect::Perhaps) else {
                    continue;
                };
                let measured = Measured::from(&win);
                if win.negligible {
                    skipped.push(Skipped {
                        knob: knob.id,
                        why: SkipReason::Negligible { measured },
                    });
                } else if knob.is_tame() {
                    out.push((knob, ChangeReason::Measured(measured)));
                } else {
                    let why = SkipReason::Risk {
                        measured,
                        risk: knob.risk,
                    };
                    skipped.push(Skipped { knob: knob.id, why });
                }
            }
            out
        }
    };
    let partition = knobs
        .iter()
        .find(|(k, _)| matches!(k.mechanism, Mechanism::Partition));
    if let Some(&(Knob { id: by, .. }, _)) = partition {
        let movers = catalogue::all().filter(|k| matches!(k.mechanism, Mechanism::Threads(_)));
        let missing: Vec<_> = movers
            .filter(|mover| knobs.iter().all(|(k, _)| k.id != mover.id))
            .map(|mover| (mover, ChangeReason::Needed { by }))
            .collect();
        knobs.extend(missing);
    }
    // Hotplug undoes cpusets and affinities, so it comes first. Threads move while the scheduler still balances: those
    // on a CPU that leaves its domains would be stranded there.
    knobs.order_by_key(|(k, _)| match k.mechanism {
        Mechanism::Blink => 0,
        Mechanism::Threads(_) => 1,
        _ => 2,
    });
    knobs.dedup_by_key(|(k, _)| k.id);
    Ok(knobs)
}

fn take(
    knob: &'static Knob,
    found: Examination,
    why: ChangeReason,
    persist: bool,
    plan: &mut Plan,
) {
    if let Some(notice) = found.notice
        && (found.state == KnobState::Fine || !found.ops.is_empty())
    {
        plan.notes.push(KnobNotice {
            knob: knob.id,
            notice,
        });
    }
    if found.ops.is_empty() {
        let why = match (found.state, knob.mechanism) {
            (KnobState::Fine, _) => SkipReason::AlreadySo { found: found.found },
            (KnobState::Unavailable(cause) | KnobState::NotApplicable(cause), _) => {
                SkipReason::NotHere { cause }
            }
            (KnobState::Unreadable(cause), _) => SkipReason::Unreadable { cause },
            (KnobState::Wrong, Mechanism::Boot(_)) if persist => return,
            (KnobState::Wrong, Mechanism::Boot(_)) => {
                let parameters = knob.boot.iter().map(|p| p.spelled(&plan.goal)).collect();
                SkipReason::NeedsReboot { parameters }
            }
            (KnobState::Wrong, _) => SkipReason::ByHand {
                words: knob.by_hand,
            },
        };
        plan.skipped.push(Skipped { knob: knob.id, why });
        return;
    }
    let change = |op| Change {
        knob: knob.id,
        op,
        why: why.clone(),
        risk: knob.risk,
    };
    plan.changes.extend(found.ops.into_iter().map(change));
}

/// The knob that keeps threads off the CPUs from boot.
const ISOLATED_AT_BOOT: &str = "isolcpus-domain";

/// Collects what makes a knob permanent.
fn keep(
    knob: &'static Knob,
    found: &Examination,
    lasting: &mut Lasting,
    skipped: &mut Vec<Skipped>,
) {
    match knob.mechanism {
        Mechanism::Files(settings) => {
            for op in &found.ops {
                if let Op::Write { path, to, .. } = op {
                    let means_the_same_after_a_boot = settings.iter().any(|s| {
                        let (Place::Files(pattern) | Place::PerCpu(pattern, _)) = s.place;
                        s.lasting && crate::glob::matches(&pattern.replace("{cpu}", "*"), path)
                    });
                    if means_the_same_after_a_boot {
                        lasting.add(path, to);
                    } else {
                        lasting.boot.extend(
                            found
                                .boot
                                .iter()
                                .filter(|p| !lasting.boot.contains(p))
                                .copied()
                                .collect::<Vec<_>>(),
                        );
                    }
                }
            }
        }
        Mechanism::Threads(ThreadFamily::User) if !found.ops.is_empty() => lasting.daemons = true,
        Mechanism::Threads(ThreadFamily::Kernel) | Mechanism::Partition
            if !found.ops.is_empty() =>
        {
            skipped.push(Skipped {
                knob: knob.id,
                why: SkipReason::ForNow {
                    at_boot: ISOLATED_AT_BOOT,
                },
            });
        }
        Mechanism::Boot(_) if found.state == KnobState::Wrong => {
            lasting.boot.extend(
                found
                    .boot
                    .iter()
                    .filter(|p| !lasting.boot.contains(p))
                    .copied()
                    .collect::<Vec<_>>(),
            );
        }
        _ => {}
    }
}
