//! A load on one CPU that wakes and switches as often as possible.

use anyhow::ensure;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Timeout for a load to begin.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of round trips after which it counts as begun.
const BEGUN: u64 = 1000;

/// Shared between the threads and the code that started them.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    rounds: AtomicU64,
    /// The last CPU of the counting thread.
    cpu: AtomicUsize,
}

/// Two of our threads that exchange a byte on one CPU; dropping this ends them.
pub(super) struct Load {
    cpu: usize,
    shared: Arc<Shared>,
    began: Instant,
    rounds_before: u64,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts them, and returns when they run.
    ///
    /// # Errors
    /// They do not run on that CPU.
    pub(super) fn start(cpu: usize) -> anyhow::Result<Load> {
        let ((there, mut to_there), (back, to_back)) = (pipe()?, pipe()?);
        // One byte is in flight from now on.
        to_there.write_all(b"x")?;
        let shared = Arc::new(Shared::default());
        let mut load = Load {
            cpu,
            shared,
            began: Instant::now(),
            rounds_before: 0,
            threads: Vec::new(),
        };
        for (name, from, to) in [
            ("load-there", there, to_back),
            ("load-back", back, to_there),
        ] {
            let shared = Arc::clone(&load.shared);
            let pass = move || pass(cpu, from, to, &shared);
            load.threads
                .push(std::thread::Builder::new().name(name.into()).spawn(pass)?);
        }
        while load.rounds() < BEGUN {
            ensure!(
                load.began.elapsed() < PATIENCE,
                "the load does not run on CPU {cpu}"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        (load.began, load.rounds_before) = (Instant::now(), load.rounds());
        Ok(load)
    }

    /// Passes of the byte so far.
    pub(super) fn rounds(&self) -> u64 {
        self.shared.rounds.load(Ordering::Relaxed)
    }

    /// Ends it. Returns passes of the byte a second, each a wake-up and a switch.
    ///
    /// # Errors
    /// It ran on another CPU.
    pub(super) fn end(self) -> anyhow::Result<f64> {
        let rate = (self.rounds() - self.rounds_before) as f64 / self.began.elapsed().as_secs_f64();
        let cpu = self.shared.cpu.load(Ordering::Relaxed);
        ensure!(
            cpu == self.cpu,
            "the load ran on CPU {cpu}, not on {}",
            self.cpu
        );
        Ok(rate)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It only reads and writes.
            let _ = thread.join();
        }
    }
}

/// Passes every byte on. A thread that ends closes its pipes, so that the other one ends, too.
fn pass(cpu: usize, mut from: PipeReader, mut to: PipeWriter, shared: &Shared) {
    let mut only = CpuSet::new();
    only.set(cpu);
    // If this is refused, it runs elsewhere, which is detected at the end.
    let _ = sched_setaffinity(None, &only);
    let mut byte = [0];
    while !shared.stop.load(Ordering::Relaxed) && from.read_exact(&mut byte).is_ok() {
        shared.rounds.fetch_add(1, Ordering::Relaxed);
        shared.cpu.store(sched_getcpu(), Ordering::Relaxed);
        if to.write_all(&byte).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_on_the_given_cpu_and_ends() {
        let load = Load::start(0).unwrap();
        assert_eq!(load.threads.len(), 2);
        assert!(load.rounds() >= BEGUN);
        // On a busy machine no further pass may happen before the end.
        assert!(load.end().unwrap() >= 0.0);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        // The affinity is refused, so it runs elsewhere.
        let error = Load::start(1000).and_then(Load::end).unwrap_err();
        assert!(error.to_string().contains("not on 1000"), "{error}");
    }
}
