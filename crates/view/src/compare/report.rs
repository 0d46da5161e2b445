//! The report of a comparison: its sides, the totals, the figures, the culprits, the CPUs, and other differences.

use super::conditions::{both_machines, both_sides, condition};
use super::culprits::culprits;
use super::figures::{all_sides, figures};
use super::words::{change, figure, interval, moved_elsewhere, unproven, verdict};
use crate::lines::{counted, cpus_text};
use crate::number;
use crate::report::{Cell, Column, Fact, Facts, Report, Row, Table};
use crate::style::Tone;
use jitterscope_analyze::DifferenceClass;
use jitterscope_analyze::compare::{
    Against, ConditionDifference, ConditionKind, CpuRow, Diff, FigureKind, FigureUnit, SideSummary,
    Verdict,
};

/// Builds the report.
#[must_use]
pub fn report(diff: &Diff) -> Report {
    let mut report = Report::default();
    report.facts(Facts {
        shown: diff.sides.iter().enumerate().map(side).collect(),
        ..Facts::default()
    });
    for (at, side) in diff.sides.iter().enumerate() {
        doubts(&mut report, at, side);
    }
    if diff.sides.len() > 2 {
        report.heading("All sides");
        report.table(all_sides(diff));
    }
    for against in &diff.against {
        let names = [letter(0), letter(against.side)];
        report.heading(format!("{} against {}", names[1], names[0]));
        one_against(&mut report, diff, against, &names);
    }
    report
}

/// A, B, C: short names of the sides.
pub(crate) fn letter(at: usize) -> String {
    u8::try_from(at)
        .ok()
        .filter(|at| *at < 26)
        .map_or_else(|| at.to_string(), |at| char::from(b'A' + at).into())
}

fn side((at, side): (usize, &SideSummary)) -> Fact {
    let runs = match side.runs.as_slice() {
        [one] => format!("run {}, {}", one.id, number::utc(one.started_realtime_ns)),
        [first, .., last] => format!("{} runs, {} to {}", side.runs.len(), first.id, last.id),
        [] => "no run".into(),
    };
    // Several CPUs together are measured for longer than a run takes.
    let (cpus, of) = match side.cpus.is_empty() {
        true => (String::new(), ""),
        false => (format!(", {}", cpus_text(&side.cpus)), " of CPU time"),
    };
    let measured = number::span(side.measured_ns);
    Fact {
        name: letter(at),
        tone: Some(Tone::Strong),
        text: format!("{}, {runs}{cpus}, {measured}{of}", side.name),
    }
}

/// What limits the statements about a side.
fn doubts(report: &mut Report, at: usize, side: &SideSummary) {
    let letter = letter(at);
    if let ([one], Some(within)) = (side.runs.as_slice(), side.runs[0].within_run) {
        let text = format!(
            "{letter}: stolen within run {}: {} to {} at 95 %. Another run may lie elsewhere.",
            one.id,
            number::percent(within.low),
            number::percent(within.high)
        );
        report.sentence(Tone::Dim, text);
    }
    let lost: u64 = side.runs.iter().map(|run| run.lost_records).sum();
    if lost > 0 {
        let text = format!(
            "{letter}: {} records were lost: its culprits are undercounted.",
            number::count(lost)
        );
        report.sentence(Tone::Warning, text);
    }
    if let Some(why) = unproven(side) {
        report.sentence(Tone::Bad, format!("{letter}: {why}"));
    }
}

fn one_against(report: &mut Report, diff: &Diff, against: &Against, names: &[String; 2]) {
    conditions(report, against, names);
    let sides = [&diff.sides[0], &diff.sides[against.side]];
    figures(report, against, names, sides);
    culprits(report, against, names);
    cpus(report, against, names);
    machine(report, against, names);
}

fn conditions(report: &mut Report, against: &Against, [first, second]: &[String; 2]) {
    let differs = |difference: &ConditionDifference| {
        let what = condition(difference.what);
        let [before, after] = both_sides(difference);
        format!("{what}: {before} in {first}, {after} in {second}")
    };
    let (apart, other): (Vec<_>, Vec<_>) = against
        .shown_conditions()
        .partition(|difference| difference.incomparable);
    if !apart.is_empty() {
        let differences: Vec<String> = apart.iter().map(|of| differs(of)).collect();
        let fixes = apart.iter().filter_map(|of| match of.what {
            ConditionKind::Threshold => Some(" Record both with the same --threshold."),
            ConditionKind::EventGrain => Some(" Record both with the same --events."),
            _ => None,
        });
        let text = format!(
            "{}. Nothing is judged.{}",
            differences.join("; "),
            fixes.collect::<String>()
        );
        report.lead(Tone::Bad, "Not comparable", text);
    }
    for difference in other {
        let counted = match difference.what {
            ConditionKind::Threshold => "; stalls of both are counted from the longer one",
            _ => "",
        };
        let text = format!("{}{counted}.", differs(difference));
        report.lead(Tone::Warning, "Measured differently", text);
    }
    let machines: Vec<String> = against
        .machine
        .iter()
        .filter(|of| of.class == DifferenceClass::Incomparable)
        .map(|of| {
            let [before, after] = both_machines(of);
            format!("{}: {before} in {first}, {after} in {second}", of.what)
        })
        .collect();
    if !machines.is_empty() {
        let text = format!(
            "the figures do not tell what a setting did. {}.",
            machines.join("; ")
        );
        report.lead(Tone::Bad, "Other machines", text);
    }
}

