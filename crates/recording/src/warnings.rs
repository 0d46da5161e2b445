//! What the reader of a report must know, each with what to do about it.

use jitterscope_attribute::{FrequencyChanges, GroupThrottled};
use jitterscope_model::{CpuId, CpuSet, Nanos, QuotaLimit, Warning, visible};
use jitterscope_store::Room;
use std::collections::BTreeMap;

/// CPUs whose changes of frequency are told.
const MOST_FREQUENCIES: usize = 8;

/// A circumstance that limits what a run can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Circumstance {
    /// Stalls are counted, not attributed.
    NoKernelEvents { reason: String, fix: String },
    /// Nor were kernel events wanted.
    NoTraceWanted { pipeline: bool },
    /// Our own threads share the measured CPUs.
    NoFreeCpu { measured: CpuSet },
    /// Our own threads share the CPUs of the threads that are followed.
    NoFreeCpuForAttach,
    /// Our own threads share the CPUs that are watched.
    NoFreeCpuToWatch { watched: CpuSet },
    /// Nothing was seen to belong on some of the CPUs.
    NobodyBelongs { cpus: CpuSet, look: Nanos },
    /// Nothing that belongs there was ever met.
    NeverMet { whom: String },
    /// The command that was followed ended badly.
    CommandFailed { status: String },
    /// Some threads were not followed.
    TooManyThreads { refused: u64, most: usize },
    /// Threads of the name were met late, or not before their end.
    NotFollowed { late: u64, missed: u64 },
    /// The kernel does not record what some threads do.
    UnrecordedSwitches { count: u64, cpus: CpuSet },
    /// More happened than is kept in order.
    Folded { time: Nanos },
    /// A control group used up its CPU quota.
    Throttled { cgroup: String, limit: Option<QuotaLimit>, times: u64, time: Nanos },
    /// A CPU's frequency was changed meanwhile.
    FrequencyChanged { cpu: CpuId, changes: FrequencyChanges },
    /// CPUs went offline.
    CpusGone { cpus: CpuSet },
    /// No thread was met.
    NobodyMet,
    /// Our own threads run on the idle control.
    ControlShared { cpu: CpuId },
    /// Our own threads run on the other hardware thread of a measured core.
    SiblingBusy { cpu: CpuId, siblings: CpuSet },
    /// Real-time throttling will stall the probe by itself.
    RtThrottling { runtime_us: i64, period_us: i64 },
    /// The TSC is not used.
    ClockFallback { reason: String },
    /// The TSC is used, though the CPU does not promise what that takes.
    ClockDoubt { reason: String },
    /// The probe's own bookkeeping is as long as its stalls.
    OwnBookkeeping { cpu: CpuId, count: u64, threshold: Nanos, store: Nanos },
    /// Some stalls have no record.
    DroppedRecords { cpu: CpuId, dropped: u64 },
    /// The ring buffer overran.
    TraceLost { lost: u64 },
    /// A CPU's measurement ended early.
    EndedEarly { cpu: CpuId, why: String },
    /// The probe faulted while measuring.
    PageFaults { cpu: CpuId, faults: u64 },
    /// Recording instances of an earlier, killed recorder were removed.
    LeftoversRemoved { count: usize },
    /// Storing failed in mid-run, and room was made.
    TraceDiscarded { why: String },
    /// The disk filled up, so the recording had to end while it could still be closed. So many stalls at
    /// its end are counted and not stored.
    DiskFull { unstored: u64 },
    /// An output beside the run did not get all rows.
    OutputLost { output: String, delivered: u64, lost: u64, why: String },
    /// The recording was ended early.
    Interrupted,
}

impl Circumstance {
    /// What to say of switches that the kernel did not record, by CPU.
    pub(crate) fn of_switches(unrecorded: &BTreeMap<CpuId, u64>) -> Option<Circumstance> {
        (!unrecorded.is_empty()).then(|| Circumstance::UnrecordedSwitches {
            count: unrecorded.values().sum(),
            cpus: unrecorded.keys().copied().collect(),
        })
    }

