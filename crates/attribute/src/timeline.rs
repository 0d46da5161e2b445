//! The nested frames of one stall.

use crate::culprits::{self, Rule};
use crate::senders::Senders;
use jitterscope_model::{EventKind, KernelEvent, Stall, TickRate, Ticks};
use std::collections::HashMap;

/// One interval of kernel activity on the stalled CPU.
#[derive(Clone, Debug)]
pub struct Frame {
    pub(crate) rule: &'static Rule,
    /// The record that opened it.
    pub opening: KernelEvent,
    /// From.
    pub start: Ticks,
    /// To.
    pub end: Ticks,
    /// Whether its end was seen (or its kind has none): otherwise its extent is unknown.
    pub closed: bool,
    /// How many frames it is nested in.
    pub depth: usize,
    pub(crate) parent: Option<usize>,
}

impl Frame {
    /// Whether it is another thread's turn on the CPU.
    pub(crate) fn is_thread(&self) -> bool {
        std::ptr::eq(self.rule, &raw const culprits::THREAD)
    }

    /// Length from first entry to last exit.
    #[must_use]
    pub fn gross(&self) -> Ticks {
        self.end.since(self.start)
    }
}

/// A stretch of a stall in which the same frame was innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
    /// Index into the frames; `None` when the victim's own context was all there was.
    pub(crate) frame: Option<usize>,
}

/// Frames that threads had open when they left the CPU, by thread id. They go on when the thread comes
/// back, unless it was on another CPU meanwhile.
pub(crate) type Suspended = HashMap<i32, Left>;

/// What a thread had open when it was switched out: a sleeping work item, a preempted softirq on
/// PREEMPT_RT.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) at: Ticks,
    /// Outermost first.
    pub(crate) frames: Vec<(&'static Rule, KernelEvent)>,
}

/// Threads whose suspended frames are remembered. Beyond it all are forgotten, which costs names, not
/// time.
const MAX_SUSPENDED: usize = 4096;

/// The frames of one stall and the times of its events.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// In order of opening.
    pub frames: Vec<Frame>,
    /// Times and records of all events inside, in order.
    pub events: Vec<KernelEvent>,
    pub(crate) stretches: Vec<Stretch>,
}

impl Timeline {
    /// Folds the events of a stall into frames. `events` are those of the stall's CPU, in time order;
    /// any outside the stall are ignored. `senders`: the records of the sending side up to the stall's end,
    /// for what moved to the CPU meanwhile.
    #[must_use]
    pub fn build<'e>(
        stall: &Stall,
        events: impl IntoIterator<Item = &'e KernelEvent>,
        rate: TickRate,
        senders: &Senders,
    ) -> Timeline {
        Timeline::build_with(stall, events, rate, senders, &mut Suspended::new())
    }

    pub(crate) fn build_with<'e>(
        stall: &Stall,
        events: impl IntoIterator<Item = &'e KernelEvent>,
        rate: TickRate,
        senders: &Senders,
        suspended: &mut Suspended,
    ) -> Timeline {
        let inside: Vec<&KernelEvent> = events.into_iter().filter(|e| stall.contains(e.time)).collect();
        let mut builder = Builder {
            stall,
            timeline: Timeline::default(),
            stack: Vec::new(),
            since: stall.start,
            senders,
            suspended,
        };
        for (time, step) in steps(&inside, stall, rate) {
            builder.step(time, step);
        }
        let mut timeline = builder.finish();
        timeline.events = inside.into_iter().cloned().collect();
        timeline
    }
}

/// What happens to the stack at one instant.
enum Step<'e> {
    Event(&'e KernelEvent),
    NmiBegins(&'e KernelEvent),
}

/// Events in time order, with the beginnings of NMI handlers put where they belong: their record is
/// written when they have ended.
fn steps<'e>(events: &[&'e KernelEvent], stall: &Stall, rate: TickRate) -> Vec<(Ticks, Step<'e>)> {
    let mut steps: Vec<(Ticks, Step<'e>)> = Vec::with_capacity(events.len() + 1);
    for event in events {
        if let EventKind::NmiHandler { delta_ns, .. } = event.kind {
            let length = rate.ticks(jitterscope_model::Nanos(delta_ns));
            let start = event.time.since(length).max(stall.start);
            let at = steps.iter().rposition(|(time, _)| *time <= start).map_or(0, |i| i + 1);
            steps.insert(at, (start, Step::NmiBegins(event)));
        }
        steps.push((event.time, Step::Event(event)));
    }
    steps
}

struct Builder<'a> {
    stall: &'a Stall,
    timeline: Timeline,
    /// Open frames, outermost first.
    stack: Vec<usize>,
    /// Where the current stretch began.
    since: Ticks,
    senders: &'a Senders,
    suspended: &'a mut Suspended,
}

