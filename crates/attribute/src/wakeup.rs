//! A late wake-up, split into what it was late for.
//!
//! The victim sleeps when its stall begins, so the question is not who took the CPU away but who did not
//! give it: the timer that fired late, an idle state that took its time to leave, an interrupt in
//! between, a thread that is more urgent or simply was there first, and the kernel's own way from the
//! wake-up to the victim's next instruction.

use jitterscope_model::{
    Attribution, Comm, Confidence, Culprit, CulpritKind, EventKind, KernelEvent, Name, Part, Placement,
    Stall, TaskRef, TickRate, Ticks, softirq_name,
};
use std::fmt;

/// What a part of the lateness was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakePhase {
    /// The timer had not fired though the CPU was not idle.
    TimerLate,
    /// The CPU was in an idle state: its exit, and the timer's own lateness, which cannot be told apart.
    IdleExit,
    /// An interrupt or a softirq ran.
    Interrupt,
    /// The victim was woken, and a more urgent thread ran.
    HigherPriority,
    /// The victim was woken, and a thread that is no more urgent still ran.
    RunQueue,
    /// The kernel was on its way to the victim.
    Dispatch,
}

impl WakePhase {
    /// Its name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            WakePhase::TimerLate => "late timer",
            WakePhase::IdleExit => "idle exit",
            WakePhase::Interrupt => "interrupt",
            WakePhase::HigherPriority => "higher priority",
            WakePhase::RunQueue => "run-queue wait",
            WakePhase::Dispatch => "dispatch",
        }
    }
}

impl fmt::Display for WakePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One part of a late wake-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakePart {
    /// What it was spent on.
    pub phase: WakePhase,
    /// How long, and who.
    pub part: Part,
}

/// Splits a late wake-up: `stall` reaches from the deadline to the wake-up. `events` are those of the
/// stall's CPU in order of time; those before the stall tell what ran when it began. The parts are in
/// order of first appearance and sum to the stall's length exactly.
#[must_use]
pub fn split_wakeup<'e>(
    stall: &Stall,
    events: impl IntoIterator<Item = &'e KernelEvent>,
    rate: TickRate,
) -> Vec<WakePart> {
    let mut state = State::new(stall.victim.tid);
    let mut parts = Parts { from: stall.start, rate, start: stall.start, found: Vec::new() };
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

/// The same as an attribution, for the store: phases that are nobody's are told by the part's name.
#[must_use]
pub fn attribute_wakeup<'e>(
    stall: &Stall,
    events: impl IntoIterator<Item = &'e KernelEvent>,
    rate: TickRate,
) -> Attribution {
    let parts = split_wakeup(stall, events, rate).into_iter().map(|part| part.part).collect();
    Attribution { stall: stall.id, parts }
}

struct Parts {
    start: Ticks,
    from: Ticks,
    rate: TickRate,
    found: Vec<WakePart>,
}

