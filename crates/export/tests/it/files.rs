//! Exported files against the known content of the run.

use crate::common;

use common::{EPOCH, INTERVALS, STALLS_AN_INTERVAL};
use jitterscope_export::{Destination, export_run};
use serde_json::Value;
use std::fs;

#[test]
fn csv_has_each_stall_and_each_interval() {
    let dir = tempfile::tempdir().unwrap();
    let run = common::run(dir.path());
    let (stalls, intervals) = (dir.path().join("s.csv"), dir.path().join("i.csv"));
    let targets: Vec<Destination> = [
        format!("csv://{}", stalls.display()),
        format!("csv://{}?rows=intervals", intervals.display()),
    ]
    .iter()
    .map(|text| text.parse().unwrap())
    .collect();
    let delivered = export_run(&run, &targets).unwrap();
    assert_eq!(delivered[0].delivered, 2 * INTERVALS * STALLS_AN_INTERVAL);
    assert_eq!(delivered[1].delivered, 2 * INTERVALS);
    let text = fs::read_to_string(&stalls).unwrap();
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(
            "start_ns,duration_ns,cpu,tid,comm,stall_id,start_ticks,end_ticks,explained_ns,culprit_kind,culprit,culprit_ns,culprit_tid,culprit_tgid,culprit_comm,culprit_class,culprit_priority,culprit_uid,culprit_cgroup,culprit_function,culprit_workqueue,culprit_irq,phase,moved_from_cpu"
        )
    );
    assert_eq!(
        lines.next(),
        Some(
            format!(
                "{},1000,0,40,\"js-spin, \"\"x\"\"\",0,1000017,1001017,700,timer,tick_sched_timer,700,,,,,,,,tick_sched_timer,,,,",
                EPOCH + 17
            )
            .as_str()
        )
    );
    assert_eq!(lines.count() as u64, 2 * INTERVALS * STALLS_AN_INTERVAL - 1);
    let text = fs::read_to_string(&intervals).unwrap();
    let first = text.lines().nth(1).unwrap();
    // CPU 0 has the even numbers up to 98: the longest stall is 1000 + 98 * 98 * 7.
    assert_eq!(
        first,
        format!(
            "{},68228,0,{EPOCH},50,{}",
            EPOCH + 1_000_000_000,
            stolen_by_even(98)
        )
    );
}

fn stolen_by_even(last: u64) -> u64 {
    (0..=last).step_by(2).map(|n| 1000 + n * n * 7).sum()
}

#[test]
fn json_lines_hold_the_run_its_rows_and_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let run = common::run(dir.path());
    let path = dir.path().join("run.jsonl");
    export_run(
        &run,
        &[format!("json://{}", path.display()).parse().unwrap()],
    )
    .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (rows[0]["type"].as_str(), rows[0]["host"].as_str()),
        (Some("run"), Some("box"))
    );
    let stalls: Vec<&Value> = rows.iter().filter(|row| row["type"] == "stall").collect();
    assert_eq!(stalls.len() as u64, 2 * INTERVALS * STALLS_AN_INTERVAL);
    assert_eq!(stalls[0]["parts"][0]["name"], "tick_sched_timer");
    assert_eq!(
        rows.iter().filter(|row| row["type"] == "interval").count() as u64,
        2 * INTERVALS
    );
    assert_eq!(rows.last().unwrap()["type"], "end");
}

#[test]
fn a_target_that_cannot_be_opened_leaves_the_others_unwritten() {
    let dir = tempfile::tempdir().unwrap();
    let run = common::run(dir.path());
    let good = dir.path().join("good.csv");
    let targets = [
        format!("csv://{}", good.display()).parse().unwrap(),
        "json:///nonexistent/x".parse().unwrap(),
    ];
    let error = export_run(&run, &targets).unwrap_err().to_string();
    assert!(error.contains("/nonexistent"), "{error}");
    assert!(!good.exists());
}

#[test]
fn parquet_tables_are_the_stores_own() {
    let dir = tempfile::tempdir().unwrap();
    let run = common::run(dir.path());
    let folder = dir.path().join("tables");
    export_run(
        &run,
        &[format!("parquet://{}", folder.display()).parse().unwrap()],
    )
    .unwrap();
    for (name, _) in jitterscope_store::SCHEMA {
        assert_eq!(
            fs::read(folder.join(name)).unwrap(),
            fs::read(run.path().join(name)).unwrap()
        );
    }
}
