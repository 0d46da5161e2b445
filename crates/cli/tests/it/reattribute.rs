//! `report --reattribute`: for a real recording of each kind, with root and tracefs, and for the stored runs in the
//! source tree.

use crate::live;

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

pub fn fixtures(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of)
}

/// A report without verdicts. The stored runs are of an older version, whose verdicts differ in cases that
/// `recording/tests/verdicts.rs` lists with reasons. A run of this version is compared completely:
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
    // A period of the host's, or without a culprit, is a verdict on time that no record explains.
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

/// Recorded and attributed again by this program: the two reports are equal, except for the warning that says so.
#[test]
fn a_run_of_each_kind_says_again_all_that_it_said() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    // A passive recording needs owners of the CPU, and somebody who takes it from them: each other. Chosen by its share,
    // the owner might be a program that ends at once.
    let _neighbours = [Neighbour::on(highest_cpu()), Neighbour::on(highest_cpu())];
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
        &["record", "none", "--for", "sh", "-d", "1s"],
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

/// The differences of two documents.
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
fn a_run_that_does_not_say_how_it_was_set_up_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("spin");
    copy(&fixtures("recording/tests/fixtures/spin"), &run);
    let context = run.join("trace/context.json");
    let mut value: Value = serde_json::from_slice(&std::fs::read(&context).unwrap()).unwrap();
    value["setup"] = Value::Array(Vec::new());
    std::fs::write(&context, value.to_string()).unwrap();
    let refused = report(&run, &["--reattribute"]);
    assert_eq!(refused.status.code(), Some(1));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(
        why.contains("does not say how its recorder was set up"),
        "{why}"
    );
    let stored = report(&run, &[]);
    assert!(stored.status.success(), "as it is stored it can be read");
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
