//! One knob on one machine: how it stands and what would set it right. Audit and plan both rest on it.

use crate::cmdline::{BootParam, Cmdline};
use crate::goal::Goal;
use crate::knob::{Knob, Look, Mechanism, Shown, ThreadFamily};
use crate::op::Op;
use crate::threads::Thread;
use crate::{partition, settings, threads};
use jitterscope_model::CpuSet;
use jitterscope_platform::Machine;
use serde::Serialize;
use std::cell::OnceCell;

/// How a knob stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "reason")]
pub enum KnobState {
    /// Not as these CPUs want it.
    Wrong,
    /// As they want it.
    Fine,
    /// This machine has no such thing; why.
    Unavailable(String),
    /// It does not concern this machine or cannot be told by looking; why.
    NotApplicable(String),
    /// It is there, but not for this user to read.
    Unreadable(String),
}

/// Something that stays on the CPUs whatever is done, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// What was found out about a knob.
#[derive(Clone, Debug)]
pub struct Examination {
    /// How it stands.
    pub state: KnobState,
    /// What there is.
    pub current: String,
    /// What is wanted.
    pub wanted: String,
    /// Changes that would set it right now.
    pub ops: Vec<Op>,
    /// What cannot be set right.
    pub left: Vec<Left>,
    /// Boot parameters that the command line does not have yet.
    pub boot: Vec<BootParam>,
    /// What to know when using it.
    pub note: String,
}

/// A machine with a goal, read as far as needed and not twice.
pub struct Inspection<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The goal.
    pub goal: &'a Goal,
    cmdline: OnceCell<Cmdline>,
    threads: OnceCell<Vec<Thread>>,
}

