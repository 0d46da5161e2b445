//! README's example: the report of a stored run beside this test. `shown.rs` uses the other runs there. Most are without
//! their raw traces.

use std::path::{Path, PathBuf};
use std::process::Command;

pub const RUN: &str = "c8z5j8";

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The first block of output in README.
fn shown() -> Vec<String> {
    let readme = std::fs::read_to_string(here().join("../../README.md")).unwrap();
    let (_, rest) = readme.split_once("```text\n").unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    block.lines().map(str::to_owned).collect()
}

/// The report of the run, from a copy of its folder, because a checkout may have another owner.
fn printed(runs: &Path) -> Vec<String> {
    let report = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .args(["report", RUN])
        .env("JITTERSCOPE_RUNS", runs)
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    assert!(
        report.status.success(),
        "{}",
        String::from_utf8_lossy(&report.stderr)
    );
    String::from_utf8(report.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The folder of a copy of a run that the documents show.
pub fn copied(runs: &Path, id: &str) -> PathBuf {
    let kept = std::fs::read_dir(here().join("tests/readme"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .find(|entry| entry.file_name().to_string_lossy().ends_with(id))
        .unwrap_or_else(|| panic!("tests/readme has no run {id}"));
    let copy = runs.join(kept.file_name());
    copy_folder(&kept.path(), &copy);
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = entry
            .map(|entry| (entry.path(), to.join(entry.file_name())))
            .unwrap();
        if from.is_dir() {
            copy_folder(&from, &to);
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}

#[test]
fn readme_shows_what_a_report_prints() {
    let dir = tempfile::tempdir().unwrap();
    copied(dir.path(), RUN);
    let (shown, printed) = (shown(), printed(dir.path()));
    // The advice depends on the machine that reads the run.
    let advice = format!("      jitterscope tune plan --run {RUN} ");
    let of_any_machine = |lines: &[String]| -> Vec<String> {
        lines
            .iter()
            .filter(|line| !line.starts_with(&advice))
            .map(|line| line.trim_end().to_owned())
            .collect()
    };
    assert_eq!(of_any_machine(&shown), of_any_machine(&printed));
    assert!(
        shown.iter().any(|line| line.starts_with(&advice)),
        "{shown:?}"
    );
}
