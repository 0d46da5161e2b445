//! The kinds of faults, the recordings that look for each, and the right answers, fixed before any run.

use serde_json::Value;
use std::fmt;

/// The recording that looks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// `record`: a probe that spins on the CPU.
    Spin,
    /// `record wakeup`: a probe that sleeps and wakes there.
    Wakeup,
    /// `attach --tid`: a thread of the injector.
    Attach,
    /// `record none --for`: the same thread, watched through its CPU.
    Passive,
}

impl Probe {
    pub fn as_str(self) -> &'static str {
        match self {
            Probe::Spin => "spin",
            Probe::Wakeup => "wakeup",
            Probe::Attach => "attach",
            Probe::Passive => "passive",
        }
    }
}

/// The expected time of a culprit.
pub enum Length {
    /// The thread's own time: at least nine tenths of it in the stalls, and at most a tenth and 150 us more than from
    /// its first moment to its last, because interrupts and the host can lie in between.
    Own { busy: u64 },
    /// A program's own time: at least nine tenths of it, and at most a fifth and 150 us more than the total charged to
    /// its process, which also begins and ends.
    Program { busy: u64, charged: u64 },
    /// The time that the scheduler charged, including interrupts and the host: from seven tenths to a fifth and 150 us
    /// more.
    Charged { ns: u64 },
    /// This much anywhere between the two times, by the kernel's count: from seven tenths to a fifth and 150 us more.
    Within { ns: u64 },
    /// From its first moment to its last, with unknown interruptions: from seven tenths to a tenth and 150 us more.
    Whole,
    /// Nothing: it must not be charged.
    Nothing,
    /// A short piece of kernel work between the two times: from 50 ns to all of it and 100 us.
    Short,
}

/// A culprit that must be named for a fault.
pub struct Want {
    /// Acceptable words for its kind.
    pub kinds: &'static [&'static str],
    /// Acceptable names, if the kind has a known name.
    pub names: Vec<String>,
    pub tid: Option<u64>,
    /// Last component of its control group.
    pub group: Option<String>,
    pub length: Length,
    pub sender: Sent,
}

impl Want {
    /// Whether both are the same culprit, so that a stall adds them up.
    pub fn is_same(&self, other: &Want) -> bool {
        self.kinds == other.kinds
            && self.names == other.names
            && self.tid == other.tid
            && self.group == other.group
    }
}

/// The expected sender of a culprit.
pub enum Sent {
    Any,
    /// This thread: another name is wrong, but no name is right, because the culprit is another thread.
    MayBe(u64, String),
    /// This thread, which is the culprit: no name is withheld.
    Must(u64, String),
}

/// An injector's log of one fault.
pub struct Fault(pub Value);

impl Fault {
    pub fn number(&self, key: &str) -> u64 {
        self.0[key].as_u64().unwrap_or(0)
    }

    fn text(&self, key: &str) -> String {
        self.0[key].as_str().unwrap_or_default().to_owned()
    }

    pub fn begin(&self) -> u64 {
        self.number("begin")
    }

    pub fn end(&self) -> u64 {
        self.number("end")
    }

    fn sender(&self) -> (u64, String) {
        (self.number("sender_tid"), self.text("sender_name"))
    }
}

/// A kind: its name in the injector, the recordings that look for it, the victim that it needs, and its right answer.
struct Kind {
    name: &'static str,
    probes: &'static [Probe],
    victim: &'static str,
    wants: fn(&Fault) -> Vec<Want>,
}

/// A kind with one probe.
pub struct Trial {
    pub kind: &'static str,
    pub probe: Probe,
    /// `none`, `fair` or `real-time`, for the injector.
    pub victim: &'static str,
    pub wants: fn(&Fault) -> Vec<Want>,
}

impl Trial {
    pub fn is_called(&self, name: &str) -> bool {
        self.kind == name || self.to_string() == name
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.kind, self.probe.as_str())
    }
}

fn culprit(kinds: &'static [&'static str], names: &[&str], length: Length) -> Want {
    Want {
        kinds,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        tid: None,
        group: None,
        length,
        sender: Sent::Any,
    }
}

