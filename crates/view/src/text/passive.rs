//! Watched CPUs: their owners and shares, and what ran beside them, how often and how long.

use super::{Page, short_cpus_text, threads};
use crate::ended::ended_early;
use crate::number::{count, percent, percent_cell, span};
use crate::report::{Cell, Column, Row, Table};
use crate::style::{Tone, tame};
use jitterscope_analyze::RunSummary;
use jitterscope_model::{BelongingThread, CpuSet, Nanos, PassiveCpu, PutInOrder};

/// The number of CPUs in the table; JSON has all.
const ROWS: usize = 24;
/// The number of CPUs shown one by one.
const BLOCKS: usize = 4;
/// The number of named owners of a CPU.
const NAMED: usize = 4;
/// A share of time above which the verdict is red.
const BAD: f64 = 0.01;

/// The verdict in a sentence or two, then the CPUs.
pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    page.line("");
    headline(page, summary);
    cpus(page, summary);
}

/// The table of all CPUs by loss, then individual CPUs.
pub(crate) fn cpus(page: &mut Page, summary: &RunSummary) {
    let mut cpus: Vec<&PassiveCpu> = summary.passive.iter().collect();
    cpus.order_by_key(|cpu| (std::cmp::Reverse(cpu.stolen_ns()), cpu.cpu));
    if cpus.len() > 1 {
        page.heading("CPU BY CPU", "shares of the time that each was watched");
        page.table(table(&cpus, ROWS));
    }
    for cpu in cpus.iter().take(BLOCKS) {
        block(page, summary, cpu);
    }
}

fn share(part: Nanos, cpu: &PassiveCpu) -> f64 {
    part.0 as f64 / cpu.watched_ns().0.max(1) as f64
}

/// How much of the usable time was stolen, and the worst stall.
pub(super) fn headline(page: &mut Page, summary: &RunSummary) {
    stolen(page, summary);
    let cpus = &summary.passive;
    if let Some(worst) = cpus
        .iter()
        .max_by_key(|cpu| cpu.longest_ns)
        .filter(|cpu| cpu.stretches > 0)
    {
        let at = if cpus.len() > 1 {
            format!(", on CPU {}", worst.cpu)
        } else {
            String::new()
        };
        let stalls: u64 = cpus.iter().map(|cpu| cpu.stalls).sum();
        let text = format!(
            "The worst lasted {}{at}. {} of {} or longer are kept one by one; the sums have all.",
            worst.longest_ns,
            count(stalls),
            summary.probe.threshold_ns
        );
        page.prose(None, 0, &text);
    }
}

/// The owner of a single watched CPU, if that is one thread.
fn owner(cpus: &[PassiveCpu]) -> Option<String> {
    let [cpu] = cpus else { return None };
    match (&cpu.chosen, cpu.threads.as_slice(), cpu.thread_count) {
        (Some(chosen), _, _) => Some(format!("{} (tid {})", tame(&chosen.comm), chosen.tid)),
        (None, [thread], 1) => Some(name(thread)),
        _ => None,
    }
}

/// How much of the usable time was stolen.
pub(super) fn stolen(page: &mut Page, summary: &RunSummary) {
    let cpus = &summary.passive;
    let ids: CpuSet = cpus.iter().map(|cpu| cpu.cpu).collect();
    let sum = |of: fn(&PassiveCpu) -> Nanos| cpus.iter().map(of).sum::<Nanos>();
    let (watched, stolen) = (sum(PassiveCpu::watched_ns), sum(PassiveCpu::stolen_ns));
    let stretches: u64 = cpus.iter().map(|cpu| cpu.stretches).sum();
    let wanted = sum(PassiveCpu::wanted_ns);
    let fraction = stolen.0 as f64 / wanted.0.max(1) as f64;
    if wanted == Nanos::ZERO {
        let text = match owner(cpus) {
            Some(owner) => format!(
                "{owner}, the owner of {}, did not want to run in {}, so nothing could be stolen from it.",
                short_cpus_text(&ids),
                span(watched)
            ),
            None => format!(
                "No owner of {} wanted to run in {}, so nothing could be stolen.",
                short_cpus_text(&ids),
                span(watched)
            ),
        };
        return page.prose(Some(Tone::Warning), 0, &text);
    }
    if stretches == 0 {
        let text = match owner(cpus) {
            Some(owner) => format!(
                "Nothing was stolen from {owner}, the owner of {}, as far as records show.",
                short_cpus_text(&ids)
            ),
            None => format!(
                "Nothing was stolen from the owners of {}, as far as records show.",
                short_cpus_text(&ids)
            ),
        };
        return page.prose(Some(Tone::Good), 0, &text);
    }
    let text = format!(
        "The owner of {} wanted {} of {} and lost {} of that: {stolen}, in {} stretch{}.",
        short_cpus_text(&ids),
        span(wanted),
        span(watched),
        percent(fraction),
        count(stretches),
        if stretches == 1 { "" } else { "es" },
    );
    page.prose(
        Some(if fraction >= BAD {
            Tone::Bad
        } else {
            Tone::Strong
        }),
        0,
        &text,
    );
}

