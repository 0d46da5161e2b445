//! One stall, frame by frame.

use crate::culprits::{self, Naming};
use crate::lexicon::Lexicon;
use crate::occupancy::{Machine, NameTable, Outcome, Record, Window};
use crate::senders::Senders;
use crate::windows::Named;
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
    let events: Vec<&KernelEvent> = events.into_iter().filter(|event| stall.contains(event.time)).collect();
    let mut names = NameTable::default();
    let mut machine = Machine::new(rate);
    machine.running(stall.victim.tid, stall.start);
    let mark = machine.open_mark(stall.start);
    for event in &events {
        machine.record(&Record::new(event, &mut names));
    }
    let mut window = Window::default();
    machine.close_mark(mark, stall.end, &mut window);
    let (cpu, victim) = (stall.cpu, stall.victim.tid);
    let naming = Naming { cpu, victim, names: &names, senders, lexicon, folded: false };
    let named = Named::new(&window, naming);
    let at = |time: Ticks| rate.nanos(time.since(stall.start));
    let frames: Vec<u32> = (0..window.frames.len() as u32).filter(|index| named.counts(*index)).collect();
    let depth = |index| std::iter::successors(named.outside(index), |outer| named.outside(*outer)).count();
    let mut rows: Vec<TimelineRow> = frames
        .iter()
        .map(|index| {
            let frame = window.frame(*index);
            let culprit = culprits::culprit_while_open(frame, &naming);
            let named_inside = window.named_by(*index).is_some();
            let ended = frame.outcome == Outcome::Closed || frame.class.is_endless();
            TimelineRow {
                depth: depth(*index),
                start: at(frame.start),
                end: ended.then(|| at(frame.end)),
                item: TimelineItem::Frame { culprit, ended, named_inside },
            }
        })
        .collect();
    let frames: Vec<_> = frames.into_iter().map(|index| window.frame(index)).collect();
    for event in &events {
        // What another thread does in its own time is not the victim's tale.
        let mut around = frames.iter().filter(|f| f.start < event.time && event.time < f.end);
        let depth = around.clone().count();
        let elsewhere = around.any(|frame| frame.class.is_root());
        if let Some(item) = instant(&event.kind, lexicon).filter(|_| !elsewhere) {
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
