//! Refusals and estimates of `experiment`, and `--auto`. Tests that measure need root and tracefs, and print a note
//! when they are skipped.

use crate::experiments;
use crate::schema_check;

use experiments::{STAT_INTERVAL, can_experiment, command, interrupt, run, said, stderr};
use jitterscope_testing::{Neighbour, highest_cpu, turn};
use schema_check::conforms;
use serde_json::Value;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    for (args, said) in [
        (&["experiment"][..], "--knob"),
        (&["experiment", "--apply", "true"], "--revert"),
        (&["experiment", "--env", "X=1"], "COMMAND"),
        (&["experiment", "--env", "X", "--", "true"], "NAME=VALUE"),
        (
            &[
                "experiment",
                "--apply",
                "true",
                "--revert",
                "true",
                "--pairs",
                "7",
            ],
            "8 pairs",
        ),
        (
            &[
                "experiment",
                "--apply",
                "true",
                "--revert",
                "true",
                "--knob",
                "vmstat",
            ],
            "cannot be used with",
        ),
        (
            &[
                "experiment",
                "--apply",
                "true",
                "--revert",
                "true",
                "--resume",
            ],
            "no such experiment",
        ),
        (
            &["experiment", "--knob", "vmstat", "--applied-when", "true"],
            "--apply",
        ),
        (
            &["experiment", "--knob", "vmstat", "--settles-in", "1s"],
            "--apply",
        ),
        (
            &["experiment", "--knob", "vmstat", "--removes", "x"],
            "cannot be used with",
        ),
        (
            &[
                "experiment",
                "--apply",
                "true",
                "--revert",
                "true",
                "--removes",
                "kwroker",
            ],
            "\"kworker\"",
        ),
        (
            &[
                "experiment",
                "--apply",
                "true",
                "--revert",
                "true",
                "--probe",
                "none",
            ],
            "with --for",
        ),
        (
            &[
                "experiment",
                "--apply",
                "true",
                "--revert",
                "true",
                "--for",
                "x",
            ],
            "--probe none",
        ),
        (
            &["experiment", "--knob", "vmstat", "--probe", "pipeline"],
            "--cpus where its threads run",
        ),
        (
            &[
                "experiment",
                "--apply",
                "true",
                "--revert",
                "true",
                "--probe",
                "pipeline",
                "--cpus",
                "0",
            ],
            "two CPUs",
        ),
    ] {
        let output = run(dir.path(), args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(said),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_dry_run_says_the_time_and_what_could_be_found() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "experiment",
        "--apply",
        "touch x",
        "--revert",
        "rm x",
        "-d",
        "10s",
        "--dry-run",
        "--quiet",
    ];
    let output = run(dir.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = one_line(&String::from_utf8(output.stdout).unwrap());
    for said in [
        "8 pairs",
        "up to 16 pairs",
        "four times in five",
        "no earlier run",
        "more (a",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("predicted"), "{text}");
    let named = run(dir.path(), &[&args[..], &["--removes", "kworker"]].concat());
    assert!(
        one_line(&String::from_utf8(named.stdout).unwrap())
            .contains("A predicted culprit that disappears")
    );
    assert!(!dir.path().join("runs/experiments").exists());
    if can_experiment() {
        assert!(text.contains("as a trial run just did"), "{text}");
        let left: Vec<_> = std::fs::read_dir(dir.path().join("runs"))
            .unwrap()
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Runs of another length or threshold do not predict the planned ones.
#[test]
fn a_dry_run_knows_the_scatter_by_runs_of_the_same_setting_only() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let record = |label: &str, length: &str, threshold: &str| {
        let asked = [
            "record",
            "-q",
            "--cpus",
            &cpu,
            "--label",
            label,
            "-d",
            length,
            "--threshold",
            threshold,
        ];
        let made = run(dir.path(), &asked);
        assert!(made.status.success(), "{}", stderr(&made));
    };
    let known = |more: &[&str]| {
        let asked = [
            "experiment",
            "--apply",
            "true",
            "--revert",
            "true",
            "--dry-run",
            "-q",
            "--json",
        ];
        let output = run(dir.path(), &[&asked[..], &["--cpus", &cpu], more].concat());
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        conforms("experiment-estimate", &printed);
        printed["known_from"].as_u64().unwrap()
    };
    for _ in 0..3 {
        record("same", "300ms", "300ns");
    }
    // Newer runs with the same label: they neither count nor hide the older ones.
    record("same", "600ms", "300ns");
    record("same", "300ms", "5us");
    assert_eq!(known(&["-d", "300ms"]), 3);
    assert_eq!(known(&["-d", "310ms"]), 3, "about as long");
    assert_eq!(known(&["-d", "8s"]), 0);
    assert_eq!(known(&["-d", "300ms", "--threshold", "1us"]), 0);
    assert_eq!(known(&["-d", "1s", "--probe", "wakeup"]), 0);
    // A newer label is another setting, of which one run is too few.
    record("other", "300ms", "300ns");
    assert_eq!(known(&["-d", "300ms"]), 0);
}

/// The duration of a command is known only after it has run once.
#[test]
fn a_dry_run_of_a_command_says_its_time_by_an_earlier_run_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let asked = ["experiment", "--env", "X=1", "--dry-run", "-q"];
    let unknown = run(dir.path(), &[&asked[..], &["--", "sleep", "0.3"]].concat());
    let printed = String::from_utf8(unknown.stdout).unwrap();
    assert!(
        printed.contains("length is unknown") && one_line(&printed).contains("attach -- COMMAND"),
        "{printed}"
    );
    assert!(
        one_line(&printed).contains("8 pairs of runs, each in random order; up to 16"),
        "{printed}"
    );
    let wrong = run(
        dir.path(),
        &[&asked[..], &["-d", "3s", "--", "sleep", "0.3"]].concat(),
    );
    assert_eq!(wrong.status.code(), Some(2));
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let made = run(dir.path(), &["attach", "-q", "--", "sleep", "0.3"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let known = run(
        dir.path(),
        &[&asked[..], &["--json", "--", "sleep", "0.3"]].concat(),
    );
    let printed: Value = serde_json::from_slice(&known.stdout).unwrap();
    conforms("experiment-estimate", &printed);
    let each = printed["run_ns"].as_u64().unwrap();
    assert!(each >= 300_000_000, "{printed}");
    assert!(
        printed["takes_ns"][0].as_u64().unwrap() >= 16 * each,
        "{printed}"
    );
    let other = run(
        dir.path(),
        &[&asked[..], &["--json", "--", "sleep", "0.4"]].concat(),
    );
    let printed: Value = serde_json::from_slice(&other.stdout).unwrap();
    assert_eq!(
        (&printed["run_ns"], &printed["takes_ns"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn a_slow_undo_command_is_not_interleaved_and_reported_first() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "experiment",
        "--apply",
        "true",
        "--revert",
        "true",
        "--settles-in",
        "3m",
        "--dry-run",
        "-q",
    ];
    let printed = |more: &[&str]| {
        String::from_utf8(run(dir.path(), &[&args[..], more].concat()).stdout).unwrap()
    };
    assert!(printed(&[]).contains("not interleaved"), "{}", printed(&[]));
    let interleaved = printed(&["--longest-wait", "4m", "--removes", "kworker"]);
    assert!(
        !interleaved.contains("not interleaved") && interleaved.contains("up to 3 min"),
        "{interleaved}"
    );
    assert!(interleaved.contains("removes kworker"), "{interleaved}");
    // It would continue from such runs, and there are none.
    let args = [
        "experiment",
        "--apply",
        "true",
        "--revert",
        "true",
        "--settles-in",
        "3m",
        "--resume",
        "-q",
    ];
    let output = run(dir.path(), &args);
    assert_eq!(output.status.code(), Some(2));
    let printed = stderr(&output);
    assert!(
        printed.contains("no such experiment") && printed.contains("not interleaved"),
        "{printed}"
    );
}

/// Lists the candidates, the steps and their time.
#[test]
fn a_dry_run_of_all_that_is_advised_lists_candidates_steps_and_time() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    if cpu == "0" {
        return jitterscope_testing::skip("the only CPU cannot be left undisturbed");
    }
    let asked = [
        "experiment",
        "--auto",
        "--dry-run",
        "-q",
        "-d",
        "1s",
        "--cpus",
        &cpu,
    ];
    let output = run(dir.path(), &[&asked[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    conforms("experiment-auto-plan", &printed);
    assert_eq!(
        (&printed["ranked_by"], &printed["steps"][0]["runs"][0]),
        (&Value::Null, &4.into())
    );
    let sum: u64 = printed["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["takes_ns"][0].as_u64().unwrap())
        .sum();
    assert_eq!(printed["takes_ns"][0].as_u64(), Some(sum));
    // Each dry run makes its own trial run.
    let least = printed["takes_ns"][0].as_u64().unwrap() / 2_000_000_000;
    let tight = run(
        dir.path(),
        &[&asked[..], &["--budget", &format!("{least}s"), "--json"]].concat(),
    );
    let tight: Value = serde_json::from_slice(&tight.stdout).unwrap();
    assert_eq!(
        (&printed["fits_budget"], &tight["fits_budget"]),
        (&true.into(), &false.into()),
        "{tight}"
    );
    let text = String::from_utf8(run(dir.path(), &asked).stdout).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "CANDIDATES",
        "STEPS",
        "without any of them: 4 runs",
        "fits a budget of 30 min",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let runs = std::fs::read_dir(dir.path().join("runs"));
    assert_eq!(runs.map_or(0, Iterator::count), 0, "the trial run is left");
    assert!(!dir.path().join("state").exists());
}

/// The budget limits everything: a budget too small for the trial is refused before any measurement.
#[test]
fn a_budget_that_is_too_small_to_try_anything_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(
        dir.path(),
        &["experiment", "--auto", "--budget", "3s", "-d", "1s", "-q"],
    );
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("8 runs of 1.00 s"),
        "{}",
        stderr(&output)
    );
    assert!(!dir.path().join("runs").exists());
}

#[test]
fn all_that_is_advised_is_tried_and_the_machine_is_as_it_was() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    // On a quiet machine, the advice depends on the moment.
    let _neighbour = Neighbour::on(highest_cpu());
    let dir = tempfile::tempdir().unwrap();
    let before = fs::read_to_string(STAT_INTERVAL).unwrap();
    // No knob with a long undoing.
    let args = [
        "experiment",
        "--auto",
        "--budget",
        "60s",
        "-d",
        "300ms",
        "--longest-wait",
        "3s",
        "--json",
    ];
    // Stopped during the trial; the runs without candidates are not repeated.
    let mut child = command(dir.path(), &args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    said(&mut child, "trying ");
    std::thread::sleep(Duration::from_millis(700));
    interrupt(&child);
    let stopped = child.wait_with_output().unwrap();
    assert_eq!(stopped.status.code(), Some(1));
    let printed: Value = serde_json::from_slice(&stopped.stdout).unwrap();
    conforms("experiment-auto", &printed);
    let why = printed["unfinished"].as_str().unwrap();
    assert!(
        why.contains("it was stopped") && why.contains("--resume"),
        "{why}"
    );
    assert_eq!(fs::read_to_string(STAT_INTERVAL).unwrap(), before);
    let other = run(
        dir.path(),
        &[&args[..], &["--resume", "--except", "vmstat", "-q"]].concat(),
    );
    assert!(
        stderr(&other).contains("no such experiment"),
        "{}",
        stderr(&other)
    );
    let begun = Instant::now();
    let output = run(dir.path(), &[&args[..], &["--resume"]].concat());
    // No run begins that would end after the budget; an undoing may.
    assert!(
        begun.elapsed() < Duration::from_secs(60 + 20),
        "{:?}",
        begun.elapsed()
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    conforms("experiment-auto", &found);
    assert!(
        stderr(&output).contains("going on after 4 runs without the candidates and"),
        "{}",
        stderr(&output)
    );
    let list: Value = serde_json::from_slice(&run(dir.path(), &["list", "--json"]).stdout).unwrap();
    let pairs = found["confirmed"]["pairs"].as_u64().unwrap_or(0)
        + found["confirmed"]["void"]
            .as_array()
            .map_or(0, |void| void.len() as u64);
    let runs = list["runs"].as_array().unwrap().len() as u64;
    assert!(
        (8..=8 + 2 * pairs).contains(&runs),
        "nothing is measured twice: {runs} runs, {pairs} pairs"
    );
    let tried = found["candidates"].as_array().unwrap();
    for candidate in tried.iter().filter(|candidate| candidate["kept"] == false) {
        let printed = format!("{} is undone", candidate["knob"].as_str().unwrap());
        assert!(
            stderr(&output).contains(&printed),
            "{printed}: {}",
            stderr(&output)
        );
    }
    assert_eq!(fs::read_to_string(STAT_INTERVAL).unwrap(), before);
    let status: Value =
        serde_json::from_slice(&run(dir.path(), &["tune", "status", "--json"]).stdout).unwrap();
    assert_eq!(status["active"], false, "{status}");
}
