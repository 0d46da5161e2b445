//! Settings side by side.

use super::conditions::{ConditionDifference, ConditionKind};
use super::culprits::{CulpritDiff, culprit_rows};
use super::figure::{FigureKind, FigureUnit};
use super::rules::DiffRules;
use super::run::ComparedRun;
use super::side::Side;
use super::{Basis, Comparison, Grain, Hypothesis, Interval, Margin, Verdict, family};
use crate::gate::Unseen;
use crate::{DifferenceClass, MachineDifference, compare_machines};
use jitterscope_model::{CpuId, CpuSet, Doubt, Nanos, SCHEMA_VERSION, Subject};
use serde::Serialize;
use std::collections::BTreeMap;

/// Settings side by side: each against the first.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// What is compared.
    pub sides: Vec<SideSummary>,
    /// Each side but the first against it.
    pub against: Vec<Against>,
}

/// One setting.
#[derive(Clone, Debug, Serialize)]
pub struct SideSummary {
    /// What the user called it.
    pub name: String,
    /// Its runs, oldest first.
    pub runs: Vec<RunReference>,
    /// CPUs measured.
    pub cpus: CpuSet,
    /// Time in which stalls were looked for, of all runs and CPUs.
    pub measured_ns: Nanos,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct RunReference {
    /// Its short id.
    pub id: String,
    /// The user's name for the configuration.
    pub label: String,
    /// Where it is stored.
    pub path: String,
    /// Host name.
    pub hostname: String,
    /// Start of the measurement, nanoseconds since the epoch.
    pub started_realtime_ns: u64,
    /// From the first clock read to the last.
    pub duration_ns: Nanos,
    /// Stalls and kernel events that were lost.
    pub lost_records: u64,
    /// What its verdicts on culprits fail by; empty where they hold. Nobody is named where they do not.
    pub doubts: Vec<Doubt>,
    /// Where the stolen share of this very run lies, from its blocks: it says nothing of another run. Null
    /// where no probe spun, and below ten blocks.
    pub within_run: Option<Interval>,
}

/// A setting against the first.
#[derive(Clone, Debug, Serialize)]
pub struct Against {
    /// Which, as its place among the sides.
    pub side: usize,
    /// How differently the two were measured. Where one of these makes them incomparable, nothing is judged. In JSON
    /// they are words, which view puts in.
    #[serde(skip)]
    pub conditions: Vec<ConditionDifference>,
    /// What else differs between their machines. In JSON these are words, too.
    #[serde(skip)]
    pub machine: Vec<MachineDifference>,
    /// Whether the machine of either is not known.
    pub machine_unknown: bool,
    /// Knobs that are set differently.
    pub knobs: Vec<String>,
    /// The figures, the total first.
    pub figures: Vec<FigureRow>,
    /// Stolen or lost share, or mean lateness, of each CPU that both have; empty where they have one.
    pub cpus: Vec<CpuRow>,
    /// CPUs that only one of them measured.
    pub cpus_of_one: CpuSet,
    /// Culprits, those that were predicted first; null where a run names nobody.
    pub culprits: Option<Vec<CulpritDiff>>,
    /// What runs of the first, and of the second, could not see.
    #[serde(skip)]
    pub(crate) unseen: [Unseen; 2],
}

impl Against {
    /// Of the conditions those that have to be shown: another probe has other pacing, thresholds and priorities, and
    /// says all of it.
    pub fn told_conditions(&self) -> impl Iterator<Item = &ConditionDifference> {
        let other_probe = self
            .conditions
            .iter()
            .any(|difference| difference.what == ConditionKind::Probe);
        self.conditions
            .iter()
            .filter(move |difference| !other_probe || difference.what == ConditionKind::Probe)
    }

    /// What was fixed to be asked before anything was measured: the totals and the culprits that were predicted, each
    /// with what it is called and how it came out.
    #[must_use]
    pub fn primary(&self) -> Vec<(String, &Comparison)> {
        let predicted = self.culprits.iter().flatten().filter(|row| row.predicted);
        let culprits = predicted.map(|row| {
            let direction = |c: &Comparison| matches!(c.verdict, Verdict::Better | Verdict::Worse);
            let of = if direction(&row.stolen) || !direction(&row.events) {
                &row.stolen
            } else {
                &row.events
            };
            (row.title(), of)
        });
        self.totals().chain(culprits).collect()
    }

