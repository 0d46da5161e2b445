//! Periods, trust, and the machine.

use super::markup::{Cell, Head, Markup};
use crate::chart::words as chart_words;
use crate::drawn::Drawn;
use crate::number::{bytes, count, percent_cell};
use crate::sources::source_words;
use crate::{text, words};
use jitterscope_analyze::periods::{PeriodRow, Regularity};
use jitterscope_analyze::{RunSummary, SourceWords};
use jitterscope_model::{MachineState, Reading, SourceStatus};

pub(super) fn periods(body: &mut Markup, run: &Drawn) {
    let summary = &run.summary;
    let noun = chart_words::noun(run);
    let many = noun.many;
    body.section("periods", "Periods");
    match &summary.periods {
        None => {
            body.note(text::not_looked_for(summary));
        }
        Some(periods) if periods.rows.is_empty() => {
            body.note(&format!(
                "No significant period in {} series of {many}, one a culprit and CPU.",
                count(periods.searched as u64)
            ));
        }
        Some(periods) => {
            let heads = [
                Head::Number("every"),
                Head::Text("culprit"),
                Head::Number("CPU"),
                Head::Number(many),
                Head::Number("in step"),
                Head::Number("periods hit"),
                Head::Text("kept by a clock"),
                Head::Text("known as"),
            ];
            let row = |row: &PeriodRow| {
                let culprit = match (&row.kind, &row.name) {
                    (Some(kind), Some(name)) => culprit(run, format!("{kind} {name}")),
                    _ => Cell::Text(format!("all {many}")),
                };
                let kept = match row.regularity {
                    Regularity::Clocked => "yes",
                    Regularity::Drifting => "drifts",
                    Regularity::Undecided => "",
                };
                vec![
                    Cell::Number(row.period_ns.to_string()),
                    culprit,
                    Cell::Number(row.cpu.to_string()),
                    Cell::Number(count(row.stalls)),
                    Cell::Number(percent_cell(row.in_pulse as f64 / row.stalls.max(1) as f64)),
                    Cell::Number(percent_cell(row.hit_fraction)),
                    Cell::Text(kept.into()),
                    Cell::Text(row.known.unwrap_or_default().into()),
                ]
            };
            body.table(
                &format!("{} that come regularly", noun.heading),
                &heads,
                periods.rows.iter().map(row).collect(),
            );
            body.note(&format!(
                "In step: of the {many}, those in the same tenth of the period. Of {} runs whose {many} come at \
                 random one would show any period.",
                count((1.0 / periods.false_alarm).round() as u64)
            ));
        }
    }
    body.end();
}

/// A culprit by its name; if the page lists it, a click shows only its stalls.
fn culprit(run: &Drawn, text: String) -> Cell {
    let found = run
        .picture
        .culprits
        .iter()
        .position(|culprit| words::kind_and_name(&culprit.subject) == text);
    match found {
        Some(number) => Cell::Culprit { number, text },
        None => Cell::Text(text),
    }
}

pub(super) fn trust(body: &mut Markup, summary: &RunSummary) {
    body.section("trust", "How far to trust it");
    let statements = text::trust(summary);
    body.facts(
        statements
            .iter()
            .map(|statement| (statement.name.as_str(), statement.text.clone())),
    );
    let limited: Vec<_> = summary
        .sources
        .iter()
        .filter(|source| source.status != SourceStatus::Available)
        .collect();
    if !limited.is_empty() {
        let heads = [
            Head::Text("source"),
            Head::Text("status"),
            Head::Text("why"),
            Head::Text("what cannot be seen for it"),
            Head::Text("how to get it"),
        ];
        let rows = limited.into_iter().map(|source| {
            let SourceWords { reason, loses, fix } = source_words(&source.problems, &source.losses);
            [
                source.name.clone(),
                source.status.to_string(),
                reason,
                loses,
                fix,
            ]
            .map(Cell::Text)
            .into()
        });
        body.table(
            "Sources that were not there in full",
            &heads,
            rows.collect(),
        );
    }
    body.end();
}

pub(super) fn machine(body: &mut Markup, run: &Drawn) {
    let host = &run.manifest.host;
    body.section("machine", "Machine");
    let mut facts = vec![
        ("host", host.hostname.clone()),
        ("processor", host.cpu_model.clone()),
        (
            "kernel",
            format!(
                "{} {} {}",
                host.kernel_release, host.kernel_version, host.arch
            ),
        ),
        ("kernel line", host.cmdline.clone()),
        ("online CPUs", host.online.to_string()),
        ("isolated CPUs", host.isolated.to_string()),
        ("nohz_full CPUs", host.nohz_full.to_string()),
        (
            "hypervisor",
            host.hypervisor
                .as_deref()
                .map(text::headline::hypervisor)
                .unwrap_or_default(),
        ),
    ];
    if let Some(machine) = &run.summary.machine {
        facts.extend(more(machine));
    }
    facts.retain(|(_, text)| !text.trim().is_empty());
    body.facts(facts);
    if !run.manifest.command_line.is_empty() {
        body.facts([("recorded by", run.manifest.command_line.join(" "))]);
    }
    body.end();
}

fn read<T>(reading: &Reading<T>, text: impl FnOnce(&T) -> String) -> String {
    reading.value().map(text).unwrap_or_default()
}

fn more(machine: &MachineState) -> Vec<(&'static str, String)> {
    let (processors, memory) = (&machine.processors, &machine.memory);
    let per_cpu = |all: Vec<(String, String)>| match &all[..] {
        [(_, value)] => value.clone(),
        all => all
            .iter()
            .map(|(cpus, value)| format!("{cpus}: {value}"))
            .collect::<Vec<_>>()
            .join("; "),
    };
    let microcode = read(&processors.microcode, |all| {
        per_cpu(
            all.0
                .iter()
                .map(|group| (group.cpus.to_string(), group.value.clone()))
                .collect(),
        )
    });
    let governor = read(&processors.frequency, |all| {
        let of = |group: &jitterscope_model::CpuGroup<jitterscope_model::FrequencyPolicy>| {
            let policy = &group.value;
            let words = [&policy.driver, &policy.governor].map(|word| read(word, Clone::clone));
            (group.cpus.to_string(), words.join(" ").trim().to_owned())
        };
        per_cpu(all.0.iter().map(of).collect())
    });
    vec![
        ("microcode", microcode),
        ("frequency", governor),
        ("boost", read(&processors.boost, Clone::clone)),
        ("idle driver", read(&processors.idle.driver, Clone::clone)),
        ("SMT", read(&processors.smt.control, Clone::clone)),
        (
            "memory",
            read(&memory.total_kib, |kib| bytes(kib.saturating_mul(1024))),
        ),
        (
            "huge pages",
            read(&memory.transparent_huge_pages, Clone::clone),
        ),
        (
            "clock source",
            read(&machine.kernel.clocksource, Clone::clone),
        ),
        ("preemption", read(&machine.kernel.preemption, Clone::clone)),
        ("firmware", {
            let firmware = &machine.firmware;
            let words = [
                &firmware.vendor,
                &firmware.product,
                &firmware.bios_vendor,
                &firmware.bios_version,
            ];
            words
                .map(|word| read(word, Clone::clone))
                .join(" ")
                .trim()
                .to_owned()
        }),
    ]
}
