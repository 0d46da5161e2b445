//! Kernel events that a thread sets up while the rest of the recording starts.

use crate::kernel_events::{EventSettings, KernelEvents, NoEvents};
use jitterscope_model::TickRate;
use jitterscope_platform::Machine;
use std::thread::JoinHandle;

/// Kernel events being set up. The setup waits repeatedly for every CPU, about 0.2 s in total; meanwhile the recorder
/// checks the clock and creates the run. Dropping this removes what was set up.
pub(crate) struct BegunEvents(Option<JoinHandle<Result<KernelEvents, NoEvents>>>);

impl BegunEvents {
    /// Starts the setup on a thread with the caller's affinity. `None`: the thread could not be started.
    pub(crate) fn begin(machine: &Machine, settings: &EventSettings) -> Option<BegunEvents> {
        let (machine, settings) = (machine.clone(), settings.clone());
        let thread = std::thread::Builder::new().name("js-events".into());
        let thread = thread
            .spawn(move || KernelEvents::start(&machine, &settings))
            .ok()?;
        Some(BegunEvents(Some(thread)))
    }

    /// Waits for the setup to finish. `None`: the thread panicked, and its instances are gone.
    pub(crate) fn wait(mut self, rate: TickRate) -> Option<Result<KernelEvents, NoEvents>> {
        let started = self.0.take()?.join().ok()?;
        Some(started.and_then(|mut events| events.ready(rate).map(|()| events)))
    }
}

impl Drop for BegunEvents {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // The result is not needed; a panic was already printed.
            let _ = thread.join();
        }
    }
}
