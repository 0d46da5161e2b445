//! The longest stalls, each with its parts.

use super::Page;
use crate::number::{count, moment, percent_cell, utc};
use crate::report::{Cell, Column, Link, Part, Report, Row, Table};
use crate::style::Tone;
use crate::timeline::StallKind;
use crate::words;
use jitterscope_analyze::{RunSummary, Simultaneous, WorstStall};
use jitterscope_model::{
    CpuSet, CulpritSums, KeyLevel, Nanos, Phase, ProbeKind, PutInOrder, SumRow,
};

/// The largest width of a list of CPUs beside the parts of a stall; more CPUs are counted.
const LIST: usize = 9;

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    let Some(first) = summary.worst.first() else {
        return;
    };
    let remark = match first.parts.is_empty() || !summary.withheld().is_empty() {
        true => "",
        false => "report --stall STALL shows one as a timeline",
    };
    let title = match summary.wakeup {
        Some(_) => "WORST WAKE-UPS",
        None => "WORST STALLS",
    };
    page.heading(title, remark);
    page.append(report(summary, usize::MAX));
}

/// The stalls, of which short views show `few`, and how often several CPUs stalled together.
pub(crate) fn report(summary: &RunSummary, few: usize) -> Report {
    let mut report = Report::default();
    let worst = &summary.worst;
    if worst.is_empty() {
        return report;
    }
    // Without proof no culprit is named.
    let named = summary.withheld().is_empty();
    let made_of = match named && worst.iter().any(|stall| !stall.parts.is_empty()) {
        true => "made of",
        false => "",
    };
    let messages = ProbeKind::from_word(&summary.probe.kind) == Some(ProbeKind::Pipeline);
    // On a terminal, only the readers of messages are not obvious from the rest of the report.
    let several = worst.iter().any(|stall| stall.victim != worst[0].victim);
    let victim = match messages {
        true if several => Column::text("message of"),
        true => Column::text("message of").of_pages(),
        false => Column::text("whose").of_pages(),
    };
    let rows = worst.iter().enumerate().map(|(at, stall)| Row {
        aside: at >= few,
        ..row(stall, named, messages)
    });
    report.table(Table {
        title: "The longest first".into(),
        columns: vec![
            Column::number("#"),
            Column::number("length"),
            Column::text(made_of),
            Column::number("after"),
            Column::number("UTC").of_pages(),
            Column::number("cpu"),
            victim,
            Column::number("stall"),
        ],
        rows: rows.collect(),
        aside: "which were shorter",
        ..Table::default()
    });
    let noun = StallKind::of_probe(&summary.probe.kind).noun();
    let together = summary.simultaneous.as_ref();
    if let Some(text) = together.and_then(|of| simultaneous(noun.heading, of)) {
        report.indented(None, 2, &text);
    }
    report
}

fn row(stall: &WorstStall, named: bool, messages: bool) -> Row {
    let together = stall.together.as_ref().map(|of| beside(stall, &of.cpus));
    let (cpus, detail) = together.unwrap_or_default();
    let made_of = Cell {
        detail,
        parts: match named {
            true => parts(stall, messages),
            false => Vec::new(),
        },
        ..Cell::toned(cpus, Tone::Strong)
    };
    let micros = stall.start_realtime_ns % 1_000_000_000 / 1000;
    let cells = [
        stall
            .rank
            .map_or_else(String::new, |rank| rank.to_string())
            .into(),
        stall.duration_ns.to_string().into(),
        made_of,
        Cell::from(moment(stall.start_offset_ns)).with_link(Link::Stall(stall.stall)),
        format!("{}.{micros:06}", utc(stall.start_realtime_ns)).into(),
        stall.cpu.to_string().into(),
        stall
            .victim
            .strip_prefix("js-")
            .unwrap_or(&stall.victim)
            .into(),
        stall.stall.0.to_string().into(),
    ];
    Row {
        minor: true,
        ..Row::from(cells)
    }
}

/// The other CPUs that stalled with it, and the list of all if they are only counted.
fn beside(stall: &WorstStall, cpus: &CpuSet) -> (String, String) {
    let others: CpuSet = cpus.iter().filter(|cpu| *cpu != stall.cpu).collect();
    let list = others.to_string();
    match others.len() {
        1 => (format!("with CPU {list}"), String::new()),
        _ if list.len() <= LIST => (format!("with CPUs {list}"), String::new()),
        n => (format!("with {n} CPUs"), format!("together on CPUs {cpus}")),
    }
}

/// The parts of each culprit together, as in the panel beside a page's timeline; the largest first.
fn parts(stall: &WorstStall, messages: bool) -> Vec<Part> {
    let mut sums: CulpritSums<Option<Phase>, Nanos> =
        CulpritSums::new(KeyLevel::Program, usize::MAX);
    for part in &stall.parts {
        *sums.of(part.phase.clone(), &part.culprit.subject) += part.net;
    }
    let mut parts = sums.into_rows();
    parts.order_by_key(|part| std::cmp::Reverse(part.value));
    let part = |of: SumRow<Option<Phase>, Nanos>| {
        let share = percent_cell(of.value.0 as f64 / stall.duration_ns.0.max(1) as f64);
        // Rounded down, so that only all of a stall is 100 %.
        let whole = match of.value.0.saturating_mul(100) / stall.duration_ns.0.max(1) {
            0 => "<1".to_owned(),
            percent => percent.to_string(),
        };
        let full = match &of.extra {
            Some(phase) => format!("{phase}: {}", words::kind_and_name(&of.subject)),
            None => words::kind_and_name(&of.subject),
        };
        // Time of messages is often nobody's; then the phase says what it was.
        let short = match &of.extra {
            Some(phase) if messages => words::phase_and_name(Some(phase), &of.subject),
            _ => words::name(&of.subject),
        };
        Part {
            text: format!("{share} {full}"),
            short: format!("{whole} % {short}"),
        }
    };
    parts.into_iter().map(part).collect()
}

/// How often stalls began together; `None` if they never did.
fn simultaneous(what: &str, together: &Simultaneous) -> Option<String> {
    let by_chance = match together.groups_by_chance {
        n if n < 0.1 => "fewer than 0.1".to_owned(),
        n => format!("{n:.1}"),
    };
    (together.groups > 0).then(|| {
        format!(
            "{what} began together (within {}) on several CPUs {}, on all of them {}; chance alone would give {by_chance}.",
            together.window_ns,
            times(together.groups),
            times(together.on_all_cpus),
        )
    })
}

fn times(n: u64) -> String {
    match n {
        0 => "never".into(),
        1 => "once".into(),
        n => format!("{} times", count(n)),
    }
}
