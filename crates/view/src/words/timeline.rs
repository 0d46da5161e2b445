//! Lines of a timeline.

use super::culprit::{detail, kind_and_name};
use super::sender::{id, sender_name, sender_verb};
use crate::style::tame;
use jitterscope_model::{Culprit, TimelineItem};

/// The text of a timeline's line, and further details.
pub(crate) fn timeline_item(item: &TimelineItem) -> (String, String) {
    let labelled = |label: &str, note: String| (label.to_owned(), tame(&note));
    match item {
        TimelineItem::Frame {
            culprit,
            ended,
            named_inside,
        } => (
            kind_and_name(&culprit.subject),
            tame(&frame_note(culprit, *ended, *named_inside)),
        ),
        TimelineItem::Wakes {
            comm,
            tid,
            target_cpu,
        } => labelled("wakes", format!("{comm} (tid {tid}) for CPU {target_cpu}")),
        TimelineItem::Migrates {
            comm,
            tid,
            from_cpu,
            to_cpu,
        } => labelled(
            "migrates",
            format!("{comm} (tid {tid}) from CPU {from_cpu} to CPU {to_cpu}"),
        ),
        TimelineItem::QueuesWork {
            function,
            workqueue,
        } => labelled(
            "queues work",
            format!("{function} on workqueue {workqueue}"),
        ),
        TimelineItem::TlbFlush { pages: None } => labelled("TLB flush", "all pages".into()),
        TimelineItem::TlbFlush { pages: Some(pages) } => {
            labelled("TLB flush", format!("{pages} pages"))
        }
        TimelineItem::TickStopped => labelled("tick stopped", String::new()),
        TimelineItem::TickKept { dependency } => {
            labelled("tick kept", format!("dependency {dependency:#x}"))
        }
        TimelineItem::Frequency { target_cpu, khz } => {
            labelled("frequency", format!("CPU {target_cpu} to {khz} kHz"))
        }
        TimelineItem::Idle { state } => labelled("idle", format!("state {state}")),
        TimelineItem::IdleEnds => labelled("idle ends", String::new()),
        TimelineItem::Call {
            function,
            self_ns,
            began_before,
            ended,
        } => {
            let before = began_before.then_some("began before");
            let goes_on = (!ended).then_some("its end was not seen");
            let own = format!("self {self_ns}");
            let note = [Some(&*own), before, goes_on]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("; ");
            (tame(&format!("{function}()")), note)
        }
        TimelineItem::Asked { event, tid, fields } => {
            (tame(event), tame(&format!("{fields} (tid {tid})")))
        }
        TimelineItem::Mark {
            name,
            length_ns,
            ends,
        } => {
            let note = match (ends, length_ns.0) {
                (true, _) => format!("ends, after {length_ns}"),
                (false, 0) => String::new(),
                (false, _) => format!("begins, for {length_ns}"),
            };
            (tame(&format!("mark {name}")), note)
        }
        TimelineItem::LeftOut => labelled("left out", String::new()),
    }
}

fn frame_note(culprit: &Culprit, ended: bool, named_inside: bool) -> String {
    let mut parts = Vec::new();
    // The frame inside says it better than its own name.
    let detail = if named_inside {
        String::new()
    } else {
        detail(&culprit.subject, 1)
    };
    parts.extend(Some(detail).filter(|detail| !detail.is_empty()));
    if let Some(sender) = &culprit.sender {
        let via = sender
            .via
            .as_deref()
            .map(|via| format!(" through {via}"))
            .unwrap_or_default();
        let who = sender_name(sender);
        let pid = if sender.is_thread() {
            format!(" ({})", id(sender.tid, sender.tgid))
        } else {
            String::new()
        };
        parts.push(format!(
            "{} by {who}{pid} on CPU {}{via}",
            sender_verb(culprit.subject.kind()),
            sender.cpu
        ));
    }
    if !ended {
        parts.push("its end was not seen".into());
    }
    parts.join("; ")
}
