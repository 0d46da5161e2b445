//! Words for the limits of a run, each with advice.

use crate::any_version::{UNKNOWN, in_words};
use crate::ended::ended_early;
use crate::journal_fault::journal_fault;
use crate::number::{count, times};
use crate::style::tame;
use crate::{clocks, misfit, sources};
use jitterscope_analyze::RunSummary;
use jitterscope_model::{
    CpuUse, MeasuringThread, MissingFigure, NamedOwner, NoKernelEvents, Warning, visible,
};

/// The words for each warning of a run.
pub(crate) fn texts(summary: &RunSummary) -> Vec<String> {
    let all = summary.warnings.iter();
    all.map(|of| warning(&of.warning)).collect()
}

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
            "Stalls were measured but not attributed: --no-trace was given. Omit it to see the culprits."
                .into()
        }
        Warning::NoFreeCpu { cpus, taken } => match taken {
            CpuUse::Measured => format!(
                "Every usable CPU ({cpus}) is measured, so jitterscope's own threads also stalled the probes. Omit a CPU \
                 from --cpus."
            ),
            CpuUse::Watched => format!(
                "Every usable CPU ({cpus}) is watched, so jitterscope's trace reader also ran there; the report names \
                 it. Omit a CPU from --cpus."
            ),
            CpuUse::Followed => "The followed threads may run on every CPU that jitterscope may use, so its trace \
                                 reader took time from them; the report names it. Separate them with taskset."
                .into(),
            CpuUse::Pipeline => format!(
                "The pipeline's threads use every usable CPU ({cpus}), so jitterscope's own thread, which wakes every \
                 50 ms, also stalled them. One more CPU would avoid this."
            ),
        },
        Warning::NoOwner { cpus, look_ns } => format!(
            "Only kernel threads ran on {} in the {look_ns} before the measurement, so \
             nothing counts as stolen there. Name the owner with --for.",
            cpus.in_words()
        ),
        Warning::OwnerNotMet { named, watching: true } => {
            let named = named.as_ref().map_or_else(|| NAMED.into(), |named| in_words(named, owner, NAMED));
            format!("{named} on the watched CPUs, so nothing counts as stolen.")
        }
        Warning::OwnerNotMet { watching: false, .. } => {
            "No thread was followed: no thread of this name ran, or it ended immediately.".into()
        }
        Warning::CommandFailed { status } => format!("The command ended with {status}."),
        Warning::TooManyThreads { refused, most } => {
            format!("{refused} threads were not followed: the limit is {most}.")
        }
        Warning::NotFollowed { late, missed } => not_followed(*late, *missed),
        Warning::ImportCut { cpus } => format!(
            "The file is cut off or damaged: the records of {} are incomplete. What the file still holds was \
             imported.",
            cpus.in_words()
        ),
        Warning::ImportDisordered { pages } => format!(
            "{} of the file were left out, because their times precede those of earlier pages of the CPU. Stalls at \
             these times have no verdict.",
            if *pages == 1 { "1 page".to_owned() } else { format!("{} pages", crate::number::count(*pages)) }
        ),
        Warning::ImportMoved { records } => format!(
            "Records were later in the file than perf writes them: {}. Each got the time of the record before it on its \
             CPU, so times nearby are approximate.",
            crate::number::count(*records)
        ),
        Warning::ImportLocalClock => "The file's clock is 'local': the kernel does not compare the clocks of its CPUs, \
             which may differ by microseconds and more. The order of events of different CPUs (who woke whom, a \
             thread that moves) is therefore approximate. Record with a common clock: trace-cmd record -C mono."
            .into(),
        Warning::ImportProcess { pid } => format!(
            "Thread {pid} was followed, and the threads that it began in the trace. A trace does not state which older \
             threads belong to process {pid}; follow those by name (--comm)."
        ),
        Warning::RenamedOften { threads } => format!(
            "{} renamed themselves too often to record every name: the report may show their activity under any \
             of their names.",
            if *threads == 1 { "1 thread".to_owned() } else { format!("{} threads", crate::number::count(*threads)) },
        ),
        Warning::UnrecordedSwitches { count, cpus } => format!(
            "The kernel did not record {} on {}: it does not trace some threads there \
             (often the idle thread). The time from the last record of one thread to the first of the next is \
             shown as an unrecorded switch. Time that the scheduler charged to the next thread is attributed \
             to it.",
            if *count == 1 { "1 switch".to_owned() } else { format!("{} switches", crate::number::count(*count)) },
            cpus.in_words()
        ),
        Warning::Folded { time_ns } => format!(
            "For {time_ns} of stalled time the order of events is not stored: the culprits' totals are exact, \
             their triggers are unknown."
        ),
        Warning::CpuQuota { cgroup, limit, times, time_ns } => {
            let limit = limit.filter(|limit| limit.period_us > 0).map_or_else(String::new, |limit| {
                format!(" ({} us of CPU time every {} us)", limit.quota_us, limit.period_us)
            });
            format!(
                "The CPU quota of control group {}{limit} was used up in {times} periods: runnable threads in the group \
                 were throttled for {time_ns} summed over the CPUs. Raise or remove the quota (knob \
                 cfs-quota). If another thread had the CPU during that time, removing only that thread gains nothing.",
                visible(cgroup)
            )
        }
        Warning::FrequencyChanged { cpu, times, lowest_khz, highest_khz } => {
            let (low, high) = (mhz(*lowest_khz), mhz(*highest_khz));
            let range = if low == high { format!("to {high}") } else { format!("between {low} and {high}") };
            let often = self::times(*times);
            format!(
                "CPU {cpu} changed its frequency {often}, {range}: the duration of the same work changed too. The knobs \
                 governor and freq-floor fix the frequency."
            )
        }
        Warning::CpuOffline { cpus } => {
            format!("{} went offline during the recording; later activity there is not recorded.", cpus.in_words())
        }
        Warning::IdleControlShared { cpu } => format!(
            "CPU {cpu}, the idle control, also runs jitterscope's own threads, because no other CPU is free: \
             wake-ups that they delay name them. Measure fewer CPUs to get an idle control."
        ),
        Warning::SmtSibling { cpu, siblings } => format!(
            "jitterscope's own threads could run on CPU {siblings}, which shares a core with measured CPU {cpu}. Restrict \
             jitterscope to another core with taskset, or measure both CPUs."
        ),
        Warning::RtThrottling { runtime_us, period_us } => format!(
            "A SCHED_FIFO probe may run {runtime_us} us of every {period_us} us (kernel.sched_rt_runtime_us): the \
             kernel stalls it for the rest. Set it to -1 for the measurement, or omit --priority."
        ),
        Warning::ClockFallback { reason } => {
            format!("Measured with CLOCK_MONOTONIC_RAW, not the TSC: {}. This raises the floor.", in_words(reason, clocks::fallback, UNKNOWN))
        }
        Warning::ClockDoubt { reason } => format!(
            "Measured with the TSC because of --clock tsc: {}. If its rate changes, or differs \
             between CPUs, lengths and times are wrong by the same amount.",
            in_words(reason, clocks::tsc_flaw, UNKNOWN)
        ),
        Warning::OwnBookkeeping { cpu, count, threshold_ns, store_ns } => format!(
            "CPU {cpu}: {count} of the stalls are the probe's own bookkeeping and have no record: storing a stall \
             takes up to {store_ns} here, and the threshold is {threshold_ns}. Omit --threshold to get one \
             well above that."
        ),
        Warning::DroppedRecords { thread: MeasuringThread::Cpu(cpu), dropped } => format!(
            "CPU {cpu}: {} stalls are counted but have no record, because the queue was full; the shortest \
             were dropped first. Raise --threshold.",
            count(*dropped)
        ),
        Warning::DroppedRecords { thread: MeasuringThread::Role(role), dropped } => format!(
            "{} slow messages of the {role} are counted but have no row: too many came together. Raise \
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
                "jitterscope restored all of them"
            } else {
                "jitterscope could not restore all of them"
            };
            format!(
                "Another process wrote to the trace controls {}, first {first_ns} after the start ({}): {time_ns} \
                 have no culprits. {now}. Do not let other programs reset or set up tracing during a recording.",
                times(*often),
                files.join(", ")
            )
        }
        Warning::EventsMissing {
            event,
            counted,
            recorded,
        } => format!(
            "The kernel counted {} of the event {event}, but {} were recorded, and no loss is known: the report names no \
             culprits. Check which program reads or filters jitterscope's trace, and record again.",
            count(*counted),
            count(*recorded)
        ),
        Warning::WriterBehind { waited_ns } => format!(
            "Records were lost. The recorder waited {waited_ns} in total for its rows to be written and did not read \
             the kernel's buffers during that time, which may be the cause. Store the run on a faster disk with \
             --runs, or record without extra outputs."
        ),
        Warning::CpuEndedEarly { cpu, why } => {
            format!("CPU {cpu} was not measured to the end: {}.", ended_early(why))
        }
        Warning::OwnPageFaults { thread: MeasuringThread::Cpu(cpu), faults } => format!(
            "The probe of CPU {cpu} took {faults} page fault{s} while measuring, recorded as stall{s}. \
             Check for memory pressure and whether the probe may lock memory.",
            s = if *faults == 1 { "" } else { "s" }
        ),
        Warning::OwnPageFaults { thread: MeasuringThread::Role(role), faults } => format!(
            "The {role} took {faults} page faults after its setup; they may appear as slow messages."
        ),
        Warning::LeftoversRemoved { count, kept } => {
            let mut text = String::new();
            if *count > 0 {
                text = format!(
                    "Removed {count} tracing instances of a killed jitterscope."
                );
            }
            if *kept > 0 {
                text += &format!(
                    " {kept} instances of an earlier jitterscope could not be removed and may still record: see jitterscope doctor."
                );
            }
            text.trim_start().to_owned()
        }
        Warning::TraceDiscarded { at_the_end } => format!(
            "The raw trace was not kept: the disk was {}. Stalls cannot be shown as timelines.",
            if *at_the_end { "full at the end" } else { "filling up" }
        ),
        Warning::DiskFull { unstored } => format!(
            "The disk was full, so the recording ended early and without its raw trace. {}Free disk space, or set \
             another folder with --runs.",
            match unstored {
                0 => String::new(),
                1 => "Its last stall is counted but has no record. ".into(),
                more => format!("Its last {more} stalls are counted but have no record. "),
            }
        ),
        Warning::OutputLost { output, delivered, lost, why } => format!(
            "{output} received {delivered} rows and lost {lost}: {why}. The run contains all rows: export it again for a \
             complete copy."
        ),
        Warning::Interrupted => "The recording was ended early; the measured data is kept.".into(),
        Warning::Killed { missing } => format!(
            "The recording was killed: its last second may be missing, and the totals cover only what was written. Not \
             known, because only the killed process had it in memory: {}.",
            missing_figures(missing)
        ),
        Warning::SavedPart { missing } => format!(
            "This is a part of a longer measurement, saved while that went on. Not known of a part: {}.",
            missing_figures(missing)
        ),
        Warning::ForcedPlacement { misfit } => format!("Continuing anyway (--force): {}.", in_words(misfit, misfit::misfit, "the placement measures itself, for a reason that this version does not know")),
        Warning::NotPinned { one_core, many_nodes } => format!(
            "The scheduler placed the threads, and may put them {}: a message's path then differs between \
             runs. Pin them with --producer-cpu, --accumulator-cpu and --journaller-cpu.",
            match (one_core, many_nodes) {
                (true, false) => "on two hardware threads of one core",
                (false, true) => "on different NUMA nodes",
                _ => "on two hardware threads of one core or on different NUMA nodes",
            }
        ),
        Warning::MemoryNotLocked { why } => format!(
            "The memory was prefaulted but could not be locked ({why}): memory pressure can evict its pages. \
             Raise RLIMIT_MEMLOCK (ulimit -l), or give CAP_IPC_LOCK."
        ),
        Warning::JournalDiskFull { why } => format!(
            "The journal's disk was full, so the measurement ended early; the measured and journalled data is \
             kept. {}.",
            journal_fault(why)
        ),
        Warning::JournalEnded { why } => format!(
            "The journal could not be continued, so the measurement ended early; the measured and journalled data \
             is kept. {}.",
            journal_fault(why)
        ),
        Warning::JournalWaits { waits } => format!(
            "The journaller waited {} for space in its file, which affects its times. A longer --period \
             or one more CPU for jitterscope's own thread prevents this.",
            times(*waits)
        ),
        Warning::RingFull { waits, waited_ns } => format!(
            "The producer found the ring full {} and waited {waited_ns} in total, which affects only the times \
             from the intended publication. Raise --ring (through the kernel, the room of sockets limits it), or \
             --period if the consumers cannot keep up.",
            times(*waits)
        ),
        Warning::MessagesLost { role, lost } => format!(
            "The kernel lost {} on the way to the {role}. They are in no figure, because nobody received them.",
            match lost {
                1 => "1 message".to_owned(),
                lost => format!("{} messages", crate::number::count(*lost)),
            }
        ),
        Warning::Disordered { role, disordered } => {
            format!("{disordered} messages reached the {role} out of order or were lost: this is a bug.")
        }
        Warning::AttributedAgain { by, recorded_by } => format!(
            "Stalls were attributed again from the raw trace, by version {by} (recorded by {recorded_by}). The \
             stored run is unchanged."
        ),
        Warning::VerdictsKept { kept, stalls } => format!(
            "{kept} of {stalls} stalls keep the verdict of their recording: the raw trace around them was not kept. \
             Raise --trace-limit when recording."
        ),
        Warning::InconsistentRows { rows } => format!(
            "{rows} stalls and attributions of this run are inconsistent; missing data counts as unresolved. \
             Record again."
        ),
        Warning::Other(other) if other.text.is_empty() => {
            format!("Warning {}: another version of jitterscope wrote it and can explain it.", other.id)
        }
        Warning::Other(other) => other.text.clone(),
    }
}

