//! `record --events coarse` on this machine.

use crate::live;

use jitterscope_testing::{Neighbour, highest_cpu};
use live::{can_trace, jitterscope, json, stderr, turn};
use serde_json::Value;
use std::path::Path;

fn recorded(runs: &Path, args: &[&str]) -> Value {
    let cpu = highest_cpu().to_string();
    let args = [
        &["record", "-q", "-d", "1s", "--cpus", &cpu, "--json"],
        args,
    ]
    .concat();
    let output = jitterscope(runs, &args);
    assert!(output.status.success(), "{}", stderr(&output));
    json(&output)
}

fn source<'r>(report: &'r Value, name: &str) -> &'r Value {
    let sources = report["sources"].as_array().unwrap();
    sources
        .iter()
        .find(|source| source["name"] == name)
        .unwrap()
}

fn losses(source: &Value) -> Vec<&str> {
    source["losses"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

fn culprits(report: &Value) -> &[Value] {
    report["attribution"]["culprits"].as_array().unwrap()
}

#[test]
fn coarse_events_name_threads_and_report_what_they_omit() {
    // Before the check: another recording's mount disappears with it.
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let coarse = recorded(dir.path(), &["-l", "COARSE", "--events", "coarse"]);
    assert_eq!(coarse["probe"]["event_grain"], "coarse");
    let ticks: Vec<&Value> = culprits(&coarse)
        .iter()
        .filter(|row| row["kind"] == "timer")
        .collect();
    assert!(
        !ticks.is_empty(),
        "a tick in a second at least: {}",
        coarse["attribution"]
    );
    assert!(
        ticks.iter().all(|row| row["name"] == "local_timer"),
        "no function was recorded: {ticks:?}"
    );
    let worked = |row: &&Value| {
        row["kind"] == "kworker" && !row["name"].as_str().unwrap().contains("kworker")
    };
    assert_eq!(
        culprits(&coarse).iter().find(worked),
        None,
        "a work item is its worker's turn"
    );
    let price = &coarse["trust"]["price"]["events"];
    assert!(price["interrupts"].as_u64().unwrap() > 100, "{price}");
    assert_eq!(
        (&price["timers"], &price["work"]),
        (&Value::Null, &Value::Null),
        "{price}"
    );
    for (name, loss) in [
        ("tracefs", "hrtimer_functions"),
        ("tracefs", "work_items"),
        ("senders", "work_queuers"),
    ] {
        let source = source(&coarse, name);
        assert_eq!(source["status"], "degraded");
        assert!(losses(source).contains(&loss), "{source}");
        let problems = source["problems"].as_array().unwrap();
        let not_asked = serde_json::json!({"id": "events_not_asked", "grain": "coarse"});
        assert!(problems.contains(&not_asked), "{source}");
        assert!(
            source["fix"].as_str().unwrap().contains("--events all"),
            "{source}"
        );
    }
    for kept in [
        "switches",
        "vectors",
        "page_faults",
        "frequency_changes",
        "idle_states",
    ] {
        assert!(
            !losses(source(&coarse, "tracefs")).contains(&kept),
            "{kept}"
        );
    }

    let all = recorded(dir.path(), &["-l", "ALL"]);
    assert_eq!(all["probe"]["event_grain"], "all");
    assert!(all["trust"]["price"]["events"]["timers"].as_u64().unwrap() > 100);

    // The stored run gives the same report, its trace the same names, and it does not compare with the other.
    let again = json(&jitterscope(
        dir.path(),
        &["report", "COARSE", "--reattribute", "--json"],
    ));
    assert_eq!(again["probe"]["event_grain"], "coarse");
    let total = |report: &Value| {
        let timers = culprits(report).iter().filter(|row| row["kind"] == "timer");
        timers
            .map(|row| row["total_ns"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(total(&again), total(&coarse));
    let diff = json(&jitterscope(
        dir.path(),
        &["diff", "ALL", "COARSE", "--json"],
    ));
    let conditions = diff["against"][0]["conditions"].as_array().unwrap();
    assert!(
        conditions
            .iter()
            .any(|of| of["what"] == "kernel events" && of["incomparable"] == true),
        "{diff}"
    );
    // The full report explains it.
    let text = jitterscope(dir.path(), &["report", "COARSE", "--full"]);
    let text = String::from_utf8_lossy(&text.stdout)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        text.contains("not all events were recorded (--events coarse)"),
        "{text}"
    );
    assert!(!text.contains("this kernel lacks"), "{text}");
}

#[test]
fn a_sleeping_probe_and_a_watched_cpu_have_coarse_events_too() {
    // Before the check: another recording's mount disappears with it.
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    // A watched CPU needs an owner.
    let _neighbour = Neighbour::on(highest_cpu());
    for probe in ["wakeup", "none"] {
        let args = [
            "record", probe, "-q", "-d", "1s", "--cpus", &cpu, "--events", "coarse", "--json",
        ];
        let output = jitterscope(dir.path(), &args);
        assert!(output.status.success(), "{probe}: {}", stderr(&output));
        let report = json(&output);
        assert_eq!(report["probe"]["event_grain"], "coarse", "{probe}");
        assert!(
            losses(source(&report, "tracefs")).contains(&"hrtimer_functions"),
            "{probe}"
        );
        assert_eq!(
            report["trust"]["price"]["events"]["timers"],
            Value::Null,
            "{probe}"
        );
    }
}

#[test]
fn what_it_does_not_go_with_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (args, why) in [
        (
            &["record", "--events", "coarse", "--no-trace"][..],
            "--no-trace",
        ),
        (
            &["record", "--events", "coarse", "--graph", "culprit"],
            "leave one of the two out",
        ),
        (
            &["record", "--events", "fine"],
            "[possible values: all, coarse]",
        ),
        (&["attach", "--events", "coarse", "--pid", "1"], "--events"),
        (&["record", "pipeline", "--events", "coarse"], "--events"),
    ] {
        let output = jitterscope(dir.path(), args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(why),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}
