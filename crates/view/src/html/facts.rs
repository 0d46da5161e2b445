//! Periods, trust, and the machine.

use super::markup::{Cell, Head, Markup};
use crate::chart::words as chart_words;
use crate::drawn::Drawn;
use crate::number::{bytes, count, percent_cell};
use crate::sources::source_words;
use crate::{text, words};
use jitterscope_analyze::periods::{PeriodRow, Regularity};
use jitterscope_analyze::{RunSummary, SourceWords};
use jitterscope_model::{MachineEntry, MachineState, Scalar, SourceStatus};

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

/// A setting's value, or the value of each group of CPUs; empty if there is none.
fn shown(machine: &MachineState, name: &str) -> String {
    let text = |entry: &MachineEntry| match entry.is.value() {
        Some(Scalar::Number(kib)) => Some(bytes(kib.saturating_mul(1024))),
        Some(Scalar::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let entries = machine.settings.get(name);
    let alone = entries.len() == 1;
    let shown = entries.iter().filter_map(|entry| match &entry.cpus {
        Some(cpus) if !alone => Some(format!("{cpus}: {}", text(entry)?)),
        _ => text(entry),
    });
    shown.collect::<Vec<_>>().join("; ")
}

fn more(machine: &MachineState) -> Vec<(&'static str, String)> {
    let facts: [(&str, &[&str]); 10] = [
        ("microcode", &["processors.microcode"]),
        (
            "frequency",
            &[
                "processors.frequency.driver",
                "processors.frequency.governor",
            ],
        ),
        ("boost", &["processors.boost"]),
        ("idle driver", &["processors.idle.driver"]),
        ("SMT", &["processors.smt.control"]),
        ("memory", &["memory.total_kib"]),
        ("huge pages", &["memory.transparent_huge_pages"]),
        ("clock source", &["kernel.clocksource"]),
        ("preemption", &["kernel.preemption"]),
        (
            "firmware",
            &[
                "firmware.vendor",
                "firmware.product",
                "firmware.bios_vendor",
                "firmware.bios_version",
            ],
        ),
    ];
    let shown = |settings: &[&str]| {
        let words = settings.iter().map(|name| shown(machine, name));
        words.collect::<Vec<_>>().join(" ").trim().to_owned()
    };
    facts.map(|(name, settings)| (name, shown(settings))).into()
}
