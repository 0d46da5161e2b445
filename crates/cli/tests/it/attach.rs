//! `attach` on threads with known behaviour, compared with `perf sched timehist`.

use crate::live;

use jitterscope_model::{CpuId, CpuSet};
use jitterscope_platform::{current_tid, name_current_thread, pin_current_thread};
use live::{can_trace, jitterscope, json, program, stderr, turn};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A thread of the test with a name and a CPU.
struct Known {
    tid: i32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Known {
    /// Calls `body` repeatedly.
    fn start(name: &'static str, cpu: CpuId, mut body: impl FnMut() + Send + 'static) -> Known {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, tid) = channel();
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            name_current_thread(name);
            pin_current_thread(cpu).unwrap();
            sender.send(current_tid()).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                body();
            }
        });
        Known {
            tid: tid.recv().unwrap(),
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn spin(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

fn threads(report: &Value) -> &Vec<Value> {
    report["threads"].as_array().unwrap()
}

fn thread(report: &Value, tid: i32) -> &Value {
    threads(report)
        .iter()
        .find(|thread| thread["tid"] == tid)
        .unwrap_or_else(|| panic!("{report:#}"))
}

fn ns(thread: &Value, name: &str) -> f64 {
    thread[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} in {thread}"))
}

/// Checks that the times of a thread sum to the time in which it was followed.
fn assert_whole(thread: &Value) -> f64 {
    let sum: f64 = [
        "running_ns",
        "waiting_ns",
        "stopped_ns",
        "blocked_ns",
        "unknown_ns",
    ]
    .iter()
    .map(|name| ns(thread, name))
    .sum();
    assert!(sum > 0.0, "{thread}");
    sum
}

#[test]
fn a_thread_that_shares_its_cpu_is_reported_with_the_others() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let victim = Known::start("at-victim", CpuId(0), || spin(Duration::from_millis(1)));
    let _rival = Known::start("at-rival", CpuId(0), || {
        std::thread::sleep(Duration::from_millis(8));
        spin(Duration::from_millis(2));
    });
    let tid = victim.tid.to_string();
    let output = jitterscope(
        runs.path(),
        &["attach", "--tid", &tid, "-d", "2s", "--json", "-q"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    assert_eq!(threads(&report).len(), 1, "{report:#}");
    let victim = thread(&report, victim.tid);
    let all = assert_whole(victim);
    assert!(ns(victim, "unknown_ns") < 0.05 * all, "{victim}");
    assert_eq!(ns(victim, "blocked_ns"), 0.0, "it never sleeps: {victim}");
    let rival = victim["ran_instead"]
        .as_array()
        .unwrap()
        .iter()
        .find(|ran| ran["name"] == "at-rival");
    let rival = rival.unwrap_or_else(|| panic!("the rival is not named: {victim:#}"));
    // It runs a fifth of the time if it is alone, and each turn takes the CPU from the victim.
    assert!(rival["count"].as_u64().unwrap() >= 20, "{rival}");
    assert!(ns(rival, "total_ns") > 0.02 * all, "{rival}");
    let kept = ns(victim, "running_ns") + ns(victim, "waiting_ns");
    assert!(kept > 0.9 * all, "{victim}");
    let blamed = report["worst"].as_array().unwrap().iter().any(|stall| {
        stall["parts"]
            .as_array()
            .unwrap()
            .iter()
            .any(|part| part["name"] == "at-rival")
    });
    assert!(blamed, "{:#}", report["worst"]);
    // The stored run gives the same result.
    let again = json(&jitterscope(runs.path(), &["report", "--json"]));
    assert_eq!(again["threads"], report["threads"]);
    assert_eq!(again["worst"], report["worst"]);
}

#[test]
fn the_exit_code_of_a_command_that_fails_is_passed_on() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let ended = |args: &[&str]| {
        jitterscope(runs.path(), &[&["attach", "-q"], args].concat())
            .status
            .code()
    };
    assert_eq!(ended(&["--", "sh", "-c", "exit 7"]), Some(7));
    assert_eq!(ended(&["--", "sh", "-c", "kill -TERM $$"]), Some(128 + 15));
    assert_eq!(ended(&["--", "true"]), Some(0));
    // After a failed command the condition does not apply; after success it decides.
    let never = ["--fail-if", "max>0ns"];
    assert_eq!(
        ended(&[&never[..], &["--", "sh", "-c", "exit 7"]].concat()),
        Some(7)
    );
    assert_eq!(
        ended(
            &[
                &never[..],
                &[
                    "--",
                    "sh",
                    "-c",
                    "i=0; while [ $i -lt 9 ]; do sleep 0.01; i=$((i+1)); done"
                ]
            ]
            .concat()
        ),
        Some(3)
    );
    // A command that `attach` ended at the time limit did not fail.
    assert_eq!(ended(&["-d", "300ms", "--", "sleep", "60"]), Some(0));
}

#[test]
fn a_sleeper_is_blocked_and_found_by_name() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let sleeper = Known::start("at-sleeper", CpuId(0), || {
        std::thread::sleep(Duration::from_millis(20))
    });
    let output = jitterscope(
        runs.path(),
        &["attach", "--comm", "at-sleeper", "-d", "1s", "--json", "-q"],
    );
    let report = json(&output);
    let thread = thread(&report, sleeper.tid);
    assert_whole(thread);
    let sleeps = thread["voluntary_switches"].as_u64().unwrap();
    assert!(
        (2..=50).contains(&sleeps),
        "one each 20 ms at most: {thread}"
    );
    // Regardless of waits in between; the first and the last may be cut.
    let blocked = ns(thread, "blocked_ns");
    assert!(blocked >= 20e6 * (sleeps - 2) as f64, "{thread}");
}

/// A shell that runs the same program repeatedly. Dropping it ends it with its child.
struct Again(std::process::Child);

impl Drop for Again {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn processes_that_come_by_exec_are_followed_by_their_name() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let sleeper = runs.path().join("at-exec-slp");
    std::fs::copy("/bin/sleep", &sleeper).unwrap();
    let script = format!("while :; do {} 0.05; done", sleeper.display());
    let _again = Again(
        Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let args = [
        "attach",
        "--comm",
        "at-exec-slp",
        "--wait",
        "-d",
        "2s",
        "--json",
        "-q",
    ];
    let output = jitterscope(runs.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    // All except the first, which was already running, and the last, which the end of the recording may cut.
    let until = |thread: &&Value| thread["until_ticks"].as_u64();
    let end = threads(&report).iter().map(|thread| until(&thread)).max();
    let ended = |thread: &&Value| thread["exited"] == true && Some(until(thread)) < end;
    let whole: Vec<f64> = threads(&report)
        .iter()
        .filter(ended)
        .map(assert_whole)
        .collect();
    let long = whole.iter().filter(|ns| **ns >= 45e6).count();
    assert!(long >= 3, "{whole:?}");
    let unmet: u64 = (whole.len() - long) as u64;
    let sender = report["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .any(|warning| warning["id"] == "not-followed");
    assert!(
        unmet <= 1 || sender,
        "{unmet} of {} were followed for a part only, and nobody says so",
        whole.len()
    );
    assert!(unmet <= 2, "they are met by exec: {whole:?}");
}

#[test]
fn a_commands_processes_are_followed_from_birth_to_death() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let script = "for i in 1 2 3; do sleep 0.05; done; exit 3";
    let output = jitterscope(
        runs.path(),
        &["attach", "--json", "-q", "--", "sh", "-c", script],
    );
    assert_eq!(
        output.status.code(),
        Some(3),
        "the command's own: {}",
        stderr(&output)
    );
    let report = json(&output);
    let sleeps: Vec<&Value> = threads(&report)
        .iter()
        .filter(|thread| thread["comm"] == "sleep")
        .collect();
    assert_eq!(sleeps.len(), 3, "{report:#}");
    for sleep in sleeps {
        assert_eq!(
            (&sleep["appeared"], &sleep["exited"]),
            (&true.into(), &true.into()),
            "{sleep}"
        );
        assert!(ns(sleep, "blocked_ns") > 40e6, "{sleep}");
        assert_whole(sleep);
    }
    let warnings: Vec<&str> = report["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|w| w["id"].as_str())
        .collect();
    assert!(
        warnings.contains(&"command-failed"),
        "its status is reported: {warnings:?}"
    );
}

#[test]
fn a_command_that_does_not_end_is_ended_with_the_time() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let output = jitterscope(
        runs.path(),
        &[
            "attach", "-d", "300ms", "-q", "--json", "--", "sleep", "600",
        ],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(began.elapsed() < Duration::from_secs(60));
    assert_eq!(threads(&json(&output))[0]["comm"], "sleep");
}

#[test]
fn what_cannot_be_followed_is_said() {
    let runs = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], says: &str| {
        let output = jitterscope(runs.path(), args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(says),
            "{args:?}: {}",
            stderr(&output)
        );
    };
    refused(&["attach"], "nothing to follow");
    refused(&["attach", "--pid", "4194303"], "no process 4194303");
    refused(&["attach", "--tid", "4194303"], "no thread 4194303");
    refused(
        &["attach", "--comm", "nobody-has-this"],
        "no thread is called 'nobody-has-this'",
    );
    refused(
        &["attach", "--pid", "1", "--comm", "x"],
        "cannot be used with",
    );
    refused(&["attach", "--pid", "0"], "0 is not in");
    let left: Vec<_> = std::fs::read_dir(runs.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_time_begins_with_the_thread_that_is_waited_for() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let waiting = Command::new(program())
        .env("JITTERSCOPE_RUNS", runs.path())
        .args([
            "attach",
            "--comm",
            "at-awaited",
            "--wait",
            "-d",
            "500ms",
            "--json",
            "-q",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Longer than the whole measurement.
    std::thread::sleep(Duration::from_millis(1500));
    let awaited = Known::start("at-awaited", CpuId(0), || {
        spin(Duration::from_millis(1));
        std::thread::sleep(Duration::from_millis(1));
    });
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let followed = assert_whole(thread(&report, awaited.tid));
    assert!(
        followed >= 500e6,
        "followed for {followed} ns only: {report:#}"
    );
    let met = report["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .all(|warning| warning["id"] != "owner-not-met");
    assert!(met, "{report:#}");
}

#[test]
fn run_and_wait_agree_with_perf_sched_timehist() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    if Command::new("perf")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_err()
    {
        jitterscope_testing::skip("perf is not installed (Debian's linux-perf)");
        return;
    }
    let _mounts = PerfsMount::watch();
    let Some(cpu) = traced_idle_cpu() else {
        jitterscope_testing::skip(
            "the kernel records no switches of any CPU's idle thread, so perf cannot tell",
        );
        return;
    };
    // If the kernel does not record some threads, perf counts their time for the next thread.
    for _ in 0..TRIES {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("perf.data");
        let report = beside_perf(&data, dir.path(), cpu);
        if !has_unrecorded_switches(&report, cpu) {
            compare(&report, &data);
            return;
        }
    }
    jitterscope_testing::skip(&format!(
        "in {TRIES} tries the kernel never recorded all switches of CPU {cpu}, so perf is wrong"
    ));
}

/// The number of attempts to get a recording with all switches.
const TRIES: u32 = 8;

/// Two processes that share a CPU, each computing and sleeping, recorded by both tools.
fn beside_perf(data: &Path, dir: &Path, cpu: u32) -> Value {
    let busy = "i=0; while [ $i -lt 25 ]; do j=0; while [ $j -lt 15000 ]; do j=$((j+1)); done; \
                sleep 0.01; i=$((i+1)); done";
    let both = format!("({busy}) & ({busy}) & wait");
    let output = Command::new("perf")
        .args(["sched", "record", "-q", "-k", "CLOCK_MONOTONIC_RAW", "-o"])
        .arg(data)
        .arg("--")
        .arg(program())
        .args([
            "attach",
            "--json",
            "-q",
            "--",
            "taskset",
            "-c",
            &cpu.to_string(),
            "sh",
            "-c",
            &both,
        ])
        .env("JITTERSCOPE_RUNS", dir.join("runs"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    json(&output)
}

/// Whether the tool reported unrecorded switches on this CPU.
fn has_unrecorded_switches(report: &Value, cpu: u32) -> bool {
    let warnings = report["warnings"].as_array().unwrap();
    let mut of_it = warnings
        .iter()
        .filter(|warning| warning["id"] == "unrecorded-switches");
    of_it.any(|warning| {
        warning["cpus"]
            .as_str()
            .unwrap()
            .parse::<CpuSet>()
            .unwrap()
            .contains(CpuId(cpu))
    })
}

fn compare(report: &Value, data: &Path) {
    let mut compared = 0;
    for thread in threads(report) {
        // Short threads consist mostly of their start and end, where the two recordings need not agree.
        if ns(thread, "running_ns") < 50e6 {
            continue;
        }
        let (wait, delay, run) = timehist(data, thread["tid"].as_i64().unwrap());
        let near = |name: &str, ours: f64, perfs: f64| {
            let off = (ours - perfs).abs() / perfs.max(1e6);
            assert!(
                off < 0.01,
                "{name}: {ours} ns here, {perfs} ns in perf ({off:.4}): {thread}"
            );
        };
        near("run", ns(thread, "running_ns"), run);
        // perf's "wait time" spans from one switch to the next, including the delay after the wake-up.
        near(
            "wait",
            ns(thread, "blocked_ns") + ns(thread, "waiting_ns"),
            wait,
        );
        let woken = ns(thread, "waiting_ns") - ns(thread, "preempted_ns");
        assert!(
            (woken - delay).abs() < 0.01 * (wait + run),
            "{woken} and {delay}: {thread}"
        );
        compared += 1;
    }
    assert!(compared >= 2, "{report:#}");
}

/// perf mounts tracefs and leaves it mounted; this restores the previous state.
struct PerfsMount {
    before: bool,
}

const TRACEFS: &str = "/sys/kernel/tracing";

impl PerfsMount {
    fn watch() -> PerfsMount {
        PerfsMount {
            before: PerfsMount::is_there(),
        }
    }

    fn is_there() -> bool {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts
            .lines()
            .any(|line| line.contains(&format!(" {TRACEFS} ")))
    }
}

impl Drop for PerfsMount {
    fn drop(&mut self) {
        if !self.before && PerfsMount::is_there() {
            // If another process uses it now, it stays.
            let _ = Command::new("umount").arg(TRACEFS).status();
        }
    }
}

/// A CPU whose idle thread's switches the kernel records. Some virtual machines do not, on all or some CPUs; perf's run
/// times are wrong then, because it counts idle time for the next thread.
fn traced_idle_cpu() -> Option<u32> {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("perf.data");
    let recorded = Command::new("perf")
        .args(["record", "-q", "-a", "-e", "sched:sched_switch", "-o"])
        .arg(&data)
        .args(["--", "sleep", "0.3"])
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let script = Command::new("perf")
        .args(["script", "-i"])
        .arg(&data)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&script.stdout).into_owned();
    (0..64).find(|cpu| text.contains(&format!("prev_comm=swapper/{cpu} ")))
}

/// The sums of a thread's wait time, scheduling delay and run time, nanoseconds.
fn timehist(data: &Path, tid: i64) -> (f64, f64, f64) {
    let output = Command::new("perf")
        .args(["sched", "timehist", "--tid", &tid.to_string(), "-i"])
        .arg(data)
        .output()
        .unwrap();
    let mut sums = (0.0, 0.0, 0.0);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // The second field of a row is the CPU in brackets; the last fields are the three times in ms.
        let [.., wait, delay, run] = fields[..] else {
            continue;
        };
        if !fields[1].starts_with('[') {
            continue;
        }
        if let (Ok(wait), Ok(delay), Ok(run)) = (
            wait.parse::<f64>(),
            delay.parse::<f64>(),
            run.parse::<f64>(),
        ) {
            // For a new thread perf reports the wait for its first run only as a delay.
            let first = if sums.2 == 0.0 && wait == 0.0 {
                delay
            } else {
                0.0
            };
            sums = (
                sums.0 + (wait + first) * 1e6,
                sums.1 + delay * 1e6,
                sums.2 + run * 1e6,
            );
        }
    }
    sums
}

/// A process with a common name, of this user or another.
fn of_name(script: &Path, user: Option<&str>) -> Child {
    let mut command = match user {
        None => Command::new(script),
        Some(user) => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
            command.arg(script);
            command
        }
    };
    let child = command.stdin(Stdio::null()).spawn().unwrap();
    let comm = format!("/proc/{}/comm", child.id());
    let until = Instant::now() + Duration::from_secs(20);
    while std::fs::read_to_string(&comm).unwrap().trim() != "at-shared" {
        assert!(Instant::now() < until, "it does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[test]
fn of_a_name_that_anybody_may_take_only_one_users_threads_are_followed() {
    use std::os::unix::fs::PermissionsExt;
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    let everybodys = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), everybodys.clone()).unwrap();
    let script = place.path().join("at-shared");
    std::fs::write(&script, "#!/bin/sh\nwhile :; do sleep 0.02; done\n").unwrap();
    std::fs::set_permissions(&script, everybodys).unwrap();
    let mut children = [of_name(&script, None), of_name(&script, Some("65533"))];
    let [own, other] = [0, 1].map(|at| children[at].id());
    let follow = |more: &[&str]| {
        let args = ["attach", "--comm", "at-shared", "-d", "1s", "--json"];
        let output = jitterscope(runs.path(), &[&args[..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let report = json(&output);
        let tid = |thread: &Value| u32::try_from(thread["tid"].as_u64().unwrap()).unwrap();
        let mut tids: Vec<u32> = threads(&report).iter().map(tid).collect();
        tids.sort_unstable();
        (tids, report["warnings"].to_string())
    };
    let all = std::panic::catch_unwind(|| {
        let mut both = [own, other];
        both.sort_unstable();
        // A shell that has just made its child has this name, too.
        let (tids, warnings) = follow(&[]);
        assert!(both.iter().all(|tid| tids.contains(tid)), "{tids:?}");
        assert!(!warnings.contains("too-many-threads"), "{warnings}");
        let (tids, _) = follow(&["--uid", "65533"]);
        assert!(tids.contains(&other) && !tids.contains(&own), "{tids:?}");
        let (tids, _) = follow(&["--uid", "root"]);
        assert!(tids.contains(&own) && !tids.contains(&other), "{tids:?}");
        let (tids, warnings) = follow(&["--most-threads", "1"]);
        assert_eq!(tids.len(), 1);
        assert!(warnings.contains("too-many-threads"), "{warnings}");
    });
    for child in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
    if let Err(panic) = all {
        std::panic::resume_unwind(panic);
    }
}

/// The peak memory of a process so far, KiB.
fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn fork_loops_under_the_followed_name_do_not_fill_the_memory() {
    use std::os::unix::fs::PermissionsExt;
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join("at-forks");
    // A subshell has its parent's name, and lives for a moment.
    std::fs::write(&script, "#!/bin/sh\nwhile :; do (:); done\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let follow = |name: &str| {
        let mut recorder = Command::new(program())
            .env("JITTERSCOPE_RUNS", runs.path())
            .args(["attach", "--comm", name, "-d", "3s", "-q"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut most = 0;
        loop {
            most = peak_kib(recorder.id()).unwrap_or_default().max(most);
            if let Some(ended) = recorder.try_wait().unwrap() {
                return (ended.success(), most);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let mut quiet = Command::new("sleep").arg("60").spawn().unwrap();
    let (worked, quiet_most) = follow("sleep");
    let _ = quiet.kill();
    let _ = quiet.wait();
    assert!(worked);
    let mut loops = [0; 2].map(|_| Command::new(&script).stdin(Stdio::null()).spawn().unwrap());
    std::thread::sleep(Duration::from_millis(200));
    let (worked, most) = follow("at-forks");
    for one in &mut loops {
        let _ = one.kill();
        let _ = one.wait();
    }
    println!("{quiet_most} KiB for one thread, {most} KiB with two fork loops");
    assert!(worked);
    // At most 1,024 threads are followed; before that limit it was 203 MiB, and grew with the time.
    assert!(most < quiet_most + (128 << 10), "{most} KiB, {quiet_most}");
}
