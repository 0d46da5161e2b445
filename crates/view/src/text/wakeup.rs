//! The lateness of wake-ups: in full, by phase, and compared with an idle CPU.

use super::{FEW_CPUS, Page, short_cpus_text};
use crate::ended::ended_early;
use crate::number::{count, moment, percent, percent_cell, span};
use crate::style::{Tone, tame};
use crate::words;
use jitterscope_analyze::{
    FineNanos, IdleControl, Lateness, Percentiles, PhaseRow, RunSummary, WakeupCpu, WakeupSummary,
};
use jitterscope_model::{CpuSet, Nanos, Phase};

/// The number of CPUs shown of many.
const WORST_CPUS: usize = 8;
const NAMES: [&str; 5] = ["50", "90", "99", "99.9", "99.99"];

/// The settings of the measurement, for the line of facts.
pub(super) fn facts(wakeup: &WakeupSummary) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(
        wakeup
            .period_ns
            .map(|period| format!("a deadline every {period}")),
    );
    facts.extend(wakeup.hold_latency.map(|hold| {
        if hold {
            "deep idle states kept off".to_owned()
        } else {
            "idle states as the machine has them".into()
        }
    }));
    facts.extend(
        wakeup
            .idle_control
            .as_ref()
            .map(|control| format!("CPU {} the idle control", control.cpu)),
    );
    facts
}

/// The measured CPUs, without the control.
pub(super) fn measured(wakeup: &WakeupSummary) -> CpuSet {
    wakeup
        .cpus
        .iter()
        .filter(|cpu| !cpu.idle_control)
        .map(|cpu| cpu.cpu)
        .collect()
}

pub(super) fn headline(page: &mut Page, summary: &RunSummary, wakeup: &WakeupSummary) {
    let (total, cpus) = (&wakeup.total, measured(wakeup));
    let who = short_cpus_text(&cpus);
    if summary.run.killed && total.late > 0 {
        let plural = if total.late == 1 { "" } else { "s" };
        let text = format!(
            "{who} had {} wake-up{plural} {} or more late in {}; how many others there were is not known.",
            count(total.late),
            summary.probe.threshold_ns,
            span(summary.run.duration_ns),
        );
        page.prose(Some(Tone::Strong), 0, &text);
        return worst(page, summary, cpus.len() > 1);
    }
    let (Some(min), Some(mean), Some(max), Some(wakeups), Some(missed)) = (
        total.min_ns,
        total.mean_ns,
        total.max_ns,
        total.wakeups,
        total.missed,
    ) else {
        page.prose(
            Some(Tone::Bad),
            0,
            &format!("Nothing was measured on {who}."),
        );
        return;
    };
    let text = format!(
        "{who} woke {} in {}, late by {mean} on average: {min} at least, {max} at most.",
        times(wakeups),
        span(summary.run.duration_ns),
    );
    page.prose(Some(Tone::Strong), 0, &text);
    let late = format!("{} or more late", summary.probe.threshold_ns);
    let share = total.late as f64 / wakeups.max(1) as f64;
    let mut text = match total.late {
        0 => format!("No wake-up was {late}"),
        n => format!(
            "{} of the wake-ups ({}) came {late}",
            count(n),
            percent(share)
        ),
    };
    text += &match missed {
        0 => "; no deadline was slept through.".to_owned(),
        1 => "; one deadline was slept through.".to_owned(),
        n => format!("; {} deadlines were slept through.", count(n)),
    };
    page.prose(
        Some(if missed > 0 { Tone::Bad } else { Tone::Strong }),
        0,
        &text,
    );
    worst(page, summary, cpus.len() > 1);
    if let Some(control) = &wakeup.idle_control {
        page.prose(None, 0, &beside(wakeup, control));
    }
}

fn times(n: u64) -> String {
    if n == 1 {
        "once".into()
    } else {
        format!("{} times", count(n))
    }
}

fn worst(page: &mut Page, summary: &RunSummary, several: bool) {
    let Some(stall) = summary.worst.first() else {
        return;
    };
    let place = if several {
        format!(" on CPU {}", stall.cpu)
    } else {
        String::new()
    };
    let mut text = format!(
        "The worst, {}{place}, was {} after the start",
        stall.duration_ns,
        moment(stall.start_offset_ns)
    );
    if let Some((who, net)) = stall.by_culprit().first() {
        text += &format!(
            ": {} {} ({})",
            percent(net.0 as f64 / stall.duration_ns.0.max(1) as f64),
            words::name(who),
            words::explain(who)
        );
    }
    page.prose(None, 0, &(text + "."));
}