fn thread_of(fault: &Fault, prefix: &str, length: Length) -> Want {
    Want {
        names: vec![fault.text(&format!("{prefix}name"))],
        tid: Some(fault.number(&format!("{prefix}tid"))),
        ..culprit(&["thread"], &[], length)
    }
}

/// A thread that ran for a while.
fn thread(fault: &Fault) -> Vec<Want> {
    let busy = fault.number("busy");
    vec![thread_of(fault, "", Length::Own { busy })]
}

/// A process that executes a program.
fn program(fault: &Fault) -> Vec<Want> {
    let (busy, charged) = (fault.number("busy"), fault.number("charged"));
    vec![thread_of(fault, "", Length::Program { busy, charged })]
}

/// As `thread`, with its waker.
fn woken_thread(fault: &Fault) -> Vec<Want> {
    let (tid, name) = fault.sender();
    let mut wants = thread(fault);
    wants[0].sender = Sent::MayBe(tid, name);
    wants
}

/// As `thread`, with a waker that must be named.
fn thread_by(fault: &Fault) -> Vec<Want> {
    let (tid, name) = fault.sender();
    let mut wants = thread(fault);
    wants[0].sender = Sent::Must(tid, name);
    wants
}

fn two_threads(fault: &Fault) -> Vec<Want> {
    let busy = fault.number("second_busy");
    let mut wants = thread(fault);
    wants.push(thread_of(fault, "second_", Length::Own { busy }));
    wants
}

/// A function that another CPU called here. If calls are not recorded by function, the vector is right, too.
fn called(fault: &Fault, functions: &[&str]) -> Vec<Want> {
    let (tid, name) = fault.sender();
    vec![Want {
        sender: Sent::Must(tid, name),
        ..culprit(&["ipi"], functions, Length::Short)
    }]
}

fn timer(function: &str) -> Vec<Want> {
    vec![culprit(&["timer", "softirq"], &[function], Length::Short)]
}

/// A process's timer, with its owner.
fn armed_timer(fault: &Fault, function: &str) -> Vec<Want> {
    let (tid, name) = fault.sender();
    let mut wants = timer(function);
    wants[0].sender = Sent::Must(tid, name);
    wants
}

fn charged_thread(fault: &Fault) -> Vec<Want> {
    let (ns, (tid, name)) = (fault.number("charged"), fault.sender());
    let mut want = thread_of(fault, "", Length::Charged { ns });
    want.sender = Sent::MayBe(tid, name);
    vec![want]
}

const CPUID: &[&str] = &["cpuid_smp_cpuid"];

fn nested(fault: &Fault) -> Vec<Want> {
    let mut wants = woken_thread(fault);
    if fault.number("calls") > 0 {
        wants.extend(called(fault, CPUID));
    }
    wants
}

fn own_packets(fault: &Fault) -> Vec<Want> {
    // The thread's turn contains the softirq: each alone is right by its time, and together they are all of it.
    let mut both = thread_of(fault, "", Length::Whole);
    both.kinds = &["thread", "softirq"];
    both.names.push("NET_RX".into());
    both.tid = None;
    let received = culprit(&["softirq"], &["NET_RX"], Length::Short);
    vec![both, received]
}

/// A control group's quota. With another thread, either alone would have made the victim wait: both words name the quota.
fn quota_of(group: String, length: Length) -> Want {
    Want {
        group: Some(group),
        ..culprit(&["quota", "quota_beside"], &[], length)
    }
}

fn quota(fault: &Fault) -> Vec<Want> {
    let ns = fault.number("held");
    vec![quota_of(fault.text("group_name"), Length::Within { ns })]
}

/// As `quota`, and nothing by the quota of the group around it or within it.
fn nested_quota(fault: &Fault) -> Vec<Want> {
    let mut wants = quota(fault);
    wants.push(quota_of(fault.text("other_name"), Length::Nothing));
    wants
}