    /// What to say of stalled time of which only sums were kept.
    pub(crate) fn of_folded(time: Nanos) -> Option<Circumstance> {
        (time > Nanos::ZERO).then_some(Circumstance::Folded { time })
    }

    /// What to say of the disk.
    pub(crate) fn of_room(room: Room) -> Option<Circumstance> {
        match room {
            Room::Ample => None,
            Room::TraceGivenUp => {
                Some(Circumstance::TraceDiscarded { why: "the disk was filling up".into() })
            }
            Room::None { unstored } => Some(Circumstance::DiskFull { unstored }),
        }
    }

    /// What to say of a control group that was throttled.
    pub(crate) fn of_throttled(group: &GroupThrottled) -> Circumstance {
        Circumstance::Throttled {
            cgroup: visible(&group.quota.cgroup).into_owned(),
            limit: group.quota.limit,
            times: group.times,
            time: group.throttled,
        }
    }

    /// What to say of changes of frequency: of the few CPUs that changed most often.
    pub(crate) fn of_frequencies(of: &BTreeMap<CpuId, FrequencyChanges>) -> Vec<Circumstance> {
        let mut cpus: Vec<_> = of.iter().map(|(cpu, changes)| (*cpu, *changes)).collect();
        cpus.sort_by_key(|(cpu, changes)| (std::cmp::Reverse(changes.times), *cpu));
        cpus.truncate(MOST_FREQUENCIES);
        cpus.into_iter().map(|(cpu, changes)| Circumstance::FrequencyChanged { cpu, changes }).collect()
    }

