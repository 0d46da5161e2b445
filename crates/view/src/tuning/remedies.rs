//! Remedies for what a run measured: the end of a report, and its next step.

use super::plan_reasons::too_little;
use crate::lines::{Lines, cpus_text};
use crate::number::{percent, percent_cell};
use crate::style::Style;
use crate::text::Step;
use jitterscope_model::{CpuSet, CulpritKind, PutInOrder};
use jitterscope_tune::{
    Audit, Effect, Helps, How, PinnedProgram, Plan, REBOOT_FROM, Remedy, SkipReason, Win, catalogue,
};
use std::fmt::Write;

/// The least share of the stolen time for a kind of culprit with its own line.
const FROM: f64 = 0.01;
/// Columns before a remedy.
const BEFORE: usize = 26;

/// A run, and the commands that find it.
#[derive(Clone, Copy, Debug)]
pub struct NamedRun<'a> {
    pub id: &'a str,
    /// The program's command line that finds the run: `jitterscope`, or that with `--runs DIR`.
    pub program: &'a str,
    /// The same for root, who has a different folder of runs.
    pub as_root: &'a str,
}

/// The end of a report: the remedies for each kind of culprit, and the commands of a plan based on this run. `audit` is
/// for the CPUs of `plan`.
#[must_use]
pub fn advice(
    audit: &Audit,
    plan: &Plan,
    run: &NamedRun<'_>,
    left_out: Option<&CpuSet>,
    style: Style,
) -> String {
    let mut out = Lines::new(style);
    if let Some(left_out) = left_out {
        let are = if left_out.len() == 1 { "is" } else { "are" };
        let text = format!(
            "{} {are} not included in this advice: the machine's own work needs a CPU.",
            cpus_text(left_out)
        );
        out.wrapped("", &text);
    }
    out.push_str("What helps, by what took the time:\n");
    lines(&mut out, &audit.remedies);
    let knobs = skipped(plan, |why| matches!(why, SkipReason::Negligible { .. }));
    if !knobs.is_empty() {
        out.wrapped(
            "Left out, ",
            &format!("{}: {}", too_little(), knobs.join(", ")),
        );
    }
    if changes(plan) > 0 {
        let options = options(plan, run.id, left_out);
        // One whole line each, for copying.
        let _ = writeln!(out, "See the changes, and make them:");
        let _ = writeln!(out, "  {} tune plan {options}", run.program);
        let _ = writeln!(out, "  {} tune apply {options}", run.as_root);
    }
    out.into_text()
}

/// The remedies for each kind, by stolen time.
pub(super) fn lines(out: &mut Lines, remedies: &[Remedy]) {
    let (reported, small): (Vec<&Remedy>, Vec<&Remedy>) =
        remedies.iter().partition(|remedy| remedy.share >= FROM);
    for remedy in reported {
        let head = format!("{:>8}  {}", percent_cell(remedy.share), kind(remedy));
        out.wrapped(&format!("{head:<BEFORE$}"), &helps(remedy));
    }
    if !small.is_empty() {
        let share = small.iter().map(|remedy| remedy.share).sum();
        let kinds: Vec<String> = small.iter().map(|remedy| kind(remedy)).collect();
        let head = format!("{:>8}  ", percent_cell(share));
        out.wrapped(&head, &format!("too little each: {}", kinds.join(", ")));
    }
}

/// The kind as in the report's table.
fn kind(remedy: &Remedy) -> String {
    match remedy.pinned {
        true => format!("pinned {}", remedy.kind.as_str()),
        false => remedy.kind.as_str().to_owned(),
    }
}

fn helps(remedy: &Remedy) -> String {
    match &remedy.helps {
        Helps::Knob {
            knob,
            how,
            risk,
            win,
        } => {
            let title = catalogue::find(knob).map_or("", |knob| knob.title);
            let change = match how {
                How::Now => String::new(),
                How::Reboot => "needs a reboot, ".into(),
                How::ByHand => format!("manual, audit --explain {knob}, "),
            };
            let much = amount(win);
            format!("{knob} ({title}): {much}; {change}risk {}", risk.as_str())
        }
        Helps::Repin { to, programs, win } => {
            let few = win.culprits.iter().take(3);
            let names: Vec<&str> = few.map(|name| name.trim_start_matches("thread ")).collect();
            let names = names.join(", ");
            match programs.as_slice() {
                [] => format!(
                    "taskset -c {to} COMMAND starts {names} elsewhere: {}",
                    amount(win)
                ),
                [first, rest @ ..] => {
                    let more = match rest.len() {
                        0 => String::new(),
                        n => format!(", and {n} more like it"),
                    };
                    format!(
                        "{} moves {} away, which still runs{more}: {}{}",
                        repin(to, first),
                        first.comm,
                        amount(win),
                        lasting(to, first)
                    )
                }
            }
        }
        Helps::Elsewhere { knob } => format!(
            "no setting here helps; {}, audit --explain {knob}",
            match remedy.kind {
                CulpritKind::Firmware => "in the firmware's set-up",
                _ => "on the host",
            }
        ),
        Helps::InPlace { knob } => in_place(remedy, knob),
        Helps::Nothing => "no setting here helps".into(),
    }
}

