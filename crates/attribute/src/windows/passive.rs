//! A watched CPU: which part of its time belonging threads had, were denied, or did not want.
//!
//! Theft needs a victim: time is stolen when a thread that belongs on the CPU could use it and something else had it.
//! That is the case while a belonging thread has the CPU and an interrupt runs on top of it, and while one waits for
//! the CPU and no belonging thread has it. Activity while all belonging threads sleep takes nothing from them: it is
//! beside. Idle time is idle, even if it is interrupted.
//!
//! Records do not show the kernel's entry path before an entry's record and its exit path after an exit's record; this
//! time counts as the thread's own. So does a page fault, which has no exit record.

use super::{Named, holder, wait};
use crate::occupancy::{Class, Slice};
use jitterscope_model::{Culprit, Phase, ThreadRef, Ticks};
use std::sync::Arc;

/// The relation of a stretch of a watched CPU's time to the belonging threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CpuState {
    /// A belonging thread had the CPU.
    Own(ThreadRef),
    /// A belonging thread was denied the CPU.
    Stolen {
        victim: ThreadRef,
        phase: Phase,
        culprit: Arc<Culprit>,
    },
    /// No belonging thread wanted the CPU, and something else ran.
    Beside(Arc<Culprit>),
    /// No belonging thread wanted the CPU, and it idled.
    Idle,
    /// No record shows it.
    Unknown,
}

/// A piece of a watched CPU's time. Pieces are in order, adjacent, and fill the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
    pub(crate) fate: CpuState,
    /// Pieces of the same turn, interrupt or softirq have the same number within their window.
    pub(crate) turn: usize,
    /// The number of stretches that it sums, whose order is lost. 0: it is one stretch.
    pub(crate) sums: u32,
}

/// A thread that waits for the CPU, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) thread: ThreadRef,
    pub(crate) phase: Phase,
}

/// From a moment on, this is the first of all threads that wait for the CPU, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) at: Ticks,
    pub(crate) waiting: Option<Waiting>,
}

/// Splits a window of a CPU. `changes` are in order of time, those from before the window first; `belongs` returns a
/// thread's name if it belongs on the CPU.
pub(crate) fn pieces(
    named: &Named<'_>,
    changes: &[Change],
    belongs: impl Fn(i32) -> Option<ThreadRef>,
) -> Vec<Piece> {
    let mut found = Pieces {
        named,
        found: Vec::new(),
    };
    let mut waiting = None;
    let mut changes = changes.iter().peekable();
    for slice in &named.window.slices {
        while let Some(change) = changes.next_if(|change| change.at <= slice.start) {
            waiting = change.waiting.as_ref();
        }
        let (mut from, has) = (slice.start, Has::of(slice.frame, named, &belongs));
        while let Some(change) = changes.next_if(|change| change.at < slice.end) {
            found.add((from, change.at), slice, &has, waiting);
            (from, waiting) = (change.at, change.waiting.as_ref());
        }
        found.add((from, slice.end), slice, &has, waiting);
    }
    found.found
}

/// What has the CPU.
enum Has {
    /// A belonging thread, and an interrupt or a softirq on top of it, if any.
    Own(ThreadRef, Option<u32>),
    /// Something else.
    Other(u32),
    Idle(u32),
    /// A thread that no record names.
    Unrecorded(u32),
    Unknown,
}

impl Has {
    fn of(frame: u32, named: &Named<'_>, belongs: impl Fn(i32) -> Option<ThreadRef>) -> Has {
        let root = named.window.root(frame);
        let turn = named.frame(root);
        match turn.class {
            Class::Turn => {}
            Class::Throttled => return Has::Other(root),
            Class::Unrecorded => return Has::Unrecorded(root),
            _ => return Has::Unknown,
        }
        // Faults only concern the faulting thread, and idle states the idle thread.
        let counts = |at: &u32| {
            let class = named.frame(*at).class;
            class != Class::Idle && !class.is_endless()
        };
        let owner = named.window.chain(frame).find(counts).unwrap_or(root);
        match belongs(turn.tid) {
            Some(thread) => Has::Own(thread, Some(owner).filter(|owner| *owner != root)),
            None if owner == root && turn.tid == 0 => Has::Idle(root),
            None => Has::Other(owner),
        }
    }
}

struct Pieces<'a> {
    named: &'a Named<'a>,
    found: Vec<Piece>,
}

impl Pieces<'_> {
    /// Adds the time of a slice, or a part of it.
    fn add(
        &mut self,
        (start, end): (Ticks, Ticks),
        slice: &Slice,
        has: &Has,
        waiting: Option<&Waiting>,
    ) {
        if end <= start {
            return;
        }
        // A slice counts only once.
        let sums = if start == slice.start { slice.sums } else { 0 };
        let none = self.named.window.frames.len();
        let culprit_and_turn = |owner: u32| {
            (
                holder::culprit(owner, self.named),
                wait::turn(owner, self.named),
            )
        };
        let stolen = |waiting: &Waiting, culprit| CpuState::Stolen {
            victim: waiting.thread,
            phase: waiting.phase.clone(),
            culprit,
        };
        let (fate, turn) = match (has, waiting) {
            (Has::Own(thread, None), _) => (CpuState::Own(*thread), none),
            (Has::Own(thread, Some(owner)), _) => {
                let (culprit, turn) = culprit_and_turn(*owner);
                (
                    CpuState::Stolen {
                        victim: *thread,
                        phase: Phase::Interrupted,
                        culprit,
                    },
                    turn,
                )
            }
            (Has::Other(owner) | Has::Unrecorded(owner), Some(waiting)) => {
                let (culprit, turn) = culprit_and_turn(*owner);
                (stolen(waiting, culprit), turn)
            }
            (Has::Idle(root), Some(waiting)) => {
                (stolen(waiting, holder::culprit(*root, self.named)), none)
            }
            (Has::Other(owner), None) => {
                let (culprit, turn) = culprit_and_turn(*owner);
                (CpuState::Beside(culprit), turn)
            }
            (Has::Idle(_), None) => (CpuState::Idle, none),
            (Has::Unrecorded(_), None) | (Has::Unknown, _) => (CpuState::Unknown, none),
        };
        match self
            .found
            .last_mut()
            .filter(|last| last.fate == fate && last.turn == turn)
        {
            Some(last) => {
                last.end = end;
                last.sums = last.sums.saturating_add(sums);
            }
            None => self.found.push(Piece {
                start,
                end,
                fate,
                turn,
                sums,
            }),
        }
    }
}

#[cfg(test)]
#[path = "passive_tests.rs"]
mod tests;