    pub(crate) fn warning(&self) -> Warning {
        let (id, text) = match self {
            Circumstance::NoKernelEvents { reason, fix } => (
                "no-kernel-events",
                format!("Stalls were measured but not attributed: {reason}.{}", sentence(fix)),
            ),
            Circumstance::NoTraceWanted { pipeline } => (
                "no-kernel-events",
                format!(
                    "Stalls were measured but not attributed: --no-trace was given. {}",
                    match pipeline {
                        false => "Leave it out to have stalls attributed.",
                        true => "Leave it out to learn why messages were slow.",
                    }
                ),
            ),
            Circumstance::NoFreeCpu { measured } => (
                "no-free-cpu",
                format!(
                    "Every usable CPU ({measured}) is measured, so our own threads stalled the probes too. \
                     Leave a CPU out of --cpus."
                ),
            ),
            Circumstance::NoFreeCpuForAttach => (
                "no-free-cpu",
                "The followed threads may run on every CPU that we may use, so our own reading of the trace \
                 took time from them, too; it is named where it did. Keep jitterscope apart with taskset."
                    .into(),
            ),
            Circumstance::NoFreeCpuToWatch { watched } => (
                "no-free-cpu",
                format!(
                    "Every usable CPU ({watched}) is watched, so our own reading of the trace ran there, too; it \
                     is named where it did. Leave a CPU out of --cpus."
                ),
            ),
            Circumstance::NobodyBelongs { cpus, look } => (
                "nobody-belongs",
                format!(
                    "No thread but the kernel's own had CPU {cpus} in the look of {look} before the \
                     measurement, so nothing counts as stolen there. Name what belongs there with --for."
                ),
            ),
            Circumstance::NeverMet { whom } => (
                "nobody-met",
                format!("No thread of {whom} was met on the watched CPUs, so nothing counts as stolen."),
            ),
            Circumstance::CommandFailed { status } => {
                ("command-failed", format!("The command ended with {status}."))
            }
            Circumstance::TooManyThreads { refused, most } => (
                "too-many-threads",
                format!("{refused} threads were not followed: {most} are followed at most."),
            ),
            Circumstance::NotFollowed { late, missed } => {
                let threads = |count: &u64| match count {
                    1 => "1 thread".to_owned(),
                    more => format!("{more} threads"),
                };
                let late = (*late > 0).then(|| {
                    format!(
                        "{} of the name had it before they were met, at their next switch or wake-up: what they \
                         did until then is in no account.",
                        threads(late)
                    )
                });
                let missed = (*missed > 0).then(|| {
                    format!(
                        "{} of the name were not followed: nothing was seen of them but their end.",
                        threads(missed)
                    )
                });
                ("not-followed", late.into_iter().chain(missed).collect::<Vec<_>>().join(" "))
            }
            Circumstance::UnrecordedSwitches { count, cpus } => (
                "unrecorded-switches",
                format!(
                    "The kernel did not record {count} switches on CPU {cpus}: it traces nothing of some \
                     threads there (often the idle thread). The time from the last record of one thread to \
                     the first of another is told as an unrecorded switch; where the scheduler charged the \
                     other one for its running, that much of it is its."
                ),
            ),
            Circumstance::Folded { time } => (
                "folded",
                format!(
                    "In {time} of stalled time more happened than is kept in order: who took how much of it is \
                     exact, who set it going is not known."
                ),
            ),
            Circumstance::Throttled { cgroup, limit, times, time } => (
                "cpu-quota",
                format!(
                    "The CPU quota of control group {cgroup}{} was used up in {times} periods: threads in it that \
                     could have run were not let, for {time} summed over the CPUs. Raise it or take it away (knob \
                     cfs-quota); where another thread had the CPU meanwhile, the quota is only a possibility.",
                    match limit.filter(|limit| limit.period_us > 0) {
                        Some(limit) =>
                            format!(" ({} us of CPU time every {} us)", limit.quota_us, limit.period_us),
                        None => String::new(),
                    }
                ),
            ),
            Circumstance::CpusGone { cpus } => (
                "cpu-offline",
                format!("CPU {cpus} went offline meanwhile; what ran there from then on was not seen."),
            ),
            Circumstance::NobodyMet => (
                "nobody-met",
                "No thread was followed for any time: none of the name was met, or it ended at once.".into(),
            ),
            Circumstance::ControlShared { cpu } => (
                "idle-control-shared",
                format!(
                    "CPU {cpu}, the idle control, also runs our own threads, for no other CPU is free: \
                     wake-ups that they make late are named for them. Measure fewer CPUs for a control \
                     that is idle."
                ),
            ),
            Circumstance::SiblingBusy { cpu, siblings } => (
                "smt-sibling",
                format!(
                    "Our own threads could run on CPU {siblings}, which shares a core with measured CPU {cpu}. \
                     Restrict jitterscope to another core with taskset, or measure both."
                ),
            ),
            Circumstance::RtThrottling { runtime_us, period_us } => (
                "rt-throttling",
                format!(
                    "A SCHED_FIFO probe may run {runtime_us} us of every {period_us} us \
                     (kernel.sched_rt_runtime_us): the kernel stalls it by itself. Set it to -1 for the \
                     measurement, or leave out --priority."
                ),
            ),
            Circumstance::ClockFallback { reason } => (
                "clock-fallback",
                format!(
                    "Measured with CLOCK_MONOTONIC_RAW, not the TSC: {reason}. The floor is higher for it."
                ),
            ),
            Circumstance::ClockDoubt { reason } => (
                "clock-doubt",
                format!(
                    "Measured with the TSC because --clock tsc said so: {reason}. Should its rate have changed, \
                     or differ between CPUs, lengths and times are wrong by as much."
                ),
            ),
            Circumstance::OwnBookkeeping { cpu, count, threshold, store } => (
                "own-bookkeeping",
                format!(
                    "CPU {cpu}: {count} of the stalls are the probe's own bookkeeping, and have no record: \
                     storing a stall takes up to {store} here, and the threshold is {threshold}. Leave out \
                     --threshold for one that is well above."
                ),
            ),
            Circumstance::DroppedRecords { cpu, dropped } => (
                "dropped-records",
                format!(
                    "CPU {cpu}: {dropped} stalls are counted but have no record, for the queue was full; \
                     the shortest had to go first. Raise --threshold."
                ),
            ),
            Circumstance::TraceLost { lost } => (
                "trace-lost",
                format!(
                    "{lost} kernel events were lost to full buffers; stalls near them have no verdict. \
                     Raise --trace-buffer."
                ),
            ),
            Circumstance::EndedEarly { cpu, why } => {
                ("cpu-ended-early", format!("CPU {cpu} was not measured to the end: {why}."))
            }
            Circumstance::PageFaults { cpu, faults } => (
                "own-page-faults",
                format!(
                    "The probe of CPU {cpu} took {faults} page faults of its own while measuring; they show \
                     as stalls. Check for memory pressure, and whether it may lock memory."
                ),
            ),
            Circumstance::LeftoversRemoved { count } => (
                "leftovers-removed",
                format!("{count} tracing instances of an earlier jitterscope that was killed were removed."),
            ),
            Circumstance::TraceDiscarded { why } => (
                "trace-discarded",
                format!("The raw trace was not kept: {why}. Stalls cannot be shown as timelines."),
            ),
            Circumstance::OutputLost { output, delivered, lost, why } => (
                "output-lost",
                format!(
                    "{output} got {delivered} rows and lost {lost}: {why}. The run itself has them: export it \
                     again for a whole copy."
                ),
            ),
            Circumstance::FrequencyChanged { cpu, changes } => {
                let (low, high) = (mhz(changes.lowest_khz), mhz(changes.highest_khz));
                let range =
                    if low == high { format!("to {high}") } else { format!("between {low} and {high}") };
                let times =
                    if changes.times == 1 { "once".into() } else { format!("{} times", changes.times) };
                (
                    "frequency-changed",
                    format!(
                        "CPU {cpu} changed its frequency {times}, {range}: the same work took another time then. The \
                         knobs governor and freq-floor hold it."
                    ),
                )
            }
            Circumstance::Interrupted => {
                ("interrupted", "The recording was ended before its time; what was measured is kept.".into())
            }
            Circumstance::DiskFull { unstored } => (
                "disk-full",
                format!(
                    "The disk was full, so the recording ended early and without its raw trace. {}Make room, \
                     or name another folder with --runs.",
                    match unstored {
                        0 => String::new(),
                        1 => "Its last stall is counted but has no record. ".into(),
                        more => format!("Its last {more} stalls are counted but have no record. "),
                    }
                ),
            ),
        };
        Warning { id: id.into(), text }
    }
}

