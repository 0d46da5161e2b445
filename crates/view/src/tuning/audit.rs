//! An audit, and a knob's page, as text.

use super::competitors::competes;
use super::findings::{finding, wanted};
use super::page::{how, rows};
use super::plan_reasons::notice;
use super::reasons::knob_reason;
use super::remedies::{self, amount};
use crate::lines::{Lines, counted, cpus_text};
use crate::number;
use crate::style::{Style, fit};
use jitterscope_tune::{
    Audit, AuditEntry, Effect, Examination, Goal, Knob, KnobReason, KnobState, Win,
};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// An audit on one screen; with `all` every finding. `run` is the id of the run that ranks it.
#[must_use]
pub fn audit(audit: &Audit, all: bool, run: Option<&str>, style: Style) -> String {
    let mut head = Lines::new(style);
    let housekeeping = if audit.goal.housekeeping.is_empty() {
        "none".to_owned()
    } else {
        audit.goal.housekeeping.to_string()
    };
    let ranked = match &audit.run {
        Some(run) => format!("by what run {run} measured"),
        None => "by what they usually cost (by a recording: --run latest)".to_owned(),
    };
    let text = format!(
        "Knobs for {} (housekeeping: {housekeeping}), {ranked}",
        cpus_text(&audit.goal.isolated)
    );
    head.wrapped("", &text);
    for competitor in &audit.competitors {
        head.wrapped("! ", &competes(competitor));
    }
    if !audit.remedies.is_empty() {
        head.push_str("What helps, by what took the time:\n");
        remedies::lines(&mut head, &audit.remedies);
    }
    let wrong: Vec<&AuditEntry> = audit.knobs.iter().filter(|k| k.is_wrong()).collect();
    let mut foot = Lines::new(style);
    if all {
        let _ = writeln!(head, "\nWrong for these CPUs: {}", wrong.len());
        for (i, knob) in wrong.iter().enumerate() {
            entry(&mut head, i + 1, knob);
        }
        rest(&mut foot, audit);
    } else {
        let others = [
            ("fine", KnobSort::Fine),
            ("not readable", KnobSort::Unreadable),
            ("not for this machine", KnobSort::NotApplicable),
            ("unavailable", KnobSort::Unavailable),
        ]
        .map(|(what, sort)| {
            (
                what,
                audit.knobs.iter().filter(|k| sort_of(k) == sort).count(),
            )
        });
        let others: Vec<String> = others
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(what, n)| format!("{n} {what}"))
            .collect();
        foot.wrapped("", &format!("{} (each of all: --all)", others.join(", ")));
    }
    let which = run.map_or("--profile isolation".into(), |run| format!("--run {run}"));
    foot.wrapped(
        if all { "\n" } else { "" },
        &format!("Details: audit --explain ID. Changes: tune plan {which}."),
    );
    let (mut text, foot) = (head.into_text(), foot.into_text());
    if !all {
        let room = (style.lines() - 1).saturating_sub(text.lines().count() + foot.lines().count());
        text += &in_lines(&wrong, room, style);
    }
    text + &foot
}

/// The wrong knobs, one line each, as many as fit.
fn in_lines(wrong: &[&AuditEntry], room: usize, style: Style) -> String {
    let measured = wrong.iter().any(|knob| knob.win.is_some());
    // Without a recording, knobs that no profile uses are omitted; with one, those with next to no gain.
    let (useful, optional): (Vec<&AuditEntry>, Vec<&AuditEntry>) =
        wrong.iter().partition(|knob| match &knob.win {
            Some(win) => !win.negligible && win.effect != Effect::Perhaps,
            None => !measured && !knob.profiles.is_empty(),
        });
    let mut out = Lines::new(style);
    let _ = match measured {
        true => writeln!(
            out,
            "\nWrong, and worth a change by this run: {} of {}",
            useful.len(),
            wrong.len()
        ),
        false => writeln!(out, "\nWrong, most useful first: {}", wrong.len()),
    };
    let room = room.saturating_sub(2);
    let shown = match useful.len() == wrong.len() && useful.len() <= room {
        true => useful.len(),
        false => useful.len().min(room.saturating_sub(1)),
    };
    for knob in &useful[..shown] {
        let win = knob.win.as_ref().map_or_else(String::new, amount);
        let how = format!("{}, {} risk", how(knob.how), knob.risk.as_str());
        let line = match measured {
            true => format!("  {:<17}{win:<25}{how:<21}{}", knob.id, knob.title),
            false => format!("  {:<17}{how:<21}{}", knob.id, knob.title),
        };
        let _ = writeln!(out, "{}", fit(&line, style.columns()));
    }
    let more = useful.len() - shown + optional.len();
    if more > 0 {
        let _ = writeln!(out, "  and {more} more (all of them: --all)");
    }
    out.into_text()
}

