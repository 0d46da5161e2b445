//! The trust in the report.

use super::Page;
use crate::lines::cpus_text;
use crate::number::{bytes, count, percent, percent_down, rate};
use crate::report::Report;
use crate::sources::source_words;
use crate::style::Tone;
use jitterscope_analyze::{AttributionSummary, RunSummary, SourceWords, Trust, WakeupSummary};
use jitterscope_model::{
    AddedRecords, AlignmentStart, AskedEventRecords, ClockKind, Imported, Nanos, ProbeKind,
    RateSource, SourceStatus, visible,
};

/// The least share of events inside stalls at which the correlation is sound.
pub(super) const SOUND: f64 = 0.999;
/// The coverage from which nothing was missed.
pub(super) const COVERED: f64 = 0.9999;

/// The coverage from which another tool's records are said to be there for the whole run.
const COVERED_BY_FILE: f64 = 0.99;

/// What is said of figures of the whole measurement, of which a run is a part.
const SAVED: &str = "not known of a saved part";
/// What is said of figures that a killed recorder took with it.
const KILLED: &str = "not known: the recorder was killed";
/// What is not visible without a probe.
const PASSIVE: &str = "not visible passively: the way into the kernel before a record and out of it after one, stalls without any \
     record (hypervisor, firmware), and the time of page faults; 'record' with a probe measures those";

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    page.heading("HOW FAR TO TRUST IT", "");
    page.append(report(summary));
}

/// The basis of the verdicts, fact by fact.
pub(crate) fn report(summary: &RunSummary) -> Report {
    let mut report = Report::default();
    let trust = &summary.trust;
    let probe = match ProbeKind::from_word(&summary.probe.kind) {
        Some(ProbeKind::Attach | ProbeKind::Passive) => false,
        _ => !summary.probe.cpus.is_empty(),
    };
    match &summary.wakeup {
        _ if !probe && summary.passive.is_empty() => {}
        _ if !probe => report.fact(None, "no probe", PASSIVE),
        _ if summary.run.moment.is_some() => report.fact(None, "probe", SAVED),
        _ if summary.run.killed => report.fact(None, "probe", KILLED),
        Some(wakeup) => report.fact(None, "probe", sleeper(wakeup, trust)),
        None => spinner(&mut report, trust),
    }
    if let Some(from) = &summary.run.imported {
        report.fact(None, "imported", imported(from));
    }
    if let Some(added) = &summary.run.added {
        added_records(&mut report, added);
    }
    report.fact(None, "clock", clock(summary));
    if let Some(attribution) = &summary.attribution {
        if attribution.stalls > 0 {
            let what = match summary.wakeup {
                Some(_) => "lateness of late wake-ups",
                None => "stalled time",
            };
            report.fact(None, "explained", explained(what, attribution, trust));
        }
        // A sleeping probe lets other threads run between its wake-ups: the position of their events proves nothing.
        if probe && summary.wakeup.is_none() {
            correlation(&mut report, attribution, summary.probe.threshold_ns);
        }
    }
    losses(&mut report, summary);
    // Nothing of ours ran where the file was recorded.
    if summary.run.imported.is_none() {
        let is_noisy = trust.helpers_on_measured.then_some(Tone::Warning);
        report.fact(is_noisy, "own noise", noise(trust));
    }
    let of_file = summary.run.imported.is_some() || summary.run.added.is_some();
    match (&trust.price, of_file) {
        (None, _) => {}
        (Some(price), false) => report.fact(None, "tracing cost", super::price::text(price)),
        (Some(price), true) => report.fact(None, "records", super::price::records(price)),
    }
    for (at, asked) in summary.run.asked_events.iter().enumerate() {
        report.fact(
            None,
            if at == 0 { "also recorded" } else { "" },
            also(asked, trust),
        );
    }
    report.fact(None, "raw trace", raw_trace(trust));
    limited(&mut report, summary);
    report
}

/// The sources that were not there in full, what cannot be seen for it, and how to get it.
fn limited(report: &mut Report, summary: &RunSummary) {
    let limited = summary
        .sources
        .iter()
        .filter(|source| source.status != SourceStatus::Available);
    for (at, source) in limited.enumerate() {
        let SourceWords { reason, loses, fix } = source_words(&source.problems, &source.losses);
        let reason = reason.trim_end_matches('.');
        let mut text = format!("{} {}: {reason}", source.name, source.status.as_str());
        for (what, of) in [("lost by it", loses), ("to have it", fix)] {
            if !of.is_empty() {
                text += &format!("; {what}: {of}");
            }
        }
        report.fact(None, if at == 0 { "sources" } else { "" }, text);
    }
}

