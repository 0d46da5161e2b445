//! What else is known of a verdict.

use super::{Evidence, Task, Work};
use crate::{CpuId, Name};
use std::sync::Arc;

/// What else is known of a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// Nothing.
    #[default]
    Nothing,
    /// The idle state that the CPU was in.
    IdleState(u32),
    /// What went on while a timer was late.
    Meanwhile(Meanwhile),
    /// The interrupts that were counted, as `/proc/interrupts` calls them.
    Vectors(Arc<[Name]>),
    /// The CPU of which no record says what ran.
    Cpu(CpuId),
    /// The records of the frame whose end is missing.
    Frame(Evidence),
}

/// What went on while a timer was late.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Meanwhile {
    /// The CPU had ended its idle state.
    IdleEnded,
    /// It idled or a thread ran, which is not recorded.
    Unrecorded,
    /// This thread ran.
    Ran(Task),
    /// A kernel worker ran this.
    Worked(Work),
}

impl Meanwhile {
    /// The word for it in files and JSON.
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
    /// What both have in common.
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
