//! Another interpretation of the same records, simple and slow: it builds the frames of one stall from scratch, and
//! compares each record with each open frame. Attribution used it before the machine.

use jitterscope_model::{EventKind, KernelEvent, Nanos, Stall, TickRate, Ticks};
use std::collections::HashMap;

/// One interval of kernel activity on the stalled CPU.
pub(super) struct Frame {
    pub(super) opening: KernelEvent,
}

impl Frame {
    fn is_thread(&self) -> bool {
        matches!(self.opening.kind, EventKind::SchedSwitch { .. })
    }

    fn is_closed_by(&self, event: &KernelEvent) -> bool {
        use EventKind as E;
        match (&self.opening.kind, &event.kind) {
            (E::VectorEntry { vector }, E::VectorExit { vector: ended }) => vector == ended,
            (E::IrqEntry { irq, .. }, E::IrqExit { irq: ended }) => irq == ended,
            (E::SoftirqEntry { vec }, E::SoftirqExit { vec: ended }) => vec == ended,
            (E::HrtimerEntry { hrtimer, .. }, E::HrtimerExit { hrtimer: ended }) => {
                hrtimer == ended
            }
            (E::TimerEntry { timer, .. }, E::TimerExit { timer: ended }) => timer == ended,
            (E::WorkStart { work, .. }, E::WorkEnd { work: ended }) => work == ended,
            (
                E::CsdEntry { function, csd },
                E::CsdExit {
                    function: f,
                    csd: c,
                },
            ) => (function, csd) == (f, c),
            (E::NmiHandler { .. }, E::NmiHandler { .. }) => self.opening == *event,
            (opening, ended) => is_exception(opening) && is_exception(ended),
        }
    }

    /// Whether it continues with its thread.
    fn sleeps(&self) -> bool {
        use EventKind as E;
        let kind = &self.opening.kind;
        let timer = matches!(
            kind,
            E::SoftirqEntry { .. } | E::HrtimerEntry { .. } | E::TimerEntry { .. }
        );
        timer || matches!(kind, E::WorkStart { .. }) || is_exception(kind)
    }
}

fn is_exception(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::PageFault { .. } | EventKind::MachineCheck { .. }
    )
}

fn opens(kind: &EventKind) -> bool {
    use EventKind as E;
    let entry = matches!(
        kind,
        E::VectorEntry { .. } | E::IrqEntry { .. } | E::SoftirqEntry { .. }
    );
    let inside = matches!(
        kind,
        E::HrtimerEntry { .. } | E::TimerEntry { .. } | E::CsdEntry { .. }
    );
    entry || inside || matches!(kind, E::WorkStart { .. }) || is_exception(kind)
}

/// What had a CPU during a stall.
#[derive(Default)]
pub(super) struct Timeline {
    pub(super) frames: Vec<Frame>,
    /// Start, end, and the innermost frame; `None` for the victim's own context.
    pub(super) stretches: Vec<(Ticks, Ticks, Option<usize>)>,
    stack: Vec<usize>,
    since: Ticks,
    suspended: HashMap<i32, Vec<KernelEvent>>,
}

impl Timeline {
    pub(super) fn build(stall: &Stall, events: &[KernelEvent], rate: TickRate) -> Timeline {
        let mut timeline = Timeline {
            since: stall.start,
            ..Timeline::default()
        };
        for (time, event, nmi_begins) in steps(events, stall, rate) {
            let time = time.max(timeline.since);
            match &event.kind {
                _ if nmi_begins => timeline.open(event, time),
                EventKind::SchedSwitch { prev, next, .. } => {
                    timeline.switch(event, stall.victim.tid, (prev.tid, next.tid), time);
                }
                _ => timeline.event(event, time),
            }
        }
        timeline.stretch_until(stall.end);
        timeline
    }

    fn event(&mut self, event: &KernelEvent, time: Ticks) {
        let closes = |index: &usize| self.frames[*index].is_closed_by(event);
        if let Some(depth) = self.stack.iter().rposition(closes) {
            self.stretch_until(time);
            self.stack.truncate(depth);
        }
        let another_runs = self
            .stack
            .first()
            .is_some_and(|index| self.frames[*index].is_thread());
        if opens(&event.kind) && !(another_runs && is_exception(&event.kind)) {
            self.open(event, time);
        }
    }

    fn switch(&mut self, event: &KernelEvent, victim: i32, (prev, next): (i32, i32), time: Ticks) {
        self.stretch_until(time);
        let base = usize::from(prev != victim).min(self.stack.len());
        let left = self.stack[base..].iter().map(|index| &self.frames[*index]);
        let left: Vec<KernelEvent> = left
            .filter(|f| f.sleeps())
            .map(|f| f.opening.clone())
            .collect();
        self.suspended.insert(prev, left);
        self.stack.clear();
        if next != victim {
            self.open(event, time);
        }
        for opening in self.suspended.remove(&next).unwrap_or_default() {
            self.open(&opening, time);
        }
    }

    fn open(&mut self, event: &KernelEvent, time: Ticks) {
        self.stretch_until(time);
        self.stack.push(self.frames.len());
        self.frames.push(Frame {
            opening: event.clone(),
        });
    }

    fn stretch_until(&mut self, time: Ticks) {
        if time > self.since {
            self.stretches
                .push((self.since, time, self.stack.last().copied()));
            self.since = time;
        }
    }
}

/// Events in order of time, with the beginnings of NMI handlers inserted: their record is written when they end.
fn steps<'e>(
    events: &'e [KernelEvent],
    stall: &Stall,
    rate: TickRate,
) -> Vec<(Ticks, &'e KernelEvent, bool)> {
    let mut steps: Vec<(Ticks, &KernelEvent, bool)> = Vec::new();
    for event in events.iter().filter(|event| stall.contains(event.time)) {
        if let EventKind::NmiHandler { delta_ns, .. } = event.kind {
            let start = (event.time - rate.ticks(Nanos(delta_ns))).max(stall.start);
            let at = steps
                .iter()
                .rposition(|(time, ..)| *time <= start)
                .map_or(0, |i| i + 1);
            steps.insert(at, (start, event, true));
        }
        steps.push((event.time, event, false));
    }
    steps
}
