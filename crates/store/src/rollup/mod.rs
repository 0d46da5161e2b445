//! Rollups: what one host lost in one hour, small enough to keep from every host of a fleet.
//!
//! A watch writes an hour as JSON while it goes on, and continues it after a restart. For an object store an hour becomes a
//! Parquet file of one wide table ([`ROLLUPS`]): `record` says what a row is, so that a host-hour is one object and one
//! request. The views of `jitterscope fleet schema` divide it again.

mod columns;
mod encode;
mod folder;
mod merge;
mod names;

pub use columns::ROLLUPS;
pub use encode::encode;
pub use folder::{HOURS, hours_in, read_hour};
pub use merge::{Merged, batches, merge};
pub use names::{
    HourFile, days_folder, host_object, hour_start_s, key_of_kind, kind_of_key, object_name,
    raw_folder, run_folder,
};

pub(crate) use columns::ROLLUP_TABLE;

use jitterscope_model::CpuSet;
use serde::{Deserialize, Serialize};

/// The name of the row that sums the culprits of a kind without a row of their own.
pub const OTHERS: &str = "(others)";
/// The key of the histogram of the lengths of stalls.
pub const STALLS_KEY: &str = "stall";

/// A host, as its rollups describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RollupHost {
    /// Stays the same when the host is renamed: derived from its machine id.
    pub id: String,
    /// Its name at that time.
    pub name: String,
    /// The kernel's id of the boot.
    pub boot: String,
    /// `uname -r`.
    pub kernel: String,
    pub cpu_model: String,
    /// Vendor and product.
    pub machine: String,
    /// The firmware's version, if known.
    pub firmware: Option<String>,
    /// Stands for all settings that tuning changes: hosts with equal settings have equal fingerprints.
    pub tuning: String,
    /// The version of this program.
    pub version: String,
    /// The kind of probe: `spin` or `none`.
    pub probe: String,
}

/// One hour of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostHour {
    pub host: RollupHost,
    /// The hour, counted from the epoch, by the host's clock.
    pub hour: u64,
    /// By how many seconds the host's clock was ahead of the store's, if the store has said so.
    pub clock_ahead_s: Option<i32>,
    pub groups: Vec<GroupHour>,
}

/// One hour of a group of CPUs: those of one NUMA node that one watch measures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupHour {
    pub cpus: CpuSet,
    /// Stalls, and their time in nanoseconds.
    pub stalls: u64,
    pub stalled_ns: u64,
    /// The longest stall, nanoseconds; 0 without stalls.
    pub longest_ns: u64,
    /// Measured time, summed over CPUs, nanoseconds.
    pub measured_ns: u64,
    /// Kernel records that were lost on the host, in its first group.
    pub lost: u64,
    /// The largest first; then [`OTHERS`], one row a kind.
    pub culprits: Vec<RollupCulprit>,
    pub buckets: Vec<RollupBucket>,
    /// The longest stalls in full, the longest first.
    pub longest: Vec<RollupStall>,
}

/// What one culprit took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollupCulprit {
    pub kind: String,
    pub name: String,
    /// Its unit, pod or control group: `unit:backup.service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Parts of stalls.
    #[serde(default)]
    pub count: u64,
    /// Nanoseconds.
    pub time_ns: u64,
    /// The longest part, nanoseconds.
    #[serde(default)]
    pub longest_ns: u64,
}

/// How many durations a bucket of a histogram has, see [`exponential_bucket`](jitterscope_model::exponential_bucket).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollupBucket {
    /// [`STALLS_KEY`], or `part:KIND` for the parts of one kind of culprit.
    pub key: String,
    pub bucket: i32,
    pub count: u64,
}

/// A stall in full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollupStall {
    pub cpu: u32,
    /// Nanoseconds since the epoch, by the host's clock.
    pub start_ns: u64,
    pub length_ns: u64,
    pub parts: Vec<RollupPart>,
}

/// A part of a stall.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollupPart {
    pub kind: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Nanoseconds.
    pub time_ns: u64,
}

#[cfg(test)]
mod tests;
