//! One stall in order of time: what ran, and what else was recorded.

use crate::{CpuId, Culprit, Name, Nanos};
use serde::Serialize;

/// One line of a stall's timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimelineRow {
    /// Where, when more than one CPU is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuId>,
    /// How many frames it is nested in.
    pub depth: usize,
    /// From the start of the stall.
    #[serde(rename = "start_ns")]
    pub start: Nanos,
    /// From the start of the stall; `None` for what has no length, or no end that was seen.
    #[serde(rename = "end_ns")]
    pub end: Option<Nanos>,
    /// What it is.
    #[serde(flatten)]
    pub item: TimelineItem,
}

/// What a line of a timeline is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "item")]
pub enum TimelineItem {
    /// Something that ran.
    Frame {
        /// What.
        #[serde(flatten)]
        culprit: Culprit,
        /// Whether its end was seen, or its kind has none.
        ended: bool,
        /// Whether a frame inside says more about it than it does itself.
        named_inside: bool,
    },
    /// A thread was woken.
    Wakes {
        /// Its name.
        comm: Name,
        /// Its id.
        tid: i32,
        /// Where it is to run.
        target_cpu: CpuId,
    },
    /// A thread was moved.
    Migrates {
        /// Its name.
        comm: Name,
        /// Its id.
        tid: i32,
        /// From.
        from_cpu: CpuId,
        /// To.
        to_cpu: CpuId,
    },
    /// A work item was queued.
    QueuesWork {
        /// What it will run.
        function: Name,
        /// On which queue.
        workqueue: Name,
    },
    /// Translations were forgotten.
    TlbFlush {
        /// Of so many pages; `None` for all.
        pages: Option<i64>,
    },
    /// The tick was stopped.
    TickStopped,
    /// The tick could not be stopped.
    TickKept {
        /// What kept it: the kernel's `TICK_DEP_MASK_*` bits.
        dependency: u32,
    },
    /// A CPU changed its frequency.
    Frequency {
        /// Which.
        target_cpu: CpuId,
        /// To.
        khz: u32,
    },
    /// The CPU entered an idle state.
    Idle {
        /// Which.
        state: u32,
    },
    /// It left it.
    IdleEnds,
    /// A kernel function ran.
    Call {
        /// Which.
        function: Name,
        /// Its own time: within the stall, without the functions that it called and the time that its thread was
        /// switched out.
        self_ns: Nanos,
        /// Whether it was under way when the stall began.
        began_before: bool,
        /// Whether its end was seen within the stall.
        ended: bool,
    },
    /// Not known.
    LeftOut,
}
