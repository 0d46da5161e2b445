//! Settings side by side.

use super::conditions::ConditionDifference;
use super::figure::{FigureKind, FigureUnit};
use super::poisson::{Count, dispersion};
use super::run::{ComparedRun, CulpritFigures};
use super::side::Side;
use super::{Comparison, Design, Hypothesis, Interval, Margin, SingleCounts, Verdict, family};
use crate::gate::Unseen;
use crate::{DifferenceClass, MachineDifference, compare_machines};
use jitterscope_model::{CpuId, CpuSet, CulpritKey, Doubt, KeyLevel, Nanos, SCHEMA_VERSION, Subject};
use serde::Serialize;
use std::collections::BTreeMap;

/// The alpha of each family.
pub const ALPHA: f64 = 0.05;

/// What is fixed before the data are seen.
#[derive(Clone, Copy, Debug)]
pub struct DiffRules {
    /// How the runs belong together.
    pub design: Design,
    /// The alpha of each family.
    pub alpha: f64,
    /// The share of a figure that counts as no difference.
    pub margin: f64,
}

impl Default for DiffRules {
    fn default() -> DiffRules {
        DiffRules { design: Design::Unpaired, alpha: ALPHA, margin: Margin::RELATIVE }
    }
}

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
    /// How differently the two were measured. Where one of these makes them incomparable, nothing is judged.
    pub conditions: Vec<ConditionDifference>,
    /// What else differs between their machines.
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

/// What became of a culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Became {
    /// Only the second has it.
    Appeared,
    /// More of it in the second.
    Grew,
    /// Less of it in the second.
    Shrank,
    /// Only the first has it.
    Vanished,
    /// As much, within the margin.
    Stayed,
    /// Neither has it, and it was predicted.
    NotSeen,
}

/// A culprit of both.
#[derive(Clone, Debug, Serialize)]
pub struct CulpritDiff {
    /// What.
    #[serde(flatten)]
    pub subject: Subject,
    /// Whether the changed knobs answer it: decided in a family of its own.
    pub predicted: bool,
    /// What became of it, by its stolen time, whatever the verdict.
    pub became: Became,
    /// Its events a second.
    pub events: Comparison,
    /// The share of the time that it stole.
    pub stolen: Comparison,
}

impl CulpritDiff {
    /// The verdict of whichever figure says more: a direction, if either has one.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let direction = |c: &Comparison| matches!(c.verdict, Verdict::Better | Verdict::Worse);
        if direction(&self.stolen) || !direction(&self.events) {
            self.stolen.verdict
        } else {
            self.events.verdict
        }
    }
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
    Diff { schema_version: SCHEMA_VERSION, sides: sides.iter().map(summary).collect(), against }
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
        cpus: side.runs.first().map(|run| run.cpus.clone()).unwrap_or_default(),
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
    let of_both: Vec<CpuId> =
        first.of_cpus.iter().map(|(cpu, _)| *cpu).filter(|cpu| value_of(other, *cpu).is_some()).collect();
    let all = |run: &ComparedRun| run.of_cpus.iter().map(|(cpu, _)| *cpu).collect::<CpuSet>();
    let (a, b) = (all(first), all(other));
    Against {
        side: at,
        figures: figure_rows(sides, rules, comparable),
        cpus: if comparable && of_both.len() > 1 { cpu_rows(sides, &of_both, rules) } else { Vec::new() },
        cpus_of_one: a.difference(&b).iter().chain(b.difference(&a).iter()).collect(),
        culprits: if comparable { culprit_rows(sides, rules, &predicted) } else { None },
        unseen: sides
            .map(|side| side.runs.iter().fold(Unseen::default(), |all, run| all.or(run.unseen.clone()))),
        machine_unknown: first.machine.is_none() || other.machine.is_none(),
        conditions,
        machine,
        knobs,
    }
}

