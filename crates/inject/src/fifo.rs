//! A SCHED_FIFO thread that wakes on the victim's CPU, works for a known time and sleeps again.

use super::burn::burn;
use super::protocol::{DisturbSettings, Expectation, Injection};
use super::{DisturbError, Injector, Unavailable, pace};
use jitterscope_model::{CulpritKind, Nanos};
use jitterscope_platform::{Machine, pin_current_thread, set_fifo};

/// The lowest real-time priority; it is above every fair thread.
const PRIORITY: u32 = 1;

/// Whether a thread may enter the SCHED_FIFO class here. On the real machine, this tries it in a separate thread,
/// because the result depends on privileges, limits and the cgroup's real-time bandwidth.
pub(super) fn availability(machine: &Machine) -> Result<(), Unavailable> {
    if !machine.is_host() {
        return Ok(());
    }
    match std::thread::spawn(|| set_fifo(PRIORITY)).join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Unavailable::refused(error)),
        Err(_) => Err(Unavailable::refused(
            "the thread that tried SCHED_FIFO died",
        )),
    }
}

pub(super) struct Fifo {
    settings: DisturbSettings,
}

impl Fifo {
    pub(super) fn new(settings: &DisturbSettings) -> Fifo {
        Fifo {
            settings: settings.clone(),
        }
    }
}

impl Injector for Fifo {
    fn expectation(&self, comm: &str, _tid: i32) -> Expectation {
        Expectation {
            kind: CulpritKind::Thread,
            name: comm.into(),
            sender: None,
        }
    }

    fn begin(&mut self) -> Result<(), DisturbError> {
        pin_current_thread(self.settings.cpu)?;
        Ok(set_fifo(PRIORITY)?)
    }

    fn inject(&mut self, deadline: Nanos) -> Result<Option<Injection>, DisturbError> {
        if !pace::sleep_until(deadline)? {
            return Ok(None);
        }
        Ok(Some(burn(
            self.settings.clock,
            self.settings.rate,
            self.settings.length,
        )))
    }
}
