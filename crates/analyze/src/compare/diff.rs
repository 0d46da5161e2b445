//! Compares settings side by side.

use super::conditions::{ConditionDifference, ConditionKind};
use super::culprits::{CulpritDiff, culprit_rows};
use super::figure::{FigureKind, FigureUnit};
use super::rules::DiffRules;
use super::run::ComparedRun;
use super::side::Side;
use super::{Basis, Comparison, Design, Grain, Hypothesis, Interval, Margin, family};
use crate::gate::Unseen;
use crate::{DifferenceClass, MachineDifference, compare_machines_of_runs};
use jitterscope_model::{CpuId, CpuSet, Doubt, MachineState, Nanos, SCHEMA_VERSION, Subject};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Settings, each compared with the first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Diff {
    /// The version of this structure in JSON.
    pub schema_version: u32,
    pub sides: Vec<SideSummary>,
    /// The comparison of each further side with the first.
    pub against: Vec<Against>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SideSummary {
    /// The user's name for the side.
    pub name: String,
    /// Its runs, oldest first.
    pub runs: Vec<RunReference>,
    /// The measured CPUs.
    pub cpus: CpuSet,
    /// The time in which stalls were looked for, over all runs and CPUs.
    pub measured_ns: Nanos,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunReference {
    pub id: String,
    /// The user's name for the configuration.
    pub label: String,
    pub path: String,
    pub hostname: String,
    /// Start of the measurement, nanoseconds since the epoch.
    pub started_realtime_ns: u64,
    /// From the first clock read to the last.
    pub duration_ns: Nanos,
    /// The number of lost stalls and kernel events.
    pub lost_records: u64,
    /// Why its verdicts on culprits do not hold; empty if they do. If not empty, no culprit is named.
    pub doubts: Vec<Doubt>,
    /// The stolen share of this run with its interval, from its blocks: it says nothing about another run. Null without
    /// a spinning probe, and below ten blocks.
    pub within_run: Option<Interval>,
}

/// A setting compared with the first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Against {
    /// The index among the sides.
    pub side: usize,
    /// The differing conditions. If one makes the sides incomparable, there are no verdicts. In JSON they are words,
    /// added by `view`.
    #[serde(skip)]
    pub conditions: Vec<ConditionDifference>,
    /// The other differences between the machines. In JSON they are words, too.
    #[serde(skip)]
    pub machine: Vec<MachineDifference>,
    /// Whether the machine of either side is unknown.
    pub machine_unknown: bool,
    /// Knobs with different settings.
    pub knobs: Vec<String>,
    /// The figures, the total first.
    pub figures: Vec<FigureRow>,
    /// The stolen or lost share, or the mean lateness, of each common CPU; empty if there is only one.
    pub cpus: Vec<CpuRow>,
    /// CPUs that only one side measured.
    pub cpus_of_one: CpuSet,
    /// Culprits, predicted ones first; null if a run names none.
    pub culprits: Option<Vec<CulpritDiff>>,
    /// The blind spots of the first side's runs, and of the second's.
    #[serde(skip)]
    pub(crate) unseen: [Unseen; 2],
}

impl Against {
    /// The conditions to show. If the probe differs, only that: another probe has other pacing, thresholds and
    /// priorities anyway.
    pub fn shown_conditions(&self) -> impl Iterator<Item = &ConditionDifference> {
        let other_probe = self
            .conditions
            .iter()
            .any(|difference| difference.what == ConditionKind::Probe);
        self.conditions
            .iter()
            .filter(move |difference| !other_probe || difference.what == ConditionKind::Probe)
    }

    /// The questions fixed before any measurement: the totals and the predicted culprits, each with its title and
    /// outcome.
    #[must_use]
    pub fn primary(&self) -> Vec<(String, &Comparison)> {
        let predicted = self.culprits.iter().flatten().filter(|row| row.predicted);
        let culprits = predicted.map(|row| (row.title(), row.telling()));
        self.totals().chain(culprits).collect()
    }

    /// The row of the planned question of this title.
    #[must_use]
    pub fn planned(&self, title: &str) -> Option<PlannedRow> {
        match self.place_of_total(title) {
            Some(at) => self
                .figures
                .get(at)
                .cloned()
                .map(Box::new)
                .map(PlannedRow::Total),
            None => {
                let mut rows = self.culprits.iter().flatten();
                let row = rows.find(|row| row.predicted && row.title() == title);
                row.cloned().map(Box::new).map(PlannedRow::Culprit)
            }
        }
    }

    /// Takes over the whole row of the look that decided the planned question of this title: figures, interval,
    /// probability and verdict belong together, and the decision is final.
    pub fn settle(&mut self, title: &str, decided: PlannedRow) {
        match decided {
            PlannedRow::Total(decided) => {
                let at = self.place_of_total(title);
                if let Some(row) = at.and_then(|at| self.figures.get_mut(at)) {
                    *row = *decided;
                }
            }
            PlannedRow::Culprit(decided) => {
                let mut rows = self.culprits.iter_mut().flatten();
                let row = rows.find(|row| row.predicted && row.title() == title);
                if let Some(row) = row {
                    *row = *decided;
                }
            }
        }
    }

    /// The index among the figures of the total of this title.
    fn place_of_total(&self, title: &str) -> Option<usize> {
        let rows = self.figures.iter().enumerate();
        let totals = rows.filter(|(_, row)| row.is_total).enumerate();
        let mut titled = totals.map(|(nth, (at, row))| (at, total_title(nth, row.kind)));
        Some(titled.find(|(_, of)| of == title)?.0)
    }

    /// The totals, with title and outcome.
    pub fn totals(&self) -> impl Iterator<Item = (String, &Comparison)> {
        let rows = self.figures.iter().filter(|row| row.is_total).enumerate();
        rows.filter_map(|(at, row)| Some((total_title(at, row.kind), row.comparison.as_ref()?)))
    }
}

/// The row of a planned question, as one look found it.
#[derive(Clone, Debug)]
pub enum PlannedRow {
    Total(Box<FigureRow>),
    /// A predicted culprit.
    Culprit(Box<CulpritDiff>),
}

/// The title of a total, by its position among the totals.
pub(super) fn total_title(at: usize, kind: FigureKind) -> String {
    match kind.total_name() {
        Some(name) if at > 0 => format!("total ({name})"),
        _ => "total".to_owned(),
    }
}

/// A figure of both sides.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FigureRow {
    #[serde(flatten)]
    pub kind: FigureKind,
    pub unit: FigureUnit,
    /// Whether it is the total, which is decided on its own.
    pub is_total: bool,
    /// The figure in each run of the first side; null where it is unknown.
    pub first: Vec<Option<f64>>,
    /// The figure in each run of the second side.
    pub second: Vec<Option<f64>>,
    /// The length of a run above whose percentile ten values would lie; null if every run has them. Below that the
    /// figure is next to the maximum: it is compared from run to run, and says nothing about longer runs.
    pub supported_from_ns: Option<Nanos>,
    /// Null if the figure is only shown.
    pub comparison: Option<Comparison>,
}

