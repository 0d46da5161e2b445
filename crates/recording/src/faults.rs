//! Compares the page faults that the kernel counted for measuring threads with those that it recorded.

use jitterscope_model::{CpuId, EventKind, KernelEvent};
use jitterscope_platform::{KeptFile, Machine};
use std::collections::BTreeMap;

#[derive(Debug)]
struct Victim {
    cpu: CpuId,
    stat: KeptFile,
    /// The count when watching began.
    at_start: u64,
    counted: u64,
    recorded: u64,
    reported: u64,
}

pub(crate) struct FaultWatch {
    machine: Machine,
    victims: BTreeMap<i32, Victim>,
}

impl FaultWatch {
    pub(crate) fn new(machine: &Machine) -> FaultWatch {
        FaultWatch {
            machine: machine.clone(),
            victims: BTreeMap::new(),
        }
    }

    /// Watches the thread that measures a CPU.
    pub(crate) fn watch(&mut self, cpu: CpuId, tid: i32) {
        let mut stat =
            KeptFile::of_one_record(&self.machine, format!("/proc/self/task/{tid}/stat"));
        if let Some(at_start) = count(&mut stat) {
            self.victims.insert(
                tid,
                Victim {
                    cpu,
                    stat,
                    at_start,
                    counted: 0,
                    recorded: 0,
                    reported: 0,
                },
            );
        }
    }

    /// Called before a turn's records are read, so those records include every fault counted so far.
    pub(crate) fn read(&mut self) {
        for victim in self.victims.values_mut() {
            let now = count(&mut victim.stat).unwrap_or(0);
            victim.counted = victim.counted.max(now.saturating_sub(victim.at_start));
        }
    }

    pub(crate) fn event(&mut self, event: &KernelEvent) {
        if let EventKind::PageFault { .. } = event.kind
            && let Some(victim) = self.victims.get_mut(&event.tid)
        {
            victim.recorded += 1;
        }
    }

    /// Faults without a record since the last call, for CPUs that had some.
    pub(crate) fn take(&mut self) -> Vec<(CpuId, u64)> {
        let mut found = Vec::new();
        for victim in self.victims.values_mut() {
            let unrecorded = victim.counted.saturating_sub(victim.recorded);
            if unrecorded > victim.reported {
                found.push((victim.cpu, unrecorded - victim.reported));
                victim.reported = unrecorded;
            }
        }
        found
    }
}

/// Sum of minor and major faults of a thread of this process.
fn count(stat: &mut KeptFile) -> Option<u64> {
    let stat = stat.read().ok()?;
    // The name may contain any byte, including parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let minor: u64 = fields.nth(7)?.parse().ok()?;
    let major: u64 = fields.nth(1)?.parse().ok()?;
    Some(minor.saturating_add(major))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{ExecutionContext, Ticks};

    #[test]
    fn a_fault_that_is_counted_and_not_recorded_is_reported_once() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("proc/self/task/42");
        std::fs::create_dir_all(&folder).unwrap();
        let write = |minor: u64, major: u64| {
            let text = format!("42 (js-spin/1) R 1 1 1 0 -1 4194304 {minor} 5 {major} 6 0 0\n");
            std::fs::write(folder.join("stat"), text).unwrap();
        };
        write(100, 3);
        let mut watch = FaultWatch::new(&Machine::at(dir.path()));
        watch.watch(CpuId(1), 42);
        let fault = KernelEvent {
            time: Ticks(1),
            cpu: CpuId(1),
            tid: 42,
            context: ExecutionContext::Thread,
            kind: EventKind::PageFault {
                user: true,
                address: 1,
                ip: 2,
            },
        };
        write(101, 4);
        watch.read();
        watch.event(&fault);
        assert_eq!(watch.take(), [(CpuId(1), 1)]);
        // A fault can be recorded before it is counted.
        watch.event(&fault);
        watch.read();
        assert_eq!(watch.take(), []);
        write(102, 4);
        watch.read();
        assert_eq!(watch.take(), []);
    }
}
