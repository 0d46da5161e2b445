//! What a probe saw.

use crate::event::Comm;
use crate::{CpuId, Ticks};
use serde::{Deserialize, Serialize};

/// The time between two adjacent clock reads of a spinning probe, at or above the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The last read before the gap.
    pub start: Ticks,
    /// How long until the next read.
    pub length: Ticks,
}

impl Gap {
    /// Stands between the gaps of the warm-up and those of the measurement, whose first read is `start`.
    #[must_use]
    pub fn measurement_begins(start: Ticks) -> Gap {
        Gap {
            start,
            length: Ticks(0),
        }
    }

    /// Whether this is that mark: no gap has no length.
    #[must_use]
    pub fn is_beginning(&self) -> bool {
        self.length == Ticks(0)
    }

    /// The first read after the gap.
    #[must_use]
    pub fn end(&self) -> Ticks {
        self.start + self.length
    }
}

/// A stall's number within its run, in order of detection; it joins `gaps.parquet` and
/// `attributions.parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StallId(pub u64);

/// A thread: kernel thread id and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadRef {
    /// Kernel thread id.
    pub tid: i32,
    /// Its name.
    pub comm: Comm,
}

/// A window in which a victim thread did not get on with its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Number within the run.
    pub id: StallId,
    /// Where the victim was running.
    pub cpu: CpuId,
    /// The thread that was stalled.
    pub victim: ThreadRef,
    /// Last sign of life before.
    pub start: Ticks,
    /// First sign of life after; never before `start`.
    pub end: Ticks,
}

impl Stall {
    /// How long.
    #[must_use]
    pub fn length(&self) -> Ticks {
        self.end.since(self.start)
    }

    /// Whether `time` lies inside: after the last read before, not after the first read behind.
    #[must_use]
    pub fn contains(&self, time: Ticks) -> bool {
        self.start <= time && time <= self.end
    }
}
