//! Watched CPUs: their owners, how much was stolen from them, and the worst stall.

use super::Ranking;
use crate::number::percent;
use crate::style::{Tone, tame};
use crate::text::{Page, passive};
use jitterscope_analyze::RunSummary;
use jitterscope_model::{Nanos, PassiveCpu, PutInOrder};

/// `rows`: the largest number of individual CPUs.
pub(super) fn render<'a>(
    page: &mut Page,
    summary: &'a RunSummary,
    rows: usize,
) -> Option<Ranking<'a>> {
    passive::stolen(page, summary);
    super::longest(page, summary);
    let mut cpus: Vec<&PassiveCpu> = summary.passive.iter().collect();
    cpus.order_by_key(|cpu| (std::cmp::Reverse(cpu.stolen_ns()), cpu.cpu));
    let sum = |of: fn(&PassiveCpu) -> Nanos| cpus.iter().map(|cpu| of(cpu)).sum::<Nanos>();
    let (unknown, watched) = (sum(|cpu| cpu.unknown_ns), sum(PassiveCpu::watched_ns));
    let unknown = Some(unknown).filter(|unknown| unknown.0 > watched.0 / 100);
    let unknown =
        unknown.map(|unknown| format!("of {unknown} of their time no record tells what ran"));
    match cpus.as_slice() {
        [one] => belongs(page, summary, one),
        _ if rows == 0 => {}
        several => page.table(passive::table(several, rows)),
    }
    if let Some(unknown) = unknown {
        page.prose(Some(Tone::Warning), 2, &unknown);
    }
    summary
        .attribution
        .as_ref()
        .map(|attribution| Ranking::Culprits(summary, attribution))
}

/// The owner of the CPU, and its time.
fn belongs(page: &mut Page, summary: &RunSummary, cpu: &PassiveCpu) {
    let share = |part: Nanos| percent(part.0 as f64 / cpu.watched_ns().0.max(1) as f64);
    let whose = match &cpu.chosen {
        Some(chosen) => format!(
            "{} (tid {}), which had {} of it in the {}",
            tame(&chosen.comm),
            chosen.tid,
            percent(chosen.share),
            if summary.run.imported.is_some() {
                "trace"
            } else {
                "look before"
            }
        ),
        None => passive::names(cpu),
    };
    let (others, idle) = (share(cpu.beside_ns), share(cpu.idle_ns));
    // All components, so that they sum to the whole.
    let mut taken = format!(" It lost {}", share(cpu.stolen_ns()));
    if cpu.unknown_ns > Nanos::ZERO {
        taken += &format!("; of {} nothing is known", share(cpu.unknown_ns));
    }
    let text = match (
        cpu.chosen.is_some() || !cpu.threads.is_empty(),
        cpu.running_ns,
    ) {
        (false, _) => {
            format!(
                "No owner of CPU {} ran: others had {others} of it, idle {idle}.",
                cpu.cpu
            )
        }
        (true, Nanos::ZERO) => format!(
            "CPU {} belongs to {whose}, and that did not run: others had {others} of it, idle {idle}.{taken}.",
            cpu.cpu
        ),
        (true, ran) => format!(
            "CPU {} belongs to {whose}. That ran {}; while it slept others ran {others}, and the CPU idled {idle}.\
             {taken}.",
            cpu.cpu,
            share(ran)
        ),
    };
    page.prose(None, 0, &text);
}
