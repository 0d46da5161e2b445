//! Percentiles for three different questions.

use super::{FEW_CPUS, Page};
use crate::style::Tone;
use jitterscope_analyze::{Percentiles, RunSummary};
use jitterscope_model::Nanos;

const NAMES: [&str; 7] = ["50", "90", "99", "99.9", "99.99", "99.999", "99.9999"];

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    if summary.probe.total.max_ns.is_none() {
        return;
    }
    page.heading("PERCENTILES", "");
    let mut head = " ".repeat(11);
    for name in NAMES.into_iter().chain(["max"]) {
        head += &format!("{name:>8}");
    }
    page.line(&page.style.paint(Tone::Dim, &head));
    if summary.probe.cpus.len() > FEW_CPUS {
        let total = &summary.probe.total;
        let of = [
            &total.percentiles_ns,
            &total.instant_percentiles_ns,
            &total.stall_percentiles_ns,
        ];
        block(page, "all", of, total.max_ns, total.stalls);
    } else {
        for cpu in &summary.probe.cpus {
            let of = [
                &cpu.percentiles_ns,
                &cpu.instant_percentiles_ns,
                &cpu.stall_percentiles_ns,
            ];
            block(page, &cpu.cpu.to_string(), of, cpu.max_ns, cpu.stalls);
        }
    }
    let text = "read: time between clock reads. wait: what a random moment waits until the CPU is back, so \
                long stalls weigh by their length. stall: stalls alone (- where fewer than ten lie above).";
    page.prose(Some(Tone::Dim), 2, text);
}

fn block(page: &mut Page, cpu: &str, of: [&Percentiles; 3], max: Option<Nanos>, stalls: u64) {
    for (name, percentiles) in ["read", "wait", "stall"].into_iter().zip(of) {
        if name == "stall" && stalls == 0 {
            continue;
        }
        let mut line = format!("{:>4} {name:<6}", if name == "read" { cpu } else { "" });
        for percentile in NAMES {
            let shown = percentiles.get(percentile).copied().flatten();
            line += &format!(
                "{:>8}",
                shown.map_or_else(|| "-".into(), |ns| ns.to_string())
            );
        }
        line += &format!("{:>8}", max.map_or_else(|| "-".into(), |ns| ns.to_string()));
        page.line(&line);
    }
}
