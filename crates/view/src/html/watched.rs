//! The time of CPUs watched without a probe.

use super::markup::Markup;
use crate::chart::shares::{self, Whole};
use crate::number::span;
use crate::report::Links;
use crate::style::Style;
use crate::text::{Page, passive};
use jitterscope_analyze::RunSummary;
use jitterscope_model::{Nanos, PassiveCpu, PutInOrder};
use std::cmp::Reverse;

/// The number of CPUs in the chart.
const FEW: usize = 16;

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
    cpus.order_by_key(|cpu| (Reverse(cpu.stolen_ns()), cpu.cpu));
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
    let mut page = Page::new(Style::default());
    passive::cpus(&mut page, summary);
    page.into_report().html(body, &Links::default());
    body.end();
}

fn share(part: Nanos, cpu: &PassiveCpu) -> f64 {
    part.0 as f64 / cpu.watched_ns().0.max(1) as f64
}
