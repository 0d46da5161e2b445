//! The page of a diff: its findings, and the charts of a run of each side.

use super::charts::{culprits_table, outliers_table, percentiles_table, series_table};
use super::markup::Markup;
use super::{data, frames, label, messages, policy};
use crate::chart::{self, ChartKind};
use crate::compare::{letter, report};
use crate::drawn::Drawn;
use crate::report::Links;
use jitterscope_analyze::compare::{Diff, SideSummary};

/// The page of a diff. `drawn`: a run of each side, in their order, for the charts.
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
    body.raw(
        "</header>
<main>
<section class=\"verdict\">
<h2 class=\"quiet\">Verdict</h2>
",
    );
    report(diff).html(&mut body, &Links::default());
    body.end();
    let data = timelines(&mut body, drawn);
    charts(&mut body, diff, drawn);
    body.raw("</main>\n<footer><p>jitterscope");
    if let Some(run) = drawn.last() {
        body.text(&format!(" {}", run.summary.run.tool_version));
    }
    body.raw("</p></footer>\n");
    policy::document(
        &format!("{heading} \u{2013} jitterscope"),
        &body.into_string(),
        &data,
    )
}

/// A single run by its label, which is shorter than its folder; several runs by the user's name for them.
fn name(side: &SideSummary) -> String {
    match side.runs.as_slice() {
        [one] => label(&one.label),
        _ => label(&side.name),
    }
}

/// The name with a distinguishing id.
fn with_id(side: &SideSummary) -> String {
    match side.runs.as_slice() {
        [one] => format!("{} (run {})", label(&one.label), one.id),
        _ => label(&side.name),
    }
}

/// A place for the timeline of each run, and its data for the script.
fn timelines(body: &mut Markup, drawn: &[&Drawn]) -> Vec<policy::Data> {
    if drawn.iter().all(|run| run.picture.stalls.is_empty()) {
        return Vec::new();
    }
    for (at, run) in drawn.iter().enumerate() {
        let name = format!("{}: {}", letter(at), label(&run.summary.run.label));
        body.raw("<div class=\"app\" data-name=\"")
            .text(&name)
            .raw("\" hidden></div>\n");
    }
    let data = drawn.iter().map(|run| policy::Data {
        rows: data::encoded(run, false),
        // Each run's own page has the frames.
        frames: frames::encoded(&[], &run.picture.culprits, 0).0,
    });
    data.collect()
}

fn charts(body: &mut Markup, diff: &Diff, drawn: &[&Drawn]) {
    if drawn.is_empty() {
        return;
    }
    body.section("percentiles", "Percentiles");
    if diff.sides.iter().any(|side| side.runs.len() > 1) {
        body.note("The charts are of one run of each side: its newest.");
    }
    if figure_of(body, ChartKind::Percentiles, drawn, drawn)
        && let Ok(curves) = chart::percentile_curves(drawn)
    {
        percentiles_table(body, curves);
    }
    body.end();
    for (id, heading, kind, table) in [
        (
            "culprits",
            "Time by culprit",
            ChartKind::Culprits,
            culprits_table as fn(&mut Markup, &Drawn),
        ),
        ("series", "Over time", ChartKind::Series, series_table),
        ("outliers", "Outliers", ChartKind::Outliers, outliers_table),
        (
            "messages",
            "Messages by time",
            ChartKind::Histograms,
            messages::table_of,
        ),
    ] {
        if kind == ChartKind::Histograms && drawn.iter().all(|run| run.summary.pipeline.is_none()) {
            continue;
        }
        body.section(id, heading).raw("<div class=\"beside\">\n");
        for (at, run) in drawn.iter().enumerate() {
            body.element("<div><h3>", &letter(at), "</h3>\n");
            if figure_of(body, kind, &[run], drawn) {
                table(body, run);
            }
            body.raw("</div>\n");
        }
        body.raw("</div>\n").end();
    }
}

/// Adds a chart; returns whether there is data.
fn figure_of(body: &mut Markup, kind: ChartKind, runs: &[&Drawn], beside: &[&Drawn]) -> bool {
    match chart::inline(kind, runs, beside) {
        Ok(svg) => {
            body.chart(None, &svg);
            true
        }
        Err(error) => {
            body.note(&error.to_string());
            false
        }
    }
}
