//! Settings beside one another: what a diff found, and the charts of a run of each.

use super::markup::{Cell, Head, Markup};
use super::policy;
use crate::chart::{self, ChartKind};
use crate::compare::text::{length, letter, middle};
use crate::compare::words::{became, because, change, figure, figure_name, interval, unproven, verdict};
use crate::drawn::Drawn;
use crate::number::{count, percent, rate, span, utc};
use crate::words::{detail, kind_and_name};
use jitterscope_analyze::compare::{Against, Comparison, CulpritDiff, Diff, FigureRow, SideSummary, Verdict};
use jitterscope_analyze::{DifferenceClass, MachineDifference};

/// Culprits at first sight.
const FEW: usize = 20;

/// The page of a diff. `drawn`: a run of each side, in their order, whose charts are shown.
#[must_use]
pub fn render(diff: &Diff, drawn: &[&Drawn], list: Option<&'static str>) -> String {
    let mut body = Markup::default();
    body.raw("<header>\n<p class=\"brand\">");
    match list {
        Some(list) => body.raw("<a href=\"").raw(list).raw("\">jitterscope</a>"),
        None => body.raw("jitterscope"),
    };
    let mut names: Vec<String> = diff.sides.iter().map(name).collect();
    if (1..names.len()).any(|at| names[..at].contains(&names[at])) {
        names = diff.sides.iter().map(with_id).collect();
    }
    let heading = names.join(" beside ");
    body.raw("</p>\n<h1>").text(&heading).raw("</h1>\n");
    for (at, side) in diff.sides.iter().enumerate() {
        body.element("<p class=\"facts\">", &told_of(at, side), "</p>\n");
    }
    body.raw("</header>\n<main>\n");
    for against in &diff.against {
        one_against(&mut body, diff, against);
    }
    charts(&mut body, diff, drawn);
    body.raw("</main>\n<footer><p>jitterscope");
    if let Some(run) = drawn.last() {
        body.text(&format!(" {}", run.summary.run.tool_version));
    }
    body.raw("</p></footer>\n");
    policy::document(&format!("{heading} \u{2013} jitterscope"), &body.into_string(), None)
}

/// A run by its label, which is shorter than its folder; several as they were asked for.
fn name(side: &SideSummary) -> String {
    match side.runs.as_slice() {
        [one] => one.label.clone(),
        _ => side.name.clone(),
    }
}

/// With what tells it from another of the same name.
fn with_id(side: &SideSummary) -> String {
    match side.runs.as_slice() {
        [one] => format!("{} (run {})", one.label, one.id),
        _ => side.name.clone(),
    }
}

fn told_of(at: usize, side: &SideSummary) -> String {
    let runs = match side.runs.as_slice() {
        [one] => format!("run {}, {} UTC", one.id, utc(one.started_realtime_ns)),
        many => format!("{} runs", many.len()),
    };
    let cpus = if side.cpus.is_empty() { String::new() } else { format!(", CPUs {}", side.cpus) };
    let lost: u64 = side.runs.iter().map(|run| run.lost_records).sum();
    let lost = if lost > 0 {
        format!("; {} records were lost: its culprits are undercounted", count(lost))
    } else {
        String::new()
    };
    let doubt = unproven(side).map_or_else(String::new, |why| format!("; {why}"));
    format!("{}: {}, {runs}{cpus}, {}{lost}{doubt}", letter(at), name(side), span(side.measured_ns))
}

fn one_against(body: &mut Markup, diff: &Diff, against: &Against) {
    let names = [letter(0), letter(against.side)];
    body.raw("<section class=\"verdict\">\n<h2>")
        .text(&format!("{} against {}", names[1], names[0]))
        .raw("</h2>\n");
    for difference in &against.conditions {
        let told = format!(
            "{}: {} in {}, {} in {}.",
            difference.what, difference.before, names[0], difference.after, names[1]
        );
        let class = match difference.incomparable {
            true => "<p class=\"warning\"><strong>Not comparable, nothing is judged:</strong> ",
            false => "<p class=\"warning\"><strong>Measured differently:</strong> ",
        };
        body.element(class, &told, "</p>\n");
    }
    if against.machine.iter().any(|difference| difference.class == DifferenceClass::Incomparable) {
        body.raw(
            "<p class=\"warning\"><strong>Other machines:</strong> the figures do not tell what a setting did.</p>\n",
        );
    }
    let length = length(&diff.sides[0], &diff.sides[against.side]);
    for row in against.figures.iter().filter(|row| row.is_total) {
        let Some(comparison) = &row.comparison else { continue };
        let mut told = format!(
            "{}: {} in {}, {} in {}: {}",
            figure_name(row.kind).trim(),
            figure(middle(&row.first), row.unit),
            names[0],
            figure(middle(&row.second), row.unit),
            names[1],
            verdict(comparison.verdict)
        );
        match because(comparison, length) {
            Some(why) => told += &format!(" ({why})."),
            None => told.push('.'),
        }
        let class = match comparison.verdict {
            Verdict::Better => "<p class=\"lead good\">",
            Verdict::Worse => "<p class=\"lead bad\">",
            Verdict::Equivalent | Verdict::Inconclusive | Verdict::NotSeen => "<p class=\"lead\">",
        };
        body.element(class, &told, "</p>\n");
    }
    figures(body, against);
    culprits(body, against);
    machine(body, &against.machine, against.machine_unknown);
    body.end();
}

/// A verdict with a sign, so that its colour is not all.
fn signed(verdict_of: Verdict) -> String {
    let sign = match verdict_of {
        Verdict::Better => "\u{25bc} ",
        Verdict::Worse => "\u{25b2} ",
        Verdict::Equivalent => "= ",
        Verdict::Inconclusive => "? ",
        Verdict::NotSeen => "",
    };
    format!("{sign}{}", verdict(verdict_of))
}

