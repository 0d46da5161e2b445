//! `record --event` on this machine.

use crate::live;

use jitterscope_testing::highest_cpu;
use live::{can_trace, jitterscope, json, stderr, turn};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// A tick arms the CPU's next one.
const ARMED: &str = "timer:hrtimer_start";

fn record(runs: &Path, events: &[&str]) -> Output {
    let cpu = highest_cpu().to_string();
    let mut args = vec!["record", "-q", "-d", "1s", "--cpus", &cpu, "--json"];
    for event in events {
        args.extend(["--event", event]);
    }
    jitterscope(runs, &args)
}

fn asked(report: &Value) -> Vec<(String, u64)> {
    let all = report["run"]["asked_events"].as_array().unwrap();
    let name = |event: &Value| {
        format!(
            "{}:{}",
            event["system"].as_str().unwrap(),
            event["event"].as_str().unwrap()
        )
    };
    all.iter()
        .map(|event| (name(event), event["records"].as_u64().unwrap()))
        .collect()
}

#[test]
fn an_asked_event_lies_within_the_frames_of_its_stall() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let output = record(dir.path(), &["irq:softirq_raise:vec==63", ARMED]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let asked = asked(&report);
    // No softirq has that number, so the filter lets none pass.
    assert_eq!(asked[0], ("irq:softirq_raise".to_owned(), 0));
    assert_eq!(asked[1].0, ARMED);
    assert!(asked[1].1 > 20, "a tick arms the next one: {asked:?}");
    let id = report["run"]["id"].as_str().unwrap();
    let armed = |rank: u32| {
        let stall = jitterscope(
            dir.path(),
            &["report", id, "--worst", &rank.to_string(), "--json"],
        );
        assert!(stall.status.success(), "{}", stderr(&stall));
        let frames = json(&stall)["frames"].as_array().unwrap().clone();
        frames.into_iter().find(|row| row["item"] == "asked")
    };
    let row = (1..20)
        .find_map(armed)
        .expect("a tick is among the worst stalls");
    assert_eq!(row["event"], ARMED);
    assert!(row["depth"].as_u64() > Some(0), "{row}");
    let fields = row["fields"].as_str().unwrap();
    assert!(
        fields.contains("hrtimer=") && fields.contains("expires="),
        "{fields}"
    );
    let full = jitterscope(dir.path(), &["report", id, "--full"]);
    let full = String::from_utf8(full.stdout).unwrap();
    assert!(
        full.contains("also recorded") && full.contains("with vec==63: 0 records"),
        "{full}"
    );
    let hidden = jitterscope(dir.path(), &["report", id, "--json", "--redact"]);
    let hidden = String::from_utf8(hidden.stdout).unwrap();
    assert!(
        !hidden.contains("hrtimer_start") && !hidden.contains("vec=="),
        "{hidden}"
    );
}

#[test]
fn an_event_that_cannot_be_recorded_is_refused_before_the_measurement() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (events, reason) in [
        (
            &["timer:hrtimer_strat"][..],
            "do you mean timer:hrtimer_start?",
        ),
        (
            &["sched:sched_switch"],
            "recordings have sched:sched_switch already",
        ),
        (&[ARMED, ARMED], "stands there twice"),
        (
            &["timer:hrtimer_start:expires>>3"],
            "the event's fields: hrtimer, function",
        ),
        (&["timer:hrtimer_start:late==1"], "Field not found"),
        (&["timer"], "an event is SYSTEM:EVENT"),
    ] {
        let refused = record(dir.path(), events);
        assert_eq!(refused.status.code(), Some(2), "{events:?}");
        let text = stderr(&refused);
        assert!(text.contains(reason), "{events:?}: {text}");
    }
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "a run was made"
    );
}
