//! Words for the limits of a run, each with advice.

use crate::any_version::{UNKNOWN, in_words};
use crate::ended::ended_early;
use crate::journal_fault::journal_fault;
use crate::number::{count, times};
use crate::style::tame;
use crate::{clocks, misfit, sources};
use jitterscope_model::{CpuUse, MeasuringThread, NamedOwner, NoKernelEvents, Warning, visible};

/// One or two sentences: what happened and what to do.
#[must_use]
pub fn warning(warning: &Warning) -> String {
    match warning {
        Warning::NoKernelEvents(NoKernelEvents { wanted: true, problem }) => match problem {
            Some(of) => format!(
                "Stalls were measured but not attributed: {}.{}",
                sources::problem(of),
                sentence(&sources::fix(of))
            ),
            None => "Stalls were measured but not attributed.".into(),
        },
        Warning::NoKernelEvents(NoKernelEvents { wanted: false, .. }) => {
            "Stalls were measured but not attributed: --no-trace was given. Leave it out to learn what caused them."
                .into()
        }
        Warning::NoFreeCpu { cpus, taken } => match taken {
            CpuUse::Measured => format!(
                "Every usable CPU ({cpus}) is measured, so our own threads stalled the probes too. Leave a CPU \
                 out of --cpus."
            ),
            CpuUse::Watched => format!(
                "Every usable CPU ({cpus}) is watched, so our own reading of the trace ran there, too; it is \
                 named where it did. Leave a CPU out of --cpus."
            ),
            CpuUse::Followed => "The followed threads may run on every CPU that we may use, so our own reading of \
                                 the trace took time from them, too; it is named where it did. Keep jitterscope \
                                 apart with taskset."
                .into(),
            CpuUse::Pipeline => format!(
                "The pipeline's threads have every usable CPU ({cpus}), so our own thread, which wakes every \
                 50 ms, stalled them too. A machine with one CPU more would not show that."
            ),
        },
        Warning::NoOwner { cpus, look_ns } => format!(
            "Only kernel threads ran on {} in the {look_ns} before the measurement, so \
             nothing counts as stolen there. Name the owner with --for.",
            cpus.in_words()
        ),
        Warning::OwnerNotMet { named, watching: true } => {
            let named = named.as_ref().map_or_else(|| NAMED.into(), |named| in_words(named, owner, NAMED));
            format!("No thread of {named} was met on the watched CPUs, so nothing counts as stolen.")
        }
        Warning::OwnerNotMet { watching: false, .. } => {
            "No thread was followed for any time: none of the name was met, or it ended at once.".into()
        }
        Warning::CommandFailed { status } => format!("The command ended with {status}."),
        Warning::TooManyThreads { refused, most } => {
            format!("{refused} threads were not followed: {most} are followed at most.")
        }
        Warning::NotFollowed { late, missed } => not_followed(*late, *missed),
        Warning::RenamedOften { threads } => format!(
            "{} renamed themselves so often that it was no longer recorded: what they did may be shown under any \
             of their names.",
            if *threads == 1 { "1 thread".to_owned() } else { format!("{} threads", crate::number::count(*threads)) },
        ),
        Warning::UnrecordedSwitches { count, cpus } => format!(
            "The kernel did not record {} on {}: it traces nothing of some threads there \
             (often the idle thread). The time from the last record of one thread to the first of another is \
             shown as an unrecorded switch; where the scheduler charged the other one for its running, that \
             much of it is its.",
            if *count == 1 { "1 switch".to_owned() } else { format!("{} switches", crate::number::count(*count)) },
            cpus.in_words()
        ),
        Warning::Folded { time_ns } => format!(
            "In {time_ns} of stalled time more happened than is kept in order: who took how much of it is exact, \
             who caused it is not known."
        ),
        Warning::CpuQuota { cgroup, limit, times, time_ns } => {
            let limit = limit.filter(|limit| limit.period_us > 0).map_or_else(String::new, |limit| {
                format!(" ({} us of CPU time every {} us)", limit.quota_us, limit.period_us)
            });
            format!(
                "The CPU quota of control group {}{limit} was used up in {times} periods: threads in it that could \
                 have run were not let, for {time_ns} summed over the CPUs. Raise it or take it away (knob \
                 cfs-quota). Where another thread had the CPU meanwhile, taking that thread away alone wins nothing.",
                visible(cgroup)
            )
        }
        Warning::FrequencyChanged { cpu, times, lowest_khz, highest_khz } => {
            let (low, high) = (mhz(*lowest_khz), mhz(*highest_khz));
            let range = if low == high { format!("to {high}") } else { format!("between {low} and {high}") };
            let often = self::times(*times);
            format!(
                "CPU {cpu} changed its frequency {often}, {range}: the same work took another time then. The knobs \
                 governor and freq-floor hold it."
            )
        }
        Warning::CpuOffline { cpus } => {
            format!("{} went offline meanwhile; what ran there from then on was not seen.", cpus.in_words())
        }
        Warning::IdleControlShared { cpu } => format!(
            "CPU {cpu}, the idle control, also runs our own threads, for no other CPU is free: wake-ups that \
             they make late are named for them. Measure fewer CPUs for a control that is idle."
        ),
        Warning::SmtSibling { cpu, siblings } => format!(
            "Our own threads could run on CPU {siblings}, which shares a core with measured CPU {cpu}. Restrict \
             jitterscope to another core with taskset, or measure both."
        ),
        Warning::RtThrottling { runtime_us, period_us } => format!(
            "A SCHED_FIFO probe may run {runtime_us} us of every {period_us} us (kernel.sched_rt_runtime_us): the \
             kernel stalls it by itself. Set it to -1 for the measurement, or leave out --priority."
        ),
        Warning::ClockFallback { reason } => {
            format!("Measured with CLOCK_MONOTONIC_RAW, not the TSC: {}. The floor is higher for it.", in_words(reason, clocks::fallback, UNKNOWN))
        }
        Warning::ClockDoubt { reason } => format!(
            "Measured with the TSC because --clock tsc said so: {}. Should its rate have changed, or differ \
             between CPUs, lengths and times are wrong by as much.",
            in_words(reason, clocks::tsc_flaw, UNKNOWN)
        ),
        Warning::OwnBookkeeping { cpu, count, threshold_ns, store_ns } => format!(
            "CPU {cpu}: {count} of the stalls are the probe's own bookkeeping, and have no record: storing a stall \
             takes up to {store_ns} here, and the threshold is {threshold_ns}. Leave out --threshold for one that \
             is well above."
        ),
        Warning::DroppedRecords { thread: MeasuringThread::Cpu(cpu), dropped } => format!(
            "CPU {cpu}: {} stalls are counted but have no record, for the queue was full; the shortest had \
             to go first. Raise --threshold.",
            count(*dropped)
        ),
        Warning::DroppedRecords { thread: MeasuringThread::Role(role), dropped } => format!(
            "{} slow messages of the {role} are counted but have no row: too many came at once. Raise \
             --threshold.",
            count(*dropped)
        ),
        Warning::TraceLost { lost } => format!(
            "{} kernel events were lost to full buffers; stalls near them have no verdict. Raise --trace-buffer.",
            count(*lost)
        ),
        Warning::TraceDisturbed {
            times: often,
            first_ns,
            time_ns,
            files,
            repaired,
        } => {
            let now = if *repaired {
                "All was set again as it had been"
            } else {
                "Not all could be set again as it had been"
            };
            format!(
                "Another process wrote to the controls of our trace {}, first {first_ns} after the start ({}): of \
                 {time_ns} nothing is said of who stole it. {now}. Let nobody reset or set up tracing while you record.",
                times(*often),
                files.join(", ")
            )
        }
        Warning::EventsMissing {
            event,
            counted,
            recorded,
        } => format!(
            "The kernel counted {} of the event {event}, and {} were recorded, though no record is known to be lost: who \
             stole the time is not said. Look who else reads or filters our trace, and record again.",
            count(*counted),
            count(*recorded)
        ),
        Warning::WriterBehind { waited_ns } => format!(
            "Records were lost, and the recorder had waited {waited_ns} in all until its rows were written, without \
             reading the kernel's buffers meanwhile; that may be why. Store the run on a faster disk with --runs, or \
             record without the outputs beside it."
        ),
        Warning::CpuEndedEarly { cpu, why } => {
            format!("CPU {cpu} was not measured to the end: {}.", ended_early(why))
        }
        Warning::OwnPageFaults { thread: MeasuringThread::Cpu(cpu), faults } => format!(
            "The probe of CPU {cpu} took {faults} page fault{s} of its own while measuring, recorded as stall{s}. \
             Check for memory pressure, and whether it may lock memory.",
            s = if *faults == 1 { "" } else { "s" }
        ),
        Warning::OwnPageFaults { thread: MeasuringThread::Role(role), faults } => format!(
            "The {role} took {faults} page faults of its own after its set-up; they may show as slow messages."
        ),
        Warning::LeftoversRemoved { count, kept } => {
            let mut text = String::new();
            if *count > 0 {
                text = format!(
                    "{count} tracing instances of an earlier jitterscope that was killed were removed."
                );
            }
            if *kept > 0 {
                text += &format!(
                    " {kept} of an earlier jitterscope could not be removed, and may still record: see jitterscope doctor."
                );
            }
            text.trim_start().to_owned()
        }
        Warning::TraceDiscarded { at_the_end } => format!(
            "The raw trace was not kept: the disk was {}. Stalls cannot be shown as timelines.",
            if *at_the_end { "full at the end" } else { "filling up" }
        ),
        Warning::DiskFull { unstored } => format!(
            "The disk was full, so the recording ended early and without its raw trace. {}Make room, or name another \
             folder with --runs.",
            match unstored {
                0 => String::new(),
                1 => "Its last stall is counted but has no record. ".into(),
                more => format!("Its last {more} stalls are counted but have no record. "),
            }
        ),
        Warning::OutputLost { output, delivered, lost, why } => format!(
            "{output} got {delivered} rows and lost {lost}: {why}. The run itself has them: export it again for a \
             whole copy."
        ),
        Warning::Interrupted => "The recording was ended before its time; what was measured is kept.".into(),
        Warning::ForcedPlacement { misfit } => format!("Continuing anyway (--force): {}.", in_words(misfit, misfit::misfit, "the placement measures itself, for a reason that this version does not know")),
        Warning::NotPinned { one_core, many_nodes } => format!(
            "Threads were left to the scheduler, which may put them {}: that changes a message's way from run to \
             run. Pin them with --producer-cpu, --accumulator-cpu and --journaller-cpu.",
            match (one_core, many_nodes) {
                (true, false) => "on two hardware threads of one core",
                (false, true) => "on different NUMA nodes",
                _ => "on two hardware threads of one core or on different NUMA nodes",
            }
        ),
        Warning::MemoryNotLocked { why } => format!(
            "The memory was faulted in but could not be locked ({why}): under memory pressure its pages can go. \
             Raise RLIMIT_MEMLOCK (ulimit -l), or give CAP_IPC_LOCK."
        ),
        Warning::JournalDiskFull { why } => format!(
            "The journal's disk was full, so the measurement ended early; what was measured and journalled is \
             kept. {}.",
            journal_fault(why)
        ),
        Warning::JournalEnded { why } => format!(
            "The journal could not be continued, so the measurement ended early; what was measured and journalled \
             is kept. {}.",
            journal_fault(why)
        ),
        Warning::JournalWaits { waits } => format!(
            "The journaller waited {} for room in its file, which shows in its times. A longer --period \
             or a CPU more for our own thread prevents it.",
            times(*waits)
        ),
        Warning::RingFull { waits, waited_ns } => format!(
            "The producer found the ring full {} and waited {waited_ns} in all, which shows in the times \
             from the intended publication alone. Raise --ring, or --period where the consumers cannot keep up.",
            times(*waits)
        ),
        Warning::Disordered { role, disordered } => {
            format!("{disordered} messages reached the {role} out of order or were lost: this is a bug.")
        }
        Warning::AttributedAgain { by, recorded_by } => format!(
            "Stalls were attributed again from the raw trace, by version {by} (recorded by {recorded_by}). The \
             stored run is as it was."
        ),
        Warning::VerdictsKept { kept, stalls } => format!(
            "{kept} of {stalls} stalls keep the verdict of their recording: the raw trace around them was not kept. \
             Raise --trace-limit when recording."
        ),
        Warning::InconsistentRows { rows } => format!(
            "{rows} stalls and attributions of this run do not fit together; what is missing counts as unresolved. \
             Record again."
        ),
        Warning::Other(other) if other.text.is_empty() => {
            format!("Warning {}, written by another version of jitterscope, which knows what it says.", other.id)
        }
        Warning::Other(other) => other.text.clone(),
    }
}