fn spinner(report: &mut Report, trust: &Trust) {
    let text = match (trust.floor_ns, trust.floor_ticks) {
        (Some(ns), Some(ticks)) => format!(
            "floor {ns} ({ticks} ticks), {} reads per second, {} of the time covered",
            rate(trust.samples_per_sec.unwrap_or_default()),
            percent_down(trust.coverage.unwrap_or_default(), 4)
        ),
        _ => "nothing was measured".into(),
    };
    let sound = trust.coverage.is_none_or(|coverage| coverage >= COVERED);
    report.fact((!sound).then_some(Tone::Warning), "probe", text);
}

/// The sleeping probe, and what it cannot show.
fn sleeper(wakeup: &WakeupSummary, trust: &Trust) -> String {
    format!(
        "slept to deadlines of CLOCK_MONOTONIC, {} wake-ups per second and CPU; lateness includes the \
         timer's, the idle state's and the scheduler's, and {} of it is the least this machine takes",
        rate(trust.samples_per_sec.unwrap_or_default()),
        wakeup.total.min_ns.unwrap_or_default()
    )
}

/// An event that the user asked for.
fn also(asked: &AskedEventRecords, trust: &Trust) -> String {
    let filter = asked.event.filter.as_deref();
    let only = filter.map_or_else(String::new, |filter| format!(" with {}", visible(filter)));
    let cost = trust.price.as_ref().and_then(|price| price.record);
    let cost = cost.map_or_else(String::new, |cost| {
        let most = cost.cold_ns.0.saturating_mul(asked.records);
        format!(", at most {} of the recorded CPUs in total", Nanos(most))
    });
    let plural = if asked.records == 1 { "" } else { "s" };
    format!(
        "{}{only}: {} record{plural}{cost}; report --stall shows them",
        visible(&asked.event.name()),
        count(asked.records)
    )
}

/// The file that the records come from.
fn imported(from: &Imported) -> String {
    let date = match from.states_date {
        true => "; it states the time of day",
        false => {
            "; it does not state the time of day: its last change counts as the end of the recording"
        }
    };
    file(from) + date + &unused(from)
}

/// A file's name, format and writer.
fn file(from: &Imported) -> String {
    let mut text = format!(
        "{} of version {}",
        visible(&from.format),
        from.format_version
    );
    if !from.file.is_empty() {
        text = format!("{}, a {text}", visible(&from.file));
    }
    if let Some(program) = &from.program {
        text += &format!(", written by {}", visible(program));
    }
    text
}

/// Records that no verdict uses.
fn unused(from: &Imported) -> String {
    match from.unread_records {
        0 => String::new(),
        unread => format!("; {} records of other events are not used", count(unread)),
    }
}

/// The file whose records the verdicts rest on, and how its clock was aligned with the probe's.
fn added_records(report: &mut Report, added: &AddedRecords) {
    let mut text = format!(
        "{}; the stalls are those of run {}",
        file(&added.file),
        visible(&added.run)
    );
    text += &unused(&added.file);
    report.fact(None, "events from", text);
    let share = |of: u64| percent_down(of as f64 / added.compared.max(1) as f64, 2);
    let proof = format!(
        "{} of {} compared records lie in stalls; shifted in time, {}",
        share(added.inside),
        count(added.compared),
        share(added.by_chance)
    );
    report.fact(None, "aligned", proof);
    let mut found = match added.start {
        AlignmentStart::SameClock => "file and probe have one clock".to_owned(),
        AlignmentStart::ClockReadings => {
            "searched near the recorder's readings of clocks".to_owned()
        }
        AlignmentStart::TimeOfDay => "searched near the time of day".to_owned(),
        AlignmentStart::Everywhere => "searched at every offset".to_owned(),
    };
    if let Some(of) = added.first {
        found += &format!(
            "; of the first {} comparisons {} fit, at the best other offset {}",
            count(of.compared),
            count(of.fits),
            count(of.elsewhere)
        );
    }
    report.fact(None, "", found);
    if added.start != AlignmentStart::SameClock {
        let drift = added.drift_ppb.unsigned_abs() as f64 / 1e3;
        let than = if added.drift_ppb < 0 {
            "slower"
        } else {
            "faster"
        };
        let clock = format!(
            "the file's clock runs {drift:.2} ppm {than} than stated; a record's time is off by {} at most",
            added.error_ns
        );
        report.fact(None, "", clock);
    }
    let is_partial = added.covered < COVERED_BY_FILE;
    let covers = format!(
        "the file covers {} of the measured time; stalls outside have no verdict",
        percent_down(added.covered, 2)
    );
    report.fact(is_partial.then_some(Tone::Warning), "", covers);
}

