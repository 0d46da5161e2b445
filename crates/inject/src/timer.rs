//! A process on the victim's CPU that waits for a timer: the expiry interrupts the victim there.

use super::protocol::{DisturbSettings, Expectation, Injection};
use super::{DisturbError, Injector, lifetime, pace};
use jitterscope_model::{CulpritKind, Nanos};
use jitterscope_platform::{clock, pin_current_thread};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::os::fd::OwnedFd;

/// The kernel function that a timerfd's expiry runs (`fs/timerfd.c`).
const FUNCTION: &str = "timerfd_tmrproc";

pub(super) struct Timer {
    settings: DisturbSettings,
    timer: OwnedFd,
}

impl Timer {
    pub(super) fn new(settings: &DisturbSettings) -> Result<Timer, DisturbError> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
            .map_err(DisturbError::refused("creating a timerfd"))?;
        Ok(Timer {
            settings: settings.clone(),
            timer,
        })
    }

    /// The expiry on the recording's clock. Both clocks are read together just after the wake-up, so their rates only
    /// need to agree over the lateness. The timer's clock is read last, so an interruption between the reads makes the
    /// window start too early, never after the expiry.
    fn window(&self, deadline: Nanos) -> Injection {
        let (kind, rate) = (self.settings.clock, self.settings.rate);
        let end = clock::now(kind);
        let late = pace::monotonic().saturating_sub(deadline);
        Injection {
            start_ticks: end - rate.ticks(late),
            end_ticks: end,
            length_ticks: None,
        }
    }
}

impl Injector for Timer {
    fn expectation(&self, _comm: &str, _tid: i32) -> Expectation {
        Expectation {
            kind: CulpritKind::Timer,
            name: FUNCTION.into(),
            sender: None,
        }
    }

    fn begin(&mut self) -> Result<(), DisturbError> {
        Ok(pin_current_thread(self.settings.cpu)?)
    }

    fn inject(&mut self, deadline: Nanos) -> Result<Option<Injection>, DisturbError> {
        let once = Itimerspec {
            it_interval: pace::timespec(Nanos(0)),
            it_value: pace::timespec(deadline),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)
            .map_err(DisturbError::refused("arming a timerfd"))?;
        let mut expirations = [0; 8];
        loop {
            match rustix::io::read(&self.timer, &mut expirations) {
                Ok(_) => break,
                Err(Errno::INTR) if lifetime::must_end() => return Ok(None),
                Err(Errno::INTR) => {}
                Err(e) => return Err(DisturbError::refused("waiting for a timerfd")(e)),
            }
        }
        let injection = self.window(deadline);
        Ok((!lifetime::must_end()).then_some(injection))
    }
}
