//! Culprits in words: the only place where English is made of them.

use crate::style::tame;
use jitterscope_analyze::RunSummary;
use jitterscope_model::{
    About, Culprit, CulpritKind, ExecutionContext, Meanwhile, Phase, ProbeKind, SchedClass, Sender, Subject,
    SumRow, Task, TimelineItem, TimerSource, Verdict, Work,
};

/// What a kind of recording is called where it is typed, `record none`, whatever stored runs call it.
pub(crate) fn probe(kind: &str) -> String {
    match ProbeKind::from_word(kind) {
        Some(ProbeKind::Passive) => "none".into(),
        _ => tame(kind),
    }
}

/// `thread bash`.
pub(crate) fn kind_and_name(subject: &Subject) -> String {
    format!("{} {}", tame(subject.kind_word()), name(subject))
}

/// Who sent, woke or queued: `cron`, `a softirq on top of udp-send`, `an interrupt`.
pub(crate) fn sender_name(sender: &Sender) -> String {
    let thread = sender.comm.as_deref().unwrap_or(ENDED);
    sent_from(sender.context, sender.involves_thread().then_some(thread))
}

/// A thread that was gone before its name could be read.
pub(crate) const ENDED: &str = "a thread that has ended";

/// As [`sender_name`]; `thread` is what the thread is called that may have had a part in it.
pub(crate) fn sent_from(context: ExecutionContext, thread: Option<&str>) -> String {
    match (context, thread) {
        (ExecutionContext::Thread, Some(thread)) => thread.into(),
        (ExecutionContext::Thread, None) => "a thread".into(),
        (ExecutionContext::Softirq, Some(thread)) => format!("a softirq on top of {thread}"),
        (ExecutionContext::Softirq, None) => "a softirq".into(),
        (ExecutionContext::Interrupt, _) => "an interrupt".into(),
        (ExecutionContext::Nmi, _) => "an NMI".into(),
        (ExecutionContext::Unknown, _) => "something unknown".into(),
    }
}

/// What it is called.
pub(crate) fn name(subject: &Subject) -> String {
    tame(&subject.name())
}

/// What else identifies it: `pid 12, real-time 3`, `4 workers, workqueue events`. `threads`: how many threads
/// or workers it is about.
pub(crate) fn detail(subject: &Subject, threads: u64) -> String {
    tame(&match subject {
        Subject::Thread(task) => {
            let class = task.class.as_ref().and_then(class);
            listed([process(task, threads), class])
        }
        Subject::Work(of) => work(of, threads),
        Subject::Interrupt { number, .. } => number.map_or_else(String::new, |irq| format!("irq {irq}")),
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
        Subject::MachineCheck { bank } => bank.map_or_else(String::new, |bank| format!("bank {bank}")),
        Subject::Throttle(task) => format!("let {} run", one_or_many(task, threads)),
        Subject::Quota(quota) => {
            let limit = quota.limit.filter(|limit| limit.period_us > 0);
            let limit = limit.map(|of| format!("{} us every {} us", of.quota_us, of.period_us));
            listed([Some(format!("control group {}", quota.cgroup)), limit])
        }
        Subject::Verdict(of, about) => verdict(*of, about, threads),
        Subject::Others(_) => String::new(),
        Subject::Unknown { detail, .. } => detail.to_string(),
    })
}

/// `64+` where there may be more than are told apart.
fn number(threads: u64) -> String {
    let more = if threads >= SumRow::<(), ()>::MOST_THREADS { "+" } else { "" };
    format!("{threads}{more}")
}

fn listed(components: impl IntoIterator<Item = Option<String>>) -> String {
    components.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `pid 12`, `4 pids`.
fn individual(tid: Option<i32>, threads: u64, noun: &str) -> Option<String> {
    match tid {
        Some(tid) => Some(format!("{noun} {tid}")),
        None if threads > 1 => Some(format!("{} {noun}s", number(threads))),
        None => None,
    }
}

/// `pid 12` of a process, or of a thread of which no more is known; `tid 13` of a thread that is not its process's
/// first.
pub(crate) fn id(tid: i32, process: Option<i32>) -> String {
    let noun = if process.is_some_and(|process| process != tid) { "tid" } else { "pid" };
    format!("{noun} {tid}")
}

/// `pid 12`, `tid 13 of make, pid 12`, `pid 12, 4 threads`, `4 pids`.
fn process(task: &Task, threads: u64) -> Option<String> {
    match (task.tid, task.tgid) {
        (Some(tid), Some(process)) if tid != process => {
            let of = task.process.as_ref().map_or_else(String::new, |name| format!(" of {name}"));
            Some(format!("tid {tid}{of}, pid {process}"))
        }
        (None, Some(process)) if threads > 1 => Some(format!("pid {process}, {} threads", number(threads))),
        (tid, process) => individual(tid.or(process), threads, "pid"),
    }
}

/// The scheduling class, when it is not plain fair.
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
        let class = worker.and_then(|worker| worker.class.as_ref()).and_then(class);
        return listed([individual(worker.and_then(|worker| worker.tid), threads, "pid"), class]);
    }
    let comm = worker.and_then(|worker| worker.comm.as_deref()).map(str::to_owned);
    let tid = worker.and_then(|worker| worker.tid);
    let worker = if threads > 1 { None } else { comm };
    let queue = of.workqueue.as_deref().map(|queue| format!("workqueue {queue}"));
    let tid = if threads > 1 { None } else { tid };
    let several = (threads > 1).then(|| format!("{} workers", number(threads)));
    listed([worker.or(several).or_else(|| tid.map(|tid| format!("pid {tid}"))), queue])
}

