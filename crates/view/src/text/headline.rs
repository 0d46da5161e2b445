//! The run, how much time was stolen, and the worst stall.

use super::{Page, cpus, over_time, short_cpus_text, unattributed, wakeup};
use crate::cpus_because::stored_cpus_because;
use crate::doubts::doubts_text;
use crate::number::{count, moment, percent, rate, span, utc};
use crate::style::{Tone, tame};
use crate::words;
use jitterscope_analyze::RunSummary;
use jitterscope_model::{AskedBy, ClockCosts, CpuSet, Nanos, SavedMoment};

/// The default threshold with a fast clock.
const USUAL: Nanos = Nanos(300);
/// A share of time above which the verdict is red: the machine does not suit latency-sensitive work.
const BAD: f64 = 0.01;

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    if let Some(wakeup) = &summary.wakeup {
        title(page, summary, &wakeup::measured(wakeup));
        page.line("");
        wakeup::headline(page, summary, wakeup);
        page.worst_case(summary);
        doubts(page, summary);
        over_time::render(page, summary);
        return wakeup::table(page, summary, wakeup);
    }
    let cpus: CpuSet = summary.probe.cpus.iter().map(|cpu| cpu.cpu).collect();
    title(page, summary, &cpus);
    page.line("");
    stolen(page, summary, &cpus);
    page.worst_case(summary);
    doubts(page, summary);
    over_time::render(page, summary);
    cpus::render(page, summary);
}

pub(super) fn title(page: &mut Page, summary: &RunSummary, cpus: &CpuSet) {
    let run = &summary.run;
    let name = format!("{}  {}", tame(&run.label), tame(&run.id));
    let rest = format!("{} UTC  {}", utc(run.started_realtime_ns), run.hostname);
    page.name(&name, &rest);
    page.prose(Some(Tone::Dim), 0, &facts(summary, cpus).join("; "));
    if let Some(because) = &summary.probe.cpus_chosen_because {
        page.prose(
            Some(Tone::Dim),
            0,
            &format!(
                "{} chosen: {}",
                short_cpus_text(cpus),
                stored_cpus_because(because)
            ),
        );
    }
    if let Some(moment) = &run.moment {
        page.prose(None, 0, &saved(moment));
    } else if run.killed {
        page.prose(Some(Tone::Warning), 0, &killed(summary));
    } else if run.interrupted {
        let text = match run.planned_ns {
            Nanos(0) => format!("ended before its time, after {}", span(run.duration_ns)),
            planned => format!(
                "ended before its time: {} of {}",
                span(run.duration_ns),
                span(planned)
            ),
        };
        page.prose(Some(Tone::Warning), 0, &text);
    }
}

/// What was measured, for how long and where.
pub(crate) fn facts(summary: &RunSummary, cpus: &CpuSet) -> Vec<String> {
    let run = &summary.run;
    let mut facts = vec![
        match cpus.is_empty() {
            true => words::probe(&summary.probe.kind),
            false => format!(
                "{} on {}",
                words::probe(&summary.probe.kind),
                short_cpus_text(cpus)
            ),
        },
        match &summary.wakeup {
            Some(_) => format!(
                "{}, late from {}",
                span(run.duration_ns),
                summary.probe.threshold_ns
            ),
            None => format!("{}, {}", span(run.duration_ns), stalls_from(summary)),
        },
    ];
    facts.extend(summary.wakeup.iter().flat_map(wakeup::facts));
    facts.extend(
        summary
            .probe
            .fifo_priority
            .map(|priority| format!("SCHED_FIFO {priority}")),
    );
    facts.push(format!("kernel {}", tame(&run.kernel_release)));
    facts.push(tame(&run.cpu_model));
    facts.extend(
        run.hypervisor
            .as_ref()
            .map(|signature| format!("guest of {}", hypervisor(signature))),
    );
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// Who asked for a moment to be saved.
pub(crate) fn saved_by(by: AskedBy) -> &'static str {
    match by {
        AskedBy::Condition => "a condition was met",
        AskedBy::Application => "the application asked",
        AskedBy::Signal => "SIGUSR1 came",
        AskedBy::Marker => "a mark was written into the trace",
        AskedBy::Person => "'watch save' asked",
        AskedBy::Unknown => "for a reason that this version does not know",
    }
}