impl Builder<'_> {
    fn step(&mut self, time: Ticks, step: Step<'_>) {
        // Per-CPU records are in order; should a page be misread, time must still not run backwards.
        let time = time.max(self.since);
        match step {
            Step::NmiBegins(event) => self.open(&culprits::NMI, event, time),
            Step::Event(event) => self.event(event, time),
        }
    }

    fn event(&mut self, event: &KernelEvent, time: Ticks) {
        if let EventKind::SchedSwitch { prev, next, .. } = &event.kind {
            self.switch(event, prev.tid, next.tid, time);
            return;
        }
        let closes = |frame: &Frame| (frame.rule.closes)(&frame.opening, event);
        let frames = &self.timeline.frames;
        if let Some(depth) = self.stack.iter().rposition(|i| closes(&frames[*i])) {
            // Frames above the closing one lost their exit: their extent is not known.
            while self.stack.len() > depth + 1 {
                self.close(time, false);
            }
            self.close(time, true);
        }
        if let Some(rule) = culprits::rule_opened_by(event)
            && !(rule.victims_only && self.runs_another_thread())
        {
            self.open(rule, event, time);
        }
    }

    /// Whether the victim is switched out.
    fn runs_another_thread(&self) -> bool {
        self.stack.first().is_some_and(|i| self.timeline.frames[*i].is_thread())
    }

    fn switch(&mut self, event: &KernelEvent, prev: i32, next: i32, time: Ticks) {
        let mut frames = Vec::new();
        let base = usize::from(prev != self.stall.victim.tid);
        while let Some(top) = self.stack.last().map(|i| &self.timeline.frames[*i]) {
            if self.stack.len() <= base {
                self.close(time, true);
            } else if top.rule.sleeps {
                frames.push((top.rule, top.opening.clone()));
                self.close(time, true);
            } else {
                self.close(time, false);
            }
        }
        if self.suspended.len() >= MAX_SUSPENDED {
            self.suspended.clear();
        }
        if frames.is_empty() {
            self.suspended.remove(&prev);
        } else {
            frames.reverse();
            self.suspended.insert(prev, Left { at: time, frames });
        }
        if next != self.stall.victim.tid {
            self.open(&culprits::THREAD, event, time);
        }
        let Some(left) = self.suspended.remove(&next) else { return };
        // A worker that comes from another CPU may have ended there what it had begun here.
        if !self.senders.has_arrived(next, self.stall.cpu, left.at, time) {
            for (rule, opening) in left.frames {
                self.open(rule, &opening, time);
            }
        }
    }

    fn open(&mut self, rule: &'static Rule, event: &KernelEvent, time: Ticks) {
        self.stretch_until(time);
        let parent = self.stack.last().copied();
        self.stack.push(self.timeline.frames.len());
        self.timeline.frames.push(Frame {
            rule,
            opening: event.clone(),
            start: time,
            end: time,
            closed: false,
            depth: self.stack.len() - 1,
            parent,
        });
    }

    fn close(&mut self, time: Ticks, seen: bool) -> Option<usize> {
        self.stretch_until(time);
        let index = self.stack.pop()?;
        let frame = &mut self.timeline.frames[index];
        frame.end = time;
        frame.closed = seen || frame.rule.endless;
        Some(index)
    }

    fn stretch_until(&mut self, time: Ticks) {
        if time > self.since {
            let frame = self.stack.last().copied();
            self.timeline.stretches.push(Stretch { start: self.since, end: time, frame });
            self.since = time;
        }
    }

    fn finish(mut self) -> Timeline {
        let end = self.stall.end.max(self.since);
        while !self.stack.is_empty() {
            self.close(end, false);
        }
        self.stretch_until(end);
        self.timeline
    }
}
