//! Threads whose names mislead: names that change all the time, names of kernel threads, names that are no text.

use crate::live::{Ended, can_trace, jitterscope, json, stderr, turn};
use jitterscope_testing::highest_cpu;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The user of the strangers' threads.
const STRANGER: u32 = 65_531;

/// A shell of another user on the measured CPU.
fn stranger(script: &str) -> Ended {
    let (cpu, user) = (highest_cpu().to_string(), STRANGER.to_string());
    let child = Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .args(["taskset", "-c", &cpu, "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Ended(child.unwrap())
}

/// The age, with some more, at which a thread is known whatever its name is by now.
const OLD: Duration = Duration::from_millis(2_500);

/// A recording of the measured CPU on which strangers run; its report.
fn recorded(runs: &Path, scripts: &[&str]) -> Value {
    let strangers: Vec<Ended> = scripts.iter().map(|script| stranger(script)).collect();
    sleep(OLD);
    let cpu = highest_cpu().to_string();
    let args = ["record", "--cpus", &cpu, "-d", "3s", "--json", "-q"];
    let output = jitterscope(runs, &args);
    drop(strangers);
    assert!(output.status.success(), "{}", stderr(&output));
    json(&output)
}

fn by(runs: &Path, what: &str) -> Value {
    json(&jitterscope(
        runs,
        &["report", "latest", "--by", what, "--json"],
    ))
}

fn rows(report: &Value) -> Vec<(&str, &str, u64)> {
    let culprits = report["attribution"]["culprits"].as_array().unwrap();
    culprits
        .iter()
        .map(|row| {
            let text = |field: &str| row[field].as_str().unwrap_or_default();
            (
                text("kind"),
                text("name"),
                row["total_ns"].as_u64().unwrap(),
            )
        })
        .collect()
}

fn sum<'r>(rows: impl IntoIterator<Item = &'r (&'r str, &'r str, u64)>) -> u64 {
    rows.into_iter().map(|(.., total)| total).sum()
}

const RENAMES: &str = "n=0; while :; do n=$((n+1)); printf x$n > /proc/$$/comm; done";

#[test]
fn threads_that_rename_themselves_all_the_time_are_one_row_a_process() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let report = recorded(runs.path(), &[RENAMES, RENAMES]);
    let all = rows(&report);
    println!("{all:?}\n{}", report["warnings"]);
    let stolen = sum(&all);
    let of_user = by(runs.path(), "user");
    let of_user = rows(&of_user);
    println!("{of_user:?}");
    let strangers: Vec<_> = of_user
        .iter()
        .filter(|(kind, name, _)| *kind == "thread" && name.contains(&STRANGER.to_string()))
        .collect();
    assert_eq!(strangers.len(), 1, "{of_user:?}");
    let theirs = strangers[0].2;
    assert!(theirs * 10 > stolen, "{theirs} of {stolen}");
    // What they took stands in two rows, not in thousands. Their names are their program's.
    let culprits = report["attribution"]["culprits"].as_array().unwrap();
    let own = culprits.iter().filter(|row| row["uid"] == STRANGER);
    let mut own: Vec<u64> = own.map(|row| row["total_ns"].as_u64().unwrap()).collect();
    own.sort_unstable_by(|a, b| b.cmp(a));
    let in_two: u64 = own.iter().take(2).sum();
    assert!(in_two * 10 > theirs * 9, "{own:?} {theirs}");
    // Until a process is known to rename itself all the time, each name is a row.
    assert!(own.len() <= 2 + 64, "{own:?}");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("renamed-often"), "{warnings}");
    let of_executable = by(runs.path(), "executable");
    let of_executable = rows(&of_executable);
    println!("{of_executable:?}");
    let shells = of_executable.iter().filter(|row| row.1.contains("sh"));
    assert!(sum(shells) * 10 > theirs * 9, "{of_executable:?}");
}

#[test]
fn a_users_thread_with_the_name_of_a_kernel_thread_is_a_row_of_its_own() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let script = "printf rcu_preempt > /proc/$$/comm; while :; do n=1; done";
    recorded(runs.path(), &[script]);
    let report = by(runs.path(), "thread");
    let named: Vec<&Value> = report["attribution"]["culprits"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["name"] == "rcu_preempt")
        .collect();
    let users: Vec<&&Value> = named.iter().filter(|row| row["space"] == "user").collect();
    assert_eq!(users.len(), 1, "{named:#?}");
    assert!(
        users[0]["total_ns"].as_u64().unwrap() > 100_000_000,
        "{named:#?}"
    );
    assert!(
        !users[0]["explanation"].to_string().contains("RCU"),
        "{named:#?}"
    );
}

#[test]
fn a_name_that_is_no_text_keeps_its_process() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let script = "printf '\\377dt' > /proc/$$/comm; while :; do n=1; done";
    let whole = recorded(runs.path(), &[script]);
    let report = by(runs.path(), "thread");
    let found = |report: &Value| -> Vec<Value> {
        let culprits = report["attribution"]["culprits"].as_array().unwrap();
        let of_it = culprits.iter().filter(|row| {
            let name = row["name"].as_str().unwrap_or_default();
            name.ends_with("dt") && name != "dt"
        });
        of_it.cloned().collect()
    };
    let rows = found(&report);
    assert_eq!(rows.len(), 1, "{report:#}");
    assert_eq!(rows[0]["space"], "user", "{rows:#?}");
    assert!(rows[0]["tgid"].is_number(), "{rows:#?}");
    assert!(rows[0]["total_ns"].as_u64().unwrap() > 100_000_000);
    let again = json(&jitterscope(
        runs.path(),
        &["report", "latest", "--reattribute", "--json"],
    ));
    assert_eq!(again["attribution"], whole["attribution"]);
}
