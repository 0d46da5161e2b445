//! Who took a measured CPU away from its probe.

use jitterscope_model::{Attribution, CpuId, ExecutionContext, ProbeResult, Sender, Subject};
use jitterscope_platform::{Machine, Topology};
use std::collections::BTreeMap;

/// How the kernel's threads that move others are called.
const STOPPER: &str = "migration/";

/// By CPU: who last had the kernel move a thread away from it, in a stall of its probe.
#[derive(Default)]
pub(crate) struct Movers(BTreeMap<CpuId, Sender>);

impl Movers {
    /// A stall of a CPU's probe.
    pub(crate) fn stall(&mut self, cpu: CpuId, attribution: &Attribution) {
        let mover = attribution.parts.iter().find_map(|part| match &part.culprit.subject {
            Subject::Thread(task) if task.comm.starts_with(STOPPER) => part.culprit.sender.as_ref(),
            _ => None,
        });
        if let Some(sender) = mover {
            self.0.insert(cpu, sender.clone());
        }
    }

    /// Says of a measurement that ended because its probe was moved why that was.
    pub(crate) fn explain(&self, machine: &Machine, results: &mut [ProbeResult]) {
        let online = Topology::read(machine).online;
        for result in results {
            let Some(ended) = &mut result.ended_early else { continue };
            *ended += &why(self.0.get(&result.cpu), online.contains(result.cpu));
        }
    }
}

fn why(mover: Option<&Sender>, online: bool) -> String {
    let by = mover.filter(|sender| sender.context == ExecutionContext::Thread).and_then(|sender| {
        let comm = sender.comm.as_deref()?;
        Some(format!(" by {comm} (pid {})", sender.tid))
    });
    match (online, by) {
        (true, Some(by)) => format!("{by}, which changed where it may run"),
        (true, None) => " by a change of where it may run (taskset, a cpuset)".into(),
        (false, by) => format!("{}, for the CPU went offline", by.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Culprit, Evidence, Nanos, Part, StallId, Task};

    #[test]
    fn who_had_the_probe_moved_is_told_and_an_online_cpu_did_not_go_offline() {
        let comm = || Task { comm: "migration/1".into(), ..Task::default() };
        let sender = Sender {
            context: ExecutionContext::Thread,
            comm: Some("taskset".into()),
            tid: 812,
            tgid: None,
            cpu: CpuId(0),
            via: None,
        };
        let culprit = Culprit { subject: Subject::Thread(comm()), sender: Some(sender) };
        let part = Part::inside(culprit, Nanos(1), Evidence::SwitchRecords);
        let mut movers = Movers::default();
        movers.stall(CpuId(1), &Attribution { stall: StallId(1), parts: vec![part] });
        let mover = movers.0.get(&CpuId(1));
        assert_eq!(why(mover, true), " by taskset (pid 812), which changed where it may run");
        assert_eq!(why(None, true), " by a change of where it may run (taskset, a cpuset)");
        assert_eq!(why(None, false), ", for the CPU went offline");
    }
}
