//! `guard` on commands that are left alone, disturbed, failing, and ended early.

use crate::live;
use crate::schema_check;

use jitterscope_model::CpuId;
use jitterscope_platform::{name_current_thread, pin_current_thread, set_fifo};
use jitterscope_testing::highest_cpu;
use live::{can_trace, jitterscope, json, program, stderr, turn};
use schema_check::conforms;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Takes its CPU from all threads of the fair class and of lower priorities, for three quarters of the time.
struct Thief {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

const THIEF: &str = "gd-thief";

impl Thief {
    fn on(cpu: u32) -> Thief {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (ready, begun) = channel();
        let thread = std::thread::spawn(move || {
            name_current_thread(THIEF);
            pin_current_thread(CpuId(cpu)).unwrap();
            set_fifo(50).unwrap();
            ready.send(()).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                let until = Instant::now() + Duration::from_millis(15);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        begun.recv().unwrap();
        Thief {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Works for a tenth of a second or longer, as a real-time thread of low priority: fair threads cannot disturb it.
const WORK: &str = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";

fn guard(runs: &Path, options: &[&str], cpu: u32) -> std::process::Output {
    let cpu = cpu.to_string();
    let command = [
        "--", "taskset", "-c", &cpu, "chrt", "-f", "20", "sh", "-c", WORK,
    ];
    let first = ["guard", "-q", "--json", "--contaminated-above", "20%"];
    jitterscope(runs, &[&first[..], options, &command].concat())
}

fn iterations(series: &Value) -> &Vec<Value> {
    series["iterations"].as_array().unwrap()
}

fn stored(runs: &Path) -> usize {
    let list = json(&jitterscope(runs, &["list", "--json"]));
    list["runs"].as_array().unwrap().len()
}

#[test]
fn a_command_that_is_left_alone_is_clean_and_its_times_are_in_the_files() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let file = |name: &str| runs.path().join(name).to_str().unwrap().to_owned();
    let (times, metrics, page) = (file("t.json"), file("b.json"), file("p.md"));
    let files = [
        "--export-json",
        &times,
        "--bencher",
        &metrics,
        "--markdown",
        &page,
    ];
    let options = [&["-n", "3", "--fail", "--label", "QUIET"], &files[..]].concat();
    let output = guard(runs.path(), &options, highest_cpu());
    let series = json(&output);
    conforms("guard", &series);
    assert!(output.status.success(), "{series:#}\n{}", stderr(&output));
    assert_eq!(series["outcome"], "clean", "{series:#}");
    assert_eq!(series["headline"]["counted"], 3);
    assert_eq!(series["headline"]["clean"], 3);
    for one in iterations(&series) {
        let ns = |name: &str| one[name].as_u64().unwrap();
        assert_eq!(one["exit_code"], 0);
        assert!(ns("time_ns") > 10_000_000, "{one}");
        assert!(ns("wanted_ns") <= ns("time_ns"), "{one}");
        // The kernel's own sum of the CPU time, in ticks on some machines.
        let used = (ns("user_ns") + ns("system_ns")) as f64;
        let ran = (ns("wanted_ns") - ns("waited_ns")) as f64;
        assert!((used - ran).abs() < 0.3 * ran + 20e6, "{one}");
        // Each is a stored run like any other.
        let run = one["run"].as_str().unwrap();
        let report = json(&jitterscope(runs.path(), &["report", run, "--json"]));
        assert_eq!(report["run"]["label"], "QUIET");
        assert_eq!(report["run"]["duration_ns"], one["time_ns"]);
    }
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let file: Value = serde_json::from_str(&read(&times)).unwrap();
    assert_eq!(file["results"][0]["times"].as_array().unwrap().len(), 3);
    let median = series["headline"]["median_ns"].as_f64().unwrap();
    let seconds = file["results"][0]["median"].as_f64().unwrap();
    assert!((seconds * 1e9 - median).abs() < 2.0);
    let file: Value = serde_json::from_str(&read(&metrics)).unwrap();
    assert_eq!(file["QUIET"]["latency"]["value"].as_f64(), Some(median));
    assert!(read(&page).contains("| 3 |"));
}

#[test]
fn a_thread_of_higher_priority_contaminates_and_is_named() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let cpu = highest_cpu();
    let thief = Thief::on(cpu);
    let output = guard(runs.path(), &["-n", "2", "--retry", "1", "--fail"], cpu);
    let series = json(&output);
    drop(thief);
    conforms("guard", &series);
    assert_eq!(output.status.code(), Some(3), "{series:#}");
    assert_eq!(series["outcome"], "contaminated");
    let headline = &series["headline"];
    // The additional one counts like the others, and stands beside the two.
    assert_eq!(headline["counted"], 3, "{series:#}");
    assert_eq!(headline["contaminated"], 3, "{series:#}");
    assert_eq!(
        (&headline["additional"], &headline["remaining"]),
        (&1.into(), &2.into())
    );
    assert_eq!(iterations(&series)[2]["additional"], true);
    for one in iterations(&series) {
        assert_eq!(one["contamination"], "contaminated", "{one}");
        assert_eq!(one["culprit"]["kind"], "thread", "{one}");
        assert_eq!(one["culprit"]["name"], THIEF, "{one}");
    }
    assert_eq!(stored(runs.path()), 3);
    // The longest stall there names it, too. The command may have waited longer elsewhere before it moved to this CPU.
    let run = iterations(&series)[0]["run"].as_str().unwrap();
    let report = json(&jitterscope(runs.path(), &["report", run, "--json"]));
    let worst = report["worst"].as_array().unwrap();
    let there = worst.iter().find(|stall| stall["cpu"] == cpu);
    let there = there.unwrap_or_else(|| panic!("{report:#}"));
    assert!(there["parts"].to_string().contains(THIEF), "{there:#}");
}

/// Four processes of one name wait for one another on one CPU.
#[test]
fn a_command_whose_processes_share_a_cpu_is_not_contaminated_by_itself() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let each = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
    let script = format!("for n in 1 2 3 4; do sh -c '{each}' & done; wait");
    let args = [
        "guard",
        "-q",
        "--json",
        "--contaminated-above",
        "20%",
        "-n",
        "1",
    ];
    let command = [
        "--", "taskset", "-c", &cpu, "chrt", "-f", "20", "sh", "-c", &script,
    ];
    let series = json(&jitterscope(runs.path(), &[&args[..], &command].concat()));
    let one = &iterations(&series)[0];
    assert_eq!(one["contamination"], "clean", "{one:#}");
    let ns = |name: &str| one[name].as_f64().unwrap();
    assert!(ns("waited_for_own_ns") > 0.2 * ns("wanted_ns"), "{one:#}");
}

#[test]
fn a_command_that_fails_ends_the_series_and_passes_its_exit_code() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let marks = runs.path().join("marks");
    // It fails the second time.
    let script = format!(
        "echo x >> {0}; [ $(wc -l < {0}) -lt 2 ] || exit 7",
        marks.display()
    );
    let args = [
        "guard", "-q", "--json", "--fail", "-n", "5", "--", "sh", "-c", &script,
    ];
    let output = jitterscope(runs.path(), &args);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let series = json(&output);
    conforms("guard", &series);
    let codes: Vec<&Value> = iterations(&series)
        .iter()
        .map(|one| &one["exit_code"])
        .collect();
    assert_eq!(codes, [&Value::from(0), &Value::from(7)]);
    assert_eq!(series["headline"]["counted"], 2, "its time counts, too");
    assert_eq!(stored(runs.path()), 2);
    let killed = jitterscope(
        runs.path(),
        &["guard", "-q", "--", "sh", "-c", "kill -TERM $$"],
    );
    assert_eq!(killed.status.code(), Some(128 + 15));
    // Without a first iteration there is nothing to report.
    let missing = jitterscope(runs.path(), &["guard", "-q", "--", "/nowhere/at-all"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stdout.is_empty());
    assert!(
        stderr(&missing).contains("cannot be started"),
        "{}",
        stderr(&missing)
    );
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let guard = Command::new(program())
        .env("JITTERSCOPE_RUNS", runs.path())
        .args(["guard", "-n", "50", "--json", "--", "sleep", "0.4"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // At least one iteration is over when a second run has begun.
    let until = Instant::now() + Duration::from_secs(30);
    while stored(runs.path()) == 0 {
        assert!(Instant::now() < until, "nothing is stored");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = guard.id().to_string();
    let asked = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(asked.success());
    let output = guard.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let series = json(&output);
    conforms("guard", &series);
    assert_eq!(series["interrupted"], true, "{series:#}");
    let counted = series["headline"]["counted"].as_u64().unwrap();
    assert!((1..50).contains(&counted), "{series:#}");
    assert_eq!(stored(runs.path()), iterations(&series).len());
}
