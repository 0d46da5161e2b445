//! The exit codes of experiments. They need root and tracefs, and print a note when they are skipped.

use crate::experiments;

use experiments::{can_experiment, run, stderr};
use jitterscope_testing::turn;
use std::fs;

#[test]
fn conditions_decide_the_exit_code_of_an_experiment() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [junit, page] = ["gates.xml", "page.md"].map(|name| dir.path().join(name));
    let slow = ["--env", "SLOW=0.3", "--", "sh", "-c", "sleep ${SLOW:-0.05}"];
    let args = [
        &[
            "experiment",
            "-q",
            "--fail-if",
            "worse(total), worse(culprit nobody)",
            "--junit",
            junit.to_str().unwrap(),
            "--markdown",
            page.to_str().unwrap(),
        ],
        &slow[..],
    ];
    let output = run(dir.path(), &args.concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let worse = said
        .lines()
        .find(|line| line.contains("worse(total)"))
        .unwrap();
    for wanted in ["wall time", " interval ", ", p ", "worse, exceeded"] {
        assert!(worse.contains(wanted), "{wanted}: {said}");
    }
    let suite = fs::read_to_string(junit).unwrap();
    assert!(
        suite.contains(r#"failures="1""#) && suite.contains("<failure"),
        "{suite}"
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("| **FAILED** |") && page.contains("\n#### Experiment\n"),
        "{page}"
    );
}

#[test]
fn an_experiment_whose_pairs_are_all_void_does_not_succeed() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let fails = ["--env", "FAIL=1", "--", "sh", "-c", "test -z \"$FAIL\""];
    for conditions in [&[][..], &["--fail-if", "worse(total)"]] {
        let args = [&["experiment", "-q"], conditions, &fails].concat();
        let output = run(dir.path(), &args);
        assert_eq!(
            output.status.code(),
            Some(4),
            "{conditions:?} {}",
            stderr(&output)
        );
    }
}
