//! Plans, their outcomes, rollbacks and states as text.

use super::competitors::competes;
use super::plan_reasons::{
    boot_by_hand, change_reason, knob_notice, lasts_because, left_threads, no_time, skip_reason,
    stays, too_little,
};
use super::refusals::{forbidden, gone, not_undone, refusal, refused_with};
use crate::lines::{Lines, counted, cpus_text};
use crate::number::utc;
use crate::style::{Style, fit};
use jitterscope_model::{CpuSet, visible};
use jitterscope_tune::{
    ApplyReport, BootLine, Change, ChangeReason, InForceBy, InterruptDiff, LeftTogether, NowIs, Op,
    OpFamily, Outcome, Plan, RollbackReport, SkipReason, Skipped, Status, Undoing, called,
};
use std::fmt::Write;

/// The number of named threads; the rest is counted.
const SHOWN_OF_A_KIND: usize = 3;

/// Lines that the plan leaves for later output and the prompt.
const AFTER: usize = 4;

/// A plan on one screen: each change and each reason if they fit or with `full`, else one line for each knob.
#[must_use]
pub fn plan(plan: &Plan, full: bool, style: Style) -> String {
    let whole = whole(plan, style);
    let room = style.lines().saturating_sub(AFTER);
    if full || whole.lines().count() <= room {
        return whole;
    }
    let (head, foot) = (head(plan, style).into_text(), summed_up(plan, style));
    let room = room.saturating_sub(head.lines().count() + foot.lines().count());
    head + &by_knob(plan, room, style) + &foot
}

fn head(plan: &Plan, style: Style) -> Lines {
    let mut out = Lines::new(style);
    let _ = writeln!(
        out,
        "Plan for {} (housekeeping: {}): {}",
        cpus_text(&plan.goal.isolated),
        plan.goal.housekeeping,
        counted(plan.changes.len(), "change")
    );
    for competitor in &plan.competitors {
        out.wrapped("! ", &competes(competitor));
    }
    out
}

/// One line for each knob with changes, as many as fit.
fn by_knob(plan: &Plan, room: usize, style: Style) -> String {
    let mut out = Lines::new(style);
    let knobs: Vec<&[Change]> = plan.changes.chunk_by(|a, b| a.knob == b.knob).collect();
    let shown = match knobs.len() <= room {
        true => knobs.len(),
        false => room.saturating_sub(1),
    };
    for changes in &knobs[..shown] {
        let Some(first) = changes.first() else {
            continue;
        };
        let changes = counted(changes.len(), "change");
        let risk = format!("{} risk", first.risk.as_str());
        let why = match &first.why {
            ChangeReason::Measured(of) => format!("{} of {}", of.total_ns, of.culprits.join(", ")),
            other => change_reason(other),
        };
        let line = format!("  {:<16} {changes:>12}  {risk:<12} {why}", first.knob);
        let _ = writeln!(out, "{}", fit(&line, style.columns()));
    }
    if knobs.len() > shown {
        let _ = writeln!(out, "  and {} more knobs (--full)", knobs.len() - shown);
    }
    out.into_text()
}

/// The number of unchanged knobs and remaining threads; the reader's own tasks are listed in full.
fn summed_up(plan: &Plan, style: Style) -> String {
    let mut out = Lines::new(style);
    if let Some(line) = &plan.boot {
        boot(&mut out, line);
    }
    let threads = |left: &LeftTogether| {
        left.families
            .iter()
            .map(|family| family.threads)
            .sum::<usize>()
    };
    let stay: usize = plan.left.iter().map(threads).sum();
    let mut facts = Vec::new();
    facts.extend((stay > 0).then(|| format!("{} stay on the CPUs", counted(stay, "thread"))));
    let of = |wanted: fn(&SkipReason) -> bool| {
        let skipped = plan.skipped.iter().filter(|skipped| wanted(&skipped.why));
        skipped.map(|skipped| skipped.knob).collect::<Vec<_>>()
    };
    let at_boot = of(|why| matches!(why, SkipReason::NeedsReboot { .. }));
    if !at_boot.is_empty() {
        facts.push(format!(
            "needs a reboot, which --persist prepares: {}",
            at_boot.join(", ")
        ));
    }
    let others = plan.skipped.len() - at_boot.len();
    facts.extend((others > 0).then(|| format!("{} not changed", counted(others, "more knob"))));
    if !facts.is_empty() {
        out.wrapped("", &format!("{}.", facts.join("; ")));
    }
    for note in &plan.notes {
        out.wrapped("Note: ", &knob_notice(note));
    }
    out.push_str("Each change and each reason: --full.\n");
    out.into_text()
}

