//! Words for sources of evidence: why one is incomplete, what cannot be seen without it, and the fix.

use crate::any_version::{LEFT_OUT, UNKNOWN, in_words};
use crate::clocks;
use jitterscope_analyze::SourceWords;
use jitterscope_model::{SourceLoss, SourceProblem, TracefsFlaw, TscFlaw};
use jitterscope_recording::RecordError;

const BE_ROOT: &str =
    "run as root or with CAP_DAC_OVERRIDE; where root is refused, kernel lockdown forbids tracing";

const NO_PROC: &str = "mount procfs: `mount -t proc proc /proc`";

/// The words for a source, each a part of a sentence.
#[must_use]
pub fn source_words(problems: &[SourceProblem], losses: &[SourceLoss]) -> SourceWords {
    let join = |parts: Vec<String>| {
        let known: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        known.join("; ")
    };
    SourceWords {
        reason: join(problems.iter().map(problem).collect()),
        loses: join(losses.iter().map(|of| loss(of).to_owned()).collect()),
        fix: join(problems.iter().map(fix).collect()),
    }
}

/// A problem and its fix: `a; b`.
#[must_use]
pub fn with_fix(of: &SourceProblem) -> String {
    match fix(of) {
        nothing if nothing.is_empty() => problem(of),
        fix => format!("{}; {fix}", problem(of)),
    }
}

/// Why a recording failed, with the fix if a source is missing.
#[must_use]
pub fn record_error(error: &RecordError) -> String {
    if let Some(flaw) = error.tsc_flaw() {
        let why = clocks::tsc_flaw(flaw);
        return format!("{error}: {why}. Leave out --clock to measure with CLOCK_MONOTONIC_RAW");
    }
    match (error, error.problem()) {
        (_, None) => error.to_string(),
        (RecordError::Graph { .. }, Some(of)) => match fix(of) {
            nothing if nothing.is_empty() => format!("{error}: {}", problem(of)),
            fix => format!("{error}: {}; to have it: {fix}", problem(of)),
        },
        (_, Some(of)) => format!("{error}: {}", with_fix(of)),
    }
}

