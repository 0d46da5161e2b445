//! Two runs beside one another: what a comparison found, and their charts.

use super::markup::{Cell, Head, Markup};
use super::policy;
use crate::chart::{self, ChartKind};
use crate::drawn::Drawn;
use crate::number::{span, utc};
use crate::style::tame;
use jitterscope_analyze::{DifferenceClass, MachineDifference};

/// What a comparison says of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Surely less of what is stolen.
    Better,
    /// Surely more.
    Worse,
    /// No difference that is larger than what chance makes.
    Same,
    /// The runs do not tell.
    Undecided,
}

impl Judgement {
    fn told(self) -> &'static str {
        match self {
            Judgement::Better => "\u{25bc} better",
            Judgement::Worse => "\u{25b2} worse",
            Judgement::Same => "= the same",
            Judgement::Undecided => "? undecided",
        }
    }
}

/// One figure of both runs, in words with units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Of what.
    pub what: String,
    /// In the first run, with its interval where it has one.
    pub before: String,
    /// In the second.
    pub after: String,
    /// The difference or ratio, with its interval.
    pub change: String,
    /// What is made of it.
    pub judgement: Judgement,
}

/// A culprit in both runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub culprit: String,
    /// Its time in the first run, as a rate that can be compared; empty where it had none.
    pub before: String,
    /// In the second.
    pub after: String,
    /// What is made of it.
    pub judgement: Judgement,
}

/// What was found of two runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// What it comes to, in sentences.
    pub verdict: Vec<String>,
    /// Figures with verdicts and intervals.
    pub figures: Vec<Figure>,
    /// Culprits that came, went or changed, the largest change first.
    pub culprits: Vec<Change>,
    /// How the machines differ.
    pub machine: Vec<MachineDifference>,
}

/// The page of a comparison.
#[must_use]
pub fn render(a: &Drawn, b: &Drawn, found: &Comparison, list: Option<&'static str>) -> String {
    let mut body = Markup::default();
    body.raw("<header>\n<p class=\"brand\">");
    match list {
        Some(list) => body.raw("<a href=\"").raw(list).raw("\">jitterscope</a>"),
        None => body.raw("jitterscope"),
    };
    body.raw("</p>\n<h1>")
        .text(&a.summary.run.label)
        .raw(" beside ")
        .text(&b.summary.run.label)
        .raw("</h1>\n");
    for (letter, run) in [("A", a), ("B", b)] {
        let facts = &run.summary.run;
        let told = format!(
            "{letter}: {} {} \u{b7} {} \u{b7} {} UTC \u{b7} {}",
            tame(&facts.label),
            tame(&facts.id),
            tame(&run.summary.probe.kind),
            utc(facts.started_realtime_ns),
            span(facts.duration_ns)
        );
        body.element("<p class=\"facts\">", &told, "</p>\n");
    }
    body.raw("</header>\n<main>\n<section id=\"verdict\" class=\"verdict\"><h2>Verdict</h2>\n");
    for sentence in &found.verdict {
        body.element("<p class=\"lead\">", sentence, "</p>\n");
    }
    if found.verdict.is_empty() {
        body.raw("<p class=\"lead\">The figures stand beside one another below; they were not judged.</p>\n");
    }
    body.end();
    if !found.figures.is_empty() {
        body.section("figures", "Figures");
        let heads = [
            Head::Text(""),
            Head::Number("A"),
            Head::Number("B"),
            Head::Number("change"),
            Head::Text("verdict"),
        ];
        let row = |figure: &Figure| {
            vec![
                Cell::Text(figure.what.clone()),
                Cell::Number(figure.before.clone()),
                Cell::Number(figure.after.clone()),
                Cell::Number(figure.change.clone()),
                Cell::Text(figure.judgement.told().into()),
            ]
        };
        body.table("Figures with intervals", &heads, found.figures.iter().map(row).collect());
        body.end();
    }
    if !found.culprits.is_empty() {
        body.section("culprits", "Culprits");
        let heads = [Head::Text("culprit"), Head::Number("A"), Head::Number("B"), Head::Text("verdict")];
        let row = |change: &Change| {
            vec![
                Cell::Text(change.culprit.clone()),
                Cell::Number(change.before.clone()),
                Cell::Number(change.after.clone()),
                Cell::Text(change.judgement.told().into()),
            ]
        };
        body.table("Culprits that came, went or changed", &heads, found.culprits.iter().map(row).collect());
        body.end();
    }
    body.section("percentiles", "Percentiles");
    figure(&mut body, ChartKind::Percentiles, &[a, b]);
    body.end();
    for (id, heading, kind) in [
        ("culprits-by-run", "Time by culprit", ChartKind::Culprits),
        ("series", "Over time", ChartKind::Series),
        ("outliers", "Outliers", ChartKind::Outliers),
    ] {
        body.section(id, heading).raw("<div class=\"beside\">\n");
        for run in [a, b] {
            figure(&mut body, kind, &[run]);
        }
        body.raw("</div>\n").end();
    }
    machine(&mut body, &found.machine);
    body.raw("</main>\n<footer><p>").text(&format!("jitterscope {}", b.summary.run.tool_version));
    body.raw("</p></footer>\n");
    let title = format!("{} beside {} \u{2013} jitterscope", a.summary.run.label, b.summary.run.label);
    policy::document(&title, &body.into_string(), None)
}

fn figure(body: &mut Markup, kind: ChartKind, runs: &[&Drawn]) {
    match chart::inline(kind, runs) {
        Ok(svg) => {
            body.raw("<figure class=\"wide\" tabindex=\"0\">").piece(&svg).raw("</figure>\n");
        }
        Err(error) => {
            body.note(&error.to_string());
        }
    }
}

fn machine(body: &mut Markup, differences: &[MachineDifference]) {
    body.section("machine", "What else differs");
    if differences.is_empty() {
        body.note("Nothing that the runs stored of their machines differs.").end();
        return;
    }
    let heads = [Head::Text("weight"), Head::Text("what"), Head::Text("A"), Head::Text("B")];
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
    body.table("Machines", &heads, differences.iter().map(row).collect());
    body.end();
}
