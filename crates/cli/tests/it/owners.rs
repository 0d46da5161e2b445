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
