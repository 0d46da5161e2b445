//! The audit: every knob as it stands on this machine for these CPUs, ranked.

use crate::answer::Effect;
use crate::catalogue;
use crate::examine::{Inspection, KnobState};
use crate::finding::Finding;
use crate::goal::Goal;
use crate::knob::{Group, How, Knob, Profile, Risk, Weight};
use crate::left::Left;
use crate::notice::Notice;
use crate::run_culprits::{MeasuredCulprit, RunCulprits, Win};
use crate::threads;
use crate::wanted::Wanted;
use jitterscope_model::{Nanos, SCHEMA_VERSION};
use jitterscope_platform::Machine;
use serde::Serialize;
use std::cmp::Reverse;

/// One knob of an audit.
#[derive(Clone, Debug, Serialize)]
pub struct AuditEntry {
    /// Its id.
    pub id: &'static str,
    /// Its chapter.
    pub group: Group,
    /// What it is.
    pub title: &'static str,
    /// How it stands.
    #[serde(flatten)]
    pub state: KnobState,
    /// What there is; `None` where it is not known.
    pub found: Option<Finding>,
    /// What is wanted; `None` where nothing is.
    #[serde(rename = "wants")]
    pub wanted: Option<Wanted>,
    /// What to know about it.
    pub notice: Option<Notice>,
    /// How many changes would set it right now.
    pub changes: usize,
    /// What cannot be set right. In JSON view says it in words, too.
    #[serde(skip)]
    pub left: Vec<Left>,
    /// Boot parameters that would do it from the start.
    pub boot: Vec<String>,
    /// How it can be changed.
    pub how: How,
    /// What may go wrong.
    pub risk: Risk,
    /// What it usually costs to leave it.
    pub weight: Weight,
    /// What it could win back of what was measured, where a run is given.
    pub win: Option<Win>,
    /// Profiles that include it.
    pub profiles: &'static [Profile],
    /// Whether its facts were checked.
    pub verified: bool,
}

/// A program that writes the same settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Competitor {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: i32,
    /// What it does.
    pub does: Competes,
}

/// What a program does to the same settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Competes {
    /// It rewrites interrupt affinities every ten seconds.
    MovesInterrupts,
    /// Its profile sets many of the same values, and its end puts its own back.
    SetsProfile,
    /// It switches the profile of tuned.
    SwitchesProfile,
    /// It switches same-page merging on by itself.
    SwitchesMerging,
    /// It sets governors and energy preferences.
    SetsGovernorsAndPreferences,
    /// It limits the frequency.
    LimitsFrequency,
    /// It sets governors.
    SetsGovernors,
    /// It sets governors and power saving.
    SetsGovernorsAndPower,
}

/// An audit.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// CPUs asked about and the others.
    pub goal: Goal,
    /// The run that ranked it.
    pub run: Option<String>,
    /// Every knob, most useful first.
    pub knobs: Vec<AuditEntry>,
    /// Programs that write the same settings.
    pub competitors: Vec<Competitor>,
    /// Culprits of the run that no knob answers, largest first.
    pub unanswered: Vec<String>,
}

/// Programs known to write the same settings, and what they do to them.
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

/// Programs that write the same settings and run now.
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

/// Looks at every knob; ranks them by what a run `measured`, where one is given.
#[must_use]
pub fn audit(machine: &Machine, goal: &Goal, measured: Option<&RunCulprits>) -> Audit {
    audit_of(&Inspection::new(machine, goal), measured)
}

/// The same of a machine that is inspected for more than this.
#[must_use]
pub fn audit_of(inspection: &Inspection<'_>, measured: Option<&RunCulprits>) -> Audit {
    let Inspection { machine, goal, .. } = *inspection;
    let mut knobs: Vec<AuditEntry> = catalogue::all()
        .map(|knob| entry(inspection, knob, measured))
        .collect();
    // Stable: equals stay in the order of the catalogue.
    knobs.sort_by_key(|k| {
        let state = match k.state {
            KnobState::Wrong => 0,
            KnobState::NotApplicable(_) if k.win.is_some() => 0,
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
    let unanswered = measured.map_or_else(Vec::new, |e| {
        let mut left = e.unanswered();
        left.sort_by_key(|c| Reverse(c.total_ns));
        left.into_iter().map(MeasuredCulprit::label).collect()
    });
    Audit {
        schema_version: SCHEMA_VERSION,
        goal: goal.clone(),
        run: measured.map(|e| e.run.clone()),
        knobs,
        competitors: competitors(machine),
        unanswered,
    }
}

fn entry(
    inspection: &Inspection<'_>,
    knob: &'static Knob,
    measured: Option<&RunCulprits>,
) -> AuditEntry {
    let found = inspection.examine(knob);
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
        win: measured.and_then(|e| e.win(knob)),
        profiles: knob.profiles,
        verified: knob.fact.is_verified(),
    }
}
