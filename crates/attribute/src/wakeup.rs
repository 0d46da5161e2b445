//! A late wake-up, split into what it was late for.
//!
//! The victim sleeps when its stall begins, so the question is not who took the CPU away but who did not
//! give it: the timer that fired late, an idle state that took its time to leave, an interrupt in
//! between, a thread that is more urgent or simply was there first, and the kernel's own way from the
//! wake-up to the victim's next instruction.

use crate::culprits;
use crate::lexicon::Lexicon;
use jitterscope_model::{
    About, Attribution, Confidence, EventKind, Evidence, KernelEvent, Meanwhile, Part, Phase, Placement,
    Stall, Subject, TaskRef, TickRate, Ticks, Verdict,
};

/// Splits a late wake-up: `stall` reaches from the deadline to the wake-up. `events` are those of the
/// stall's CPU in order of time; those before the stall tell what ran when it began. The parts are in
/// order of first appearance and sum to the stall's length exactly.
#[must_use]
pub fn split_wakeup<'e>(
    stall: &Stall,
    events: impl IntoIterator<Item = &'e KernelEvent>,
    rate: TickRate,
    lexicon: &dyn Lexicon,
) -> Vec<Part> {
    let mut state = State::new(stall.victim.tid);
    let mut parts = Parts { from: stall.start, rate, start: stall.start, lexicon, found: Vec::new() };
    let events: Vec<&KernelEvent> = events.into_iter().take_while(|event| event.time < stall.end).collect();
    let idle_is_told = idle_is_told(&events);
    for (event, idle_is_told) in events.into_iter().zip(idle_is_told) {
        if event.time > stall.start {
            parts.until(event.time, &state);
        }
        state.take(event);
        if state.running == Some(Running::Idle) && !idle_is_told {
            state.running = Some(Running::Unrecorded);
        }
    }
    parts.until(stall.end, &state);
    parts.found
}

/// Whether an idle CPU can be believed to be idle after each event. Kernels have been met that record
/// nothing of some CPUs' idle threads: then the next switch is not one away from idle, or there is none
/// though the victim runs in the end, and whatever ran in between left no trace.
fn idle_is_told(events: &[&KernelEvent]) -> Vec<bool> {
    let mut told = false;
    let mut after: Vec<bool> = events
        .iter()
        .rev()
        .map(|event| {
            let here = told;
            match &event.kind {
                EventKind::SchedSwitch { prev, .. } => told = prev.tid == 0,
                EventKind::CpuIdle { .. } => told = true,
                _ => {}
            }
            here
        })
        .collect();
    after.reverse();
    after
}

/// The same as an attribution, for the store.
#[must_use]
pub fn attribute_wakeup<'e>(
    stall: &Stall,
    events: impl IntoIterator<Item = &'e KernelEvent>,
    rate: TickRate,
    lexicon: &dyn Lexicon,
) -> Attribution {
    Attribution { stall: stall.id, parts: split_wakeup(stall, events, rate, lexicon) }
}

struct Parts<'a> {
    start: Ticks,
    from: Ticks,
    rate: TickRate,
    lexicon: &'a dyn Lexicon,
    found: Vec<Part>,
}

impl Parts<'_> {
    /// The time from the last event to this one belongs to what was going on.
    fn until(&mut self, to: Ticks, state: &State) {
        if to <= self.from {
            return;
        }
        // Differences of rounded sums, so that the parts sum to the rounded whole.
        let elapsed = |at: Ticks| self.rate.nanos(at.since(self.start));
        let net = elapsed(to).saturating_sub(elapsed(self.from));
        self.from = to;
        let (phase, subject) = state.verdict(self.lexicon);
        let same = |part: &&mut Part| part.phase.as_ref() == Some(&phase) && part.culprit.subject == subject;
        if let Some(known) = self.found.iter_mut().find(same) {
            known.net += net;
            known.gross += net;
            return;
        }
        let known = !matches!(state.running, None | Some(Running::Unrecorded));
        let confidence = match (&phase, known) {
            (Phase::LateTimer | Phase::RunQueue, false) => Confidence::Low,
            (Phase::LateTimer | Phase::IdleExit, _) => Confidence::Medium,
            _ => Confidence::High,
        };
        let placement = if phase == Phase::Dispatch { Placement::Trail } else { Placement::Inside };
        let part = Part::inside(subject, net, Evidence::WakeupRecords).in_phase(phase);
        self.found.push(Part { placement, confidence, ..part });
    }
}

/// Who has the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    Idle,
    /// The idle thread or who came after it: no record tells.
    Unrecorded,
    Task(TaskRef),
}

