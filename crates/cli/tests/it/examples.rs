//! The crates' examples, as programs of other people: what they make of a run.

use crate::live::{jitterscope, program, stderr};
use crate::readme;
use std::process::Command;

#[test]
fn an_example_decodes_the_pages_of_an_exported_trace() {
    let example = program().parent().unwrap().join("examples/decode_pages");
    if !example.exists() {
        jitterscope_testing::skip("decode_pages is not built; cargo test --workspace builds it");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    readme::copied(&runs, "b5k6h2");
    let file = dir.path().join("trace.dat");
    let to = format!("tracedat://{}", file.display());
    let exported = jitterscope(&runs, &["export", "latest", "--to", &to]);
    assert!(exported.status.success(), "{}", stderr(&exported));
    let decoded = Command::new(&example).arg(&file).output().unwrap();
    assert!(decoded.status.success(), "{}", stderr(&decoded));
    let text = String::from_utf8(decoded.stdout).unwrap();
    // The probe had the measured CPU most of the time.
    let after = text.split("CPU 1 ").nth(1).unwrap_or_default();
    let most = after.lines().nth(1).unwrap_or_default();
    assert!(most.contains("js-spin/1"), "{text}");
    assert!(text.contains("events, 0 lost"), "{text}");
    let refused = Command::new(&example).arg(&example).output().unwrap();
    assert!(!refused.status.success(), "it took a program for a trace");
}