fn clock(summary: &RunSummary) -> String {
    if let Some(from) = &summary.run.imported {
        let name = visible(&from.clock);
        return match summary.trust.rate_source {
            RateSource::Exact => format!("the kernel's '{name}', in nanoseconds"),
            _ => format!(
                "the kernel's '{name}' at {:.3} MHz, as the file states it",
                summary.probe.tsc_hz as f64 / 1e6
            ),
        };
    }
    let name = match summary.probe.clock {
        ClockKind::Tsc => "TSC",
        ClockKind::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
    };
    let source = match summary.trust.rate_source {
        RateSource::Cpuid => "from CPUID",
        RateSource::HypervisorCpuid => "from the hypervisor",
        RateSource::Kernel => "as the kernel calibrated it",
        RateSource::Calibrated => "calibrated here",
        RateSource::Exact => return format!("{name}, in nanoseconds"),
    };
    format!(
        "{name} at {:.3} MHz, {source}, to within {} ppm",
        summary.probe.tsc_hz as f64 / 1e6,
        summary.trust.rate_error_ppb as f64 / 1e3
    )
}

fn explained(what: &str, attribution: &AttributionSummary, trust: &Trust) -> String {
    let mut text = format!("{} of the {what}", percent(attribution.explained_fraction));
    if trust.cost_samples > 0 {
        text += &format!(
            "; that counts up to {} before and {} after a culprit as its own, the least seen in {} stalls",
            trust.entry_cost_ns,
            trust.exit_cost_ns,
            count(trust.cost_samples)
        );
    }
    text
}

fn correlation(report: &mut Report, attribution: &AttributionSummary, threshold: Nanos) {
    let Some(inside) = attribution.events_in_gaps_fraction else {
        return report.fact(
            None,
            "correlation",
            "no kernel event was recorded on a measured CPU",
        );
    };
    let control = attribution
        .events_in_gaps_control
        .map_or_else(String::new, |control| {
            format!("; shifted at random, {}", percent(control))
        });
    let mut text = format!(
        "{} of {} kernel events fell into stalls{control}",
        percent_down(inside, 2),
        count(attribution.events)
    );
    if attribution.events_too_short > 0 {
        text += &format!(
            "; {} more are of what took less than {threshold}, which no stall shows",
            count(attribution.events_too_short)
        );
    }
    report.fact(
        (inside < SOUND).then_some(Tone::Warning),
        "correlation",
        text,
    );
}

fn losses(report: &mut Report, summary: &RunSummary) {
    let trust = &summary.trust;
    let mut parts = Vec::new();
    match (
        trust.dropped_records,
        trust.lost_records,
        trust.senders_dropped,
    ) {
        (0, Some(0), 0) => return report.fact(None, "losses", "none"),
        (_, None, _) => parts.push(format!("of kernel records {KILLED}")),
        _ => {}
    }
    if trust.dropped_records > 0 {
        parts.push(format!(
            "{} {} have no record (they count in totals and percentiles)",
            count(trust.dropped_records),
            if summary.pipeline.is_some() {
                "slow messages"
            } else {
                "stalls"
            }
        ));
    }
    for source in summary.sources.iter().filter(|source| source.lost > 0) {
        parts.push(format!(
            "{} lost {} records",
            source.name,
            count(source.lost)
        ));
    }
    if trust.senders_dropped > 0 {
        parts.push(format!(
            "{} records of who woke, called or queued were dropped, for there were too many at once: the sender of \
             what they triggered is not known",
            count(trust.senders_dropped)
        ));
    }
    report.fact(Some(Tone::Warning), "losses", parts.join("; "));
}

fn noise(trust: &Trust) -> String {
    let plural =
        |n: u64, noun: &str| format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" });
    let place = if trust.helper_cpus.is_empty() {
        "no CPU was free for our helper threads, they ran on measured ones".to_owned()
    } else if trust.helpers_on_measured {
        format!(
            "our helper threads ran on {}, of which some is measured",
            cpus_text(&trust.helper_cpus)
        )
    } else {
        format!(
            "our helper threads kept to {}",
            cpus_text(&trust.helper_cpus)
        )
    };
    let mut text = place;
    if let Some(used) = trust.helper_cpu_ns.filter(|used| *used > Nanos::ZERO) {
        text += &format!(" and used {used}");
    }
    if let (Some(faults), Some(switches)) = (trust.page_faults, trust.involuntary_switches) {
        text += &format!(
            "; probe: {}, {}",
            plural(faults, "page fault"),
            plural(switches, "involuntary switch").replace("switchs", "switches")
        );
    }
    if let Some(peak) = trust.peak_rss_bytes.filter(|peak| *peak > 0) {
        text += &format!("; {} of memory", bytes(peak));
    }
    text
}

fn raw_trace(trust: &Trust) -> String {
    match (trust.raw_trace_bytes, trust.raw_trace_complete) {
        (0, _) => "not kept".into(),
        (n, true) => format!("{}, all of it", bytes(n)),
        (n, false) => format!("{}, only around the worst stalls", bytes(n)),
    }
}
