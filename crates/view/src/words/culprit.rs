//! Words for culprits.

use super::sender::id;
use super::verdicts;
use crate::style::tame;
use jitterscope_analyze::{Common, CulpritRow, KnownName, RecorderThread, common};
use jitterscope_model::{
    About, CulpritKind, Meanwhile, Nanos, Phase, Quota, SchedClass, Subject, SumRow, Task,
    TimerSource, Verdict, Work,
};

/// `thread bash`.
pub(crate) fn kind_and_name(subject: &Subject) -> String {
    format!("{} {}", kind(subject), name(subject))
}

/// Its kind. That another thread ran during a quota's time is in the name.
fn kind(subject: &Subject) -> String {
    match subject.kind() {
        CulpritKind::QuotaBeside => CulpritKind::Quota.as_str().to_owned(),
        _ => tame(subject.kind_word()),
    }
}

pub(crate) fn name(subject: &Subject) -> String {
    tame(&match subject {
        Subject::Quota(Quota {
            beside: Some(task), ..
        }) => format!("{} beside {}", subject.name(), task.comm).into(),
        _ => subject.name(),
    })
}

/// Further identification: `pid 12, real-time 3`, `4 workers, workqueue events`. `threads`: the number of threads or
/// workers.
pub(crate) fn detail(subject: &Subject, threads: u64) -> String {
    tame(&match subject {
        Subject::Thread(task) => {
            let class = task.class.as_ref().and_then(class);
            let was = task.was.as_ref().map(|was| format!("{was} at first"));
            listed([was, process(task, threads), class, group(task)])
        }
        Subject::Work(of) => work(of, threads),
        Subject::Interrupt { number, .. } => {
            number.map_or_else(String::new, |irq| format!("irq {irq}"))
        }
        Subject::Vector(_) => "interrupt vector".into(),
        Subject::Softirq(vec) => format!("vector {vec}"),
        Subject::Timer { source, .. } => source.as_ref().map_or("", timer).into(),
        Subject::Call(_) => "function call interrupt".into(),
        Subject::Ipi(vector) => match &**vector {
            "reschedule" => "a task was woken for this CPU",
            "irq_work" => "work that this CPU deferred to an interrupt",
            _ => "function call interrupt",
        }
        .into(),
        Subject::PageFault { user: true } => "in user code".into(),
        Subject::PageFault { user: false } => "in kernel code".into(),
        Subject::Nmi(_) => "non-maskable interrupt".into(),
        Subject::MachineCheck { bank } => {
            bank.map_or_else(String::new, |bank| format!("bank {bank}"))
        }
        Subject::Throttle(task) => format!("let {} run", one_or_many(task, threads)),
        Subject::Quota(quota) => {
            let limit = quota.limit.filter(|limit| limit.period_us > 0);
            let limit = limit.map(|of| format!("{} us every {} us", of.quota_us, of.period_us));
            let group = Some(format!("control group {}", quota.cgroup));
            let beside = quota.beside.as_ref();
            let beside = beside.map(|task| format!("beside {}", one_or_many(task, threads)));
            listed([group, beside, limit])
        }
        Subject::Verdict(of, about) => verdict(*of, about, threads),
        Subject::Others(_) => String::new(),
        Subject::Unknown { detail, .. } => detail.to_string(),
    })
}

/// The [`detail`] of a table row, and whether it covers very many names.
pub(crate) fn row_detail(row: &CulpritRow) -> String {
    with_names(row, detail(&row.subject, row.threads))
}

/// The [`further_detail`] of a table row.
pub(crate) fn row_further_detail(row: &CulpritRow) -> String {
    with_names(row, further_detail(&row.subject, row.threads))
}

fn with_names(row: &CulpritRow, detail: String) -> String {
    let most = SumRow::<(), ()>::MOST_THREADS;
    let names = row.thread_names.len() as u64;
    let names = (names >= most).then(|| format!("{} names", number(names)));
    listed([Some(detail).filter(|detail| !detail.is_empty()), names])
}

