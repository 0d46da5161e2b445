//! The file that a run was imported from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The file of another tool that a run's records come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Imported {
    /// Its name, without its folder; empty if redacted.
    pub file: String,
    /// Its format: `trace.dat`, `perf.data`, `CTF trace` or `Perfetto trace`.
    pub format: String,
    /// The version of the format.
    pub format_version: u32,
    /// The program that wrote it, if the file states it.
    pub program: Option<String>,
    /// The kernel's name of the clock that stamped the records.
    pub clock: String,
    /// Whether the file states the time of day. Otherwise its last change counts as the end of the recording.
    pub states_date: bool,
    /// Records of events that no verdict uses.
    pub unread_records: u64,
}

impl Imported {
    /// The format of trace-cmd.
    pub const TRACE_DAT: &str = "trace.dat";
    /// The format of perf.
    pub const PERF_DATA: &str = "perf.data";
    /// The format of LTTng.
    pub const CTF: &str = "CTF trace";
    pub const PERFETTO: &str = "Perfetto trace";
    /// The kernel's clocks that count nanoseconds.
    pub const NANOSECOND_CLOCKS: [&str; 7] =
        ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];
    /// The clock that counts the ticks of the TSC.
    pub const TSC_CLOCK: &str = "x86-tsc";
    /// The clock of each CPU, which the kernel does not compare with those of the others.
    pub const LOCAL_CLOCK: &str = "local";
}