fn timer(source: &TimerSource) -> &str {
    match source {
        TimerSource::HighResolution => "hrtimer, local_timer interrupt",
        TimerSource::Wheel => "timer wheel, TIMER softirq",
        TimerSource::Interrupt => "interrupt that ran no timer function",
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
            Some(format!("{} had the CPU at its end, since when is not known", one_or_many(task, threads)))
        }
        About::IdleState(state) => Some(format!("idle state {state}")),
        About::Meanwhile(Meanwhile::IdleEnded) => Some("after idle had ended".into()),
        About::Meanwhile(Meanwhile::Unrecorded) => {
            Some("while the CPU idled or a thread ran, not recorded".into())
        }
        About::Meanwhile(Meanwhile::Ran(task)) => Some(format!("while {} ran", one_or_many(task, threads))),
        About::Meanwhile(Meanwhile::Worked(work)) => {
            let worker = || work.worker.as_ref().and_then(|worker| worker.comm.clone());
            let ran = work.function.clone().or_else(worker);
            Some(format!("while {} ran", ran.as_deref().unwrap_or("a kernel worker")))
        }
        About::Vectors(vectors) => Some(vectors.join(", ")),
        About::Cpu(cpu) => Some(format!("no record of CPU {cpu} says what ran")),
        About::Frame(records) => Some(records.to_string()),
    };
    known.unwrap_or_else(|| meaning(verdict).into())
}

/// From this share of the stalled time on the report says what a stall without any event may have been.
const TELLING_SHARE: f64 = 0.001;

/// What stalls without any kernel event may have been beside what their verdict says, said once a report; `None`
/// where there are none to speak of. What the kernel counts of it is reported as counted.
pub(crate) fn possibilities(summary: &RunSummary) -> Option<String> {
    let eventless = |verdict: Option<Verdict>| {
        matches!(verdict, Some(Verdict::NoEventInVm | Verdict::OutsideThisKernel | Verdict::UnrecordedFault))
    };
    let classes = &summary.attribution.as_ref()?.unexplained.classes;
    let mut telling = classes.iter().filter(|row| row.share >= TELLING_SHARE);
    telling.find(|row| eventless(row.subject.as_verdict()))?;
    let faults = match summary.trust.page_faults {
        0 => "none of the measuring threads'".to_owned(),
        1 => "one of the measuring threads'".to_owned(),
        n => format!("{} of the measuring threads'", number(n)),
    };
    Some(format!(
        "Without a kernel event may also be exceptions that leave none: debug traps, breakpoints (uprobes), a first \
         use of the FPU (#NM), alignment checks. The kernel does not count them; of page faults it counted {faults}."
    ))
}

/// What a verdict says by itself, beside its name.
fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::ContextSwitch => "scheduler path beside sched_switch",
        Verdict::IdleExit => "the CPU was idle",
        Verdict::RingFull => "the producer waited for a slot",
        Verdict::EarlierMessages => "dealt with in their order",
        Verdict::LateInterrupt => "the CPU stood still before the interrupt was delivered",
        Verdict::HostBeforeFirstEvent => "the CPU stood still before the kernel was entered",
        Verdict::DeadlineBudget => "used up, so that lesser threads or none ran",
        Verdict::NoEventInVm => "probably the host, or an exception that leaves no event",
        Verdict::UnrecordedFault => "counted by the kernel, without a record",
        Verdict::AsleepInKernel => "the thread slept, though it only reads the clock",
        Verdict::RunnableIdle => "the CPU idled though the thread could run",
        Verdict::CpuTaken | Verdict::VirtualMachinePaused => "no kernel event inside, on a virtual machine",
        Verdict::Smi => "system management interrupt",
        Verdict::AllCpusAtOnce => "as system management interrupts do",
        Verdict::BeforeFirstEvent => "kernel entry, firmware or hardware",
        Verdict::BetweenEvents => "kernel code without tracepoints, or the CPU was taken",
        Verdict::AfterLastEvent => "kernel exit, or the CPU was taken",
        Verdict::OwnBookkeeping => "the probe stored the stall before",
        Verdict::FrequencyChange => "the CPU changed its frequency nearby",
        Verdict::UnderOneMicrosecond => "memory, SMT sibling or microarchitecture",
        Verdict::OutsideThisKernel => "hardware or firmware",
        Verdict::UnrecordedSwitch => "the way out of idle, or a thread that ran before",
        Verdict::NotSeen => "no record says what ran",
        Verdict::NoRecord => "outside this kernel, or the hand-over itself",
        Verdict::NoVerdict => "the stored run has none",
        Verdict::TraceDataLost => "the ring buffer overran near this stall",
        Verdict::LeavingIdle
        | Verdict::StoppedBySignal
        | Verdict::StoppedByTracer
        | Verdict::ReturnToThread
        | Verdict::UntracedInterrupt
        | Verdict::LateTimer
        | Verdict::RunQueueWait
        | Verdict::FrameLeftOpen => "",
    }
}