/// The state of a knob that is not wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnobSort {
    Wrong,
    Fine,
    Unreadable,
    NotApplicable,
    Unavailable,
}

fn sort_of(knob: &AuditEntry) -> KnobSort {
    match knob.state {
        _ if knob.is_wrong() => KnobSort::Wrong,
        KnobState::Wrong => KnobSort::Wrong,
        KnobState::Fine => KnobSort::Fine,
        KnobState::Unreadable(_) => KnobSort::Unreadable,
        KnobState::NotApplicable(_) => KnobSort::NotApplicable,
        KnobState::Unavailable(_) => KnobSort::Unavailable,
    }
}

/// Every knob that is not wrong, with the reason.
fn rest(out: &mut Lines, audit: &Audit) {
    let fine: Vec<&AuditEntry> = audit
        .knobs
        .iter()
        .filter(|k| k.state == KnobState::Fine)
        .collect();
    let _ = writeln!(out, "\nFine: {}", fine.len());
    for knob in &fine {
        let texts = [
            knob.found.as_ref().map(finding),
            knob.notice.as_ref().map(notice),
        ];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        out.wrapped(&format!("  {:<17}", knob.id), &texts.join("; "));
    }
    others(out, audit, "Not for this user to read", |s| match s {
        KnobState::Unreadable(why) => Some(why),
        _ => None,
    });
    others(
        out,
        audit,
        "Not applicable, or not visible here",
        |s| match s {
            KnobState::NotApplicable(why) => Some(why),
            _ => None,
        },
    );
    others(out, audit, "Unavailable here", |s| match s {
        KnobState::Unavailable(why) => Some(why),
        _ => None,
    });
}

fn entry(out: &mut Lines, number: usize, knob: &AuditEntry) {
    let verified = if knob.verified { "" } else { ", unverified" };
    let how = format!("{}, {} risk{verified}", how(knob.how), knob.risk.as_str());
    let head = format!("{number:>3}. {:<17}{}", knob.id, knob.title);
    let width = out.width();
    let room = width.saturating_sub(head.width());
    let _ = match how.len() + 2 <= room {
        true => writeln!(out, "{head}{how:>room$}"),
        false => writeln!(out, "{head}\n{how:>width$}"),
    };
    if let Some(found) = &knob.found {
        out.wrapped("     now   ", &finding(found));
    }
    if let Some(of) = &knob.wanted {
        out.wrapped("     want  ", &wanted(of));
    }
    if let KnobState::NotApplicable(why) = &knob.state {
        out.wrapped("     note  ", &knob_reason(why));
    }
    if let Some(win) = &knob.win {
        let text = format!(
            "{} from {}",
            won(win),
            win.culprits
                .iter()
                .take(4)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        );
        out.wrapped("     wins  ", &text);
    }
    if !knob.left.is_empty() {
        out.wrapped(
            "     stays ",
            &format!("{} cannot move", counted(knob.left.len(), "thread")),
        );
    }
}

/// The gain of a knob.
#[must_use]
pub fn won(win: &Win) -> String {
    let much = amount(win);
    let times = match win.count {
        // Each was too short for a row.
        0 => return much,
        1 => "1 time".to_owned(),
        n => format!("{} times", number::count(n)),
    };
    format!(
        "{much}, {times}, {}/s",
        number::rate(win.per_second_milli as f64 / 1000.0)
    )
}

