//! Followed threads: their time, and what ran instead of them.

use super::Page;
use crate::number::{count, percent, percent_cell, span, times};
use crate::report::{Cell, Column, Row, Table};
use crate::style::{Tone, tame};
use crate::words;
use jitterscope_analyze::RunSummary;
use jitterscope_model::{
    BlockedOn, CpuSet, CpuShare, Nanos, NoReason, PutInOrder, RanInstead, ThreadAccount,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The number of threads in the table; JSON has all.
const ROWS: usize = 24;
/// The number of threads shown one by one.
const BLOCKS: usize = 6;
/// The number of rows about what ran instead of a thread.
const INSTEAD: usize = 8;
/// The number of rows about what a thread was blocked on.
const BLOCKED: usize = 8;
/// The number of reasons in a sentence.
const NAMED: usize = 3;
/// The number of rows about the CPUs of a thread.
const CPUS: usize = 8;

/// The table of all threads by lost time, then individual threads.
pub(crate) fn render(page: &mut Page, heading: &str, summary: &RunSummary) {
    if summary.threads.is_empty() {
        return;
    }
    let threads = by_loss(summary);
    page.heading(heading, "shares of the time that each was followed");
    page.table(table(&threads, ROWS));
    let busy = threads.iter().filter(|thread| !idle(thread));
    for thread in busy.take(BLOCKS) {
        block(page, thread);
    }
}

/// The threads; `shown` of those that wanted a CPU appear in short views.
pub(super) fn table(threads: &[&ThreadAccount], shown: usize) -> Table {
    let row = |(at, thread): (usize, &&ThreadAccount)| {
        let cell = |part: Nanos| Cell::from(percent_cell(share(part, thread)));
        let cpus: CpuSet = thread.cpus.iter().map(|share| share.cpu).collect();
        Row {
            aside: at >= shown || idle(thread),
            ..Row::from([
                name(thread).into(),
                thread.tid.to_string().into(),
                cpus.to_string().into(),
                cell(thread.running_ns),
                cell(thread.waiting_ns),
                cell(thread.preempted_ns),
                cell(thread.interrupted_ns),
                cell(thread.stopped_ns),
                cell(thread.blocked_ns),
                cell(thread.unknown_ns),
                count(thread.migrations).into(),
                thread.longest_wait_ns.to_string().into(),
            ])
        }
    };
    Table {
        title: "Threads, those that lost most first".into(),
        columns: vec![
            Column::text("thread"),
            Column::number("tid"),
            Column::number("CPUs"),
            Column::number("running"),
            Column::number("waiting"),
            Column::number("preempted").of_rank(2),
            Column::number("interrupted"),
            Column::number("stopped").of_rank(4),
            Column::number("blocked"),
            Column::number("unknown").of_rank(3),
            Column::number("migrations").of_rank(5),
            Column::number("longest wait"),
        ],
        rows: threads.iter().enumerate().map(row).collect(),
        aside: "which lost less or never ran",
        ..Table::default()
    }
}

/// How much of the time they waited in which they wanted a CPU.
pub(super) fn headline(page: &mut Page, summary: &RunSummary) {
    let threads = &summary.threads;
    let sum = |of: fn(&ThreadAccount) -> Nanos| threads.iter().map(of).sum::<Nanos>();
    let (ran, waited) = (
        sum(|thread| thread.running_ns),
        sum(|thread| thread.waiting_ns),
    );
    let wanted = Nanos(ran.0.saturating_add(waited.0));
    let run = span(summary.run.duration_ns);
    if threads.is_empty() {
        page.prose(
            Some(Tone::Warning),
            0,
            "No thread was there to be followed.",
        );
        return;
    }
    // Several threads together may have wanted more than the elapsed time.
    let when = match threads.as_slice() {
        [one] => format!(
            "{} (pid {}) wanted a CPU for {wanted} of {run}",
            name(one),
            one.tid
        ),
        several => format!(
            "{} threads wanted a CPU for {wanted} together, in {run}",
            several.len()
        ),
    };
    let text = format!(
        "{when}, and waited {waited} of that for one ({}).",
        percent(waited.0 as f64 / wanted.0.max(1) as f64),
    );
    let bad = waited.0 as f64 >= 0.01 * wanted.0.max(1) as f64;
    page.prose(Some(if bad { Tone::Bad } else { Tone::Strong }), 0, &text);
    if let Some(text) = stopped(sum(|thread| thread.stopped_ns), threads.len() > 1) {
        page.prose(Some(Tone::Warning), 0, &text);
    }
    if let Some(text) = slept(threads) {
        page.prose(None, 0, &text);
    }
}

/// What the threads were blocked on, most time first; `None` if no stacks were recorded, or nothing slept.
fn slept(threads: &[ThreadAccount]) -> Option<String> {
    let rows = || threads.iter().flat_map(|thread| &thread.blocked_on);
    if !rows().any(is_recorded) {
        return None;
    }
    let mut sums: BTreeMap<String, Nanos> = BTreeMap::new();
    for row in rows() {
        let sum = sums.entry(tame(&words::blocked_on(row))).or_default();
        *sum += row.blocked_ns;
    }
    let all: Nanos = sums.values().copied().sum();
    let mut sums: Vec<(String, Nanos)> = sums.into_iter().collect();
    sums.order_by_key(|(name, time)| (Reverse(*time), name.clone()));
    let named = sums.iter().take(NAMED).map(|(name, time)| {
        let share = percent(time.0 as f64 / all.0.max(1) as f64);
        format!("{name} {time} ({share})")
    });
    let mut text = format!(
        "Blocked for {all}: {}",
        named.collect::<Vec<_>>().join("; ")
    );
    match sums.len().saturating_sub(NAMED) {
        0 => {}
        more => text += &format!("; {}", plural(more as u64, "further reason")),
    }
    Some(text + ".")
}

/// Whether the row is of a run that records stacks.
fn is_recorded(row: &BlockedOn) -> bool {
    row.unknown_because != Some(NoReason::Off)
}

/// The time in which it was runnable and did not run.
pub(crate) fn lost(thread: &ThreadAccount) -> Nanos {
    thread.waiting_ns + thread.interrupted_ns
}

/// All threads, by lost time.
pub(crate) fn by_loss(summary: &RunSummary) -> Vec<&ThreadAccount> {
    let mut threads: Vec<&ThreadAccount> = summary.threads.iter().collect();
    threads.order_by_key(|thread| (Reverse(lost(thread)), thread.tid));
    threads
}

/// Whether the thread never wanted a CPU.
pub(crate) fn idle(thread: &ThreadAccount) -> bool {
    thread.running_ns.0 == 0 && lost(thread).0 == 0
}

/// The share of the time in which it was followed.
pub(crate) fn share(part: Nanos, thread: &ThreadAccount) -> f64 {
    part.0 as f64 / thread.followed_ns().0.max(1) as f64
}

/// Its role, or its name.
pub(crate) fn name(thread: &ThreadAccount) -> String {
    match &thread.role {
        Some(role) => tame(role),
        None => tame(&thread.comm),
    }
}

fn block(page: &mut Page, thread: &ThreadAccount) {
    let title = format!("{} {}", thread.tid, name(thread));
    let mut remark = format!("followed for {}", span(thread.followed_ns()));
    match (thread.appeared, thread.exited) {
        (true, true) => remark += ", its whole life",
        (true, false) => remark += ", from its beginning",
        (false, true) => remark += ", to its end",
        (false, false) => {}
    }
    page.name(&title, &remark);
    let text = format!(
        "Put on a CPU {}, {} voluntary and {} involuntary switches, {}, {}.",
        times(thread.runs),
        count(thread.voluntary_switches),
        count(thread.involuntary_switches),
        plural(thread.migrations, "migration"),
        plural(thread.page_faults, "page fault"),
    );
    page.prose(None, 2, &text);
    let text = format!(
        "Ran for {}, of which {} under interrupts; waited {}, of which {} after being preempted; blocked {}.",
        thread.running_ns,
        thread.interrupted_ns,
        thread.waiting_ns,
        thread.preempted_ns,
        thread.blocked_ns
    );
    page.prose(None, 2, &text);
    if let Some(text) = stopped(thread.stopped_ns, false) {
        page.prose(Some(Tone::Warning), 2, &text);
    }
    if thread.unknown_ns > Nanos::ZERO {
        let text = format!(
            "What it did for {} ({}) is not known: no record tells, or records were lost.",
            thread.unknown_ns,
            percent(share(thread.unknown_ns, thread))
        );
        page.prose(Some(Tone::Warning), 2, &text);
    }
    if thread.cpus.len() > 1 {
        page.table(cpus(thread));
    }
    if thread.blocked_on.iter().any(is_recorded) {
        page.table(blocked(thread));
    }
    let title = format!("What ran instead of {} (tid {})", name(thread), thread.tid);
    instead(page, &thread.ran_instead, title, "ran instead");
}

fn cpus(thread: &ThreadAccount) -> Table {
    let row = |(at, share): (usize, &CpuShare)| Row {
        aside: at >= CPUS,
        ..Row::from([
            share.cpu.to_string().into(),
            count(share.runs).into(),
            share.running_ns.to_string().into(),
        ])
    };
    Table {
        title: format!("CPUs of {} (tid {})", name(thread), thread.tid),
        columns: vec![
            Column::text("CPU"),
            Column::number("times put there"),
            Column::number("running"),
        ],
        rows: thread.cpus.iter().enumerate().map(row).collect(),
        aside: "where it ran less",
        ..Table::default()
    }
}

/// What a thread was blocked on.
fn blocked(thread: &ThreadAccount) -> Table {
    let row = |(at, one): (usize, &BlockedOn)| {
        let mean = Nanos(one.blocked_ns.0 / one.count.max(1));
        Row {
            minor: true,
            aside: at >= BLOCKED,
            ..Row::from([
                tame(words::reason_name(&one.reason)).into(),
                tame(words::shown_by(one)).into(),
                count(one.count).into(),
                mean.to_string().into(),
                one.max_ns.to_string().into(),
                one.blocked_ns.to_string().into(),
                percent_cell(one.blocked_ns.0 as f64 / thread.blocked_ns.0.max(1) as f64).into(),
            ])
        }
    };
    Table {
        title: format!("What {} (tid {}) was blocked on", name(thread), thread.tid),
        columns: vec![
            Column::text("blocked on"),
            Column::text("seen in"),
            Column::number("times"),
            Column::number("mean"),
            Column::number("max"),
            Column::number("total"),
            Column::number("of blocked"),
        ],
        rows: thread.blocked_on.iter().enumerate().map(row).collect(),
        aside: "which took less",
        ..Table::default()
    }
}

/// Count, shortest, mean and longest for each culprit that ran instead; `head` is the head of their column.
pub(super) fn instead(page: &mut Page, ran: &[RanInstead], title: String, head: &str) {
    let ran = RanInstead::by_program(ran);
    if ran.is_empty() {
        return;
    }
    let row = |(at, one): (usize, &RanInstead)| {
        let name = Cell {
            detail: words::detail(&one.subject, one.threads),
            ..words::kind_and_name(&one.subject).into()
        };
        Row {
            minor: true,
            aside: at >= INSTEAD,
            ..Row::from([
                name,
                count(one.count).into(),
                one.min_ns.to_string().into(),
                one.average_ns().to_string().into(),
                one.max_ns.to_string().into(),
                one.total_ns.to_string().into(),
            ])
        }
    };
    page.table(Table {
        title,
        columns: vec![
            Column::text(head),
            Column::number("count"),
            Column::number("min"),
            Column::number("mean"),
            Column::number("max"),
            Column::number("total"),
        ],
        rows: ran.iter().enumerate().map(row).collect(),
        aside: "which took less",
        ..Table::default()
    });
}

/// The text on time in which threads were stopped.
pub(crate) fn stopped(time: Nanos, several: bool) -> Option<String> {
    let (them, they) = if several {
        ("them", "they")
    } else {
        ("it", "it")
    };
    (time > Nanos::ZERO).then(|| {
        format!(
            "A signal or a tracer kept {them} stopped for {time}: {they} neither waited for a CPU nor slept then."
        )
    })
}

fn plural(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}