/// Who asked for the moment that the run surrounds, and when.
pub(super) fn saved(moment: &SavedMoment) -> String {
    let mut text = format!(
        "saved by watch around {} UTC: {}",
        utc(moment.realtime_ns),
        saved_by(moment.by)
    );
    if !moment.text.is_empty() {
        text.push_str(&format!(": {}", tame(&moment.text)));
    }
    match moment.joined {
        0 => {}
        1 => text.push_str("; one more request joined it"),
        more => text.push_str(&format!("; {more} more requests joined it")),
    }
    text
}

/// That the recording was killed, and when.
pub(super) fn killed(summary: &RunSummary) -> String {
    let run = &summary.run;
    let text = format!("killed after {}", span(run.duration_ns));
    match run.planned_ns {
        Nanos(0) => text,
        planned => format!("{text} of {}", span(planned)),
    }
}

/// `stalls from 2.00 us`, with the reason if that is unusual or unreasonable.
fn stalls_from(summary: &RunSummary) -> String {
    let text = format!("stalls from {}", summary.probe.threshold_ns);
    unusual(summary).map_or(text.clone(), |why| format!("{text}{why}"))
}

/// Why the threshold is unusual, or should be.
pub(crate) fn unusual(summary: &RunSummary) -> Option<String> {
    let threshold = summary.probe.threshold_ns;
    let ClockCosts {
        read_tail_ns: reads,
        store_ns: store,
        decide_threshold,
    } = summary.probe.clock_costs?;
    if decide_threshold && threshold > USUAL {
        return Some(format!(
            " (this clock's own reads take up to {reads}, storing a stall {store})"
        ));
    }
    (!decide_threshold && threshold <= reads.max(store)).then(|| {
        format!(", as asked, though this clock's own reads take up to {reads}, and storing a stall {store}")
    })
}

/// Why no culprits are named, for all or a part of the time.
pub(crate) fn doubts(page: &mut Page, summary: &RunSummary) {
    if let Some(text) = unproven(summary).or_else(|| withheld(summary)) {
        page.prose(Some(Tone::Bad), 0, &text);
    }
}

/// Why no culprits are named for a part of the time.
fn withheld(summary: &RunSummary) -> Option<String> {
    let doubts = &summary.trust.doubts;
    (!doubts.is_empty()).then(|| {
        format!(
            "For part of the time the culprits are unknown: {}.",
            doubts_text(doubts)
        )
    })
}

/// Why no culprits are named, as a sentence; `None` if the run's evidence passes its proof.
#[must_use]
pub fn unproven(summary: &RunSummary) -> Option<String> {
    let doubts = summary.withheld();
    (!doubts.is_empty()).then(|| format!("The culprits are unknown: {}.", doubts_text(doubts)))
}

/// The product behind a CPUID signature (leaf 0x40000000).
pub(crate) fn hypervisor(signature: &str) -> String {
    match signature.trim_end_matches('\0') {
        "KVMKVMKVM" => "KVM".into(),
        "Microsoft Hv" => "Hyper-V".into(),
        "VMwareVMware" => "VMware".into(),
        "XenVMMXenVMM" => "Xen".into(),
        "TCGTCGTCGTCG" => "QEMU without KVM".into(),
        other => tame(other),
    }
}

