//! A run as a single HTML file that needs no network and no other file.
//!
//! The page holds tables, and charts as images, which work without a script and in print. It also holds the rows of the
//! run and the script of `web/` ([`bundle`]), which draws a timeline down to the frames of a stall, with filters and
//! zoom. Names of threads are text in it, and the page's policy lets only its own content run or load.

mod bundle;
mod charts;
mod compare;
mod culprits;
mod data;
mod facts;
mod fleet;
mod followed;
mod frames;
mod index;
pub(crate) mod markup;
mod messages;
mod packing;
mod policy;
mod refusal;
mod settings;
mod wakeup;
mod watched;
mod worst;

pub use compare::render as comparison;
pub use data::stall;
pub(crate) use fleet::fleet_page;
pub use frames::Frames;
pub use index::render as index;
pub use refusal::render as refusal;
pub use settings::{Gain, Setting};

use crate::drawn::Drawn;
use crate::lines::counted;
use crate::number::utc;
use crate::report::{Links, Report};
use crate::style::tame;
use crate::text::{self, headline};
use jitterscope_analyze::RunSummary;
use jitterscope_model::StallId;
use markup::Markup;

/// The number of stalls with frames of each of the largest culprits.
const OF_EACH: usize = 6;
/// The number of culprits with frames.
const CULPRITS: usize = 24;

/// The size limit of a page, bytes, so that users can send it. Frames beyond it are left out, because the run itself
/// can show them.
pub const MOST_BYTES: usize = 1_500_000;

/// The contents of a run's page.
pub struct Page<'p> {
    pub run: &'p Drawn,
    /// The frames of some stalls, the most wanted first.
    pub frames: &'p [Frames],
    /// The run's audit of the machine, with the gain of each setting.
    pub settings: &'p [Setting],
    /// The address of the list of runs, for a served page.
    pub list: Option<&'static str>,
}

/// The stalls whose frames a page should have: the longest, then some of each of the largest culprits; at most `most`.
#[must_use]
pub fn frames_wanted(run: &Drawn, most: usize) -> Vec<StallId> {
    let mut wanted: Vec<StallId> = run.summary.worst.iter().map(|stall| stall.stall).collect();
    wanted.truncate(most);
    let mut left = [OF_EACH; CULPRITS];
    // A sample spread over the run.
    let step = (run.picture.stalls.len() / 2_000).max(1);
    let spread = (0..step).flat_map(|from| run.picture.stalls.iter().skip(from).step_by(step));
    for stall in spread {
        if wanted.len() >= most {
            break;
        }
        let culprit = stall
            .largest()
            .map(|part| run.picture.sorts[part.sort].culprit);
        if let Some(left) = culprit
            .and_then(|culprit| left.get_mut(culprit))
            .filter(|left| **left > 0)
            && !wanted.contains(&stall.id)
        {
            *left -= 1;
            wanted.push(stall.id);
        }
    }
    wanted
}

pub struct Written {
    pub html: String,
    /// The number of stalls with frames in the page.
    pub framed: usize,
}

/// A run's label for headings: it is untrusted text.
fn label(text: &str) -> String {
    crate::style::fit(text, 72)
}

/// Renders the page of a run.
#[must_use]
pub fn render(page: &Page<'_>) -> Written {
    let summary = &page.run.summary;
    let mut body = Markup::default();
    header(&mut body, page);
    body.raw("<main>\n");
    verdict(&mut body, page.run);
    body.raw("<div id=\"app\" class=\"app\" hidden></div>\n");
    warnings(&mut body, summary);
    let links = Links::of(page.run);
    if let Some(wakeup) = &summary.wakeup {
        wakeup::render(&mut body, summary, wakeup);
    }
    if let Some(pipeline) = &summary.pipeline {
        messages::render(&mut body, page.run, pipeline);
    }
    followed::render(&mut body, summary);
    watched::render(&mut body, summary);
    facts::marks(&mut body, page.run, &links);
    if has_stalls(page.run) {
        culprits::render(&mut body, page.run, &links);
        charts::series(&mut body, page.run);
        charts::percentiles(&mut body, page.run);
        charts::outliers(&mut body, page.run);
        charts::offsets(&mut body, page.run);
        worst::render(&mut body, page.run, &links);
        facts::periods(&mut body, page.run, &links);
    } else {
        without_stalls(&mut body, page.run);
    }
    settings::render(&mut body, summary, page.settings);
    facts::trust(&mut body, summary);
    facts::machine(&mut body, page.run);
    body.raw("</main>\n");
    let served = page.list.is_some();
    let rows = data::encoded(page.run, served);
    let title = format!(
        "{} {} \u{2013} jitterscope",
        label(&summary.run.label),
        summary.run.id
    );
    let body = body.into_string();
    let write = |data: &[policy::Data], is_large: bool| {
        let mut all = Markup::default();
        footer(all.piece(&body), summary, is_large);
        let write = if served {
            policy::asking
        } else {
            policy::document
        };
        write(&title, &all.into_string(), data)
    };
    let mut data = [policy::Data {
        rows,
        frames: String::new(),
    }];
    let others = write(&data, false).len();
    let (frames, framed) = frames::encoded(
        page.frames,
        &page.run.picture.culprits,
        MOST_BYTES.saturating_sub(others),
    );
    data[0].frames = frames;
    let mut html = write(&data, false);
    if html.len() > MOST_BYTES {
        html = write(&data, true);
    }
    Written { html, framed }
}