/// Each change, and each reason for no change.
fn whole(plan: &Plan, style: Style) -> String {
    let mut out = head(plan, style);
    let mut knob = "";
    let mut alike = 0;
    for change in &plan.changes {
        if change.knob != knob {
            more(&mut out, alike);
            alike = 0;
            knob = change.knob;
            let _ = write!(out, "\n{knob}  (risk {})\n", change.risk.as_str());
            out.wrapped("  ", &change_reason(&change.why));
        }
        if change.op.family().is_some() {
            alike += 1;
            if alike > SHOWN_OF_A_KIND {
                continue;
            }
        }
        out.wrapped(
            "  - ",
            &format!(
                "{}: {} -> {}",
                change.op.what(),
                change.op.from_text(),
                change.op.to_text()
            ),
        );
        if let Op::PutFile { to, .. } = &change.op {
            for line in to.lines().filter(|line| !line.starts_with('#')) {
                let _ = writeln!(out, "      {}", visible(line));
            }
        }
    }
    more(&mut out, alike);
    if let Some(line) = &plan.boot {
        boot(&mut out, line);
    }
    staying(&mut out, plan);
    let (little, skipped): (Vec<&Skipped>, Vec<&Skipped>) = plan
        .skipped
        .iter()
        .partition(|s| matches!(s.why, SkipReason::Negligible { .. }));
    let reported = |all: &[&Skipped]| -> Vec<(&str, String)> {
        all.iter().map(|s| (s.knob, skip_reason(&s.why))).collect()
    };
    let (little, skipped) = (reported(&little), reported(&skipped));
    listed(
        &mut out,
        "Not changed",
        skipped.iter().map(|(knob, why)| (*knob, why.as_str())),
    );
    listed(
        &mut out,
        &format!(
            "Not changed, for it is {} (name it with --only)",
            too_little()
        ),
        little.iter().map(|(knob, why)| (*knob, why.as_str())),
    );
    for note in &plan.notes {
        out.wrapped("\nNote: ", &knob_notice(note));
    }
    out.into_text()
}

/// How to apply a plan that was only shown.
#[must_use]
pub fn how_to_apply(plan: &Plan, persist: bool, style: Style) -> String {
    let mut out = Lines::new(style);
    if plan.changes.is_empty() {
        return out.into_text();
    }
    let last = if persist {
        ""
    } else {
        " (so that it lasts: --persist)"
    };
    out.wrapped(
        "\n",
        &format!("Nothing was changed. Apply it by `tune apply` with the same arguments{last}."),
    );
    out.into_text()
}

fn more(out: &mut Lines, alike: usize) {
    if alike > SHOWN_OF_A_KIND {
        let _ = writeln!(
            out,
            "  - and {} more like these (all of them: --json)",
            alike - SHOWN_OF_A_KIND
        );
    }
}

fn boot(out: &mut Lines, line: &BootLine) {
    out.push_str("\nKernel command line\n");
    let _ = writeln!(out, "  + {}", visible(&line.add.join(" ")));
    out.wrapped("  ", &boot_by_hand(&line.by_hand));
}

/// Remaining threads, by reason.
fn staying(out: &mut Lines, plan: &Plan) {
    let rows: Vec<(String, &str)> = plan
        .left
        .iter()
        .map(|left| (left_threads(left), stays(left.because)))
        .collect();
    listed(
        out,
        "Stays on the CPUs",
        rows.iter().map(|(what, why)| (what.as_str(), *why)),
    );
}

fn listed<'a>(out: &mut Lines, title: &str, items: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut first = true;
    for (what, why) in items {
        if first {
            out.wrapped("\n", title);
            first = false;
        }
        out.wrapped("  - ", &format!("{what}: {why}"));
    }
}

