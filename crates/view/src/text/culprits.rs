//! The culprits by total, then the unexplained time.

use super::Page;
use crate::number::{count, percent, percent_cell};
use crate::style::{Tone, fit, fit_apart, tame, wrap};
use crate::words;
use jitterscope_analyze::{AttributionSummary, CulpritRow, RunSummary, SenderRow};
use jitterscope_model::{CulpritKind, ExecutionContext, Nanos};
use std::collections::HashSet;

/// The number of culprits shown; JSON has all.
const SHOWN: usize = 12;
/// The column of culprits.
const NAME: usize = 39;
/// The column of their explanations.
const PHRASE: usize = 8;
/// The largest number of lines of an explanation.
const PHRASE_LINES: usize = 3;
/// Rows below this share have no explanation.
const EXPLAINED_FROM: f64 = 0.001;

pub(super) fn render(page: &mut Page, summary: &RunSummary, attribution: &AttributionSummary) {
    // Without proof no culprit is named.
    if attribution.stalls == 0 || !attribution.proven {
        return;
    }
    let remark = format!("{} explained", percent(attribution.explained_fraction));
    let (title, head) = match summary.wakeup {
        Some(_) => (
            "WHO MADE IT LATE",
            "   share   wake-ups     mean      max  culprit",
        ),
        None => (
            "WHO STOLE IT",
            "   share     stalls     mean      max  culprit",
        ),
    };
    page.heading(title, &remark);
    page.line(&page.style.paint(Tone::Dim, head));
    let sleeper = summary.wakeup.is_some();
    let mut printed = HashSet::new();
    rows(
        page,
        sleeper,
        &attribution.culprits,
        ["culprit", "culprits"],
        &mut printed,
    );
    if !attribution.unexplained.classes.is_empty() {
        let text = format!(
            "not explained by kernel activity: {}",
            percent(attribution.unexplained.share)
        );
        page.line(&page.style.paint(Tone::Warning, &text));
        rows(
            page,
            sleeper,
            &attribution.unexplained.classes,
            ["class", "classes"],
            &mut printed,
        );
        if let Some(text) = words::possibilities(summary) {
            page.prose(None, 2, &text);
        }
    }
}

/// `printed`: phrases that appear above; each is printed once.
fn rows(
    page: &mut Page,
    sleeper: bool,
    rows: &[CulpritRow],
    [one, several]: [&str; 2],
    printed: &mut HashSet<String>,
) {
    for row in rows.iter().take(SHOWN) {
        let same = |other: &&CulpritRow| {
            other.subject.kind() == row.subject.kind()
                && words::name(&other.subject) == words::name(&row.subject)
        };
        let explanation = (row.share >= EXPLAINED_FROM).then(|| words::row_explanation(row));
        let unprinted = explanation.filter(|phrase| printed.insert(phrase.clone()));
        let detailed = sleeper || rows.iter().filter(same).count() > 1;
        let room = page.style.columns() - NAME;
        let name = name_among(rows, row, room);
        let row = &CulpritRow {
            subject: words::group_apart(
                &row.subject,
                rows.iter().map(|other| &other.subject),
                page.style.columns() - PHRASE,
            ),
            ..row.clone()
        };
        culprit(page, row, &name, detailed, unprinted);
    }
    let rest = &rows[SHOWN.min(rows.len())..];
    if !rest.is_empty() {
        let share: f64 = rest.iter().map(|row| row.share).sum();
        let total: Nanos = rest.iter().map(|row| row.total_ns).sum();
        let text = format!(
            "{:>8}  {} more {}, {total} together (--json lists them)",
            percent_cell(share),
            rest.len(),
            if rest.len() == 1 { one } else { several }
        );
        page.line(&page.style.paint(Tone::Dim, &text));
        // Many names together may hide a culprit that would rank higher.
        let least = rows.get(SHOWN - 1).map_or(Nanos::ZERO, |row| row.total_ns);
        let common = words::in_common(rest.iter().map(|row| (&row.subject, row.total_ns)));
        if let Some((text, time)) = common
            && rest.len() > 1
            && time > least
        {
            page.line(&format!("{:>8}  {text}", ""));
        }
    }
}