/// The measured CPUs compared with the idle one, in a sentence.
fn beside(wakeup: &WakeupSummary, control: &IdleControl) -> String {
    let own = wakeup
        .cpus
        .iter()
        .find(|cpu| cpu.idle_control)
        .map(|cpu| &cpu.lateness);
    let Some((own, mean)) = own.and_then(|own| Some((own, own.mean_ns?))) else {
        return format!(
            "Idle CPU {}, to compare with, measured nothing.",
            control.cpu
        );
    };
    let max = own.max_ns.unwrap_or_default();
    let mut ratios = Vec::new();
    for (what, ratio) in [
        ("on average", control.mean_ratio),
        ("at the 99th percentile", control.p99_ratio),
        ("at worst", control.max_ratio),
    ] {
        ratios.extend(ratio.map(|ratio| format!("{} {what}", times_as(ratio))));
    }
    format!(
        "Idle CPU {}, to compare with, woke late by {mean} on average, {max} at most. Against \
         that, the lateness measured is {}.",
        control.cpu,
        ratios.join(", ")
    )
}

/// `3.2 times`, `0.45 times`, `120 times`.
fn times_as(ratio: f64) -> String {
    match ratio {
        r if r < 0.995 => format!("{r:.2} times"),
        r if r < 99.5 => format!("{r:.1} times"),
        r => format!("{} times", count(r.round() as u64)),
    }
}

/// One row for each CPU, the worst first if not all are shown.
pub(super) fn table(page: &mut Page, summary: &RunSummary, wakeup: &WakeupSummary) {
    if wakeup.cpus.len() < 2 {
        return;
    }
    let mut cpus: Vec<&WakeupCpu> = wakeup.cpus.iter().collect();
    let all = cpus.len();
    // The control first: the reader compares the others with it.
    cpus.sort_by_key(|cpu| !cpu.idle_control);
    let controls = all - measured(wakeup).len();
    let shown = if all > FEW_CPUS && !page.style.all_cpus {
        (WORST_CPUS + controls).min(all)
    } else {
        all
    };
    if all > FEW_CPUS {
        cpus.sort_by_key(|cpu| {
            (
                !cpu.idle_control,
                std::cmp::Reverse(cpu.lateness.max_ns),
                cpu.cpu,
            )
        });
        let remark = if shown < all {
            format!("the {WORST_CPUS} worst of {}", all - controls)
        } else {
            "the worst first".into()
        };
        page.heading("CPUS", &remark);
    } else {
        page.heading("CPUS", "");
    }
    let head = "     cpu   wake-ups  missed    late      min     mean       99     99.9      max";
    page.line(&page.style.paint(Tone::Dim, head));
    let known = |n: Option<u64>| n.map_or_else(|| "-".into(), count);
    let row = |name: String, of: &Lateness| {
        format!(
            "{name:>8}{:>11}{:>8}{:>8}{:>9}{:>9}{:>9}{:>9}{:>9}",
            known(of.wakeups),
            known(of.missed),
            count(of.late),
            whole(of.min_ns),
            fine(of.mean_ns),
            fine(of.percentiles_ns.get("99").copied().flatten()),
            fine(of.percentiles_ns.get("99.9").copied().flatten()),
            whole(of.max_ns),
        )
    };
    for cpu in cpus.into_iter().take(shown) {
        let name = if cpu.idle_control {
            format!("idle {}", cpu.cpu)
        } else {
            cpu.cpu.to_string()
        };
        page.line(&row(name, &cpu.lateness));
        let ended = summary.probe.cpus.iter().find(|one| one.cpu == cpu.cpu);
        if let Some((why, after)) =
            ended.and_then(|one| Some((one.ended_early.as_ref()?, one.measured_ns)))
        {
            page.prose(
                Some(Tone::Warning),
                8,
                &format!("ended early, after {}: {}", span(after), ended_early(why)),
            );
        }
    }
    if measured(wakeup).len() > 1 {
        page.line(
            &page
                .style
                .paint(Tone::Strong, row("all".into(), &wakeup.total).trim_end()),
        );
    }
    if wakeup.idle_control.is_some() {
        page.prose(
            Some(Tone::Dim),
            2,
            "idle: measured only to compare with, and in no sum.",
        );
    }
}

