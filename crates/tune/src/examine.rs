//! Examines one knob on one machine: its state and the changes that would correct it. Audit and plan are based on it.

use crate::cmdline::{BootParam, Cmdline};
use crate::finding::{FileValue, Finding};
use crate::goal::Goal;
use crate::knob::{Knob, Look, Mechanism, Shown, ThreadFamily};
use crate::knob_reason::KnobReason;
use crate::left::{Left, Stays};
use crate::notice::Notice;
use crate::op::Op;
use crate::threads::Thread;
use crate::wanted::Wanted;
use crate::{catalogue, partition, settings, threads};
use jitterscope_model::CpuSet;
use jitterscope_platform::Machine;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::OnceCell;

/// Maximum number of named threads that may run on the isolated CPUs.
const MOST_NAMED: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state", content = "cause")]
pub enum KnobState {
    /// Not as these CPUs need it.
    Wrong,
    /// As these CPUs need it.
    Fine,
    /// This machine has no such thing, and why.
    Unavailable(KnobReason),
    /// It does not concern this machine or cannot be seen in its state, and why.
    NotApplicable(KnobReason),
    /// It exists, but this user may not read it, and why.
    Unreadable(KnobReason),
}

/// The results for a knob.
#[derive(Clone, Debug)]
pub struct Examination {
    pub state: KnobState,
    /// The current state; `None` if it is unknown.
    pub found: Option<Finding>,
    /// The wanted state; `None` if there is none.
    pub wanted: Option<Wanted>,
    /// Changes that would correct it now.
    pub ops: Vec<Op>,
    /// What cannot be corrected.
    pub left: Vec<Left>,
    /// Boot parameters missing on the command line.
    pub boot: Vec<BootParam>,
    /// A notice about its use.
    pub notice: Option<Notice>,
}

/// A machine with a goal. Each thing is read at most once, when needed.
pub struct Inspection<'a> {
    pub machine: &'a Machine,
    pub goal: &'a Goal,
    cmdline: OnceCell<Cmdline>,
    threads: OnceCell<Vec<Thread>>,
}