fn figures(body: &mut Markup, against: &Against) {
    if against.figures.is_empty() {
        body.note("Runs of this probe have no figures.");
        return;
    }
    let heads = [
        Head::Text("figure"),
        Head::Number("first"),
        Head::Number("second"),
        Head::Number("change"),
        Head::Number("interval"),
        Head::Number("noise"),
        Head::Text("verdict"),
    ];
    let row = |row: &FigureRow| {
        let compared = row.comparison.as_ref();
        let by = |change_of: fn(&Comparison) -> Option<f64>| {
            compared.and_then(|c| Some(change(change_of(c)?, c.scale, row.unit))).unwrap_or_default()
        };
        vec![
            Cell::Text(figure_name(row.kind)),
            Cell::Number(figure(middle(&row.first), row.unit)),
            Cell::Number(figure(middle(&row.second), row.unit)),
            Cell::Number(by(|c| c.change)),
            Cell::Number(compared.map(|c| interval(c.interval, c.scale, row.unit)).unwrap_or_default()),
            Cell::Number(by(|c| c.noise_floor).trim_start_matches('+').to_owned()),
            Cell::Text(compared.map(|c| signed(c.verdict)).unwrap_or_default()),
        ]
    };
    body.table("Figures: less is better everywhere", &heads, against.figures.iter().map(row).collect());
    body.note(
        "Interval: where the change lies. Noise: what two samples of one setting would seem to differ by. Figures \
         without a verdict are shown only.",
    );
}

fn culprits(body: &mut Markup, against: &Against) {
    let Some(culprits) = &against.culprits else {
        body.note("Not every run recorded kernel events that hold their own proof, or they cannot be compared: nobody is named.");
        return;
    };
    let heads = [
        Head::Text("culprit"),
        Head::Number("first, a second"),
        Head::Number("second, a second"),
        Head::Number("first, stolen"),
        Head::Number("second, stolen"),
        Head::Text("became"),
        Head::Text("verdict"),
    ];
    let row = |row: &CulpritDiff| {
        let more = detail(&row.subject, 0);
        let mut name = vec![kind_and_name(&row.subject)];
        name.extend(Some(more).filter(|more| !more.is_empty()));
        if row.predicted {
            name.push("predicted by a setting that differs".into());
        }
        vec![
            Cell::Lines(name),
            Cell::Number(rate(row.events.first.unwrap_or(0.0))),
            Cell::Number(rate(row.events.second.unwrap_or(0.0))),
            Cell::Number(percent(row.stolen.first.unwrap_or(0.0))),
            Cell::Number(percent(row.stolen.second.unwrap_or(0.0))),
            Cell::Text(became(row.became).into()),
            Cell::Text(signed(row.verdict())),
        ]
    };
    let (first, rest) = culprits.split_at(culprits.len().min(FEW));
    body.table("Culprits", &heads, first.iter().map(row).collect());
    if !rest.is_empty() {
        body.details(&format!("{} more culprits", rest.len()), |body| {
            body.table("More culprits", &heads, rest.iter().map(row).collect());
        });
    }
    if !against.knobs.is_empty() {
        body.note(&format!("Settings that differ: {}.", against.knobs.join(", ")));
    }
}

fn machine(body: &mut Markup, differences: &[MachineDifference], unknown: bool) {
    if unknown {
        body.note("Not every run stored its machine: what differs there is not known in full.");
    }
    if differences.is_empty() {
        if !unknown {
            body.note("Nothing that the runs stored of their machines differs.");
        }
        return;
    }
    let heads = [Head::Text("weight"), Head::Text("what"), Head::Text("first"), Head::Text("second")];
    let row = |difference: &MachineDifference| {
        let weight = match difference.class {
            DifferenceClass::Incomparable => "not comparable",
            DifferenceClass::Matters => "matters",
            DifferenceClass::Informational => "for information",
        };
        vec![
            Cell::Text(weight.into()),
            Cell::Text(difference.what.clone()),
            Cell::Text(difference.before.clone().unwrap_or_default()),
            Cell::Text(difference.after.clone().unwrap_or_default()),
        ]
    };
    let rows = differences.iter().map(row).collect();
    body.details(&format!("What else differs: {}", count(differences.len() as u64)), |body| {
        body.table("Machines", &heads, rows);
    });
}

fn charts(body: &mut Markup, diff: &Diff, drawn: &[&Drawn]) {
    if drawn.is_empty() {
        return;
    }
    body.section("percentiles", "Percentiles");
    if diff.sides.iter().any(|side| side.runs.len() > 1) {
        body.note("The charts are of one run of each side: its newest.");
    }
    figure_of(body, ChartKind::Percentiles, drawn, drawn);
    body.end();
    for (id, heading, kind) in [
        ("culprits", "Time by culprit", ChartKind::Culprits),
        ("series", "Over time", ChartKind::Series),
        ("outliers", "Outliers", ChartKind::Outliers),
    ] {
        body.section(id, heading).raw("<div class=\"beside\">\n");
        for (at, run) in drawn.iter().enumerate() {
            body.element("<div><h3>", &letter(at), "</h3>\n");
            figure_of(body, kind, &[run], drawn);
            body.raw("</div>\n");
        }
        body.raw("</div>\n").end();
    }
}

fn figure_of(body: &mut Markup, kind: ChartKind, runs: &[&Drawn], beside: &[&Drawn]) {
    match chart::inline(kind, runs, beside) {
        Ok(svg) => {
            body.raw("<figure class=\"wide\" tabindex=\"0\">").piece(&svg).raw("</figure>\n");
        }
        Err(error) => {
            body.note(&error.to_string());
        }
    }
}
