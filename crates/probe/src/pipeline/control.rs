//! Lets the controlling thread lead the pipeline through its phases.

use jitterscope_model::Ticks;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Shared by the controller and the pipeline's threads for the phases set up, warm up, measure and end. The threads
/// read it often, and it changes only a few times, so the line stays in every cache. The producer's progress is on
/// another line.
#[derive(Debug, Default)]
pub struct PipelineControl {
    ready: AtomicU32,
    go: AtomicBool,
    warm: AtomicU32,
    start: AtomicU64,
    end: AtomicU64,
    stop: AtomicBool,
    journal_closed: AtomicBool,
    journal_failed: AtomicBool,
    sent: OwnLine,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnLine(AtomicU64);

impl PipelineControl {
    #[must_use]
    pub fn new() -> PipelineControl {
        PipelineControl::default()
    }

    /// A thread is on its CPU with its memory faulted in.
    pub(super) fn report_ready(&self) {
        self.ready.fetch_add(1, Ordering::AcqRel);
    }

    /// How many threads are ready.
    #[must_use]
    pub fn ready(&self) -> u32 {
        self.ready.load(Ordering::Acquire)
    }

    /// Lets the producer start the warm-up.
    pub fn warm_up(&self) {
        self.go.store(true, Ordering::Release);
    }

    pub(super) fn may_warm_up(&self) -> bool {
        self.go.load(Ordering::Acquire)
    }

    /// A thread has finished the warm-up and discarded it.
    pub(super) fn report_warm(&self) {
        self.warm.fetch_add(1, Ordering::AcqRel);
    }

    /// How many threads have finished the warm-up.
    #[must_use]
    pub fn warm(&self) -> u32 {
        self.warm.load(Ordering::Acquire)
    }

    /// Measures from `start` (in the future) until `end`, or until all messages are sent.
    pub fn measure(&self, start: Ticks, end: Ticks) {
        self.end.store(end.0, Ordering::Release);
        self.start.store(start.0.max(1), Ordering::Release);
    }

    /// Start and end, once they are known.
    pub(super) fn window(&self) -> Option<(u64, u64)> {
        let start = self.start.load(Ordering::Acquire);
        (start > 0).then(|| (start, self.end.load(Ordering::Acquire)))
    }

    /// Ends everything after the current message; what was measured stays.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether [`PipelineControl::stop`] was called.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// No more room for the journal will come, so the journaller must not wait for it.
    pub fn close_journal(&self) {
        self.journal_closed.store(true, Ordering::Release);
    }

    pub(super) fn journal_closed(&self) -> bool {
        self.journal_closed.load(Ordering::Acquire)
    }

    pub(super) fn fail_journal(&self) {
        self.journal_failed.store(true, Ordering::Release);
    }

    /// Whether a record could not be written to the journal's file.
    #[must_use]
    pub fn journal_failed(&self) -> bool {
        self.journal_failed.load(Ordering::Acquire)
    }

    pub(super) fn report_sent(&self, count: u64) {
        self.sent.0.store(count, Ordering::Relaxed);
    }

    /// Measured messages sent so far, to within about a hundred.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    /// Also for Miri, which tries other thread interleavings.
    #[test]
    fn a_reader_of_the_start_also_sees_the_end() {
        let control = Arc::new(PipelineControl::new());
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let control = Arc::clone(&control);
                thread::spawn(move || {
                    control.report_ready();
                    while !control.may_warm_up() {
                        std::hint::spin_loop();
                    }
                    control.report_sent(7);
                    control.report_warm();
                    let window = loop {
                        match control.window() {
                            Some(window) => break window,
                            None => std::hint::spin_loop(),
                        }
                    };
                    while !control.stopped() {
                        std::hint::spin_loop();
                    }
                    window
                })
            })
            .collect();
        while control.ready() < 2 {
            std::hint::spin_loop();
        }
        control.warm_up();
        while control.warm() < 2 {
            std::hint::spin_loop();
        }
        assert_eq!(control.sent(), 7);
        control.measure(Ticks(100), Ticks(900));
        control.stop();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), (100, 900));
        }
    }
}
