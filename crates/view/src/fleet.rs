//! What is wrong in a fleet, in words.

use crate::compare::words::{change, interval};
use crate::html::fleet_page;
use crate::number::{count, percent, span};
use crate::report::{Cell, Column, Report, Row, Table};
use crate::style::Tone;
use jitterscope_analyze::compare::{FigureUnit, Verdict};
use jitterscope_analyze::fleet::{
    Cause, FEWEST_TWINS, FleetChange, FleetFindings, NewCulprit, Varied, WorseHost,
};
use jitterscope_model::Nanos;

/// New culprits that are listed.
const MOST_NEW: usize = 20;
/// Figures of a change that are listed.
const MOST_FIGURES: usize = 6;

/// The report of a fleet. `title`: which fleet, and which days.
#[must_use]
pub fn report(title: &str, of: &FleetFindings) -> Report {
    let mut report = Report::default();
    report.name(title, "");
    report.append(findings(of));
    report
}

fn findings(of: &FleetFindings) -> Report {
    let mut report = Report::default();
    if of.hosts == 0 {
        report.sentence(Tone::Bad, "There are no rollups of these days.");
        return report;
    }
    report.sentence(
        None,
        format!(
            "{} hosts lost {} of their measured time in {} host-hours. The worst stall lasted {}.",
            count(of.hosts),
            percent(of.stolen_s / of.measured_s),
            count(of.host_hours),
            span(time(of.longest_s))
        ),
    );
    hosts(&mut report, of);
    changes(&mut report, of);
    new(&mut report, of);
    report.warnings(limits(of));
    report
}

/// The report as a page.
#[must_use]
pub fn page(title: &str, of: &FleetFindings) -> String {
    fleet_page(title, &findings(of))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates, and durations are positive"
)]
fn time(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}

fn hosts(report: &mut Report, of: &FleetFindings) {
    report.heading("Hosts that lose more than their twins");
    if of.worst.is_empty() {
        report.sentence(None, "None.");
        return;
    }
    let name = |host: &WorseHost| match &host.kind {
        None => host.host.host.clone(),
        Some(kind) => format!("{}, {kind}", host.host.host),
    };
    let row = |host: &WorseHost| {
        let times = host.share / host.twins_share;
        let mut row = Row::from([
            Cell::from(name(host)),
            percent(host.share).into(),
            percent(host.twins_share).into(),
            match times {
                times if !times.is_finite() => "".into(),
                times if times >= 100.0 => format!("{} x", count(times as u64)).into(),
                times => format!("{times:.1} x").into(),
            },
            count(host.twin_hosts).into(),
        ]);
        row.remarks = host.causes.iter().map(cause).collect();
        row
    };
    report.table(Table {
        title: "Worse hosts".into(),
        columns: vec![
            Column::text("host"),
            Column::number("lost"),
            Column::number("its twins"),
            Column::number("factor"),
            Column::number("twins"),
        ],
        rows: of.worst.iter().map(row).collect(),
        ..Table::default()
    });
}

fn cause(of: &Cause) -> String {
    format!(
        "{} {}: {}, its twins {}",
        of.kind,
        of.name,
        percent(of.share),
        percent(of.twins_share)
    )
}

fn changes(report: &mut Report, of: &FleetFindings) {
    report.heading("Kernels and tunings that make a difference");
    if of.changes.is_empty() {
        report.sentence(None, "None.");
        return;
    }
    for of in &of.changes {
        report.sentence(None, compared(of));
        let figures = of.figures.iter().take(MOST_FIGURES).map(|figure| {
            let tone = match figure.comparison.verdict {
                Verdict::Worse => Tone::Bad,
                _ => Tone::Good,
            };
            let name = match &figure.culprit {
                Some((kind, name)) => format!("{kind} {name}"),
                None => "all stolen time".into(),
            };
            let by = figure.comparison.change.unwrap_or(0.0);
            let (scale, unit) = (figure.comparison.scale, FigureUnit::Fraction);
            Row::from([
                Cell::from(name),
                figure
                    .comparison
                    .first
                    .map(percent)
                    .unwrap_or_default()
                    .into(),
                figure
                    .comparison
                    .second
                    .map(percent)
                    .unwrap_or_default()
                    .into(),
                Cell::toned(change(by, scale, unit), tone),
                interval(figure.comparison.interval, scale, unit).into(),
            ])
        });
        report.table(Table {
            title: "Changed figures".into(),
            columns: vec![
                Column::text("what"),
                Column::number("first"),
                Column::number("second"),
                Column::number("change"),
                Column::number("interval"),
            ],
            rows: figures.collect(),
            ..Table::default()
        });
    }
}

fn compared(of: &FleetChange) -> String {
    let [first, second] = of.hosts;
    let (what, names) = match of.varied {
        Varied::Kernel => ("Kernel", [&*of.second, &*of.first]),
        Varied::Tuning => ("Tuning", [short(&of.second), short(&of.first)]),
    };
    let among = match of.groups {
        1 => "hosts that are equal otherwise".to_owned(),
        groups => format!("{groups} groups of hosts that are equal otherwise"),
    };
    let [name, usual] = names;
    format!("{what} {name} ({second} hosts) against {usual} ({first} hosts), among {among}:")
}

/// The first digits of a fingerprint.
fn short(fingerprint: &str) -> &str {
    fingerprint.get(..8).unwrap_or(fingerprint)
}

fn new(report: &mut Report, of: &FleetFindings) {
    report.heading("New culprits");
    if of.new.is_empty() {
        report.sentence(None, "None.");
        return;
    }
    let row = |new: &NewCulprit| {
        let mut row = Row::from([
            Cell::from(format!("{} {}", new.kind, new.name)),
            new.first_day.as_str().into(),
            count(new.hosts).into(),
            percent(new.stolen_s / new.measured_s).into(),
        ]);
        row.remarks = new.owner.iter().cloned().collect();
        row
    };
    let mut rows: Vec<Row> = of.new.iter().map(row).collect();
    for row in rows.iter_mut().skip(MOST_NEW) {
        row.aside = true;
    }
    report.table(Table {
        title: "New culprits".into(),
        columns: vec![
            Column::text("culprit"),
            Column::text("since"),
            Column::number("hosts"),
            Column::number("of their time"),
        ],
        rows,
        ..Table::default()
    });
}

/// What the report rests on, and what it leaves out.
fn limits(of: &FleetFindings) -> Vec<String> {
    let level = of.alpha * 100.0;
    let mut limits = vec![format!(
        "Twins have equal hardware, kernel and tuning. In {} groups of twins, chance alone gives any worse host with a \
         probability of at most {level:.0} %, if distances between the logarithms of their shares are normal; the \
         same holds for all changes together, without that condition",
        count(of.groups)
    )];
    if of.without_twins > 0 {
        limits.push(format!(
            "{} hosts have fewer than {} twins and are not judged",
            count(of.without_twins),
            FEWEST_TWINS - 1
        ));
    }
    if of.short > 0 {
        limits.push(format!(
            "{} hosts were measured for less than a quarter of the usual time and are not judged",
            count(of.short)
        ));
    }
    if of.lost > 0 {
        limits.push(format!(
            "{} kernel records were lost on {} hosts: culprits may be missing there",
            count(of.lost),
            count(of.hosts_with_losses)
        ));
    }
    limits
}