impl<'a> Inspection<'a> {
    /// A machine with a goal.
    #[must_use]
    pub fn new(machine: &'a Machine, goal: &'a Goal) -> Inspection<'a> {
        Inspection { machine, goal, cmdline: OnceCell::new(), threads: OnceCell::new() }
    }

    fn cmdline(&self) -> &Cmdline {
        self.cmdline.get_or_init(|| Cmdline::parse(&self.machine.read("/proc/cmdline").unwrap_or_default()))
    }

    fn threads(&self) -> &[Thread] {
        self.threads.get_or_init(|| threads::all(self.machine))
    }

    /// Looks at one knob.
    #[must_use]
    pub fn examine(&self, knob: &Knob) -> Examination {
        let mut found = match knob.mechanism {
            Mechanism::Partition | Mechanism::Threads(_) if self.goal.housekeeping.is_empty() => {
                Examination::new(KnobState::NotApplicable("no CPU is left for housekeeping".into()))
            }
            Mechanism::Files(settings) => self.files(knob, settings),
            Mechanism::Threads(family) => self.family(knob, family),
            Mechanism::Partition => match partition::look(self.machine, self.goal) {
                None => Examination::new(KnobState::Unavailable(knob.absent.into())),
                Some(p) => Examination {
                    state: if p.ops.is_empty() { KnobState::Fine } else { KnobState::Wrong },
                    current: p.current,
                    wanted: p.wanted,
                    ops: p.ops,
                    note: p.use_it,
                    ..Examination::new(KnobState::Fine)
                },
            },
            Mechanism::Blink => self.blink(knob),
            Mechanism::Boot(shown) => self.boot(knob, shown),
            Mechanism::Look(look) => Examination::looked(look(self.machine, self.goal)),
        };
        found.boot = knob.boot.iter().filter(|p| !self.cmdline().satisfies(p, self.goal)).copied().collect();
        found
    }

    fn files(&self, knob: &Knob, settings: &[crate::knob::Setting]) -> Examination {
        let mut readings = Vec::new();
        let mut wanted = Vec::new();
        for setting in settings {
            let found = settings::read(self.machine, self.goal, setting);
            if !found.is_empty() {
                let words = match setting.want {
                    crate::knob::Want::OffIsolated => format!("no CPU of {}", self.goal.isolated),
                    ref other => other.describe().replace('`', ""),
                };
                if !wanted.contains(&words) {
                    wanted.push(words);
                }
            }
            readings.extend(found);
        }
        if readings.is_empty() {
            return Examination::new(KnobState::Unavailable(knob.absent.into()));
        }
        let total = readings.len();
        let denied = readings.iter().filter(|r| r.current.is_err()).count();
        if denied == total {
            let why = match readings.first().map(|r| &r.current) {
                Some(Err(e)) => e.to_string(),
                _ => String::new(),
            };
            return Examination::new(KnobState::Unreadable(why));
        }
        let describe = |reading: &settings::Reading, with_path: bool| {
            let now = reading.current.as_ref().map_or_else(|_| "?".into(), |text| reading.kind.shown(text));
            let force = match &reading.in_force {
                Some(force) if *force != now => format!(" (in force: {force})"),
                _ => String::new(),
            };
            if with_path { format!("{} reads {now}{force}", reading.path) } else { format!("{now}{force}") }
        };
        let wrong: Vec<&settings::Reading> = readings.iter().filter(|r| r.op.is_some()).collect();
        let current = match (total, wrong.as_slice()) {
            (1, _) => readings.first().map(|r| describe(r, false)).unwrap_or_default(),
            (_, []) => format!("all {total} files as wanted"),
            (_, [one]) => format!("{} (1 of {total} files)", describe(one, true)),
            (_, [first, ..]) => {
                format!("{} of {total} files, such as {}", wrong.len(), describe(first, true))
            }
        };
        let waiting = readings
            .iter()
            .filter(|r| r.op.is_none())
            .filter(|r| {
                r.in_force
                    .as_ref()
                    .and_then(|text| text.parse::<CpuSet>().ok())
                    .is_some_and(|set| !set.intersection(&self.goal.isolated).is_empty())
            })
            .count();
        let state = if wrong.is_empty() { KnobState::Fine } else { KnobState::Wrong };
        let mut found = Examination {
            current,
            wanted: wanted.join("; "),
            note: if waiting > 0 {
                format!("{waiting} will move when they next fire")
            } else {
                String::new()
            },
            ..Examination::new(state)
        };
        found.ops = readings.into_iter().filter_map(|r| r.op).collect();
        found
    }

    fn family(&self, knob: &Knob, family: ThreadFamily) -> Examination {
        let kernel = family == ThreadFamily::Kernel;
        let me = i32::try_from(std::process::id()).unwrap_or(0);
        let mine: Vec<&Thread> = self
            .threads()
            .iter()
            .filter(|t| t.kernel == kernel && !(self.machine.is_host() && t.pid == me))
            .collect();
        if mine.is_empty() {
            return Examination::new(KnobState::Unavailable(knob.absent.into()));
        }
        let here: Vec<&&Thread> =
            mine.iter().filter(|t| !t.allowed.intersection(&self.goal.isolated).is_empty()).collect();
        let mut found = Examination::new(KnobState::Fine);
        for thread in &here {
            let to = thread.allowed.intersection(&self.goal.housekeeping);
            let what = || format!("{} ({})", thread.comm, thread.tid);
            if thread.bound {
                let only_here = thread.allowed.difference(&self.goal.isolated).is_empty();
                let why = if only_here {
                    "the kernel binds it to its CPU"
                } else {
                    "the kernel lets nobody move it, and seldom runs it"
                };
                found.left.push(Left { what: what(), why: why.into() });
            } else if to.is_empty() {
                let why = if kernel {
                    "it may run on isolated CPUs only"
                } else {
                    "it is pinned to isolated CPUs alone, so it is taken to belong there"
                };
                found.left.push(Left { what: what(), why: why.into() });
            } else {
                found.ops.push(Op::Thread {
                    pid: thread.pid,
                    tid: thread.tid,
                    start_time: thread.start_time,
                    comm: thread.comm.clone(),
                    from: thread.allowed.clone(),
                    to,
                });
            }
        }
        let whose = if kernel { "kernel threads" } else { "threads" };
        found.wanted = "no thread that can move may run there".into();
        if found.ops.is_empty() {
            found.current = format!("none of {} {whose} that can move", mine.len());
        } else {
            found.state = KnobState::Wrong;
            let some: Vec<String> = found
                .ops
                .iter()
                .filter_map(|op| if let Op::Thread { comm, .. } = op { Some(comm.clone()) } else { None })
                .take(3)
                .collect();
            found.current =
                format!("{} of {} {whose} may: {} ...", found.ops.len(), mine.len(), some.join(", "));
        }
        found
    }

    fn blink(&self, knob: &Knob) -> Examination {
        let can: Vec<_> = self
            .goal
            .isolated
            .iter()
            .filter(|cpu| self.machine.exists(format!("/sys/devices/system/cpu/cpu{cpu}/online")))
            .collect();
        if can.is_empty() {
            return Examination::new(KnobState::Unavailable(knob.absent.into()));
        }
        Examination {
            ops: can.into_iter().map(|cpu| Op::Blink { cpu }).collect(),
            wanted: "once, before the program starts".into(),
            ..Examination::new(KnobState::NotApplicable(
                "an act rather than a setting: it leaves no trace".into(),
            ))
        }
    }

    fn cpuset_does_it(&self) -> bool {
        partition::look(self.machine, self.goal).is_some_and(|p| p.ops.is_empty())
    }

    fn boot(&self, knob: &Knob, shown: Shown) -> Examination {
        let wanted = knob.boot.iter().map(|p| p.spelled(self.goal)).collect::<Vec<_>>().join(" ");
        let on_line: Vec<String> = knob.boot.iter().filter_map(|p| self.cmdline().shown(p.key)).collect();
        let implied = knob.boot.iter().all(|p| self.cmdline().satisfies(p, self.goal));
        let said = if on_line.is_empty() && implied {
            "implied by nohz_full".to_owned()
        } else if on_line.is_empty() {
            "not on the command line".to_owned()
        } else {
            on_line.join(" ")
        };
        let (state, current) = match shown {
            Shown::Cmdline => {
                let all = knob.boot.iter().all(|p| self.cmdline().satisfies(p, self.goal));
                (if all { KnobState::Fine } else { KnobState::Wrong }, said)
            }
            Shown::CpuFile(path) => match self.machine.read_trimmed(path) {
                Err(e) if e.is_absent() => (KnobState::Unavailable(knob.absent.into()), said),
                Err(e) => (KnobState::Unreadable(e.to_string()), said),
                Ok(text) => {
                    let set: CpuSet = text.parse().unwrap_or_default();
                    let covers = self.goal.isolated.difference(&set).is_empty();
                    // What the boot parameter does, a cpuset can have done since.
                    if !covers && knob.id == "isolcpus-domain" && self.cpuset_does_it() {
                        let current = "not at boot; a cpuset does the same for now".to_owned();
                        return Examination { current, wanted, ..Examination::new(KnobState::Fine) };
                    }
                    let shown = if set.is_empty() { "no CPU".into() } else { set.in_words() };
                    (if covers { KnobState::Fine } else { KnobState::Wrong }, shown)
                }
            },
            Shown::Reads(path, kind, values) => match self.machine.read_trimmed(path) {
                Err(e) if e.is_absent() => (KnobState::Unavailable(knob.absent.into()), said),
                Err(e) => (KnobState::Unreadable(e.to_string()), said),
                Ok(text) => {
                    let right = values.iter().any(|v| kind.holds(&text, v));
                    (if right { KnobState::Fine } else { KnobState::Wrong }, kind.shown(&text))
                }
            },
            Shown::Gone(path) => {
                if self.machine.exists(path) {
                    (KnobState::Wrong, format!("{path} is there"))
                } else {
                    (KnobState::Fine, format!("{path} is not there"))
                }
            }
        };
        Examination { current, wanted, ..Examination::new(state) }
    }
}

impl Examination {
    fn new(state: KnobState) -> Examination {
        Examination {
            state,
            current: String::new(),
            wanted: String::new(),
            ops: Vec::new(),
            left: Vec::new(),
            boot: Vec::new(),
            note: String::new(),
        }
    }

    fn looked(look: Look) -> Examination {
        match look {
            Look::Wrong(current, wanted) => {
                Examination { current, wanted, ..Examination::new(KnobState::Wrong) }
            }
            Look::Fine(current) => Examination { current, ..Examination::new(KnobState::Fine) },
            Look::Unavailable(why) => Examination::new(KnobState::Unavailable(why)),
            Look::NotApplicable(why) => Examination::new(KnobState::NotApplicable(why)),
            Look::Denied(why) => Examination::new(KnobState::Unreadable(why)),
        }
    }
}
