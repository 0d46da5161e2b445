//! What the reader of a pipeline's report must know, each with what to do about it.

use super::fit::{Freedom, Misfit};
use jitterscope_model::{CpuSet, JournalEnd, Nanos, PipelineResult, PipelineRole, Warning};

/// A circumstance that limits what a run can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remark {
    /// The placement was refused, and forced.
    Forced(Misfit),
    /// Threads were left to the scheduler on a machine whose CPUs are not alike.
    Free(Freedom),
    /// Our own thread shares the pipeline's CPUs.
    NoFreeCpu { cpus: CpuSet },
    /// Memory could be reclaimed meanwhile.
    Unlocked { why: String },
    /// The journal ended before the measurement.
    JournalEnded(JournalEnd),
    /// The journaller waited for room.
    JournalWaits { waits: u64 },
    /// The ring was full.
    RingFull { waits: u64, waited: Nanos },
    /// Slow messages without a row.
    SlowDropped { role: PipelineRole, dropped: u64 },
    /// A thread faulted while measuring.
    PageFaults { role: PipelineRole, faults: u64 },
    /// Messages were lost or changed places: a bug.
    Disordered { role: PipelineRole, disordered: u64 },
}

impl Remark {
    pub(crate) fn warning(&self) -> Warning {
        let (id, text) = match self {
            Remark::Forced(misfit) => ("forced-placement", format!("Measured all the same: {misfit}.")),
            Remark::Free(Freedom { one_core, many_nodes }) => (
                "not-pinned",
                format!(
                    "Threads were left to the scheduler, which may put them {}: that changes a message's way \
                     from run to run. Pin them with --producer-cpu, --accumulator-cpu and --journaller-cpu.",
                    match (one_core, many_nodes) {
                        (true, false) => "on two hardware threads of one core",
                        (false, true) => "on different NUMA nodes",
                        _ => "on two hardware threads of one core or on different NUMA nodes",
                    }
                ),
            ),
            Remark::NoFreeCpu { cpus } => (
                "no-free-cpu",
                format!(
                    "The pipeline's threads have every usable CPU ({cpus}), so our own thread, which wakes \
                     every 50 ms, stalled them too. A machine with one CPU more would not show that."
                ),
            ),
            Remark::Unlocked { why } => (
                "memory-not-locked",
                format!(
                    "The memory was faulted in but could not be locked ({why}): under memory pressure its \
                     pages can go. Raise RLIMIT_MEMLOCK (ulimit -l), or give CAP_IPC_LOCK."
                ),
            ),
            Remark::JournalEnded(JournalEnd { disk_full: true, why }) => (
                "journal-disk-full",
                format!(
                    "The journal's disk was full, so the measurement ended early; what was measured and \
                     journalled is kept. {why}."
                ),
            ),
            Remark::JournalEnded(JournalEnd { disk_full: false, why }) => (
                "journal-ended",
                format!(
                    "The journal could not be continued, so the measurement ended early; what was measured \
                     and journalled is kept. {why}."
                ),
            ),
            Remark::JournalWaits { waits } => (
                "journal-waits",
                format!(
                    "The journaller waited {waits} times for room in its file, which shows in its times. A \
                     longer --interval or a CPU more for our own thread prevents it."
                ),
            ),
            Remark::RingFull { waits, waited } => (
                "ring-full",
                format!(
                    "The producer found the ring full {waits} times and waited {waited} in all, which shows \
                     in the times from the intended publication alone. Raise --ring, or --interval where the \
                     consumers cannot keep up."
                ),
            ),
            Remark::SlowDropped { role, dropped } => (
                "dropped-records",
                format!(
                    "{dropped} slow messages of the {role} are counted but have no row: too many came at \
                     once. Raise --slow-above."
                ),
            ),
            Remark::PageFaults { role, faults } => (
                "own-page-faults",
                format!(
                    "The {role} took {faults} page faults of its own after its set-up; they may show as slow \
                     messages."
                ),
            ),
            Remark::Disordered { role, disordered } => (
                "disordered",
                format!("{disordered} messages reached the {role} out of order or were lost: this is a bug."),
            ),
        };
        Warning { id: id.into(), text }
    }
}

/// What turned out to limit a measurement.
pub(crate) fn of(result: &PipelineResult) -> Vec<Remark> {
    let mut found = Vec::new();
    if let Some(journal) = &result.journal {
        found.extend(journal.ended.clone().map(Remark::JournalEnded));
        if journal.waits > 0 {
            found.push(Remark::JournalWaits { waits: journal.waits });
        }
    }
    let producer = &result.producer;
    if producer.full_waits > 0 {
        found.push(Remark::RingFull { waits: producer.full_waits, waited: producer.full_waited_ns });
    }
    for consumer in &result.consumers {
        let role = consumer.role;
        if consumer.slow_dropped > 0 {
            found.push(Remark::SlowDropped { role, dropped: consumer.slow_dropped });
        }
        if consumer.disordered > 0 {
            found.push(Remark::Disordered { role, disordered: consumer.disordered });
        }
    }
    for thread in &result.threads {
        if thread.page_faults > 0 {
            found.push(Remark::PageFaults { role: thread.role, faults: thread.page_faults });
        }
    }
    found
}
