//! Interrupts by `membarrier`: another CPU makes every CPU that runs a registered process execute a memory barrier, by
//! a function call interrupt.

use super::protocol::{DisturbSettings, Expectation, ExpectedSender, Injection};
use super::{DisturbError, Injector, Unavailable, needs_helper, pace};
use jitterscope_model::{CulpritKind, Nanos};
use jitterscope_platform::{Machine, clock};
use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

/// The function that the interrupted CPU runs (`kernel/sched/membarrier.c`).
const FUNCTION: &str = "ipi_mb";

/// Registers this process as a target of `membarrier` injections. The recording process must call it once, before its
/// probes start; it covers all threads of the process, and a child does not inherit it across `exec`.
///
/// # Errors
/// The kernel has no global expedited membarrier (before 4.16, or CONFIG_MEMBARRIER is off).
pub fn register() -> Result<(), DisturbError> {
    membarrier(MembarrierCommand::RegisterGlobalExpedited).map_err(DisturbError::refused(
        "registering for global expedited membarriers",
    ))
}

pub(super) fn availability(
    machine: &Machine,
    settings: &DisturbSettings,
) -> Result<(), Unavailable> {
    needs_helper(settings)?;
    if machine.is_host() && !membarrier_query().contains_command(MembarrierCommand::GlobalExpedited)
    {
        return Err(Unavailable::kernel("has no global expedited membarrier"));
    }
    Ok(())
}

pub(super) struct Membarrier {
    settings: DisturbSettings,
}

impl Membarrier {
    pub(super) fn new(settings: &DisturbSettings) -> Membarrier {
        Membarrier {
            settings: settings.clone(),
        }
    }
}

impl Injector for Membarrier {
    fn expectation(&self, comm: &str, tid: i32) -> Expectation {
        Expectation {
            kind: CulpritKind::Ipi,
            name: FUNCTION.into(),
            sender: Some(ExpectedSender {
                comm: comm.into(),
                tid,
            }),
        }
    }

    fn inject(&mut self, deadline: Nanos) -> Result<Option<Injection>, DisturbError> {
        if !pace::sleep_until(deadline)? {
            return Ok(None);
        }
        // The call returns when every CPU has executed its barrier.
        let start_ticks = clock::now(self.settings.clock);
        membarrier(MembarrierCommand::GlobalExpedited)
            .map_err(DisturbError::refused("a global expedited membarrier"))?;
        let end_ticks = clock::now(self.settings.clock);
        Ok(Some(Injection {
            start_ticks,
            end_ticks,
            length_ticks: None,
        }))
    }
}