fn stopped(fault: &Fault) -> Vec<Want> {
    let (tid, name) = fault.sender();
    vec![Want {
        sender: Sent::Must(tid, name),
        ..culprit(&["stopped"], &["stopped by a signal"], Length::Whole)
    }]
}

pub fn trials() -> Vec<Trial> {
    use Probe::{Attach, Passive, Spin, Wakeup};
    const ALL: &[Probe] = &[Spin, Wakeup, Attach, Passive];
    const RUNNING: &[Probe] = &[Spin, Attach, Passive];
    const SPIN: &[Probe] = &[Spin];
    const ATTACH: &[Probe] = &[Attach];
    let kind = |name, probes, victim, wants| Kind {
        name,
        probes,
        victim,
        wants,
    };
    let kinds = [
        kind("fifo-futex", ALL, "fair", woken_thread),
        kind("impostor", RUNNING, "fair", woken_thread),
        kind("renamed", &[Spin, Attach], "fair", two_threads),
        kind("two-culprits", ALL, "fair", two_threads),
        kind("nested-call", &[Spin, Attach], "fair", nested),
        kind("own-packets", SPIN, "fair", own_packets),
        kind("long-call", &[Spin, Wakeup], "fair", |fault| {
            vec![thread_of(fault, "", Length::Whole)]
        }),
        kind("self-moved", &[Spin, Attach], "fair", thread),
        kind("moved-waker", ALL, "fair", thread_by),
        kind("exec-child", ALL, "fair", program),
        kind("namespace-child", &[Spin, Attach], "fair", program),
        kind("teardown", &[Spin, Wakeup], "fair", charged_thread),
        kind("sqpoll", &[Spin, Attach], "fair", charged_thread),
        kind("real-itimer", SPIN, "fair", |fault| {
            armed_timer(fault, "it_real_fn")
        }),
        kind("posix-timer", SPIN, "fair", |fault| {
            armed_timer(fault, "posix_timer_fn")
        }),
        kind("timer-descriptor", RUNNING, "fair", |_| {
            timer("timerfd_tmrproc")
        }),
        kind("moved-sleeper", SPIN, "fair", |_| timer("hrtimer_wakeup")),
        kind("perf-sampling", &[Spin, Attach], "fair", |_| {
            timer("perf_swevent_hrtimer")
        }),
        kind("perf-read", &[Spin, Attach], "fair", |fault| {
            called(fault, &["__perf_event_read"])
        }),
        kind("cpuid-read", RUNNING, "fair", |fault| called(fault, CPUID)),
        kind("code-patch", SPIN, "fair", |fault| {
            called(fault, &["do_sync_core"])
        }),
        kind("lru-drain", SPIN, "fair", |fault| {
            let (tid, name) = fault.sender();
            vec![Want {
                sender: Sent::MayBe(tid, name),
                ..culprit(&["kworker"], &["lru_add_drain_per_cpu"], Length::Short)
            }]
        }),
        kind("quota", ATTACH, "fair", quota),
        kind("nested-quota", ATTACH, "fair", nested_quota),
        kind("frozen", ATTACH, "fair", |_| {
            vec![culprit(&["stopped"], &[], Length::Whole)]
        }),
        kind("stopped", ATTACH, "fair", stopped),
        kind("unmap", ATTACH, "fair", |fault| {
            called(fault, &["flush_tlb_func"])
        }),
        kind("barrier", ATTACH, "fair", |fault| {
            called(fault, &["ipi_sync_core"])
        }),
        kind("signalled", ATTACH, "fair", |fault| {
            called(fault, &["reschedule"])
        }),
        kind("moved-victim", ATTACH, "fair", thread),
        kind("throttled", ATTACH, "real-time", |_| {
            vec![culprit(&["rt_throttle"], &[], Length::Whole)]
        }),
    ];
    kinds
        .iter()
        .flat_map(|kind| {
            kind.probes.iter().map(|probe| Trial {
                kind: kind.name,
                probe: *probe,
                victim: match probe {
                    Probe::Spin | Probe::Wakeup => "none",
                    Probe::Attach | Probe::Passive => kind.victim,
                },
                wants: kind.wants,
            })
        })
        .collect()
}