/// The outcome of an apply.
#[must_use]
pub fn applied(plan: &Plan, report: &ApplyReport, style: Style) -> String {
    let count =
        |wanted: fn(&Outcome) -> bool| report.applied.iter().filter(|a| wanted(&a.outcome)).count();
    let done = count(|o| matches!(o, Outcome::Applied { .. }));
    let pending = count(|o| matches!(o, Outcome::Pending { .. }));
    let gone = count(|o| matches!(o, Outcome::Gone { .. }));
    let managed = count(Outcome::is_managed);
    let refused = report.failures().count() - managed;
    let counts: Vec<String> = [
        (done, "made"),
        (pending, "pending"),
        (managed, "left to the kernel, which manages them"),
        (refused, "refused"),
        (gone, "gone before the change"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, what)| format!("{n} {what}"))
    .collect();
    let cpus = cpus_text(&plan.goal.isolated);
    let mut out = Lines::new(style);
    let merged = if report.merged {
        " (added to what was applied before)"
    } else {
        ""
    };
    match counts.as_slice() {
        // The plan has the reasons, and so has the error if the user named the knob.
        [] if plan.skipped.iter().any(|skipped| skipped.why.is_denial()) => {
            out.wrapped("", &format!("Nothing was applied for {cpus}."));
        }
        [] => out.wrapped(
            "",
            &format!("Nothing was applied for {cpus}: there was nothing to change."),
        ),
        _ => out.wrapped(
            "",
            &format!("Changes for {cpus}: {}{merged}", counts.join(", ")),
        ),
    }
    let mut knobs: Vec<(&str, usize, usize)> = Vec::new();
    for a in &report.applied {
        let ok = usize::from(a.outcome.is_success());
        match knobs.last_mut() {
            Some((knob, all, good)) if *knob == a.knob => {
                *all += 1;
                *good += ok;
            }
            _ => knobs.push((a.knob, 1, ok)),
        }
    }
    for (knob, all, good) in knobs {
        let _ = writeln!(out, "  {knob:<17}{good} of {all}");
    }
    let pending = report.applied.iter().filter_map(|a| match &a.outcome {
        Outcome::Pending { effective } => Some((
            a.path.clone(),
            format!(
                "still on {}, until it next fires",
                effective
                    .parse::<CpuSet>()
                    .map_or_else(|_| effective.clone(), |cpus| cpus_text(&cpus))
            ),
        )),
        _ => None,
    });
    let pending: Vec<(String, String)> = pending.collect();
    listed(
        &mut out,
        "Pending",
        pending.iter().map(|(a, b)| (a.as_str(), b.as_str())),
    );
    let later = report
        .applied
        .iter()
        .filter(|a| matches!(a.outcome, Outcome::Applied { .. }));
    later_in_force(
        &mut out,
        "In force later",
        later.map(|a| (a.knob, a.in_force_by.as_ref())),
    );
    let failed: Vec<(String, String)> = report
        .failures()
        .map(|a| (format!("{} -> {}", a.path, a.to), refusal(&a.outcome)))
        .collect();
    listed(
        &mut out,
        "Refused",
        failed.iter().map(|(a, b)| (a.as_str(), b.as_str())),
    );
    staying(&mut out, plan);
    if report.not_tried > 0 {
        let _ = write!(
            out,
            "\nStopped there; {} not tried.\n",
            counted(report.not_tried, "change")
        );
    }
    if let Some(line) = &plan.boot {
        boot(&mut out, line);
    }
    for note in &plan.notes {
        out.wrapped("\nNote: ", &knob_notice(note));
    }
    if !report.applied.is_empty() {
        out.push_str("\nBack to what was: tune rollback. What holds: tune status.\n");
    }
    out.into_text()
}

