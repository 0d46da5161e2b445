//! Experiments on the machine that the tests run on. They need root and tracefs, and say so when they are
//! skipped.

#[path = "schema_check/mod.rs"]
mod schema_check;

use jitterscope_testing::{SplitMix64, is_root, turn};
use schema_check::{hold, schema};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const STAT_INTERVAL: &str = "/proc/sys/vm/stat_interval";
/// How long the guard of a killed experiment may take.
const UNDONE: Duration = Duration::from_secs(60);

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitterscope"));
    command.args(args).arg("--runs").arg(dir.join("runs")).env("JITTERSCOPE_STATE", dir.join("state"));
    command.stdin(Stdio::null());
    command
}

fn run(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn can_experiment() -> bool {
    if !is_root() {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    let doctor = run(dir.path(), &["doctor", "--require", "tracefs"]);
    let two = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
    if !doctor.status.success() || !two || !Path::new(STAT_INTERVAL).exists() {
        eprintln!("skipped: tracefs, a second CPU and vm.stat_interval are needed: {}", stderr(&doctor));
        return false;
    }
    true
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    for (args, said) in [
        (&["experiment"][..], "--knob"),
        (&["experiment", "--apply", "true"], "--revert"),
        (&["experiment", "--env", "X=1"], "COMMAND"),
        (&["experiment", "--env", "X", "--", "true"], "NAME=VALUE"),
        (&["experiment", "--apply", "true", "--revert", "true", "--pairs", "7"], "8 pairs"),
        (&["experiment", "--apply", "true", "--revert", "true", "--knob", "vmstat"], "cannot be used with"),
        (&["experiment", "--apply", "true", "--revert", "true", "--resume"], "no such experiment"),
    ] {
        let output = run(dir.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn a_dry_run_tells_the_time_and_what_could_be_found() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["experiment", "--apply", "touch x", "--revert", "rm x", "-d", "10s", "--dry-run", "--quiet"];
    let output = run(dir.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for said in ["8 pairs", "up to 16 pairs", "four times in five", "no earlier runs"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!dir.path().join("runs/experiments").exists());
}

/// A thread of this name that takes a tenth of a CPU, once it is started.
fn rival(dir: &Path, cpu: u32) -> (String, String) {
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
    let cpu = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let cpu: u32 = cpu.trim().rsplit([',', '-']).next().unwrap().parse().unwrap();
    let (apply, revert) = rival(dir.path(), cpu);
    let cpu = cpu.to_string();
    let args =
        ["experiment", "--apply", &apply, "--revert", &revert, "-d", "1s", "--cpus", &cpu, "--json", "-q"];
    let output = run(dir.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    hold(&schema("experiment"), &found, "experiment");
    let rows = found["diff"]["against"][0]["culprits"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "js-rival").expect("it is named");
    assert_eq!(row["became"], "appeared", "{row}");
    let worse = |figure: &str| row[figure]["verdict"] == "worse";
    assert!(worse("events") || worse("stolen"), "{row}");
    assert_eq!(found["interleaved"], true);
}

fn traced() -> usize {
    ["/sys/kernel/tracing/instances", "/sys/kernel/debug/tracing/instances"]
        .iter()
        .filter_map(|path| fs::read_dir(path).ok())
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains("jitterscope"))
        .count()
}

/// JITTERSCOPE_KILLS says how many, where three are too few.
#[test]
fn killed_at_any_moment_it_leaves_the_machine_as_it_was() {
    let _turn = turn();
    if !can_experiment() {
        return;
    }
    let kills: u64 = std::env::var("JITTERSCOPE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let before = fs::read_to_string(STAT_INTERVAL).unwrap();
    let mut random = SplitMix64(before.len() as u64 + kills);
    let mut applied = 0;
    for kill in 0..kills {
        let dir = tempfile::tempdir().unwrap();
        let args = ["experiment", "--knob", "vmstat", "-d", "500ms", "-q"];
        let mut child =
            command(dir.path(), &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300 + random.below(9_000)));
        let early = child.try_wait().unwrap();
        assert!(early.is_none(), "kill {kill}: it ended by itself: {early:?}");
        applied += usize::from(fs::read_to_string(STAT_INTERVAL).unwrap() != before);
        child.kill().unwrap();
        child.wait().unwrap();
        let begun = Instant::now();
        let is_back = || fs::read_to_string(STAT_INTERVAL).unwrap() == before && traced() == 0;
        while !is_back() && begun.elapsed() < UNDONE {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(fs::read_to_string(STAT_INTERVAL).unwrap(), before, "kill {kill}");
        assert_eq!(traced(), 0, "kill {kill}: tracing instances were left");
        let status = run(dir.path(), &["tune", "status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap();
        assert_eq!(status["active"], false, "kill {kill}: {status}");
    }
    eprintln!("{applied} of {kills} kills met the change applied");
}