/// An owner that this version does not know.
const NAMED: &str = "The named owner never ran";

/// The named owner, as the beginning of a sentence: `Process 7 never ran`.
fn missing_figures(missing: &[MissingFigure]) -> String {
    let words: Vec<&str> = missing
        .iter()
        .map(|figure| match figure {
            MissingFigure::Samples => {
                "how many samples were no stalls, the shortest, and the percentiles of all"
            }
            MissingFigure::Accounts => "the time accounts",
            MissingFigure::Messages => {
                "how many messages there were, and the percentiles of their times"
            }
            MissingFigure::Losses => "how many kernel records were lost",
            MissingFigure::Machine => "the machine's settings",
            MissingFigure::Cost => "what the recording cost",
        })
        .collect();
    words.join("; ")
}

fn owner(of: &NamedOwner) -> String {
    match of {
        NamedOwner::Process { pid } => format!("Process {pid} never ran"),
        NamedOwner::Group { group } => format!("No thread of '{}' ran", tame(group)),
        NamedOwner::Named { name } => format!("No thread named '{}' ran", tame(name)),
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
            "{} with this name were not followed: only their end was recorded.",
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
                .starts_with("Process 7 never ran")
        );
        let redis = NamedOwner::Named {
            name: "redis".into(),
        };
        assert!(reported(Some(redis.into())).starts_with("No thread named 'redis' ran"));
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
