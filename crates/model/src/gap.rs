//! What a probe measures.

use crate::event::Comm;
use crate::{CpuId, Ticks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The time between two adjacent clock reads of a spinning probe, at or above the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The last read before the gap.
    pub start: Ticks,
    /// The time until the next read.
    pub length: Ticks,
}

impl Gap {
    /// Separates the gaps of the warm-up from those of the measurement, whose first read is `start`.
    #[must_use]
    pub fn measurement_begins(start: Ticks) -> Gap {
        Gap {
            start,
            length: Ticks(0),
        }
    }

    /// Whether this is that separator; real gaps have a length above zero.
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

/// A stall's number within its run, in order of detection; it joins `stalls.parquet` and `parts.parquet`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct StallId(pub u64);

/// A thread: kernel thread id and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadRef {
    pub tid: i32,
    pub comm: Comm,
}

/// A window in which a victim thread made no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Number within the run.
    pub id: StallId,
    pub cpu: CpuId,
    pub victim: ThreadRef,
    /// The victim's last sign of progress before the stall.
    pub start: Ticks,
    /// Its first sign of progress after the stall; never before `start`.
    pub end: Ticks,
}

impl Stall {
    #[must_use]
    pub fn length(&self) -> Ticks {
        self.end.since(self.start)
    }

    /// Whether `time` is inside, including both ends.
    #[must_use]
    pub fn contains(&self, time: Ticks) -> bool {
        self.start <= time && time <= self.end
    }
}
