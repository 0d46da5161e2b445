//! A run as one HTML file to hand to somebody: no network, nothing beside it.
//!
//! The page is complete as it is written here: tables, and charts as images. Where the build has the bundle of
//! `web/` ([`bundle`]), it has the rows of the run in it too, and a script that makes them something to move
//! in: a timeline down to one stall's frames, filters, zoom. Whatever a thread called itself is text in it,
//! and the page's policy lets nothing run or load but what is in it.

mod bundle;
mod charts;
mod compare;
mod culprits;
mod data;
mod facts;
mod followed;
mod frames;
mod index;
mod markup;
mod messages;
mod packing;
mod policy;
mod refusal;
mod settings;
mod wakeup;
mod watched;
mod worst;

pub use bundle::is_interactive;
pub use compare::render as comparison;
pub use data::stall;
pub use frames::Frames;
pub use index::render as index;
pub use refusal::render as refusal;
pub use settings::{Gain, Setting};

use crate::drawn::Drawn;
use crate::number::{span, utc};
use crate::style::{Tone, tame};
use crate::text;
use jitterscope_analyze::RunSummary;
use jitterscope_model::StallId;
use markup::Markup;

/// Stalls of each of the largest culprits whose frames are shown.
const OF_EACH: usize = 6;
/// Culprits of which frames are shown.
const CULPRITS: usize = 24;

/// Bytes that a page is to have at most: so that it can be sent to somebody. Frames are left out beyond it, for
/// what they show can be had from the run.
pub const MOST_BYTES: usize = 1_500_000;

/// What a page of a run is made of.
pub struct Page<'p> {
    /// The run.
    pub run: &'p Drawn,
    /// Frames of some of its stalls, those first that are wanted most.
    pub frames: &'p [Frames],
    /// What the run stored of the machine's settings, with what each would win.
    pub settings: &'p [Setting],
    /// Where a list of runs is, for a page that is served.
    pub list: Option<&'static str>,
}

