//! The time of followed threads.

use super::markup::{Cell, Head, Markup};
use crate::chart::shares::{self, Whole};
use crate::number::{count, percent_cell};
use crate::text::threads::{by_loss, name, share};
use crate::words;
use jitterscope_analyze::RunSummary;
use jitterscope_model::{CpuSet, Nanos, RanInstead, ThreadAccount};

/// The number of threads shown at first.
const FEW: usize = 16;
/// The number of threads with a list of what ran instead.
const BLOCKS: usize = 8;
const INSTEAD: usize = 12;

pub(super) fn render(body: &mut Markup, summary: &RunSummary) {
    if summary.threads.is_empty() {
        return;
    }
    body.section("threads", "Threads");
    let threads = by_loss(summary);
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

/// A component of a thread's time.
type Sort = (&'static str, fn(&ThreadAccount) -> Nanos);

/// Interruptions lie within the running time.
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

/// What had the CPU instead, by time.
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