/// An owner that this version does not know.
const NAMED: &str = "those named";

/// The named owner, as part of a sentence: `process 7`.
fn owner(of: &NamedOwner) -> String {
    match of {
        NamedOwner::Process { pid } => format!("process {pid}"),
        NamedOwner::Named { name } => format!("the name '{}'", tame(name)),
    }
}

fn not_followed(late: u64, missed: u64) -> String {
    let threads = |count: u64| match count {
        1 => "1 thread".to_owned(),
        more => format!("{more} threads"),
    };
    let late = (late > 0).then(|| {
        format!(
            "{} had this name before we noticed, at the next switch or wake-up; earlier activity is \
             not counted.",
            threads(late)
        )
    });
    let missed = (missed > 0).then(|| {
        format!(
            "{} of the name were not followed: nothing was seen of them but their end.",
            threads(missed)
        )
    });
    late.into_iter().chain(missed).collect::<Vec<_>>().join(" ")
}

/// `2600 MHz`.
fn mhz(khz: u32) -> String {
    format!("{} MHz", khz.saturating_add(500) / 1000)
}

/// The advice as a following sentence; empty if there is none.
fn sentence(fix: &str) -> String {
    let mut letters = fix.chars();
    letters.next().map_or_else(String::new, |first| {
        format!(" {}{}.", first.to_uppercase(), letters.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{CpuId, SourceProblem};

    #[test]
    fn what_to_do_is_a_sentence() {
        let text = |problem| {
            warning(&Warning::NoKernelEvents(NoKernelEvents {
                wanted: true,
                problem: Some(problem),
            }))
        };
        let lost = SourceProblem::EventsLost { lost: 3 };
        assert!(text(lost).ends_with("lost 3 events. Make the trace buffer larger."));
        let parser = "it is denied".into();
        assert!(text(SourceProblem::FormatUnreadable { parser }).ends_with("it is denied."));
    }

    #[test]
    fn who_was_named_is_reported() {
        let reported = |named| {
            warning(&Warning::OwnerNotMet {
                named,
                watching: true,
            })
        };
        assert!(
            reported(Some(NamedOwner::Process { pid: 7 }.into()))
                .starts_with("No thread of process 7 was met")
        );
        let redis = NamedOwner::Named {
            name: "redis".into(),
        };
        assert!(reported(Some(redis.into())).starts_with("No thread of the name 'redis' was met"));
    }

    #[test]
    fn a_changed_frequency_is_reported_in_megahertz() {
        let text = |times, lowest_khz| {
            warning(&Warning::FrequencyChanged {
                cpu: CpuId(3),
                times,
                lowest_khz,
                highest_khz: 3_400_000,
            })
        };
        assert!(
            text(20, 1_199_999)
                .starts_with("CPU 3 changed its frequency 20 times, between 1200 MHz and 3400 MHz")
        );
        assert!(text(1, 3_400_000).starts_with("CPU 3 changed its frequency once, to 3400 MHz:"));
    }
}
