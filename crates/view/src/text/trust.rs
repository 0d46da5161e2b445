//! The trust in the report.

use super::Page;
use crate::lines::cpus_text;
use crate::number::{bytes, count, percent, percent_down, rate};
use crate::sources::source_words;
use crate::style::Tone;
use jitterscope_analyze::{AttributionSummary, RunSummary, Trust, WakeupSummary};
use jitterscope_model::{ClockKind, Nanos, RateSource, SourceStatus};

/// The least share of events inside stalls at which the correlation is sound.
pub(super) const SOUND: f64 = 0.999;
/// The coverage from which nothing was missed.
pub(super) const COVERED: f64 = 0.9999;

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    page.heading("HOW FAR TO TRUST IT", "");
    let trust = &summary.trust;
    match &summary.wakeup {
        Some(wakeup) => page.fact(None, "probe", &sleeper(wakeup, trust)),
        None => probe(page, trust),
    }
    page.fact(None, "clock", &clock(summary));
    if let Some(attribution) = &summary.attribution {
        if attribution.stalls > 0 {
            let what = if summary.wakeup.is_some() {
                "lateness of late wake-ups"
            } else {
                "stalled time"
            };
            explained(page, what, attribution, trust);
        }
        // A sleeping probe lets other threads run between its wake-ups: the position of their events proves nothing.
        if summary.wakeup.is_none() {
            correlation(page, attribution, summary.probe.threshold_ns);
        }
    }
    losses(page, summary);
    page.fact(
        trust.helpers_on_measured.then_some(Tone::Warning),
        "own noise",
        &noise(trust),
    );
    price(page, trust);
    page.fact(None, "raw trace", &raw_trace(trust));
    limited(page, summary);
}

fn limited(page: &mut Page, summary: &RunSummary) {
    let limited = summary
        .sources
        .iter()
        .filter(|source| source.status != SourceStatus::Available);
    for (at, source) in limited.enumerate() {
        let words = source_words(&source.problems, &source.losses);
        let loses = if words.loses.is_empty() {
            String::new()
        } else {
            format!("; lost by it: {}", words.loses)
        };
        let text = format!(
            "{} {}: {}{loses}",
            source.name,
            source.status.as_str(),
            words.reason.trim_end_matches('.')
        );
        page.fact(None, if at == 0 { "sources" } else { "" }, &text);
    }
}

/// The trust in a report on watched CPUs.
pub(super) fn of_watched(page: &mut Page, summary: &RunSummary) {
    page.heading("HOW FAR TO TRUST IT", "");
    let text = "not visible passively: the way into the kernel before a record and out of it after one, \
                stalls without any record (hypervisor, firmware), and the time of page faults; 'record' \
                with a probe measures those";
    page.fact(None, "no probe", text);
    without_probe(page, summary);
}

/// The trust in a report on followed threads, without a probe's measurement.
pub(super) fn of_followed(page: &mut Page, summary: &RunSummary) {
    page.heading("HOW FAR TO TRUST IT", "");
    without_probe(page, summary);
}

fn without_probe(page: &mut Page, summary: &RunSummary) {
    let trust = &summary.trust;
    page.fact(None, "clock", &clock(summary));
    if let Some(attribution) = &summary.attribution
        && attribution.stalls > 0
    {
        explained(page, "stalled time", attribution, trust);
    }
    losses(page, summary);
    page.fact(
        trust.helpers_on_measured.then_some(Tone::Warning),
        "own noise",
        &noise(trust),
    );
    price(page, trust);
    page.fact(None, "raw trace", &raw_trace(trust));
    limited(page, summary);
}

fn probe(page: &mut Page, trust: &Trust) {
    let text = match (trust.floor_ns, trust.floor_ticks) {
        (Some(ns), Some(ticks)) => format!(
            "floor {ns} ({ticks} ticks), {} reads per second, {} of the time covered",
            rate(trust.samples_per_sec),
            percent_down(trust.coverage, 4)
        ),
        _ => "nothing was measured".into(),
    };
    let sound = trust.coverage >= COVERED;
    page.fact((!sound).then_some(Tone::Warning), "probe", &text);
}

/// The sleeping probe, and what it cannot show.
fn sleeper(wakeup: &WakeupSummary, trust: &Trust) -> String {
    format!(
        "slept to deadlines of CLOCK_MONOTONIC, {} wake-ups per second and CPU; lateness includes the \
         timer's, the idle state's and the scheduler's, and {} of it is the least this machine takes",
        rate(trust.samples_per_sec),
        wakeup.total.min_ns.unwrap_or_default()
    )
}

fn clock(summary: &RunSummary) -> String {
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

fn explained(page: &mut Page, what: &str, attribution: &AttributionSummary, trust: &Trust) {
    let mut text = format!("{} of the {what}", percent(attribution.explained_fraction));
    if trust.cost_samples > 0 {
        text += &format!(
            "; that counts up to {} before and {} after a culprit as its own, the least seen in {} stalls",
            trust.entry_cost_ns,
            trust.exit_cost_ns,
            count(trust.cost_samples)
        );
    }
    page.fact(None, "explained", &text);
}

fn correlation(page: &mut Page, attribution: &AttributionSummary, threshold: Nanos) {
    let Some(inside) = attribution.events_in_gaps_fraction else {
        return page.fact(
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
    page.fact(
        (inside < SOUND).then_some(Tone::Warning),
        "correlation",
        &text,
    );
}

fn losses(page: &mut Page, summary: &RunSummary) {
    let trust = &summary.trust;
    if (
        trust.dropped_records,
        trust.lost_records,
        trust.senders_dropped,
    ) == (0, 0, 0)
    {
        return page.fact(None, "losses", "none");
    }
    let mut parts = Vec::new();
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
    page.fact(Some(Tone::Warning), "losses", &parts.join("; "));
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
    if trust.helper_cpu_ns > Nanos::ZERO {
        text += &format!(" and used {}", trust.helper_cpu_ns);
    }
    text += &format!(
        "; probe: {}, {}",
        plural(trust.page_faults, "page fault"),
        plural(trust.involuntary_switches, "involuntary switch").replace("switchs", "switches")
    );
    if trust.peak_rss_bytes > 0 {
        text += &format!("; {} of memory", bytes(trust.peak_rss_bytes));
    }
    text
}

fn price(page: &mut Page, trust: &Trust) {
    if let Some(price) = &trust.price {
        page.fact(None, "tracing cost", &super::price::text(price));
    }
}

fn raw_trace(trust: &Trust) -> String {
    match (trust.raw_trace_bytes, trust.raw_trace_complete) {
        (0, _) => "not kept".into(),
        (n, true) => format!("{}, all of it", bytes(n)),
        (n, false) => format!("{}, only around the worst stalls", bytes(n)),
    }
}
