//! The choice of clock and threshold in all recordings.

use crate::live;

use live::{jitterscope, json, stderr, turn};
use serde_json::Value;
use std::path::Path;

fn help(command: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let output = jitterscope(dir.path(), &[command, &["--help"]].concat());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_that_records_takes_both() {
    for command in [
        "record",
        "record wakeup",
        "record pipeline",
        "attach",
        "selftest",
        "experiment",
        "sljtest",
        "sampler",
    ] {
        let printed = help(&command.split(' ').collect::<Vec<_>>());
        for option in ["--clock <", "--threshold <"] {
            assert!(printed.contains(option), "{command} has no {option}");
        }
    }
}

/// Records with the slower clock, and returns the report.
fn by_the_slow_clock(runs: &Path, args: &[&str]) -> Value {
    let more = ["--clock", "monotonic-raw", "--json", "-q"];
    let output = jitterscope(runs, &[args, &more].concat());
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    let report = json(&output);
    assert_eq!(report["probe"]["clock"], "monotonic_raw", "{args:?}");
    assert!(stderr(&output).is_empty(), "{args:?}: {}", stderr(&output));
    report
}

#[test]
fn recordings_read_the_clock_that_is_asked_for() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path();
    let spin = by_the_slow_clock(runs, &["record", "-d", "1s"]);
    let costs = &spin["probe"]["clock_costs"];
    let threshold = spin["probe"]["threshold_ns"].as_u64().unwrap();
    // The default follows from the cost of this clock and of storing a stall.
    assert_eq!(costs["decide_threshold"], true, "{costs:#}");
    assert!(
        threshold >= costs["store_ns"].as_u64().unwrap(),
        "{threshold}: {costs:#}"
    );
    let asked = by_the_slow_clock(runs, &["record", "-d", "1s", "--threshold", "7us"]);
    assert_eq!(asked["probe"]["threshold_ns"], 7000);
    assert_eq!(asked["probe"]["clock_costs"]["decide_threshold"], false);
    by_the_slow_clock(runs, &["record", "wakeup", "-d", "1s"]);
    let pipeline = [
        "record",
        "pipeline",
        "--two-thread",
        "--force",
        "--messages",
        "2000",
        "--pause",
        "10ms",
    ];
    by_the_slow_clock(runs, &pipeline);
    if live::can_trace() {
        let pid = std::process::id().to_string();
        by_the_slow_clock(runs, &["attach", "--pid", &pid, "-d", "1s"]);
        by_the_slow_clock(runs, &["record", "none", "--for", &pid, "-d", "1s"]);
    }
    let dry = [
        "experiment",
        "--knob",
        "vmstat",
        "--dry-run",
        "--clock",
        "monotonic-raw",
    ];
    let printed = jitterscope(runs, &dry);
    let printed = String::from_utf8(printed.stdout).unwrap();
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("by CLOCK_MONOTONIC_RAW;"), "{printed}");
}