/// The CPUs; `few` of them appear in short views.
pub(super) fn table(cpus: &[&PassiveCpu], few: usize) -> Table {
    let row = |(at, cpu): (usize, &&PassiveCpu)| {
        let cell = |part: Nanos| Cell::from(percent_cell(share(part, cpu)));
        Row {
            aside: at >= few,
            ..Row::from([
                cpu.cpu.to_string().into(),
                cell(cpu.running_ns),
                cell(cpu.interrupted_ns),
                cell(cpu.waiting_ns),
                cell(cpu.beside_ns),
                cell(cpu.idle_ns),
                cell(cpu.unknown_ns),
                count(cpu.stretches).into(),
                count(cpu.page_faults).into(),
                cpu.longest_ns.to_string().into(),
                names(cpu).into(),
            ])
        }
    };
    Table {
        title: "CPUs, those that lost most first".into(),
        columns: vec![
            Column::number("CPU"),
            Column::number("running"),
            Column::number("interrupted"),
            Column::number("waiting"),
            Column::number("beside"),
            Column::number("idle"),
            Column::number("unknown").of_rank(1),
            Column::number("times taken").of_rank(2),
            Column::number("page faults").of_rank(3),
            Column::number("longest"),
            Column::text("owner"),
        ],
        rows: cpus.iter().enumerate().map(row).collect(),
        aside: "which lost less",
        ..Table::default()
    }
}

fn name(thread: &BelongingThread) -> String {
    format!("{} (tid {})", tame(&thread.comm), thread.tid)
}

pub(super) fn names(cpu: &PassiveCpu) -> String {
    let mut names: Vec<String> = cpu.threads.iter().take(NAMED).map(name).collect();
    let more = cpu.thread_count.saturating_sub(names.len() as u64);
    match (names.len(), more) {
        (0, _) => "nothing that ran".into(),
        (_, 0) => names.join(", "),
        _ => {
            names.push(format!("{} more", count(more)));
            names.join(", ")
        }
    }
}

fn block(page: &mut Page, summary: &RunSummary, cpu: &PassiveCpu) {
    page.heading(
        &format!("CPU {}", cpu.cpu),
        &format!("watched for {}", span(cpu.watched_ns())),
    );
    let text = match &cpu.chosen {
        Some(chosen) => format!(
            "Its owner is {} (tid {}), which had most of it, {}, in the {} {}.",
            tame(&chosen.comm),
            chosen.tid,
            percent(chosen.share),
            chosen.look_ns,
            if summary.run.imported.is_some() {
                "of the trace"
            } else {
                "before the measurement"
            }
        ),
        None if cpu.threads.is_empty() => "No owner ran there.".into(),
        None => format!("Its owner is {}.", names(cpu)),
    };
    page.prose(Some(Tone::Strong), 2, &text);
    let part = |ns: Nanos| format!("{ns} ({})", percent(share(ns, cpu)));
    let text = format!(
        "That ran for {}. It was interrupted for {} and waited for the CPU for {}: both were stolen from it.",
        part(cpu.running_ns),
        part(cpu.interrupted_ns),
        part(cpu.waiting_ns)
    );
    page.prose(None, 2, &text);
    if cpu.beside_ns + cpu.idle_ns > Nanos::ZERO {
        let text = format!(
            "While it slept others ran for {}, which took nothing from it, and the CPU idled for {}.",
            part(cpu.beside_ns),
            part(cpu.idle_ns)
        );
        page.prose(None, 2, &text);
    }
    if cpu.unknown_ns > Nanos::ZERO {
        let text = format!(
            "Of {} no record tells: before the first one, after a loss, or behind a switch that left none.",
            part(cpu.unknown_ns)
        );
        page.prose(Some(Tone::Warning), 2, &text);
    }
    if cpu.page_faults > 0 {
        let text = format!(
            "It took {} page fault{}, which are counted and not timed: their time is in that of running.",
            count(cpu.page_faults),
            if cpu.page_faults == 1 { "" } else { "s" }
        );
        page.prose(None, 2, &text);
    }
    if let Some(why) = &cpu.ended_early {
        page.prose(
            Some(Tone::Warning),
            2,
            &format!("It was not watched to the end: {}.", ended_early(why)),
        );
    }
    if cpu.stretches > 0 {
        let text = format!(
            "Taken from it in {} stretch{}, the worst of {}; {} of {} or longer:",
            count(cpu.stretches),
            if cpu.stretches == 1 { "" } else { "es" },
            cpu.longest_ns,
            count(cpu.stalls),
            summary.probe.threshold_ns
        );
        page.prose(None, 2, &text);
    }
    let title = format!("What ran instead on CPU {}", cpu.cpu);
    threads::instead(page, &cpu.ran_instead, title, "ran instead");
    let title = format!("What ran on CPU {} while its owner slept", cpu.cpu);
    threads::instead(page, &cpu.ran_beside, title, "ran while it slept");
}