/// The common property of most of the culprits, with their time: `2.1 s of them /opt/thief`.
pub(crate) fn in_common<'a>(
    rows: impl IntoIterator<Item = (&'a Subject, Nanos)>,
) -> Option<(String, Nanos)> {
    let (common, time) = common(rows)?;
    let who = match common {
        Common::Executable(path) => tame(&path),
        Common::User(uid) => format!("user {uid}"),
    };
    Some((format!("{time} of them {who}"), time))
}

/// The [`detail`] beside [`explain`]: an explained verdict needs no further text beside its name.
fn further_detail(subject: &Subject, threads: u64) -> String {
    match subject {
        Subject::Verdict(verdict, About::Nothing) if verdicts::explanation(*verdict).is_some() => {
            String::new()
        }
        _ => detail(subject, threads),
    }
}

/// An explanation of a culprit, in a phrase.
pub(crate) fn explain(subject: &Subject) -> &'static str {
    let known = match subject {
        Subject::Verdict(verdict, _) => verdicts::explanation(*verdict),
        named => KnownName::of(named).map(|known| known.does),
    };
    known.unwrap_or_else(|| match subject {
        Subject::Work(work) if work.function.is_none() => "a kernel worker whose work was not seen",
        _ => of_kind(subject.kind()),
    })
}

/// An explanation of a table row, in a phrase: the recorder's own threads are identified by id.
pub(crate) fn row_explanation(row: &CulpritRow) -> String {
    match (row.recorder, row.told_apart) {
        (Some(RecorderThread::Measuring), _) => "a measuring thread of this very recording".into(),
        (Some(RecorderThread::Other), _) => "jitterscope itself, which made this recording".into(),
        (None, Some(cap)) => format!("culprits beyond the limit of {cap}"),
        (None, None) => explain(&row.subject).into(),
    }
}

/// The common explanation of a kind.
pub(crate) fn of_kind(kind: CulpritKind) -> &'static str {
    match kind {
        CulpritKind::Thread => "another thread that ran on the CPU",
        CulpritKind::Kworker => "deferred kernel work",
        CulpritKind::Irq => "a device's interrupt handler",
        CulpritKind::Timer => "a kernel timer function",
        CulpritKind::Softirq => "deferred interrupt work",
        CulpritKind::Ipi => "a call from another CPU",
        CulpritKind::PageFault => "a page fault of the measured thread",
        CulpritKind::Nmi => "a non-maskable interrupt",
        CulpritKind::Mce => "a machine check: the hardware reported an error",
        CulpritKind::RtThrottle => {
            "the scheduler held the real-time thread back (kernel.sched_rt_runtime_us)"
        }
        CulpritKind::Quota => {
            "its control group had used up its CPU quota (cpu.max, cpu.cfs_quota_us)"
        }
        CulpritKind::QuotaBeside => {
            "its control group had used up its CPU quota while another thread had the CPU"
        }
        CulpritKind::Stopped => "the thread was stopped, not kept waiting",
        CulpritKind::Switch => "the scheduler's own path to another thread and back",
        CulpritKind::Hypervisor => "the host took the CPU, or was late",
        CulpritKind::Firmware => "firmware took the CPU, unseen by the kernel",
        CulpritKind::Unresolved => "no record explains it",
        CulpritKind::Loss => "kernel events were lost nearby, so no verdict is given",
        CulpritKind::Unknown => "of a kind that this version does not know",
    }
}

/// `64+` at the limit of the count.
fn number(threads: u64) -> String {
    let more = if threads >= SumRow::<(), ()>::MOST_THREADS {
        "+"
    } else {
        ""
    };
    format!("{threads}{more}")
}

