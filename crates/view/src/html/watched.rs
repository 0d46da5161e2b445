//! The time of CPUs watched without a probe.

use super::followed::ran;
use super::markup::{Cell, Head, Markup};
use crate::chart::shares::{self, Whole};
use crate::ended::ended_early;
use crate::number::{count, percent, percent_cell, span};
use jitterscope_analyze::RunSummary;
use jitterscope_model::{BelongingThread, Nanos, PassiveCpu};
use std::cmp::Reverse;

/// The number of CPUs shown at first.
const FEW: usize = 16;
/// The number of CPUs with a list of what ran there.
const BLOCKS: usize = 8;
/// The number of named owners of a CPU.
const NAMED: usize = 6;

/// A component of a CPU's time.
type Sort = (&'static str, fn(&PassiveCpu) -> Nanos);

const SORTS: [Sort; 6] = [
    ("running", |cpu| cpu.running_ns),
    ("interrupted (stolen)", |cpu| cpu.interrupted_ns),
    ("waiting (stolen)", |cpu| cpu.waiting_ns),
    ("others beside, while it slept", |cpu| cpu.beside_ns),
    ("idle", |cpu| cpu.idle_ns),
    ("unknown", |cpu| cpu.unknown_ns),
];

pub(super) fn render(body: &mut Markup, summary: &RunSummary) {
    if summary.passive.is_empty() {
        return;
    }
    body.section("watched", "Owners, and who ran instead");
    let mut cpus: Vec<&PassiveCpu> = summary.passive.iter().collect();
    cpus.sort_by_key(|cpu| (Reverse(cpu.stolen_ns()), cpu.cpu));
    let bars = cpus.iter().take(FEW).map(|cpu| Whole {
        name: format!("CPU {}", cpu.cpu),
        shares: SORTS.iter().map(|(_, of)| share(of(cpu), cpu)).collect(),
    });
    let remark = format!(
        "shares of {}, the CPUs that lost most first",
        span(summary.run.duration_ns)
    );
    let names = SORTS.map(|(name, _)| name);
    let drawn = shares::inline(
        "What became of each CPU's time",
        &remark,
        &names,
        &bars.collect::<Vec<_>>(),
    );
    body.chart(None, &drawn);
    table(body, &cpus);
    for cpu in cpus.iter().take(BLOCKS) {
        block(body, summary, cpu);
    }
    body.end();
}

fn share(part: Nanos, cpu: &PassiveCpu) -> f64 {
    part.0 as f64 / cpu.watched_ns().0.max(1) as f64
}

fn table(body: &mut Markup, cpus: &[&PassiveCpu]) {
    let heads = [
        Head::Number("CPU"),
        Head::Text("owner"),
        Head::Number("running"),
        Head::Number("interrupted"),
        Head::Number("waiting"),
        Head::Number("beside"),
        Head::Number("idle"),
        Head::Number("unknown"),
        Head::Number("times taken"),
        Head::Number("longest"),
        Head::Number("page faults"),
    ];
    let row = |cpu: &&PassiveCpu| {
        let mut row = vec![
            Cell::Number(cpu.cpu.to_string()),
            Cell::Lines(belonging(cpu)),
        ];
        row.extend(SORTS.map(|(_, of)| Cell::Number(percent_cell(share(of(cpu), cpu)))));
        row.extend([
            Cell::Number(count(cpu.stretches)),
            Cell::Number(cpu.longest_ns.to_string()),
            Cell::Number(count(cpu.page_faults)),
        ]);
        row
    };
    let (first, rest) = cpus.split_at(cpus.len().min(FEW));
    body.table(
        "Shares of the time that each was watched",
        &heads,
        first.iter().map(row).collect(),
    );
    if !rest.is_empty() {
        body.details(
            &format!("{} more CPUs, which lost less", rest.len()),
            |body| {
                body.table(
                    "CPUs that lost less",
                    &heads,
                    rest.iter().map(row).collect(),
                );
            },
        );
    }
}

fn belonging(cpu: &PassiveCpu) -> Vec<String> {
    let name = |thread: &BelongingThread| format!("{} (tid {})", thread.comm, thread.tid);
    let mut names: Vec<String> = cpu.threads.iter().take(NAMED).map(name).collect();
    match (
        names.len(),
        cpu.thread_count.saturating_sub(names.len() as u64),
    ) {
        (0, _) => vec!["nothing that ran".into()],
        (_, 0) => names,
        (_, more) => {
            names.push(format!("{} more", count(more)));
            names
        }
    }
}

fn block(body: &mut Markup, summary: &RunSummary, cpu: &PassiveCpu) {
    if let Some(chosen) = &cpu.chosen {
        body.note(&format!(
            "CPU {} belongs to {} (tid {}), which had most of it, {}, in the look of {} before the measurement.",
            cpu.cpu,
            chosen.comm,
            chosen.tid,
            percent(chosen.share),
            chosen.look_ns
        ));
    }
    if let Some(why) = &cpu.ended_early {
        body.element(
            "<p class=\"warning\"><strong>Warning:</strong> ",
            &format!(
                "CPU {} was not watched to the end: {}.",
                cpu.cpu,
                ended_early(why)
            ),
            "</p>\n",
        );
    }
    if cpu.stretches > 0 {
        body.note(&format!(
            "CPU {} was taken {} times, for {} in all; {} of these were {} or longer and are listed one by one.",
            cpu.cpu,
            count(cpu.stretches),
            cpu.stolen_ns(),
            count(cpu.stalls),
            summary.probe.threshold_ns
        ));
    }
    ran(
        body,
        &format!("What ran instead on CPU {}", cpu.cpu),
        &cpu.ran_instead,
    );
    if !cpu.ran_beside.is_empty() {
        body.details(
            &format!(
                "What ran on CPU {} while it slept, and took nothing",
                cpu.cpu
            ),
            |body| {
                ran(
                    body,
                    &format!("Beside it on CPU {}", cpu.cpu),
                    &cpu.ran_beside,
                );
            },
        );
    }
}
