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

#[test]
fn a_busy_cpu_makes_it_wait_in_vain_and_that_is_marked() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let thief = Thief::on(highest_cpu());
    let args = [
        "guard",
        "--json",
        "-n",
        "1",
        "--wait-quiet",
        "3s",
        "--",
        "true",
    ];
    let output = jitterscope(runs.path(), &args);
    drop(thief);
    let series = json(&output);
    conforms("guard", &series);
    let wait = &iterations(&series)[0]["wait"];
    assert_eq!(wait["quiet"], false, "{series:#}");
    assert!(
        wait["waited_ns"].as_u64().unwrap() >= 3_000_000_000,
        "{wait}"
    );
    assert!(wait["busy_fraction"].as_f64().unwrap() > 0.3, "{wait}");
    let said = stderr(&output);
    assert!(said.contains("waiting for quiet, 3.00 s at most"), "{said}");
    assert!(said.contains("for quiet in vain"), "{said}");
}

/// A file as pytest-benchmark or hyperfine wrote it.
fn written_by(tool: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../analyze/tests/fixtures");
    let file = fixtures.join("benchmarks").join(format!("{tool}.json"));
    file.to_str().unwrap().to_owned()
}

#[test]
fn benchmarks_of_a_tool_are_read_after_each_iteration_and_are_in_the_files() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let file = |name: &str| runs.path().join(name).to_str().unwrap().to_owned();
    let (found, metrics, page) = (file("found.json"), file("b.json"), file("p.md"));
    let results = format!("pytest-benchmark={found}");
    // The third time, the tool writes nothing.
    let script = format!(
        "echo x >> {0}; [ $(wc -l < {0}) -ge 3 ] || cp {1} {found}",
        file("marks"),
        written_by("pytest")
    );
    let args = [
        "guard",
        "-q",
        "--json",
        "-n",
        "5",
        "--results",
        &results,
        "--bencher",
        &metrics,
        "--markdown",
        &page,
        "--",
        "sh",
        "-c",
        &script,
    ];
    let output = jitterscope(runs.path(), &args);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("wrote no results"),
        "{}",
        stderr(&output)
    );
    let series = json(&output);
    conforms("guard", &series);
    assert_eq!(iterations(&series).len(), 3, "what was measured is kept");
    assert_eq!(
        iterations(&series)[2]["benchmarks"],
        Value::Array(Vec::new())
    );
    let one = &series["benchmarks"][0];
    assert_eq!(one["name"], "test_b.py::test_sum[10]", "{series:#}");
    assert_eq!(
        (&one["iterations"], &one["median_ns"]),
        (&2.into(), &555.0.into())
    );
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let file: Value = serde_json::from_str(&read(&metrics)).unwrap();
    let latency = &file["guard/test_b.py::test_sum[10]"]["latency"];
    assert_eq!(latency["value"].as_f64(), Some(555.0), "{file:#}");
    assert!(read(&page).contains("| 555 ns |"), "{}", read(&page));
    // It must not overwrite what the tool wrote.
    let args = [
        "guard",
        "--results",
        &results,
        "--export-json",
        &found,
        "--",
        "true",
    ];
    let same = jitterscope(runs.path(), &args);
    assert_eq!(same.status.code(), Some(2), "{}", stderr(&same));
}

#[test]
fn stored_times_are_compared_with_their_error() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let times = runs.path().join("times.json");
    let times = times.to_str().unwrap();
    let series = |options: &[&str]| {
        let first = ["guard", "-q", "--json", "-n", "3"];
        let command = ["--", "sleep", "0.05"];
        json(&jitterscope(
            runs.path(),
            &[&first[..], options, &command].concat(),
        ))
    };
    let first = series(&["--export-json", times]);
    assert_eq!(first["baseline"], Value::Null);
    // The file may be replaced by the new times.
    let second = series(&["--baseline", times, "--export-json", times]);
    conforms("guard", &second);
    let change = &second["baseline"];
    assert_eq!(change["command"], "sleep 0.05", "{second:#}");
    assert_eq!(
        (&change["by_guard"], &change["counted"]),
        (&true.into(), &3.into())
    );
    assert_eq!(change["median_ns"], first["headline"]["median_ns"]);
    let bound = |name: &str| change["change"][name].as_f64().unwrap();
    let middle = change["change_fraction"].as_f64().unwrap();
    assert!(
        bound("low") <= middle && middle <= bound("high"),
        "{change}"
    );
    let hyperfines = written_by("hyperfine");
    let args = ["guard", "-q", "--baseline", &hyperfines, "--", "true"];
    let output = jitterscope(runs.path(), &args);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("none of its 4 commands"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_real_hyperfine_and_pytest_benchmark_are_read() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let series = |tool: &str, command: &[&str]| {
        let results = format!("{tool}={}/found.json", runs.path().display());
        let first = [
            "guard",
            "-q",
            "--json",
            "-n",
            "2",
            "--results",
            &results,
            "--",
        ];
        let output = jitterscope(runs.path(), &[&first[..], command].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let series = json(&output);
        conforms("guard", &series);
        series
    };
    let found = runs.path().join("found.json");
    let found = found.to_str().unwrap();
    if Command::new("hyperfine").arg("--version").output().is_ok() {
        let options = ["hyperfine", "-N", "-r", "3", "--export-json", found];
        let series = series(
            "hyperfine",
            &[&options[..], &["sleep 0.01", "sleep 0.02"]].concat(),
        );
        let one = &series["benchmarks"][1];
        assert_eq!(
            (&one["name"], &one["iterations"]),
            (&"sleep 0.02".into(), &2.into())
        );
        assert!(one["min_ns"].as_f64().unwrap() > 20e6, "{one}");
        assert_eq!(iterations(&series)[0]["benchmarks"][0]["samples"], 3);
    } else {
        jitterscope_testing::skip("hyperfine is not installed (apt-get install hyperfine)");
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let packages = ["pytest==8.4.2", "pytest-benchmark==5.2.3"];
    let Some(folder) = jitterscope_testing::python(target, &packages) else {
        return;
    };
    let test = runs.path().join("test_it.py");
    std::fs::write(
        &test,
        "def test_it(benchmark):\n    benchmark(lambda: sum(range(1000)))\n",
    )
    .unwrap();
    let python = folder.join("bin/python");
    let written = format!("--benchmark-json={found}");
    let command = [
        python.to_str().unwrap(),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--benchmark-max-time=0.05",
        &written,
        test.to_str().unwrap(),
    ];
    let series = series("pytest-benchmark", &command);
    let one = &series["benchmarks"][0];
    assert!(
        one["name"]
            .as_str()
            .unwrap()
            .ends_with("test_it.py::test_it"),
        "{one}"
    );
    assert!(one["median_ns"].as_f64().unwrap() > 100.0, "{one}");
}