/// A problem as part of a sentence.
pub(crate) fn problem(of: &SourceProblem) -> String {
    use SourceProblem as P;
    match of {
        P::NoPermission { path } => format!("no permission for {path}"),
        P::InstancesOfOwner { path, owner } => {
            let owner = match owner {
                Some(0) => "root".into(),
                Some(user) => format!("user {user}"),
                None => "a user outside".into(),
            };
            format!(
                "tracing instances in {path} belong to {owner}, who alone can write to their files"
            )
        }
        P::UserNamespace { user, problem: of } => {
            let outside = match user {
                Some(user) => format!(" (outside it is user {user})"),
                None => String::new(),
            };
            format!(
                "{}; this process is in a user namespace, whose capabilities do not count here{outside}",
                problem(of)
            )
        }
        P::MountDenied => "tracefs is not mounted, and mounting it needs CAP_SYS_ADMIN".into(),
        P::MountRefused { path, system, .. } => {
            format!("tracefs is not mounted, and mounting it at {path} failed: {system}")
        }
        P::TracefsUnusable { flaw: of } => {
            format!(
                "this kernel has no tracefs, or none with instances and event formats ({})",
                flaw(of)
            )
        }
        P::LockedDown => {
            "the kernel's lockdown (confidentiality) refuses all tracing, to root too".into()
        }
        P::PidNamespace => {
            "this process is in a PID namespace of its own, and the kernel's records have the machine's thread ids"
                .into()
        }
        P::TraceClock { wanted, offered } => {
            format!("the kernel does not stamp events with {wanted} (it uses {offered})")
        }
        P::BufferRefused { kib, system } => {
            format!("the kernel refused a trace buffer of {kib} KiB a CPU: {system}")
        }
        P::ValueRefused {
            value,
            path,
            system,
            ..
        } => {
            format!("the kernel refused '{value}' in {path}: {system}")
        }
        P::ControlUnreadable { path, system, .. } | P::CountersUnreadable { path, system } => {
            format!("{path}: {system}")
        }
        P::InstanceRefused { path, system, .. } => {
            format!("no tracing instance could be made at {path}: {system}")
        }
        P::EventsMissing { events } => format!("this kernel lacks {}", events.join(", ")),
        P::NotInFile { events } => {
            format!("the file has no record of {}", events.join(", "))
        }
        P::CpusWithoutSwitches { cpus } => format!(
            "the file has no thread switches of {}: who ran there is unknown",
            cpus.in_words()
        ),
        P::EventsNotAsked { grain } => format!("not all events were recorded (--events {grain})"),
        P::NoEvents { events } => {
            format!(
                "this kernel has none of the events that name culprits ({})",
                events.join(", ")
            )
        }
        P::FormatUnreadable { parser } => parser.clone(),
        P::EventsLost { lost } => format!("the ring buffer lost {lost} events"),
        P::CallsLost { lost } => format!("the ring buffer lost {lost} records of function calls"),
        P::StacksLost { lost } => format!("the ring buffer lost {lost} kernel stacks"),
        P::StacksNotAsked => "kernel stacks were not recorded".into(),
        P::NoTraceBuffer { cpu, system } => {
            format!("CPU {cpu} has no trace buffer that can be read: {system}")
        }
        P::NoTracer { tracer } => format!("this kernel has no tracer {tracer}"),
        P::GraphForOne => {
            "this kernel's function_graph cannot run in a tracing instance of our own".into()
        }
        P::GraphTaken { functions } => format!(
            "somebody else has chosen what function_graph looks into (set_graph_function has {functions})"
        ),
        P::NoFunction { function } => {
            format!("this kernel has no function {function} that can be looked into")
        }
        P::AddressesHidden { kptr_restrict } => {
            format!("/proc/kallsyms hides the addresses (kernel.kptr_restrict is {kptr_restrict})")
        }
        P::NoFunctionNames => "/proc/kallsyms lists no kernel function".into(),
        P::FunctionNamesUnreadable { system, .. } => format!("/proc/kallsyms: {system}"),
        P::CountersMissing { path } => format!("{path} does not exist"),
        P::NoCpuRow { path } => format!("{path}: it has no row for a CPU"),
        P::NoStealColumn { path } => format!("{path}: it has no column of stolen time"),
        P::CountersVersion { path, version } => {
            format!(
                "{path} has the version '{version}', which this release does not know (it knows 12 to 17)"
            )
        }
        P::VirtualSmiCount => {
            "this is a virtual machine: its counter does not see the host's firmware".into()
        }
        P::NoMsrDevice { cpu, .. } => {
            format!(
                "/dev/cpu/{cpu}/msr is not there: the kernel has no msr driver, or it is not loaded"
            )
        }
        P::MsrDenied { cpu, .. } => format!(
            "/dev/cpu/{cpu}/msr is refused: reading it needs root with CAP_SYS_RAWIO and no kernel lockdown"
        ),
        P::NoSmiCount { cpu, .. } => {
            format!("CPU {cpu} has no SMI counter (Intel processors since Nehalem have it)")
        }
        P::MsrUnreadable { cpu, system, .. } => format!("/dev/cpu/{cpu}/msr: {system}"),
        P::NoTsc { because } => in_words(because, clocks::fallback, UNKNOWN),
        P::NoClock { because } => in_words(because, clocks::clock_failure, UNKNOWN),
        P::Unknown(_) => match of.id() {
            nameless if nameless.is_empty() => unknown().into(),
            id if id == P::LEFT_OUT => LEFT_OUT.into(),
            id => format!("{} ({id})", unknown()),
        },
    }
}

fn unknown() -> &'static str {
    "for a reason that this version does not know"
}

fn flaw(of: &TracefsFlaw) -> String {
    match of {
        TracefsFlaw::NoFileSystem => "no such file system".into(),
        TracefsFlaw::NoFolder => "neither /sys/kernel/tracing nor /sys/kernel/debug exists".into(),
        TracefsFlaw::Unreadable { path, system } => format!("{path}: {system}"),
        TracefsFlaw::Missing { file } => format!("{file} is missing"),
        TracefsFlaw::PagesDiffer => "the two instances' pages differ".into(),
        TracefsFlaw::NoStartTime => {
            "/proc/self/stat does not tell when this process started".into()
        }
        TracefsFlaw::Unknown(_) => unknown().into(),
    }
}

/// The mount point of tracefs.
const TRACING: &str = "/sys/kernel/tracing";
const DEBUGFS: &str = "/sys/kernel/debug/";

/// How to give a user the folder of tracing instances and nothing else of tracefs: the instances made there belong to
/// the user.
fn given(root: &str, mounted: bool) -> String {
    let mount = match mounted {
        true => String::new(),
        false => format!("`mount -t tracefs tracefs {root}`, "),
    };
    format!(
        "as root, once after each boot, for the user who records: {mount}`chmod o+x {root}`, `chown USER \
         {root}/instances` (docs/rights.md)"
    )
}

/// A fix that applies outside of the user namespace, for the user outside.
fn outside(fix: &str, user: Option<u32>) -> String {
    let fix = match user {
        Some(user) => fix.replace("chown USER ", &format!("chown {user} ")),
        None => fix.to_owned(),
    };
    match fix.is_empty() {
        true => fix,
        false => format!("outside of the user namespace, {fix}"),
    }
}

