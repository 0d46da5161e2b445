//! One stall, frame by frame.

use crate::bandwidth::Bandwidth;
use crate::culprits::{self, Naming};
use crate::lexicon::Lexicon;
use crate::occupancy::{Frame, Machine, NameTable, Outcome, Record, Window};
use crate::senders::Senders;
use crate::windows::Named;
use jitterscope_model::{
    CpuId, EventKind, KernelEvent, Nanos, Stall, TickRate, Ticks, TimelineItem, TimelineRow,
};
use std::collections::{BTreeMap, BTreeSet};

/// Whose timeline it is.
#[derive(Clone, Copy, Debug)]
pub struct TimelineOf<'a> {
    /// The stall.
    pub stall: &'a Stall,
    /// Whether its victim spins: then it had its CPU when the stall began, and what is shown ran instead.
    /// Otherwise all is shown that ran, on all CPUs that its threads were on.
    pub spins: bool,
    /// The other thread of a slow message: its producer.
    pub producer: Option<i32>,
}

impl TimelineOf<'_> {
    fn concerns(&self, tid: i32) -> bool {
        tid == self.stall.victim.tid || self.producer == Some(tid)
    }
}

/// The frames and the telling records of a stall: CPU by CPU, that of the stall first, each in order of time.
/// `events` are those of the measured CPUs, in time order, and may begin earlier, which tells what was under
/// way; `senders` those of the sending side.
#[must_use]
pub fn timeline_rows<'e>(
    of: &TimelineOf<'_>,
    events: impl IntoIterator<Item = &'e KernelEvent>,
    senders: &Senders,
    rate: TickRate,
    lexicon: &dyn Lexicon,
) -> Vec<TimelineRow> {
    let stall = of.stall;
    let events: Vec<&KernelEvent> = events
        .into_iter()
        .filter(|event| event.time <= stall.end)
        .collect();
    let cpus = if of.spins {
        vec![stall.cpu]
    } else {
        cpus(of, &events)
    };
    let mut rows = Vec::new();
    for cpu in &cpus {
        let events: Vec<&KernelEvent> = events
            .iter()
            .filter(|event| event.cpu == *cpu)
            .copied()
            .collect();
        let mut names = NameTable::default();
        let window = look(of, &events, rate, &mut names);
        let (victim, names) = (stall.victim.tid, &names);
        let bandwidth = &Bandwidth::default();
        let naming = Naming {
            cpu: *cpu,
            victim,
            names,
            senders,
            lexicon,
            bandwidth,
            folded: false,
        };
        let shown = Shown {
            of,
            named: Named::new(&window, naming, &[], rate),
            rate,
        };
        let mut here = shown.frames();
        here.extend(events.iter().filter_map(|event| shown.instant(event)));
        here.sort_by_key(|row| (row.start, row.depth));
        let cpu = Some(*cpu).filter(|_| cpus.len() > 1);
        rows.extend(here.into_iter().map(|row| TimelineRow { cpu, ..row }));
    }
    rows
}

/// The CPUs that the threads of a stall were on, or were to run on: that of the stall first.
fn cpus(of: &TimelineOf<'_>, events: &[&KernelEvent]) -> Vec<CpuId> {
    // Where each was before, and from there on wherever it came.
    let mut stays: BTreeMap<i32, Vec<CpuId>> = BTreeMap::new();
    for event in events {
        let inside = event.time >= of.stall.start;
        let mut meet = |tid: i32, cpu: CpuId| {
            if of.concerns(tid) {
                let stays = stays.entry(tid).or_default();
                if !inside {
                    stays.clear();
                }
                stays.push(cpu);
            }
        };
        match &event.kind {
            EventKind::SchedSwitch { prev, next, .. } => {
                meet(prev.tid, event.cpu);
                meet(next.tid, event.cpu);
            }
            EventKind::SchedMigrate { task, to, .. } => meet(task.tid, *to),
            _ => {}
        }
    }
    let others: BTreeSet<CpuId> = stays
        .into_values()
        .flatten()
        .filter(|cpu| *cpu != of.stall.cpu)
        .collect();
    std::iter::once(of.stall.cpu).chain(others).collect()
}

/// What a CPU did during a stall.
fn look(
    of: &TimelineOf<'_>,
    events: &[&KernelEvent],
    rate: TickRate,
    names: &mut NameTable,
) -> Window {
    let stall = of.stall;
    let mut machine = Machine::new(rate);
    let before = events.partition_point(|event| event.time < stall.start);
    for event in &events[..before] {
        machine.record(&Record::new(event, names));
    }
    if of.spins {
        machine.running(stall.victim.tid, stall.start);
    }
    let mark = machine.open_mark(stall.start);
    for event in &events[before..] {
        machine.record(&Record::new(event, names));
    }
    let mut window = Window::default();
    machine.close_mark(mark, stall.end, &mut window);
    window
}

