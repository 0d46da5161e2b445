//! Experiments on this machine. They need root and tracefs, and print a note when they are skipped.

use crate::experiments;
use crate::schema_check;

use experiments::{STAT_INTERVAL, can_experiment, command, interrupt, run, said, stderr};
use jitterscope_testing::{SplitMix64, highest_cpu, tracefs, turn};
use schema_check::conforms;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time for the guard of a killed experiment.
const UNDONE: Duration = Duration::from_secs(60);
/// Further kills until one hits while the change is applied.
const MORE_KILLS: u64 = 5;

/// A thread of this name that takes a tenth of a CPU once it is started.
fn rival(dir: &Path, cpu: &str) -> (String, String) {
    let program = dir.join("js-rival");
    fs::copy("/bin/sh", &program).unwrap();
    let pid = dir.join("pid");
    let burn = "while :; do i=0; while [ $i -lt 4000 ]; do i=$((i+1)); done; sleep 0.02; done";
    let apply = format!(
        "taskset -c {cpu} {} -c '{burn}' >/dev/null 2>&1 & echo $! > {}",
        program.display(),
        pid.display()
    );
    (apply, format!("kill $(cat {})", pid.display()))
}

#[test]
fn a_competitor_in_one_arm_is_found_and_named() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let (apply, revert) = rival(dir.path(), &cpu);
    let args = [
        "experiment",
        "--apply",
        &apply,
        "--revert",
        &revert,
        "-d",
        "300ms",
        "--cpus",
        &cpu,
        "--json",
        "-q",
    ];
    let output = run(dir.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    conforms("experiment", &found);
    let rows = found["diff"]["against"][0]["culprits"].as_array().unwrap();
    let row = rows
        .iter()
        .find(|row| row["name"] == "js-rival")
        .expect("it is named");
    assert_eq!(row["became"], "appeared", "{row}");
    let worse = |figure: &str| row[figure]["verdict"] == "worse";
    assert!(worse("events") || worse("stolen"), "{row}");
    assert_eq!(found["interleaved"], true);
}

fn traced() -> usize {
    let folder = tracefs().and_then(|root| fs::read_dir(root.join("instances")).ok());
    let all = folder.into_iter().flatten().flatten();
    all.filter(|entry| entry.file_name().to_string_lossy().contains("jitterscope"))
        .count()
}

