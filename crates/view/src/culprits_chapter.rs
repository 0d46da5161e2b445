//! All culprits as a chapter of the documents.

use crate::words;
use jitterscope_analyze::{NameList, known_names};
use jitterscope_model::{CulpritKind, Verdict};
use jitterscope_tune::{Answer, CulpritPattern, Effect, Knob, catalogue};
use std::fmt::Write;

/// The chapter `docs/culprits.md`.
#[must_use]
pub fn culprits_chapter() -> String {
    let mut out = String::from(
        "# The culprits\n\n<!-- Generated from the tables of crates/model, crates/analyze and crates/tune by a test of \
         crates/view (JITTERSCOPE_WRITE_DOCS=1 rewrites it); edit the tables instead. -->\n\n\
         A report names each culprit by its kind and its name: `timer tick_nohz_handler`, `kworker vmstat_update`. \
         This page has all kinds, what each rests on, the names that reports explain, and the [knobs](knobs.md) that \
         remove or reduce it, with their risk and cost. The *confidence* is that of a part \
         without special evidence; [attribution.md](attribution.md) has the rules, and [labels.md](labels.md) shows \
         how often a label is right. *Explained* time is recorded kernel activity; the rest is concluded or \
         unknown.\n\n",
    );
    let kinds = CulpritKind::ALL
        .iter()
        .copied()
        .filter(|kind| *kind != CulpritKind::Unknown);
    for kind in kinds.clone() {
        let _ = writeln!(out, "- [{kind}](#{kind}): {}", words::of_kind(kind));
    }
    for kind in kinds {
        let _ = write!(
            out,
            "\n## {kind}\n\nWhat it is: {}.\n\n- rests on: {}\n- time: {}\n- confidence: {}\n",
            words::of_kind(kind),
            evidence(kind),
            if kind.is_explained() {
                "explained"
            } else {
                "unexplained"
            },
            kind.confidence().as_str(),
        );
        write_verdicts(&mut out, kind);
        write_names(&mut out, kind);
        write_knobs(&mut out, kind);
    }
    out
}

/// What shows a culprit of a kind.
fn evidence(kind: CulpritKind) -> &'static str {
    match kind {
        CulpritKind::Thread => "`sched_switch` to the thread and away from it",
        CulpritKind::Kworker => {
            "`workqueue_execute_start` and `workqueue_execute_end`; a worker whose item left no record is named itself"
        }
        CulpritKind::Irq => {
            "`irq_handler_entry` and `irq_handler_exit`, or an interrupt vector's entry and exit"
        }
        CulpritKind::Timer => {
            "`hrtimer_expire_entry` or `timer_expire_entry` and their exits, within `local_timer_entry` or the softirq"
        }
        CulpritKind::Softirq => "`softirq_entry` and `softirq_exit`",
        CulpritKind::Ipi => {
            "the vector's entry and exit, and `csd_function_entry` for the function; the sender from \
             `csd_queue_cpu`, `ipi_send_cpu` and `sched_waking` on other CPUs"
        }
        CulpritKind::PageFault => {
            "`page_fault_user` or `page_fault_kernel`; neither has an exit, so the time after it is concluded"
        }
        CulpritKind::Nmi => "`nmi_handler`, which states how long the handler ran",
        CulpritKind::Mce => "`mce_record`, which has no exit",
        CulpritKind::RtThrottle => {
            "the switch away from a runnable real-time or deadline thread, while the CPU idles or runs a lesser one"
        }
        CulpritKind::Quota => {
            "the rise of the throttled time in `cpu.stat` of a control group with a limit, and the timer that ended it"
        }
        CulpritKind::QuotaBeside => "the same, while another thread had the CPU",
        CulpritKind::Stopped => {
            "the state in `sched_switch`, the signal in `signal_generate`, and writes to a group's freezer"
        }
        CulpritKind::Switch => {
            "the shortest such edge of this run, beside a switch or the exit from idle"
        }
        CulpritKind::Hypervisor => {
            "a hypervisor's CPU flag, with steal time in `/proc/stat`, an interrupt after its due time, or stalls of \
             several CPUs at once"
        }
        CulpritKind::Firmware => {
            "the processor's count of system management interrupts; where it cannot be read, stalls of all CPUs at once"
        }
        CulpritKind::Unresolved => "no record, or none that says what ran; the verdict says which",
        CulpritKind::Loss => "the kernel's marks of lost records in the trace",
        CulpritKind::Unknown => "a newer version's word",
    }
}

fn write_verdicts(out: &mut String, kind: CulpritKind) {
    let verdicts: Vec<_> = Verdict::ALL
        .iter()
        .filter(|verdict| verdict.kind() == kind)
        .collect();
    if verdicts.is_empty() {
        return;
    }
    out.push_str("\n| verdict | meaning | confidence |\n|---|---|---|\n");
    for verdict in verdicts {
        let meaning = words::meaning(*verdict);
        let confidence = verdict.confidence().as_str();
        let _ = writeln!(out, "| {} | {meaning} | {confidence} |", verdict.as_str());
    }
}

fn write_names(out: &mut String, kind: CulpritKind) {
    let names = known_names(kind.name_of());
    if names.is_empty() {
        return;
    }
    out.push_str("\n| name | what it does |\n|---|---|\n");
    for known in names {
        let rest = if known.list == NameList::ThreadPrefixes {
            "*"
        } else {
            ""
        };
        let _ = writeln!(out, "| `{}{rest}` | {} |", known.name, known.does);
    }
}

/// Whether an answer is about culprits of a kind.
fn is_about(answer: &Answer, kind: CulpritKind) -> bool {
    match answer.culprits {
        CulpritPattern::Verdicts(verdicts) => verdicts.iter().any(|verdict| verdict.kind() == kind),
        of => of.kind() == kind,
    }
}

fn write_knobs(out: &mut String, kind: CulpritKind) {
    let about = |knob: &&Knob| knob.answers.iter().any(|answer| is_about(answer, kind));
    let knobs: Vec<&Knob> = catalogue::all().filter(about).collect();
    if knobs.is_empty() {
        out.push_str("\nNo knob answers it.\n");
        return;
    }
    out.push_str("\n| knob | effect on | risk | cost |\n|---|---|---|---|\n");
    for knob in knobs {
        let answers = knob.answers.iter().filter(|answer| is_about(answer, kind));
        let effects: Vec<String> = answers.map(effect).collect();
        let _ = writeln!(
            out,
            "| [{0}](knobs.md#{0}) | {1} | {2} | {3} |",
            knob.id,
            effects.join("; "),
            knob.risk.as_str(),
            knob.loses.replace('|', "\\|")
        );
    }
}

fn effect(answer: &Answer) -> String {
    let verb = match answer.effect {
        Effect::Removes => "removes",
        Effect::Lessens => "reduces",
        Effect::Perhaps => "may cause",
    };
    let names = answer.culprits.names();
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let except = answer.except.iter().any(|list| !list.is_empty());
    let except = if except { ", with exceptions" } else { "" };
    format!("{verb} {}{except}", names.join(", "))
}