fn whole(ns: Option<Nanos>) -> String {
    ns.map_or_else(|| "-".into(), |ns| ns.to_string())
}

fn fine(ns: Option<FineNanos>) -> String {
    ns.map_or_else(|| "-".into(), |ns| ns.to_string())
}

pub(super) fn percentiles(page: &mut Page, wakeup: &WakeupSummary) {
    if wakeup.total.max_ns.is_none() {
        return;
    }
    page.heading("LATENESS", "");
    let mut head = " ".repeat(15);
    for name in ["min", "mean"].into_iter().chain(NAMES).chain(["max"]) {
        head += &format!("{name:>8}");
    }
    page.line(&page.style.paint(Tone::Dim, &head));
    let few = wakeup.cpus.len() <= FEW_CPUS;
    for cpu in wakeup.cpus.iter().filter(|cpu| few || cpu.idle_control) {
        let name = if cpu.idle_control {
            format!("idle{}", cpu.cpu)
        } else {
            cpu.cpu.to_string()
        };
        block(page, &name, &cpu.lateness);
    }
    if !few {
        block(page, "all", &wakeup.total);
    }
    let text = "plain: each wake-up as it was, as cyclictest counts. corrected: deadlines that were slept \
                through count too, each late by what was left (coordinated omission), as jHiccup counts. \
                - where fewer than ten lie above.";
    page.prose(Some(Tone::Dim), 2, text);
}

fn block(page: &mut Page, cpu: &str, of: &Lateness) {
    let rows: [(&str, Option<FineNanos>, &Percentiles); 2] = [
        ("plain", of.mean_ns, &of.percentiles_ns),
        (
            "corrected",
            of.corrected_mean_ns,
            &of.corrected_percentiles_ns,
        ),
    ];
    for (name, mean, percentiles) in rows {
        let mut line = format!("{:>5} {name:<9}", if name == "plain" { cpu } else { "" });
        line += &format!("{:>8}{:>8}", whole(of.min_ns), fine(mean));
        for percentile in NAMES {
            line += &format!(
                "{:>8}",
                fine(percentiles.get(percentile).copied().flatten())
            );
        }
        page.line(&(line + &format!("{:>8}", whole(of.max_ns))));
    }
}

/// The phases of the lateness.
pub(super) fn phases(page: &mut Page, summary: &RunSummary, wakeup: &WakeupSummary) {
    if wakeup.phases.is_empty() {
        return;
    }
    let total: Nanos = wakeup.phases.iter().map(|row| row.total_ns).sum();
    let remark = format!(
        "of {total} in wake-ups {} or more late",
        summary.probe.threshold_ns
    );
    page.heading("WHERE THE LATENESS WENT", &remark);
    page.line(
        &page
            .style
            .paint(Tone::Dim, "   share   wake-ups     mean      max  phase"),
    );
    for row in &wakeup.phases {
        phase(page, row);
    }
}

fn phase(page: &mut Page, row: &PhaseRow) {
    let numbers = format!(
        "{:>8} {:>10} {:>8} {:>8}  ",
        percent_cell(row.share),
        count(row.count),
        row.mean_ns.to_string(),
        row.max_ns.to_string()
    );
    let name = format!("{:<15}", tame(row.phase.as_str()));
    let meaning = meaning(&row.phase);
    page.line(&format!(
        "{numbers}{}  {}",
        page.style.paint(Tone::Strong, &name),
        page.style.paint(Tone::Dim, meaning)
    ));
}

/// The meaning of a phase; at most 24 columns, to fit beside the numbers.
fn meaning(phase: &Phase) -> &'static str {
    match phase {
        Phase::LateTimer => "no interrupt yet",
        Phase::IdleExit => "no interrupt yet, idle",
        Phase::Interrupt => "handlers ran",
        Phase::HigherPriority => "a more urgent thread ran",
        Phase::RunQueue => "no more urgent one seen",
        Phase::Withheld => "throttled or stopped",
        Phase::Dispatch => "woken, on its way",
        _ => "",
    }
}
