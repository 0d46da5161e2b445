//! The page of a diff: its findings, and the charts of a run of each side.

use super::charts::{culprits_table, outliers_table, percentiles_table, series_table};
use super::markup::{Cell, Head, Markup};
use super::{data, frames, label, messages, policy};
use crate::chart::{self, ChartKind};
use crate::compare::conditions::{both_machines, both_sides, condition, machine_value};
use crate::compare::text::{length, letter, middle, of_other_cpus, unit_of_cpus};
use crate::compare::words::{
    became, change, figure, figure_name, headline, interval, moved_elsewhere, next_to_maximum,
    unproven, verdict,
};
use crate::drawn::Drawn;
use crate::lines::cpus_text;
use crate::number::{count, percent, rate, span, utc};
use crate::words::{detail, kind_and_name};
use jitterscope_analyze::compare::{
    Against, Comparison, ConditionDifference, CpuRow, CulpritDiff, Diff, FigureRow, SideSummary,
    Verdict,
};
use jitterscope_analyze::{DifferenceClass, MachineDifference};

/// The number of culprits shown at first.
const FEW: usize = 20;

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
    for (at, side) in diff.sides.iter().enumerate() {
        body.element("<p class=\"facts\">", &told_of(at, side), "</p>\n");
    }
    body.raw("</header>\n<main>\n");
    for against in &diff.against {
        one_against(&mut body, diff, against);
    }
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

fn told_of(at: usize, side: &SideSummary) -> String {
    let runs = match side.runs.as_slice() {
        [one] => format!("run {}, {} UTC", one.id, utc(one.started_realtime_ns)),
        many => format!("{} runs", many.len()),
    };
    let cpus = if side.cpus.is_empty() {
        String::new()
    } else {
        format!(", {}", cpus_text(&side.cpus))
    };
    let lost: u64 = side.runs.iter().map(|run| run.lost_records).sum();
    let lost = if lost > 0 {
        format!(
            "; {} records were lost: its culprits are undercounted",
            count(lost)
        )
    } else {
        String::new()
    };
    let doubt = unproven(side).map_or_else(String::new, |why| format!("; {why}"));
    // With several CPUs it exceeds the time of a run.
    let of = if side.cpus.is_empty() {
        ""
    } else {
        " of CPU time"
    };
    let measured = span(side.measured_ns);
    format!(
        "{}: {}, {runs}{cpus}, {measured}{of}{lost}{doubt}",
        letter(at),
        name(side)
    )
}

fn one_against(body: &mut Markup, diff: &Diff, against: &Against) {
    let names = [letter(0), letter(against.side)];
    body.raw("<section class=\"verdict\">\n<h2>")
        .text(&format!("{} against {}", names[1], names[0]))
        .raw("</h2>\n");
    let differs = |difference: &ConditionDifference| {
        let what = condition(difference.what);
        let [before, after] = both_sides(difference);
        format!("{what}: {before} in {}, {after} in {}", names[0], names[1])
    };
    let apart: Vec<String> = against
        .told_conditions()
        .filter(|difference| difference.incomparable)
        .map(differs)
        .collect();
    if !apart.is_empty() {
        let text = format!("{}.", apart.join("; "));
        body.element(
            "<p class=\"warning\"><strong>Not comparable, nothing is judged:</strong> ",
            &text,
            "</p>\n",
        );
    }
    for difference in against
        .told_conditions()
        .filter(|difference| !difference.incomparable)
    {
        let text = format!("{}.", differs(difference));
        let class = "<p class=\"warning\"><strong>Measured differently:</strong> ";
        body.element(class, &text, "</p>\n");
    }
    let other: Vec<String> = against
        .machine
        .iter()
        .filter(|difference| difference.class == DifferenceClass::Incomparable)
        .map(|of| {
            let [before, after] = both_machines(of);
            format!(
                "{}: {before} in {}, {after} in {}",
                of.what, names[0], names[1]
            )
        })
        .collect();
    if !other.is_empty() {
        let text = format!(
            "the figures do not tell what a setting did. {}.",
            other.join("; ")
        );
        body.element(
            "<p class=\"warning\"><strong>Other machines:</strong> ",
            &text,
            "</p>\n",
        );
    }
    let length = length(&diff.sides[0], &diff.sides[against.side]);
    for row in against.figures.iter().filter(|row| row.is_total) {
        let Some(comparison) = &row.comparison else {
            continue;
        };
        let sides = [&diff.sides[0], &diff.sides[against.side]];
        let Some([observed, said]) = headline(row, &names, sides, length) else {
            continue;
        };
        let class = match comparison.verdict {
            Verdict::Better => "<p class=\"lead good\">",
            Verdict::Worse => "<p class=\"lead bad\">",
            Verdict::Equivalent | Verdict::Inconclusive | Verdict::NotSeen => "<p class=\"lead\">",
        };
        body.element("<p class=\"lead\">", &observed, "</p>\n");
        body.element(class, &said, "</p>\n");
    }
    figures(body, against, &names);
    if let Some(text) = next_to_maximum(&against.figures, length) {
        body.note(&format!("Percentiles {text}."));
    }
    culprits(body, against, &names);
    cpus(body, against, &names);
    machine(body, &against.machine, against.machine_unknown);
    body.end();
}

/// A verdict with a sign, so that colour alone carries no meaning.
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