fn others<'a>(
    out: &mut Lines,
    audit: &'a Audit,
    title: &str,
    why: impl Fn(&'a KnobState) -> Option<&'a KnobReason>,
) {
    let mut groups: Vec<(&KnobReason, Vec<&'static str>)> = Vec::new();
    let mut count = 0;
    for knob in audit.knobs.iter().filter(|k| !k.is_wrong()) {
        let Some(reason) = why(&knob.state) else {
            continue;
        };
        count += 1;
        match groups.iter_mut().find(|(r, _)| *r == reason) {
            Some((_, ids)) => ids.push(knob.id),
            None => groups.push((reason, vec![knob.id])),
        }
    }
    if count == 0 {
        return;
    }
    let _ = writeln!(out, "\n{title}: {count}");
    for (reason, ids) in groups {
        out.wrapped(
            "  ",
            &format!("{}: {}", ids.join(", "), knob_reason(reason)),
        );
    }
}

/// A knob's page, with its state on this machine.
#[must_use]
pub fn explanation(knob: &Knob, found: &Examination, goal: &Goal, style: Style) -> String {
    let mut out = Lines::new(style);
    let _ = writeln!(out, "{}: {}\n", knob.id, knob.title);
    for (heading, text) in rows(knob) {
        out.wrapped(&format!("{heading:<14}"), &text.replace('`', ""));
    }
    let state = match &found.state {
        KnobState::Wrong => "wrong".to_owned(),
        KnobState::Fine => "fine".to_owned(),
        KnobState::Unavailable(why) => format!("unavailable: {}", knob_reason(why)),
        KnobState::NotApplicable(why) => format!("not applicable: {}", knob_reason(why)),
        KnobState::Unreadable(why) => format!("cannot be read: {}", knob_reason(why)),
    };
    let _ = writeln!(out, "\nHere, for {}:", cpus_text(&goal.isolated));
    out.wrapped(&format!("{:<14}", "state"), &state);
    for (heading, text) in [
        ("now", found.found.as_ref().map(finding)),
        ("wanted", found.wanted.as_ref().map(wanted)),
        ("note", found.notice.as_ref().map(notice)),
    ] {
        if let Some(text) = text {
            out.wrapped(&format!("{heading:<14}"), &text);
        }
    }
    if !found.ops.is_empty() {
        out.wrapped(
            &format!("{:<14}", "changes"),
            &format!("{}: tune plan --only {}", found.ops.len(), knob.id),
        );
    }
    out.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::{NamedRun, advice, first_step};
    use jitterscope_model::{Nanos, Subject, Work};
    use jitterscope_platform::Machine;
    use jitterscope_tune::{
        Inspection, MeasuredCulprit, RunCulprits, Select, audit, catalogue, plan,
    };
    use std::fs;

    fn machine() -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("proc/sys/vm/stat_interval", "1\n"),
            ("proc/irq/24/smp_affinity_list", "0-3\n"),
            ("proc/irq/25/smp_affinity_list", "0-3\n"),
            ("proc/cmdline", "quiet\n"),
        ] {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let machine = Machine::at(dir.path());
        (dir, machine)
    }

    #[test]
    fn evidence_leads_and_every_line_fits() {
        let (_dir, machine) = machine();
        let goal = Goal::to_audit(&machine, "3".parse().unwrap()).unwrap();
        let measured = RunCulprits {
            run: "r1 (BASELINE)".into(),
            measured_ns: Nanos(10_000_000_000),
            culprits: vec![MeasuredCulprit {
                subject: Subject::Work(Work {
                    function: Some("vmstat_update".into()),
                    ..Work::default()
                }),
                total_ns: Nanos(123_456),
                count: 10,
            }],
            ..RunCulprits::default()
        };
        let audit = audit(&machine, &goal, Some(&measured));
        assert_eq!(audit.knobs[0].id, "vmstat");
        for (all, win) in [
            (
                true,
                "wins  up to 123 us, 10 times, 1.0/s from kworker vmstat_update",
            ),
            (
                false,
                "vmstat           up to 123 us             now, low risk        Memory stati",
            ),
        ] {
            let text = super::audit(&audit, all, Some("r1"), Style::default());
            assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
            assert!(text.contains(win), "{text}");
            assert!(all || text.lines().count() <= 23, "{text}");
        }
        let plan = plan(&machine, &goal, &Select::RunCulprits(measured), &[], false).unwrap();
        let run = NamedRun {
            id: "r1",
            program: "jitterscope --runs a",
            as_root: "sudo jitterscope --runs b",
        };
        let advice = advice(&audit, &plan, &run, None, Style::default());
        assert!(
            advice.contains("  jitterscope --runs a tune plan --run r1\n"),
            "{advice}"
        );
        assert!(
            advice.ends_with("sudo jitterscope --runs b tune apply --run r1\n"),
            "{advice}"
        );
        let helps = " 100.0 %  kworker         vmstat (Memory statistics): up to 123 us; risk low";
        assert!(advice.contains(helps), "{advice}");
        let step = first_step(&audit, &plan, &run, None).unwrap();
        assert_eq!(
            (&*step.command, &*step.purpose),
            (
                "jitterscope --runs a tune plan --run r1",
                "vmstat: up to 123 us"
            )
        );
    }

    #[test]
    fn every_page_of_the_catalogue_fits() {
        let (_dir, machine) = machine();
        let goal = Goal::to_audit(&machine, "3".parse().unwrap()).unwrap();
        for knob in catalogue::all() {
            let page = explanation(
                knob,
                &Inspection::new(&machine, &goal).examine(knob),
                &goal,
                Style::default(),
            );
            for line in page
                .lines()
                .filter(|l| l.split_whitespace().all(|word| word.len() < 60))
            {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}
