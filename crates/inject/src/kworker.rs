//! A work item on every CPU, without changing a knob: reading `vm.stat_refresh` makes the kernel queue work on each CPU
//! that adds its memory counters to the global ones, and wait for it.

use super::protocol::{DisturbSettings, Expectation, ExpectedSender, Injection};
use super::{DisturbError, Injector, Unavailable, needs_helper, pace};
use jitterscope_model::{CulpritKind, Nanos};
use jitterscope_platform::{FileError, Machine, clock};
use std::fs::File;
use std::os::unix::fs::FileExt;

const FILE: &str = "/proc/sys/vm/stat_refresh";

/// The work function (`mm/vmstat.c`).
const FUNCTION: &str = "refresh_vm_stats";

pub(super) fn availability(
    machine: &Machine,
    settings: &DisturbSettings,
) -> Result<(), Unavailable> {
    needs_helper(settings)?;
    if !machine.exists(FILE) {
        return Err(Unavailable::kernel(format!(
            "has no {FILE} (Linux 4.8, CONFIG_PROC_SYSCTL)"
        )));
    }
    match File::open(machine.path(FILE)) {
        Ok(_) => Ok(()),
        Err(error) => Err(Unavailable::file(FILE, &error, "reading it")),
    }
}

pub(super) struct Kworker {
    settings: DisturbSettings,
    file: File,
}

impl Kworker {
    pub(super) fn new(settings: &DisturbSettings) -> Result<Kworker, DisturbError> {
        let path = Machine::host().path(FILE);
        let file = File::open(&path).map_err(|source| FileError { path, source })?;
        Ok(Kworker {
            settings: settings.clone(),
            file,
        })
    }
}

impl Injector for Kworker {
    fn expectation(&self, comm: &str, tid: i32) -> Expectation {
        Expectation {
            kind: CulpritKind::Kworker,
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
        // The read returns when every CPU has done the work.
        let start_ticks = clock::now(self.settings.clock);
        self.file
            .read_at(&mut [0], 0)
            .map_err(DisturbError::refused("reading /proc/sys/vm/stat_refresh"))?;
        let end_ticks = clock::now(self.settings.clock);
        Ok(Some(Injection {
            start_ticks,
            end_ticks,
            length_ticks: None,
        }))
    }
}