/// `2600 MHz`.
fn mhz(khz: u32) -> String {
    format!("{} MHz", khz.saturating_add(500) / 1000)
}

/// What to do, as a sentence behind another one; nothing where there is nothing to do.
fn sentence(fix: &str) -> String {
    let mut letters = fix.chars();
    letters.next().map_or_else(String::new, |first| format!(" {}{}.", first.to_uppercase(), letters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_is_a_sentence() {
        let told = |fix: &str| {
            Circumstance::NoKernelEvents { reason: "denied".into(), fix: fix.into() }.warning().text
        };
        assert!(told("run as root").ends_with("denied. Run as root."));
        assert!(told("").ends_with("denied."));
    }

    #[test]
    fn a_cpu_that_changed_its_frequency_is_told() {
        let changes = |times| FrequencyChanges { times, lowest_khz: 1_199_999, highest_khz: 3_400_000 };
        let of = (0..20).map(|cpu| (CpuId(cpu), changes(u64::from(cpu) + 1))).collect();
        let told = Circumstance::of_frequencies(&of);
        assert_eq!(told.len(), MOST_FREQUENCIES);
        let warning = told[0].warning();
        assert_eq!(warning.id, "frequency-changed");
        assert!(
            warning.text.starts_with("CPU 19 changed its frequency 20 times, between 1200 MHz and 3400 MHz")
        );
    }
}
