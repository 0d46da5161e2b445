//! The plan: each change with its reason, before anything is touched.

use crate::answer::Effect;
use crate::audit::{Competitor, competitors};
use crate::catalogue;
use crate::examine::{Examination, Inspection, KnobState, Left};
use crate::goal::Goal;
use crate::knob::{Knob, Mechanism, Place, Profile, Risk, ThreadFamily};
use crate::op::Op;
use crate::persist::{BootLine, Lasting, PERSIST};
use crate::run_culprits::RunCulprits;
use jitterscope_model::SCHEMA_VERSION;
use jitterscope_platform::Machine;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::io;

/// Which knobs a plan is made of.
#[derive(Clone, Debug)]
pub enum Select {
    /// Those of a profile.
    Profile(Profile),
    /// Those of any profile.
    All,
    /// These, by id, whatever their risk.
    Only(Vec<String>),
    /// Those that answer what was measured.
    RunCulprits(RunCulprits),
}

/// One change of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The knob's id.
    pub knob: &'static str,
    /// The change.
    pub op: Op,
    /// Why.
    pub why: String,
    /// What may go wrong.
    pub risk: Risk,
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut s = serializer.serialize_struct("Change", 7)?;
        s.serialize_field("knob", self.knob)?;
        s.serialize_field("path", &self.op.what())?;
        s.serialize_field("from", &self.op.from_text())?;
        s.serialize_field("to", &self.op.to_text())?;
        let content = match &self.op {
            Op::PutFile { to, .. } => Some(to),
            _ => None,
        };
        s.serialize_field("content", &content)?;
        s.serialize_field("why", &self.why)?;
        s.serialize_field("risk", &self.risk)?;
        s.end()
    }
}

/// A knob that was asked for and has no change in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its id.
    pub knob: &'static str,
    /// What kind of reason.
    pub because: Because,
    /// Why there is nothing to do, or what to do instead.
    pub why: String,
}

/// Why a knob that was asked for has no change in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// It is as wanted.
    AlreadySo,
    /// It was to be left out.
    LeftOut,
    /// This machine does not have it, or it does not concern these CPUs.
    NotHere,
    /// It cannot be read.
    Unreadable,
    /// It is set at boot only.
    NeedsReboot,
    /// Nothing writes it: it is done by hand.
    ByHand,
    /// It must be named.
    Risk,
    /// What it answers took too little to matter.
    Negligible,
    /// It was changed, but cannot be made to last.
    ForNow,
}

impl Because {
    /// Whether somebody who named the knob did not get it.
    #[must_use]
    pub fn is_denial(self) -> bool {
        !matches!(self, Because::AlreadySo | Because::LeftOut | Because::ForNow)
    }
}

/// A plan.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// CPUs to be quiet and the others.
    #[serde(flatten)]
    pub goal: Goal,
    /// Changes, in the order in which they are made.
    pub changes: Vec<Change>,
    /// Knobs without a change.
    pub skipped: Vec<Skipped>,
    /// What stays on the CPUs whatever is done.
    pub left: Vec<Left>,
    /// What the kernel command line should get, with `--persist`.
    pub boot: Option<BootLine>,
    /// What to know when using the result.
    pub notes: Vec<String>,
    /// Programs that write the same settings.
    pub competitors: Vec<Competitor>,
}

/// Why no plan can be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A knob that is not in the catalogue.
    #[error("there is no knob '{id}'{}", suggestion(similar))]
    UnknownKnob {
        /// As asked.
        id: String,
        /// Ids like it.
        similar: Vec<&'static str>,
    },
    /// A drop-in of ours that is there cannot be read.
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

/// Makes a plan without the knobs named in `except`. `persist` adds what makes it last.
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

/// The same of a machine that is inspected for more than this.
///
/// # Errors
/// As [`plan`].
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
    for (knob, why) in chosen(select, &mut plan.skipped)? {
        if except.iter().any(|id| id == knob.id) {
            plan.skipped.push(Skipped {
                knob: knob.id,
                because: Because::LeftOut,
                why: "left out, as asked".into(),
            });
            continue;
        }
        let found = inspection.examine(knob);
        if persist {
            keep(knob, &found, &mut lasting, &mut plan.skipped);
        }
        take(knob, found, &why, persist, &mut plan);
    }
    if persist {
        let (ops, boot) = lasting.ops(machine, goal)?;
        plan.boot = boot;
        plan.changes.extend(ops.into_iter().map(|op| Change {
            knob: PERSIST,
            op,
            why: "so that it holds after the next boot".into(),
            risk: Risk::Low,
        }));
    }
    // Kernel workers and their like are many and all alike: one line for each kind.
    plan.left = joined(std::mem::take(&mut plan.left));
    Ok(plan)
}

fn known(id: &str) -> Result<&'static Knob, PlanError> {
    catalogue::find(id)
        .ok_or_else(|| PlanError::UnknownKnob { id: id.to_owned(), similar: catalogue::similar(id) })
}