/// What is shown of one CPU.
struct Shown<'a> {
    of: &'a TimelineOf<'a>,
    named: Named<'a>,
    rate: TickRate,
}

impl Shown<'_> {
    fn at(&self, time: Ticks) -> Nanos {
        self.rate.nanos(time.since(self.of.stall.start))
    }

    /// Whether a frame has a row: who does not spin has its own turns shown.
    fn has_row(&self, index: u32) -> bool {
        let frame = self.named.frame(index);
        let own_turn = frame.is_turn() && frame.tid == self.of.stall.victim.tid;
        let lasts = frame.start < frame.end || !frame.class.is_root();
        lasts && (self.named.counts(index) || (own_turn && !self.of.spins))
    }

    fn around(&self, index: u32) -> usize {
        self.named
            .window
            .chain(index)
            .skip(1)
            .filter(|outer| self.has_row(*outer))
            .count()
    }

    fn frames(&self) -> Vec<TimelineRow> {
        let all = 0..self.named.window.frames.len() as u32;
        all.filter(|index| self.has_row(*index))
            .map(|index| self.frame(index))
            .collect()
    }

    fn frame(&self, index: u32) -> TimelineRow {
        let frame = self.named.frame(index);
        let culprit = culprits::culprit_while_open(frame, &self.named.naming);
        let named_inside = self.named.window.named_by(index).is_some();
        // What goes on after a spinning probe ran again has lost its exit; a wait ends in the middle of things.
        let goes_on = !self.of.spins && frame.outcome == Outcome::Open;
        let ended = goes_on || frame.outcome == Outcome::Closed || frame.class.is_endless();
        TimelineRow {
            cpu: None,
            depth: self.around(index),
            start: self.at(frame.start),
            end: ended.then(|| self.at(frame.end)),
            item: TimelineItem::Frame {
                culprit,
                ended,
                named_inside,
            },
        }
    }

    fn instant(&self, event: &KernelEvent) -> Option<TimelineRow> {
        if event.time < self.of.stall.start {
            return None;
        }
        let item = instant(&event.kind, self.named.naming.lexicon)?;
        let shown = 0..self.named.window.frames.len() as u32;
        let around: Vec<&Frame> = shown
            .filter(|index| self.has_row(*index))
            .map(|index| self.named.frame(index))
            .filter(|frame| frame.start < event.time && event.time < frame.end)
            .collect();
        let touches = match &event.kind {
            EventKind::SchedWaking { task, .. } | EventKind::SchedMigrate { task, .. } => {
                !self.of.spins && self.of.concerns(task.tid)
            }
            _ => false,
        };
        // What another thread does in its own time is not the victim's tale.
        let own =
            |frame: &&Frame| !self.of.spins && (frame.tid == 0 || self.of.concerns(frame.tid));
        let elsewhere = around
            .iter()
            .any(|frame| frame.class.is_root() && !own(frame));
        (touches || !elsewhere).then(|| TimelineRow {
            cpu: None,
            depth: around.len(),
            start: self.at(event.time),
            end: None,
            item,
        })
    }
}

/// Records that open no frame and say something all the same.
fn instant(kind: &EventKind, lexicon: &dyn Lexicon) -> Option<TimelineItem> {
    Some(match *kind {
        EventKind::SchedWaking { task, target } => TimelineItem::Wakes {
            comm: task.comm.to_string().into(),
            tid: task.tid,
            target_cpu: target,
        },
        EventKind::SchedMigrate { task, from, to } => TimelineItem::Migrates {
            comm: task.comm.to_string().into(),
            tid: task.tid,
            from_cpu: from,
            to_cpu: to,
        },
        EventKind::WorkQueued {
            function,
            ref workqueue,
            ..
        } => TimelineItem::QueuesWork {
            function: lexicon.function(function),
            workqueue: workqueue.clone(),
        },
        EventKind::TlbFlush { pages, .. } => TimelineItem::TlbFlush {
            pages: Some(pages).filter(|n| *n != -1),
        },
        EventKind::TickStop { success: true, .. } => TimelineItem::TickStopped,
        EventKind::TickStop { dependency, .. } => TimelineItem::TickKept { dependency },
        EventKind::CpuFrequency { target, khz } => TimelineItem::Frequency {
            target_cpu: target,
            khz,
        },
        EventKind::CpuIdle { state: Some(state) } => TimelineItem::Idle { state },
        EventKind::CpuIdle { state: None } => TimelineItem::IdleEnds,
        _ => return None,
    })
}
