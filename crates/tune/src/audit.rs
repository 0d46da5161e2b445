//! The audit: the state of every knob on this machine for these CPUs, ranked.

use crate::answer::Effect;
use crate::catalogue;
use crate::examine::{Inspection, KnobState};
use crate::finding::Finding;
use crate::goal::Goal;
use crate::knob::{Group, How, Knob, Profile, Risk, Weight};
use crate::left::Left;
use crate::notice::Notice;
use crate::remedy::{Remedy, remedies};
use crate::run_culprits::{RunCulprits, Win};
use crate::threads;
use crate::wanted::Wanted;
use jitterscope_model::{Nanos, PutInOrder, SCHEMA_VERSION};
use jitterscope_platform::Machine;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;

/// One knob of an audit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AuditEntry {
    pub id: &'static str,
    pub group: Group,
    pub title: &'static str,
    #[serde(flatten)]
    pub state: KnobState,
    /// The current state; `None` if it is unknown.
    pub found: Option<Finding>,
    /// The wanted state; `None` if there is none.
    #[serde(rename = "wants")]
    pub wanted: Option<Wanted>,
    /// A notice about it.
    pub notice: Option<Notice>,
    /// How many changes would correct it now.
    pub changes: usize,
    /// What cannot be corrected. In JSON, view adds the words.
    #[serde(skip)]
    pub left: Vec<Left>,
    /// Boot parameters that would set it from the start.
    pub boot: Vec<String>,
    /// How it can be changed.
    pub how: How,
    pub risk: Risk,
    /// The usual cost of leaving it.
    pub weight: Weight,
    /// What it could gain, according to a run, if one is given.
    pub win: Option<Win>,
    /// Profiles that contain it.
    pub profiles: &'static [Profile],
    /// Whether its facts were checked.
    pub verified: bool,
}

/// A program that writes the same settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Competitor {
    pub name: String,
    pub pid: i32,
    pub does: Competes,
}

/// What a program does to the same settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Competes {
    /// It rewrites interrupt affinities every ten seconds.
    MovesInterrupts,
    /// Its profile sets many of the same values, and restores its own when it ends.
    SetsProfile,
    /// It switches the profile of tuned.
    SwitchesProfile,
    /// It switches same-page merging on by itself.
    SwitchesMerging,
    /// It sets governors and energy preferences.
    SetsGovernorsAndPreferences,
    LimitsFrequency,
    SetsGovernors,
    /// It sets governors and power saving.
    SetsGovernorsAndPower,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Audit {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// The audited CPUs and the others.
    #[serde(flatten)]
    pub goal: Goal,
    /// The run that ranked it.
    pub run: Option<String>,
    /// Every knob, most useful first. In JSON, view adds the words.
    #[serde(skip)]
    pub knobs: Vec<AuditEntry>,
    /// In JSON, view adds the words.
    #[serde(skip)]
    pub competitors: Vec<Competitor>,
    /// The remedy for each kind of culprit of the run, the largest first; empty without a run.
    pub remedies: Vec<Remedy>,
}

impl AuditEntry {
    /// Whether its value is wrong, or, if its value does not show that, what a run measured.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        let measured = || {
            let win = self.win.as_ref();
            win.is_some_and(|win| win.effect != Effect::Perhaps)
        };
        match &self.state {
            KnobState::Wrong => true,
            KnobState::NotApplicable(why) => why.is_for_a_recording() && measured(),
            KnobState::Fine | KnobState::Unavailable(_) | KnobState::Unreadable(_) => false,
        }
    }
}

/// Programs known to write the same settings, and their effect.
const COMPETITORS: &[(&str, Competes)] = &[
    ("irqbalance", Competes::MovesInterrupts),
    ("tuned", Competes::SetsProfile),
    ("tuned-ppd", Competes::SwitchesProfile),
    ("ksmtuned", Competes::SwitchesMerging),
    ("power-profiles-", Competes::SetsGovernorsAndPreferences),
    ("thermald", Competes::LimitsFrequency),
    ("auto-cpufreq", Competes::SetsGovernors),
    ("tlp", Competes::SetsGovernorsAndPower),
];

/// Running programs that write the same settings.
#[must_use]
pub fn competitors(machine: &Machine) -> Vec<Competitor> {
    threads::processes(machine)
        .into_iter()
        .filter_map(|(pid, name)| {
            let (_, does) = COMPETITORS.iter().find(|(known, _)| *known == name)?;
            Some(Competitor {
                name,
                pid,
                does: *does,
            })
        })
        .collect()
}

/// Examines every knob and ranks them by what a run `measured`, if one is given.
#[must_use]
pub fn audit(machine: &Machine, goal: &Goal, measured: Option<&RunCulprits>) -> Audit {
    audit_of(&Inspection::new(machine, goal), measured)
}

/// The audit from an existing inspection.
#[must_use]
pub fn audit_of(inspection: &Inspection<'_>, measured: Option<&RunCulprits>) -> Audit {
    let Inspection { machine, goal, .. } = *inspection;
    let mut knobs: Vec<AuditEntry> = catalogue::all()
        .map(|knob| entry(inspection, knob, measured))
        .collect();
    // A stable sort keeps equal entries in catalogue order.
    knobs.order_by_key(|k| {
        let state = match k.state {
            _ if k.is_wrong() => 0,
            KnobState::Wrong => 0,
            KnobState::Fine => 1,
            KnobState::Unreadable(_) => 2,
            KnobState::NotApplicable(_) => 3,
            KnobState::Unavailable(_) => 4,
        };
        let guess = k.win.as_ref().is_none_or(|w| w.effect == Effect::Perhaps);
        let total = k.win.as_ref().map_or(Nanos::ZERO, |w| w.total_ns);
        let effect = k.win.as_ref().map(|w| w.effect);
        (state, guess, Reverse(total), effect, k.weight, k.risk)
    });
    let remedies = measured.map(|measured| remedies(inspection, &knobs, measured));
    Audit {
        schema_version: SCHEMA_VERSION,
        goal: goal.clone(),
        run: measured.map(|e| e.run.clone()),
        knobs,
        competitors: competitors(machine),
        remedies: remedies.unwrap_or_default(),
    }
}

fn entry(
    inspection: &Inspection<'_>,
    knob: &'static Knob,
    measured: Option<&RunCulprits>,
) -> AuditEntry {
    let found = inspection.judge(knob);
    AuditEntry {
        id: knob.id,
        group: knob.group,
        title: knob.title,
        state: found.state,
        found: found.found,
        wanted: found.wanted,
        notice: found.notice,
        changes: found.ops.len(),
        left: found.left,
        boot: found
            .boot
            .iter()
            .map(|p| p.spelled(inspection.goal))
            .collect(),
        how: knob.how(),
        risk: knob.risk,
        weight: knob.weight,
        win: measured.and_then(|e| e.win(knob, &inspection.goal.isolated)),
        profiles: knob.profiles,
        verified: knob.fact.is_verified(),
    }
}