impl Parts {
    /// The time from the last event to this one belongs to what was going on.
    fn until(&mut self, to: Ticks, state: &State) {
        if to <= self.from {
            return;
        }
        // Differences of rounded sums, so that the parts sum to the rounded whole.
        let elapsed = |at: Ticks| self.rate.nanos(at.since(self.start));
        let net = elapsed(to).saturating_sub(elapsed(self.from));
        self.from = to;
        let (phase, culprit) = state.verdict();
        let same = |part: &&mut WakePart| part.phase == phase && part.part.culprit == culprit;
        if let Some(known) = self.found.iter_mut().find(same) {
            known.part.net += net;
            known.part.gross += net;
            return;
        }
        let known = !matches!(state.running, None | Some(Running::Unrecorded));
        let confidence = match (phase, known) {
            (WakePhase::TimerLate | WakePhase::RunQueue, false) => Confidence::Low,
            (WakePhase::TimerLate | WakePhase::IdleExit, _) => Confidence::Medium,
            _ => Confidence::High,
        };
        let placement = if phase == WakePhase::Dispatch { Placement::Trail } else { Placement::Inside };
        let evidence = phase.as_str().to_owned();
        let part = Part { culprit, net, gross: net, placement, confidence, evidence };
        self.found.push(WakePart { phase, part });
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
    frames: Vec<(CulpritKind, Name)>,
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
            EventKind::IrqEntry { action, .. } => self.enter(CulpritKind::Irq, action.clone()),
            EventKind::SoftirqEntry { vec } => {
                self.enter(CulpritKind::Softirq, softirq_name(*vec).unwrap_or("unknown").into());
            }
            EventKind::VectorEntry { vector } => {
                let kind = match &**vector {
                    "local_timer" => CulpritKind::Timer,
                    "reschedule" | "call_function" | "call_function_single" => CulpritKind::Ipi,
                    _ => CulpritKind::Irq,
                };
                self.enter(kind, vector.clone());
            }
            EventKind::IrqExit { .. } | EventKind::SoftirqExit { .. } | EventKind::VectorExit { .. } => {
                self.frames.pop();
            }
            _ => {}
        }
    }

    fn enter(&mut self, kind: CulpritKind, name: Name) {
        // An interrupt ends the idle state that it came in.
        self.idle = IdleState::Left;
        if self.frames.len() == DEEPEST {
            self.frames.clear();
        }
        self.frames.push((kind, name));
    }

    fn verdict(&self) -> (WakePhase, Culprit) {
        let culprit =
            |kind, name: Name, detail: String| Culprit { kind, name, detail: detail.into(), sender: None };
        if let Some((kind, name)) = self.frames.last() {
            return (WakePhase::Interrupt, culprit(*kind, name.clone(), String::new()));
        }
        let dispatch =
            |name: &str| (WakePhase::Dispatch, culprit(CulpritKind::Switch, name.into(), String::new()));
        match (self.running, self.woken) {
            (Some(Running::Task(task)), _) if task.tid == self.victim => dispatch("return to the thread"),
            (Some(Running::Idle), true) => dispatch("leaving idle"),
            (Some(Running::Idle), false) => match self.idle {
                IdleState::In(state) => idle_exit(format!("idle state {state}")),
                IdleState::Unknown => idle_exit(String::new()),
                IdleState::Left => late_timer("after idle had ended".into()),
            },
            (Some(Running::Unrecorded), true) => (WakePhase::RunQueue, unrecorded()),
            (Some(Running::Unrecorded), false) => {
                late_timer("while the CPU idled or a thread ran, not recorded".into())
            }
            (Some(Running::Task(task)), true) => {
                let urgent = self.priority.is_some_and(|own| task.prio < own);
                let phase = if urgent { WakePhase::HigherPriority } else { WakePhase::RunQueue };
                let detail = format!("pid {}, priority {}", task.tid, task.prio);
                (phase, culprit(kind_of(&task.comm), task.comm.to_string().into(), detail))
            }
            (Some(Running::Task(task)), false) => late_timer(format!("while {} ran", task.comm)),
            (None, true) => (
                WakePhase::RunQueue,
                culprit(CulpritKind::Unresolved, "run-queue wait".into(), String::new()),
            ),
            (None, false) => late_timer(String::new()),
        }
    }
}

fn unrecorded() -> Culprit {
    Culprit {
        kind: CulpritKind::Unresolved,
        name: "unrecorded switch".into(),
        detail: "the way out of idle, or a thread that ran before".into(),
        sender: None,
    }
}

fn idle_exit(detail: String) -> (WakePhase, Culprit) {
    let kind = CulpritKind::Switch;
    let culprit = Culprit { kind, name: "idle exit".into(), detail: detail.into(), sender: None };
    (WakePhase::IdleExit, culprit)
}

fn late_timer(detail: String) -> (WakePhase, Culprit) {
    let kind = CulpritKind::Unresolved;
    let culprit = Culprit { kind, name: "late timer".into(), detail: detail.into(), sender: None };
    (WakePhase::TimerLate, culprit)
}

fn kind_of(comm: &Comm) -> CulpritKind {
    if comm.as_bytes().starts_with(b"kworker/") { CulpritKind::Kworker } else { CulpritKind::Thread }
}

#[cfg(test)]
#[path = "wakeup_tests.rs"]
mod tests;
