//! The lateness of wake-ups: in full, by phase, and compared with an idle CPU.

use super::{FEW_CPUS, Page, short_cpus_text};
use crate::ended::ended_early;
use crate::number::{count, moment, percent, percent_cell, span, times};
use crate::report::{Cell, Column, Report, Row, Table};
use crate::style::Tone;
use crate::words;
use jitterscope_analyze::{
    FineNanos, IdleControl, Lateness, Percentiles, PhaseRow, RunSummary, WakeupCpu, WakeupSummary,
};
use jitterscope_model::{CpuSet, Nanos, Phase, PutInOrder};
use std::cmp::Reverse;

/// The number of CPUs shown of many.
const WORST_CPUS: usize = 8;
const NAMES: [&str; 5] = ["50", "90", "99", "99.9", "99.99"];

/// The settings of the measurement, for the line of facts.
pub(super) fn facts(wakeup: &WakeupSummary) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(
        wakeup
            .period_ns
            .map(|period| format!("a deadline every {period}")),
    );
    facts.extend(wakeup.hold_latency.map(|hold| {
        if hold {
            "deep idle states kept off".to_owned()
        } else {
            "idle states as the machine has them".into()
        }
    }));
    facts.extend(
        wakeup
            .idle_control
            .as_ref()
            .map(|control| format!("CPU {} the idle control", control.cpu)),
    );
    facts
}

/// The measured CPUs, without the control.
pub(super) fn measured(wakeup: &WakeupSummary) -> CpuSet {
    wakeup
        .cpus
        .iter()
        .filter(|cpu| !cpu.idle_control)
        .map(|cpu| cpu.cpu)
        .collect()
}

pub(super) fn headline(page: &mut Page, summary: &RunSummary, wakeup: &WakeupSummary) {
    let (total, cpus) = (&wakeup.total, measured(wakeup));
    let who = short_cpus_text(&cpus);
    if (summary.run.killed || summary.run.moment.is_some()) && total.late > 0 {
        let plural = if total.late == 1 { "" } else { "s" };
        let text = format!(
            "{who} had {} wake-up{plural} {} or more late in {}; how many others there were is not known.",
            count(total.late),
            summary.probe.threshold_ns,
            span(summary.run.duration_ns),
        );
        page.prose(Some(Tone::Strong), 0, &text);
        return worst(page, summary, cpus.len() > 1);
    }
    let (Some(min), Some(mean), Some(max), Some(wakeups), Some(missed)) = (
        total.min_ns,
        total.mean_ns,
        total.max_ns,
        total.wakeups,
        total.missed,
    ) else {
        page.prose(
            Some(Tone::Bad),
            0,
            &format!("Nothing was measured on {who}."),
        );
        return;
    };
    let text = format!(
        "{who} woke {} in {}, late by {mean} on average: {min} at least, {max} at most.",
        times(wakeups),
        span(summary.run.duration_ns),
    );
    page.prose(Some(Tone::Strong), 0, &text);
    let late = format!("{} or more late", summary.probe.threshold_ns);
    let share = total.late as f64 / wakeups.max(1) as f64;
    let mut text = match total.late {
        0 => format!("No wake-up was {late}"),
        n => format!(
            "{} of the wake-ups ({}) came {late}",
            count(n),
            percent(share)
        ),
    };
    text += &match missed {
        0 => "; no deadline was slept through.".to_owned(),
        1 => "; one deadline was slept through.".to_owned(),
        n => format!("; {} deadlines were slept through.", count(n)),
    };
    page.prose(
        Some(if missed > 0 { Tone::Bad } else { Tone::Strong }),
        0,
        &text,
    );
    worst(page, summary, cpus.len() > 1);
    if let Some(control) = &wakeup.idle_control {
        page.prose(None, 0, &beside(wakeup, control));
    }
}

fn worst(page: &mut Page, summary: &RunSummary, several: bool) {
    let Some(stall) = summary.worst.first() else {
        return;
    };
    let place = if several {
        format!(" on CPU {}", stall.cpu)
    } else {
        String::new()
    };
    let mut text = format!(
        "The worst, {}{place}, was {} after the start",
        stall.duration_ns,
        moment(stall.start_offset_ns)
    );
    if let Some((who, net)) = stall.by_culprit().first() {
        text += &format!(
            ": {} {} ({})",
            percent(net.0 as f64 / stall.duration_ns.0.max(1) as f64),
            words::name(who),
            words::explain(who)
        );
    }
    page.prose(None, 0, &(text + "."));
}