fn cpus(report: &mut Report, against: &Against, names: &[String; 2]) {
    let unit = unit_of_cpus(against);
    let row = |row: &CpuRow| {
        let c = &row.comparison;
        let changed = c.change.map(|of| change(of, c.scale, unit));
        Row::from([
            row.cpu.to_string().into(),
            figure(c.first, unit).into(),
            figure(c.second, unit).into(),
            changed.unwrap_or_else(|| "-".into()).into(),
            interval(c.interval, c.scale, unit).into(),
            verdict_cell(c.verdict),
        ])
    };
    if !against.cpus.is_empty() {
        report.table(Table {
            title: "CPUs that both measured".into(),
            columns: vec![
                Column::text("CPU"),
                Column::number(&names[0]),
                Column::number(&names[1]),
                Column::number("change"),
                Column::number("interval"),
                Column::text("verdict"),
            ],
            rows: against.cpus.iter().map(row).collect(),
            ..Table::default()
        });
    }
    let decided = against.cpus.iter();
    let decided: Vec<_> = decided
        .map(|row| (row.cpu, row.comparison.verdict))
        .collect();
    if let Some(text) = moved_elsewhere(&decided) {
        report.sentence(Tone::Warning, text);
    }
    if let Some(text) = of_other_cpus(against) {
        report.sentence(Tone::Dim, text);
    }
}

fn machine(report: &mut Report, against: &Against, [first, second]: &[String; 2]) {
    report.heading("What else differs");
    if against.machine_unknown {
        let text = "A run did not store its machine: what differs there is not known in full.";
        report.sentence(Tone::Warning, text);
    }
    let (aside, shown): (Vec<_>, Vec<_>) = against
        .machine
        .iter()
        .partition(|of| of.class == DifferenceClass::Informational);
    if shown.is_empty() && !against.machine_unknown {
        report.sentence(None, "Nothing that affects stalls.");
    }
    let facts = |of: Vec<&jitterscope_analyze::MachineDifference>| {
        let fact = |of: &jitterscope_analyze::MachineDifference| {
            let [before, after] = both_machines(of);
            let tone = match of.class {
                DifferenceClass::Incomparable => Some(Tone::Bad),
                DifferenceClass::Matters => Some(Tone::Warning),
                DifferenceClass::Informational => None,
            };
            Fact {
                name: of.what.clone(),
                tone,
                text: format!("{before} in {first}, {after} in {second}"),
            }
        };
        of.into_iter().map(fact).collect()
    };
    report.facts(Facts {
        shown: facts(shown),
        aside: facts(aside),
        aside_is: [
            "difference that hardly matters (--json has it)",
            "differences that hardly matter (--json has them)",
        ],
    });
}

pub(super) fn verdict_cell(of: Verdict) -> Cell {
    Cell::toned(verdict(of), tone(of))
}

pub(super) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Better => Tone::Good,
        Verdict::Worse => Tone::Bad,
        Verdict::Equivalent | Verdict::NotSeen => Tone::Strong,
        Verdict::Inconclusive => Tone::Warning,
    }
}

/// The unit of the CPUs' figures.
fn unit_of_cpus(against: &Against) -> FigureUnit {
    let fractions = against
        .figures
        .iter()
        .any(|row| row.is_total && row.unit == FigureUnit::Fraction);
    if fractions {
        FigureUnit::Fraction
    } else {
        FigureUnit::Ns
    }
}

/// What the rows of CPUs do not show; `None` if they show everything.
fn of_other_cpus(against: &Against) -> Option<String> {
    let of_cpus = |kind| matches!(kind, FigureKind::Stolen | FigureKind::StallsOver { .. });
    if !against.cpus_of_one.is_empty() {
        let one = counted(against.cpus_of_one.len(), "CPU");
        let which = cpus_text(&against.cpus_of_one);
        return Some(format!("Only one side measured {one}: {which}."));
    }
    let probed = against.figures.iter().any(|row| of_cpus(row.kind));
    // Without a verdict there are no rows of CPUs, however many were measured.
    (against.cpus.is_empty() && probed && against.conditions.is_empty()).then(|| {
        "One CPU was measured: what moved to another CPU does not show here. Measure --cpus all to see that.".into()
    })
}
