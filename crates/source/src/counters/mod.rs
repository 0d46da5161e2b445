//! The kernel's own counters in `/proc`, which need no privilege.
//!
//! They show how often something happened on a CPU between two moments, but not when: evidence by correlation only.
//! [`Snapshot::take`] reads all of them, [`Snapshot::deltas`] returns their increases.

mod schedstat;
mod snapshot;
mod stat;
mod table;

pub use schedstat::{SchedstatError, parse_schedstat};
pub use snapshot::{CounterDelta, Snapshot};
pub use stat::parse_stat;
pub use table::{parse_rows, parse_table};

use jitterscope_model::{CpuId, Name};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The file that a counter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CounterSource {
    /// `/proc/interrupts`: numbered interrupts and the architecture's own.
    Interrupts,
    /// `/proc/softirqs`.
    Softirqs,
    /// `/proc/stat`: clock ticks (10 ms each) by activity of the CPU.
    Stat,
    /// `/proc/schedstat`: scheduling, nanoseconds and counts.
    Schedstat,
}

impl CounterSource {
    pub const ALL: [CounterSource; 4] = [
        CounterSource::Interrupts,
        CounterSource::Softirqs,
        CounterSource::Stat,
        CounterSource::Schedstat,
    ];

    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            CounterSource::Interrupts => "/proc/interrupts",
            CounterSource::Softirqs => "/proc/softirqs",
            CounterSource::Stat => "/proc/stat",
            CounterSource::Schedstat => "/proc/schedstat",
        }
    }

    /// Its name in counter names: `interrupt`, `softirq`, `stat`, `sched`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CounterSource::Interrupts => "interrupt",
            CounterSource::Softirqs => "softirq",
            CounterSource::Stat => "stat",
            CounterSource::Schedstat => "sched",
        }
    }
}

impl fmt::Display for CounterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One counter with its value on each CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRow {
    /// The kernel's name: `24`, `LOC`, `NET_RX`, `steal`.
    pub name: Name,
    /// The kernel's description: `IO-APIC 4-edge ttyS0`, `Local timer interrupts`; may be empty.
    pub description: Name,
    /// Values per CPU, in the order of the file.
    pub values: Vec<(CpuId, u64)>,
}
