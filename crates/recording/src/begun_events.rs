//! Kernel events that are set up beside whatever else a recording begins with.

use crate::kernel_events::{EventSettings, KernelEvents, NoEvents};
use jitterscope_model::TickRate;
use jitterscope_platform::Machine;
use std::thread::JoinHandle;

/// Kernel events on their way. The kernel makes whoever sets them up wait for every CPU, again and again: a fifth of a
/// second or so in which the clock can be checked and the run be made. What was set up is taken down when this is
/// dropped.
pub(crate) struct BegunEvents(Option<JoinHandle<Result<KernelEvents, NoEvents>>>);

impl BegunEvents {
    /// Begins, on a thread that runs where the calling one may; `None` where there can be no thread.
    pub(crate) fn begin(machine: &Machine, settings: &EventSettings) -> Option<BegunEvents> {
        let (machine, settings) = (machine.clone(), settings.clone());
        let thread = std::thread::Builder::new().name("js-events".into());
        let thread = thread
            .spawn(move || KernelEvents::start(&machine, &settings))
            .ok()?;
        Some(BegunEvents(Some(thread)))
    }

    /// The events, once they are recorded. `None`: the thread panicked, and what it had set up is gone.
    pub(crate) fn wait(mut self, rate: TickRate) -> Option<Result<KernelEvents, NoEvents>> {
        let started = self.0.take()?.join().ok()?;
        Some(started.and_then(|mut events| events.ready(rate).map(|()| events)))
    }
}

impl Drop for BegunEvents {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // Nobody wants them any more; a panic was already printed.
            let _ = thread.join();
        }
    }
}