/// How deep an idle CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdleState {
    /// Not recorded.
    Unknown,
    /// In this state.
    In(u32),
    /// It has left it.
    Left,
}

/// What goes on at one instant.
struct State {
    victim: i32,
    priority: Option<i32>,
    running: Option<Running>,
    idle: IdleState,
    frames: Vec<Subject>,
    woken: bool,
}

/// Frames nested deeper than any kernel nests them mean that exits were lost.
const DEEPEST: usize = 8;

impl State {
    fn new(victim: i32) -> State {
        State {
            victim,
            priority: None,
            running: None,
            idle: IdleState::Unknown,
            frames: Vec::new(),
            woken: false,
        }
    }

    fn take(&mut self, event: &KernelEvent) {
        match &event.kind {
            EventKind::SchedSwitch { prev, next, .. } => {
                self.frames.clear();
                self.idle = IdleState::Unknown;
                if prev.tid == self.victim {
                    // It went to sleep: what wakes it is still to come.
                    self.priority = Some(prev.prio);
                    self.woken = false;
                }
                self.running = Some(if next.tid == 0 { Running::Idle } else { Running::Task(*next) });
                if next.tid == self.victim {
                    self.priority = Some(next.prio);
                    self.woken = true;
                }
            }
            EventKind::SchedWaking { task, .. } if task.tid == self.victim => {
                self.priority = Some(task.prio);
                self.woken = true;
            }
            EventKind::CpuIdle { state } => {
                self.running = Some(Running::Idle);
                self.idle = state.map_or(IdleState::Left, IdleState::In);
            }
            EventKind::IrqEntry { irq, action } => {
                self.enter(Subject::Interrupt { number: Some(*irq), action: action.clone() });
            }
            EventKind::SoftirqEntry { vec } => self.enter(Subject::Softirq(*vec)),
            EventKind::VectorEntry { vector } => self.enter(match &**vector {
                // Which function it runs is not looked at.
                "local_timer" => Subject::Timer { function: None, source: None },
                "reschedule" | "call_function" | "call_function_single" => Subject::Ipi(vector.clone()),
                _ => Subject::Vector(vector.clone()),
            }),
            EventKind::IrqExit { .. } | EventKind::SoftirqExit { .. } | EventKind::VectorExit { .. } => {
                self.frames.pop();
            }
            _ => {}
        }
    }

    fn enter(&mut self, frame: Subject) {
        // An interrupt ends the idle state that it came in.
        self.idle = IdleState::Left;
        if self.frames.len() == DEEPEST {
            self.frames.clear();
        }
        self.frames.push(frame);
    }

    fn verdict(&self, lexicon: &dyn Lexicon) -> (Phase, Subject) {
        if let Some(frame) = self.frames.last() {
            return (Phase::Interrupt, frame.clone());
        }
        match (self.running, self.woken) {
            (Some(Running::Task(task)), _) if task.tid == self.victim => {
                (Phase::Dispatch, Subject::verdict(Verdict::ReturnToThread))
            }
            (Some(Running::Idle), true) => (Phase::Dispatch, Subject::verdict(Verdict::LeavingIdle)),
            (Some(Running::Idle), false) => match self.idle {
                IdleState::In(state) => idle_exit(About::IdleState(state)),
                IdleState::Unknown => idle_exit(About::Nothing),
                IdleState::Left => late_timer(About::Meanwhile(Meanwhile::IdleEnded)),
            },
            (Some(Running::Unrecorded), true) => {
                (Phase::RunQueue, Subject::verdict(Verdict::UnrecordedSwitch))
            }
            (Some(Running::Unrecorded), false) => late_timer(About::Meanwhile(Meanwhile::Unrecorded)),
            (Some(Running::Task(task)), true) => {
                let urgent = self.priority.is_some_and(|own| task.prio < own);
                let phase = if urgent { Phase::HigherPriority } else { Phase::RunQueue };
                (phase, culprits::thread_subject(&task, lexicon))
            }
            (Some(Running::Task(task)), false) => {
                late_timer(About::Meanwhile(Meanwhile::Ran(lexicon.task(&task))))
            }
            (None, true) => (Phase::RunQueue, Subject::verdict(Verdict::RunQueueWait)),
            (None, false) => late_timer(About::Nothing),
        }
    }
}

fn idle_exit(about: About) -> (Phase, Subject) {
    (Phase::IdleExit, Subject::Verdict(Verdict::IdleExit, about))
}

fn late_timer(about: About) -> (Phase, Subject) {
    (Phase::LateTimer, Subject::Verdict(Verdict::LateTimer, about))
}

#[cfg(test)]
#[path = "wakeup_tests.rs"]
mod tests;
