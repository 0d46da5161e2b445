//! Which culprits add up.

use super::{About, Meanwhile, Quota, Subject, Task, Work, Worker};
use crate::CulpritKind;

/// How finely culprits are told apart in a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyLevel {
    /// Each thread by itself.
    Thread,
    /// The threads of a process together.
    Process,
    /// Threads of one name in processes of one name, with the same urgency.
    Name,
    /// All that runs the same program, with the same urgency: what processes of one name do, by whichever of
    /// their threads.
    Program,
}

/// What culprits must have in common to add up. The one key of all sums over culprits.
///
/// | subject | `Thread` | `Process` | `Program` (`Name`: and by the thread's own name) |
/// |---|---|---|---|
/// | thread | id and name | process id (its own where that is not known) | its process's name and its class |
/// | work item; late timer while one ran | function, queue, worker | function, queue | function, queue |
/// | worker without an item | id and name | id and name | name |
/// | throttling, late timer while a thread ran | and that thread | whoever ran | whoever ran |
/// | CPU quota | the group | | |
/// | machine check, time not seen | without the bank or CPU | | |
/// | everything else | all that is known of it | | |
///
/// Nice values, users, control groups and senders never separate. The class does: a program that is
/// real-time and the same one that is not are two things to deal with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CulpritKey(Subject);

impl CulpritKey {
    /// The key of a subject.
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

    /// The kind of what has this key.
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
                process,
                class,
                ..Task::default()
            }
        }
    }
}

/// A thread that is not itself to blame.
fn bystander(of: &Task, level: KeyLevel) -> Task {
    match level {
        KeyLevel::Thread => task(of, level),
        KeyLevel::Process | KeyLevel::Name | KeyLevel::Program => Task::default(),
    }
}

fn work(of: &Work, level: KeyLevel) -> Work {
    let worker = |of: &Worker| match (level, &of.comm) {
        (KeyLevel::Name | KeyLevel::Program, Some(comm)) => Worker {
            comm: Some(comm.clone()),
            ..Worker::default()
        },
        _ => Worker {
            class: None,
            ..of.clone()
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
