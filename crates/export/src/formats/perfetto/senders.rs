//! What CPUs sent to one another lately, to find where an arrow to a part begins.

use jitterscope_model::{CpuId, EventKind, KernelEvent, Part, Stall, Subject, Ticks};
use std::collections::{HashMap, VecDeque};

/// The number of records kept for each target.
const KEPT: usize = 512;
/// The largest number of targets: no kernel has more CPUs.
const MOST_TARGETS: usize = 8192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentWhat {
    /// Woke this thread.
    Wakeup(i32),
    /// Interrupted the CPU, or called a function there.
    Interrupt,
    /// Queued work.
    Work,
}

impl SentWhat {
    pub(super) fn name(self) -> &'static str {
        match self {
            SentWhat::Wakeup(_) => "wakes",
            SentWhat::Interrupt => "interrupts",
            SentWhat::Work => "queues work",
        }
    }
}

/// One record of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) at: Ticks,
    pub(super) from: CpuId,
    /// The thread that was current there.
    pub(super) tid: i32,
    pub(super) what: SentWhat,
}

/// The latest records, by target.
#[derive(Default)]
pub(super) struct Senders(HashMap<CpuId, VecDeque<Sent>>);

impl Senders {
    pub(super) fn record(&mut self, event: &KernelEvent) {
        let (target, what) = match &event.kind {
            EventKind::SchedWaking { task, target } => (*target, SentWhat::Wakeup(task.tid)),
            EventKind::IpiSendCpu { target, .. } | EventKind::CsdQueued { target, .. } => {
                (*target, SentWhat::Interrupt)
            }
            EventKind::WorkQueued {
                target: Some(target),
                ..
            } => (*target, SentWhat::Work),
            EventKind::IpiSendCpumask { targets, .. } => {
                for cpu in (0..64).filter(|cpu| targets >> cpu & 1 != 0) {
                    self.keep(CpuId(cpu), event, SentWhat::Interrupt);
                }
                return;
            }
            _ => return,
        };
        self.keep(target, event, what);
    }

    fn keep(&mut self, target: CpuId, event: &KernelEvent, what: SentWhat) {
        if self.0.len() >= MOST_TARGETS && !self.0.contains_key(&target) {
            return;
        }
        let kept = self.0.entry(target).or_default();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(Sent {
            at: event.time,
            from: event.cpu,
            tid: event.tid,
            what,
        });
    }

    /// The record of a part's sender: the first one within the stall, else the last one before it.
    pub(super) fn of(&self, stall: &Stall, part: &Part) -> Option<Sent> {
        let sender = part.culprit.sender.as_ref()?;
        let wanted = match &part.culprit.subject {
            Subject::Thread(task) => SentWhat::Wakeup(task.tid?),
            Subject::Work(_) => SentWhat::Work,
            Subject::Call(_) | Subject::Ipi(_) => SentWhat::Interrupt,
            _ => return None,
        };
        let fits = |sent: &&Sent| {
            sent.what == wanted
                && sent.from == sender.cpu
                && (sender.tid == 0 || sent.tid == sender.tid)
                && sent.at <= stall.end
        };
        let fitting = || self.0.get(&stall.cpu).into_iter().flatten().filter(fits);
        let within = fitting().filter(|sent| sent.at >= stall.start);
        within
            .min_by_key(|sent| sent.at)
            .or_else(|| fitting().max_by_key(|sent| sent.at))
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{
        Comm, Culprit, Evidence, ExecutionContext, KernelAddr, Nanos, Sender, StallId, ThreadRef,
    };

    fn sent(at: u64, cpu: u32, tid: i32) -> KernelEvent {
        KernelEvent {
            time: Ticks(at),
            cpu: CpuId(cpu),
            tid,
            context: ExecutionContext::Thread,
            kind: EventKind::IpiSendCpu {
                target: CpuId(1),
                callsite: KernelAddr(0),
                callback: KernelAddr(0),
            },
        }
    }

    fn part(tid: i32) -> Part {
        let sender = Sender {
            context: ExecutionContext::Thread,
            comm: None,
            tid,
            tgid: None,
            cpu: CpuId(0),
            via: None,
            beneath: None,
        };
        let culprit = Culprit {
            subject: Subject::Ipi("reschedule".into()),
            sender: Some(sender),
        };
        Part::inside(culprit, Nanos(1), Evidence::VectorRecords)
    }

    #[test]
    fn a_record_within_the_stall_comes_before_one_that_preceded_it() {
        let mut senders = Senders::default();
        for event in [
            sent(50, 0, 7),
            sent(90, 0, 7),
            sent(95, 0, 8),
            sent(120, 2, 7),
        ] {
            senders.record(&event);
        }
        let stall = Stall {
            id: StallId(0),
            cpu: CpuId(1),
            victim: ThreadRef {
                tid: 1,
                comm: Comm::new("x"),
            },
            start: Ticks(100),
            end: Ticks(200),
        };
        let of = |senders: &Senders, tid| senders.of(&stall, &part(tid)).map(|sent| sent.at.0);
        assert_eq!(of(&senders, 7), Some(90));
        assert_eq!(of(&senders, 0), Some(95));
        assert_eq!(of(&senders, 9), None);
        senders.record(&sent(150, 0, 7));
        senders.record(&sent(160, 0, 7));
        senders.record(&sent(201, 0, 7));
        assert_eq!(of(&senders, 7), Some(150));
    }

    #[test]
    fn only_the_latest_are_kept() {
        let mut senders = Senders::default();
        (0..2 * KEPT as u64).for_each(|at| senders.record(&sent(at, 0, 7)));
        assert_eq!(senders.0[&CpuId(1)].len(), KEPT);
    }
}