/// The measured CPUs compared with the idle one, in a sentence.
fn beside(wakeup: &WakeupSummary, control: &IdleControl) -> String {
    let own = wakeup
        .cpus
        .iter()
        .find(|cpu| cpu.idle_control)
        .map(|cpu| &cpu.lateness);
    let Some((own, mean)) = own.and_then(|own| Some((own, own.mean_ns?))) else {
        return format!(
            "Idle CPU {}, to compare with, measured nothing.",
            control.cpu
        );
    };
    let max = own.max_ns.unwrap_or_default();
    let mut ratios = Vec::new();
    for (what, ratio) in [
        ("on average", control.mean_ratio),
        ("at the 99th percentile", control.p99_ratio),
        ("at worst", control.max_ratio),
    ] {
        ratios.extend(ratio.map(|ratio| format!("{} {what}", times_as(ratio))));
    }
    format!(
        "Idle CPU {}, to compare with, woke late by {mean} on average, {max} at most. Against \
         that, the lateness measured is {}.",
        control.cpu,
        ratios.join(", ")
    )
}

/// `3.2 times`, `0.45 times`, `120 times`.
fn times_as(ratio: f64) -> String {
    match ratio {
        r if r < 0.995 => format!("{r:.2} times"),
        r if r < 99.5 => format!("{r:.1} times"),
        r => format!("{} times", count(r.round() as u64)),
    }
}

/// One row for each CPU, the worst first if there are many.
pub(super) fn table(page: &mut Page, summary: &RunSummary, wakeup: &WakeupSummary) {
    let all = wakeup.cpus.len();
    if all < 2 {
        return;
    }
    let few = if page.style.all_cpus { all } else { WORST_CPUS };
    page.heading(
        "CPUS",
        if all > FEW_CPUS {
            "the worst first"
        } else {
            ""
        },
    );
    page.append(cpus(summary, wakeup, few));
}

/// The CPUs; of many, short views show the `few` worst.
pub(crate) fn cpus(summary: &RunSummary, wakeup: &WakeupSummary, few: usize) -> Report {
    let mut cpus: Vec<&WakeupCpu> = wakeup.cpus.iter().collect();
    let (all, measured) = (cpus.len(), measured(wakeup).len());
    let shown = match all > FEW_CPUS {
        true => few.saturating_add(all - measured),
        false => all,
    };
    // The control first: the reader compares the others with it.
    cpus.order_by_key(|cpu| {
        let worst = (all > FEW_CPUS).then_some(Reverse(cpu.lateness.max_ns));
        (!cpu.idle_control, worst, cpu.cpu)
    });
    let row = |(at, cpu): (usize, &&WakeupCpu)| {
        let of = summary.probe.cpus.iter().find(|one| one.cpu == cpu.cpu);
        let ended = of.and_then(|of| Some((of.ended_early.as_ref()?, of.measured_ns)));
        let ended = ended.map(|(why, after)| {
            format!("ended early, after {}: {}", span(after), ended_early(why))
        });
        Row {
            aside: at >= shown,
            remarks: ended.into_iter().collect(),
            ..lateness(&name(cpu), &cpu.lateness)
        }
    };
    let mut rows: Vec<Row> = cpus.iter().enumerate().map(row).collect();
    if measured > 1 {
        rows.push(lateness("all", &wakeup.total).total());
    }
    let heads = [
        "wake-ups", "missed", "late", "min", "mean", "99", "99.9", "max",
    ];
    let mut report = Report::default();
    report.table(Table {
        title: "CPUs".into(),
        columns: [Column::text("cpu")]
            .into_iter()
            .chain(Column::numbers(heads))
            .collect(),
        rows,
        aside: "which were less late",
        ..Table::default()
    });
    if wakeup.idle_control.is_some() {
        let text = "idle: measured only to compare with, and in no sum.";
        report.indented(Some(Tone::Dim), 2, text);
    }
    report
}

fn name(cpu: &WakeupCpu) -> String {
    match cpu.idle_control {
        true => format!("idle {}", cpu.cpu),
        false => cpu.cpu.to_string(),
    }
}

fn lateness(name: &str, of: &Lateness) -> Row {
    let level = |level: &str| Cell::known(of.percentiles_ns.get(level).copied().flatten());
    Row::from([
        name.into(),
        Cell::known(of.wakeups.map(count)),
        Cell::known(of.missed.map(count)),
        count(of.late).into(),
        Cell::known(of.min_ns),
        Cell::known(of.mean_ns),
        level("99"),
        level("99.9"),
        Cell::known(of.max_ns),
    ])
}

pub(super) fn percentiles(page: &mut Page, wakeup: &WakeupSummary) {
    if wakeup.total.max_ns.is_some() {
        page.heading("LATENESS", "");
        page.append(both(wakeup));
    }
}

