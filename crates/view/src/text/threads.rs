//! Followed threads: their time, and what ran instead of them.

use super::Page;
use crate::number::{count, percent, percent_cell, span, times};
use crate::style::{Style, Tone, fit, tame};
use crate::words;
use jitterscope_analyze::RunSummary;
use jitterscope_model::{CpuSet, Nanos, RanInstead, ThreadAccount};

/// The number of threads in the table; JSON has all.
const ROWS: usize = 24;
/// The number of threads shown one by one.
const BLOCKS: usize = 6;
/// The number of lines about what ran instead of a thread.
const INSTEAD: usize = 8;
/// The number of lines about the CPUs of a thread.
const CPUS: usize = 8;

/// The table of all threads by lost time, then individual threads.
pub(crate) fn render(page: &mut Page, heading: &str, summary: &RunSummary) {
    if summary.threads.is_empty() {
        return;
    }
    let mut threads = by_loss(summary);
    page.heading(heading, "shares of the time that each was followed");
    page.line(&head(page.style));
    let all = threads.len();
    // Threads that never wanted a CPU share one line.
    threads.retain(|thread| !idle(thread));
    for thread in threads.iter().take(ROWS) {
        row(page, thread);
    }
    if all > threads.len() {
        page.prose(
            Some(Tone::Dim),
            2,
            &format!("{} that never ran", all - threads.len()),
        );
    }
    if threads.len() > ROWS {
        let text = format!(
            "{} more threads, which lost less (--json lists them)",
            threads.len() - ROWS
        );
        page.prose(Some(Tone::Dim), 2, &text);
    }
    for thread in threads.iter().take(BLOCKS) {
        block(page, thread);
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
}

/// The heads of [`row`]'s columns.
pub(super) fn head(style: Style) -> String {
    style.paint(
        Tone::Dim,
        "    tid  name             CPUs   running  waiting  blocked  interr. longest wait",
    )
}

/// The time in which it was runnable and did not run.
pub(crate) fn lost(thread: &ThreadAccount) -> Nanos {
    thread.waiting_ns + thread.interrupted_ns
}

/// All threads, by lost time.
pub(crate) fn by_loss(summary: &RunSummary) -> Vec<&ThreadAccount> {
    let mut threads: Vec<&ThreadAccount> = summary.threads.iter().collect();
    threads.sort_by_key(|thread| (std::cmp::Reverse(lost(thread)), thread.tid));
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

/// A thread in a line.
pub(super) fn row(page: &mut Page, thread: &ThreadAccount) {
    let cell = |part: Nanos| percent_cell(share(part, thread));
    let cpus: CpuSet = thread.cpus.iter().map(|share| share.cpu).collect();
    let line = format!(
        "{:>7}  {:<15}  {:<6} {:>7} {:>8} {:>8} {:>8} {:>12}",
        thread.tid,
        fit(&name(thread), 15),
        fit(&cpus.to_string(), 6),
        cell(thread.running_ns),
        cell(thread.waiting_ns),
        cell(thread.blocked_ns),
        cell(thread.interrupted_ns),
        thread.longest_wait_ns.to_string(),
    );
    page.line(&line);
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
    page.heading(&title, &remark);
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
        for cpu in thread.cpus.iter().take(CPUS) {
            let line = format!(
                "{:>12}  [{:03}]  {:>10}",
                count(cpu.runs),
                cpu.cpu.0,
                cpu.running_ns.to_string()
            );
            page.line(&line);
        }
        if thread.cpus.len() > CPUS {
            page.prose(
                Some(Tone::Dim),
                12,
                &format!("{} more CPUs", thread.cpus.len() - CPUS),
            );
        }
    }
    instead(page, &thread.ran_instead, "ran instead");
}

/// Count, shortest, mean and longest for each culprit that ran instead of the thread.
pub(super) fn instead(page: &mut Page, ran: &[RanInstead], what: &str) {
    let ran = RanInstead::by_program(ran);
    if ran.is_empty() {
        return;
    }
    let head = format!("       count      min      avg      max     total  {what}");
    page.line(&page.style.paint(Tone::Dim, &head));
    for one in ran.iter().take(INSTEAD) {
        let numbers = format!(
            "{:>12} {:>8} {:>8} {:>8} {:>9}  ",
            count(one.count),
            one.min_ns.to_string(),
            one.average_ns().to_string(),
            one.max_ns.to_string(),
            one.total_ns.to_string(),
        );
        let room = page.style.columns().saturating_sub(numbers.len());
        let detail = words::detail(&one.subject, one.threads);
        let detail = if detail.is_empty() {
            detail
        } else {
            format!("  {detail}")
        };
        let what = fit(
            &format!("{}{detail}", words::kind_and_name(&one.subject)),
            room,
        );
        page.line(&format!("{numbers}{what}"));
    }
    if ran.len() > INSTEAD {
        let rest: Nanos = ran.iter().skip(INSTEAD).map(|one| one.total_ns).sum();
        let text = format!(
            "{} more, {rest} together (--json lists them)",
            ran.len() - INSTEAD
        );
        page.prose(Some(Tone::Dim), 12, &text);
    }
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