/// The side without this figure; empty if both or neither have it.
fn lacking(row: &FigureRow, names: &[String; 2]) -> String {
    let has = |values: &[Option<f64>]| values.iter().any(Option::is_some);
    match (has(&row.first), has(&row.second)) {
        (true, false) => format!("{} has no such figure", names[1]),
        (false, true) => format!("{} has no such figure", names[0]),
        _ => String::new(),
    }
}

fn figures(body: &mut Markup, against: &Against, names: &[String; 2]) {
    if against.figures.is_empty() {
        body.note("Runs of this probe have no figures.");
        return;
    }
    let heads = [
        Head::Text("figure"),
        Head::Number(&names[0]),
        Head::Number(&names[1]),
        Head::Number("change"),
        Head::Number("interval"),
        Head::Number("margin"),
        Head::Number("noise"),
        Head::Text("verdict"),
    ];
    let row = |row: &FigureRow| {
        let compared = row.comparison.as_ref();
        let by = |change_of: fn(&Comparison) -> Option<f64>| {
            compared
                .and_then(|c| Some(change(change_of(c)?, c.scale, row.unit)))
                .unwrap_or_default()
        };
        vec![
            Cell::Text(match row.supported_from_ns {
                Some(_) => format!("{} (next to the maximum)", figure_name(row.kind)),
                None => figure_name(row.kind),
            }),
            Cell::Number(figure(middle(&row.first), row.unit)),
            Cell::Number(figure(middle(&row.second), row.unit)),
            Cell::Number(by(|c| c.change)),
            Cell::Number(
                compared
                    .map(|c| interval(c.interval, c.scale, row.unit))
                    .unwrap_or_default(),
            ),
            Cell::Number(by(|c| Some(c.margin)).trim_start_matches('+').to_owned()),
            Cell::Number(by(|c| c.noise_floor).trim_start_matches('+').to_owned()),
            Cell::Text(compared.map_or_else(|| lacking(row, names), |c| signed(c.verdict))),
        ]
    };
    body.table(
        "Figures: less is better everywhere",
        &heads,
        against.figures.iter().map(row).collect(),
    );
    body.note(
        "Interval: where the change lies. Margin: what counts as no difference. Noise: what two samples of one setting would seem to differ by. Figures \
         without a verdict are shown only.",
    );
}

fn culprits(body: &mut Markup, against: &Against, names: &[String; 2]) {
    let Some(culprits) = &against.culprits else {
        body.note("No culprits are named: some run has no kernel events, its evidence fails its check, or the runs are not comparable.");
        return;
    };
    let often = names.each_ref().map(|name| format!("{name}, a second"));
    let stolen = names.each_ref().map(|name| format!("{name}, stolen"));
    let heads = [
        Head::Text("culprit"),
        Head::Number(&often[0]),
        Head::Number(&often[1]),
        Head::Number(&stolen[0]),
        Head::Number(&stolen[1]),
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
            Cell::Text(signed(row.verdict)),
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
        body.note(&format!(
            "Settings that differ: {}.",
            against.knobs.join(", ")
        ));
    }
}

/// The CPUs that both measured, and whether a gain on one is a loss on another.
fn cpus(body: &mut Markup, against: &Against, names: &[String; 2]) {
    if !against.cpus.is_empty() {
        let heads = [
            Head::Text("CPU"),
            Head::Number(&names[0]),
            Head::Number(&names[1]),
            Head::Number("change"),
            Head::Number("interval"),
            Head::Text("verdict"),
        ];
        let unit = unit_of_cpus(against);
        let row = |row: &CpuRow| {
            let c = &row.comparison;
            vec![
                Cell::Text(row.cpu.to_string()),
                Cell::Number(figure(c.first, unit)),
                Cell::Number(figure(c.second, unit)),
                Cell::Number(
                    c.change
                        .map(|of| change(of, c.scale, unit))
                        .unwrap_or_default(),
                ),
                Cell::Number(interval(c.interval, c.scale, unit)),
                Cell::Text(signed(c.verdict)),
            ]
        };
        body.table(
            "CPUs that both measured",
            &heads,
            against.cpus.iter().map(row).collect(),
        );
    }
    let decided: Vec<_> = against
        .cpus
        .iter()
        .map(|row| (row.cpu, row.comparison.verdict))
        .collect();
    if let Some(text) = moved_elsewhere(&decided) {
        body.element(
            "<p class=\"warning\">",
            text.trim_start_matches("! "),
            "</p>\n",
        );
    }
    if let Some(text) = of_other_cpus(against) {
        body.note(&text);
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
    let heads = [
        Head::Text("weight"),
        Head::Text("what"),
        Head::Text("first"),
        Head::Text("second"),
    ];
    let row = |difference: &MachineDifference| {
        let weight = match difference.class {
            DifferenceClass::Incomparable => "not comparable",
            DifferenceClass::Matters => "matters",
            DifferenceClass::Informational => "for information",
        };
        vec![
            Cell::Text(weight.into()),
            Cell::Text(difference.what.clone()),
            Cell::Text(
                difference
                    .before
                    .as_ref()
                    .map(machine_value)
                    .unwrap_or_default(),
            ),
            Cell::Text(
                difference
                    .after
                    .as_ref()
                    .map(machine_value)
                    .unwrap_or_default(),
            ),
        ]
    };
    let rows = differences.iter().map(row).collect();
    body.details(
        &format!("What else differs: {}", count(differences.len() as u64)),
        |body| {
            body.table("Machines", &heads, rows);
        },
    );
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
