//! Who triggered a culprit, and what a thread is identified by.

use jitterscope_model::{ExecutionContext, Sender};

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

/// `pid 12` of a process, or of a thread of which no more is known; `tid 13` of a thread that is not its process's
/// first.
pub(crate) fn id(tid: i32, process: Option<i32>) -> String {
    let noun = if process.is_some_and(|process| process != tid) {
        "tid"
    } else {
        "pid"
    };
    format!("{noun} {tid}")
}