/// The knobs chosen, in the order in which they should be turned, each with the reason.
fn chosen(select: &Select, skipped: &mut Vec<Skipped>) -> Result<Vec<(&'static Knob, String)>, PlanError> {
    let mut knobs: Vec<(&'static Knob, String)> = match select {
        Select::Profile(profile) => catalogue::all()
            .filter(|k| k.profiles.contains(profile))
            .map(|k| (k, k.removes.to_owned()))
            .collect(),
        Select::All => {
            catalogue::all().filter(|k| !k.profiles.is_empty()).map(|k| (k, k.removes.to_owned())).collect()
        }
        Select::Only(ids) => {
            ids.iter().map(|id| known(id).map(|k| (k, k.removes.to_owned()))).collect::<Result<_, _>>()?
        }
        Select::RunCulprits(measured) => {
            let mut out = Vec::new();
            for knob in catalogue::all() {
                let Some(win) = measured.win(knob).filter(|w| w.effect != Effect::Perhaps) else { continue };
                let why = format!(
                    "measured: {} took {}{}",
                    win.culprits.iter().take(3).cloned().collect::<Vec<_>>().join(", "),
                    win.total_ns,
                    match win.count {
                        // Each was too short to be kept one by one.
                        0 => String::new(),
                        1 => ", 1 time".into(),
                        n => format!(", {n} times"),
                    }
                );
                if measured.is_negligible(win.total_ns) {
                    skipped.push(Skipped { knob: knob.id, because: Because::Negligible, why });
                } else if knob.is_tame() {
                    out.push((knob, why));
                } else {
                    let why = format!("{why}; its risk is {}: name it with --only", knob.risk.as_str());
                    skipped.push(Skipped { knob: knob.id, because: Because::Risk, why });
                }
            }
            out
        }
    };
    // Hotplug undoes cpusets and affinities, so it comes first.
    knobs.sort_by_key(|(k, _)| !matches!(k.mechanism, Mechanism::Blink));
    knobs.dedup_by_key(|(k, _)| k.id);
    Ok(knobs)
}

fn take(knob: &'static Knob, found: Examination, why: &str, persist: bool, plan: &mut Plan) {
    plan.left.extend(found.left);
    if !found.note.is_empty() && (found.state == KnobState::Fine || !found.ops.is_empty()) {
        plan.notes.push(format!("{}: {}", knob.id, found.note));
    }
    if found.ops.is_empty() {
        let (because, why) = match (&found.state, &knob.mechanism) {
            (KnobState::Fine, _) => (Because::AlreadySo, format!("already so: {}", found.current)),
            (KnobState::Unavailable(why) | KnobState::NotApplicable(why), _) => {
                (Because::NotHere, why.clone())
            }
            (KnobState::Unreadable(why), _) => (Because::Unreadable, format!("cannot be read: {why}")),
            (KnobState::Wrong, Mechanism::Boot(_)) if persist => return,
            (KnobState::Wrong, Mechanism::Boot(_)) => {
                (Because::NeedsReboot, format!("needs a reboot with {}: --persist prepares it", found.wanted))
            }
            (KnobState::Wrong, _) => (Because::ByHand, format!("by hand: {}", knob.by_hand)),
        };
        plan.skipped.push(Skipped { knob: knob.id, because, why });
        return;
    }
    plan.changes.extend(found.ops.into_iter().map(|op| Change {
        knob: knob.id,
        op,
        why: why.to_owned(),
        risk: knob.risk,
    }));
}

/// Notes what makes a knob last.
fn keep(knob: &'static Knob, found: &Examination, lasting: &mut Lasting, skipped: &mut Vec<Skipped>) {
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
        Mechanism::Threads(ThreadFamily::Kernel) | Mechanism::Partition if !found.ops.is_empty() => {
            let why = "for now only: after a boot, isolcpus-domain does it".into();
            skipped.push(Skipped { knob: knob.id, because: Because::ForNow, why });
        }
        Mechanism::Boot(_) if found.state == KnobState::Wrong => {
            lasting
                .boot
                .extend(found.boot.iter().filter(|p| !lasting.boot.contains(p)).copied().collect::<Vec<_>>());
        }
        _ => {}
    }
}

/// Threads of one family, by the family's name.
type Family = (String, Vec<String>);

/// One entry a reason: `2 kworker, migration/1, pinned-app (301)`.
fn joined(left: Vec<Left>) -> Vec<Left> {
    let mut out: Vec<(String, Vec<Family>)> = Vec::new();
    for one in left {
        // `kworker/1:2-events (45)` and its like are one family.
        let family: String = one.what.chars().take_while(|c| !matches!(c, '/' | '(' | ' ')).collect();
        let at = out.iter().position(|(why, _)| *why == one.why).unwrap_or_else(|| {
            out.push((one.why.clone(), Vec::new()));
            out.len() - 1
        });
        let Some((_, families)) = out.get_mut(at) else { continue };
        match families.iter_mut().find(|(f, _)| *f == family) {
            Some((_, members)) => members.push(one.what),
            None => families.push((family, vec![one.what])),
        }
    }
    out.into_iter()
        .map(|(why, families)| {
            let names: Vec<String> = families
                .into_iter()
                .map(|(family, members)| match members.as_slice() {
                    [one] => one.clone(),
                    many => format!("{} {family}", many.len()),
                })
                .collect();
            Left { what: names.join(", "), why }
        })
        .collect()
}
