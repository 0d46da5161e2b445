//! A thread of the fair class that competes with the victim: it wakes on the victim's CPU and works. The scheduler may
//! delay it, and may preempt it, so one injection can stall the victim more than once.

use super::burn::burn;
use super::protocol::{DisturbSettings, Expectation, Injection};
use super::{DisturbError, Injector, pace};
use jitterscope_model::{CulpritKind, Nanos};
use jitterscope_platform::pin_current_thread;

pub(super) struct Fair {
    settings: DisturbSettings,
}

impl Fair {
    pub(super) fn new(settings: &DisturbSettings) -> Fair {
        Fair {
            settings: settings.clone(),
        }
    }
}

impl Injector for Fair {
    fn expectation(&self, comm: &str, _tid: i32) -> Expectation {
        Expectation {
            kind: CulpritKind::Thread,
            name: comm.into(),
            sender: None,
        }
    }

    fn begin(&mut self) -> Result<(), DisturbError> {
        Ok(pin_current_thread(self.settings.cpu)?)
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
