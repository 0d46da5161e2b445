//! What became of the time of threads that were followed.

use super::markup::{Cell, Head, Markup};
use crate::chart::shares::{self, Whole};
use crate::number::{count, percent, percent_cell, span};
use crate::text::{self, Statement};
use crate::words;
use jitterscope_analyze::RunSummary;
use jitterscope_model::{CpuSet, CulpritKind, Nanos, RanInstead, ThreadAccount};
use std::cmp::Reverse;

/// Threads at first sight.
const FEW: usize = 16;
/// Threads for which the page lists who ran instead.
const BLOCKS: usize = 8;
/// Rows of that.
const INSTEAD: usize = 12;

pub(super) fn verdict(summary: &RunSummary) -> Vec<Statement> {
    if summary.pipeline.is_some() || !summary.probe.cpus.is_empty() || !summary.passive.is_empty() {
        return Vec::new();
    }
    let threads = sorted(summary);
    let (Some(worst), all) = (threads.first(), threads.len()) else {
        return vec![Statement::plain(
            "No thread was there to be followed.".into(),
        )];
    };
    let waited: Nanos = threads.iter().map(|thread| lost(thread)).sum();
    let mut statements = vec![Statement::plain(format!(
        "{} followed for {} lost {waited} of the time in which {} wanted to run.",
        if all == 1 {
            "One thread".into()
        } else {
            format!("{} threads", count(all as u64))
        },
        span(summary.run.duration_ns),
        if all == 1 { "it" } else { "they" },
    ))];
    if lost(worst) > Nanos::ZERO {
        let mut text = format!(
            "{} {} (pid {}): {}, {} of the time that it was followed; it waited {} at the longest.",
            if all == 1 {
                "It is"
            } else {
                "Most of it was lost by"
            },
            name(worst),
            worst.tid,
            lost(worst),
            percent(share(lost(worst), worst)),
            worst.longest_wait_ns
        );
        let had_it = |ran: &&RanInstead| ran.subject.kind() != CulpritKind::Stopped;
        if let Some(ran) = RanInstead::by_program(&worst.ran_instead)
            .iter()
            .find(had_it)
        {
            text += &format!(
                " {} had {} of that.",
                words::kind_and_name(&ran.subject),
                ran.total_ns
            );
        }
        statements.push(Statement::plain(text));
    }
    let stopped: Nanos = threads.iter().map(|thread| thread.stopped_ns).sum();
    statements.extend(text::threads::stopped(stopped, all > 1).map(Statement::plain));
    statements
}

pub(super) fn render(body: &mut Markup, summary: &RunSummary) {
    if summary.threads.is_empty() {
        return;
    }
    body.section("threads", "Threads");
    let threads = sorted(summary);
    let heads = [
        Head::Number("pid"),
        Head::Text("name"),
        Head::Text("CPUs"),
        Head::Number("running in all"),
        Head::Number("waiting"),
        Head::Number("preempted"),
        Head::Number("of it interrupted"),
        Head::Number("stopped"),
        Head::Number("blocked"),
        Head::Number("unknown"),
        Head::Number("migrations"),
        Head::Number("longest wait"),
    ];
    let row = |thread: &&ThreadAccount| {
        let cell = |part: Nanos| Cell::Number(percent_cell(share(part, thread)));
        let cpus: CpuSet = thread.cpus.iter().map(|share| share.cpu).collect();
        vec![
            Cell::Number(thread.tid.to_string()),
            Cell::Text(name(thread)),
            Cell::Text(cpus.to_string()),
            cell(thread.running_ns),
            cell(thread.waiting_ns),
            cell(thread.preempted_ns),
            cell(thread.interrupted_ns),
            cell(thread.stopped_ns),
            cell(thread.blocked_ns),
            cell(thread.unknown_ns),
            Cell::Number(count(thread.migrations)),
            Cell::Number(thread.longest_wait_ns.to_string()),
        ]
    };
    let (first, rest) = threads.split_at(threads.len().min(FEW));
    picture(body, first);
    body.table(
        "Shares of the time that each was followed",
        &heads,
        first.iter().map(row).collect(),
    );
    if !rest.is_empty() {
        body.details(
            &format!("{} more threads, which lost less", rest.len()),
            |body| {
                body.table(
                    "Threads that lost less",
                    &heads,
                    rest.iter().map(row).collect(),
                );
            },
        );
    }
    for thread in threads
        .iter()
        .take(BLOCKS)
        .filter(|thread| !thread.ran_instead.is_empty())
    {
        instead(body, thread);
    }
    body.end();
}

/// What a thread's time is made of.
type Sort = (&'static str, fn(&ThreadAccount) -> Nanos);

/// Interruptions lie within the time that a thread ran.
const SORTS: [Sort; 6] = [
    ("running", |thread| {
        thread.running_ns.saturating_sub(thread.interrupted_ns)
    }),
    ("interrupted", |thread| thread.interrupted_ns),
    ("waiting", |thread| thread.waiting_ns),
    ("blocked", |thread| thread.blocked_ns),
    ("unknown", |thread| thread.unknown_ns),
    ("stopped", |thread| thread.stopped_ns),
];

fn picture(body: &mut Markup, threads: &[&ThreadAccount]) {
    let whole = |thread: &&ThreadAccount| Whole {
        name: format!("{} {}", name(thread), thread.tid),
        shares: SORTS
            .iter()
            .map(|(_, of)| share(of(thread), thread))
            .collect(),
    };
    let drawn = shares::inline(
        "What became of each thread's time",
        "shares of the time that it was followed, those that lost most first",
        &SORTS.map(|(name, _)| name),
        &threads.iter().map(whole).collect::<Vec<_>>(),
    );
    body.chart(None, &drawn);
}

fn instead(body: &mut Markup, thread: &ThreadAccount) {
    let caption = format!("What ran instead of {} (pid {})", name(thread), thread.tid);
    ran(body, &caption, &thread.ran_instead);
}

/// Who had the time, most of it first.
pub(super) fn ran(body: &mut Markup, caption: &str, all: &[RanInstead]) {
    if all.is_empty() {
        return;
    }
    let heads = [
        Head::Text("what"),
        Head::Number("times"),
        Head::Number("total"),
        Head::Number("mean"),
        Head::Number("longest"),
    ];
    let row = |ran: &RanInstead| {
        let detail = words::detail(&ran.subject, ran.threads);
        let mut what = vec![words::kind_and_name(&ran.subject)];
        what.extend(Some(detail).filter(|detail| !detail.is_empty()));
        vec![
            Cell::Lines(what),
            Cell::Number(count(ran.count)),
            Cell::Number(ran.total_ns.to_string()),
            Cell::Number(ran.average_ns().to_string()),
            Cell::Number(ran.max_ns.to_string()),
        ]
    };
    let by_program = RanInstead::by_program(all);
    body.table(
        caption,
        &heads,
        by_program.iter().take(INSTEAD).map(row).collect(),
    );
}

fn sorted(summary: &RunSummary) -> Vec<&ThreadAccount> {
    let mut threads: Vec<&ThreadAccount> = summary.threads.iter().collect();
    threads.sort_by_key(|thread| (Reverse(lost(thread)), thread.tid));
    threads
}

fn lost(thread: &ThreadAccount) -> Nanos {
    thread.waiting_ns + thread.interrupted_ns
}

fn share(part: Nanos, thread: &ThreadAccount) -> f64 {
    part.0 as f64 / thread.followed_ns().0.max(1) as f64
}

fn name(thread: &ThreadAccount) -> String {
    thread.role.clone().unwrap_or_else(|| thread.comm.clone())
}