/// A remedy that is in place now; whether it was during the run is unknown.
fn in_place(remedy: &Remedy, knob: &str) -> String {
    let title = catalogue::find(knob).map_or("", |knob| knob.title);
    match remedy.kind {
        CulpritKind::Quota | CulpritKind::QuotaBeside => {
            "no group here has a quota now: it is gone since the run".into()
        }
        _ => format!("{knob} ({title}) is as wanted now; a new recording shows what is left"),
    }
}

fn repin(to: &CpuSet, program: &PinnedProgram) -> String {
    format!("taskset -apc {to} {}", program.pid)
}

fn lasting(to: &CpuSet, program: &PinnedProgram) -> String {
    program
        .service
        .as_ref()
        .map_or_else(String::new, |service| {
            format!("; to last, CPUAffinity={to} by systemctl edit {service}")
        })
}

/// The command for the best remedy, with its gain; empty if there is none.
#[must_use]
pub fn first_step(
    audit: &Audit,
    plan: &Plan,
    run: &NamedRun<'_>,
    left_out: Option<&CpuSet>,
) -> Option<Step> {
    // A small gain beside a large unavoidable loss is not worth advising.
    let worth = |remedy: &&Remedy| match remedy.win() {
        Some(win) => {
            let share = remedy.share * win.total_ns.0 as f64 / remedy.total_ns.0.max(1) as f64;
            share * f64::from(REBOOT_FROM) >= 1.0
        }
        None => matches!(remedy.helps, Helps::Elsewhere { .. }) && remedy.share >= 0.5,
    };
    let remedy = audit.remedies.iter().find(worth)?;
    let program = run.program;
    let step = |command: String, purpose: String| Some(Step { command, purpose });
    match &remedy.helps {
        Helps::Knob {
            knob,
            how: How::ByHand,
            win,
            ..
        } => step(
            format!("{program} audit --explain {knob}"),
            format!("manual: {}", amount(win)),
        ),
        Helps::Knob { knob, win, .. } => {
            let more = match changes(plan).saturating_sub(1) {
                0 => String::new(),
                n => format!(", {n} more"),
            };
            step(
                format!("{program} tune plan {}", options(plan, run.id, left_out)),
                format!("{knob}: {}{more}", amount(win)),
            )
        }
        Helps::Repin { to, programs, win } => match programs.first() {
            Some(first) => step(
                repin(to, first),
                format!(
                    "moves {} away, which still runs: {}",
                    first.comm,
                    amount(win)
                ),
            ),
            None => step(
                format!("{program} audit --explain pinned"),
                format!("{}: {}", win.culprits.join(", "), amount(win)),
            ),
        },
        Helps::Elsewhere { knob } => {
            let whose = match remedy.kind {
                CulpritKind::Firmware => "firmware's",
                _ => "host's",
            };
            step(
                format!("{program} audit --explain {knob}"),
                format!(
                    "{} is the {whose}: no setting here helps",
                    percent(remedy.share)
                ),
            )
        }
        Helps::InPlace { .. } | Helps::Nothing => None,
    }
}

/// The number of knobs that the plan changes, now or at a boot.
fn changes(plan: &Plan) -> usize {
    let mut knobs = skipped(plan, |why| matches!(why, SkipReason::NeedsReboot { .. }));
    knobs.extend(plan.changes.iter().map(|change| change.knob));
    knobs.put_in_order();
    knobs.dedup();
    knobs.len()
}

fn skipped(plan: &Plan, wanted: fn(&SkipReason) -> bool) -> Vec<&'static str> {
    let skipped = plan.skipped.iter().filter(|skipped| wanted(&skipped.why));
    skipped.map(|skipped| skipped.knob).collect()
}

/// The options of `tune plan` and `tune apply` for this plan.
fn options(plan: &Plan, run: &str, left_out: Option<&CpuSet>) -> String {
    let cpus = left_out.map_or(String::new(), |_| format!(" --cpus {}", plan.goal.isolated));
    let persist = if plan.changes.is_empty() {
        " --persist"
    } else {
        ""
    };
    format!("--run {run}{cpus}{persist}")
}

/// The gain of a knob.
pub(super) fn amount(win: &Win) -> String {
    match win.effect {
        Effect::Removes => format!("up to {}", win.total_ns),
        Effect::Lessens => format!("part of {}", win.total_ns),
        Effect::Perhaps => format!("perhaps some of {}", win.total_ns),
    }
}
