//! The probes' threads.

use crate::error::RecordError;
use jitterscope_model::{ClockKind, CpuId, ProbeResult, Ticks};
use jitterscope_platform::clock::{Clock, MonotonicRaw};
use jitterscope_probe::{Control, SpinError, SpinOutput, SpinProbe, SpinSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

type Outcome = Result<ProbeResult, SpinError>;

/// Running probes, one thread each. Dropping them stops and joins all.
pub(crate) struct Probes {
    control: Arc<Control>,
    threads: Vec<(CpuId, JoinHandle<Outcome>)>,
    tids: Vec<(CpuId, Arc<AtomicI32>)>,
}

/// The name of the thread that measures a CPU, within the kernel's 15 bytes.
pub(crate) fn thread_name(cpu: CpuId) -> String {
    format!("js-spin/{cpu}")
}

impl Probes {
    /// Starts a probe for each of `settings`; the outputs are in the same order.
    pub(crate) fn start(
        clock: ClockKind,
        settings: impl IntoIterator<Item = SpinSettings>,
    ) -> Result<(Probes, Vec<SpinOutput>), RecordError> {
        let mut probes = Probes { control: Arc::new(Control::new()), threads: Vec::new(), tids: Vec::new() };
        let mut outputs = Vec::new();
        for one in settings {
            outputs.push(match clock {
                #[cfg(target_arch = "x86_64")]
                ClockKind::Tsc => probes.spawn(jitterscope_platform::clock::Tsc, one)?,
                #[cfg(not(target_arch = "x86_64"))]
                ClockKind::Tsc => probes.spawn(MonotonicRaw, one)?,
                ClockKind::MonotonicRaw => probes.spawn(MonotonicRaw, one)?,
            });
        }
        Ok((probes, outputs))
    }

    fn spawn<C: Clock>(&mut self, clock: C, settings: SpinSettings) -> Result<SpinOutput, RecordError> {
        let cpu = settings.cpu;
        let (probe, output) =
            SpinProbe::new(clock, settings).map_err(|source| RecordError::Probe { cpu, source })?;
        let control = Arc::clone(&self.control);
        let tid = Arc::new(AtomicI32::new(0));
        let own = Arc::clone(&tid);
        let thread = std::thread::Builder::new()
            .name(thread_name(cpu))
            .stack_size(256 * 1024)
            .spawn(move || {
                own.store(jitterscope_platform::current_tid(), Ordering::Release);
                probe.run(&control)
            })
            .map_err(|source| RecordError::Thread { cpu, source })?;
        self.threads.push((cpu, thread));
        self.tids.push((cpu, tid));
        Ok(output)
    }

    /// Waits until every probe spins on its CPU.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), RecordError> {
        while (self.control.ready() as usize) < self.threads.len() {
            if let Some(index) = self.threads.iter().position(|(_, thread)| thread.is_finished()) {
                let (cpu, thread) = self.threads.swap_remove(index);
                let outcome = thread.join().map_err(|_| RecordError::ProbePanicked(cpu))?;
                return match outcome {
                    Err(source) => Err(RecordError::Probe { cpu, source }),
                    // A probe only ends by itself when told to, which nobody did yet.
                    Ok(_) => Err(RecordError::ProbePanicked(cpu)),
                };
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// The thread that measures a CPU; known once it is ready.
    pub(crate) fn tid(&self, cpu: CpuId) -> i32 {
        self.tids.iter().find(|(c, _)| *c == cpu).map_or(0, |(_, tid)| tid.load(Ordering::Acquire))
    }

    pub(crate) fn measure(&self, start: Ticks, end: Ticks) {
        self.control.measure(start, end);
    }

    pub(crate) fn stop(&self) {
        self.control.stop();
    }

    pub(crate) fn all_finished(&self) -> bool {
        self.threads.iter().all(|(_, thread)| thread.is_finished())
    }

    /// Joins the probes and collects what they measured, by CPU.
    pub(crate) fn join(mut self) -> Result<Vec<ProbeResult>, RecordError> {
        let mut results = Vec::new();
        for (cpu, thread) in self.threads.drain(..) {
            let result = thread.join().map_err(|_| RecordError::ProbePanicked(cpu))?;
            results.push(result.map_err(|source| RecordError::Probe { cpu, source })?);
        }
        results.sort_by_key(|result| result.cpu);
        Ok(results)
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.control.stop();
        for (_, thread) in self.threads.drain(..) {
            // Its result is of no use to who drops it; a panic was already printed.
            let _ = thread.join();
        }
    }
}