/// A CPU of both sides.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CpuRow {
    pub cpu: CpuId,
    pub comparison: Comparison,
}

/// Compares each side with the first. `answers(knob, culprit)` returns whether a knob declares that it removes a
/// culprit; `more_knobs` are changed knobs that the machine states do not show.
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
    let machines = sides.map(|side| -> Vec<&MachineState> {
        let known = side.runs.iter().filter_map(|run| run.machine.as_ref());
        known.collect()
    });
    let machine = compare_machines_of_runs(&machines[0], &machines[1]);
    let mut knobs = knobs_in(&machine);
    for knob in more_knobs {
        if !knobs.contains(knob) {
            knobs.push(knob.clone());
        }
    }
    let design = rules.design.unwrap_or_else(|| as_recorded(sides));
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
        figures: figure_rows(sides, design, rules, comparable),
        cpus: if comparable && of_both.len() > 1 {
            cpu_rows(sides, &of_both, design, rules)
        } else {
            Vec::new()
        },
        cpus_of_one: a
            .difference(&b)
            .iter()
            .chain(b.difference(&a).iter())
            .collect(),
        culprits: if comparable {
            culprit_rows(sides, design, rules, &predicted)
        } else {
            None
        },
        unseen: sides.map(|side| {
            side.runs
                .iter()
                .fold(Unseen::default(), |all, run| all.or(run.unseen.clone()))
        }),
        machine_unknown: machines.iter().any(Vec::is_empty),
        conditions,
        machine,
        knobs,
    }
}

