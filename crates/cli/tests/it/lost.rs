//! Records lost by the kernel during a measurement, in the middle of stalls, waits and messages: two threads hand over
//! to each other on the measured CPU so often that a small buffer overruns within one turn of the drain.

use crate::live;

use jitterscope_model::CpuId;
use jitterscope_platform::{current_tid, name_current_thread, pin_current_thread, set_fifo};
use jitterscope_testing::highest_cpu;
use live::{can_trace, jitterscope, json, stderr, turn};
use serde_json::Value;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time of the handovers, longer than a turn of the drain, and the pause between them.
const BUSY: Duration = Duration::from_millis(120);
const REST: Duration = Duration::from_millis(280);

/// The two threads. Dropping them ends them.
struct Flood {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Flood {
    fn start() -> Flood {
        let stop = Arc::new(AtomicBool::new(false));
        let (there, come): (SyncSender<()>, Receiver<()>) = sync_channel(0);
        let (back, came): (SyncSender<()>, Receiver<()>) = sync_channel(0);
        let prepare = |name| {
            name_current_thread(name);
            pin_current_thread(CpuId(highest_cpu())).unwrap();
            set_fifo(3).unwrap();
        };
        let ends = Arc::clone(&stop);
        let ping = std::thread::spawn(move || {
            prepare("lost-ping");
            while !ends.load(Ordering::Relaxed) {
                let until = Instant::now() + BUSY;
                while Instant::now() < until && there.send(()).is_ok() && came.recv().is_ok() {}
                std::thread::sleep(REST);
            }
        });
        let pong = std::thread::spawn(move || {
            prepare("lost-pong");
            while come.recv().is_ok() && back.send(()).is_ok() {}
        });
        Flood {
            stop,
            threads: vec![ping, pong],
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads
            .drain(..)
            .for_each(|thread| drop(thread.join()));
    }
}

fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    json(output)
}

/// The stalled time without a verdict because of lost records.
fn lost_ns(report: &Value) -> u64 {
    let classes = report["attribution"]["unexplained"]["by_class_ns"]
        .as_object()
        .unwrap();
    classes
        .iter()
        .filter(|(class, _)| class.starts_with("loss"))
        .map(|(_, ns)| ns.as_u64().unwrap())
        .sum()
}

/// Checks common to all kinds: the loss is counted, warned of, shown in the text, and the same after a new attribution.
fn assert_reported(runs: &Path, report: &Value) {
    let lost = report["trust"]["lost_records"].as_u64().unwrap();
    assert!(lost > 0, "nothing was lost: {:#}", report["sources"]);
    assert!(
        report["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|warning| warning["id"] == "trace-lost")
    );
    // More than one record in a hundred was lost.
    assert_eq!(report["attribution"]["proven"], false);
    assert_eq!(
        report["trust"]["doubts"][0]["kind"], "events_lost",
        "{:#}",
        report["trust"]
    );
    for form in [
        ["report", "latest"].as_slice(),
        &["report", "latest", "--full"],
    ] {
        let output = jitterscope(runs, form);
        let text = String::from_utf8(output.stdout).unwrap();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("The culprits are unknown"), "{text}");
        assert!(words.contains("kernel events were lost"), "{text}");
        assert!(!words.contains("lost-ping") || form.len() > 2, "{text}");
    }
    let again = json(&jitterscope(
        runs,
        &["report", "latest", "--reattribute", "--json"],
    ));
    assert_eq!(again["attribution"], report["attribution"]);
    assert_eq!(again["threads"], report["threads"]);
    println!(
        "{lost} records lost, {} ns without a verdict",
        lost_ns(report)
    );
}

#[test]
fn stalls_in_which_records_were_lost_get_no_verdict() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let _flood = Flood::start();
    let cpu = highest_cpu().to_string();
    let args = [
        "record",
        "--cpus",
        &cpu,
        "-d",
        "3s",
        "--trace-buffer",
        "64KiB",
        "--json",
        "-q",
    ];
    let report = report(&jitterscope(runs.path(), &args));
    assert_reported(runs.path(), &report);
    // 120 of each 400 ms are theirs; the buffer overruns during the handovers.
    assert!(
        lost_ns(&report) > 100_000_000,
        "{:#}",
        report["attribution"]["unexplained"]
    );
}

#[test]
fn waits_in_which_records_were_lost_are_unknown_time() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let _flood = Flood::start();
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, victim) = channel();
    let ends = Arc::clone(&stop);
    let spins = std::thread::spawn(move || {
        name_current_thread("lost-victim");
        pin_current_thread(CpuId(highest_cpu())).unwrap();
        sender.send(current_tid()).unwrap();
        while !ends.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    let tid = victim.recv().unwrap().to_string();
    let args = [
        "attach",
        "--tid",
        &tid,
        "-d",
        "3s",
        "--trace-buffer",
        "64KiB",
        "--json",
        "-q",
    ];
    let output = jitterscope(runs.path(), &args);
    stop.store(true, Ordering::Relaxed);
    spins.join().unwrap();
    let report = report(&output);
    assert_reported(runs.path(), &report);
    let thread = &report["threads"][0];
    let ns = |name: &str| thread[name].as_u64().unwrap();
    assert!(ns("unknown_ns") > 100_000_000, "{thread:#}");
    let sum: u64 = [
        "running_ns",
        "waiting_ns",
        "blocked_ns",
        "stopped_ns",
        "unknown_ns",
    ]
    .map(ns)
    .iter()
    .sum();
    let run = report["run"]["duration_ns"].as_u64().unwrap();
    assert!(
        sum.abs_diff(run) * 20 < run,
        "all of its time is accounted for: {sum} of {run}"
    );
    // It never slept.
    assert!(ns("blocked_ns") < 50_000_000, "{thread:#}");
}

#[test]
fn messages_in_which_records_were_lost_get_no_verdict() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let _flood = Flood::start();
    let args = [
        "record",
        "pipeline",
        "--two-thread",
        "--duration",
        "3s",
        "--warmup",
        "200ms",
        "--pause",
        "10ms",
    ];
    let more = [
        "--period",
        "50us",
        "--trace-buffer",
        "64KiB",
        "--force",
        "--json",
        "-q",
    ];
    let report = report(&jitterscope(
        runs.path(),
        &[args.as_slice(), &more].concat(),
    ));
    assert_reported(runs.path(), &report);
    assert!(
        lost_ns(&report) > 100_000_000,
        "{:#}",
        report["attribution"]["unexplained"]
    );
}
