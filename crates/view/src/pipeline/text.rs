//! The part of a pipeline report that perf-workshop does not have: lateness, waits, threads, the slowest messages.

use crate::lines::cpus_text;
use crate::number::{bytes, count, moment, percent, span, thousands, times, utc};
use crate::style::{Tone, fit, pad, tame};
use crate::text::{Page, message_headline};
use crate::words;
use jitterscope_analyze::{
    ConsumerSummary, MESSAGE_LEVELS, PipelineSummary, PublisherSummary, RunSummary, TimesSummary,
};
use jitterscope_model::{ClockKind, Nanos, PipelinePacing};

/// The indentation of the percentile columns.
const NAMES: usize = 15;

/// Everything below perf-workshop's tables.
pub(super) fn render(page: &mut Page, summary: &RunSummary, pipeline: &PipelineSummary) {
    title(page, summary, pipeline);
    page.line("");
    message_headline(page, summary, pipeline);
    crate::text::headline::doubts(page, summary);
    latency(page, pipeline);
    omission(page, pipeline);
    ring(page, pipeline);
    slowest(page, summary, pipeline);
    if summary.withheld().is_empty() {
        super::blame::render(page, pipeline);
    }
    threads(page, pipeline);
    crate::text::threads::render(page, "WHERE THEIR TIME WENT", summary);
    trust(page, summary, pipeline);
}

fn title(page: &mut Page, summary: &RunSummary, pipeline: &PipelineSummary) {
    let run = &summary.run;
    let name = format!("{}  {}", tame(&run.label), tame(&run.id));
    let rest = format!(
        "   {} UTC   {}",
        utc(run.started_realtime_ns),
        tame(&run.hostname)
    );
    let rest = fit(&rest, page.style.columns().saturating_sub(name.len()));
    page.line(&format!("{}{rest}", page.style.paint(Tone::Strong, &name)));
    let setup = &pipeline.setup;
    let every = match setup.interval_ns {
        Nanos::ZERO => "as fast as the ring takes them".into(),
        interval => format!("every {interval}"),
    };
    let facts = [
        format!(
            "pipeline of {} threads over a ring of {}",
            pipeline.threads.len(),
            thousands(setup.ring)
        ),
        format!(
            "{} records of {} bytes {every}",
            count(pipeline.producer.sent),
            setup.record_length
        ),
        format!(
            "{} ({} a second)",
            span(pipeline.duration_ns),
            count(pipeline.producer.per_sec.round() as u64)
        ),
        format!("kernel {}", tame(&run.kernel_release)),
        tame(&run.cpu_model),
    ];
    page.prose(Some(Tone::Dim), 0, &facts.join("; "));
    if run.interrupted {
        let planned = match setup.messages {
            Some(messages) => format!(
                "{} of {} messages",
                count(pipeline.producer.sent),
                count(messages)
            ),
            None => format!("{} of {}", span(pipeline.duration_ns), span(run.planned_ns)),
        };
        page.prose(
            Some(Tone::Warning),
            0,
            &format!("ended before its time: {planned}"),
        );
    }
}

fn latency(page: &mut Page, pipeline: &PipelineSummary) {
    page.heading(
        "LATENCY",
        "from the actual and from the intended publication",
    );
    let mut head = " ".repeat(NAMES);
    for name in MESSAGE_LEVELS.iter().map(|(name, _)| *name).chain(["max"]) {
        head += &format!("{name:>8}");
    }
    page.line(&page.style.paint(Tone::Dim, &head));
    for consumer in &pipeline.consumers {
        row(
            page,
            Some(consumer.role.as_str()),
            "actual",
            &consumer.transit,
        );
        row(page, None, "intended", &consumer.from_intended);
    }
    row(
        page,
        Some("producer"),
        "late by",
        &pipeline.producer.lateness,
    );
}

/// Puts the name on its own line, so that the columns fit eighty.
fn row(page: &mut Page, who: Option<&str>, what: &str, times: &TimesSummary) {
    if let Some(who) = who {
        page.line(&format!("  {}", page.style.paint(Tone::Strong, who)));
    }
    let mut line = pad(&format!("    {what}"), NAMES);
    for (name, _) in MESSAGE_LEVELS {
        let value = times
            .supported(name)
            .map_or_else(|| "-".into(), |time| time.to_string());
        line += &format!("{value:>8}");
    }
    page.line(&format!("{line}{:>8}", times.max_ns.to_string()));
}

/// Coordinated omission in words.
fn omission(page: &mut Page, pipeline: &PipelineSummary) {
    if pipeline.setup.pacing == PipelinePacing::AfterPublication {
        let text = "The schedule moved along with each publication (--pacing ancestor): a stall of the \
                    producer delays everything behind it and shows in one message alone (coordinated \
                    omission). --pacing schedule shows it in every message that it made late.";
        page.prose(Some(Tone::Warning), 2, text);
        return;
    }
    let worst = pipeline
        .consumers
        .iter()
        .rev()
        .filter_map(|c| Some((c, c.hidden.as_ref()?)));
    let text = match worst.max_by_key(|(_, hidden)| hidden.from_intended_ns.0 / hidden.transit_ns.0.max(1)) {
        Some((consumer, hidden)) => format!(
            "Coordinated omission: when the producer itself is stalled it stamps late, and the wait of every \
             message that was due meanwhile goes missing from the transit. At {} % the {} has messages {} \
             after their actual, but {} after their intended publication.",
            hidden.percentile, consumer.role, hidden.transit_ns, hidden.from_intended_ns
        ),
        None => {
            "The producer kept its schedule: seen from the intended publication no percentile of the table is a \
                 tenth higher, so that the transit hides nothing there (no coordinated omission)."
                .into()
        }
    };
    page.prose(None, 2, &text);
}

