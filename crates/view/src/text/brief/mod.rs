//! The brief report on one screen of 80 by 24: how much was stolen, the culprits, the worst stall, the trust, and the
//! next command. The full report has everything else.

mod followed;
mod pipeline;
mod ranking;
mod trust;
mod watched;

pub(crate) use pipeline::{headline as message_headline, messages};

use super::{Page, headline, short_cpus_text, unattributed, wakeup};
use crate::cpus_because::stored_cpus_because;
use crate::number::{moment, percent, span, utc};
use crate::profile;
use crate::style::{Style, Tone, fit, tame};
use crate::words;
use jitterscope_analyze::RunSummary;
use jitterscope_model::{CpuSet, Nanos};
use ranking::Ranking;

/// What is omitted to make room for the five largest culprits.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Rows of threads or CPUs; 0 omits their table.
    rows: usize,
    /// Lines for a warning; with 0, warnings are only counted.
    warning_lines: usize,
    /// Whether blank lines are removed as necessary.
    squeezed: bool,
    /// Whether to explain the choice of CPUs and threshold, and the meaning of times.
    remarks: bool,
}

/// From the most generous to the tightest; the first in which the culprits fit is used.
const LAYOUTS: [Layout; 9] = [
    Layout {
        rows: 3,
        warning_lines: 2,
        squeezed: false,
        remarks: true,
    },
    Layout {
        rows: 3,
        warning_lines: 1,
        squeezed: false,
        remarks: true,
    },
    Layout {
        rows: 3,
        warning_lines: 1,
        squeezed: true,
        remarks: true,
    },
    Layout {
        rows: 2,
        warning_lines: 1,
        squeezed: true,
        remarks: true,
    },
    Layout {
        rows: 1,
        warning_lines: 1,
        squeezed: true,
        remarks: true,
    },
    Layout {
        rows: 0,
        warning_lines: 1,
        squeezed: true,
        remarks: true,
    },
    Layout {
        rows: 0,
        warning_lines: 1,
        squeezed: true,
        remarks: false,
    },
    Layout {
        rows: 0,
        warning_lines: 0,
        squeezed: true,
        remarks: true,
    },
    Layout {
        rows: 0,
        warning_lines: 0,
        squeezed: true,
        remarks: false,
    },
];

/// The next steps for the reader, in addition to those of every report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// The program's command line that finds this run: `jitterscope`, or that with `--runs DIR`.
    pub program: String,
    /// A command that changes something, and its gain.
    pub advice: Option<Step>,
    /// What prevents a comparison with the previous run.
    pub unlike_the_last: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The command to type.
    pub command: String,
    pub purpose: String,
}

/// The report on one screen. The five largest culprits always appear; what does not fit beside them is omitted, their
/// explanations first.
#[must_use]
pub fn brief(summary: &RunSummary, next: &Next, style: Style) -> String {
    // One line is for the prompt.
    let screen = style.lines().saturating_sub(1);
    let mut last = String::new();
    for layout in LAYOUTS {
        let (head, ranking) = head(summary, style, layout);
        let foot = foot(summary, next, style, layout);
        let taken = |text: &str| {
            text.lines()
                .filter(|line| !layout.squeezed || !line.is_empty())
                .count()
        };
        let room = screen.saturating_sub(taken(&head) + taken(&foot));
        let needed = ranking
            .as_ref()
            .map_or(0, |ranking| ranking.needed(!layout.squeezed, style));
        let given = if layout.squeezed {
            room.min(needed)
        } else {
            room
        };
        let ranking = ranking.map_or_else(String::new, |ranking| {
            ranking.text(given, !layout.squeezed, style)
        });
        last = squeezed(&format!("{head}{ranking}{foot}"), screen);
        if room >= needed && last.lines().count() <= screen {
            break;
        }
    }
    last
}

