//! Removing stored runs.

#[allow(dead_code, reason = "shared with tests that trace")]
use crate::live;

use live::{jitterscope, json, stderr, turn};
use serde_json::Value;
use std::path::Path;

fn record(runs: &Path, label: &str) {
    let args = [
        "record",
        "--duration",
        "50ms",
        "--warmup",
        "10ms",
        "--no-trace",
        "--quiet",
        "--label",
        label,
    ];
    let output = jitterscope(runs, &args);
    assert!(output.status.success(), "{}", stderr(&output));
}

fn labels(runs: &Path) -> Vec<String> {
    let list = json(&jitterscope(runs, &["list", "--json"]));
    let labels = list["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["label"].as_str().unwrap().to_owned());
    labels.collect()
}

#[test]
fn runs_are_removed_by_name_and_by_age_and_only_with_consent() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    for label in ["A", "A", "B", "C"] {
        record(dir.path(), label);
    }
    let of = |args: &[&str]| jitterscope(dir.path(), &[&["runs"][..], args].concat());

    // There is no terminal to ask on.
    let refused = of(&["prune", "--keep", "1"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("--yes"));
    let would: Value = json(&of(&["prune", "--keep", "1", "--dry-run", "--json"]));
    assert_eq!(would["runs"].as_array().unwrap().len(), 3);
    assert!(would["runs"][0]["bytes"].as_u64().unwrap() > 1000);
    assert_eq!(
        labels(dir.path()),
        ["A", "A", "B", "C"],
        "nothing was removed so far"
    );

    let several = of(&["rm", "A", "--yes"]);
    assert_eq!(several.status.code(), Some(2));
    assert!(
        stderr(&several).contains("2 runs have the label 'A'"),
        "{}",
        stderr(&several)
    );
    assert!(of(&["rm", "B", "--yes"]).status.success());
    assert_eq!(labels(dir.path()), ["A", "A", "C"]);
    assert!(of(&["prune", "--older", "1h", "--yes"]).status.success());
    assert_eq!(labels(dir.path()), ["A", "A", "C"], "all are young");
    let done = json(&of(&[
        "prune", "--keep", "1", "--label", "A", "--yes", "--json",
    ]));
    assert_eq!(done["runs"][0]["removed"], true);
    assert_eq!(labels(dir.path()), ["A", "C"]);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        2,
        "the folders are gone"
    );
}

#[test]
fn the_newest_run_has_a_name_of_its_own() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let output = jitterscope(
        dir.path(),
        &["record", "--duration", "50ms", "--label", "latest"],
    );
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("the newest run"),
        "{}",
        stderr(&output)
    );
}
