//! The timeline of one stall, frame by frame.

use crate::culprits::{self, Naming};
use crate::name_resolver::NameResolver;
use crate::occupancy::{Frame, Machine, NameTable, Outcome, Record, Window};
use crate::senders::Senders;
use crate::windows::Named;
use jitterscope_model::{
    CpuId, EventKind, KernelEvent, Nanos, PutInOrder, Stall, TickRate, Ticks, TimelineItem,
    TimelineRow,
};
use std::collections::{BTreeMap, BTreeSet};

/// The subject of a timeline.
#[derive(Clone, Copy, Debug)]
pub struct TimelineOf<'a> {
    pub stall: &'a Stall,
    /// Whether its victim spins: then it had its CPU when the stall began, and the timeline shows what ran instead.
    /// Otherwise it shows everything that ran, on all CPUs of the stall's threads.
    pub spins: bool,
    /// The other thread of a slow message: its producer.
    pub producer: Option<i32>,
}

impl TimelineOf<'_> {
    fn concerns(&self, tid: i32) -> bool {
        tid == self.stall.victim.tid || self.producer == Some(tid)
    }
}

/// The frames and the informative records of a stall: CPU by CPU, the stall's CPU first, each in order of time.
/// `events` are those of the measured CPUs, plus renamings on any CPU, in order of time. They may begin before the
/// stall, which shows the frames that were already open. `senders` are those of the sending side.
#[must_use]
pub fn timeline_rows<'e>(
    of: &TimelineOf<'_>,
    events: impl IntoIterator<Item = &'e KernelEvent>,
    senders: &Senders,
    rate: TickRate,
    resolver: &dyn NameResolver,
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
            .filter(|event| event.cpu == *cpu || matches!(event.kind, EventKind::TaskRename { .. }))
            .copied()
            .collect();
        let mut names = NameTable::default();
        let window = look(of, &events, rate, &mut names);
        let (victim, names) = (stall.victim.tid, &names);
        let naming = Naming {
            cpu: *cpu,
            victim,
            names,
            senders,
            resolver,
            quotas: &[],
            folded: false,
        };
        let shown = Shown {
            of,
            named: Named::new(&window, naming, &[], rate),
            rate,
        };
        let mut here = shown.frames();
        let beside = Rows::of(&shown);
        here.extend(
            events
                .iter()
                .filter_map(|event| shown.instant(event, &beside)),
        );
        here.order_by_key(|row| (row.start, row.depth));
        let cpu = Some(*cpu).filter(|_| cpus.len() > 1);
        rows.extend(here.into_iter().map(|row| TimelineRow { cpu, ..row }));
    }
    rows
}

/// The CPUs that the threads of a stall were on, or would run on: the stall's CPU first.
fn cpus(of: &TimelineOf<'_>, events: &[&KernelEvent]) -> Vec<CpuId> {
    // For each thread its CPU before the stall, and all later ones.
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

/// The activity of a CPU during a stall.
fn look(
    of: &TimelineOf<'_>,
    events: &[&KernelEvent],
    rate: TickRate,
    names: &mut NameTable,
) -> Window {
    let stall = of.stall;
    // The records are in memory anyway, and a sum could not be drawn at any moment.
    let mut machine = Machine::new(rate).with_cap(usize::MAX);
    let before = events.partition_point(|event| event.time < stall.start);
    let mut take_in = |machine: &mut Machine, event: &KernelEvent| match event.kind {
        // The renamed thread need not be the one that writes the record, nor be on this CPU.
        EventKind::TaskRename { tid, old, comm } => {
            let names = (names.comm_id(old), names.comm_id(comm));
            machine.renamed(tid, names, event.time);
        }
        _ => machine.record(&Record::new(event, names)),
    };
    for event in &events[..before] {
        take_in(&mut machine, event);
    }
    if of.spins {
        machine.running(stall.victim.tid, stall.start);
    }
    let mark = machine.open_mark(stall.start);
    for event in &events[before..] {
        take_in(&mut machine, event);
    }
    let mut window = Window::default();
    machine.close_mark(mark, stall.end, &mut window);
    window
}

/// The rows of one CPU.
struct Shown<'a> {
    of: &'a TimelineOf<'a>,
    named: Named<'a>,
    rate: TickRate,
}

impl Shown<'_> {
    fn at(&self, time: Ticks) -> Nanos {
        self.rate.nanos(time.since(self.of.stall.start))
    }

    /// Whether a frame has a row: a victim that does not spin has its own turns shown.
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
        // An open frame after a spinning probe runs again has lost its exit; at the end of a wait, frames may be open.
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

    fn instant(&self, event: &KernelEvent, rows: &Rows) -> Option<TimelineRow> {
        if event.time < self.of.stall.start {
            return None;
        }
        let item = instant(&event.kind, self.named.naming.resolver)?;
        let around: Vec<&Frame> = rows
            .around(event.time)
            .map(|index| self.named.frame(index))
            .collect();
        let touches = match &event.kind {
            EventKind::SchedWaking { task, .. } | EventKind::SchedMigrate { task, .. } => {
                !self.of.spins && self.of.concerns(task.tid)
            }
            _ => false,
        };
        // Another thread's own activity does not belong to the victim's timeline.
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

/// The frames with a row, indexed so that finding those around a moment does not scan all of them.
struct Rows {
    /// In order of their starts; each with its end, and with the latest end of all up to it.
    frames: Vec<(Ticks, Ticks, Ticks, u32)>,
}

impl Rows {
    fn of(shown: &Shown<'_>) -> Rows {
        let all = 0..shown.named.window.frames.len() as u32;
        let mut frames: Vec<_> = all
            .filter(|index| shown.has_row(*index))
            .map(|index| {
                let frame = shown.named.frame(index);
                (frame.start, frame.end, frame.end, index)
            })
            .collect();
        frames.put_in_order();
        let mut last = Ticks(0);
        for (_, end, last_end, _) in &mut frames {
            last = last.max(*end);
            *last_end = last;
        }
        Rows { frames }
    }

    /// Frames that begin before a moment and end after it.
    fn around(&self, at: Ticks) -> impl Iterator<Item = u32> + '_ {
        let begun = self.frames.partition_point(|(start, ..)| *start < at);
        self.frames[..begun]
            .iter()
            .rev()
            .take_while(move |(_, _, last_end, _)| at < *last_end)
            .filter(move |(_, end, ..)| at < *end)
            .map(|(.., index)| *index)
    }
}

/// Records that open no frame, but are informative.
fn instant(kind: &EventKind, resolver: &dyn NameResolver) -> Option<TimelineItem> {
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
            function: resolver.function(function),
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