/// Knobs whose values take effect later, each with the time.
fn later_in_force<'a>(
    out: &mut Lines,
    title: &str,
    changes: impl Iterator<Item = (&'a str, Option<&'a InForceBy>)>,
) {
    let mut rows: Vec<(&str, String)> = Vec::new();
    for (knob, by) in changes {
        // Drop-ins are for the next boot, as expected.
        let Some(by) = by.filter(|by| !matches!(by, InForceBy::Now | InForceBy::AfterReboot))
        else {
            continue;
        };
        let row = (knob, when(by));
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    listed(
        out,
        title,
        rows.iter().map(|(knob, when)| (*knob, when.as_str())),
    );
}

/// The time of effect in words.
fn when(by: &InForceBy) -> String {
    match by {
        InForceBy::Now => "now".into(),
        InForceBy::AtLatest {
            at_realtime_ns,
            within_ns,
            shown_by,
        } => {
            let at = utc(*at_realtime_ns);
            let shown = if shown_by.is_empty() {
                String::new()
            } else {
                format!("; {shown_by} shows it")
            };
            format!("by {at} UTC, within {within_ns}: what is queued keeps its old delay{shown}")
        }
        InForceBy::AtEvent { event } => format!("when {event}"),
        InForceBy::AfterReboot => "at the next boot".into(),
        InForceBy::Unknown { cause } => format!("that cannot be told: {}", no_time(cause)),
    }
}

/// The refused changes of an apply, one text each.
#[must_use]
pub fn refused(report: &ApplyReport) -> Vec<String> {
    let failures: Vec<_> = report.refused().collect();
    let mut texts: Vec<String> = failures
        .iter()
        .take(SHOWN_OF_A_KIND)
        .map(|a| format!("{} {} -> {}: {}", a.knob, a.path, a.to, refusal(&a.outcome)))
        .collect();
    if failures.len() > SHOWN_OF_A_KIND {
        texts.push(format!("and {} more", failures.len() - SHOWN_OF_A_KIND));
    }
    texts
}

#[must_use]
pub fn rolled_back(report: &RollbackReport, style: Style) -> String {
    let count =
        |wanted: fn(&Undoing) -> bool| report.steps.iter().filter(|s| wanted(&s.undoing)).count();
    let mut done = format!(
        "Rolled back: {} restored",
        count(|u| *u == Undoing::Restored)
    );
    for (n, words) in [
        (count(|u| *u == Undoing::WasOriginal), "were as before"),
        (
            count(|u| *u == Undoing::UndoneByReboot),
            "undone by the reboot",
        ),
        (count(|u| matches!(u, Undoing::Gone { .. })), "gone since"),
        (report.inherited_freed, "younger threads freed as well"),
    ] {
        if n > 0 {
            let _ = write!(done, ", {n} {words}");
        }
    }
    if report.stays > 0 {
        let _ = write!(done, "; {} stay applied", counted(report.stays, "change"));
    }
    let mut out = Lines::new(style);
    out.wrapped("", &done);
    let steps = report
        .steps
        .iter()
        .map(|s| (s.knob.as_str(), s.in_force_by.as_ref()));
    later_in_force(&mut out, "In force again later", steps);
    let lasting: Vec<(&str, String)> = report
        .lasting
        .iter()
        .map(|l| (l.path.as_str(), lasts_because(&l.cause)))
        .collect();
    listed(
        &mut out,
        "Comes back at the next boot",
        lasting.iter().map(|(path, why)| (*path, why.as_str())),
    );
    let tell = |wanted: fn(&Undoing) -> Option<String>| -> Vec<(String, String)> {
        report
            .steps
            .iter()
            .filter_map(|s| {
                wanted(&s.undoing)
                    .map(|t| (s.path.clone(), format!("{t} (before: {})", s.original)))
            })
            .collect()
    };
    let kept = tell(|u| {
        if let Undoing::KeptForeign { now } = u {
            Some(now.clone())
        } else {
            None
        }
    });
    listed(
        &mut out,
        "Kept because another program has changed it",
        kept.iter().map(|(a, b)| (a.as_str(), b.as_str())),
    );
    let drifted = tell(|u| {
        if let Undoing::Drifted { now } = u {
            Some(now.clone())
        } else {
            None
        }
    });
    listed(
        &mut out,
        "Changed by another program since: --force restores the original, --keep forgets our change",
        drifted.iter().map(|(a, b)| (a.as_str(), b.as_str())),
    );
    let failed = tell(|u| matches!(u, Undoing::Failed { .. }).then(|| not_undone(u)));
    listed(
        &mut out,
        "Could not be put back (roll back again)",
        failed.iter().map(|(a, b)| (a.as_str(), b.as_str())),
    );
    let forbidden = tell(|u| matches!(u, Undoing::Forbidden { .. }).then(|| not_undone(u)));
    listed(
        &mut out,
        "Not undone, as no knob makes such a change (it stays in the journal)",
        forbidden.iter().map(|(a, b)| (a.as_str(), b.as_str())),
    );
    if report.update_boot_loader {
        out.push_str("\nThe boot loader's drop-in is gone: run update-grub.\n");
    }
    out.into_text()
}

#[must_use]
pub fn status(status: &Status, style: Style) -> String {
    let mut out = Lines::new(style);
    if !status.active {
        out.push_str("Nothing is applied.\n");
        settling(&mut out, status);
        return out.into_text();
    }
    for apply in &status.applies {
        let at = utc(apply.who.at_realtime_ns);
        let ended = if apply.finished {
            ""
        } else {
            "; it was cut off: roll back"
        };
        let boot = if apply.before_reboot {
            "; the machine was rebooted since"
        } else {
            ""
        };
        out.wrapped(
            "",
            &format!(
                "Applied {at} UTC for {} by {}{ended}{boot}: {}",
                cpus_text(&apply.isolated),
                called(&apply.who),
                apply.who.command
            ),
        );
    }
    let mut alike: Vec<(String, OpFamily, usize)> = Vec::new();
    let mut rows: Vec<(String, String)> = Vec::new();
    for change in &status.changes {
        let now = match &change.standing {
            NowIs::InForce => {
                match change
                    .in_force_by
                    .as_ref()
                    .filter(|by| matches!(by, InForceBy::AtLatest { .. }))
                {
                    Some(by) => format!("set, in force {}", when(by)),
                    None => "in force".to_owned(),
                }
            }
            NowIs::ChangedAgain => "changed again since by jitterscope".into(),
            NowIs::Pending { effective } => format!("pending, still {effective}"),
            NowIs::Original => format!("back at {}", change.original),
            NowIs::Drifted { reads } => format!("DRIFTED: another program changed it to {reads}"),
            NowIs::Gone { cause } => format!("gone: {}", gone(cause)),
            NowIs::Refused { why, means } => format!("refused: {}", refused_with(why, *means)),
            NowIs::UndoneByReboot => "undone by the reboot".into(),
            NowIs::Forbidden { cause } => format!("NOT OURS: {}", forbidden(cause)),
        };
        let special = matches!(
            change.standing,
            NowIs::Drifted { .. } | NowIs::Forbidden { .. }
        );
        match change.family.filter(|_| !special) {
            Some(kind) => match alike.iter_mut().find(|(n, k, _)| *n == now && *k == kind) {
                Some((_, _, count)) => *count += 1,
                None => alike.push((now, kind, 1)),
            },
            None => rows.push((
                format!("{} {}", change.knob, change.path),
                format!("{} -> {}: {now}", change.original, change.asked),
            )),
        }
    }
    for (now, kind, count) in alike {
        let kind = match kind {
            OpFamily::Threads => "threads",
            OpFamily::Interrupts => "interrupts",
        };
        rows.push((format!("{count} {kind}"), now));
    }
    listed(
        &mut out,
        "Changes",
        rows.iter().map(|(a, b)| (a.as_str(), b.as_str())),
    );
    if !status.rolled_back.is_empty() {
        out.wrapped(
            "\n",
            &format!(
                "Rolled back automatically: {}",
                status.rolled_back.join(", ")
            ),
        );
    }
    settling(&mut out, status);
    let drifted = status.drifted().count();
    if drifted > 0 {
        let _ = write!(
            out,
            "\n{} changed by another program since.\n",
            counted(drifted, "value")
        );
    }
    out.push_str("\nBack to what was: tune rollback.\n");
    out.into_text()
}

/// Changes that were rolled back and are still in effect.
fn settling(out: &mut Lines, status: &Status) {
    let rows = status
        .settling
        .iter()
        .map(|s| (s.knob.as_str(), Some(&s.in_force_by)));
    later_in_force(out, "Rolled back, in force again later", rows);
}

/// Interrupts before and after: `before->after` where a CPU's count rose.
#[must_use]
pub fn interrupts(diff: &InterruptDiff) -> String {
    if diff.rose.is_empty() {
        return format!("No interrupt reached {}.\n", cpus_text(&diff.cpus));
    }
    let cell = |c: &jitterscope_tune::Counted| match c.after > c.before {
        true => format!("{}->{}", c.before, c.after),
        false => c.after.to_string(),
    };
    let widths: Vec<usize> = diff
        .cpus
        .iter()
        .enumerate()
        .map(|(i, _)| {
            let widest = diff
                .rose
                .iter()
                .filter_map(|r| r.cpus.get(i))
                .map(|c| cell(c).len())
                .max();
            widest.unwrap_or(0).max(6)
        })
        .collect();
    let mut out = " ".repeat(5);
    for (cpu, width) in diff.cpus.iter().zip(&widths) {
        let _ = write!(out, " {:<width$}", format!("CPU{cpu}"));
    }
    out.push('\n');
    for rose in &diff.rose {
        let mut line = format!("{:>4}:", visible(&rose.line));
        for (count, width) in rose.cpus.iter().zip(&widths) {
            let _ = write!(line, " {:<width$}", cell(count));
        }
        let _ = writeln!(out, "{line}  {}", visible(&rose.what));
    }
    out
}
