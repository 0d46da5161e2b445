//! A small run.
#![allow(dead_code, reason = "each test file uses a part of it")]

use jitterscope_model::*;
use jitterscope_store::{Remains, RunWriter, StoreError, killed_runs};
use std::path::Path;

pub const EPOCH: u64 = 1_795_213_189_826_000_000;

fn clock() -> ClockReading {
    ClockReading {
        ticks: Ticks(1_000),
        monotonic_raw_ns: 1,
        realtime_ns: EPOCH,
        boottime_ns: None,
        width_ticks: 10,
    }
}

pub fn manifest() -> RunManifest {
    let text = format!(
        r#"{{"schema_version": {1}, "tool_version": "test", "id": "", "label": "L", "command_line": [],
        "host": {{"hostname": "h", "kernel_release": "", "kernel_version": "", "arch": "", "cpu_model": "",
          "cmdline": "", "online": "0-1", "isolated": "", "nohz_full": "", "hypervisor": null}},
        "clock": "monotonic_raw", "rate": {{"hz": 1000000000, "error_ppb": 0, "source": "exact"}},
        "clock_start": {0}, "clock_end": {0},
        "probe": {{"kind": "spin", "cpus": "1", "cpus_chosen_because": null, "duration_ns": 1, "warmup_ns": 0,
          "threshold_ns": 300, "interval_ns": 1, "fifo_priority": null}},
        "results": [], "attributed": true, "sources": [], "counters": [],
        "events_in_gaps": {{"events": 0, "inside": 0, "control_events": 0, "control_inside": 0}},
        "self_noise": {{"helper_cpus": "", "helper_cpu_ns": 0, "peak_rss_bytes": 0, "entry_cost_ns": 0,
          "exit_cost_ns": 0, "cost_samples": 0}},
        "trace": {{"bytes": 0, "complete": true, "limit_bytes": 0}}, "interrupted": false, "warnings": [],
        "a_field_of_a_later_version": [1, 2, 3]}}"#,
        r#"{"ticks": 1000, "monotonic_raw_ns": 1, "realtime_ns": 1795213189826000000, "width_ticks": 10}"#,
        SCHEMA_VERSION
    );
    // Unknown fields, as a later version may add, are ignored.
    serde_json::from_str(&text).unwrap()
}

pub fn writer(runs: &Path) -> RunWriter {
    let mut writer = RunWriter::create(runs, "L", EPOCH).unwrap();
    writer.begin(clock(), TickRate::NANOSECONDS).unwrap();
    writer
}

/// Removes what killed recorders left, none of which has a row. Returns how many folders went, and how many could not.
pub fn clean(runs: &Path) -> Result<(usize, usize), StoreError> {
    let (killed, failed) = killed_runs(runs)?;
    let removed = killed.len();
    for run in killed {
        assert!(matches!(run.rows(), Ok(Remains::Nothing)));
        run.remove()?;
    }
    Ok((removed, failed.len()))
}

pub fn stall(id: u64, start: u64, length: u64, comm: &str) -> Stall {
    let victim = ThreadRef {
        tid: 7,
        comm: Comm::new(comm),
    };
    let (start, end) = (Ticks(start), Ticks(start + length));
    Stall {
        id: StallId(id),
        cpu: CpuId(1),
        victim,
        start,
        end,
    }
}
