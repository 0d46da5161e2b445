//! Reports on misleading disturbances of known size, on the real machine.

use crate::live;

use jitterscope_model::CpuId;
use jitterscope_platform::{current_tid, name_current_thread, pin_current_thread, set_fifo};
use jitterscope_testing::{highest_cpu, instances_of};
use live::{can_trace, jitterscope, json, program, stderr, turn, until_it_measures};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

fn start_recording(runs: &Path, seconds: &str) -> Child {
    let cpu = highest_cpu().to_string();
    Command::new(program())
        .env("JITTERSCOPE_RUNS", runs)
        .args(["record", "--cpus", &cpu, "-d", seconds, "--json", "-q"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    json(output)
}

/// All culprits and classes of a report.
fn rows(report: &Value) -> Vec<&Value> {
    let attribution = &report["attribution"];
    let of = |rows: &'static str| attribution[rows].as_array().unwrap().iter();
    of("culprits")
        .chain(attribution["unexplained"]["classes"].as_array().unwrap())
        .collect()
}

fn named<'r>(report: &'r Value, name: &str) -> Option<&'r Value> {
    rows(report).into_iter().find(|row| row["name"] == name)
}

/// The same by thread: by default, programs are reported by their processes' names.
fn by_thread(runs: &Path) -> Value {
    json(&jitterscope(
        runs,
        &["report", "latest", "--by", "thread", "--json"],
    ))
}

/// Checks that a new attribution of the stored run gives the same result.
fn assert_replays(runs: &Path, report: &Value) {
    let again = json(&jitterscope(
        runs,
        &["report", "latest", "--reattribute", "--json"],
    ));
    assert_eq!(
        again["attribution"]["culprits"],
        report["attribution"]["culprits"]
    );
    assert_eq!(
        again["attribution"]["unexplained"],
        report["attribution"]["unexplained"]
    );
}