/// The percentiles of lateness, plain and corrected; of many CPUs, short views show the sum.
pub(crate) fn both(wakeup: &WakeupSummary) -> Report {
    let few = wakeup.cpus.len() <= FEW_CPUS;
    let mut rows = Vec::new();
    if wakeup.cpus.len() > 1 {
        rows.extend(plain_and_corrected("all", &wakeup.total));
    }
    for cpu in &wakeup.cpus {
        let of_cpu = plain_and_corrected(&name(cpu), &cpu.lateness);
        rows.extend(of_cpu.map(|row| Row {
            aside: !few && !cpu.idle_control,
            ..row
        }));
    }
    let heads = ["min", "mean"].into_iter().chain(NAMES).chain(["max"]);
    let mut report = Report::default();
    report.table(Table {
        title: "Lateness of wake-ups".into(),
        columns: [Column::text("cpu"), Column::text("counted")]
            .into_iter()
            .chain(Column::numbers(heads))
            .collect(),
        rows,
        aside: "of single CPUs",
        ..Table::default()
    });
    let text = "plain: each wake-up as it was, as cyclictest counts. corrected: deadlines that were slept \
                through count too, each late by what was left (coordinated omission), as jHiccup counts. \
                - where fewer than ten lie above.";
    report.indented(Some(Tone::Dim), 2, text);
    report
}

fn plain_and_corrected(cpu: &str, of: &Lateness) -> [Row; 2] {
    let row = |counted: &str, mean: Option<FineNanos>, percentiles: &Percentiles| {
        let mut row: Vec<Cell> = vec![
            cpu.into(),
            counted.into(),
            Cell::known(of.min_ns),
            Cell::known(mean),
        ];
        row.extend(NAMES.map(|level| Cell::known(percentiles.get(level).copied().flatten())));
        row.push(Cell::known(of.max_ns));
        Row::from(row)
    };
    [
        row("plain", of.mean_ns, &of.percentiles_ns),
        row(
            "corrected",
            of.corrected_mean_ns,
            &of.corrected_percentiles_ns,
        ),
    ]
}

pub(super) fn phases(page: &mut Page, summary: &RunSummary, wakeup: &WakeupSummary) {
    if wakeup.phases.is_empty() {
        return;
    }
    let total: Nanos = wakeup.phases.iter().map(|row| row.total_ns).sum();
    let remark = format!(
        "of {total} in wake-ups {} or more late",
        summary.probe.threshold_ns
    );
    page.heading("WHERE THE LATENESS WENT", &remark);
    page.append(where_it_went(summary, wakeup));
}

/// The phases of the lateness, and those of the idle control.
pub(crate) fn where_it_went(summary: &RunSummary, wakeup: &WakeupSummary) -> Report {
    let late = format!(
        "What wake-ups of {} or more late were spent on",
        summary.probe.threshold_ns
    );
    let mut report = Report::default();
    report.rows(phases_of(late, &wakeup.phases));
    if let Some(control) = &wakeup.idle_control {
        let title = format!("The same of idle CPU {}, to compare with", control.cpu);
        if !control.phases.is_empty() {
            report.heading(&title);
        }
        report.rows(phases_of(title, &control.phases));
    }
    report
}

fn phases_of(title: String, phases: &[PhaseRow]) -> Table {
    let row = |row: &PhaseRow| {
        let phase = Cell {
            detail: meaning(&row.phase).into(),
            ..Cell::toned(row.phase.as_str(), Tone::Strong)
        };
        Row::from([
            phase,
            percent_cell(row.share).into(),
            row.total_ns.to_string().into(),
            count(row.count).into(),
            row.min_ns.to_string().into(),
            row.mean_ns.to_string().into(),
            row.max_ns.to_string().into(),
        ])
    };
    Table {
        title,
        columns: vec![
            Column::text("phase"),
            Column::number("share"),
            Column::number("total").of_pages(),
            Column::number("wake-ups"),
            Column::number("min").of_rank(1),
            Column::number("mean"),
            Column::number("max"),
        ],
        rows: phases.iter().map(row).collect(),
        ..Table::default()
    }
}

/// The meaning of a phase.
fn meaning(phase: &Phase) -> &'static str {
    match phase {
        Phase::LateTimer => "no interrupt yet",
        Phase::IdleExit => "no interrupt yet, idle",
        Phase::Interrupt => "handlers ran",
        Phase::HigherPriority => "a more urgent thread ran",
        Phase::RunQueue => "no more urgent one seen",
        Phase::Withheld => "throttled or stopped",
        Phase::Dispatch => "woken, on its way",
        _ => "",
    }
}