/// Knobs whose values differ, or that `tune` applied for one and not for the other.
fn knobs_in(machine: &[MachineDifference]) -> Vec<String> {
    let mut knobs: Vec<String> = Vec::new();
    for difference in machine.iter().filter(|d| d.class != DifferenceClass::Informational) {
        let set = ["tuning.settings.", "tuning.applied."];
        let Some(knob) = set.iter().find_map(|prefix| difference.what.strip_prefix(prefix)) else { continue };
        if !knobs.iter().any(|known| known == knob) {
            knobs.push(knob.to_owned());
        }
    }
    knobs
}

fn value_of(run: &ComparedRun, cpu: CpuId) -> Option<f64> {
    run.of_cpus.iter().find(|(of, _)| *of == cpu).map(|(_, value)| *value)
}

/// A hypothesis of a figure of every run.
fn hypothesis(sides: [&Side; 2], margin: Margin, of: impl Fn(&ComparedRun) -> Option<f64>) -> Hypothesis {
    let [first, second] = sides.map(|side| side.runs.iter().map(&of).collect::<Vec<_>>());
    Hypothesis { first, second, margin, seconds: sides.map(Side::seconds), counts: None }
}

fn figure_rows(sides: [&Side; 2], rules: DiffRules, comparable: bool) -> Vec<FigureRow> {
    let mut kinds: Vec<FigureKind> = Vec::new();
    for figure in sides.iter().flat_map(|side| &side.runs).flat_map(|run| &run.figures) {
        if !kinds.contains(&figure.kind) {
            kinds.push(figure.kind);
        }
    }
    let value = |run: &ComparedRun, kind: FigureKind| {
        run.figures.iter().find(|figure| figure.kind == kind).and_then(|figure| figure.value)
    };
    let of = |kind: FigureKind| hypothesis(sides, kind.margin(rules.margin), |run| value(run, kind));
    // The total was chosen before the data were seen; the other figures share an alpha of their own.
    let mut decided: BTreeMap<FigureKind, Comparison> = BTreeMap::new();
    for total in [true, false] {
        let members: Vec<FigureKind> =
            kinds.iter().copied().filter(|k| comparable && k.is_judged() && k.is_total() == total).collect();
        let hypotheses: Vec<Hypothesis> = members.iter().map(|kind| of(*kind)).collect();
        decided.extend(members.into_iter().zip(family(rules.design, rules.alpha, &hypotheses)));
    }
    let row = |kind: FigureKind| {
        let Hypothesis { first, second, .. } = of(kind);
        let comparison = decided.remove(&kind);
        FigureRow { kind, unit: kind.unit(), is_total: kind.is_total(), first, second, comparison }
    };
    kinds.into_iter().map(row).collect()
}

fn cpu_rows(sides: [&Side; 2], cpus: &[CpuId], rules: DiffRules) -> Vec<CpuRow> {
    let total = sides[0].runs[0].total_kind().unwrap_or(FigureKind::Stolen);
    let margin = total.margin(rules.margin);
    let of = |cpu: &CpuId| hypothesis(sides, margin, |run| value_of(run, *cpu));
    let hypotheses: Vec<Hypothesis> = cpus.iter().map(of).collect();
    let decided = family(rules.design, rules.alpha, &hypotheses);
    cpus.iter().zip(decided).map(|(cpu, comparison)| CpuRow { cpu: *cpu, comparison }).collect()
}

