//! One stall in order of time: what ran, and the other records.

use crate::{CpuId, Culprit, Name, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

/// One line of a stall's timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TimelineRow {
    /// The CPU, if more than one is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuId>,
    /// The number of frames that it is nested in.
    pub depth: usize,
    /// From the start of the stall.
    #[serde(rename = "start_ns")]
    pub start: Nanos,
    /// From the start of the stall; `None` if it has no length, or no recorded end.
    #[serde(rename = "end_ns")]
    pub end: Option<Nanos>,
    #[serde(flatten)]
    pub item: TimelineItem,
}

/// What a line of a timeline is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "item")]
#[expect(
    clippy::large_enum_variant,
    reason = "most items are frames, and a stall has few"
)]
pub enum TimelineItem {
    Frame {
        #[serde(flatten)]
        culprit: Culprit,
        /// Whether its end is recorded, or its kind has none.
        ended: bool,
        /// Whether a frame inside describes it better than its own name.
        named_inside: bool,
    },
    /// A thread was woken.
    Wakes {
        comm: Name,
        tid: i32,
        /// The CPU that it will run on.
        target_cpu: CpuId,
    },
    /// A thread was moved.
    Migrates {
        comm: Name,
        tid: i32,
        from_cpu: CpuId,
        to_cpu: CpuId,
    },
    /// A work item was queued.
    QueuesWork { function: Name, workqueue: Name },
    /// The TLB was flushed.
    TlbFlush {
        /// The number of pages; `None` for all.
        pages: Option<i64>,
    },
    /// The tick was stopped.
    TickStopped,
    /// The tick could not be stopped.
    TickKept {
        /// What prevented it: the kernel's `TICK_DEP_MASK_*` bits.
        dependency: u32,
    },
    /// A CPU changed its frequency.
    Frequency {
        target_cpu: CpuId,
        /// The new frequency in kHz.
        khz: u32,
    },
    /// The CPU entered an idle state.
    Idle { state: u32 },
    /// The CPU left its idle state.
    IdleEnds,
    /// A kernel function ran.
    Call {
        function: Name,
        /// Its own time within the stall, without the functions that it called and without the time when its thread was
        /// switched out.
        self_ns: Nanos,
        /// Whether it began before the stall.
        began_before: bool,
        /// Whether its end is recorded within the stall.
        ended: bool,
    },
    /// A record of an event that the user asked for.
    Asked {
        /// The event, as `SYSTEM:EVENT`.
        event: Name,
        /// The thread that wrote it.
        tid: i32,
        /// The event's own fields as `name=value`, separated by spaces.
        fields: String,
    },
    /// A mark of the application's log begins or ends.
    Mark {
        name: Name,
        /// Its whole length; 0 if the log names a moment.
        length_ns: Nanos,
        /// Whether it ends here, and began before the stall.
        ends: bool,
    },
    /// Left out by a redacted report.
    LeftOut,
}
