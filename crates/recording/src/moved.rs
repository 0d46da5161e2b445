//! Finds the thread that moved a probe away from its CPU.

use jitterscope_model::{
    AnyVersion, Attribution, CpuId, EndedEarly, ExecutionContext, MovedBecause, Mover, ProbeResult,
    Sender, Subject,
};
use jitterscope_platform::{Machine, Topology};
use std::collections::BTreeMap;

/// Name prefix of the kernel threads that move other threads.
const STOPPER: &str = "migration/";

/// Per CPU: the last sender that made the kernel move a thread away, during a stall of the CPU's probe.
#[derive(Default)]
pub(crate) struct Movers(BTreeMap<CpuId, Sender>);

impl Movers {
    pub(crate) fn stall(&mut self, cpu: CpuId, attribution: &Attribution) {
        let mover = attribution
            .parts
            .iter()
            .find_map(|part| match &part.culprit.subject {
                Subject::Thread(task) if task.comm.starts_with(STOPPER) => {
                    part.culprit.sender.as_ref()
                }
                _ => None,
            });
        if let Some(sender) = mover {
            self.0.insert(cpu, sender.clone());
        }
    }

    /// Adds the reason to each measurement that ended because its probe was moved.
    pub(crate) fn explain(&self, machine: &Machine, results: &mut [ProbeResult]) {
        let topology = Topology::read(machine);
        for result in results {
            if let Some(AnyVersion::Known(EndedEarly::Moved { because, .. })) =
                &mut result.ended_early
            {
                let by = mover(self.0.get(&result.cpu), result.tid);
                *because = Some(MovedBecause {
                    offline: topology.is_leaving(machine, result.cpu),
                    by,
                });
            }
        }
    }
}

/// The mover, if it is a thread with a name. An interrupt is not reported, nor is the probe itself: a CPU that goes
/// offline moves the probe while the probe runs.
fn mover(sender: Option<&Sender>, probe: i32) -> Option<Mover> {
    let sender = sender
        .filter(|sender| sender.context == ExecutionContext::Thread && sender.tid != probe)?;
    Some(Mover {
        comm: sender.comm.as_deref()?.to_owned(),
        tid: sender.tid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Culprit, Evidence, Nanos, Part, StallId, Task};

    #[test]
    fn who_had_the_probe_moved_is_known_unless_an_interrupt_did_it() {
        let comm = || Task {
            comm: "migration/1".into(),
            ..Task::default()
        };
        let sender = Sender {
            context: ExecutionContext::Thread,
            comm: Some("taskset".into()),
            tid: 812,
            tgid: None,
            cpu: CpuId(0),
            via: None,
            beneath: None,
        };
        let culprit = Culprit {
            subject: Subject::Thread(comm()),
            sender: Some(sender),
        };
        let part = Part::inside(culprit, Nanos(1), Evidence::SwitchRecords);
        let mut movers = Movers::default();
        movers.stall(
            CpuId(1),
            &Attribution {
                stall: StallId(1),
                parts: vec![part],
            },
        );
        let known = movers.0.get(&CpuId(1)).unwrap();
        assert_eq!(
            mover(Some(known), 7),
            Some(Mover {
                comm: "taskset".into(),
                tid: 812
            })
        );
        assert_eq!(mover(Some(known), 812), None);
        assert_eq!(
            mover(
                Some(&Sender {
                    context: ExecutionContext::Interrupt,
                    ..known.clone()
                }),
                7
            ),
            None
        );
        assert_eq!(mover(movers.0.get(&CpuId(0)), 7), None);
    }
}