/// Removes as many blank lines as there are lines too many.
fn squeezed(text: &str, lines: usize) -> String {
    let mut over = text.lines().count().saturating_sub(lines);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if over > 0 && line.is_empty() {
            over -= 1;
            continue;
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// The measurement, and the culprits.
fn head(summary: &RunSummary, style: Style, layout: Layout) -> (String, Option<Ranking<'_>>) {
    let mut head = Page::new(style);
    head.append(profile::report(summary));
    title(&mut head, summary, layout);
    head.line("");
    let ranking = match (&summary.pipeline, summary.threads.is_empty()) {
        (Some(measured), _) => pipeline::render(&mut head, summary, measured, layout),
        (None, false) => followed::render(&mut head, summary, layout.rows),
        (None, true) if !summary.passive.is_empty() => {
            watched::render(&mut head, summary, layout.rows)
        }
        (None, true) => measured(&mut head, summary),
    };
    headline::doubts(&mut head, summary);
    (
        head.into_text(),
        ranking.filter(|_| summary.withheld().is_empty()),
    )
}

/// The trust, and the next steps.
fn foot(summary: &RunSummary, next: &Next, style: Style, layout: Layout) -> String {
    let mut foot = Page::new(style);
    foot.line("");
    trust::render(
        &mut foot,
        summary,
        next.unlike_the_last.as_deref(),
        layout.warning_lines,
    );
    what_next(&mut foot, summary, next);
    foot.into_text()
}

/// A probe's measurement, and the culprits.
fn measured<'a>(page: &mut Page, summary: &'a RunSummary) -> Option<Ranking<'a>> {
    match &summary.wakeup {
        Some(sleeper) => wakeup::headline(page, summary, sleeper),
        None => headline::stolen(page, summary, &cpus(summary)),
    }
    several(page, summary);
    match &summary.attribution {
        Some(attribution) => Some(Ranking::Culprits(summary, attribution)),
        None => {
            unattributed::reason(page, summary);
            None
        }
    }
}

/// The measured or watched CPUs.
pub(crate) fn cpus(summary: &RunSummary) -> CpuSet {
    match &summary.wakeup {
        Some(sleeper) => wakeup::measured(sleeper),
        None if !summary.passive.is_empty() => summary.passive.iter().map(|cpu| cpu.cpu).collect(),
        None => summary.probe.cpus.iter().map(|cpu| cpu.cpu).collect(),
    }
}

/// The worst stall of a thread, and its largest cause.
pub(in crate::text) fn longest(page: &mut Page, summary: &RunSummary) {
    let Some(worst) = summary.worst.first() else {
        return;
    };
    let mut text = format!(
        "The longest, {}, was that of {}, {} after the start",
        worst.duration_ns,
        tame(&worst.victim),
        moment(worst.start_offset_ns)
    );
    if let Some((who, net)) = worst.by_culprit().first() {
        text += &format!(
            ": {} {}",
            percent(net.0 as f64 / worst.duration_ns.0.max(1) as f64),
            words::kind_and_name(who)
        );
    }
    page.prose(None, 0, &(text + "."));
}

/// Of several CPUs, those that lost most and least.
fn several(page: &mut Page, summary: &RunSummary) {
    let by_loss = |a: &&jitterscope_analyze::CpuSummary, b: &&jitterscope_analyze::CpuSummary| {
        a.stolen_fraction.total_cmp(&b.stolen_fraction)
    };
    let cpus = summary
        .probe
        .cpus
        .iter()
        .filter(|cpu| cpu.measured_ns > Nanos::ZERO);
    let (Some(most), Some(least)) = (cpus.clone().max_by(by_loss), cpus.min_by(by_loss)) else {
        return;
    };
    if summary.wakeup.is_some() || most.cpu == least.cpu || most.stalls == 0 {
        return;
    }
    let text = format!(
        "CPU {} lost most, {}; CPU {} least, {}.",
        most.cpu,
        percent(most.stolen_fraction),
        least.cpu,
        percent(least.stolen_fraction)
    );
    page.prose(None, 0, &text);
}

