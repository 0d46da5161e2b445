//! Which culprits add up.

use super::{About, Meanwhile, Owner, Quota, Subject, Task, Work, Worker};
use crate::CulpritKind;

/// How finely a sum separates culprits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyLevel {
    Thread,
    /// One row per process.
    Process,
    /// Threads of one name in processes of one name, with the same class and the same allowed CPUs.
    Name,
    /// All threads of processes with the same name, with the same class.
    Program,
    /// All threads that run the same file, under any name.
    Executable,
    /// All threads of a user; all kernel threads together.
    User,
    /// All threads of a unit of systemd; those outside of any by their container or control group.
    Unit,
    /// All threads of a pod; those outside of any as for `Unit`.
    Pod,
    /// All threads of a control group.
    Cgroup,
}

/// What culprits must share to add up. This is the one key of all sums over culprits.
///
/// | subject | `Thread` | `Process` | `Program` (`Name`: also the thread's own name and its allowed CPUs) |
/// |---|---|---|---|
/// | thread | id and name | process id (the thread's own if that is unknown) | its process's name, its class, and whether it is a kernel thread |
/// | work item; late timer while one ran | function, queue, worker | function, queue | function, queue |
/// | worker without an item | id and name | id and name | name |
/// | throttling, late timer while a thread ran | the kind and that thread | any thread | any thread |
/// | CPU quota | the group; the thread that had the CPU meanwhile, if any | the group; whether a thread had the CPU meanwhile | as for `Process` |
/// | machine check, time not seen | without the bank or CPU | | |
/// | everything else | all its facts | | |
///
/// `Executable`, `User`, `Unit`, `Pod` and `Cgroup` join threads further: by the file that they run (by `Program` if
/// that is unknown), by their user, and by what their control group is. Other subjects are as for `Program`.
///
/// At the other levels nice values, users, control groups and senders never separate. The class does, because a program with real-time
/// priority needs another remedy than the same program without. So does being a kernel thread: a user thread that takes
/// a kernel thread's name does not add up with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CulpritKey(Subject);

impl CulpritKey {
    #[must_use]
    pub fn of(subject: &Subject, level: KeyLevel) -> CulpritKey {
        CulpritKey(match subject {
            Subject::Thread(of) => Subject::Thread(task(of, level)),
            Subject::Throttle(of) => Subject::Throttle(bystander(of, level)),
            Subject::Work(of) => Subject::Work(work(of, level)),
            Subject::Verdict(verdict, About::Meanwhile(Meanwhile::Ran(of))) => {
                let about = About::Meanwhile(Meanwhile::Ran(bystander(of, level)));
                Subject::Verdict(*verdict, about)
            }
            Subject::Verdict(verdict, About::Meanwhile(Meanwhile::Worked(of))) => Subject::Verdict(
                *verdict,
                About::Meanwhile(Meanwhile::Worked(work(of, level))),
            ),
            Subject::Verdict(verdict, About::Cpu(_)) => Subject::verdict(*verdict),
            Subject::Quota(of) => Subject::Quota(Quota {
                limit: None,
                beside: of.beside.as_ref().map(|task| bystander(task, level)),
                ..of.clone()
            }),
            Subject::MachineCheck { .. } => Subject::MachineCheck { bank: None },
            Subject::Verdict(_, _)
            | Subject::Interrupt { .. }
            | Subject::Vector(_)
            | Subject::Softirq(_)
            | Subject::Timer { .. }
            | Subject::Call(_)
            | Subject::Ipi(_)
            | Subject::PageFault { .. }
            | Subject::Nmi(_)
            | Subject::Others(_)
            | Subject::Unknown { .. } => subject.clone(),
        })
    }

    /// The kind of the subjects with this key.
    #[must_use]
    pub fn kind(&self) -> CulpritKind {
        self.0.kind()
    }
}

fn task(of: &Task, level: KeyLevel) -> Task {
    match level {
        KeyLevel::Thread => Task {
            tid: of.tid,
            comm: of.comm.clone(),
            ..Task::default()
        },
        KeyLevel::Process => match of.tgid.or(of.tid) {
            Some(process) => Task {
                tgid: Some(process),
                ..Task::default()
            },
            None => Task {
                comm: of.program().clone(),
                kernel: is_kernel(of),
                ..Task::default()
            },
        },
        KeyLevel::Program | KeyLevel::Name => {
            let class = of.class.as_ref().map(super::SchedClass::without_nice);
            let process = Some(of.program().clone()).filter(|_| level == KeyLevel::Name);
            let comm = if process.is_some() {
                &of.comm
            } else {
                of.program()
            };
            Task {
                comm: comm.clone(),
                class,
                kernel: is_kernel(of),
                allowed: of.allowed.clone().filter(|_| process.is_some()),
                process,
                ..Task::default()
            }
        }
        KeyLevel::Executable => match of.owner.as_ref().and_then(|own| own.executable.as_ref()) {
            Some(executable) => Task {
                owner: Some(Owner {
                    executable: Some(executable.clone()),
                    ..Owner::default()
                }),
                ..Task::default()
            },
            None => task(of, KeyLevel::Program),
        },
        KeyLevel::User => Task {
            owner: of
                .owner
                .as_ref()
                .and_then(|owner| owner.uid)
                .map(Owner::user),
            kernel: is_kernel(of),
            ..Task::default()
        },
        KeyLevel::Unit | KeyLevel::Pod | KeyLevel::Cgroup => Task {
            comm: of.of_group(level).comm,
            kernel: is_kernel(of),
            ..Task::default()
        },
    }
}

/// Treats user threads and threads of unknown origin alike.
fn is_kernel(of: &Task) -> Option<bool> {
    of.kernel.filter(|kernel| *kernel)
}

/// A thread that is not itself to blame.
fn bystander(of: &Task, level: KeyLevel) -> Task {
    match level {
        KeyLevel::Thread => task(of, level),
        _ => Task::default(),
    }
}

fn work(of: &Work, level: KeyLevel) -> Work {
    let worker = |of: &Worker| match (level, &of.comm) {
        (KeyLevel::Thread | KeyLevel::Process, _) | (_, None) => Worker {
            class: None,
            ..of.clone()
        },
        (_, Some(comm)) => Worker {
            comm: Some(comm.clone()),
            ..Worker::default()
        },
    };
    let apart = level == KeyLevel::Thread || of.function.is_none();
    Work {
        function: of.function.clone(),
        workqueue: of.workqueue.clone(),
        worker: of.worker.as_ref().filter(|_| apart).map(worker),
        unbound: None,
    }
}
