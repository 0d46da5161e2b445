//! Whose threads took the time: units of short-lived processes, and of processes that move between control groups.

use crate::live::{Ended, can_trace, jitterscope, json, stderr, turn};
use jitterscope_testing::{highest_cpu, skip};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A control group of a test, where processes of short lives are. Ends them.
struct Group(PathBuf);

impl Group {
    /// `None` where no group can be made.
    fn new(unit: &str) -> Option<Group> {
        let roots = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].map(Path::new);
        let root = roots
            .iter()
            .find(|root| root.join("cgroup.procs").exists())?;
        let folder = root.join(format!("jitterscope-test-{}", std::process::id()));
        let folder = folder.join(unit);
        fs::create_dir_all(&folder).ok()?;
        Some(Group(folder))
    }

    fn members(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            for pid in fs::read_to_string(self.members())
                .unwrap_or_default()
                .lines()
            {
                let _ = Command::new("kill").args(["-KILL", pid]).status();
            }
            if fs::remove_dir(&self.0).is_ok() {
                break;
            }
            sleep(Duration::from_millis(20));
        }
        let _ = self.0.parent().map(fs::remove_dir);
    }
}

/// A shell on the measured CPU, outside of any group.
fn shell(script: &str) -> Ended {
    let cpu = highest_cpu().to_string();
    let child = Command::new("taskset")
        .args(["-c", &cpu, "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Ended(child.unwrap())
}

/// The threads' time by unit. The empty name stands for threads outside of any unit, `?` for threads whose group is
/// unknown.
fn by_unit(report: &Value) -> Vec<(String, u64)> {
    let owners = report["attribution"]["owners"].as_array().unwrap();
    owners
        .iter()
        .map(|row| {
            let unit = match (row["cgroup"].as_str(), row["unit"].as_str()) {
                (None, _) => "?",
                (_, unit) => unit.unwrap_or_default(),
            };
            (unit.to_owned(), row["total_ns"].as_u64().unwrap())
        })
        .collect()
}

#[test]
fn units_of_short_lived_and_of_moving_processes_are_known() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let groups = [Group::new("short.service"), Group::new("moving.service")];
    let [Some(short), Some(moving)] = &groups else {
        skip("no control group can be made here");
        return;
    };
    let enters = |group: &Group| format!("echo 0 > {}", group.members().display());
    // Each `sleep` is a process of its own that lives for 2 ms.
    let of_short = format!("{}; while :; do sleep 0.002; done", enters(short));
    // Each process begins outside, moves, works for a moment, and ends.
    let job = format!(
        "{}; n=0; while [ $n -lt 500 ]; do n=$((n+1)); done",
        enters(moving)
    );
    let of_moving = format!("while :; do sh -c '{job}'; sleep 0.02; done");
    let shells = [shell(&of_short), shell(&of_moving)];
    sleep(Duration::from_millis(300));
    let runs = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let args = ["record", "--cpus", &cpu, "-d", "3s", "--json", "-q"];
    let output = jitterscope(runs.path(), &args);
    drop(shells);
    assert!(output.status.success(), "{}", stderr(&output));
    let owners = by_unit(&json(&output));
    println!("{owners:?}");
    let time_of = |unit: &str| {
        let rows = owners.iter().filter(|(of, _)| of == unit);
        rows.map(|(_, time)| time).sum::<u64>()
    };
    let all: u64 = owners.iter().map(|(_, time)| time).sum();
    // Others may have the CPU for most of the time.
    assert!(time_of("short.service") > 5_000_000, "{owners:?}");
    assert!(time_of("moving.service") > 1_000_000, "{owners:?}");
    assert!(time_of("?") < all / 20, "{owners:?}");

    // The same in a table by unit, in a condition, and in the report.
    let report = |args: &[&str]| jitterscope(runs.path(), &[&["report", "latest"], args].concat());
    let table = json(&report(&["--by", "unit", "--json"]));
    let rows = table["attribution"]["culprits"].as_array().unwrap();
    for unit in ["short.service", "moving.service"] {
        let row = rows.iter().find(|row| row["name"] == unit).unwrap();
        assert_eq!(row["total_ns"], time_of(unit), "{row}");
        let exceeded = report(&["--fail-if", &format!("culprit(unit:{unit})>0.0001%")]);
        assert_eq!(exceeded.status.code(), Some(3), "{}", stderr(&exceeded));
    }
    let kept = report(&["--fail-if", "culprit(unit:no.service)>90%"]);
    assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    assert!(stderr(&kept).contains(".service"), "{}", stderr(&kept));
    let full = report(&["--full"]);
    let full = String::from_utf8_lossy(&full.stdout);
    assert!(full.contains("moving.service"), "{full}");
}

#[test]
fn a_unit_owns_a_cpu_with_the_processes_that_it_makes_and_those_that_enter_it() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let Some(unit) = Group::new("owner.service") else {
        skip("no control group can be made here");
        return;
    };
    let runs = tempfile::tempdir().unwrap();
    let named = |name: &str| {
        let program = runs.path().join(name);
        fs::copy("/bin/sh", &program).unwrap();
        program.display().to_string()
    };
    let work = "n=0; while [ $n -lt 2000 ]; do n=$((n+1)); done";
    let enter = format!("echo 0 > {}", unit.members().display());
    let [child, late, stranger] = ["own-child", "own-late", "own-stranger"].map(named);
    // Each child is a process of its own, which takes the CPU for some milliseconds.
    let makes = format!("{enter}; while :; do {child} -c '{work}'; sleep 0.01; done");
    let enters = format!("sleep 2; {enter}; exec {late} -c 'while :; do {work}; sleep 0.01; done'");
    let steals = format!("exec {stranger} -c 'while :; do {work}; sleep 0.01; done'");
    let shells = [shell(&makes), shell(&enters), shell(&steals)];
    sleep(Duration::from_millis(300));
    let cpu = highest_cpu().to_string();
    let args = ["record", "none", "--cpus", &cpu, "--for", "unit:owner"];
    let more = ["-d", "5s", "--json", "-q"];
    let output = jitterscope(runs.path(), &[&args[..], &more].concat());
    drop(shells);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let row = |name: &str| {
        let rows = report["attribution"]["culprits"].as_array().unwrap();
        let total = |row: &Value| row["total_ns"].as_u64().unwrap();
        let of = rows.iter().filter(|row| row["name"] == name);
        of.map(total).sum::<u64>()
    };
    let stolen = row("own-stranger");
    assert!(
        stolen > 20_000_000,
        "{:#}",
        report["attribution"]["culprits"]
    );
    // What enters belongs from the end of that turn of the drain on.
    assert_eq!(row("own-child"), 0, "a child of the unit steals from it");
    assert!(row("own-late") < stolen / 3, "{} {stolen}", row("own-late"));
    let cpus = report["passive"].as_array().unwrap();
    let threads = cpus[0]["threads"].as_array().unwrap();
    for name in ["own-child", "own-late"] {
        assert!(threads.iter().any(|of| of["comm"] == name), "{threads:#?}");
    }
    assert!(!threads.iter().any(|of| of["comm"] == "own-stranger"));

    // A replay of the records makes the same rows.
    let again = jitterscope(
        runs.path(),
        &["report", "latest", "--reattribute", "--json"],
    );
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(json(&again)["passive"], report["passive"]);

    // One that no thread is in.
    let args = ["record", "none", "--cpus", &cpu, "--for", "unit:none-such"];
    let output = jitterscope(runs.path(), &[&args[..], &["-d", "300ms"]].concat());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains("No thread of 'unit:none-such.service' ran"),
        "{said}"
    );
    let args = ["record", "none", "--for", "cgroup:relative"];
    let output = jitterscope(runs.path(), &args);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
