//! The trust in the report: one line, and more only if there is a problem.

use crate::lines::counted;
use crate::number::{count, percent};
use crate::style::{Tone, fit_apart, shortened};
use crate::text::trust::{COVERED, SOUND};
use crate::text::{Page, price, short_cpus_text, unattributed};
use jitterscope_analyze::RunSummary;
use jitterscope_model::{CpuSet, EventGrain, Warning};

/// The number of warnings shown, each by its first sentence.
const WARNINGS: usize = 2;
/// The column of a group's name in the warning about its quota.
const GROUP_FROM: usize = 38;

/// `lines` for each warning; with 0 they are counted. What prevents a comparison with the previous run is always shown.
pub(super) fn render(
    page: &mut Page,
    summary: &RunSummary,
    unlike_the_last: Option<&str>,
    lines: usize,
) {
    let (sound, text) = line(summary);
    let tone = (!sound).then_some(Tone::Warning);
    page.prose(tone, 0, &format!("Trust: {text}."));
    if let Some(text) = unlike_the_last {
        warning(page, text, 2);
    }
    let warnings = summary.warnings.iter();
    let warnings: Vec<_> = warnings
        .filter(|one| !unattributed::is_reason(summary, &one.warning))
        .collect();
    let shown = if lines == 0 { 0 } else { WARNINGS };
    for one in warnings.iter().take(shown) {
        let text = match &one.warning {
            Warning::CpuQuota { cgroup, .. } => {
                let groups = warnings.iter().filter_map(|other| group(&other.warning));
                let room = page.style.columns() - GROUP_FROM;
                let mut cut = one.warning.clone();
                if let Warning::CpuQuota { cgroup: shown, .. } = &mut cut {
                    *shown = fit_apart(cgroup, groups, room);
                }
                crate::warnings::warning(&cut)
            }
            other => crate::warnings::warning(other),
        };
        warning(page, first_sentence(&text), lines);
    }
    let more = warnings.len().saturating_sub(shown);
    if more > 0 {
        let warnings = counted(more, if shown > 0 { "more warning" } else { "warning" });
        page.line(&format!("  {warnings} in the full report"));
    }
}

/// The control group of a warning about its quota.
fn group(warning: &Warning) -> Option<&str> {
    match warning {
        Warning::CpuQuota { cgroup, .. } => Some(cgroup),
        _ => None,
    }
}

fn warning(page: &mut Page, text: &str, lines: usize) {
    let mark = page.style.paint(Tone::Warning, "!");
    for (at, line) in shortened(text, page.style.columns() - 2, lines)
        .into_iter()
        .enumerate()
    {
        page.line(&format!("{} {line}", if at == 0 { &mark } else { " " }));
    }
}

/// Whether all is well, and the basis of the verdicts.
fn line(summary: &RunSummary) -> (bool, String) {
    let trust = &summary.trust;
    let mut facts = Vec::new();
    let mut sound = true;
    let mut off = |fact: String| {
        sound = false;
        fact
    };
    if let Some(attribution) = summary.attribution.as_ref().filter(|of| of.stalls > 0) {
        facts.push(format!(
            "recorded kernel activity explains {} of the time",
            percent(attribution.explained_fraction)
        ));
        let spins =
            summary.wakeup.is_none() && summary.threads.is_empty() && summary.passive.is_empty();
        if let Some(inside) = attribution
            .events_in_gaps_fraction
            .filter(|inside| spins && *inside < SOUND)
        {
            facts.push(off(format!(
                "only {} of the kernel events fell into stalls",
                percent(inside)
            )));
        }
    }
    let unit = if summary.pipeline.is_some() {
        "slow messages"
    } else {
        "stalls"
    };
    facts.push(match (trust.lost_records, trust.dropped_records) {
        (None, 0) => off("whether records were lost is not known".to_owned()),
        (None, stalls) => off(format!(
            "{} {unit} have no record, and whether others were lost is not known",
            count(stalls)
        )),
        (Some(0), 0) => "nothing was lost".to_owned(),
        (Some(lost), 0) => off(format!("{} records were LOST", count(lost))),
        (Some(0), stalls) => off(format!("{} {unit} have no record", count(stalls))),
        (Some(lost), stalls) => off(format!(
            "{} records were LOST, and {} {unit} have none",
            count(lost),
            count(stalls)
        )),
    });
    if trust.senders_dropped > 0 {
        facts.push(off(format!(
            "{} records of senders were dropped",
            count(trust.senders_dropped)
        )));
    }
    if let Some(coverage) = trust.coverage
        && trust.floor_ticks.is_some()
        && coverage < COVERED
    {
        facts.push(off(format!(
            "the probe covered only {} of the time",
            percent(coverage)
        )));
    }
    let ended: CpuSet = summary
        .passive
        .iter()
        .filter(|cpu| cpu.ended_early.is_some())
        .map(|cpu| cpu.cpu)
        .collect();
    if !ended.is_empty() {
        let was = if ended.len() == 1 { "was" } else { "were" };
        facts.push(off(format!(
            "{} {was} not watched to the end",
            short_cpus_text(&ended)
        )));
    }
    match &summary.probe.event_grain {
        None | Some(EventGrain::All) => {}
        Some(EventGrain::Coarse) => {
            facts.push("not all kernel events were recorded (--events coarse)".to_owned());
        }
        Some(EventGrain::Other(word)) => {
            facts.push(format!(
                "a newer version chose which kernel events to record (--events {word})"
            ));
        }
    }
    facts.extend(
        trust
            .price
            .as_ref()
            .and_then(|price| price.taken.as_ref())
            .map(price::share),
    );
    if !summary.passive.is_empty() {
        facts.push("stalls without a record are not visible passively".to_owned());
    }
    if trust.helpers_on_measured {
        facts.push(off(
            "our own helper threads had to use measured CPUs".to_owned()
        ));
    }
    (sound, facts.join("; "))
}

/// The text up to its first full stop.
fn first_sentence(text: &str) -> &str {
    text.find(". ")
        .map_or(text.trim_end_matches('.'), |end| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_named_by_its_first_sentence() {
        assert_eq!(
            first_sentence("The CPU went offline. It was measured."),
            "The CPU went offline"
        );
        assert_eq!(first_sentence("At 3.5 s it ended."), "At 3.5 s it ended");
    }
}
