//! A thread as a culprit.

use super::SchedClass;
use crate::{Name, TaskRef};

/// Whose a process is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// User id (the real one).
    pub uid: u32,
    /// Control group (version 2), as `/proc/PID/cgroup` has it: `/system.slice/cron.service`.
    pub cgroup: Option<Name>,
}

/// What a thread belongs to, as far as somebody asked for it while it lived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskIdentity {
    /// Its process.
    pub tgid: Option<i32>,
    /// The name of that, of a thread that is not its process's first.
    pub process: Option<Name>,
    /// Whose that is.
    pub owner: Option<Owner>,
    /// Whether it is one of the kernel's own threads, by its flags: names can be chosen.
    pub kernel: Option<bool>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    /// Kernel thread id; `None` where the record does not say, and of several threads together.
    pub tid: Option<i32>,
    /// Its process, where known; `None` of several processes together.
    pub tgid: Option<i32>,
    /// The name of that, of a thread that is not its process's first, where known: what its user calls it.
    pub process: Option<Name>,
    /// Its name when it ran.
    pub comm: Name,
    /// How urgent it was; `None` where that is not known.
    pub class: Option<SchedClass>,
    /// Whose it is, where known.
    pub owner: Option<Owner>,
    /// Whether it is one of the kernel's own threads, where known.
    pub kernel: Option<bool>,
}

impl Task {
    /// From a record of the scheduler; `comm` is the text of its name.
    #[must_use]
    pub fn of(task: &TaskRef, comm: Name, identity: TaskIdentity) -> Task {
        let class = match task.tid {
            0 => SchedClass::Idle,
            _ => SchedClass::of_priority(task.prio),
        };
        Task {
            tid: Some(task.tid),
            tgid: identity.tgid,
            process: identity.process,
            comm,
            class: Some(class),
            owner: identity.owner,
            kernel: if task.tid == 0 {
                Some(true)
            } else {
                identity.kernel
            },
        }
    }

    /// What the user who started it calls it: the name of its process, where that is known to be another's.
    #[must_use]
    pub fn program(&self) -> &Name {
        self.process.as_ref().unwrap_or(&self.comm)
    }

    /// As one of its process: a thread that is not the first bears the name of that, and its id is the process's
    /// alone.
    pub(super) fn of_process(&self) -> Task {
        match &self.process {
            Some(process) => Task {
                tid: None,
                comm: process.clone(),
                process: None,
                ..self.clone()
            },
            None => self.clone(),
        }
    }

    /// Whether it is known to be none of the kernel's own threads, whatever it calls itself.
    #[must_use]
    pub fn is_of_user(&self) -> bool {
        self.kernel == Some(false)
    }

    /// What both have in common; the name stays.
    pub(super) fn meet(&mut self, other: &Task) {
        // Who is known to be of user space takes the kernel's name from both.
        self.kernel = match (self.kernel, other.kernel) {
            (Some(own), Some(other)) => Some(own && other),
            (known, None) | (None, known) => known,
        };
        self.tid = self.tid.filter(|tid| other.tid == Some(*tid));
        self.tgid = self.tgid.filter(|tgid| other.tgid == Some(*tgid));
        self.process = self
            .process
            .take()
            .filter(|process| other.process.as_ref() == Some(process));
        if self.owner != other.owner {
            let uid = other.owner.as_ref().map(|owner| owner.uid);
            let same_user = self.owner.take().filter(|own| Some(own.uid) == uid);
            self.owner = same_user.map(|own| Owner {
                cgroup: None,
                ..own
            });
        }
        if self.class != other.class {
            let base = |task: &Task| task.class.as_ref().map(SchedClass::without_nice);
            self.class = base(self).filter(|own| Some(own) == base(other).as_ref());
        }
    }
}
