//! Threads that are kept from running on the real machine: by a quota, a signal, throttling, or a trap. None of it may
//! be reported as idle latency or as the host's.

use crate::live;

use jitterscope_testing::{highest_cpu, instances_of};
use live::{can_trace, jitterscope, json, program, stderr, turn, until_it_measures};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A control group of version 1 with a quota. Dropping it moves its members up and removes it.
struct Group(PathBuf);

impl Group {
    /// `None`, with a note on stderr, if there is no such controller.
    fn make(name: &str, quota_us: u32) -> Option<Group> {
        let root = Path::new("/sys/fs/cgroup/cpu");
        if !root.join("cpu.cfs_quota_us").exists() {
            jitterscope_testing::skip("no control group of version 1 with a cpu controller");
            return None;
        }
        let folder = root.join(format!("jitterscope-test-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let group = Group(folder);
        fs::write(group.0.join("cpu.cfs_period_us"), "100000").unwrap();
        fs::write(group.0.join("cpu.cfs_quota_us"), quota_us.to_string()).unwrap();
        Some(group)
    }

    fn name(&self) -> String {
        format!("/{}", self.0.file_name().unwrap().to_string_lossy())
    }

    /// A command whose process joins the group before it begins.
    fn enter(&self, mut command: Command) -> Command {
        let tasks = self.0.join("cgroup.procs");
        let mut shell = Command::new("sh");
        shell
            .arg("-c")
            .arg(format!("echo $$ > {} && exec \"$@\"", tasks.display()))
            .arg("sh");
        shell.arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            if let Some(value) = value {
                shell.env(key, value);
            }
        }
        command.stdin(Stdio::null());
        shell.stdin(Stdio::null());
        shell
    }

    /// The number of throttled periods.
    fn throttled(&self) -> u64 {
        let stat = fs::read_to_string(self.0.join("cpu.stat")).unwrap();
        let line = stat
            .lines()
            .find_map(|line| line.strip_prefix("nr_throttled "))
            .unwrap();
        line.parse().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for tid in fs::read_to_string(self.0.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            let _ = fs::write("/sys/fs/cgroup/cpu/cgroup.procs", tid);
        }
        // The last process may still be exiting.
        let until = Instant::now() + Duration::from_secs(5);
        while fs::remove_dir(&self.0).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A process that ends with its owner.
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(pid: u32, name: &str) {
    assert!(
        Command::new("kill")
            .arg(format!("-{name}"))
            .arg(pid.to_string())
            .status()
            .unwrap()
            .success()
    );
}

/// All culprits and classes of a report: kind, name, time.
fn culprits(report: &Value) -> Vec<(String, String, u64)> {
    let attribution = &report["attribution"];
    let rows = [
        &attribution["culprits"],
        &attribution["unexplained"]["classes"],
    ]
    .into_iter();
    let listed = |row: &Value| {
        let text = |field: &str| row[field].as_str().unwrap().to_owned();
        (
            text("kind"),
            text("name"),
            row["total_ns"].as_u64().unwrap(),
        )
    };
    rows.flat_map(|rows| rows.as_array().unwrap())
        .map(listed)
        .collect()
}

fn total(culprits: &[(String, String, u64)], kind: &str) -> u64 {
    culprits
        .iter()
        .filter(|(of, ..)| of == kind)
        .map(|(.., ns)| ns)
        .sum()
}

fn warns(report: &Value, id: &str) -> bool {
    report["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .any(|warning| warning["id"] == id)
}

/// Checks that a new attribution of the stored run gives the same result.
fn assert_replays(runs: &Path, report: &Value) {
    crate::schema_check::conforms("report", report);
    let id = report["run"]["id"].as_str().unwrap();
    let again = jitterscope(runs, &["report", id, "--reattribute", "--json"]);
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(culprits(&json(&again)), culprits(report));
}

#[test]
fn a_followed_process_under_a_quota_is_throttled_not_idle() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let Some(group) = Group::make("attach", 10_000) else {
        return;
    };
    let mut busy = Command::new("sh");
    busy.args(["-c", "while :; do :; done"]);
    let busy = Owned(group.enter(busy).spawn().unwrap());
    std::thread::sleep(Duration::from_millis(500));
    let runs = tempfile::tempdir().unwrap();
    let before = group.throttled();
    let pid = busy.0.id().to_string();
    let output = jitterscope(
        runs.path(),
        &["attach", "--pid", &pid, "-d", "3s", "--json", "-q"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(group.throttled() > before + 10, "the quota did not bite");
    let report = json(&output);
    let listed = culprits(&report);
    let quota = total(&listed, "quota");
    let idle: u64 = listed
        .iter()
        .filter(|(_, name, _)| name == "idle exit")
        .map(|(.., ns)| ns)
        .sum();
    println!(
        "quota {quota} ns, idle exit {idle} ns, perhaps the quota's {} ns",
        perhaps(&report)
    );
    // On a busy machine other threads have its CPU while it is throttled.
    assert!(quota + perhaps(&report) > 10 * idle, "{listed:?}");
    assert!(warns(&report, "cpu-quota"), "{}", report["warnings"]);
    assert_replays(runs.path(), &report);
    if quota == 0 {
        eprintln!(
            "in part: others had its CPU whenever it was throttled, so that the quota is a possibility only"
        );
        return;
    }
    assert!(
        output_names(&report, &group.name()),
        "{:#}",
        report["attribution"]
    );
    assert_answered_by(runs.path(), "cfs-quota");
}

/// Checks that the plan for the latest run has this knob.
fn assert_answered_by(runs: &Path, knob: &str) {
    let cpu = highest_cpu().to_string();
    let plan = jitterscope(
        runs,
        &["tune", "plan", "--run", "latest", "--cpus", &cpu, "--json"],
    );
    assert!(plan.status.success(), "{}", stderr(&plan));
    crate::schema_check::conforms("tune-plan", &json(&plan));
    assert!(
        json(&plan).to_string().contains(&format!("\"{knob}\"")),
        "{:#}",
        json(&plan)
    );
}

#[test]
fn a_stopped_thread_neither_waits_nor_sleeps() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let mut busy = Command::new("sh");
    busy.args(["-c", "while :; do :; done"])
        .stdin(Stdio::null());
    let busy = Owned(busy.spawn().unwrap());
    let runs = tempfile::tempdir().unwrap();
    let pid = busy.0.id();
    let attach = Command::new(program())
        .env("JITTERSCOPE_RUNS", runs.path())
        .args([
            "attach",
            "--pid",
            &pid.to_string(),
            "-d",
            "6s",
            "--json",
            "-q",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // On a busy machine it takes a while to start.
    let until = Instant::now() + Duration::from_secs(20);
    while instances_of(attach.id()).is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(1500));
    signal(pid, "STOP");
    std::thread::sleep(Duration::from_secs(1));
    signal(pid, "CONT");
    let output = attach.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let thread = &report["threads"][0];
    let ns = |name: &str| thread[name].as_u64().unwrap();
    assert!(
        (800_000_000..2_000_000_000).contains(&ns("stopped_ns")),
        "{thread:#}"
    );
    assert!(ns("blocked_ns") < 100_000_000, "{thread:#}");
    let listed = culprits(&report);
    assert!(
        total(&listed, "stopped").abs_diff(ns("stopped_ns")) < 1_000_000,
        "{listed:?}"
    );
    let rows = report["attribution"]["culprits"].as_array().unwrap();
    let row = rows.iter().find(|row| row["kind"] == "stopped").unwrap();
    assert_eq!(row["sender"]["comm"], "kill", "{row:#}");
    let longest = &report["worst"][0];
    assert_eq!(
        (&longest["parts"][0]["kind"], &longest["parts"][0]["phase"]),
        (&"stopped".into(), &"stopped".into())
    );
    assert_replays(runs.path(), &report);
    let text = jitterscope(runs.path(), &["report"]);
    assert!(
        String::from_utf8_lossy(&text.stdout).contains("kept it stopped for"),
        "{:?}",
        text.stdout
    );
}

#[test]
fn a_thread_that_is_stopped_before_and_stays_so_is_reported_as_stopped() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let mut idle = Command::new("sleep");
    let idle = Owned(idle.arg("60").stdin(Stdio::null()).spawn().unwrap());
    let pid = idle.0.id();
    signal(pid, "STOP");
    std::thread::sleep(Duration::from_millis(200));
    let runs = tempfile::tempdir().unwrap();
    let output = jitterscope(
        runs.path(),
        &[
            "attach",
            "--pid",
            &pid.to_string(),
            "-d",
            "1s",
            "--json",
            "-q",
        ],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let thread = &report["threads"][0];
    assert!(
        thread["stopped_ns"].as_u64().unwrap() > 800_000_000,
        "{thread:#}"
    );
    assert_eq!(thread["blocked_ns"], 0, "{thread:#}");
    assert_replays(runs.path(), &report);
}

/// The time of the longest stalls in which another thread ran and the kernel counted the quota.
fn perhaps(report: &Value) -> u64 {
    let worst = report["worst"].as_array().unwrap().iter();
    let parts = worst.flat_map(|stall| stall["parts"].as_array().unwrap());
    let may_be = |part: &&Value| {
        part["evidence"]
            .as_str()
            .unwrap()
            .contains("perhaps of this thread")
    };
    parts
        .filter(may_be)
        .map(|part| part["net_ns"].as_u64().unwrap())
        .sum()
}

fn output_names(report: &Value, group: &str) -> bool {
    let culprits = report["attribution"]["culprits"].as_array().unwrap();
    culprits
        .iter()
        .any(|row| row["kind"] == "quota" && row["cgroup"] == group && row["quota_us"] == 10_000)
}

#[test]
fn a_recording_under_a_quota_is_reported_so_and_its_knob_is_the_quotas() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let Some(group) = Group::make("record", 20_000) else {
        return;
    };
    let runs = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let mut command = Command::new(program());
    command.env("JITTERSCOPE_RUNS", runs.path());
    command.args(["record", "--cpus", &cpu, "-d", "3s", "--json", "-q"]);
    let output = group.enter(command).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let listed = culprits(&report);
    let quota = total(&listed, "quota");
    println!(
        "quota {quota} ns, perhaps the quota's {} ns",
        perhaps(&report)
    );
    assert!(quota + perhaps(&report) > 0, "{listed:?}");
    assert!(
        !listed
            .iter()
            .any(|(kind, name, _)| kind == "thread" && name.starts_with("swapper")),
        "{listed:?}"
    );
    assert!(warns(&report, "cpu-quota"), "{}", report["warnings"]);
    assert_replays(runs.path(), &report);
    if quota == 0 {
        eprintln!(
            "in part: others had the CPU whenever it was throttled, so that the quota is a possibility only"
        );
        return;
    }
    let rows = report["attribution"]["culprits"].as_array().unwrap();
    let row = rows.iter().find(|row| row["kind"] == "quota").unwrap();
    assert_eq!(
        (&row["cgroup"], &row["quota_us"]),
        (&group.name().into(), &20_000.into()),
        "{row:#}"
    );
    assert_answered_by(runs.path(), "cfs-quota");
}

#[test]
fn a_recording_that_is_stopped_for_a_second_names_the_sender() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let recorder = Command::new(program())
        .env("JITTERSCOPE_RUNS", runs.path())
        .args(["record", "--cpus", &cpu, "-d", "4s", "--json", "-q"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    until_it_measures(recorder.id());
    signal(recorder.id(), "STOP");
    std::thread::sleep(Duration::from_secs(1));
    signal(recorder.id(), "CONT");
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let listed = culprits(&report);
    println!("{listed:?}");
    let stopped = total(&listed, "stopped");
    assert!(stopped > 500_000_000, "{listed:?}");
    assert!(
        !listed
            .iter()
            .any(|(kind, name, _)| kind == "thread" && name.starts_with("swapper")),
        "{listed:?}"
    );
    let rows = report["attribution"]["culprits"].as_array().unwrap();
    let row = rows.iter().find(|row| row["kind"] == "stopped").unwrap();
    assert_eq!(row["sender"]["comm"], "kill", "{row:#}");
    assert_replays(runs.path(), &report);
}

#[test]
fn two_recordings_on_one_cpu_are_refused() {
    let _turn = turn();
    let runs = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let first = Command::new(program())
        .env("JITTERSCOPE_RUNS", runs.path())
        .args(["record", "--cpus", &cpu, "-d", "30s", "--no-trace", "-q"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let first = Owned(first);
    std::thread::sleep(Duration::from_millis(1500));
    let second = jitterscope(
        runs.path(),
        &["record", "--cpus", &cpu, "-d", "1s", "--no-trace", "-q"],
    );
    assert!(!second.status.success());
    let said = stderr(&second);
    assert!(
        said.contains("being measured by another recording"),
        "{said}"
    );
    assert!(
        said.contains(&format!("process {}", first.0.id())),
        "{said}"
    );
    drop(first);
    let third = jitterscope(
        runs.path(),
        &["record", "--cpus", &cpu, "-d", "1s", "--no-trace", "-q"],
    );
    assert!(third.status.success(), "{}", stderr(&third));
}

#[test]
fn a_followed_real_time_thread_is_reported_as_throttled() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let number = |name: &str| -> i64 {
        fs::read_to_string(format!("/proc/sys/kernel/{name}"))
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    };
    let (runtime, period) = (number("sched_rt_runtime_us"), number("sched_rt_period_us"));
    if !(0..period).contains(&runtime) {
        jitterscope_testing::skip("kernel.sched_rt_runtime_us throttles nothing");
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let busy = Command::new("chrt")
        .args([
            "-f",
            "5",
            "taskset",
            "-c",
            &cpu,
            "sh",
            "-c",
            "while :; do :; done",
        ])
        .stdin(Stdio::null())
        .spawn();
    let Ok(busy) = busy else {
        jitterscope_testing::skip("there is no chrt");
        return;
    };
    let busy = Owned(busy);
    std::thread::sleep(Duration::from_millis(300));
    let pid = busy.0.id().to_string();
    let output = jitterscope(
        runs.path(),
        &["attach", "--pid", &pid, "-d", "4s", "--json", "-q"],
    );
    drop(busy);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let listed = culprits(&report);
    println!("{listed:?}");
    let waited = report["threads"][0]["waiting_ns"].as_u64().unwrap();
    let throttled = total(&listed, "rt_throttle");
    if waited < 20_000_000 {
        jitterscope_testing::skip("this kernel did not throttle it");
        return;
    }
    // All except the time of more urgent threads and of interrupts.
    assert!(
        throttled * 10 > waited * 8,
        "waited for {waited} ns: {listed:?}"
    );
    assert!(
        !listed.iter().any(|(_, name, _)| name == "idle exit"),
        "{listed:?}"
    );
    assert_replays(runs.path(), &report);
}

/// A thread with 2 ms in each 10 ms that always wants to run. `None`, with a note on stderr, if the kernel refuses.
fn deadline_spinner() -> Option<Owned> {
    in_deadline_class(&["sh", "-c", "while :; do :; done"])
}

/// A command in the deadline class, 2 ms of each period. The period is no multiple of the tick's: a thread that gives
/// up its periods would begin each of them, and yield, beside a tick.
fn in_deadline_class(command: &[&str]) -> Option<Owned> {
    let parameters = [
        "--sched-runtime",
        "2000000",
        "--sched-deadline",
        "10300000",
        "--sched-period",
        "10300000",
    ];
    let spawned = Command::new("chrt")
        .arg("-d")
        .args(parameters)
        .arg("0")
        .args(command)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(spawned) = spawned else {
        jitterscope_testing::skip("there is no chrt");
        return None;
    };
    let mut spinner = Owned(spawned);
    std::thread::sleep(Duration::from_millis(500));
    if let Some(status) = spinner.0.try_wait().unwrap() {
        let mut said = String::new();
        spinner
            .0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        jitterscope_testing::skip(&format!(
            "this machine refuses a thread of the deadline class ({status}): {}",
            said.trim()
        ));
        return None;
    }
    // The policy is the 39th field after the name; 6 is SCHED_DEADLINE.
    let stat = fs::read_to_string(format!("/proc/{}/stat", spinner.0.id())).unwrap();
    let policy = stat.rsplit(')').next().unwrap().split_whitespace().nth(38);
    assert_eq!(policy, Some("6"), "it spins in another class");
    Some(spinner)
}

#[test]
fn a_followed_deadline_thread_is_reported_to_have_used_up_its_own_budget() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let Some(spinner) = deadline_spinner() else {
        return;
    };
    let runs = tempfile::tempdir().unwrap();
    let pid = spinner.0.id().to_string();
    let output = jitterscope(
        runs.path(),
        &["attach", "--pid", &pid, "-d", "3s", "--json", "-q"],
    );
    drop(spinner);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let listed = culprits(&report);
    let thread = &report["threads"][0];
    let (waited, ran) = (
        thread["waiting_ns"].as_u64().unwrap(),
        thread["running_ns"].as_u64().unwrap(),
    );
    println!("ran for {ran} ns, waited for {waited} ns: {listed:?}");
    assert!(waited > ran, "it was not throttled: {thread:#}");
    let budget: u64 = listed
        .iter()
        .filter(|(_, name, _)| name == "deadline budget")
        .map(|(.., ns)| ns)
        .sum();
    // All except interrupts, which are reported as such.
    assert!(
        budget * 10 > waited * 8,
        "waited for {waited} ns: {listed:?}"
    );
    assert!(
        !listed
            .iter()
            .any(|(_, name, _)| name == "runnable but idle"),
        "{listed:?}"
    );
    // If the CPU is idle meanwhile, it exits idle once a period, when the budget is back: microseconds of the 8 ms.
    let idle: u64 = listed
        .iter()
        .filter(|(_, name, _)| name == "idle exit")
        .map(|(.., ns)| ns)
        .sum();
    assert!(idle * 50 < waited, "waited for {waited} ns: {listed:?}");
    assert_eq!(total(&listed, "quota"), 0, "{listed:?}");
    assert_replays(runs.path(), &report);
}

#[test]
fn a_deadline_thread_that_gives_up_its_periods_is_reported_so() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    // System call 24 is sched_yield on x86-64, 124 elsewhere.
    let number = if cfg!(target_arch = "x86_64") {
        24
    } else {
        124
    };
    let script =
        format!("while (1) {{ for (my $i = 0; $i < 2000; $i++) {{}} syscall({number}); }}");
    let Some(thread) = in_deadline_class(&["perl", "-e", &script]) else {
        return;
    };
    let runs = tempfile::tempdir().unwrap();
    let pid = thread.0.id().to_string();
    let output = jitterscope(
        runs.path(),
        &["attach", "--pid", &pid, "-d", "3s", "--json", "-q"],
    );
    drop(thread);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let listed = culprits(&report);
    let waited = report["threads"][0]["waiting_ns"].as_u64().unwrap();
    let of = |name: &str| -> u64 {
        let named = listed.iter().filter(|(_, of, _)| of == name);
        named.map(|(.., ns)| ns).sum()
    };
    println!("waited for {waited} ns: {listed:?}");
    // All except interrupts, and the budget where other threads delayed it.
    assert!(of("yielded its period") * 10 > waited * 8, "{listed:?}");
    assert!(of("deadline budget") * 10 < waited, "{listed:?}");
    assert_replays(runs.path(), &report);
}

#[test]
fn a_deadline_thread_beside_a_probe_is_named_with_its_class() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let Some(spinner) = deadline_spinner() else {
        return;
    };
    let runs = tempfile::tempdir().unwrap();
    // A thread of this class may not be pinned: every CPU has a probe.
    let output = jitterscope(
        runs.path(),
        &["record", "--cpus", "all", "-d", "2s", "--json", "-q"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let tid = u64::from(spinner.0.id());
    let rows = report["attribution"]["culprits"].as_array().unwrap();
    let row = rows
        .iter()
        .find(|row| row["kind"] == "thread" && row["tid"] == tid);
    let row = row.unwrap_or_else(|| panic!("{:#}", report["attribution"]));
    println!("{row}");
    assert_eq!(row["class"], "deadline", "{row:#}");
    let measured = report["probe"]["total"]["measured_ns"].as_u64().unwrap();
    let share = row["total_ns"].as_u64().unwrap() as f64 / measured as f64;
    // 2 ms of 10 on one of the CPUs, exactly as its parameters grant.
    let of_one = share * report["probe"]["cpus"].as_array().unwrap().len() as f64;
    assert!((0.1..0.3).contains(&of_one), "{of_one}: {row:#}");
    assert_replays(runs.path(), &report);
}
