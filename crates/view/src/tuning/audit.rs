//! An audit, and a knob's page, as text.

use super::competitors::competes;
use super::findings::{finding, wanted};
use super::page::{how, rows};
use super::plan_reasons::{notice, too_little};
use super::reasons::knob_reason;
use crate::lines::{Lines, counted, cpus_text};
use crate::number;
use crate::style::Style;
use crate::text::Step;
use jitterscope_model::CpuSet;
use jitterscope_tune::{
    Audit, AuditEntry, Effect, Examination, Goal, Knob, KnobReason, KnobState, Plan, SkipReason,
    Win,
};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// The whole audit.
#[must_use]
pub fn audit(audit: &Audit, all: bool, run: Option<&str>, style: Style) -> String {
    let mut out = Lines::new(style);
    let housekeeping = if audit.goal.housekeeping.is_empty() {
        "none".to_owned()
    } else {
        audit.goal.housekeeping.to_string()
    };
    let _ = writeln!(
        out,
        "Knobs for {} (housekeeping: {housekeeping})",
        cpus_text(&audit.goal.isolated)
    );
    match &audit.run {
        Some(run) => out.wrapped("", &format!("ranked by what run {run} measured")),
        None => {
            out.push_str("ranked by what they usually cost (rank by a recording: --run latest)\n")
        }
    }
    for competitor in &audit.competitors {
        out.wrapped("! ", &competes(competitor));
    }
    let (wrong, optional): (Vec<&AuditEntry>, Vec<&AuditEntry>) = audit
        .knobs
        .iter()
        .filter(|k| is_wrong(k))
        .partition(|k| all || k.win.is_some() || !k.profiles.is_empty());
    let _ = writeln!(out, "\nWrong for these CPUs: {}", wrong.len());
    for (i, knob) in wrong.iter().enumerate() {
        entry(&mut out, i + 1, knob);
    }
    if !optional.is_empty() {
        let _ = writeln!(
            out,
            "\nAlso possible, at a price, where a recording shows the need: {}",
            optional.len()
        );
        let ids: Vec<&str> = optional.iter().map(|k| k.id).collect();
        out.wrapped("  ", &format!("{} (in full: --all)", ids.join(", ")));
    }
    let fine: Vec<&AuditEntry> = audit
        .knobs
        .iter()
        .filter(|k| k.state == KnobState::Fine)
        .collect();
    let _ = writeln!(out, "\nFine: {}", fine.len());
    if all {
        for knob in &fine {
            out.wrapped(
                &format!("  {:<17}", knob.id),
                &[
                    knob.found.as_ref().map(finding),
                    knob.notice.as_ref().map(notice),
                ]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("; "),
            );
        }
    } else if !fine.is_empty() {
        out.wrapped(
            "  ",
            &fine.iter().map(|k| k.id).collect::<Vec<_>>().join(", "),
        );
    }
    others(
        &mut out,
        audit,
        "Not for this user to read",
        all,
        |s| match s {
            KnobState::Unreadable(why) => Some(why),
            _ => None,
        },
    );
    others(
        &mut out,
        audit,
        "Not told by looking, or not this machine's",
        all,
        |s| match s {
            KnobState::NotApplicable(why) => Some(why),
            _ => None,
        },
    );
    others(&mut out, audit, "Unavailable here", all, |s| match s {
        KnobState::Unavailable(why) => Some(why),
        _ => None,
    });
    if !audit.unanswered.is_empty() {
        out.wrapped(
            "\nMeasured, and no knob answers it: ",
            &audit.unanswered.join(", "),
        );
    }
    let which = run.map_or("--profile isolation".into(), |run| format!("--run {run}"));
    out.wrapped(
        "\n",
        &format!("One of them: audit --explain ID. Changes: tune plan {which}."),
    );
    out.into_text()
}

/// A run, and the commands that find it.
#[derive(Clone, Copy, Debug)]
pub struct NamedRun<'a> {
    /// Its id.
    pub id: &'a str,
    /// How the program is called so that it finds the run: `jitterscope`, or that with `--runs DIR`.
    pub program: &'a str,
    /// The same for root, whose folder of runs is another.
    pub as_root: &'a str,
}

/// The end of a report: what a plan by this run would take, the time that each could win back, and the
/// command. `audit` is for the CPUs of `plan`; `run` is the run's id.
#[must_use]
pub fn advice(
    audit: &Audit,
    plan: &Plan,
    run: &NamedRun<'_>,
    left_out: Option<&CpuSet>,
    most: usize,
    style: Style,
) -> String {
    let useful = useful(audit, plan);
    let mut out = Lines::new(style);
    if let Some(left_out) = left_out {
        let text = format!(
            "{} left out of this advice: somebody must do the machine's own work.",
            if left_out.len() == 1 {
                format!("{} is", cpus_text(left_out))
            } else {
                format!("{} are", cpus_text(left_out))
            }
        );
        out.wrapped("", &text);
    }
    if useful.is_empty() {
        out.push_str("No knob that is turned wrong answers what was measured.\n");
    } else {
        out.push_str("Knobs that answer what was measured, and what each could win back:\n");
    }
    for knob in useful.iter().take(most) {
        let Some(win) = &knob.win else { continue };
        let text = format!(
            "{}: {} ({}, risk {})",
            knob.title,
            won(win),
            how(knob.how),
            knob.risk.as_str()
        );
        out.wrapped(&format!("  {:<17}", knob.id), &text);
    }
    if useful.len() > most {
        let _ = writeln!(out, "  and {} more", useful.len() - most);
    }
    let negligible = skipped(plan, |why| matches!(why, SkipReason::Negligible { .. }));
    if !negligible.is_empty() {
        out.wrapped(
            "Left out, ",
            &format!("{}: {}", too_little(), negligible.join(", ")),
        );
    }
    if !useful.is_empty() {
        let options = options(plan, run.id, left_out);
        // Each on a line of its own, whole: it is there to be copied.
        let _ = writeln!(out, "See the changes, and make them:");
        let _ = writeln!(out, "  {} tune plan {options}", run.program);
        let _ = writeln!(out, "  {} tune apply {options}", run.as_root);
    }
    out.into_text()
}