pub(super) fn stolen(page: &mut Page, summary: &RunSummary, cpus: &CpuSet) {
    let total = &summary.probe.total;
    let who = short_cpus_text(cpus);
    let (their, have) = if cpus.len() == 1 {
        ("its", "has")
    } else {
        ("their", "have")
    };
    if total.measured_ns == Nanos::ZERO {
        page.prose(
            Some(Tone::Bad),
            0,
            &format!("Nothing was measured on {who}."),
        );
        return;
    }
    if total.stalls == 0 {
        let bound = total
            .stalls_per_sec_bound
            .map_or_else(String::new, |bound| {
                format!(
                    " (with 95 % confidence, fewer than {} per second{})",
                    rate(bound),
                    bound_of_each(summary)
                )
            });
        let text = format!(
            "{who} lost nothing: no stall of {} or longer in {}{bound}.",
            summary.probe.threshold_ns,
            span(total.measured_ns)
        );
        page.prose(Some(Tone::Good), 0, &text);
        if let Some(longest) = total.max_ns {
            page.prose(
                None,
                0,
                &format!("The longest time between two clock reads was {longest}."),
            );
        }
        return;
    }
    let plural = if total.stalls == 1 { "" } else { "s" };
    let text = format!(
        "{who} {have} lost {} of {their} time: {} of {}{}, in {} stall{plural} ({} per second{})",
        percent(total.stolen_fraction),
        total.stolen_ns,
        span(total.measured_ns),
        if cpus.len() == 1 { "" } else { " of CPU time" },
        count(total.stalls),
        rate(total.stalls_per_sec),
        if cpus.len() == 1 { "" } else { " and CPU" },
    );
    let tone = if total.stolen_fraction >= BAD {
        Tone::Bad
    } else {
        Tone::Strong
    };
    let worst = worst(summary, cpus.len() > 1);
    // Without a list of culprits this sentence is the whole answer.
    let host = match summary.attribution {
        None => unattributed::host_share(summary),
        Some(_) => None,
    };
    match (worst, host) {
        (Some(worst), Some(host)) => {
            page.prose(Some(tone), 0, &format!("{text}; the {worst}; {host}."));
        }
        (worst, _) => {
            page.prose(Some(tone), 0, &format!("{text}."));
            if let Some(worst) = worst {
                page.prose(None, 0, &format!("The {worst}."));
            }
        }
    }
}

/// The bound of the CPU that measured for the shortest time, which holds for each of several CPUs.
fn bound_of_each(summary: &RunSummary) -> String {
    let cpus = summary.probe.cpus.iter();
    let bounds: Vec<f64> = cpus.filter_map(|of| of.stalls_per_sec_bound).collect();
    match bounds.as_slice() {
        [] | [_] => String::new(),
        all => format!(
            ", and on each CPU fewer than {}",
            rate(all.iter().copied().fold(0.0, f64::max))
        ),
    }
}

/// The longest stall, as the rest of a sentence that begins with `the`.
fn worst(summary: &RunSummary, several: bool) -> Option<String> {
    let longest = summary.probe.total.max_ns?;
    let mut text = format!("worst lasted {longest}");
    if let Some(cpu) = summary.probe.total.max_cpu.filter(|_| several) {
        text += &format!(", on CPU {cpu}");
    }
    // The longest delta may have no record if the queue was full; then only its length is known.
    if let Some(stall) = summary
        .worst
        .first()
        .filter(|stall| stall.duration_ns == longest)
    {
        if let Some(together) = &stall.together {
            let others = together.cpus.len().saturating_sub(1);
            text += &format!(
                " and {others} other{} together",
                if others == 1 { "" } else { "s" }
            );
        }
        text += &format!(", {} after the start", moment(stall.start_offset_ns));
        if let Some((who, net)) = stall
            .by_culprit()
            .first()
            .filter(|_| summary.withheld().is_empty())
        {
            text += &format!(
                ": {} {} ({})",
                percent(net.0 as f64 / stall.duration_ns.0.max(1) as f64),
                words::kind_and_name(who),
                words::explain(who)
            );
        }
    } else if summary.trust.dropped_records > 0 {
        text += "; it has no record, because the queue was full";
    }
    Some(text)
}