/// A thread of the test with a repeated action.
struct Doing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Doing {
    fn start(name: &'static str, mut body: impl FnMut() + Send + 'static) -> Doing {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            name_current_thread(name);
            while !stopped.load(Ordering::Relaxed) {
                body();
            }
        });
        Doing {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Doing {
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

/// The freezer of a control group of either version. Dropping it thaws its members, moves them up and removes it.
struct Freezer {
    folder: PathBuf,
    file: &'static str,
    /// What freezes, and what thaws.
    states: [&'static str; 2],
}

impl Freezer {
    const OLD: [&str; 4] = ["freezer", "freezer.state", "FROZEN", "THAWED"];
    const UNIFIED: [&str; 4] = ["unified", "cgroup.freeze", "1", "0"];

    fn make([mounted, file, frozen, thawed]: [&'static str; 4]) -> Option<Freezer> {
        let root = Path::new("/sys/fs/cgroup").join(mounted);
        let folder = root.join(format!("jitterscope-test-{}", std::process::id()));
        if fs::create_dir(&folder).is_err() || !folder.join(file).exists() {
            let _ = fs::remove_dir(&folder);
            jitterscope_testing::skip(&format!("no control group with {file} in {mounted}"));
            return None;
        }
        Some(Freezer {
            folder,
            file,
            states: [frozen, thawed],
        })
    }

    fn take(&self, pid: u32) {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    fn freeze(&self, length: Duration) {
        for (state, then) in self.states.into_iter().zip([length, Duration::ZERO]) {
            fs::write(self.folder.join(self.file), state).unwrap();
            std::thread::sleep(then);
        }
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let _ = fs::write(self.folder.join(self.file), self.states[1]);
        for pid in fs::read_to_string(self.folder.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            let _ = fs::write(self.folder.join("../cgroup.procs"), pid);
        }
        let until = Instant::now() + Duration::from_secs(5);
        while fs::remove_dir(&self.folder).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Version 1 leaves a sleeping thread where it is, version 2 wakes it; both interrupt a running one.
#[test]
fn a_followed_thread_that_is_frozen_is_stopped_and_not_asleep() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let spins = "while :; do :; done";
    let sleeps = "while :; do sleep 0.05; done";
    for version in [Freezer::OLD, Freezer::UNIFIED] {
        for script in [spins, sleeps] {
            let Some(freezer) = Freezer::make(version) else {
                continue;
            };
            let mut shell = Command::new("sh")
                .args(["-c", script])
                .stdin(Stdio::null())
                .spawn()
                .unwrap();
            freezer.take(shell.id());
            let runs = tempfile::tempdir().unwrap();
            let follower = Command::new(program())
                .env("JITTERSCOPE_RUNS", runs.path())
                .args(["attach", "--pid", &shell.id().to_string()])
                .args(["-d", "4s", "--json", "-q"])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let until = Instant::now() + Duration::from_secs(20);
            while instances_of(follower.id()).is_empty() {
                assert!(Instant::now() < until, "it does not record");
                std::thread::sleep(Duration::from_millis(20));
            }
            std::thread::sleep(Duration::from_millis(1500));
            for _ in 0..2 {
                freezer.freeze(Duration::from_millis(500));
                std::thread::sleep(Duration::from_millis(300));
            }
            let output = follower.wait_with_output().unwrap();
            shell.kill().unwrap();
            shell.wait().unwrap();
            let report = report(&output);
            let threads = report["threads"].as_array().unwrap();
            let own = threads.iter().find(|thread| thread["tid"] == shell.id());
            let own = own.unwrap();
            println!("{version:?} {script}: {own:#}");
            // Without a record, the end of the turn in which it was frozen counts: up to 100 ms later.
            let stopped = own["stopped_ns"].as_u64().unwrap();
            assert!(stopped > 600_000_000, "{version:?} {script}: {own:#}");
            assert_replays(runs.path(), &report);
        }
    }
}

#[test]
fn a_recording_that_is_frozen_blames_neither_the_idle_task_nor_the_host() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let Some(freezer) = Freezer::make(Freezer::OLD) else {
        return;
    };
    let runs = tempfile::tempdir().unwrap();
    let recorder = start_recording(runs.path(), "4s");
    until_it_measures(recorder.id());
    freezer.take(recorder.id());
    freezer.freeze(Duration::from_millis(500));
    let report = report(&recorder.wait_with_output().unwrap());
    for row in rows(&report) {
        println!("{} {} {}", row["kind"], row["name"], row["total_ns"]);
    }
    assert!(
        named(&report, "swapper").is_none()
            && named(&report, &format!("swapper/{}", highest_cpu())).is_none()
    );
    let slept =
        named(&report, "asleep in the kernel").expect("it slept for as long as it was frozen");
    assert!(
        slept["total_ns"].as_u64().unwrap() > 50_000_000,
        "{slept:#}"
    );
    assert_replays(runs.path(), &report);
}

#[test]
fn a_thread_that_renames_itself_in_its_turn_has_a_part_under_each_name() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let recorder = start_recording(runs.path(), "3s");
    let mut begun = false;
    let _renamed = Doing::start("dt-before", move || {
        if !std::mem::replace(&mut begun, true) {
            pin_current_thread(CpuId(highest_cpu())).unwrap();
            set_fifo(3).unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
        name_current_thread("dt-before");
        spin(Duration::from_millis(1));
        // Names like a kernel thread's and the idle task's.
        name_current_thread("kworker/1:9");
        spin(Duration::from_millis(1));
        name_current_thread("swapper/1");
    });
    let whole = report(&recorder.wait_with_output().unwrap());
    let report = by_thread(runs.path());
    let of = |kind: &str, name: &str| -> u64 {
        let found = rows(&report)
            .into_iter()
            .filter(|row| row["kind"] == kind && row["name"] == name);
        found.map(|row| row["total_ns"].as_u64().unwrap()).sum()
    };
    for row in rows(&report) {
        println!("{} {} {}", row["kind"], row["name"], row["total_ns"]);
    }
    // 1 ms of each 12 of 3 s under either name, and a moment under the third.
    let parts = ["dt-before", "kworker/1:9", "swapper/1"].map(|name| of("thread", name));
    assert!(
        parts[0].min(parts[1]) > 50_000_000 && parts[0].abs_diff(parts[1]) * 5 < parts[0],
        "{parts:?}: {:#}",
        report["attribution"]
    );
    assert!(
        parts[2] * 10 < parts[0],
        "{parts:?}: {:#}",
        report["attribution"]
    );
    assert_eq!(
        of("kworker", "kworker/1:9"),
        0,
        "whatever it calls itself, it is no kernel thread"
    );
    let row = rows(&report)
        .into_iter()
        .find(|row| row["name"] == "swapper/1")
        .unwrap();
    assert!(
        !row["explanation"].as_str().unwrap().contains("idle"),
        "{row:#}"
    );
    assert_replays(runs.path(), &whole);
}

/// Rows of a name: kind, thread, time.
fn of_name<'r>(report: &'r Value, name: &str) -> Vec<(&'r str, &'r str, u64)> {
    let listed = rows(report).into_iter().filter(|row| row["name"] == name);
    let text = |field: &'r Value| field.as_str().unwrap_or_default();
    listed
        .map(|row| {
            (
                text(&row["kind"]),
                text(&row["space"]),
                row["total_ns"].as_u64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn short_lived_threads_are_not_taken_for_kernel_threads() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let recorder = start_recording(runs.path(), "4s");
    let cpu = CpuId(highest_cpu());
    // No CPU has these numbers.
    let (worker, softirqs) = ("kworker/7777:9", "ksoftirqd/7777");
    let _threads = Doing::start("dt-maker", move || {
        std::thread::sleep(Duration::from_millis(30));
        let short = std::thread::spawn(move || {
            pin_current_thread(cpu).unwrap();
            set_fifo(3).unwrap();
            name_current_thread(worker);
            spin(Duration::from_millis(4));
        });
        short.join().unwrap();
    });
    let line =
        format!("echo {softirqs} > /proc/$$/comm; n=0; while [ $n -lt 2000 ]; do n=$((n+1)); done");
    let _processes = Doing::start("dt-shell", move || {
        std::thread::sleep(Duration::from_millis(30));
        let shell = ["-c", &cpu.to_string(), "chrt", "-f", "3", "sh", "-c", &line];
        let _ = Command::new("taskset").args(shell).output();
    });
    let whole = report(&recorder.wait_with_output().unwrap());
    let report = by_thread(runs.path());
    let (as_worker, as_softirqs) = (of_name(&report, worker), of_name(&report, softirqs));
    println!("{as_worker:?} {as_softirqs:?}");
    assert!(
        as_worker
            .iter()
            .all(|(kind, space, _)| (*kind, *space) == ("thread", "user")),
        "{as_worker:?}"
    );
    assert!(
        as_worker.iter().map(|(.., ns)| ns).sum::<u64>() > 20_000_000,
        "{as_worker:?}"
    );
    assert!(
        as_softirqs
            .iter()
            .all(|(kind, space, _)| (*kind, *space) == ("thread", "user")),
        "{as_softirqs:?}"
    );
    if as_softirqs.is_empty() {
        jitterscope_testing::skip("in part: there is no taskset or no chrt");
    }
    for row in rows(&report)
        .into_iter()
        .filter(|row| row["name"] == softirqs)
    {
        assert!(
            !row["explanation"].as_str().unwrap().contains("softirq"),
            "{row:#}"
        );
    }
    assert_replays(runs.path(), &whole);
}

/// A real-time thread on the measured CPU that runs briefly at each wake-up.
fn sleeper() -> (SyncSender<()>, Doing) {
    let (sender, receiver): (SyncSender<()>, Receiver<()>) = sync_channel(0);
    let mut begun = false;
    let doing = Doing::start("dt-woken", move || {
        if !std::mem::replace(&mut begun, true) {
            pin_current_thread(CpuId(highest_cpu())).unwrap();
            set_fifo(3).unwrap();
        }
        if receiver.recv_timeout(Duration::from_millis(100)).is_ok() {
            spin(Duration::from_micros(100));
        }
    });
    (sender, doing)
}

#[test]
fn of_two_wakers_the_more_frequent_one_is_named_with_its_count() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let (sender, _sleeper) = sleeper();
    let recorder = start_recording(runs.path(), "4s");
    // Both on another CPU, one four times as often, if the machine allows it.
    let woke = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
    let waker = |name: &'static str, every: u64, sender: SyncSender<()>, woke: &Arc<AtomicU64>| {
        let (mut begun, woke) = (false, Arc::clone(woke));
        Doing::start(name, move || {
            if !std::mem::replace(&mut begun, true) {
                let _ = pin_current_thread(CpuId(0));
            }
            std::thread::sleep(Duration::from_millis(every));
            woke.fetch_add(u64::from(sender.try_send(()).is_ok()), Ordering::Relaxed);
        })
    };
    let _first = waker("dt-often", 5, sender.clone(), &woke[0]);
    let _second = waker("dt-seldom", 20, sender, &woke[1]);
    let whole = report(&recorder.wait_with_output().unwrap());
    let report = by_thread(runs.path());
    let row = named(&report, "dt-woken").expect("it ran");
    println!("{row:#}");
    let (count, known) = (
        row["count"].as_u64().unwrap(),
        row["senders_known"].as_u64().unwrap(),
    );
    assert!(count > 30 && known * 10 > count * 9, "{row:#}");
    let [often, seldom] = [0, 1].map(|at: usize| woke[at].load(Ordering::Relaxed) as f64);
    let (sender, by_it) = (&row["sender"], row["sender"]["count"].as_u64().unwrap());
    assert_eq!(
        sender["comm"],
        if often > seldom {
            "dt-often"
        } else {
            "dt-seldom"
        },
        "{often} and {seldom}: {row:#}"
    );
    // The other one is among the known ones.
    let share = often.max(seldom) / (often + seldom);
    assert!(
        (by_it as f64 / known as f64 - share).abs() < 0.2,
        "{often} and {seldom}: {row:#}"
    );
    assert_replays(runs.path(), &whole);
}

#[test]
fn a_wait_on_two_cpus_reports_both_and_who_ran_there() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let (first, second) = (CpuId(highest_cpu()), CpuId(0));
    if first == second {
        jitterscope_testing::skip("there is one CPU");
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    // A real-time thread keeps it waiting on one CPU for 20 ms, and halfway it is moved to the other.
    let (sender, victim) = std::sync::mpsc::channel();
    let mut begun = false;
    let _victim = Doing::start("dt-moved", move || {
        if !std::mem::replace(&mut begun, true) {
            sender.send(current_tid()).unwrap();
        }
        spin(Duration::from_micros(200));
    });
    let victim = victim.recv().unwrap();
    let move_to = move |cpu: CpuId| {
        let moved = Command::new("taskset")
            .args(["-pc", &cpu.to_string(), &victim.to_string()])
            .output();
        moved.is_ok_and(|output| output.status.success())
    };
    if !move_to(first) {
        jitterscope_testing::skip("there is no taskset");
        return;
    }
    let mut begun = false;
    let _hog = Doing::start("dt-hog", move || {
        if !std::mem::replace(&mut begun, true) {
            pin_current_thread(first).unwrap();
            set_fifo(3).unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
        spin(Duration::from_millis(40));
    });
    let mover = Doing::start("dt-mover", move || {
        std::thread::sleep(Duration::from_millis(37));
        move_to(second);
        std::thread::sleep(Duration::from_millis(11));
        move_to(first);
    });
    let tid = victim.to_string();
    // All lengths: those below the threshold are in the account and in no stall.
    let all = [
        "attach",
        "--tid",
        &tid,
        "-d",
        "4s",
        "--threshold",
        "1ns",
        "--json",
        "-q",
    ];
    let output = jitterscope(runs.path(), &all);
    drop(mover);
    let report = report(&output);
    let thread = &report["threads"][0];
    let ns = |name: &str| thread[name].as_u64().unwrap();
    assert!(ns("migrations") > 20, "{thread:#}");
    // The parts of its stalls sum to the waits and interruptions of its account.
    let lost = ns("waiting_ns") + ns("interrupted_ns");
    let stalled = report["attribution"]["stalled_ns"].as_u64().unwrap();
    assert!(stalled.abs_diff(lost) * 50 < lost, "{stalled} of {lost}");
    let moved: Vec<&Value> = report["worst"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|stall| stall["parts"].as_array().unwrap())
        .filter(|part| part["moved_from_cpu"].is_number())
        .collect();
    println!("{moved:#?}");
    assert!(!moved.is_empty(), "{:#}", report["worst"]);
    assert_replays(runs.path(), &report);
}