fn as_recorded(sides: [&Side; 2]) -> Design {
    let [first, second] = sides.map(|side| -> Vec<u64> {
        let started = side.runs.iter().map(|run| run.started_realtime_ns);
        started.collect()
    });
    Design::as_recorded(&first, &second)
}

/// Knobs whose values differ, or that `tune` applied on only one side.
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

/// A hypothesis about a figure, from each run's value and basis.
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
        grain,
    }
}

/// The hypothesis about a figure of every run.
pub(super) fn of_figure(sides: [&Side; 2], kind: FigureKind, margin: f64) -> Hypothesis {
    hypothesis(sides, kind.margin(margin), |run| {
        let figure = run.figures.iter().find(|figure| figure.kind == kind)?;
        Some((figure.value?, figure.basis))
    })
}

fn figure_rows(
    sides: [&Side; 2],
    design: Design,
    rules: DiffRules,
    comparable: bool,
) -> Vec<FigureRow> {
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
    // Of the reasons of sleeps, only those that some run has.
    let is_seen = |kind: &FigureKind| {
        let runs = sides.iter().flat_map(|side| &side.runs);
        let mut figures = runs.flat_map(|run| &run.figures);
        figures.any(|figure| figure.kind == *kind && figure.value.is_some_and(|value| value > 0.0))
    };
    kinds.retain(|kind| !matches!(kind, FigureKind::Blocked { .. }) || is_seen(kind));
    let of = |kind: FigureKind| of_figure(sides, kind, rules.margin);
    // The total was chosen before the data were seen; the other figures share their own alpha.
    let mut decided: BTreeMap<FigureKind, Comparison> = BTreeMap::new();
    for total in [true, false] {
        let is_asked = |k: &FigureKind| k.is_judged() && k.is_total() == total;
        let members: Vec<FigureKind> = kinds
            .iter()
            .copied()
            .filter(|k| comparable && is_asked(k))
            .collect();
        let hypotheses: Vec<Hypothesis> = members.iter().map(|kind| of(*kind)).collect();
        decided.extend(
            members
                .into_iter()
                .zip(family(design, rules.alpha, &hypotheses)),
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
            supported_from_ns: supported_from(sides, kind),
            comparison,
        }
    };
    kinds.into_iter().map(row).collect()
}

/// The length of a run that a percentile needs; `None` if every run is long enough for it.
fn supported_from(sides: [&Side; 2], kind: FigureKind) -> Option<Nanos> {
    let runs = sides.into_iter().flat_map(|side| &side.runs);
    runs.filter_map(|run| run.supports_from(kind)).max()
}

fn cpu_rows(sides: [&Side; 2], cpus: &[CpuId], design: Design, rules: DiffRules) -> Vec<CpuRow> {
    let total = sides[0].runs[0].total_kind().unwrap_or(FigureKind::Stolen);
    let margin = total.margin(rules.margin);
    let of = |cpu: &CpuId| hypothesis(sides, margin, |run| value_of(run, *cpu));
    let hypotheses: Vec<Hypothesis> = cpus.iter().map(of).collect();
    let decided = family(design, rules.alpha, &hypotheses);
    cpus.iter()
        .zip(decided)
        .map(|(cpu, comparison)| CpuRow {
            cpu: *cpu,
            comparison,
        })
        .collect()
}
