//! Lets the controlling thread start and stop probes without waiting for them.

use jitterscope_model::Ticks;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Shared by the controller and all probes of a recording. Probes read it only every few milliseconds, so that its
/// cache line stays with them.
#[derive(Debug)]
pub struct ProbeControl {
    ready: AtomicU32,
    start: AtomicU64,
    end: AtomicU64,
    stop: AtomicBool,
}

impl Default for ProbeControl {
    fn default() -> ProbeControl {
        ProbeControl {
            ready: AtomicU32::new(0),
            start: AtomicU64::new(u64::MAX),
            end: AtomicU64::new(u64::MAX),
            stop: AtomicBool::new(false),
        }
    }
}

impl ProbeControl {
    #[must_use]
    pub fn new() -> ProbeControl {
        ProbeControl::default()
    }

    /// A probe has faulted in its memory and spins.
    pub(crate) fn report_ready(&self) {
        self.ready.fetch_add(1, Ordering::AcqRel);
    }

    /// How many probes are spinning.
    #[must_use]
    pub fn ready(&self) -> u32 {
        self.ready.load(Ordering::Acquire)
    }

    /// Lets all probes measure from `start` (in the future) to `end`.
    pub fn measure(&self, start: Ticks, end: Ticks) {
        self.end.store(end.0, Ordering::Release);
        self.start.store(start.0, Ordering::Release);
    }

    /// Ends warm-up and measurement as soon as the probes notice; what was measured stays.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether [`ProbeControl::stop`] was called.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn start(&self) -> Ticks {
        Ticks(self.start.load(Ordering::Acquire))
    }

    pub(crate) fn end(&self) -> Ticks {
        Ticks(self.end.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Also for Miri, which tries other thread interleavings.
    #[test]
    fn who_sees_the_start_sees_the_end() {
        let control = Arc::new(ProbeControl::new());
        let theirs = Arc::clone(&control);
        let probe = std::thread::spawn(move || {
            theirs.report_ready();
            while theirs.start() == Ticks(u64::MAX) {
                std::hint::spin_loop();
            }
            (theirs.start(), theirs.end())
        });
        while control.ready() == 0 {
            std::hint::spin_loop();
        }
        control.measure(Ticks(5), Ticks(9));
        assert_eq!(probe.join().unwrap(), (Ticks(5), Ticks(9)));
        assert!(!control.stopped());
    }
}