/// `consumer not running: rustc`; the phases that are attributed to nobody stand alone.
pub(crate) fn phase_and_name(phase: Option<&Phase>, subject: &Subject) -> String {
    let phase = phase.unwrap_or(&Phase::NoVerdict);
    let nobodys =
        matches!(phase, Phase::Queueing | Phase::Unexplained | Phase::RingFull | Phase::LostRecords);
    let nobody = matches!(subject.kind(), CulpritKind::Switch | CulpritKind::Unresolved | CulpritKind::Loss);
    if nobodys && nobody { phase.to_string() } else { format!("{}: {}", tame(phase.as_str()), name(subject)) }
}

/// What a line of a timeline is, and what else is known of it.
pub(crate) fn timeline_item(item: &TimelineItem) -> (String, String) {
    let labelled = |label: &str, note: String| (label.to_owned(), tame(&note));
    match item {
        TimelineItem::Frame { culprit, ended, named_inside } => {
            (kind_and_name(&culprit.subject), tame(&frame_note(culprit, *ended, *named_inside)))
        }
        TimelineItem::Wakes { comm, tid, target_cpu } => {
            labelled("wakes", format!("{comm} (tid {tid}) for CPU {target_cpu}"))
        }
        TimelineItem::Migrates { comm, tid, from_cpu, to_cpu } => {
            labelled("migrates", format!("{comm} (tid {tid}) from CPU {from_cpu} to CPU {to_cpu}"))
        }
        TimelineItem::QueuesWork { function, workqueue } => {
            labelled("queues work", format!("{function} on workqueue {workqueue}"))
        }
        TimelineItem::TlbFlush { pages: None } => labelled("TLB flush", "all pages".into()),
        TimelineItem::TlbFlush { pages: Some(pages) } => labelled("TLB flush", format!("{pages} pages")),
        TimelineItem::TickStopped => labelled("tick stopped", String::new()),
        TimelineItem::TickKept { dependency } => labelled("tick kept", format!("dependency {dependency:#x}")),
        TimelineItem::Frequency { target_cpu, khz } => {
            labelled("frequency", format!("CPU {target_cpu} to {khz} kHz"))
        }
        TimelineItem::Idle { state } => labelled("idle", format!("state {state}")),
        TimelineItem::IdleEnds => labelled("idle ends", String::new()),
        TimelineItem::Call { function, self_ns, began_before, ended } => {
            let before = began_before.then_some("began before");
            let goes_on = (!ended).then_some("its end was not seen");
            let own = format!("self {self_ns}");
            let note = [Some(&*own), before, goes_on].into_iter().flatten().collect::<Vec<_>>().join("; ");
            (tame(&format!("{function}()")), note)
        }
        TimelineItem::LeftOut => labelled("left out", String::new()),
    }
}

fn frame_note(culprit: &Culprit, ended: bool, named_inside: bool) -> String {
    let mut parts = Vec::new();
    // What its own name says is said better by the frame inside.
    let detail = if named_inside { String::new() } else { detail(&culprit.subject, 1) };
    parts.extend(Some(detail).filter(|detail| !detail.is_empty()));
    if let Some(sender) = &culprit.sender {
        let via = sender.via.as_deref().map(|via| format!(" through {via}")).unwrap_or_default();
        let who = sender_name(sender);
        let pid = if sender.involves_thread() {
            format!(" ({})", id(sender.tid, sender.tgid))
        } else {
            String::new()
        };
        parts.push(format!("triggered by {who}{pid} on CPU {}{via}", sender.cpu));
    }
    if !ended {
        parts.push("its end was not seen".into());
    }
    parts.join("; ")
}
