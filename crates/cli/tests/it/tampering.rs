//! Another root process changes the tracing instances, or unmounts tracefs, during a recording.

use crate::live;

use jitterscope_testing::{Tamper, highest_cpu, instances_of, recording_instances_of};
use live::{can_trace, jitterscope, json, program, stderr, turn, until_it_measures};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn recording(line: &[&str], runs: &Path, extra: &[&str]) -> Child {
    let (program, cpu) = (program().display().to_string(), highest_cpu().to_string());
    let record = ["record", "--cpus", &cpu, "-d", "3s", "--json", "-q"];
    let line = [line, &[program.as_str()], &record, extra].concat();
    Command::new(line[0])
        .args(&line[1..])
        .env("JITTERSCOPE_RUNS", runs)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn has(rows: &Value, key: &str, value: &str) -> bool {
    let mut rows = rows.as_array().unwrap().iter();
    rows.any(|row| row[key] == value)
}

/// The instances of a process, from a private mount of tracefs.
fn left_of(pid: u32) -> Vec<String> {
    let look = "cd /sys/kernel/tracing && { mountpoint -q . || mount -t tracefs look .; } \
                && ls /sys/kernel/tracing/instances";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", look])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let its = format!("jitterscope-{pid}-");
    text.lines()
        .filter(|name| name.starts_with(&its))
        .map(str::to_owned)
        .collect()
}

#[test]
fn nothing_is_passed_by_a_trace_that_was_disturbed() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let junit = dir.path().join("gates.xml");
    let junit = junit.to_str().unwrap();
    let gates = ["--fail-if", "culprit(nobody)>10%", "--junit", junit];
    let recorder = recording(&[], dir.path(), &gates);
    until_it_measures(recorder.id());
    for instance in recording_instances_of(recorder.id(), 2).unwrap() {
        Tamper::Reset.on(&instance).unwrap();
    }
    let output = recorder.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let report = json(&output);
    assert!(has(&report["trust"]["doubts"], "kind", "trace_disturbed"));
    assert!(has(&report["warnings"], "id", "trace-disturbed"));
    let classes = &report["attribution"]["unexplained"]["classes"];
    assert!(has(classes, "name", "trace was disturbed"), "{classes}");
    // The rest is attributed.
    assert_eq!(report["attribution"]["proven"], true);
    let said = stderr(&output);
    assert!(
        said.contains("another process wrote to the trace controls"),
        "{said}"
    );
    let suite = fs::read_to_string(junit).unwrap();
    assert!(
        suite.contains("errors=\"1\"") && suite.contains("controls"),
        "{suite}"
    );
    let page = jitterscope(dir.path(), &["report", "latest"]);
    let page = String::from_utf8_lossy(&page.stdout).replace('\n', " ");
    assert!(
        page.contains("For part of the time the culprits are unknown"),
        "{page}"
    );
}

fn ended(recorder: Child) -> Output {
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

/// The mount is gone, and the kernel goes on recording into instances that no path leads to.
#[test]
fn no_instance_is_left_where_tracefs_was_unmounted_meanwhile() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = "mount -t tracefs own /sys/kernel/tracing; exec \"$@\"";
    let own = ["unshare", "--mount", "sh", "-c", mount, "sh"];
    let recorder = recording(&own, dir.path(), &[]);
    let pid = recorder.id();
    until_it_measures(pid);
    assert_eq!(left_of(pid).len(), 2, "it records");
    let (target, unmount) = (pid.to_string(), "/sys/kernel/tracing");
    let status = Command::new("nsenter")
        .args(["--mount", "--target", &target, "umount", "-l", unmount])
        .status()
        .unwrap();
    assert!(status.success());
    let report = json(&ended(recorder));
    assert_eq!(left_of(pid), Vec::<String>::new());
    assert_eq!(report["trust"]["doubts"], Value::Array(Vec::new()));
}

/// The kernel does not remove an instance with an open file.
#[test]
fn an_instance_that_stays_behind_is_reported_and_found_later() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let recorder = recording(&[], dir.path(), &[]);
    let pid = recorder.id();
    until_it_measures(pid);
    let instances = recording_instances_of(pid, 2).unwrap();
    let is_local = |path: &&std::path::PathBuf| path.to_string_lossy().ends_with("-local");
    let local = instances.iter().find(is_local).unwrap();
    let held = File::open(local.join("tracing_on")).unwrap();
    let output = ended(recorder);
    let name = local.file_name().unwrap().to_string_lossy().into_owned();
    let said = stderr(&output);
    let reported = format!("tracing instance {name} could not be removed");
    assert!(
        said.contains(&reported) && said.contains("doctor --clean"),
        "{said}"
    );
    let doctor = jitterscope(dir.path(), &["doctor", "--json"]);
    assert!(json(&doctor)["leftovers"].to_string().contains(&name));
    drop(held);
    let cleaned = jitterscope(dir.path(), &["doctor", "--clean", "--json"]);
    assert!(cleaned.status.success(), "{}", stderr(&cleaned));
    assert!(instances_of(pid).is_empty());
    assert_eq!(left_of(pid), Vec::<String>::new());
}
