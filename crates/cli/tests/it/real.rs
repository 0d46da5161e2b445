//! The command on this machine, as users run it. Tests that need root or tracefs print a note when they are skipped.

use crate::schema_check;

use jitterscope_testing::{Tmpfs, highest_cpu, is_root, tracefs, turn};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_jitterscope"))
}

fn jitterscope(runs: &Path, args: &[&str]) -> Output {
    Command::new(program())
        .args(args)
        .arg("--runs")
        .arg(runs)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}\n{}", stderr(output)))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether this is root, with kernel events.
fn can_trace() -> bool {
    if !is_root() {
        return false;
    }
    let dir = tempfile::tempdir().unwrap();
    let doctor = jitterscope(dir.path(), &["doctor", "--require", "tracefs"]);
    if doctor.status.success() {
        return true;
    }
    jitterscope_testing::skip(&stderr(&doctor));
    false
}

/// What a recording must not leave behind.
fn tracing_state() -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts
        .lines()
        .filter(|line| line.contains(" tracefs "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn record_and_report_print_the_same_json() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let before = tracing_state();
    let dir = tempfile::tempdir().unwrap();
    // The default follows the clock's own tail, which a busy host makes longer.
    let args = [
        "record",
        "--duration",
        "2s",
        "--label",
        "FIELDS",
        "--threshold",
        "300ns",
        "--json",
    ];
    let output = jitterscope(dir.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(tracing_state(), before, "the recording left a mount");
    let run = json(&output);
    assert_eq!(run["schema_version"], 2);
    assert_eq!(run["run"]["label"], "FIELDS");
    assert_eq!(run["probe"]["kind"], "spin");
    assert_eq!(run["probe"]["threshold_ns"], 300);
    let cpu = &run["probe"]["cpus"][0];
    for field in [
        "cpu",
        "samples",
        "samples_per_sec",
        "coverage",
        "floor_ns",
        "mean_ns",
        "stddev_ns",
        "max_ns",
        "stalls",
        "stolen_ns",
        "stolen_fraction",
        "dropped_records",
    ] {
        assert!(
            cpu[field].is_number(),
            "probe.cpus[].{field}: {}",
            cpu[field]
        );
    }
    for p in ["50", "90", "99", "99.9", "99.99", "99.999", "99.9999"] {
        assert!(!cpu["percentiles_ns"][p].is_null(), "percentile {p}");
    }
    assert!(cpu["coverage"].as_f64().unwrap() >= 0.9999);
    let attribution = &run["attribution"];
    assert!(
        attribution["events_in_gaps_fraction"].as_f64().unwrap() >= 0.999,
        "{attribution}"
    );
    let culprits = attribution["culprits"].as_array().unwrap();
    let explained: u64 = culprits
        .iter()
        .map(|c| c["total_ns"].as_u64().unwrap())
        .sum();
    let unexplained = attribution["unexplained"]["total_ns"].as_u64().unwrap();
    assert_eq!(
        explained + unexplained,
        attribution["stalled_ns"].as_u64().unwrap(),
        "to the nanosecond"
    );
    let classes: u64 = attribution["unexplained"]["by_class_ns"]
        .as_object()
        .unwrap()
        .values()
        .map(|v| v.as_u64().unwrap())
        .sum();
    assert_eq!(classes, unexplained);
    for culprit in culprits {
        for field in ["kind", "name"] {
            assert!(culprit[field].is_string(), "{culprit}");
        }
        for field in ["count", "total_ns", "share", "mean_ns", "max_ns"] {
            assert!(culprit[field].is_number(), "{culprit}");
        }
    }
    let worst = &run["worst"][0];
    let parts: u64 = worst["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["net_ns"].as_u64().unwrap())
        .sum();
    assert_eq!(parts, worst["duration_ns"].as_u64().unwrap());
    assert!(
        run["sources"]
            .as_array()
            .unwrap()
            .iter()
            .any(|s| s["name"] == "tracefs")
    );

    let again = jitterscope(dir.path(), &["report", "FIELDS", "--json"]);
    assert_eq!(json(&again), run, "a stored run reports what was printed");
    let text = jitterscope(dir.path(), &["report"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(
        text.lines().count() <= 24,
        "the answer is on one screen: {text}"
    );
    let full = jitterscope(dir.path(), &["report", "--full"]);
    let full = String::from_utf8_lossy(&full.stdout).into_owned();
    assert!(
        full.lines().all(|line| line.chars().count() <= 80),
        "{full}"
    );
    assert!(
        full.contains("HOW FAR TO TRUST IT") && full.contains("PERCENTILES"),
        "{full}"
    );
    one_stall_is_found_by_rank_number_and_time(dir.path());
    let list = json(&jitterscope(dir.path(), &["list", "--json"]));
    assert_eq!(list["runs"].as_array().unwrap().len(), 1, "{list}");
}

fn one_stall_is_found_by_rank_number_and_time(runs: &Path) {
    let stall = |args: &[&str]| {
        let output = jitterscope(runs, &[&["report", "--json"][..], args].concat());
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        json(&output)["stall"].clone()
    };
    let longest = stall(&["--worst", "1"]);
    assert_eq!(longest["rank"], 1);
    let of =
        |found: &Value| ["stall", "cpu", "duration_ns", "parts"].map(|field| found[field].clone());
    let number = longest["stall"].to_string();
    assert_eq!(of(&stall(&["--stall", &number])), of(&longest));
    let start = longest["start_realtime_ns"].as_u64().unwrap();
    assert_eq!(
        of(&stall(&["--at", &start.to_string()])),
        of(&longest),
        "nanoseconds since the epoch"
    );
    let millis = (start / 1_000_000).to_string();
    assert_eq!(
        of(&stall(&["--at", &millis])),
        of(&longest),
        "the longest of its millisecond"
    );
    for (args, why) in [
        (
            ["--stall", "18446744073709551615"],
            "no stall of that number",
        ),
        (["--worst", "4000000000"], "stalls"),
        (["--at", "2020-01-01T00:00:00Z"], "is not in it"),
        (["--at", "yesterday"], "21:40:07"),
    ] {
        let refused = jitterscope(runs, &[&["report"][..], &args].concat());
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&refused)
        );
        assert!(
            stderr(&refused).contains(why),
            "{args:?}: {}",
            stderr(&refused)
        );
    }
}

#[test]
fn a_limit_that_is_exceeded_ends_with_3_and_a_missing_source_with_4() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "record",
        "--duration",
        "300ms",
        "--warmup",
        "50ms",
        "--no-trace",
        "--quiet",
    ];
    let over = jitterscope(dir.path(), &[&args[..], &["--fail-above", "1ns"]].concat());
    assert_eq!(over.status.code(), Some(3), "{}", stderr(&over));
    let under = jitterscope(dir.path(), &[&args[..], &["--fail-above", "1h"]].concat());
    assert_eq!(under.status.code(), Some(0));
    // No unprivileged user may count SMIs and trace; root may not on every machine.
    let doctor = json(&jitterscope(dir.path(), &["doctor", "--json"]));
    let missing = doctor["sources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["status"] != "available");
    if let Some(source) = missing {
        let name = source["name"].as_str().unwrap();
        let required = jitterscope(dir.path(), &["doctor", "--require", name]);
        assert_eq!(required.status.code(), Some(4), "{}", stderr(&required));
        assert!(stderr(&required).contains(name));
    }
}

#[test]
fn ctrl_c_and_a_kill_keep_the_measurement() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let start = || {
        Command::new(program())
            .args([
                "record",
                "--duration",
                "60s",
                "--warmup",
                "50ms",
                "--quiet",
                "--runs",
            ])
            .arg(dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut interrupted = start();
    let heard = listen(&mut interrupted);
    std::thread::sleep(Duration::from_secs(3));
    signal(interrupted.id(), "INT");
    let ended = wait(&mut interrupted, Duration::from_secs(20));
    assert!(ended.success());
    let text = heard.join().unwrap();
    assert!(
        text.contains("\nculprit ") || text.contains("stalls"),
        "{text}"
    );

    let mut killed = start();
    std::thread::sleep(Duration::from_secs(3));
    signal(killed.id(), "KILL");
    wait(&mut killed, Duration::from_secs(20));
    let list = json(&jitterscope(dir.path(), &["list", "--json"]));
    assert_eq!(
        list["runs"].as_array().unwrap().len(),
        1,
        "only the interrupted one: {list}"
    );
    assert!(list["runs"][0]["interrupted"].as_bool().unwrap());
    let cleaned = json(&jitterscope(dir.path(), &["doctor", "--clean", "--json"]));
    let removed = cleaned["removed"].to_string();
    assert!(removed.contains("finished and marked killed"), "{removed}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    let list = json(&jitterscope(dir.path(), &["list", "--json"]));
    let runs = list["runs"].as_array().unwrap();
    let killed = runs.iter().filter(|run| run["killed"] == true);
    assert_eq!((runs.len(), killed.count()), (2, 1), "{list}");
    if is_root() {
        assert_eq!(instances(), Vec::<PathBuf>::new());
    }
}

fn instances() -> Vec<PathBuf> {
    let folder = tracefs().and_then(|root| fs::read_dir(root.join("instances")).ok());
    let ours = |p: &PathBuf| p.to_string_lossy().contains("jitterscope-");
    let all = folder.into_iter().flatten();
    all.map(|entry| entry.unwrap().path())
        .filter(ours)
        .collect()
}

#[test]
fn a_cpu_that_goes_offline_in_mid_run_keeps_what_was_measured() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let cpu = highest_cpu();
    let switch = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
    if cpu == 0 || !switch.exists() {
        jitterscope_testing::skip(&format!("CPU {cpu} cannot be taken offline"));
        return;
    }
    struct Online(PathBuf);
    impl Drop for Online {
        fn drop(&mut self) {
            fs::write(&self.0, "1").expect("the CPU must come back");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let list = cpu.to_string();
    let mut child = Command::new(program())
        .args([
            "record",
            "--cpus",
            &list,
            "--duration",
            "20s",
            "--json",
            "--quiet",
            "--runs",
        ])
        .arg(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let heard = listen(&mut child);
    std::thread::sleep(Duration::from_secs(3));
    let online = Online(switch);
    fs::write(&online.0, "0").unwrap();
    let ended = wait(&mut child, Duration::from_secs(30));
    drop(online);
    assert!(ended.success());
    assert!(
        started.elapsed() < Duration::from_secs(18),
        "it went on without its CPU"
    );
    let text = heard.join().unwrap();
    let run: Value = serde_json::from_str(&text).unwrap();
    let measured = &run["probe"]["cpus"][0];
    assert!(measured["samples"].as_u64().unwrap() > 1_000_000);
    assert_eq!(measured["ended_early"]["id"], "moved", "{measured}");
    assert_eq!(
        measured["ended_early"]["because"]["offline"], true,
        "{measured}"
    );
    assert!(run["warnings"].to_string().contains("cpu-ended-early"));
}

#[test]
fn a_full_disk_is_found_before_measuring() {
    let _turn = turn();
    if !is_root() {
        return;
    }
    let Some(disk) = Tmpfs::mount(8 << 20) else {
        return;
    };
    let output = jitterscope(disk.path(), &["record", "--duration", "30s", "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("MiB free"), "{}", stderr(&output));
}

/// Beside another thread, the throttled time ends when the injector raises the quota, without a record.
#[test]
fn a_quota_is_named_beside_a_busy_thread() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    if !Path::new("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists() {
        jitterscope_testing::skip("no control group of version 1 with a cpu controller");
        return;
    }
    let cpu = highest_cpu().to_string();
    let spawned = Command::new("nice")
        .args(["-n", "19", "taskset", "-c", &cpu])
        .args(["sh", "-c", "while :; do :; done"])
        .spawn();
    let Ok(mut busy) = spawned else {
        jitterscope_testing::skip("there is no nice");
        return;
    };
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = jitterscope(dir.path(), &["selftest", "--only", "quota", "--json"]);
    busy.kill().unwrap();
    busy.wait().unwrap();
    let report = json(&output);
    let row = &report["rows"][0];
    println!("{report:#}");
    assert_eq!(
        (&row["kind"], &row["passed"]),
        (&"quota".into(), &true.into()),
        "{report:#}"
    );
}

#[test]
fn known_disturbances_are_found_and_named() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let output = jitterscope(dir.path(), &["selftest", "--json"]);
    let report = json(&output);
    eprintln!("{}", serde_json::to_string_pretty(&report).unwrap());
    schema_check::conforms("selftest", &report);
    for row in report["rows"].as_array().unwrap() {
        assert_eq!(row["passed"], true, "{row}");
        let (named, injected) = (
            row["named"].as_u64().unwrap(),
            row["injected"].as_u64().unwrap(),
        );
        assert!(injected > 0 && named * 100 >= injected * 95, "{row}");
        // By chance alone nearly all would be named. If the CPU is mostly taken, long stalls leave few controls.
        let controls = row["controls"].as_u64().unwrap();
        let by_chance = row["named_when_shifted"].as_u64().unwrap();
        assert!(
            controls < 10 || by_chance * 4 < controls * 3,
            "named by chance: {row}"
        );
    }
    let of = |list: &str, kind: &str| {
        let rows = report[list].as_array().unwrap();
        rows.iter().find(|row| row["kind"] == kind).cloned()
    };
    for kind in [
        "fifo",
        "fair",
        "timer",
        "membarrier",
        "softirq",
        "kworker",
        "writeback",
        "quota",
        "stop",
        "trap",
    ] {
        match (of("rows", kind), of("skipped", kind)) {
            (Some(_), None) => {}
            (None, Some(skipped)) => {
                let why = skipped["reason"].as_str().unwrap();
                assert!(!why.is_empty(), "{skipped}");
                jitterscope_testing::skip(&format!("{kind}: {why}"));
            }
            other => panic!("{kind} neither ran nor was skipped, or both: {other:?}"),
        }
    }
    let limits = Path::new("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").exists();
    let certain = ["fifo", "timer", "stop"].into_iter();
    for kind in certain.chain(limits.then_some("quota")) {
        let too_busy =
            of("skipped", kind).is_some_and(|skipped| skipped["cause"]["id"] == "too-busy");
        assert!(
            too_busy || of("rows", kind).is_some(),
            "{kind} needs nothing but root: {report}"
        );
    }
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "selftest keeps its run only when asked to"
    );
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Reads a child's output as it arrives: a full pipe would block the child.
fn listen(child: &mut std::process::Child) -> std::thread::JoinHandle<String> {
    let mut stdout = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        text
    })
}

fn wait(child: &mut std::process::Child, patience: Duration) -> std::process::ExitStatus {
    let until = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > until {
            let _ = child.kill();
            panic!("it did not end within {patience:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