/// The least intrusive fix, as a sentence without its full stop; empty if there is none.
pub(crate) fn fix(of: &SourceProblem) -> String {
    use SourceProblem as P;
    match of {
        P::NoPermission { path } => {
            let root = path.split_once("/instances").map_or(path.as_str(), |(root, _)| root);
            // Ordinary users may not enter debugfs.
            return match root.starts_with(DEBUGFS) {
                true => given(TRACING, false),
                false => given(root, true),
            };
        }
        P::InstancesOfOwner { path, owner: Some(0) } => {
            return format!(
                "as root, once after each boot: `chown USER {path}`; for several users let USER be an account that \
                 they share (docs/rights.md)"
            );
        }
        P::InstancesOfOwner { owner: Some(owner), .. } => {
            return format!("record as that user: `sudo -u '#{owner}' jitterscope record` (docs/rights.md)");
        }
        P::InstancesOfOwner { owner: None, .. } => "`jitterscope doctor` says whose they are",
        P::UserNamespace { user, problem } => return outside(&fix(problem), *user),
        P::MountRefused { denied: true, .. }
        | P::ValueRefused { denied: true, .. }
        | P::ControlUnreadable { denied: true, .. }
        | P::InstanceRefused { denied: true, .. } => BE_ROOT,
        P::PidNamespace => "start the container with the machine's process ids: `--pid host`, in Kubernetes `hostPID: true`",
        P::LockedDown => "boot without lockdown=confidentiality; lockdown=integrity allows tracing",
        P::MountDenied => return given(TRACING, false),
        P::MountRefused { denied: false, .. } => {
            "mount it manually: `mount -t tracefs tracefs /sys/kernel/tracing`"
        }
        P::TracefsUnusable {
            flaw: TracefsFlaw::Missing { file },
        } if file.contains("stack") => "use a kernel built with CONFIG_STACKTRACE",
        P::TracefsUnusable { .. } | P::NoEvents { .. } => "use a kernel built with CONFIG_EVENT_TRACING",
        P::TraceClock { wanted, .. } if wanted == "x86-tsc" => {
            "record with the clock CLOCK_MONOTONIC_RAW, which the kernel stamps as mono_raw"
        }
        P::EventsMissing { .. } => "use a newer kernel, or one that has these events built in",
        P::NotInFile { .. } => {
            "where these events happened, record them too: trace-cmd record -e SYSTEM:EVENT, or perf record -e SYSTEM:EVENT"
        }
        P::CpusWithoutSwitches { .. } => {
            "export a run that has them: `attach` records the switches of all CPUs, `record` those of --cpus"
        }
        P::EventsNotAsked { .. } => "record with --events all",
        P::EventsLost { .. } | P::StacksLost { .. } => "make the trace buffer larger",
        P::StacksNotAsked => "follow the threads with `attach` without --no-stacks",
        P::CallsLost { .. } => "make the trace buffer larger, or trace fewer functions",
        P::NoTracer { tracer } => match tracer.as_str() {
            "function_graph" => "use a kernel built with CONFIG_FUNCTION_GRAPH_TRACER",
            "osnoise" => "use a kernel built with CONFIG_OSNOISE_TRACER",
            _ => "",
        },
        P::GraphForOne => "use Linux 6.11 or later",
        P::GraphTaken { .. } => {
            "end the program that uses it; if it is gone: echo > /sys/kernel/tracing/set_graph_function"
        }
        P::NoFunction { .. } => {
            "choose one that /sys/kernel/tracing/available_filter_functions lists; others were inlined into \
             their callers"
        }
        P::AddressesHidden { kptr_restrict } if kptr_restrict == "2" => {
            "`sysctl kernel.kptr_restrict=1` (readers then need CAP_SYSLOG)"
        }
        P::AddressesHidden { .. } => "run with CAP_SYSLOG",
        P::FunctionNamesUnreadable { denied: true, .. } => "let this user read /proc/kallsyms",
        P::FunctionNamesUnreadable { denied: false, .. } | P::NoFunctionNames => {
            "use a kernel built with CONFIG_KALLSYMS"
        }
        P::CountersMissing { path } if path == "/proc/schedstat" => {
            "use a kernel built with CONFIG_SCHEDSTATS"
        }
        P::CountersMissing { .. } => NO_PROC,
        P::ControlUnreadable { path, denied: false, .. } if path.starts_with("/proc/") => NO_PROC,
        P::VirtualSmiCount
        | P::NoMsrDevice { virtual_machine: true, .. }
        | P::MsrDenied { virtual_machine: true, .. }
        | P::NoSmiCount { virtual_machine: true, .. }
        | P::MsrUnreadable { virtual_machine: true, .. } => "count on the host",
        P::NoMsrDevice { .. } => "modprobe msr",
        P::MsrDenied { .. } => "run as root with CAP_SYS_RAWIO, without kernel lockdown",
        P::NoTsc { because }
            if matches!(because.known(), Some(TscFlaw::ClockSourceUnreadable { .. })) =>
        {
            "mount sysfs: `mount -t sysfs sysfs /sys`"
        }
        P::NoTsc { .. } => "boot with clocksource=tsc tsc=reliable where the hardware is sound",
        P::BufferRefused { kib, .. } => return format!("ask for a smaller buffer than {kib} KiB a CPU"),
        P::NoTraceBuffer { cpu, .. } => {
            return format!(
                "bring it online (echo 1 > /sys/devices/system/cpu/cpu{cpu}/online), or leave it out"
            );
        }
        P::CountersUnreadable { path, .. } => return format!("let this user read {path}"),
        P::TraceClock { .. }
        | P::ValueRefused { denied: false, .. }
        | P::ControlUnreadable { denied: false, .. }
        | P::InstanceRefused { denied: false, .. }
        | P::FormatUnreadable { .. }
        | P::NoCpuRow { .. }
        | P::NoStealColumn { .. }
        | P::CountersVersion { .. }
        | P::NoSmiCount { .. }
        | P::MsrUnreadable { .. }
        | P::NoClock { .. }
        | P::Unknown(_) => "",
    }
    .to_owned()
}