fn ring(page: &mut Page, pipeline: &PipelineSummary) {
    let PublisherSummary {
        full_waits,
        full_waited_ns,
        full_longest_ns,
        ..
    } = &pipeline.producer;
    if *full_waits == 0 {
        page.prose(None, 2, "The ring was never full.");
        return;
    }
    let times = times(*full_waits);
    let text = format!(
        "The producer found the ring full {times} and waited {full_waited_ns} in all, {full_longest_ns} at the \
         longest."
    );
    page.prose(Some(Tone::Warning), 2, &text);
}

fn slowest(page: &mut Page, summary: &RunSummary, pipeline: &PipelineSummary) {
    let lines: Vec<String> = pipeline.consumers.iter().map(slow).collect();
    page.heading("SLOW MESSAGES", "from the intended publication");
    for line in lines {
        page.prose(None, 2, &line);
    }
    if summary.worst.is_empty() {
        return;
    }
    page.prose(
        None,
        2,
        "The worst, one of each pile of messages that queued up behind one another:",
    );
    let made_of = if summary.worst.iter().all(|stall| stall.parts.is_empty()) {
        ""
    } else {
        "made of"
    };
    let head = format!("   length         after  cpu  message of      {made_of}");
    page.line(&page.style.paint(Tone::Dim, head.trim_end()));
    for stall in &summary.worst {
        let parts: Vec<String> = stall
            .parts
            .iter()
            .map(|part| {
                let share = percent(part.net.0 as f64 / stall.duration_ns.0.max(1) as f64);
                format!(
                    "{} {share}",
                    words::phase_and_name(part.phase.as_ref(), &part.culprit.subject)
                )
            })
            .collect();
        let who = stall.victim.strip_prefix("js-").unwrap_or(&stall.victim);
        let numbers = format!(
            "{:>9} {:>13} {:>4}  {}  ",
            stall.duration_ns.to_string(),
            moment(stall.start_offset_ns),
            stall.cpu,
            pad(who, 14),
        );
        let room = page.style.columns().saturating_sub(numbers.len());
        page.line(&format!("{numbers}{}", fit(&parts.join(", "), room)));
    }
}

fn slow(consumer: &ConsumerSummary) -> String {
    let mut text = format!(
        "{}: {} of {} messages took {} or longer ({})",
        consumer.role,
        count(consumer.slow),
        count(consumer.received),
        consumer.slow_above_ns,
        percent(consumer.slow as f64 / consumer.received.max(1) as f64),
    );
    if consumer.slow_dropped > 0 {
        text += &format!(", {} of them without a row", count(consumer.slow_dropped));
    }
    text
}

fn threads(page: &mut Page, pipeline: &PipelineSummary) {
    page.heading("THREADS", "");
    let head = "  thread           tid  cpu  class     cpu time   preempted  page faults";
    page.line(&page.style.paint(Tone::Dim, head));
    for thread in &pipeline.threads {
        let cpu = thread
            .cpu
            .map_or_else(|| "any".into(), |cpu| cpu.to_string());
        let class = thread
            .fifo_priority
            .map_or_else(|| "fair".into(), |priority| format!("FIFO {priority}"));
        page.line(&format!(
            "  {}  {:>7} {cpu:>4}  {class:<8} {:>9} {:>11} {:>12}",
            pad(thread.role.as_str(), 11),
            thread.tid,
            thread.cpu_time_ns.to_string(),
            count(thread.involuntary_switches),
            count(thread.page_faults),
        ));
    }
}

fn trust(page: &mut Page, summary: &RunSummary, pipeline: &PipelineSummary) {
    page.heading("HOW FAR TO TRUST IT", "");
    let trust = &summary.trust;
    let clock = match summary.probe.clock {
        ClockKind::Tsc => format!("TSC at {:.3} MHz", summary.probe.tsc_hz as f64 / 1e6),
        ClockKind::MonotonicRaw => "CLOCK_MONOTONIC_RAW".into(),
    };
    let setup = &pipeline.setup;
    let mut facts = vec![
        format!(
            "Times are to three digits, extremes and means exact; stamps by {clock}, to within {:.3} ppm. {} \
             messages of warm-up were forgotten.",
            trust.rate_error_ppb as f64 / 1e3,
            count(setup.warm_up_messages),
        ),
        format!(
            "The threads' memory was {}; the whole process had {} at its peak.",
            if setup.memory_locked {
                "faulted in and locked"
            } else {
                "faulted in, but not locked"
            },
            bytes(trust.peak_rss_bytes.unwrap_or_default()),
        ),
    ];
    let helpers = if trust.helper_cpus.is_empty() {
        "Our own thread had no CPU of its own".to_owned()
    } else if trust.helpers_on_measured {
        format!(
            "Our own thread was free to run on {}, where the pipeline's may run,",
            cpus_text(&trust.helper_cpus)
        )
    } else {
        format!("Our own thread kept to {}", cpus_text(&trust.helper_cpus))
    };
    facts.push(format!(
        "{helpers} and used {} of time.",
        trust.helper_cpu_ns.unwrap_or_default()
    ));
    facts.extend(
        trust
            .price
            .iter()
            .map(|price| format!("Tracing cost: {}.", crate::text::price::text(price))),
    );
    if let Some(journal) = &pipeline.journal {
        let mut text = format!(
            "Journal {}: {} records",
            tame(&journal.path),
            count(journal.written)
        );
        if journal.unwritten > 0 {
            text += &format!(", {} messages without one", count(journal.unwritten));
        }
        facts.push(text + ".");
    }
    for fact in facts {
        page.prose(None, 2, &fact);
    }
}
