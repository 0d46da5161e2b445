//! The pipeline's threads, from start to join.

use super::error::PipelineRecordError;
use jitterscope_model::{Comm, CpuSet, PipelineRole, PutInOrder, ThreadRef};
use jitterscope_platform::{ThreadUsage, confine_current_thread, current_tid};
use jitterscope_probe::pipeline::{
    Body, ConsumerResult, Ended, PipelineControl, ProducerResult, ThreadResult,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the end of a phase is checked. Seldom, because without a free CPU a check disturbs the warm-up from which
/// the pipeline learns its usual times.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The name of a thread, within the kernel's 15 bytes.
pub(crate) fn thread_name(role: PipelineRole) -> &'static str {
    match role {
        PipelineRole::Producer => "js-producer",
        PipelineRole::Accumulator => "js-accumulator",
        PipelineRole::Journaller => "js-journaller",
    }
}

struct Running {
    role: PipelineRole,
    tid: Arc<AtomicI32>,
    thread: JoinHandle<Ended>,
}

/// Running threads. Dropping this stops and joins all of them.
pub(crate) struct Threads {
    pub(crate) control: Arc<PipelineControl>,
    running: Vec<Running>,
}

/// The results of the threads.
pub(crate) struct Joined {
    pub(crate) producer: ProducerResult,
    pub(crate) consumers: Vec<ConsumerResult>,
    pub(crate) usage: Vec<(PipelineRole, ThreadRef, ThreadUsage)>,
}

impl Threads {
    /// Starts a thread for each body, free to run on all of `allowed`: the caller has left some of these CPUs.
    pub(crate) fn start(
        bodies: Vec<(PipelineRole, Body)>,
        allowed: &CpuSet,
    ) -> Result<Threads, PipelineRecordError> {
        let mut threads = Threads {
            control: Arc::new(PipelineControl::new()),
            running: Vec::new(),
        };
        for (role, body) in bodies {
            let tid = Arc::new(AtomicI32::new(0));
            let (control, own, allowed) = (
                Arc::clone(&threads.control),
                Arc::clone(&tid),
                allowed.clone(),
            );
            let thread = std::thread::Builder::new()
                .name(thread_name(role).into())
                .stack_size(256 * 1024)
                .spawn(move || {
                    own.store(current_tid(), Ordering::Release);
                    // The affinity was valid when the recording began. If it no longer is, the inherited mask stays,
                    // and the thread's set-up requests its own CPU.
                    let _ = confine_current_thread(&allowed);
                    body(&control)
                })
                .map_err(|source| PipelineRecordError::Thread { role, source })?;
            threads.running.push(Running { role, tid, thread });
        }
        Ok(threads)
    }

    /// Waits until every thread has reached a point, and calls `meanwhile`, which ends the wait by returning false.
    ///
    /// # Errors
    /// A thread could not be set up.
    pub(crate) fn wait(
        &mut self,
        reached: fn(&PipelineControl) -> u32,
        mut meanwhile: impl FnMut() -> bool,
    ) -> Result<bool, PipelineRecordError> {
        while (reached(&self.control) as usize) < self.running.len() {
            if let Some(at) = self
                .running
                .iter()
                .position(|running| running.thread.is_finished())
            {
                let Running { role, thread, .. } = self.running.swap_remove(at);
                let outcome = thread
                    .join()
                    .map_err(|_| PipelineRecordError::Panicked(role))?;
                return match outcome {
                    Err(error) => Err(error.into()),
                    // A thread ends without an error only on request, and there was none yet.
                    Ok(_) => Err(PipelineRecordError::Panicked(role)),
                };
            }
            if !meanwhile() {
                return Ok(false);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(true)
    }

    /// The threads' ids and names; known once they are ready.
    pub(crate) fn refs(&self) -> Vec<(PipelineRole, ThreadRef)> {
        let of = |running: &Running| (running.role, reference(running.role, &running.tid));
        self.running.iter().map(of).collect()
    }

    pub(crate) fn all_finished(&self) -> bool {
        self.running
            .iter()
            .all(|running| running.thread.is_finished())
    }

    /// Ends everything but keeps what was measured.
    pub(crate) fn stop(&self) {
        self.control.stop();
        self.control.close_journal();
    }

    pub(crate) fn join(mut self) -> Result<Joined, PipelineRecordError> {
        let (mut producer, mut consumers, mut usage) = (None, Vec::new(), Vec::new());
        for Running { role, tid, thread } in std::mem::take(&mut self.running) {
            let (result, used) = thread
                .join()
                .map_err(|_| PipelineRecordError::Panicked(role))??;
            usage.push((role, reference(role, &tid), used));
            match result {
                ThreadResult::Producer(result) => producer = Some(result),
                ThreadResult::Consumer(result) => consumers.push(result),
            }
        }
        consumers.order_by_key(|consumer| consumer.role);
        let producer = producer.ok_or(PipelineRecordError::Panicked(PipelineRole::Producer))?;
        Ok(Joined {
            producer,
            consumers,
            usage,
        })
    }
}

fn reference(role: PipelineRole, tid: &AtomicI32) -> ThreadRef {
    ThreadRef {
        tid: tid.load(Ordering::Acquire),
        comm: Comm::new(thread_name(role)),
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
        for running in self.running.drain(..) {
            // A dropped pipeline needs no result; a panic was already printed.
            let _ = running.thread.join();
        }
    }
}
