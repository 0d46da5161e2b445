//! The probes' threads.

use crate::error::RecordError;
use crate::probe_error::ProbeError;
use jitterscope_model::{ClockKind, CpuId, ProbeResult, PutInOrder, Ticks, WakeupResult};
use jitterscope_probe::{
    ProbeControl, SpinOutput, SpinSettings, WakeupSettings, spin_probe, wakeup_probe,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The job of a probe.
#[derive(Clone, Copy)]
pub(crate) enum Job {
    /// Reads the clock back to back.
    Spin(SpinSettings),
    /// Sleeps and wakes until this time.
    Wakeup(WakeupSettings),
}

impl Job {
    fn cpu(&self) -> CpuId {
        match self {
            Job::Spin(settings) => settings.cpu,
            Job::Wakeup(settings) => settings.cpu,
        }
    }

    /// The name of the thread, within the kernel's 15 bytes.
    fn thread_name(&self) -> String {
        match self {
            Job::Spin(settings) => format!("js-spin/{}", settings.cpu),
            Job::Wakeup(settings) => format!("js-wake/{}", settings.cpu),
        }
    }
}

/// What one probe measured.
enum Saw {
    Spin(ProbeResult),
    Wakeup(WakeupResult, WakeupSettings),
}

/// Results of all probes, by CPU.
#[derive(Default)]
pub(crate) struct Joined {
    pub(crate) results: Vec<ProbeResult>,
    /// The complete results of sleeping probes.
    pub(crate) wakeups: Vec<WakeupResult>,
}

type Outcome = Result<Saw, ProbeError>;

/// Running probes, one thread each. Dropping this stops and joins all of them.
pub(crate) struct Probes {
    control: Arc<ProbeControl>,
    threads: Vec<(CpuId, JoinHandle<Outcome>)>,
    tids: Vec<(CpuId, Arc<AtomicI32>)>,
    names: Vec<(CpuId, String)>,
    planned_end: Ticks,
}

impl Probes {
    /// Starts a probe for each of `jobs`; the outputs are in the same order.
    pub(crate) fn start(
        clock: ClockKind,
        jobs: impl IntoIterator<Item = Job>,
    ) -> Result<(Probes, Vec<SpinOutput>), RecordError> {
        let mut probes = Probes {
            control: Arc::new(ProbeControl::new()),
            threads: Vec::new(),
            tids: Vec::new(),
            names: Vec::new(),
            planned_end: Ticks(u64::MAX),
        };
        let mut outputs = Vec::new();
        for one in jobs {
            outputs.push(probes.spawn(clock, one)?);
        }
        Ok((probes, outputs))
    }

    fn spawn(&mut self, clock: ClockKind, job: Job) -> Result<SpinOutput, RecordError> {
        let cpu = job.cpu();
        let failed = |source: ProbeError| RecordError::Probe { cpu, source };
        type Run = Box<dyn FnOnce(&Arc<ProbeControl>) -> Outcome + Send>;
        let (run, output): (Run, SpinOutput) = match job {
            Job::Spin(settings) => {
                let (run, output) = spin_probe(clock, settings).map_err(|e| failed(e.into()))?;
                (
                    Box::new(move |control| Ok(Saw::Spin(run(control)?))),
                    output,
                )
            }
            Job::Wakeup(settings) => {
                let (run, output) = wakeup_probe(clock, settings).map_err(|e| failed(e.into()))?;
                (
                    Box::new(move |control| Ok(Saw::Wakeup(run(control)?, settings))),
                    output,
                )
            }
        };
        let control = Arc::clone(&self.control);
        let tid = Arc::new(AtomicI32::new(0));
        let own = Arc::clone(&tid);
        let thread = std::thread::Builder::new()
            .name(job.thread_name())
            .stack_size(256 * 1024)
            .spawn(move || {
                own.store(jitterscope_platform::current_tid(), Ordering::Release);
                run(&control)
            })
            .map_err(|source| RecordError::Thread { cpu, source })?;
        self.threads.push((cpu, thread));
        self.tids.push((cpu, tid));
        self.names.push((cpu, job.thread_name()));
        Ok(output)
    }

    /// Waits until every probe spins on its CPU.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), RecordError> {
        while (self.control.ready() as usize) < self.threads.len() {
            if let Some(index) = self
                .threads
                .iter()
                .position(|(_, thread)| thread.is_finished())
            {
                let (cpu, thread) = self.threads.swap_remove(index);
                let outcome = thread.join().map_err(|_| RecordError::ProbePanicked(cpu))?;
                return match outcome {
                    Err(source) => Err(RecordError::Probe { cpu, source }),
                    // A probe ends without an error only on request, and there was none yet.
                    Ok(_) => Err(RecordError::ProbePanicked(cpu)),
                };
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// The thread that measures a CPU; known once it is ready.
    pub(crate) fn tid(&self, cpu: CpuId) -> i32 {
        self.tids
            .iter()
            .find(|(c, _)| *c == cpu)
            .map_or(0, |(_, tid)| tid.load(Ordering::Acquire))
    }

    pub(crate) fn thread_name(&self, cpu: CpuId) -> &str {
        self.names
            .iter()
            .find(|(c, _)| *c == cpu)
            .map_or("", |(_, name)| name)
    }

    pub(crate) fn measure(&mut self, start: Ticks, end: Ticks) {
        self.planned_end = end;
        self.control.measure(start, end);
    }

    pub(crate) fn stop(&self) {
        self.control.stop();
    }

    pub(crate) fn all_finished(&self) -> bool {
        self.threads.iter().all(|(_, thread)| thread.is_finished())
    }

    /// Joins the probes and collects their results, by CPU.
    pub(crate) fn join(mut self) -> Result<Joined, RecordError> {
        let mut joined = Joined::default();
        for (cpu, thread) in self.threads.drain(..) {
            let outcome = thread.join().map_err(|_| RecordError::ProbePanicked(cpu))?;
            match outcome.map_err(|source| RecordError::Probe { cpu, source })? {
                Saw::Spin(result) => joined.results.push(result),
                Saw::Wakeup(result, settings) => {
                    let (threshold, rate) = (settings.threshold, settings.rate);
                    joined
                        .results
                        .push(result.as_probe_result(threshold, self.planned_end, rate));
                    joined.wakeups.push(result);
                }
            }
        }
        joined.results.order_by_key(|result| result.cpu);
        joined.wakeups.order_by_key(|result| result.cpu);
        Ok(joined)
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.control.stop();
        for (_, thread) in self.threads.drain(..) {
            // Dropped probes need no result; a panic was already printed.
            let _ = thread.join();
        }
    }
}
