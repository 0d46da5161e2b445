//! README's example: the report of a stored run beside this test, without its raw trace.

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

/// The folder of a copy of the run.
pub fn copied(runs: &Path) -> PathBuf {
    let kept = std::fs::read_dir(here().join("tests/readme"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let copy = runs.join(kept.file_name());
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(kept.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    copy
}

#[test]
fn readme_shows_what_a_report_prints() {
    let dir = tempfile::tempdir().unwrap();
    copied(dir.path());
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
