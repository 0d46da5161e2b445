//! The part of a pipeline report that perf-workshop does not have: lateness, waits, threads, the slowest messages.

use crate::lines::cpus_text;
use crate::number::{bytes, count, percent, span, thousands, times, utc};
use crate::report::{Column, Row, Table};
use crate::style::{Tone, tame};
use crate::text::{Page, message_headline};
use jitterscope_analyze::{ConsumerSummary, PipelineSummary, PublisherSummary, RunSummary};
use jitterscope_model::{
    ClockKind, JournalWriting, Nanos, PipelinePacing, PipelineSetup, PipelineThread, PipelineVia,
};

/// Everything below perf-workshop's tables.
pub(super) fn render(page: &mut Page, summary: &RunSummary, pipeline: &PipelineSummary) {
    title(page, summary, pipeline);
    page.line("");
    message_headline(page, summary, pipeline);
    page.worst_case(summary);
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
    let rest = format!("{} UTC  {}", utc(run.started_realtime_ns), run.hostname);
    page.name(&name, &rest);
    let setup = &pipeline.setup;
    let every = match setup.interval_ns {
        Nanos::ZERO => "as fast as the ring takes them".into(),
        interval => format!("every {interval}"),
    };
    let facts = [
        format!(
            "pipeline of {} threads {}",
            pipeline.threads.len(),
            way(setup)
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

/// How messages travelled.
fn way(setup: &PipelineSetup) -> String {
    let room = thousands(setup.ring);
    match setup.via {
        PipelineVia::Ring => format!("over a ring of {room}"),
        PipelineVia::Loopback => format!("over the loopback device, {room} on the way at most"),
        PipelineVia::Unix => format!("over Unix sockets, {room} on the way at most"),
        PipelineVia::Veth => {
            format!("over a pair of virtual Ethernet devices, {room} on the way at most")
        }
    }
}

fn latency(page: &mut Page, pipeline: &PipelineSummary) {
    page.heading(
        "LATENCY",
        "from the actual and from the intended publication",
    );
    page.table(super::times::table(pipeline));
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
    let is_ring = !pipeline.setup.via.is_in_kernel();
    if *full_waits == 0 {
        let text = match is_ring {
            true => "The ring was never full.",
            false => "The producer never had to wait for room.",
        };
        page.prose(None, 2, text);
        return;
    }
    let times = times(*full_waits);
    let found = match is_ring {
        true => "the ring full",
        false => "no room for another message on the way",
    };
    let text = format!(
        "The producer found {found} {times} and waited {full_waited_ns} in all, {full_longest_ns} at the longest."
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
    let text = "The worst, one of each pile of messages that queued up behind one another:";
    page.prose(None, 2, text);
    page.append(crate::text::worst::report(summary, usize::MAX));
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
    let row = |thread: &PipelineThread| {
        let class = thread
            .fifo_priority
            .map_or_else(|| "fair".into(), |priority| format!("FIFO {priority}"));
        Row::from([
            thread.role.as_str().into(),
            thread.tid.to_string().into(),
            (thread.cpu)
                .map_or_else(|| "any".into(), |cpu| cpu.to_string())
                .into(),
            class.into(),
            thread.cpu_time_ns.to_string().into(),
            count(thread.involuntary_switches).into(),
            count(thread.page_faults).into(),
        ])
    };
    page.table(Table {
        title: "Threads of the pipeline".into(),
        columns: vec![
            Column::text("thread"),
            Column::number("tid"),
            Column::number("cpu"),
            Column::text("class"),
            Column::number("cpu time"),
            Column::number("preempted"),
            Column::number("page faults"),
        ],
        rows: pipeline.threads.iter().map(row).collect(),
        ..Table::default()
    });
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
        if setup.journal == JournalWriting::PageCache {
            text += ", each written with a system call into the page cache";
        }
        if journal.unwritten > 0 {
            text += &format!(", {} messages without one", count(journal.unwritten));
        }
        facts.push(text + ".");
    }
    for fact in facts {
        page.prose(None, 2, &fact);
    }
}