/// JITTERSCOPE_KILLS sets the number of kills, three by default.
#[test]
fn killed_at_any_moment_it_leaves_the_machine_as_it_was() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let kills: u64 = std::env::var("JITTERSCOPE_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(3);
    let before = fs::read_to_string(STAT_INTERVAL).unwrap();
    let mut random = SplitMix64(before.len() as u64 + kills);
    let mut applied = 0;
    // At random first; then, if none hit the change, as soon as it is applied.
    for kill in 0..kills + MORE_KILLS {
        if kill >= kills && applied > 0 {
            break;
        }
        let dir = tempfile::tempdir().unwrap();
        let args = ["experiment", "--knob", "vmstat", "-d", "300ms", "-q"];
        let mut child = command(dir.path(), &args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        if kill < kills {
            std::thread::sleep(Duration::from_millis(300 + random.below(5_000)));
        } else {
            let begun = Instant::now();
            while fs::read_to_string(STAT_INTERVAL).unwrap() == before && begun.elapsed() < UNDONE {
                std::thread::sleep(Duration::from_millis(10));
            }
            std::thread::sleep(Duration::from_millis(random.below(300)));
        }
        let early = child.try_wait().unwrap();
        assert!(
            early.is_none(),
            "kill {kill}: it ended by itself: {early:?}"
        );
        applied += usize::from(fs::read_to_string(STAT_INTERVAL).unwrap() != before);
        child.kill().unwrap();
        child.wait().unwrap();
        let begun = Instant::now();
        let is_back = || fs::read_to_string(STAT_INTERVAL).unwrap() == before && traced() == 0;
        while !is_back() && begun.elapsed() < UNDONE {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(
            fs::read_to_string(STAT_INTERVAL).unwrap(),
            before,
            "kill {kill}"
        );
        assert_eq!(traced(), 0, "kill {kill}: tracing instances were left");
        let status = run(dir.path(), &["tune", "status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap();
        assert_eq!(status["active"], false, "kill {kill}: {status}");
    }
    assert!(
        applied > 0,
        "no kill met the change applied, so none shows that it is undone"
    );
}

/// Killed while its command runs: the guard, or without it the next start, must end the command first.
#[test]
fn a_command_that_still_changes_the_machine_ends_before_the_undo() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    for (noted, guard_too) in [(true, false), (true, true), (false, false)] {
        let dir = tempfile::tempdir().unwrap();
        let apply = "touch started; (sleep 1; touch y) & sleep 1; touch x";
        let args = [
            "experiment",
            "--apply",
            apply,
            "--revert",
            "touch undone; rm -f x y",
            "-d",
            "200ms",
            "-q",
        ];
        let mut child = command(dir.path(), &args);
        child
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if !noted {
            child.env("JITTERSCOPE_STATE", "/proc/no-place-for-a-note");
        }
        let mut child = child.spawn().unwrap();
        let (at, begun) = (|name: &str| dir.path().join(name).exists(), Instant::now());
        while !at("started") {
            assert!(
                begun.elapsed() < UNDONE && child.try_wait().unwrap().is_none(),
                "noted: {noted}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(300));
        if guard_too {
            let guard = rustix::process::Pid::from_raw(guard_of(&child)).unwrap();
            rustix::process::kill_process(guard, rustix::process::Signal::KILL).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if guard_too {
            assert!(!at("undone"), "nobody is left to undo it");
            let cleaned = run(dir.path(), &["doctor", "--clean", "--json"]);
            assert!(at("undone"), "{}", stderr(&cleaned));
        }
        let killed = Instant::now();
        // Longer than the rest of the command.
        while !at("undone") || killed.elapsed() < Duration::from_secs(2) {
            assert!(killed.elapsed() < UNDONE, "noted: {noted}");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(
            !at("x") && !at("y"),
            "noted: {noted}, guard killed: {guard_too}"
        );
        assert!(!dir.path().join("state/experiment.json").exists());
    }
}

/// Killed during the undoing: the guard ends that before it begins another, and the two never run side by side.
#[test]
fn an_undoing_that_still_runs_is_ended_before_the_guard_begins_one() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    for noted in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let revert = "echo begun >> log; sleep 1; rm -f x; echo done >> log";
        let args = [
            "experiment",
            "--apply",
            "touch x",
            "--revert",
            revert,
            "-d",
            "200ms",
            "-q",
        ];
        let mut child = command(dir.path(), &args);
        child
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if !noted {
            child.env("JITTERSCOPE_STATE", "/proc/no-place-for-a-note");
        }
        let mut child = child.spawn().unwrap();
        let log = || fs::read_to_string(dir.path().join("log")).unwrap_or_default();
        let begun = Instant::now();
        while log().is_empty() {
            assert!(
                begun.elapsed() < UNDONE && child.try_wait().unwrap().is_none(),
                "noted: {noted}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let killed = Instant::now();
        // Longer than both would take side by side.
        while !log().contains("done") || killed.elapsed() < Duration::from_millis(2_500) {
            assert!(killed.elapsed() < UNDONE, "noted: {noted}: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(log(), "begun\nbegun\ndone\n", "noted: {noted}");
        assert!(!dir.path().join("x").exists());
    }
}

/// Chance alone makes a difference once in fifty times; the calibration in `crates/experiment` tests that rate on
/// simulated machines. This test measures a change without effect and reaches an answer.
#[test]
fn two_arms_that_are_the_same_come_to_an_answer() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let cpu = highest_cpu().to_string();
    let args = [
        "experiment",
        "--apply",
        "true",
        "--revert",
        "true",
        "-d",
        "200ms",
        "--cpus",
        &cpu,
        "--json",
        "-q",
    ];
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let totals: Vec<&Value> = found["diff"]["against"][0]["figures"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["is_total"] == true)
        .collect();
    assert!(!totals.is_empty(), "{found}");
    // On a busy machine a pair may be void; then there may be too few for an interval.
    let void = found["void"]
        .as_array()
        .is_some_and(|void| !void.is_empty());
    for row in totals {
        let verdict = row["comparison"]["verdict"].as_str().unwrap();
        let answers = ["better", "worse", "equivalent", "inconclusive"];
        assert!(answers.contains(&verdict), "{row}");
        let too_few = row["comparison"]["undecided"]["because"] == "too_few_runs";
        assert!(
            row["comparison"]["interval"].is_object() || void && too_few,
            "{row}\n{}",
            found["void"]
        );
    }
}

fn stopped_after_a_pair(dir: &Path, args: &[&str]) -> String {
    let mut child = command(dir, args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    said(&mut child, "pair 1 of 8");
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stdout).unwrap()
}

/// What takes a thread's CPU is compared without a probe; after a stop, it resumes where it was.
#[test]
fn a_stopped_experiment_without_a_probe_is_resumed() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("js-victim");
    fs::copy("/bin/sh", &victim).unwrap();
    let cpu = highest_cpu().to_string();
    let burn = "while :; do i=0; while [ $i -lt 4000 ]; do i=$((i+1)); done; done";
    let mut victim = Command::new("taskset")
        .args(["-c", &cpu, victim.to_str().unwrap(), "-c", burn])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let file = dir.path().join("changed");
    // A difference that the first look decides, so that no more pairs are made than necessary.
    let (apply, revert) = rival(dir.path(), &cpu);
    let apply = format!("touch {}; {apply}", file.display());
    let revert = format!("rm {}; {revert}", file.display());
    let args = [
        "experiment",
        "--apply",
        &apply,
        "--revert",
        &revert,
        "--probe",
        "none",
        "--for",
        "js-victim",
    ];
    let args = [&args[..], &["--cpus", &cpu, "-d", "100ms"]].concat();
    let printed = stopped_after_a_pair(dir.path(), &args);
    assert!(
        printed.contains("1 pair: stopped") && printed.contains("--resume goes on"),
        "{printed}"
    );
    assert!(!file.exists(), "it is undone");
    let other = run(
        dir.path(),
        &[&args[..], &["--margin", "20%", "--resume", "-q"]].concat(),
    );
    assert!(
        stderr(&other).contains("no such experiment"),
        "{}",
        stderr(&other)
    );
    let other = run(
        dir.path(),
        &[&args[..], &["--pairs", "9", "--resume", "-q"]].concat(),
    );
    assert!(
        stderr(&other).contains("no such experiment"),
        "other looks: {}",
        stderr(&other)
    );
    let resumed = run(dir.path(), &[&args[..], &["--resume", "--json"]].concat());
    let _ = victim.kill();
    let _ = victim.wait();
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    assert!(
        stderr(&resumed).contains("going on after 1 pairs"),
        "{}",
        stderr(&resumed)
    );
    let found: Value = serde_json::from_slice(&resumed.stdout).unwrap();
    conforms("experiment", &found);
    // It may be given up as futile before the first look, but not at the pair of the stop.
    let enough = if found["ended"] == "futile" { 2 } else { 8 };
    assert!(found["pairs"].as_u64() >= Some(enough), "{found}");
    assert_eq!(
        found["diff"]["sides"][0]["runs"].as_array().unwrap().len() as u64,
        found["pairs"]
    );
    let total = &found["diff"]["against"][0]["figures"][0];
    assert_eq!(
        (&total["figure"], &total["is_total"]),
        (&"lost".into(), &true.into())
    );
    assert!(total["first"][0].as_f64().is_some(), "{total}");
    let session = fs::read_dir(dir.path().join("runs/experiments"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let pairs = fs::read_to_string(session.path().join("experiment.jsonl")).unwrap();
    assert_eq!(
        pairs.lines().count() as u64,
        1 + found["pairs"].as_u64().unwrap(),
        "{pairs}"
    );
}

/// If the arms do not alternate, the measured runs stay as well.
#[test]
fn a_stopped_experiment_whose_arms_do_not_take_turns_is_resumed() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("changed").display().to_string();
    let (apply, revert) = (format!("touch {file}"), format!("rm {file}"));
    let args = [
        "experiment",
        "--apply",
        &apply,
        "--revert",
        &revert,
        "-d",
        "100ms",
    ];
    let args = [
        &args[..],
        &["--settles-in", "500ms", "--longest-wait", "100ms"],
    ]
    .concat();
    let stopped = |more: &[&str], at: &str| {
        let mut child = command(dir.path(), &[&args[..], more].concat());
        let mut child = child
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        said(&mut child, at);
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(!Path::new(&file).exists(), "it is undone");
        String::from_utf8(output.stdout).unwrap()
    };
    let printed = stopped(&[], "run 2 of 8 without the change");
    assert!(
        printed.contains("stopped") && printed.contains("--resume goes on"),
        "{printed}"
    );
    stopped(&["--resume"], "run 1 of 8 with the change");
    let resumed = run(dir.path(), &[&args[..], &["--resume", "--json"]].concat());
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    let printed = stderr(&resumed);
    assert!(
        printed.contains("going on after 8 runs without the change and 1 with it"),
        "{printed}"
    );
    let found: Value = serde_json::from_slice(&resumed.stdout).unwrap();
    conforms("experiment", &found);
    assert_eq!(
        (&found["ended"], &found["pairs"]),
        (&"last_look".into(), &8.into())
    );
    assert_eq!(
        (&found["interleaved"], &found["left_out"]),
        (&false.into(), &Value::Null)
    );
    let list: Value = serde_json::from_slice(&run(dir.path(), &["list", "--json"]).stdout).unwrap();
    assert_eq!(
        list["runs"].as_array().unwrap().len(),
        16,
        "nothing is measured twice, and nothing is left over"
    );
}

#[test]
fn a_pipeline_is_what_can_be_measured_too() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "experiment",
        "--apply",
        "true",
        "--revert",
        "true",
        "--probe",
        "pipeline",
        "-d",
        "100ms",
    ];
    let printed = stopped_after_a_pair(dir.path(), &args);
    assert!(printed.contains("1 pair: stopped"), "{printed}");
    let list: Value = serde_json::from_slice(&run(dir.path(), &["list", "--json"]).stdout).unwrap();
    let kinds: Vec<&Value> = list["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["probe"])
        .collect();
    assert!(
        kinds.len() >= 2 && kinds.iter().all(|kind| **kind == "pipeline"),
        "{list}"
    );
    let found = run(
        dir.path(),
        &["diff", "experiment-A", "experiment-B", "--json"],
    );
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    let figures = found["against"][0]["figures"].as_array().unwrap();
    assert!(
        figures
            .iter()
            .any(|row| row["figure"] == "mean_message" && row["is_total"] == true),
        "{found}"
    );
    assert_eq!(
        found["against"][0]["conditions"],
        Value::Array(Vec::new()),
        "runs are alike"
    );
}

/// A check command is repeated until it shows the change; a pair in which it never does is void.
#[test]
fn an_arm_by_command_begins_when_another_command_shows_it() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let (ready, asked) = (at("ready"), at("asked"));
    let apply = format!("(sleep 1; touch {ready}) >/dev/null 2>&1 &");
    let (revert, shows) = (
        format!("rm -f {ready}"),
        format!("echo x >> {asked}; test -e {ready}"),
    );
    let args = [
        "experiment",
        "--apply",
        &apply,
        "--revert",
        &revert,
        "--applied-when",
        &shows,
        "-d",
        "100ms",
    ];
    let printed = stopped_after_a_pair(dir.path(), &args);
    assert!(printed.contains("1 pair: stopped"), "{printed}");
    let times = fs::read_to_string(&asked).unwrap().lines().count();
    assert!(times >= 2, "asked {times} times of what took a second");
    // Conditions that never hold.
    let never = [
        "experiment",
        "--apply",
        "true",
        "--revert",
        "true",
        "--applied-when",
        "false",
    ];
    let never = [
        &never[..],
        &["--longest-wait", "300ms", "-d", "100ms", "--json"],
    ]
    .concat();
    let output = run(dir.path(), &never);
    // Without a pair nothing is decided.
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    conforms("experiment", &found);
    assert_eq!(
        (&found["ended"], &found["pairs"]),
        (&"void".into(), &0.into())
    );
    let void = found["void"].as_array().unwrap();
    let unseen = json!({"id": "not_in_force", "arm": "B", "within_ns": 300_000_000});
    assert!(
        void.len() == 5 && void.iter().all(|why| *why == unseen),
        "{found}"
    );
    let wrong = [
        "experiment",
        "--apply",
        "true",
        "--revert",
        "true",
        "--applied-when",
        "no-such-command-at-all",
    ];
    let output = run(dir.path(), &[&wrong[..], &["-d", "200ms", "-q"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("no-such-command-at-all"),
        "{}",
        stderr(&output)
    );
}

/// The children of a process.
fn children(pid: u32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// The guard process of an experiment.
fn guard_of(experiment: &Child) -> i32 {
    let guards: Vec<i32> = children(experiment.id())
        .into_iter()
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("experiment-guard")
        })
        .collect();
    let [guard] = guards[..] else {
        panic!("one guard: {guards:?}")
    };
    guard
}

#[test]
fn what_a_command_changed_is_found_where_the_guard_was_killed_too() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let changed = dir.path().join("changed");
    // Relative: the undoing runs in the same folder.
    let args = [
        "experiment",
        "--apply",
        "touch changed",
        "--revert",
        "rm changed",
        "-d",
        "5s",
        "-q",
    ];
    let mut child = command(dir.path(), &args);
    child
        .current_dir(dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    let begun = Instant::now();
    while !changed.exists() {
        assert!(begun.elapsed() < UNDONE && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    let guard = guard_of(&child);
    let guard = rustix::process::Pid::from_raw(guard).unwrap();
    let doctor = |args: &[&str]| {
        let output = run(dir.path(), &[&["doctor", "--json"], args].concat());
        let value = serde_json::from_slice::<Value>(&output.stdout).unwrap();
        conforms("doctor", &value);
        value
    };
    let lists = |list: &Value| {
        let all = list.as_array().unwrap().iter();
        all.filter_map(Value::as_str)
            .any(|what| what.contains("which 'rm changed' undoes"))
    };
    assert!(!lists(&doctor(&[])["leftovers"]), "its experiment lives");
    rustix::process::kill_process(guard, rustix::process::Signal::KILL).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(changed.exists(), "nobody is left to undo it");
    assert!(lists(&doctor(&[])["leftovers"]));
    assert!(lists(&doctor(&["--clean"])["removed"]));
    assert!(!changed.exists());
    assert!(!lists(&doctor(&[])["leftovers"]));
}

#[test]
fn knobs_are_put_back_by_the_next_start_where_the_guard_was_killed_too() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let before = fs::read_to_string(STAT_INTERVAL).unwrap();
    if before.trim() != "1" {
        jitterscope_testing::skip("vm.stat_interval is not as kernels have it");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let args = ["experiment", "--knob", "vmstat", "-d", "5s", "-q"];
    let mut child = command(dir.path(), &args);
    let mut child = child
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while fs::read_to_string(STAT_INTERVAL).unwrap() == before {
        assert!(begun.elapsed() < UNDONE && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    let guard = rustix::process::Pid::from_raw(guard_of(&child)).unwrap();
    rustix::process::kill_process(guard, rustix::process::Signal::KILL).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(
        fs::read_to_string(STAT_INTERVAL).unwrap(),
        before,
        "nobody is left to undo it"
    );
    let output = run(
        dir.path(),
        &[
            "record",
            "-d",
            "200ms",
            "--warmup",
            "10ms",
            "--no-trace",
            "-q",
        ],
    );
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        fs::read_to_string(STAT_INTERVAL).unwrap(),
        before,
        "{printed}"
    );
    assert!(
        printed.contains("knobs of a killed experiment: vmstat"),
        "{printed}"
    );
    let again = run(
        dir.path(),
        &[
            "record",
            "-d",
            "200ms",
            "--warmup",
            "10ms",
            "--no-trace",
            "-q",
        ],
    );
    assert!(
        !String::from_utf8_lossy(&again.stderr).contains("killed experiment"),
        "once"
    );
}

/// Before the first measurement there is nothing to keep, and this is not an error.
#[test]
fn an_experiment_that_is_stopped_while_it_starts_says_so() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "experiment",
        "--apply",
        "touch changed",
        "--revert",
        "rm changed",
        "-d",
        "2s",
    ];
    let mut child = command(dir.path(), &args);
    let mut child = child
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    said(&mut child, "measuring CPU");
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("0 pairs: stopped"), "{printed}");
    assert!(!dir.path().join("changed").exists());
}