/// Whose frames a page should have: the longest stalls, then some of each of the largest culprits; at most so
/// many.
#[must_use]
pub fn frames_wanted(run: &Drawn, most: usize) -> Vec<StallId> {
    let mut wanted: Vec<StallId> = run.summary.worst.iter().map(|stall| stall.stall).collect();
    wanted.truncate(most);
    let mut left = [OF_EACH; CULPRITS];
    // Spread over the run: every so many of them.
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

/// A page as it is written.
pub struct Written {
    /// All of it.
    pub html: String,
    /// Of so many of the stalls that were given with frames these are in it.
    pub framed: usize,
}

/// A run's label as headings have it: anybody may have written any text into a run.
fn label(text: &str) -> String {
    crate::style::fit(text, 72)
}

/// The page of a run.
#[must_use]
pub fn render(page: &Page<'_>) -> Written {
    let summary = &page.run.summary;
    let mut body = Markup::default();
    header(&mut body, page);
    body.raw("<main>\n");
    verdict(&mut body, page.run);
    body.raw("<div id=\"app\" hidden></div>\n");
    if let Some(wakeup) = &summary.wakeup {
        wakeup::render(&mut body, summary, wakeup);
    }
    if let Some(pipeline) = &summary.pipeline {
        messages::render(&mut body, page.run, pipeline);
    }
    followed::render(&mut body, summary);
    watched::render(&mut body, summary);
    if has_stalls(page.run) {
        culprits::render(&mut body, page.run);
        charts::series(&mut body, page.run);
        charts::percentiles(&mut body, page.run);
        charts::outliers(&mut body, page.run);
        charts::offsets(&mut body, page.run);
        worst::render(&mut body, page.run);
        facts::periods(&mut body, page.run);
    } else {
        without_stalls(&mut body, page.run);
    }
    settings::render(&mut body, summary, page.settings);
    facts::trust(&mut body, summary);
    facts::machine(&mut body, page.run);
    body.raw("</main>\n");
    let served = page.list.is_some();
    let rows = if bundle::is_interactive() {
        data::encoded(page.run, served)
    } else {
        String::new()
    };
    let title = format!(
        "{} {} \u{2013} jitterscope",
        label(&summary.run.label),
        summary.run.id
    );
    let body = body.into_string();
    let write = |data: Option<&policy::Data>, is_large: bool| {
        let mut all = Markup::default();
        footer(all.piece(&body), summary, is_large);
        let write = if served {
            policy::asking
        } else {
            policy::document
        };
        write(&title, &all.into_string(), data)
    };
    if !bundle::is_interactive() {
        return Written {
            html: write(None, false),
            framed: 0,
        };
    }
    let mut data = policy::Data {
        rows,
        frames: String::new(),
    };
    let others = write(Some(&data), false).len();
    let (frames, framed) = frames::encoded(
        page.frames,
        &page.run.picture.culprits,
        MOST_BYTES.saturating_sub(others),
    );
    data.frames = frames;
    let mut html = write(Some(&data), false);
    if html.len() > MOST_BYTES {
        html = write(Some(&data), true);
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
    let mut facts = vec![
        tame(&run.id),
        crate::words::probe(&page.run.summary.probe.kind),
        format!("{} UTC", utc(run.started_realtime_ns)),
        span(run.duration_ns),
    ];
    facts.extend([&run.hostname, &run.kernel_release, &run.cpu_model].map(|text| tame(text)));
    facts.extend(
        run.hypervisor
            .as_ref()
            .map(|hypervisor| format!("guest of {}", text::headline::hypervisor(hypervisor))),
    );
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
    if bundle::is_interactive() && run.picture.stalls_read > 0 {
        sections.push(("timeline", "Timeline"));
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
        sections.push(("watched", "What belongs there"));
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

/// What it comes to, in a sentence or three.
fn verdict(body: &mut Markup, run: &Drawn) {
    let summary = &run.summary;
    let mut statements = text::verdict(summary);
    statements.extend(messages::verdict(summary));
    statements.extend(followed::verdict(summary));
    body.raw("<section id=\"verdict\" class=\"verdict\">\n<h2>Verdict</h2>\n");
    for (at, statement) in statements.iter().enumerate() {
        let class = match statement.tone {
            Some(Tone::Bad) => "<p class=\"lead bad\">",
            Some(Tone::Good) => "<p class=\"lead good\">",
            _ if at == 0 => "<p class=\"lead\">",
            _ => "<p>",
        };
        body.element(class, &statement.text, "</p>\n");
    }
    if let Some(why) = crate::text::headline::unproven(summary) {
        body.element("<p class=\"lead bad\">", &why, "</p>\n");
    } else if let Some(attribution) = &summary.attribution
        && attribution.stalls > 0
    {
        let share = crate::number::percent(attribution.explained_fraction);
        body.element(
            "<p>",
            &format!("{share} of that time is explained by what the kernel recorded."),
            "</p>\n",
        );
    }
    for warning in &summary.warnings {
        body.element(
            "<p class=\"warning\"><strong>Mind:</strong> ",
            &crate::warnings::warning(&warning.warning),
            "</p>\n",
        );
    }
    body.end();
}

/// Whether there is anything that stalls' sections have.
fn has_stalls(run: &Drawn) -> bool {
    run.picture.stalls_read > 0
        || run
            .picture
            .culprits
            .iter()
            .any(|culprit| culprit.total.0 > 0)
}

/// One sentence in place of sections that would each say that there is nothing.
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

/// `is_large`: whether it is more than a page should have.
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
    if !bundle::is_interactive() {
        body.raw(
            "<p>This page is complete, but stands still: the program that wrote it was built without its \
             interactive part. <code>cargo xtask web</code> builds that (it needs npm); then build jitterscope \
             again.</p>",
        );
    }
    body.raw("</footer>\n");
}