fn header(body: &mut Markup, page: &Page<'_>) {
    let run = &page.run.summary.run;
    body.raw(
        "<a class=\"skip\" href=\"#verdict\">To the verdict</a>\n<header>\n<p class=\"brand\">",
    );
    match page.list {
        Some(list) => body.raw("<a href=\"").raw(list).raw("\">jitterscope</a>"),
        None => body.raw("jitterscope"),
    };
    body.raw("</p>\n")
        .element("<h1>", &label(&run.label), "</h1>\n");
    let summary = &page.run.summary;
    let started = format!("{} UTC", utc(run.started_realtime_ns));
    let mut facts = vec![tame(&run.id), started, tame(&run.hostname)];
    facts.extend(headline::facts(summary, &text::cpus(summary)));
    facts.retain(|fact| !fact.is_empty());
    body.raw("<p class=\"facts\">")
        .text(&facts.join(" \u{b7} "))
        .raw("</p>\n");
    body.raw("<nav aria-label=\"Sections\">");
    for (to, name) in sections(page.run) {
        body.raw("<a href=\"#")
            .raw(to)
            .raw("\">")
            .raw(name)
            .raw("</a> ");
    }
    body.raw("</nav>\n</header>\n");
}

fn sections(run: &Drawn) -> Vec<(&'static str, &'static str)> {
    let summary = &run.summary;
    let mut sections = vec![("verdict", "Verdict")];
    if run.picture.stalls_read > 0 {
        sections.push(("timeline", "Timeline"));
    }
    if !summary.warnings.is_empty() {
        sections.push(("warnings", "Warnings"));
    }
    if summary.wakeup.is_some() {
        sections.push(("lateness", "Lateness"));
    }
    if summary.pipeline.is_some() {
        sections.push(("messages", "Messages"));
    }
    if !summary.threads.is_empty() {
        sections.push(("threads", "Threads"));
    }
    if !summary.passive.is_empty() {
        sections.push(("watched", "Owners"));
    }
    if summary.marks.is_some() {
        sections.push(("marks", "Marks"));
    }
    if has_stalls(run) {
        sections.extend([
            ("culprits", "Culprits"),
            ("series", "Over time"),
            ("percentiles", "Percentiles"),
            ("outliers", "Outliers"),
            ("offsets", "Offsets"),
            ("worst", "Worst"),
            ("periods", "Periods"),
        ]);
    } else {
        sections.push(("stalls", crate::chart::words::noun(run).heading));
        if run.picture.curves.iter().any(|curve| curve.count > 0) {
            sections.push(("percentiles", "Percentiles"));
        }
    }
    sections.extend([
        ("settings", "Settings"),
        ("trust", "Trust"),
        ("machine", "Machine"),
    ]);
    sections
}

/// The result, in up to three sentences.
fn verdict(body: &mut Markup, run: &Drawn) {
    let summary = &run.summary;
    body.raw("<section id=\"verdict\" class=\"verdict\">\n<h2 class=\"quiet\">Verdict</h2>\n");
    text::verdict(summary).html(body, &Links::default());
    if let Some(why) = headline::unproven(summary) {
        body.element("<p class=\"lead bad\">", &why, "</p>\n");
    } else if let Some(attribution) = &summary.attribution
        && attribution.stalls > 0
    {
        let share = crate::number::percent(attribution.explained_fraction);
        body.raw("<p>").text(&format!(
            "{share} of that time is explained by what the kernel recorded."
        ));
        limits(body, summary.warnings.len());
        body.raw("</p>\n");
    } else if !summary.warnings.is_empty() {
        body.raw("<p>");
        limits(body, summary.warnings.len());
        body.raw("</p>\n");
    }
    body.end();
}

/// A reference to the limits of a run.
fn limits(body: &mut Markup, warnings: usize) {
    if warnings > 0 {
        let text = counted(warnings, "warning");
        body.raw(" <a class=\"limits\" href=\"#warnings\">")
            .text(&text)
            .raw("</a>");
    }
}

/// What the reader must know. It stands below the timeline, because most readers come for that.
fn warnings(body: &mut Markup, summary: &RunSummary) {
    if summary.warnings.is_empty() {
        return;
    }
    body.section("warnings", "Warnings");
    let mut report = Report::default();
    report.warnings(crate::warnings::texts(summary));
    report.html(body, &Links::default());
    body.end();
}

/// Whether the run has data for the stalls' sections.
fn has_stalls(run: &Drawn) -> bool {
    run.picture.stalls_read > 0
        || run
            .picture
            .culprits
            .iter()
            .any(|culprit| culprit.total.0 > 0)
}

/// One sentence instead of several empty sections.
fn without_stalls(body: &mut Markup, run: &Drawn) {
    let threshold = run.summary.probe.threshold_ns;
    let noun = crate::chart::words::noun(run);
    body.section("stalls", noun.heading);
    body.note(&format!(
        "None was recorded: nothing took {threshold} or longer. There is no culprit, outlier, offset or period to \
         show."
    ));
    body.end();
    if run.picture.curves.iter().any(|curve| curve.count > 0) {
        charts::percentiles(body, run);
    }
}

/// `is_large`: whether the page exceeds its size limit.
fn footer(body: &mut Markup, summary: &RunSummary, is_large: bool) {
    body.raw("<footer><p>")
        .text(&format!("jitterscope {}", summary.run.tool_version));
    if !summary.run.path.is_empty() {
        body.raw(" \u{b7} ").text(&summary.run.path);
    }
    body.raw("</p>");
    if is_large {
        body.raw(
            "<p>This page is larger than 1.5 MB, for the parts of its stalls alone take as much: frames of \
             the longest few only are in it. Some mail servers refuse so much. A higher threshold records fewer stalls.</p>",
        );
    }
    body.raw("</footer>\n");
}