impl<'a> Inspection<'a> {
    #[must_use]
    pub fn new(machine: &'a Machine, goal: &'a Goal) -> Inspection<'a> {
        Inspection {
            machine,
            goal,
            cmdline: OnceCell::new(),
            threads: OnceCell::new(),
        }
    }

    fn cmdline(&self) -> &Cmdline {
        self.cmdline
            .get_or_init(|| Cmdline::parse(&self.machine.read("/proc/cmdline").unwrap_or_default()))
    }

    pub(crate) fn threads(&self) -> &[Thread] {
        self.threads.get_or_init(|| threads::all(self.machine))
    }

    /// The name of a process; `None` if it is gone.
    pub(crate) fn process_name(&self, pid: i32) -> Option<String> {
        self.machine.read_trimmed(format!("/proc/{pid}/comm")).ok()
    }

    /// The systemd service of a process.
    pub(crate) fn service(&self, pid: i32) -> Option<String> {
        let groups = self.machine.read(format!("/proc/{pid}/cgroup")).ok()?;
        let path = groups.lines().find_map(|line| {
            line.strip_prefix("0::")
                .filter(|path| *path != "/")
                .or_else(|| line.split_once(":name=systemd:").map(|(_, path)| path))
        })?;
        let units = path.rsplit('/');
        let mut services = units.filter(|unit| unit.ends_with(".service"));
        services.next().map(str::to_owned)
    }

    /// Examines one knob that was not named: a knob that does not matter on this machine is not wrong.
    #[must_use]
    pub fn judge(&self, knob: &Knob) -> Examination {
        let found = self.examine(knob);
        match catalogue::moot(knob, self.machine, self.goal) {
            Some(why) if found.state == KnobState::Wrong => Examination {
                found: found.found,
                ..Examination::new(KnobState::NotApplicable(why))
            },
            _ => found,
        }
    }

    #[must_use]
    pub fn examine(&self, knob: &Knob) -> Examination {
        let mut found = match knob.mechanism {
            Mechanism::Partition | Mechanism::Threads(_) if self.goal.housekeeping.is_empty() => {
                Examination::new(KnobState::NotApplicable(KnobReason::NoHousekeeping))
            }
            Mechanism::Files(settings) => self.files(knob, settings),
            Mechanism::Threads(family) => self.family(knob, family),
            Mechanism::Partition => match partition::look(self.machine, self.goal) {
                None => Examination::new(absent(knob)),
                Some(p) => Examination {
                    state: if p.ops.is_empty() {
                        KnobState::Fine
                    } else {
                        KnobState::Wrong
                    },
                    found: Some(p.found),
                    wanted: Some(p.wanted),
                    ops: p.ops,
                    notice: Some(p.use_it),
                    ..Examination::new(KnobState::Fine)
                },
            },
            Mechanism::Blink => self.blink(knob),
            Mechanism::Boot(shown) => self.boot(knob, shown),
            Mechanism::Look(look) => Examination::looked(look(self.machine, self.goal)),
        };
        found.boot = knob
            .boot
            .iter()
            .filter(|p| !self.cmdline().satisfies(p, self.goal))
            .copied()
            .collect();
        found
    }

    fn files(&self, knob: &Knob, settings: &[crate::knob::Setting]) -> Examination {
        let mut readings = Vec::new();
        let mut wanted = Vec::new();
        for setting in settings {
            let found = settings::read(self.machine, self.goal, setting);
            if !found.is_empty() {
                let value = setting.want.value(&self.goal.isolated);
                if !wanted.contains(&value) {
                    wanted.push(value);
                }
            }
            readings.extend(found);
        }
        if readings.is_empty() {
            return Examination::new(absent(knob));
        }
        let total = readings.len();
        let denied = readings.iter().filter(|r| r.current.is_err()).count();
        if let Some(Err(error)) = readings.first().map(|r| &r.current)
            && denied == total
        {
            return Examination::new(KnobState::Unreadable(KnobReason::system(error)));
        }
        let wrong: Vec<&settings::Reading> = readings.iter().filter(|r| r.op.is_some()).collect();
        let current = match (readings.as_slice(), wrong.as_slice()) {
            ([one], _) => Finding::File(value(one)),
            (_, []) => Finding::FilesAsWanted { files: total },
            (_, [first, ..]) => Finding::FilesWrong {
                wrong: wrong.len(),
                files: total,
                first: value(first),
            },
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
        let state = if wrong.is_empty() {
            KnobState::Fine
        } else {
            KnobState::Wrong
        };
        let mut found = Examination {
            found: Some(current),
            wanted: Some(Wanted::Values { values: wanted }),
            notice: (waiting > 0).then_some(Notice::MoveLater {
                interrupts: waiting,
            }),
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
            return Examination::new(absent(knob));
        }
        let here: Vec<&&Thread> = mine
            .iter()
            .filter(|t| !t.allowed.intersection(&self.goal.isolated).is_empty())
            .collect();
        let mut found = Examination::new(KnobState::Fine);
        for thread in &here {
            let to = thread.allowed.intersection(&self.goal.housekeeping);
            let stays = |because| Left {
                comm: thread.comm.clone(),
                tid: thread.tid,
                because,
            };
            if thread.bound {
                let only_here = thread.allowed.difference(&self.goal.isolated).is_empty();
                found.left.push(stays(if only_here {
                    Stays::BoundToCpu
                } else {
                    Stays::Immovable
                }));
            } else if to.is_empty() {
                found.left.push(stays(if kernel {
                    Stays::OnIsolatedOnly
                } else {
                    Stays::PinnedThere
                }));
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
        found.wanted = Some(Wanted::NoThreads);
        let threads = mine.len();
        found.found = Some(if found.ops.is_empty() {
            Finding::NoThreadsHere { threads, kernel }
        } else {
            found.state = KnobState::Wrong;
            let some: Vec<String> = found
                .ops
                .iter()
                .filter_map(|op| {
                    if let Op::Thread { comm, .. } = op {
                        Some(comm.clone())
                    } else {
                        None
                    }
                })
                .take(MOST_NAMED)
                .collect();
            Finding::ThreadsHere {
                movable: found.ops.len(),
                threads,
                kernel,
                some,
            }
        });
        found
    }

    fn blink(&self, knob: &Knob) -> Examination {
        let can: Vec<_> = self
            .goal
            .isolated
            .iter()
            .filter(|cpu| {
                self.machine
                    .exists(format!("/sys/devices/system/cpu/cpu{cpu}/online"))
            })
            .collect();
        if can.is_empty() {
            return Examination::new(absent(knob));
        }
        Examination {
            ops: can.into_iter().map(|cpu| Op::Blink { cpu }).collect(),
            wanted: Some(Wanted::Once),
            ..Examination::new(KnobState::NotApplicable(KnobReason::LeavesNoTrace))
        }
    }

    fn cpuset_does_it(&self) -> bool {
        partition::look(self.machine, self.goal).is_some_and(|p| p.ops.is_empty())
    }

    fn boot(&self, knob: &Knob, shown: Shown) -> Examination {
        let parameters = knob.boot.iter().map(|p| p.spelled(self.goal)).collect();
        let wanted = Some(Wanted::BootParameters { parameters });
        let on_line: Vec<String> = knob
            .boot
            .iter()
            .filter_map(|p| self.cmdline().shown(p.key))
            .collect();
        let satisfied = knob
            .boot
            .iter()
            .all(|p| self.cmdline().satisfies(p, self.goal));
        let said = if on_line.is_empty() && satisfied {
            Finding::ImpliedByNohzFull
        } else if on_line.is_empty() {
            Finding::NotOnBootLine
        } else {
            Finding::BootParameters {
                parameters: on_line,
            }
        };
        let (state, found) = match shown {
            Shown::Cmdline => (
                if satisfied {
                    KnobState::Fine
                } else {
                    KnobState::Wrong
                },
                said,
            ),
            Shown::CpuFile(path) => match self.machine.read_trimmed(path) {
                Err(e) if e.is_absent() => (absent(knob), said),
                Err(e) => (KnobState::Unreadable(KnobReason::system(&e)), said),
                Ok(text) => {
                    let set: CpuSet = text.parse().unwrap_or_default();
                    let covers = self.goal.isolated.difference(&set).is_empty();
                    // A cpuset may meanwhile do what the boot parameter does.
                    if !covers && knob.id == "isolcpus-domain" && self.cpuset_does_it() {
                        let found = Some(Finding::CpusetInstead);
                        return Examination {
                            found,
                            wanted,
                            ..Examination::new(KnobState::Fine)
                        };
                    }
                    let state = if covers {
                        KnobState::Fine
                    } else {
                        KnobState::Wrong
                    };
                    (state, Finding::Cpus { cpus: set })
                }
            },
            Shown::Reads(path, kind, values) => match self.machine.read_trimmed(path) {
                Err(e) if e.is_absent() => (absent(knob), said),
                Err(e) => (KnobState::Unreadable(KnobReason::system(&e)), said),
                Ok(text) => {
                    let right = values.iter().any(|v| kind.holds(&text, v));
                    let state = if right {
                        KnobState::Fine
                    } else {
                        KnobState::Wrong
                    };
                    (
                        state,
                        Finding::Value {
                            value: kind.shown(&text),
                        },
                    )
                }
            },
            Shown::Gone(path) => {
                let there = self.machine.exists(path);
                let path = path.to_owned();
                if there {
                    (KnobState::Wrong, Finding::FileThere { path })
                } else {
                    (KnobState::Fine, Finding::FileGone { path })
                }
            }
        };
        Examination {
            found: Some(found),
            wanted,
            ..Examination::new(state)
        }
    }
}

/// The state of a knob that this machine does not have.
fn absent(knob: &Knob) -> KnobState {
    KnobState::Unavailable(KnobReason::AsDeclared { words: knob.absent })
}

/// The value of a file that was read.
fn value(reading: &settings::Reading) -> FileValue {
    let reads = reading
        .current
        .as_ref()
        .map_or_else(|_| "?".into(), |text| reading.kind.shown(text));
    let in_force = reading.in_force.clone().filter(|force| *force != reads);
    FileValue {
        path: reading.path.clone(),
        reads,
        in_force,
    }
}

impl Examination {
    fn new(state: KnobState) -> Examination {
        Examination {
            state,
            found: None,
            wanted: None,
            ops: Vec::new(),
            left: Vec::new(),
            boot: Vec::new(),
            notice: None,
        }
    }

    fn looked(look: Look) -> Examination {
        match look {
            Look::Wrong(found, wanted) => Examination {
                found: Some(found),
                wanted: Some(wanted),
                ..Examination::new(KnobState::Wrong)
            },
            Look::Fine(found) => Examination {
                found: Some(found),
                ..Examination::new(KnobState::Fine)
            },
            Look::Unavailable(why) => Examination::new(KnobState::Unavailable(why)),
            Look::NotApplicable(why) => Examination::new(KnobState::NotApplicable(why)),
            Look::Denied(why) => Examination::new(KnobState::Unreadable(why)),
        }
    }
}

#[cfg(test)]
#[path = "examine_tests.rs"]
mod tests;
