//! What a package and an issue hold: manual pages, and doctor's findings without names.

use crate::live::{jitterscope, json, stderr, turn};
use crate::schema_check::conforms;
use serde_json::Value;

#[test]
fn each_command_has_a_manual_page_with_its_options() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man");
    let output = jitterscope(dir.path(), &["manual", pages.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    assert!(page("jitterscope.1").contains("jitterscope\\-record"));
    assert!(page("jitterscope-tune-apply.1").contains("\\-\\-persist"));
    // A table of notes keeps its columns.
    assert!(page("jitterscope-export.1").contains(".nf\n"));
}

#[test]
fn doctor_tells_others_no_path_of_this_machine() {
    // It mounts tracefs.
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("ZqMk-state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("journal.jsonl"), "ZqMk is no journal\n").unwrap();
    let doctor = |more: &[&str]| {
        let args = ["doctor", "--state-dir", state.to_str().unwrap()];
        jitterscope(dir.path(), &[&args[..], more].concat())
    };
    let whole = doctor(&["--json"]);
    let shown = String::from_utf8_lossy(&whole.stdout).into_owned();
    assert!(shown.contains("ZqMk"), "else nothing was tried: {shown}");
    for more in [&["--redact"][..], &["--redact", "--json"]] {
        let output = doctor(more);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!shown.contains("ZqMk"), "{shown}");
        assert!(shown.contains("left out"), "{shown}");
    }
    let redacted = json(&doctor(&["--redact", "--json"]));
    conforms("doctor", &redacted);
    let whole = json(&whole);
    let count = |of: &Value, list: &str| of[list].as_array().unwrap().len();
    assert_eq!(count(&redacted, "failed"), count(&whole, "failed"));
    assert_eq!(redacted["sources"][0]["name"], whole["sources"][0]["name"]);
}
