//! The file that a run was imported from.

use crate::Nanos;
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

/// Another tool's records, added to the run of a probe (`import --into`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddedRecords {
    /// The file with the records.
    pub file: Imported,
    /// The id of the run whose stalls these are.
    pub run: String,
    /// How the search for the offset between the clocks began.
    pub start: AlignmentStart,
    /// The first record's time, nanoseconds on the file's clock as stated.
    pub file_ns: u64,
    /// The same moment, nanoseconds since the first stall of the probe.
    pub run_ns: i64,
    /// How much faster the file's clock runs than stated, relative to the probe's, parts per billion.
    pub drift_ppb: i64,
    /// How far a record's time on the probe's clock may be off.
    pub error_ns: Nanos,
    /// Records of measured CPUs that were compared.
    pub compared: u64,
    /// The compared records that lie in a stall.
    pub inside: u64,
    /// The compared records that lie in a stall after a shift in time.
    pub by_chance: u64,
    /// The stretch that was aligned first; null if both are one clock.
    pub first: Option<FirstStretch>,
    /// The part of the measured time, 0 to 1, that the records cover: elsewhere stalls have no verdict.
    pub covered: f64,
}

/// What decided between the offsets that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FirstStretch {
    /// Visits of the kernel and beginnings of stalls that were compared.
    pub compared: u64,
    /// Those that the chosen offset fits: the visit lies in a stall; the stall begins with a record.
    pub fits: u64,
    /// Those that the best other offset fits.
    pub elsewhere: u64,
}

/// How the search for the offset between two clocks began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlignmentStart {
    /// Both are one clock.
    SameClock,
    /// The run's recorder read the file's clock, or one near it.
    ClockReadings,
    /// Both state the time of day.
    TimeOfDay,
    /// Nothing: any offset at which stalls and records overlap counted.
    Everywhere,
}
