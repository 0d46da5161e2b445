//! One stall, frame by frame, for people.

use crate::culprits::Scene;
use crate::lexicon::Lexicon;
use crate::senders::Senders;
use crate::timeline::{Frame, Timeline};
use jitterscope_model::{Culprit, EventKind, KernelEvent, Nanos, Stall, TickRate, Ticks};

/// One line of a stall's timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineRow {
    /// How many frames it is nested in.
    pub depth: usize,
    /// From the start of the stall.
    pub start: Nanos,
    /// From the start of the stall; `None` for what has no length, or no end that was seen.
    pub end: Option<Nanos>,
    /// What it is: `timer tick_nohz_handler`.
    pub label: String,
    /// What else is known: pid, irq number, who sent it.
    pub note: String,
}

/// The frames and the telling records of a stall, in order of time. `events` are those of the stall's
/// CPU, in time order; `senders` those of the sending side.
#[must_use]
pub fn timeline_rows<'e>(
    stall: &Stall,
    events: impl IntoIterator<Item = &'e KernelEvent>,
    senders: &Senders,
    rate: TickRate,
    lexicon: &dyn Lexicon,
) -> Vec<TimelineRow> {
    let timeline = Timeline::build(stall, events, rate, senders);
    let scene = Scene { stall, timeline: &timeline, senders, lexicon };
    let at = |time: Ticks| rate.nanos(time.since(stall.start));
    let mut rows: Vec<TimelineRow> = timeline
        .frames
        .iter()
        .enumerate()
        .map(|(index, frame)| {
            let mut culprit = (frame.rule.culprit)(frame, &scene);
            let names_it = |child: &&Frame| child.parent == Some(index) && (frame.rule.named_by)(child);
            if timeline.frames.iter().any(|child| names_it(&child)) {
                // What its own name says is said better by the frame inside.
                culprit.detail = "".into();
            }
            let ended = frame.closed || frame.rule.endless;
            TimelineRow {
                depth: frame.depth,
                start: at(frame.start),
                end: ended.then(|| at(frame.end)),
                label: format!("{} {}", culprit.kind, culprit.name),
                note: note(&culprit, ended),
            }
        })
        .collect();
    for event in &timeline.events {
        // What another thread does in its own time is not the victim's tale.
        let elsewhere =
            timeline.frames.iter().any(|f| f.is_thread() && f.start < event.time && event.time < f.end);
        if let Some((label, note)) = instant(&event.kind, lexicon).filter(|_| !elsewhere) {
            let depth = timeline.frames.iter().filter(|f| f.start < event.time && event.time < f.end).count();
            rows.push(TimelineRow { depth, start: at(event.time), end: None, label, note });
        }
    }
    rows.sort_by_key(|row| (row.start, row.depth));
    rows
}

fn note(culprit: &Culprit, ended: bool) -> String {
    let mut parts = Vec::new();
    if !culprit.detail.is_empty() {
        parts.push(culprit.detail.to_string());
    }
    if let Some(sender) = &culprit.sender {
        let via = sender.via.as_deref().map(|via| format!(" through {via}")).unwrap_or_default();
        let who = sender.who();
        let pid = if sender.involves_thread() { format!(" (pid {})", sender.tid) } else { String::new() };
        parts.push(format!("set going by {who}{pid} on CPU {}{via}", sender.cpu));
    }
    if !ended {
        parts.push("its end was not seen".into());
    }
    parts.join("; ")
}

/// Records that open no frame and say something all the same.
fn instant(kind: &EventKind, lexicon: &dyn Lexicon) -> Option<(String, String)> {
    let told = |label: &str, note: String| Some((label.to_owned(), note));
    match kind {
        EventKind::SchedWaking { task, target } => {
            told("wakes", format!("{} (pid {}) for CPU {target}", task.comm, task.tid))
        }
        EventKind::SchedMigrate { task, from, to } => {
            told("migrates", format!("{} (pid {}) from CPU {from} to CPU {to}", task.comm, task.tid))
        }
        EventKind::WorkQueued { function, workqueue, .. } => {
            told("queues work", format!("{} on workqueue {workqueue}", lexicon.function(*function)))
        }
        EventKind::TlbFlush { pages: -1, .. } => told("TLB flush", "all pages".into()),
        EventKind::TlbFlush { pages, .. } => told("TLB flush", format!("{pages} pages")),
        EventKind::TickStop { success: true, .. } => told("tick stopped", String::new()),
        EventKind::TickStop { dependency, .. } => told("tick kept", format!("dependency {dependency:#x}")),
        EventKind::CpuFrequency { target, khz } => told("frequency", format!("CPU {target} to {khz} kHz")),
        EventKind::CpuIdle { state: Some(state) } => told("idle", format!("state {state}")),
        EventKind::CpuIdle { state: None } => told("idle ends", String::new()),
        _ => None,
    }
}
