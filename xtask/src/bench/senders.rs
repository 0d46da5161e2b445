//! For how many stalls by a thread woken from another CPU the waker is known, at any rate.

use super::claim::Claim;
use super::number;
use super::tool::{Runs, allowed_cpus};
use anyhow::{Context, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Wake-ups a second, per row of the table.
const RATES: [u32; 3] = [2_900, 14_000, 36_000];
/// Minimum share of the woken thread's stalls with a known waker.
const LEAST: f64 = 0.99;
/// The names of the waking and the woken thread.
const NAMES: [&str; 2] = ["bench-waker", "bench-woken"];

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let runs = Runs::new("bench-senders")?;
    let cpus = allowed_cpus()?;
    let (Some(&from), Some(&measured)) = (cpus.first(), cpus.last()) else {
        anyhow::bail!("no CPU is allowed");
    };
    ensure!(
        from != measured,
        "two CPUs are needed: one that wakes, and one that is measured"
    );
    println!(
        "{:>9} {:>12} {:>9} {:>9}",
        "wanted/s", "wake-ups/s", "stalls", "known"
    );
    RATES
        .iter()
        .map(|rate| {
            let load = Wakes::start([from, measured], *rate)?;
            let report = runs.record(&["--duration", "3s", "--cpus", &measured.to_string()])?;
            let made = load.end();
            let (stalls, known) = known(&report)?;
            println!("{rate:>9} {made:>12.0} {stalls:>9.0} {known:>9.0}");
            let what = format!("stalls whose waker is known, at {rate} wake-ups a second");
            Ok(Claim::at_least(what, known / stalls.max(1.0), LEAST))
        })
        .collect()
}

/// Stalls by the woken thread, and how many of them have a known waker.
fn known(report: &Value) -> anyhow::Result<(f64, f64)> {
    let culprits = report["attribution"]["culprits"]
        .as_array()
        .context("the report has no culprits")?;
    // A process with several threads is one culprit with all their names.
    let named = |one: &Value| {
        one["thread_names"]
            .as_array()
            .is_some_and(|names| names.contains(&NAMES[1].into()))
    };
    let ours: Vec<&Value> = culprits
        .iter()
        .filter(|one| one["comm"] == NAMES[1] || named(one))
        .collect();
    ensure!(!ours.is_empty(), "{} is not among the culprits", NAMES[1]);
    let sum = |field: &str| {
        ours.iter()
            .map(|one| number(one, field))
            .sum::<anyhow::Result<f64>>()
    };
    Ok((sum("count")?, sum("senders_known")?))
}

/// A thread that wakes another one on another CPU at a given rate.
struct Wakes {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    began: Instant,
    threads: Vec<JoinHandle<()>>,
}

impl Wakes {
    fn start(cpus: [usize; 2], rate: u32) -> anyhow::Result<Wakes> {
        let (reader, writer) = pipe()?;
        let (stop, made) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let mut wakes = Wakes {
            stop,
            made,
            began: Instant::now(),
            threads: Vec::new(),
        };
        let (stop, made) = (wakes.stop.clone(), wakes.made.clone());
        let wake = move || wake(cpus[0], writer, Duration::from_secs(1) / rate, &stop, &made);
        wakes.threads.push(
            std::thread::Builder::new()
                .name(NAMES[0].into())
                .spawn(wake)?,
        );
        let sleep = move || sleep(cpus[1], reader);
        wakes.threads.push(
            std::thread::Builder::new()
                .name(NAMES[1].into())
                .spawn(sleep)?,
        );
        Ok(wakes)
    }

    /// Ends it. Returns wake-ups a second.
    fn end(self) -> f64 {
        self.made.load(Ordering::Relaxed) as f64 / self.began.elapsed().as_secs_f64()
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It only reads or writes.
            let _ = thread.join();
        }
    }
}

/// If this is refused, it runs elsewhere and is no culprit.
fn run_on(cpu: usize) {
    let mut only = CpuSet::new();
    only.set(cpu);
    let _ = sched_setaffinity(None, &only);
}

/// A thread that ends closes its pipe, so that the other one ends, too.
fn wake(cpu: usize, mut to: PipeWriter, every: Duration, stop: &AtomicBool, made: &AtomicU64) {
    run_on(cpu);
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) && to.write_all(b"x").is_ok() {
        made.fetch_add(1, Ordering::Relaxed);
        next += every;
        while Instant::now() < next {
            // A sleep would be late by more than the interval.
            std::hint::spin_loop();
        }
        // A late thread does not catch up in a burst.
        next = next.max(Instant::now());
    }
}

fn sleep(cpu: usize, mut from: PipeReader) {
    run_on(cpu);
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() {}
}
