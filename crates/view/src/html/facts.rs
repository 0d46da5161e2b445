//! Periods, trust, and the machine.

use super::markup::Markup;
use crate::chart::words as chart_words;
use crate::drawn::Drawn;
use crate::number::bytes;
use crate::report::Links;
use crate::text::{self, periods, trust};
use jitterscope_analyze::RunSummary;
use jitterscope_model::{MachineEntry, MachineState, Scalar};

pub(super) fn periods(body: &mut Markup, run: &Drawn, links: &Links<'_>) {
    let summary = &run.summary;
    body.section("periods", "Periods");
    match &summary.periods {
        None => {
            body.note(text::not_looked_for(summary));
        }
        Some(found) => {
            let several = summary.probe.cpus.len() > 1;
            periods::report(found, chart_words::noun(run), several, usize::MAX).html(body, links);
        }
    }
    body.end();
}

pub(super) fn marks(body: &mut Markup, run: &Drawn, links: &Links<'_>) {
    if let Some(marks) = &run.summary.marks {
        body.section("marks", text::marks::HEADING);
        text::marks_report(&run.summary, marks).html(body, links);
        body.end();
    }
}

pub(super) fn trust(body: &mut Markup, summary: &RunSummary) {
    body.section("trust", "How far to trust it");
    trust::report(summary).html(body, &Links::default());
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