fn culprit_rows(
    sides: [&Side; 2],
    rules: DiffRules,
    predicted: &dyn Fn(&Subject) -> bool,
) -> Option<Vec<CulpritDiff>> {
    let mut subjects: BTreeMap<CulpritKey, Subject> = BTreeMap::new();
    // By key: what one run calls by thread id another knows by name only.
    let mut of_runs: [Vec<BTreeMap<CulpritKey, &CulpritFigures>>; 2] = [Vec::new(), Vec::new()];
    for (side, maps) in sides.iter().zip(&mut of_runs) {
        for run in &side.runs {
            let mut map = BTreeMap::new();
            for figures in run.culprits.as_ref()? {
                let Some(subject) = &figures.subject else { continue };
                let key = CulpritKey::of(subject, KeyLevel::Program);
                let known = subjects.entry(key.clone()).or_insert_with(|| subject.clone());
                known.meet(subject);
                map.insert(key, figures);
            }
            maps.push(map);
        }
    }
    let all: Vec<(CulpritKey, Subject, bool)> = subjects
        .into_iter()
        .map(|(key, subject)| {
            let predicted = predicted(&subject);
            (key, subject, predicted)
        })
        .collect();
    let margin = Margin { relative: rules.margin, absolute: 0.0 };
    let pair = |key: &CulpritKey| -> [Hypothesis; 2] {
        let of = |figure: &dyn Fn(&CulpritFigures) -> f64| {
            let [first, second] = [0, 1].map(|side: usize| {
                let runs = of_runs[side].iter().zip(&sides[side].runs);
                let one = |(map, run): (&BTreeMap<CulpritKey, &CulpritFigures>, &ComparedRun)| {
                    Some(map.get(key).map_or(0.0, |figures| figure(figures)) / run.seconds.max(1e-9))
                };
                runs.map(one).collect::<Vec<_>>()
            });
            Hypothesis { first, second, margin, seconds: sides.map(Side::seconds), counts: None }
        };
        let mut events = of(&|figures| figures.count as f64);
        events.counts = single_counts(sides, [0, 1].map(|side| of_runs[side][0].get(key).copied()));
        [events, of(&|figures| figures.total.as_secs_f64())]
    };
    let mut rows = Vec::with_capacity(all.len());
    for family_of_predicted in [true, false] {
        let members: Vec<&(CulpritKey, Subject, bool)> =
            all.iter().filter(|(.., predicted)| *predicted == family_of_predicted).collect();
        let hypotheses: Vec<Hypothesis> = members.iter().flat_map(|(key, ..)| pair(key)).collect();
        let mut decided = family(rules.design, rules.alpha, &hypotheses).into_iter();
        for (_, subject, predicted) in members {
            let (Some(events), Some(stolen)) = (decided.next(), decided.next()) else { break };
            let became = became(&stolen);
            rows.push(CulpritDiff {
                subject: subject.clone(),
                predicted: *predicted,
                became,
                events,
                stolen,
            });
        }
    }
    // Those that were predicted, those of which something is known, then by how much they changed.
    let weight = |row: &CulpritDiff| row.stolen.second.unwrap_or(0.0) - row.stolen.first.unwrap_or(0.0);
    let decided = |row: &CulpritDiff| matches!(row.verdict(), Verdict::Better | Verdict::Worse);
    rows.sort_by(|a, b| {
        let rank = |row: &CulpritDiff| (!row.predicted, !decided(row));
        rank(a).cmp(&rank(b)).then(weight(b).abs().total_cmp(&weight(a).abs()))
    });
    Some(rows)
}

fn single_counts(sides: [&Side; 2], figures: [Option<&CulpritFigures>; 2]) -> Option<SingleCounts> {
    if sides.iter().any(|side| side.runs.len() != 1) {
        return None;
    }
    let count = |at: usize| Count {
        events: figures[at].map_or(0, |figures| figures.count),
        seconds: sides[at].runs[0].seconds,
    };
    let spread = figures.into_iter().flatten().filter_map(|figures| dispersion(&figures.blocks));
    Some(SingleCounts { first: count(0), second: count(1), dispersion: spread.reduce(f64::max) })
}

fn became(stolen: &Comparison) -> Became {
    let (first, second) = (stolen.first.unwrap_or(0.0), stolen.second.unwrap_or(0.0));
    match (first > 0.0, second > 0.0) {
        (false, false) => Became::NotSeen,
        (false, true) => Became::Appeared,
        (true, false) => Became::Vanished,
        _ if (second - first).abs() <= stolen.margin * first => Became::Stayed,
        _ if second > first => Became::Grew,
        _ if second < first => Became::Shrank,
        _ => Became::Stayed,
    }
}