/// The same in one command: what it would change, and what the first of it could win back.
#[must_use]
pub fn first_step(
    audit: &Audit,
    plan: &Plan,
    run: &str,
    left_out: Option<&CpuSet>,
) -> Option<Step> {
    let useful = useful(audit, plan);
    let first = useful.first()?;
    let more = match useful.len() - 1 {
        0 => String::new(),
        n => format!(", {n} more"),
    };
    let much = first
        .win
        .as_ref()
        .map_or_else(String::new, |win| format!(": {}", amount(win)));
    Some(Step {
        arguments: format!("tune plan {}", options(plan, run, left_out)),
        purpose: format!("{}{much}{more}", first.id),
    })
}

/// What the plan takes, now or at a boot, in the order of what it could win.
fn useful<'a>(audit: &'a Audit, plan: &Plan) -> Vec<&'a AuditEntry> {
    let at_boot = skipped(plan, |why| matches!(why, SkipReason::NeedsReboot { .. }));
    let taken = |id: &str| at_boot.contains(&id) || plan.changes.iter().any(|c| c.knob == id);
    audit.knobs.iter().filter(|k| taken(k.id)).collect()
}

fn skipped(plan: &Plan, wanted: fn(&SkipReason) -> bool) -> Vec<&'static str> {
    plan.skipped
        .iter()
        .filter(|s| wanted(&s.why))
        .map(|s| s.knob)
        .collect()
}

/// Those of `tune plan` and `tune apply` that lead to this plan.
fn options(plan: &Plan, run: &str, left_out: Option<&CpuSet>) -> String {
    let cpus = left_out.map_or(String::new(), |_| format!(" --cpus {}", plan.goal.isolated));
    let persist = if plan.changes.is_empty() {
        " --persist"
    } else {
        ""
    };
    format!("--run {run}{cpus}{persist}")
}

/// Wrong by its value; or by evidence, where the value does not tell.
fn is_wrong(knob: &AuditEntry) -> bool {
    knob.state == KnobState::Wrong
        || (matches!(knob.state, KnobState::NotApplicable(_))
            && knob
                .win
                .as_ref()
                .is_some_and(|w| w.effect != Effect::Perhaps))
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

fn amount(win: &Win) -> String {
    match win.effect {
        Effect::Removes => format!("up to {}", win.total_ns),
        Effect::Lessens => format!("part of {}", win.total_ns),
        Effect::Perhaps => format!("perhaps some of {}", win.total_ns),
    }
}

/// How much a knob would win back.
#[must_use]
pub fn won(win: &Win) -> String {
    let much = amount(win);
    let times = match win.count {
        // Each was too short to be kept one by one.
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
    all: bool,
    why: impl Fn(&'a KnobState) -> Option<&'a KnobReason>,
) {
    let mut groups: Vec<(&KnobReason, Vec<&'static str>)> = Vec::new();
    let mut count = 0;
    for knob in audit.knobs.iter().filter(|k| !is_wrong(k)) {
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
    if all {
        for (reason, ids) in groups {
            out.wrapped(
                "  ",
                &format!("{}: {}", ids.join(", "), knob_reason(reason)),
            );
        }
    } else {
        let ids: Vec<&str> = groups.into_iter().flat_map(|(_, ids)| ids).collect();
        out.wrapped("  ", &format!("{} (why: --all)", ids.join(", ")));
    }
}

/// A knob's page, with how it stands here.
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
        for all in [false, true] {
            let text = super::audit(&audit, all, Some("r1"), Style::default());
            assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
            assert!(
                text.contains("wins  up to 123 us, 10 times, 1.0/s from kworker vmstat_update"),
                "{text}"
            );
        }
        let plan = plan(&machine, &goal, &Select::RunCulprits(measured), &[], false).unwrap();
        let run = NamedRun {
            id: "r1",
            program: "jitterscope --runs a",
            as_root: "sudo jitterscope --runs b",
        };
        let advice = advice(&audit, &plan, &run, None, 3, Style::default());
        assert!(
            advice.contains("  jitterscope --runs a tune plan --run r1\n"),
            "{advice}"
        );
        assert!(
            advice.ends_with("sudo jitterscope --runs b tune apply --run r1\n"),
            "{advice}"
        );
        assert!(
            advice.contains("vmstat           Memory statistics: up to 123 us"),
            "{advice}"
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
