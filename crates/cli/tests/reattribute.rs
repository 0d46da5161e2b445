//! `report --reattribute` on runs that are stored with the sources: no privilege is needed.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn report(run: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitterscope")).arg("report").arg(run).args(args).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn fixtures(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of)
}

/// What a report says besides verdicts. The stored runs are of an older version, whose verdicts differ in
/// cases that `recording/tests/verdicts.rs` lists with their reasons; that live equals replay within a version is
/// held by `recording/tests/replay.rs`.
fn but_verdicts(mut report: Value) -> Value {
    let sum = |rows: &Value| -> u64 {
        rows.as_array().into_iter().flatten().filter_map(|row| row["total_ns"].as_u64()).sum()
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
    // A period of the host's, or of nobody's, is one of the verdicts on what no record explains.
    if let Some(rows) = report["periods"]["rows"].as_array_mut() {
        rows.retain(|row| row["kind"] != "hypervisor" && row["kind"] != "unresolved");
    }
    for worst in report["worst"].as_array_mut().into_iter().flatten() {
        let parts = worst["parts"].take();
        let net = parts.as_array().into_iter().flatten().filter_map(|part| part["net_ns"].as_u64());
        worst["parts_ns"] = net.sum::<u64>().into();
    }
    report
}

#[test]
fn what_is_attributed_again_reports_as_it_did_and_says_so() {
    for kind in ["spin", "wakeup", "attach", "pipeline"] {
        let run = fixtures("recording/tests/fixtures").join(kind);
        let (before, again) =
            (json(&report(&run, &["--json"])), json(&report(&run, &["--json", "--reattribute"])));
        let warnings = again["warnings"].clone();
        assert_eq!(but_verdicts(before), but_verdicts(again), "{kind}");
        let ids: Vec<&str> = warnings.as_array().unwrap().iter().filter_map(|w| w["id"].as_str()).collect();
        assert!(ids.contains(&"attributed-again") && !ids.contains(&"verdicts-kept"), "{ids:?}");
    }
}

#[test]
fn a_run_without_enough_trace_is_refused_with_the_reason() {
    let run = fixtures("store/tests/fixtures/format-1/attach");
    let refused = report(&run, &["--reattribute"]);
    assert_eq!(refused.status.code(), Some(1));
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(why.contains("did not keep what redoing a run of 'attach' needs"), "{why}");
    assert!(report(&run, &[]).status.success(), "as it is stored it can be read");
}