/// A row's name, cut to the room beside its kind so that no other row has the same text.
fn name_among(rows: &[CulpritRow], row: &CulpritRow, room: usize) -> String {
    let room = room.saturating_sub(words::kind(&row.subject).len() + 1);
    let of_kind = |other: &&CulpritRow| other.subject.kind() == row.subject.kind();
    let others = rows
        .iter()
        .filter(of_kind)
        .map(|other| words::name(&other.subject));
    let others: Vec<_> = others.collect();
    fit_apart(
        &words::name(&row.subject),
        others.iter().map(|name| &**name),
        room,
    )
}

/// `detailed`: the detail says more than the phrase, or it alone distinguishes this row. `explanation`: `None` if a row
/// above has the same.
fn culprit(
    page: &mut Page,
    row: &CulpritRow,
    name: &str,
    detailed: bool,
    explanation: Option<String>,
) {
    let numbers = format!(
        "{:>8} {:>10} {:>8} {:>8}  ",
        percent_cell(row.share),
        count(row.count),
        row.mean_ns.to_string(),
        row.max_ns.to_string()
    );
    let room = page.style.columns() - NAME;
    let kind = words::kind(&row.subject);
    let explained = row.subject.kind().is_explained();
    let tone = if explained {
        Tone::Strong
    } else {
        Tone::Warning
    };
    let mut line = format!("{numbers}{kind} {}", page.style.paint(tone, name));
    // The detail stands beside the name if it fits completely, else it follows the phrase.
    let used = kind.len() + 1 + unicode_width::UnicodeWidthStr::width(name);
    // If the phrase appears here or above, the detail does not repeat it.
    let explained_here = row.share >= EXPLAINED_FROM;
    let detail = if explained_here {
        words::row_further_detail
    } else {
        words::row_detail
    };
    let detail = detail(row);
    // The phrase of an unexplained class is sufficient.
    let shows_detail = !detail.is_empty() && (detailed || explained);
    let width = unicode_width::UnicodeWidthStr::width(detail.as_str());
    // Small shares have no further lines: a cut detail distinguishes rows.
    let left = room.saturating_sub(used + 2);
    let beside =
        shows_detail && (width <= left || (row.share < EXPLAINED_FROM && detailed && left > 8));
    if beside {
        line += &page
            .style
            .paint(Tone::Dim, &format!("  {}", fit(&detail, left)));
    }
    page.line(&line);
    if row.share < EXPLAINED_FROM {
        return;
    }
    let mut phrase: Vec<String> = explanation.into_iter().collect();
    let telling = matches!(
        row.subject.kind(),
        CulpritKind::Thread | CulpritKind::Kworker | CulpritKind::Irq
    );
    if !beside && (telling || detailed) && !detail.is_empty() {
        phrase.push(detail);
    }
    phrase.extend(row.sender.as_ref().map(|sender| sender_text(row, sender)));
    if phrase.is_empty() {
        return;
    }
    for line in wrap(&phrase.join("; "), page.style.columns() - PHRASE)
        .into_iter()
        .take(PHRASE_LINES)
    {
        page.line(&format!(
            "{}{}",
            " ".repeat(PHRASE),
            page.style.paint(Tone::Dim, &line)
        ));
    }
}

