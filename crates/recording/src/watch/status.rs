//! The state of a running watch, and its answers.

use super::hours::HourSums;
use super::triggers::TriggerCounts;
use jitterscope_model::CpuSet;
use jitterscope_platform::{Machine, clock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The state of a watch, as `watch status` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchStatus {
    pub pid: u32,
    pub cpus: CpuSet,
    /// A word of `ProbeKind`.
    pub probe: String,
    /// How deep it looks: `attributed`, records are read and attributed as they come.
    pub level: String,
    /// Since when, nanoseconds since the epoch.
    pub since_ns: u64,
    /// The folder of saved runs.
    pub runs: PathBuf,
    /// The application's socket.
    pub socket: Option<PathBuf>,
    pub history: HistoryStatus,
    pub triggers: TriggerCounts,
    /// How many runs were saved since the start.
    pub saved_runs: u64,
    /// What the sources of kernel records lost since the start.
    pub lost: Vec<LostRecords>,
    /// Conditions that could not be decided at least once, for a reason other than too few stalls.
    pub undecided: Vec<String>,
    /// The runs saved last, oldest first.
    pub saved: Vec<PathBuf>,
    /// CPU time of the process without its probes, nanoseconds, and its memory, bytes.
    pub cpu_time_ns: u64,
    pub rss_bytes: u64,
    /// What went wrong last, if anything.
    pub trouble: Option<String>,
    /// What became of uploads; absent without `--upload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<jitterscope_model::UploadStatus>,
    /// The sums of the last 24 hours, oldest first, each with its eight largest culprits.
    pub hours: Vec<HourSums>,
}

/// The state of the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryStatus {
    pub sections: u64,
    /// How far it reaches back, nanoseconds.
    pub reaches_ns: u64,
    /// Its size with the section that is being written, bytes, and the limit.
    pub bytes: u64,
    pub limit_bytes: u64,
    /// Sections dropped because the disk was full.
    pub dropped_for_room: u64,
}

/// What a source of kernel records lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostRecords {
    pub source: String,
    pub records: u64,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Saved(PathBuf),
    Status(Box<WatchStatus>),
    Stopping,
    /// Why not.
    Refused(String),
}

/// CPU time of this process without its probes, nanoseconds; ended threads are included.
pub(super) fn own_cpu_time(machine: &Machine) -> u64 {
    let of_probes = probes_cpu_time(machine);
    clock::process_cpu_time().0.saturating_sub(of_probes)
}

/// CPU time of the probes, which run until the end.
fn probes_cpu_time(machine: &Machine) -> u64 {
    let tasks = std::fs::read_dir(machine.path("/proc/self/task"));
    let of = |tid: String| {
        let file = |name: &str| machine.read(format!("/proc/self/task/{tid}/{name}")).ok();
        let is_probe = file("comm")?.starts_with("js-spin");
        let time = file("schedstat")?
            .split_whitespace()
            .next()?
            .parse::<u64>()
            .ok()?;
        is_probe.then_some(time)
    };
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| of(entry.file_name().into_string().ok()?))
        .sum()
}