fn listed(components: impl IntoIterator<Item = Option<String>>) -> String {
    components
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

/// `pid 12`, `4 pids`.
fn individual(tid: Option<i32>, threads: u64, noun: &str) -> Option<String> {
    match tid {
        Some(tid) => Some(format!("{noun} {tid}")),
        None if threads > 1 => Some(format!("{} {noun}s", number(threads))),
        None => None,
    }
}

/// `pid 12`, `tid 13 of make, pid 12`, `pid 12, 4 threads`, `4 pids`.
fn process(task: &Task, threads: u64) -> Option<String> {
    match (task.tid, task.tgid) {
        (Some(tid), Some(process)) if tid != process => {
            let of = task
                .process
                .as_ref()
                .map_or_else(String::new, |name| format!(" of {name}"));
            Some(format!("tid {tid}{of}, pid {process}"))
        }
        (None, Some(process)) if threads > 1 => {
            Some(format!("pid {process}, {} threads", number(threads)))
        }
        (tid, process) => individual(tid.or(process), threads, "pid"),
    }
}

/// `cron.service`, `container 0123456789ab`; not where the row is called so.
fn group(task: &Task) -> Option<String> {
    let group = task.group().filter(|group| group.0 != "/")?;
    Some(group.to_string()).filter(|group| **group != *task.comm)
}

/// The scheduling class, if it is not plain fair.
fn class(class: &SchedClass) -> Option<String> {
    match class {
        SchedClass::Deadline => Some("deadline".into()),
        SchedClass::RealTime(priority) => Some(format!("real-time {priority}")),
        SchedClass::Fair(Some(0) | None) | SchedClass::Idle => None,
        SchedClass::Fair(Some(nice)) => Some(format!("nice {nice}")),
        SchedClass::Other(word) => Some(word.to_string()),
    }
}

fn work(of: &Work, threads: u64) -> String {
    let worker = of.worker.as_ref();
    if of.function.is_none() {
        let class = worker
            .and_then(|worker| worker.class.as_ref())
            .and_then(class);
        return listed([
            individual(worker.and_then(|worker| worker.tid), threads, "pid"),
            class,
        ]);
    }
    let comm = worker
        .and_then(|worker| worker.comm.as_deref())
        .map(str::to_owned);
    let tid = worker.and_then(|worker| worker.tid);
    let worker = if threads > 1 { None } else { comm };
    let queue = of
        .workqueue
        .as_deref()
        .map(|queue| format!("workqueue {queue}"));
    let tid = if threads > 1 { None } else { tid };
    let several = (threads > 1).then(|| format!("{} workers", number(threads)));
    listed([
        worker
            .or(several)
            .or_else(|| tid.map(|tid| format!("pid {tid}"))),
        queue,
    ])
}

fn timer(source: &TimerSource) -> &str {
    match source {
        TimerSource::HighResolution => "hrtimer, local_timer interrupt",
        TimerSource::Wheel => "timer wheel, TIMER softirq",
        TimerSource::Interrupt => "interrupt, no timer function on record",
        TimerSource::Other(word) => word,
    }
}

fn one_or_many(task: &Task, threads: u64) -> String {
    match task.tid {
        _ if threads > 1 => format!("{} threads", number(threads)),
        Some(tid) => format!("{} ({})", task.comm, id(tid, task.tgid)),
        None => task.comm.to_string(),
    }
}

fn verdict(verdict: Verdict, about: &About, threads: u64) -> String {
    let known = match about {
        About::Nothing => None,
        About::Meanwhile(Meanwhile::Ran(task)) if verdict == Verdict::UnrecordedSwitch => {
            Some(format!(
                "{} had the CPU at its end, since when is not known",
                one_or_many(task, threads)
            ))
        }
        About::IdleState(state) => Some(format!("idle state {state}")),
        About::Meanwhile(Meanwhile::IdleEnded) => Some("after idle had ended".into()),
        About::Meanwhile(Meanwhile::Unrecorded) => {
            Some("while the CPU idled or a thread ran, not recorded".into())
        }
        About::Meanwhile(Meanwhile::Ran(task)) => {
            Some(format!("while {} ran", one_or_many(task, threads)))
        }
        About::Meanwhile(Meanwhile::Worked(work)) => {
            let worker = || work.worker.as_ref().and_then(|worker| worker.comm.clone());
            let ran = work.function.clone().or_else(worker);
            Some(format!(
                "while {} ran",
                ran.as_deref().unwrap_or("a kernel worker")
            ))
        }
        About::Vectors(vectors) => Some(vectors.join(", ")),
        About::Cpu(cpu) => Some(format!("no record of CPU {cpu} says what ran")),
        About::Frame(records) => Some(records.to_string()),
    };
    known.unwrap_or_else(|| verdicts::beside_name(verdict).into())
}

/// `consumer not running: rustc`; phases without a culprit stand alone.
pub(crate) fn phase_and_name(phase: Option<&Phase>, subject: &Subject) -> String {
    let phase = phase.unwrap_or(&Phase::NoVerdict);
    let nobodys = matches!(
        phase,
        Phase::Queueing | Phase::Unexplained | Phase::RingFull | Phase::LostRecords
    );
    let nobody = matches!(
        subject.kind(),
        CulpritKind::Switch | CulpritKind::Unresolved | CulpritKind::Loss
    );
    if nobodys && nobody {
        phase.to_string()
    } else {
        format!("{}: {}", tame(phase.as_str()), name(subject))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Name;

    #[test]
    fn what_an_explanation_says_is_not_said_again_and_facts_are() {
        let bare = |verdict| Subject::Verdict(verdict, About::Nothing);
        for verdict in Verdict::ALL {
            let (explained, further) = (
                verdicts::explanation(*verdict),
                further_detail(&bare(*verdict), 1),
            );
            assert!(
                explained.is_none() || further.is_empty(),
                "{verdict:?}: {explained:?}, {further}"
            );
            let repeated = explained
                .is_some_and(|explained| explained.contains(bare(*verdict).name().as_ref()));
            assert!(!repeated, "{verdict:?}: {explained:?}");
        }
        assert_eq!(
            further_detail(&bare(Verdict::NotSeen), 1),
            "no record says what ran"
        );
        let idle = Subject::Verdict(Verdict::IdleExit, About::IdleState(2));
        assert_eq!(further_detail(&idle, 1), "idle state 2");
    }

    #[test]
    fn common_culprits_are_named_by_what_they_do() {
        let thread = |comm: &str| {
            Subject::Thread(Task {
                comm: comm.into(),
                ..Task::default()
            })
        };
        let timer = |function: &str| Subject::Timer {
            function: Some(function.into()),
            source: None,
        };
        let work = |function: &str| {
            Subject::Work(Work {
                function: Some(Name::from(function)),
                ..Work::default()
            })
        };
        for (subject, word) in [
            (timer("tick_nohz_handler"), "tick"),
            (work("vmstat_update"), "vm.stat_interval"),
            (Subject::Call("ipi_mb".into()), "membarrier"),
            (Subject::Call("flush_tlb_func".into()), "TLB"),
            (Subject::Ipi("reschedule".into()), "woke"),
            (thread("ksoftirqd/3"), "softirq"),
            (thread("migration/0"), "stopper"),
            (Subject::Softirq(3), "network"),
            (Subject::verdict(Verdict::LateInterrupt), "late"),
            (timer("tick_nohz_handler.isra.0"), "tick"),
        ] {
            let phrase = explain(&subject);
            assert!(phrase.contains(word), "{subject:?}: {phrase}");
            assert_ne!(phrase, of_kind(subject.kind()), "{subject:?}");
        }
    }

    #[test]
    fn every_kind_has_a_phrase_for_a_name_it_never_saw() {
        for kind in CulpritKind::ALL {
            let name = || Name::from("no_such_name");
            let subject = Subject::Unknown {
                kind: kind.as_str().into(),
                name: name(),
                detail: name(),
            };
            assert!(!explain(&subject).is_empty());
        }
        assert!(
            Verdict::ALL
                .iter()
                .all(|verdict| !explain(&Subject::verdict(*verdict)).is_empty())
        );
    }
}