/// `woken by cron (pid 12, CPU 0), 12 of 40 times`; if not all triggers are known, `in all 12 known cases of 40`.
fn sender_text(row: &CulpritRow, sender: &SenderRow) -> String {
    let verb = words::sender_verb(row.subject.kind());
    let mut where_from = Vec::new();
    // The thread beneath a softirq is only named: it is not the trigger.
    let tid = sender
        .tid
        .filter(|_| sender.context == ExecutionContext::Thread);
    where_from.extend(tid.map(|tid| format!("pid {tid}")));
    where_from.extend(sender.cpu.map(|cpu| format!("CPU {cpu}")));
    let gone = || sender.tid.map(|_| words::ENDED.to_owned());
    let named = sender.comm.as_ref().or(sender.beneath.as_ref());
    let thread = named.map(|comm| tame(comm)).or_else(gone);
    let mut text = format!(
        "{verb} by {}",
        words::sent_from(sender.context, thread.as_deref())
    );
    if !where_from.is_empty() {
        text += &format!(" ({})", where_from.join(", "));
    }
    if let Some(via) = &sender.via {
        text += &format!(" through {}", tame(via));
    }
    // A stall may have several parts of a culprit, each with its own sender.
    let known = row.senders_known.max(sender.count);
    let all = row.count.max(known);
    text += &match (sender.count == known, known == all) {
        (true, true) => String::new(),
        (false, true) => format!(", {} of {} times", count(sender.count), count(all)),
        (true, false) if known == 1 => format!(", in the one known case of {}", count(all)),
        (true, false) => format!(", in all {} known cases of {}", count(known), count(all)),
        (false, false) => {
            format!(
                ", in {} of {} known cases of {}",
                count(sender.count),
                count(known),
                count(all)
            )
        }
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{CpuId, Subject, Task};

    fn row(subject: Subject) -> CulpritRow {
        CulpritRow {
            subject,
            threads: 1,
            thread_names: Vec::new(),
            recorder: None,
            told_apart: None,
            explanation: String::new(),
            sender: None,
            senders_known: 0,
            count: 12,
            per_sec: 1.2,
            total_ns: Nanos(12),
            share: 0.5,
            mean_ns: Nanos(1),
            max_ns: Nanos(1),
        }
    }

    #[test]
    fn names_that_would_be_cut_to_the_same_text_are_cut_apart() {
        let of = |group: &str| {
            row(Subject::Ipi(
                format!("/system.slice/very-long-folder/{group}").into(),
            ))
        };
        let rows = [of("inner"), of("outer"), row(Subject::Ipi("short".into()))];
        let names: Vec<_> = rows.iter().map(|row| name_among(&rows, row, 20)).collect();
        assert_eq!(names, ["../inner", "../outer", "short"]);
        let alone = name_among(&rows[..1], &rows[0], 20);
        assert_eq!(alone, "/system.slice/..");
    }

    #[test]
    fn a_thread_has_a_name_and_an_interrupt_has_none() {
        let told_of = |context, comm: Option<&str>, tid, times, known| {
            let name = comm.map(Into::into);
            let [comm, beneath] = match context {
                ExecutionContext::Softirq => [None, name],
                _ => [name, None],
            };
            let sender = SenderRow {
                context,
                comm,
                tid,
                cpu: Some(CpuId(0)),
                via: None,
                beneath,
                count: times,
            };
            let thread = Subject::Thread(Task {
                comm: "evil".into(),
                ..Task::default()
            });
            let row = CulpritRow {
                senders_known: known,
                ..row(thread)
            };
            sender_text(&row, &sender)
        };
        let text_of = |context, comm, tid, times| told_of(context, comm, tid, times, 12);
        let (thread, interrupt) = (ExecutionContext::Thread, ExecutionContext::Interrupt);
        let softirq = ExecutionContext::Softirq;
        assert_eq!(
            text_of(softirq, Some("udp-send"), None, 12),
            "woken by a softirq on top of udp-send (CPU 0)"
        );
        assert_eq!(
            text_of(softirq, None, None, 12),
            "woken by a softirq (CPU 0)"
        );
        assert_eq!(
            text_of(thread, Some("cron"), Some(12), 12),
            "woken by cron (pid 12, CPU 0)"
        );
        assert_eq!(
            text_of(thread, None, Some(12), 12),
            "woken by a thread that has ended (pid 12, CPU 0)"
        );
        assert_eq!(
            text_of(interrupt, None, None, 3),
            "woken by an interrupt (CPU 0), 3 of 12 times"
        );
        // Nothing is said about unknown triggers: they may have been the same.
        let cron = |times, known| told_of(thread, Some("cron"), Some(12), times, known);
        assert_eq!(
            cron(3, 3),
            "woken by cron (pid 12, CPU 0), in all 3 known cases of 12"
        );
        assert_eq!(
            cron(1, 1),
            "woken by cron (pid 12, CPU 0), in the one known case of 12"
        );
        assert_eq!(
            cron(3, 4),
            "woken by cron (pid 12, CPU 0), in 3 of 4 known cases of 12"
        );
    }
}