    /// The totals among them.
    pub fn totals(&self) -> impl Iterator<Item = (String, &Comparison)> {
        let rows = self.figures.iter().filter(|row| row.is_total).enumerate();
        rows.filter_map(|(at, row)| Some((total_title(at, row.kind), row.comparison.as_ref()?)))
    }
}

/// What a total is called, by its place among the totals.
pub(super) fn total_title(at: usize, kind: FigureKind) -> String {
    match kind.total_name() {
        Some(name) if at > 0 => format!("total ({name})"),
        _ => "total".to_owned(),
    }
}

/// A figure of both.
#[derive(Clone, Debug, Serialize)]
pub struct FigureRow {
    /// What.
    #[serde(flatten)]
    pub kind: FigureKind,
    /// What it is counted in.
    pub unit: FigureUnit,
    /// Whether it is the total, decided by itself.
    pub is_total: bool,
    /// Of each run of the first side; null where it could not tell.
    pub first: Vec<Option<f64>>,
    /// Of each run of the second.
    pub second: Vec<Option<f64>>,
    /// Null where it is only shown.
    pub comparison: Option<Comparison>,
}

/// A CPU of both.
#[derive(Clone, Debug, Serialize)]
pub struct CpuRow {
    /// Which.
    pub cpu: CpuId,
    /// How it fared.
    pub comparison: Comparison,
}

/// Compares each side with the first. `answers(knob, culprit)` says whether a knob declares that it removes
/// a culprit; `more_knobs` were changed beside those that the machines of the runs show.
#[must_use]
pub fn diff(
    sides: &[Side],
    rules: DiffRules,
    more_knobs: &[String],
    answers: &dyn Fn(&str, &Subject) -> bool,
) -> Diff {
    let against = match sides.split_first() {
        None => Vec::new(),
        Some((first, others)) => others
            .iter()
            .enumerate()
            .map(|(at, other)| against(at + 1, [first, other], rules, more_knobs, answers))
            .collect(),
    };
    Diff {
        schema_version: SCHEMA_VERSION,
        sides: sides.iter().map(summary).collect(),
        against,
    }
}

fn summary(side: &Side) -> SideSummary {
    let reference = |run: &ComparedRun| RunReference {
        id: run.id.clone(),
        label: run.label.clone(),
        path: run.path.clone(),
        hostname: run.hostname.clone(),
        started_realtime_ns: run.started_realtime_ns,
        duration_ns: run.duration_ns,
        lost_records: run.lost,
        doubts: run.doubts.clone(),
        within_run: run.within_run,
    };
    SideSummary {
        name: side.name.clone(),
        runs: side.runs.iter().map(reference).collect(),
        cpus: side
            .runs
            .first()
            .map(|run| run.cpus.clone())
            .unwrap_or_default(),
        measured_ns: Nanos((side.seconds() * 1e9) as u64),
    }
}

fn against(
    at: usize,
    sides: [&Side; 2],
    rules: DiffRules,
    more_knobs: &[String],
    answers: &dyn Fn(&str, &Subject) -> bool,
) -> Against {
    let [first, other] = sides.map(|side| &side.runs[0]);
    let conditions = first.conditions.differences(&other.conditions);
    let machine = match (&first.machine, &other.machine) {
        (Some(before), Some(after)) => compare_machines(before, after),
        _ => Vec::new(),
    };
    let mut knobs = knobs_in(&machine);
    for knob in more_knobs {
        if !knobs.contains(knob) {
            knobs.push(knob.clone());
        }
    }
    let comparable = !conditions.iter().any(|difference| difference.incomparable);
    let predicted = |subject: &Subject| knobs.iter().any(|knob| answers(knob, subject));
    let of_both: Vec<CpuId> = first
        .of_cpus
        .iter()
        .map(|of| of.cpu)
        .filter(|cpu| value_of(other, *cpu).is_some())
        .collect();
    let all = |run: &ComparedRun| run.of_cpus.iter().map(|of| of.cpu).collect::<CpuSet>();
    let (a, b) = (all(first), all(other));
    Against {
        side: at,
        figures: figure_rows(sides, rules, comparable),
        cpus: if comparable && of_both.len() > 1 {
            cpu_rows(sides, &of_both, rules)
        } else {
            Vec::new()
        },
        cpus_of_one: a
            .difference(&b)
            .iter()
            .chain(b.difference(&a).iter())
            .collect(),
        culprits: if comparable {
            culprit_rows(sides, rules, &predicted)
        } else {
            None
        },
        unseen: sides.map(|side| {
            side.runs
                .iter()
                .fold(Unseen::default(), |all, run| all.or(run.unseen.clone()))
        }),
        machine_unknown: first.machine.is_none() || other.machine.is_none(),
        conditions,
        machine,
        knobs,
    }
}

/// Knobs whose values differ, or that `tune` applied for one and not for the other.
fn knobs_in(machine: &[MachineDifference]) -> Vec<String> {
    let mut knobs: Vec<String> = Vec::new();
    for difference in machine
        .iter()
        .filter(|d| d.class != DifferenceClass::Informational)
    {
        let set = ["tuning.settings.", "tuning.applied."];
        let Some(knob) = set
            .iter()
            .find_map(|prefix| difference.what.strip_prefix(prefix))
        else {
            continue;
        };
        if !knobs.iter().any(|known| known == knob) {
            knobs.push(knob.to_owned());
        }
    }
    knobs
}

fn value_of(run: &ComparedRun, cpu: CpuId) -> Option<(f64, Basis)> {
    run.of_cpus
        .iter()
        .find(|of| of.cpu == cpu)
        .map(|of| (of.value, of.basis))
}

/// A hypothesis of a figure that runs have, each with what it rests on.
pub(super) fn hypothesis(
    sides: [&Side; 2],
    margin: Margin,
    of: impl Fn(&ComparedRun) -> Option<(f64, Basis)>,
) -> Hypothesis {
    let found = sides.map(|side| side.runs.iter().map(&of).collect::<Vec<_>>());
    let bases = found.each_ref().map(|runs| {
        runs.iter()
            .flatten()
            .map(|(_, basis)| *basis)
            .collect::<Vec<_>>()
    });
    let [first, second] = found.map(|runs| runs.into_iter().map(|run| Some(run?.0)).collect());
    let grain = Grain::of([&bases[0], &bases[1]]);
    Hypothesis {
        first,
        second,
        margin,
        seconds: sides.map(Side::seconds),
        counts: None,
        grain,
    }
}

/// That of a figure of every run.
pub(super) fn of_figure(sides: [&Side; 2], kind: FigureKind, margin: f64) -> Hypothesis {
    hypothesis(sides, kind.margin(margin), |run| {
        let figure = run.figures.iter().find(|figure| figure.kind == kind)?;
        Some((figure.value?, figure.basis))
    })
}

fn figure_rows(sides: [&Side; 2], rules: DiffRules, comparable: bool) -> Vec<FigureRow> {
    let mut kinds: Vec<FigureKind> = Vec::new();
    for figure in sides
        .iter()
        .flat_map(|side| &side.runs)
        .flat_map(|run| &run.figures)
    {
        if !kinds.contains(&figure.kind) {
            kinds.push(figure.kind);
        }
    }
    let of = |kind: FigureKind| of_figure(sides, kind, rules.margin);
    // The total was chosen before the data were seen; the other figures share an alpha of their own.
    let mut decided: BTreeMap<FigureKind, Comparison> = BTreeMap::new();
    let figures = || {
        sides
            .iter()
            .flat_map(|side| &side.runs)
            .flat_map(|run| &run.figures)
    };
    let rests_on_few = |kind: FigureKind| {
        figures().any(|figure| figure.kind == kind && figure.basis == Basis::Few)
    };
    for total in [true, false] {
        let is_asked = |k: &FigureKind| k.is_judged() && k.is_total() == total && !rests_on_few(*k);
        let members: Vec<FigureKind> = kinds
            .iter()
            .copied()
            .filter(|k| comparable && is_asked(k))
            .collect();
        let hypotheses: Vec<Hypothesis> = members.iter().map(|kind| of(*kind)).collect();
        decided.extend(
            members
                .into_iter()
                .zip(family(rules.design, rules.alpha, &hypotheses)),
        );
    }
    let row = |kind: FigureKind| {
        let Hypothesis { first, second, .. } = of(kind);
        let comparison = decided.remove(&kind);
        FigureRow {
            kind,
            unit: kind.unit(),
            is_total: kind.is_total(),
            first,
            second,
            comparison,
        }
    };
    kinds.into_iter().map(row).collect()
}

fn cpu_rows(sides: [&Side; 2], cpus: &[CpuId], rules: DiffRules) -> Vec<CpuRow> {
    let total = sides[0].runs[0].total_kind().unwrap_or(FigureKind::Stolen);
    let margin = total.margin(rules.margin);
    let of = |cpu: &CpuId| hypothesis(sides, margin, |run| value_of(run, *cpu));
    let hypotheses: Vec<Hypothesis> = cpus.iter().map(of).collect();
    let decided = family(rules.design, rules.alpha, &hypotheses);
    cpus.iter()
        .zip(decided)
        .map(|(cpu, comparison)| CpuRow {
            cpu: *cpu,
            comparison,
        })
        .collect()
}
