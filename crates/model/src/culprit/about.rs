//! Further facts about a verdict.

use super::{Evidence, Task, Work};
use crate::{CpuId, Name};
use std::sync::Arc;

/// Further facts about a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    #[default]
    Nothing,
    /// The idle state that the CPU was in.
    IdleState(u32),
    /// What ran while a timer was late.
    Meanwhile(Meanwhile),
    /// Interrupts whose counters rose, as `/proc/interrupts` names them.
    Vectors(Arc<[Name]>),
    /// The CPU whose activity no record shows.
    Cpu(CpuId),
    /// The records of the frame without a recorded end.
    Frame(Evidence),
}

/// What ran while a timer was late.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Meanwhile {
    /// The CPU had left its idle state.
    IdleEnded,
    /// The CPU idled or a thread ran; no record shows which.
    Unrecorded,
    Ran(Task),
    /// A kernel worker ran this.
    Worked(Work),
}

impl Meanwhile {
    /// Its word in files and JSON.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Meanwhile::IdleEnded => "idle_ended",
            Meanwhile::Unrecorded => "unrecorded",
            Meanwhile::Ran(_) => "thread",
            Meanwhile::Worked(_) => "work",
        }
    }
}

impl About {
    /// Keeps the facts that both share.
    pub(super) fn meet(&mut self, other: &About) {
        match (&mut *self, other) {
            (About::Meanwhile(Meanwhile::Ran(task)), About::Meanwhile(Meanwhile::Ran(other))) => {
                task.meet(other);
            }
            (
                About::Meanwhile(Meanwhile::Worked(work)),
                About::Meanwhile(Meanwhile::Worked(other)),
            ) => {
                work.meet(other);
            }
            (own, other) if *own != *other => *self = About::Nothing,
            _ => {}
        }
    }
}
