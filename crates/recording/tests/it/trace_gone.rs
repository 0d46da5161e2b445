//! A run whose raw trace is not there says why.

use jitterscope_recording::{ReplayError, replay, stall_timeline};
use jitterscope_store::RunReader;
use std::fs;
use std::path::Path;

/// A run without its raw trace, whose details say what `change` makes of them.
fn without_trace(change: impl Fn(&mut serde_json::Value)) -> (tempfile::TempDir, RunReader) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/spin");
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
        }
    }
    let details = dir.path().join("details.json");
    let mut json = serde_json::from_slice(&fs::read(&details).unwrap()).unwrap();
    change(&mut json);
    fs::write(&details, json.to_string()).unwrap();
    let run = RunReader::open(dir.path()).unwrap();
    (dir, run)
}

/// Why neither a replay nor a timeline is possible.
fn why(run: &RunReader) -> ReplayError {
    let stall = run.stalls().unwrap().next().unwrap().unwrap();
    let of_one = stall_timeline(run, &stall).unwrap_err();
    let of_all = replay(run, &mut |_, _| {}).unwrap_err();
    assert_eq!(of_one.to_string(), of_all.to_string());
    of_one
}

#[test]
fn a_removed_trace_is_not_said_to_be_one_that_was_never_recorded() {
    let (_dir, run) = without_trace(|_| {});
    let error = why(&run);
    assert!(
        matches!(error, ReplayError::TraceRemoved { bytes: 337_092 }),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(
        text.contains("no longer in its folder") && text.contains("330 KiB"),
        "{text}"
    );
    assert!(!text.contains("--no-trace"), "{text}");
}

#[test]
fn a_trace_that_was_not_kept_says_how_to_keep_it() {
    let (_dir, run) = without_trace(|details| {
        details["trace"] = serde_json::json!({"bytes": 0, "complete": false, "limit_bytes": 0});
    });
    let error = why(&run);
    assert!(
        matches!(error, ReplayError::TraceNotKept { limit: 0 }),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(text.contains("larger --trace-limit"), "{text}");
}

#[test]
fn a_run_without_kernel_events_says_that() {
    let (_dir, run) = without_trace(|details| details["attributed"] = false.into());
    let error = why(&run);
    assert!(matches!(error, ReplayError::NoTrace), "{error:?}");
}
