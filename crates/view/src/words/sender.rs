//! Words for triggers, and for the identification of threads.

use jitterscope_model::{CulpritKind, ExecutionContext, Sender};

/// The verb for the trigger of a culprit.
pub(crate) fn sender_verb(kind: CulpritKind) -> &'static str {
    match kind {
        CulpritKind::Thread => "woken",
        CulpritKind::Kworker => "queued",
        CulpritKind::Ipi => "sent",
        CulpritKind::Stopped => "stopped",
        CulpritKind::Timer => "armed",
        _ => "triggered",
    }
}

/// The name of a trigger: `cron`, `a softirq on top of udp-send`, `an interrupt`.
pub(crate) fn sender_name(sender: &Sender) -> String {
    let thread = || sender.comm.as_deref().unwrap_or(ENDED);
    let itself = sender.is_thread().then(thread);
    sent_from(sender.context, itself.or(sender.beneath.as_deref()))
}

/// A thread that ended before its name was read.
pub(crate) const ENDED: &str = "a thread that has ended";

/// As [`sender_name`]; `thread` is the name of the thread, or of the one beneath a softirq.
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

/// `pid 12` for a process, or for a thread of an unknown process; `tid 13` for a thread other than its process's first.
pub(crate) fn id(tid: i32, process: Option<i32>) -> String {
    let noun = if process.is_some_and(|process| process != tid) {
        "tid"
    } else {
        "pid"
    };
    format!("{noun} {tid}")
}
