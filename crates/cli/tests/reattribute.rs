//! `report --reattribute`: of a run of each kind that is recorded for real, where root and tracefs are to be had,
//! and of the older runs that are stored with the sources.

mod live;

use jitterscope_testing::{Neighbour, highest_cpu};
use live::{can_trace, jitterscope, stderr, turn};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn report(run: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .arg("report")
        .arg(run)
        .args(args)
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn fixtures(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of)
}

/// What a report says besides verdicts. The stored runs are of an older version, whose verdicts differ in
/// cases that `recording/tests/verdicts.rs` lists with their reasons. Of a run of this version nothing is left out:
/// [`a_run_of_each_kind_says_again_all_that_it_said`].
fn but_verdicts(mut report: Value) -> Value {
    let sum = |rows: &Value| -> u64 {
        rows.as_array()
            .into_iter()
            .flatten()
            .filter_map(|row| row["total_ns"].as_u64())
            .sum()
    };
    let attribution = report["attribution"].take();
    let unexplained = attribution["unexplained"]["total_ns"].as_u64().unwrap();
    report["attributed_ns"] = (sum(&attribution["culprits"]) + unexplained).into();
    for field in ["warnings", "threads"] {
        report[field].take();
    }
    if report["pipeline"].is_object() {
        report["pipeline"]["blame"].take();
    }
    // A period of the host's, or without a culprit, is one of the verdicts on what no record explains.
    if let Some(rows) = report["periods"]["rows"].as_array_mut() {
        rows.retain(|row| row["kind"] != "hypervisor" && row["kind"] != "unresolved");
    }
    for worst in report["worst"].as_array_mut().into_iter().flatten() {
        let parts = worst["parts"].take();
        let net = parts
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|part| part["net_ns"].as_u64());
        worst["parts_ns"] = net.sum::<u64>().into();
    }
    report
}

#[test]
fn what_is_attributed_again_reports_as_it_did_and_says_so() {
    for kind in ["spin", "wakeup", "attach", "pipeline"] {
        let run = fixtures("recording/tests/fixtures").join(kind);
        let (before, again) = (
            json(&report(&run, &["--json"])),
            json(&report(&run, &["--json", "--reattribute"])),
        );
        let warnings = again["warnings"].clone();
        assert_eq!(but_verdicts(before), but_verdicts(again), "{kind}");
        let ids: Vec<&str> = warnings
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|w| w["id"].as_str())
            .collect();
        assert!(
            ids.contains(&"attributed-again") && !ids.contains(&"verdicts-kept"),
            "{ids:?}"
        );
    }
}

/// Recorded by this program and attributed again by it: the two reports are one, but for the warning that says so.
#[test]
fn a_run_of_each_kind_says_again_all_that_it_said() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    // A passive recording needs somebody whose work belongs on the CPU.
    let _neighbour = Neighbour::on(highest_cpu());
    let busy = "n=0; while [ $n -lt 200 ]; do sleep 0.004; n=$((n+1)); done";
    let recordings: [&[&str]; 5] = [
        &["record", "-d", "1s"],
        &["record", "wakeup", "-d", "1s"],
        &[
            "record",
            "pipeline",
            "--force",
            "--warmup",
            "50ms",
            "--period",
            "50us",
            "--messages",
            "20000",
        ],
        &["record", "--probe", "none", "-d", "1s"],
        &["attach", "--", "sh", "-c", busy],
    ];
    for args in recordings {
        let runs = tempfile::tempdir().unwrap();
        let recorded = jitterscope(runs.path(), args);
        assert!(recorded.status.success(), "{args:?}: {}", stderr(&recorded));
        let report = |more: &[&str]| {
            let args = [&["report", "latest", "--json"], more].concat();
            live::json(&jitterscope(runs.path(), &args))
        };
        let (before, mut again) = (report(&[]), report(&["--reattribute"]));
        let listed = again["warnings"].as_array_mut().unwrap();
        let all = listed.len();
        listed.retain(|warning| warning["id"] != "attributed-again");
        assert_eq!(all - listed.len(), 1, "{args:?}: it says so");
        assert!(
            before["attribution"]["culprits"]
                .as_array()
                .is_some_and(|all| !all.is_empty()),
            "{args:?}"
        );
        let differing = differences(&before, &again, "");
        assert!(differing.is_empty(), "{args:?}:\n{}", differing.join("\n"));
    }
}

/// Where two documents differ.
fn differences(one: &Value, other: &Value, at: &str) -> Vec<String> {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            names
                .into_iter()
                .flat_map(|name| differences(&one[name], &other[name], &format!("{at}.{name}")))
                .collect()
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs
                .flat_map(|(n, (a, b))| differences(a, b, &format!("{at}[{n}]")))
                .collect()
        }
        _ if one == other => Vec::new(),
        _ => vec![format!("{at}: {one} before, {other} again")],
    }
}

#[test]
fn a_run_without_enough_trace_is_refused_with_the_reason() {
    let run = fixtures("store/tests/fixtures/format-1/attach");
    let refused = report(&run, &["--reattribute"]);
    assert_eq!(refused.status.code(), Some(1));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(
        why.contains("did not keep what redoing a run of 'attach' needs"),
        "{why}"
    );
    assert!(
        report(&run, &[]).status.success(),
        "as it is stored it can be read"
    );
}