/// What cannot be seen; the bare word if this version does not know it.
pub(crate) fn loss(of: &SourceLoss) -> &str {
    match of {
        SourceLoss::Measurement => "any measurement",
        SourceLoss::LowestFloor => "the lowest floor: CLOCK_MONOTONIC_RAW is read instead",
        SourceLoss::Causes => "who caused a stall: stalls are counted, not attributed",
        SourceLoss::Senders => "who sent an interrupt, woke a thread or queued work",
        SourceLoss::ProbeClock => "kernel events on the probe's own clock",
        SourceLoss::FunctionTimes => {
            "what takes the time inside a kernel function (record --graph)"
        }
        SourceLoss::SecondOpinion => {
            "a second opinion: the kernel's own tool for noise, to compare with (rtla osnoise)"
        }
        SourceLoss::Firmware => "whether firmware took the time (system management interrupts)",
        SourceLoss::FunctionNames => {
            "names of kernel functions: timers, work and called functions stay addresses"
        }
        SourceLoss::InterruptCounts => "how often each interrupt came to a CPU",
        SourceLoss::SoftirqCounts => "how often each softirq ran on a CPU",
        SourceLoss::StolenTime => "how much time the hypervisor took, in grains of 10 ms",
        SourceLoss::RunQueueDelays => "how long threads waited for a CPU in all",
        SourceLoss::Switches => "which thread took the CPU",
        SourceLoss::DeviceInterrupts => "device interrupts",
        SourceLoss::Softirqs => "softirqs",
        SourceLoss::NmiHandlers => "NMI handlers",
        SourceLoss::WorkItems => "what kworkers ran",
        SourceLoss::TimerFunctions => "timer functions",
        SourceLoss::HrtimerFunctions => "high-resolution timer functions",
        SourceLoss::TickDependency => "what keeps the tick running",
        SourceLoss::CalledFunctions => "what functions other CPUs called here (Linux 6.5)",
        SourceLoss::PageFaults => "page faults",
        SourceLoss::TlbFlushes => "why translations were flushed",
        SourceLoss::FrequencyChanges => "frequency changes",
        SourceLoss::IdleStates => "idle states",
        SourceLoss::Vectors => "interrupt vectors: the local timer and interrupts between CPUs",
        SourceLoss::ThreadStarts => "the beginning of threads",
        SourceLoss::Renames => "when a thread takes another name",
        SourceLoss::Charges => "when a thread was put on a CPU whose idle thread is not traced",
        SourceLoss::ReusedIds => "that a thread id is used again",
        SourceLoss::IpiSender => "who sent an interrupt to one CPU (Linux 6.4)",
        SourceLoss::MaskIpiSender => "who sent an interrupt to several CPUs (Linux 6.4)",
        SourceLoss::CallSender => "who called a function on the CPU (Linux 6.5)",
        SourceLoss::Wakers => "who woke a thread",
        SourceLoss::WorkQueuers => "who queued work",
        SourceLoss::Migrations => "who was moved to the CPU",
        SourceLoss::Stoppers => "who stopped a thread",
        SourceLoss::NearLostEvents => "the cause of stalls near the lost events",
        SourceLoss::SomeCalls => "calls inside some stalls",
        SourceLoss::BlockReasons => "what blocked threads waited for",
        SourceLoss::SomeBlockReasons => "what blocked threads waited for in some of their sleeps",
        SourceLoss::Other(word) => word,
    }
}

#[cfg(test)]
mod tests;
