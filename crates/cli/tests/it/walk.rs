//! The walk of docs/steps, in its short form: it changes, checks and restores; a refusal ends it.

use crate::live;

use jitterscope_testing::highest_cpu;
use live::{can_trace, json, program, turn};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const WATCHDOG: &str = "/proc/sys/kernel/watchdog_cpumask";
const WRITEBACK: &str = "/sys/devices/virtual/workqueue/writeback/cpumask";

fn walk(dir: &Path, args: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/steps/walk.sh");
    let mut command = Command::new("sh");
    command.arg(script).args(args).current_dir(dir);
    command
        .env("JITTERSCOPE", program())
        .env("JITTERSCOPE_STATE", dir.join("state"));
    command.output().unwrap()
}

/// Its folder of runs, and their labels.
fn labels(dir: &Path) -> (PathBuf, Vec<String>) {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("walk-")
    };
    let runs: PathBuf = entries.into_iter().find(named).unwrap();
    let list = json(&live::jitterscope(&runs, &["list", "--json"]));
    let label = |run: &serde_json::Value| run["label"].as_str().unwrap().to_owned();
    (
        runs,
        list["runs"].as_array().unwrap().iter().map(label).collect(),
    )
}

fn can_walk() -> Option<String> {
    let cpu = highest_cpu().to_string();
    if cpu == "0" || !Path::new(WATCHDOG).exists() || !Path::new(WRITEBACK).exists() {
        jitterscope_testing::skip(
            "a second CPU, the watchdog's mask and that of writeback are needed",
        );
        return None;
    }
    Some(cpu).filter(|_| can_trace())
}

#[test]
fn each_step_is_taken_checked_and_put_back() {
    let _turn = turn();
    let Some(cpu) = can_walk() else { return };
    let before = [WATCHDOG, WRITEBACK].map(|file| fs::read_to_string(file).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "--cpus",
        &cpu,
        "--duration",
        "2s",
        "--steps",
        "watchdog,workqueues",
    ];
    let output = walk(dir.path(), &args);
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{talk}");
    assert_eq!(
        [WATCHDOG, WRITEBACK].map(|file| fs::read_to_string(file).unwrap()),
        before
    );
    let (_, labels) = labels(dir.path());
    assert_eq!(labels, ["BASELINE", "watchdog", "workqueues"], "{talk}");
    assert!(
        talk.contains("culprit(watchdog_timer_fn)>") && talk.contains(", kept"),
        "{talk}"
    );
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        shown.contains("stolen") && shown.contains("verdict"),
        "{shown}"
    );
}

#[test]
fn a_refused_step_is_reported_before_the_measurement() {
    let _turn = turn();
    let Some(cpu) = can_walk() else { return };
    if Path::new("/sys/devices/system/cpu/cpufreq/policy0").exists() {
        jitterscope_testing::skip("this machine takes the step that is to be refused");
        return;
    }
    let before = fs::read_to_string(WATCHDOG).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "--cpus",
        &cpu,
        "--duration",
        "300ms",
        "--steps",
        "governor,watchdog",
    ];
    let output = walk(dir.path(), &args);
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{talk}");
    let message =
        "governor cannot be done on this machine (leave it out with --skip governor): no cpufreq";
    assert!(talk.contains(message), "{talk}");
    // Before any measurement.
    assert_eq!(
        fs::read_dir(dir.path())
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name() != "state")
            .count(),
        0
    );
    assert_eq!(fs::read_to_string(WATCHDOG).unwrap(), before);
    let output = walk(dir.path(), &["--cpus", &cpu, "--steps", "sorcery"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no step 'sorcery'"));
}
