//! One stall, frame by frame.

use crate::culprits::Scene;
use crate::lexicon::Lexicon;
use crate::senders::Senders;
use crate::timeline::{Frame, Timeline};
use jitterscope_model::{EventKind, KernelEvent, Stall, TickRate, Ticks, TimelineItem, TimelineRow};

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
            let culprit = (frame.rule.culprit)(frame, &scene);
            let names_it = |child: &Frame| child.parent == Some(index) && (frame.rule.named_by)(child);
            let named_inside = timeline.frames.iter().any(names_it);
            let ended = frame.closed || frame.rule.endless;
            TimelineRow {
                depth: frame.depth,
                start: at(frame.start),
                end: ended.then(|| at(frame.end)),
                item: TimelineItem::Frame { culprit, ended, named_inside },
            }
        })
        .collect();
    for event in &timeline.events {
        // What another thread does in its own time is not the victim's tale.
        let elsewhere =
            timeline.frames.iter().any(|f| f.is_thread() && f.start < event.time && event.time < f.end);
        if let Some(item) = instant(&event.kind, lexicon).filter(|_| !elsewhere) {
            let depth = timeline.frames.iter().filter(|f| f.start < event.time && event.time < f.end).count();
            rows.push(TimelineRow { depth, start: at(event.time), end: None, item });
        }
    }
    rows.sort_by_key(|row| (row.start, row.depth));
    rows
}

/// Records that open no frame and say something all the same.
fn instant(kind: &EventKind, lexicon: &dyn Lexicon) -> Option<TimelineItem> {
    Some(match *kind {
        EventKind::SchedWaking { task, target } => {
            TimelineItem::Wakes { comm: task.comm.to_string().into(), tid: task.tid, target_cpu: target }
        }
        EventKind::SchedMigrate { task, from, to } => TimelineItem::Migrates {
            comm: task.comm.to_string().into(),
            tid: task.tid,
            from_cpu: from,
            to_cpu: to,
        },
        EventKind::WorkQueued { function, ref workqueue, .. } => {
            TimelineItem::QueuesWork { function: lexicon.function(function), workqueue: workqueue.clone() }
        }
        EventKind::TlbFlush { pages, .. } => {
            TimelineItem::TlbFlush { pages: Some(pages).filter(|n| *n != -1) }
        }
        EventKind::TickStop { success: true, .. } => TimelineItem::TickStopped,
        EventKind::TickStop { dependency, .. } => TimelineItem::TickKept { dependency },
        EventKind::CpuFrequency { target, khz } => TimelineItem::Frequency { target_cpu: target, khz },
        EventKind::CpuIdle { state: Some(state) } => TimelineItem::Idle { state },
        EventKind::CpuIdle { state: None } => TimelineItem::IdleEnds,
        _ => return None,
    })
}