/// The recording's kind, CPUs, duration and name; one line, or two if the CPUs were chosen automatically or the
/// recording ended early.
fn title(page: &mut Page, summary: &RunSummary, layout: Layout) {
    let run = &summary.run;
    let cpus = cpus(summary);
    let on = if cpus.is_empty() {
        String::new()
    } else {
        format!(" on {}", short_cpus_text(&cpus))
    };
    let name = format!("{}  {}", tame(&run.label), tame(&run.id));
    let rest = format!(
        "   {}{on}, {}; {} UTC",
        words::probe(&summary.probe.kind),
        span(run.duration_ns),
        utc(run.started_realtime_ns)
    );
    let rest = fit(&rest, page.style.columns().saturating_sub(name.len()));
    page.line(&format!(
        "{}{}",
        page.style.paint(Tone::Strong, &name),
        page.style.paint(Tone::Dim, &rest)
    ));
    if let Some(because) = summary
        .probe
        .cpus_chosen_because
        .as_ref()
        .filter(|_| layout.remarks)
    {
        page.prose(
            Some(Tone::Dim),
            0,
            &format!(
                "{} chosen: {}",
                short_cpus_text(&cpus),
                stored_cpus_because(because)
            ),
        );
    }
    if let Some(why) = headline::unusual(summary).filter(|_| layout.remarks) {
        page.prose(
            Some(Tone::Dim),
            0,
            &format!("stalls from {}{why}", summary.probe.threshold_ns),
        );
    }
    if let Some(moment) = &run.moment {
        page.prose(None, 0, &headline::saved(moment));
    } else if run.killed {
        page.prose(Some(Tone::Warning), 0, &headline::killed(summary));
    } else if run.interrupted {
        page.prose(Some(Tone::Warning), 0, "ended before its time");
    }
}

/// The duration of the worst stall, whether or not it has a row.
fn longest_of_all(summary: &RunSummary) -> Nanos {
    let messages = summary
        .pipeline
        .iter()
        .flat_map(|pipeline| &pipeline.consumers);
    let messages = messages.map(|consumer| consumer.from_intended.max_ns);
    messages
        .chain(summary.probe.total.max_ns)
        .max()
        .unwrap_or_default()
}

fn what_next(page: &mut Page, summary: &RunSummary, next: &Next) {
    // Commands cannot read a run that is not stored.
    if summary.run.path.is_empty() {
        return;
    }
    let id = tame(&summary.run.id);
    let program = tame(&next.program);
    let step = |arguments: String, purpose: &str| Step {
        command: format!("{program} {arguments}"),
        purpose: purpose.to_owned(),
    };
    let mut steps = Vec::new();
    if let Some(worst) = summary.worst.iter().find(|stall| !stall.parts.is_empty()) {
        let all = longest_of_all(summary) <= worst.duration_ns;
        let what = if all {
            "the worst, moment by moment"
        } else {
            "the longest that was kept"
        };
        steps.push(step(format!("report {id} --stall {}", worst.stall.0), what));
    }
    steps.extend(next.advice.clone());
    steps.push(step(
        format!("report {id} --full"),
        "everything that was measured",
    ));
    let commands: Vec<String> = steps.iter().map(|step| tame(&step.command)).collect();
    let widest = commands.iter().map(String::len).max().unwrap_or(0);
    for (at, (command, step)) in commands.iter().zip(&steps).enumerate() {
        let lead = if at == 0 { "Next: " } else { "      " };
        let room = page.style.columns().saturating_sub(lead.len() + widest + 2);
        // A command must be copyable, so it is never cut; its purpose may be.
        let purpose = if room < 8 {
            String::new()
        } else {
            fit(&step.purpose, room)
        };
        let purpose = page.style.paint(Tone::Dim, &purpose);
        page.line(&format!("{lead}{command:<widest$}  {purpose}"));
    }
}
