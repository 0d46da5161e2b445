//! A thread as a culprit.

use super::SchedClass;
use crate::{CpuSet, Name, TaskRef};

/// User, control group and executable of a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// User id (the real one).
    pub uid: u32,
    /// Control group (version 2), as in `/proc/PID/cgroup`: `/system.slice/cron.service`.
    pub cgroup: Option<Name>,
    /// The file that it runs: `/usr/sbin/cron`. A process can change its name, but not this.
    pub executable: Option<Name>,
}

impl Owner {
    /// A user without further facts.
    #[must_use]
    pub fn user(uid: u32) -> Owner {
        Owner {
            uid,
            cgroup: None,
            executable: None,
        }
    }

    /// Keeps what both share; `None` for two different users.
    fn meet(self, other: Option<&Owner>) -> Option<Owner> {
        let other = other.filter(|other| other.uid == self.uid)?;
        let common =
            |own: Option<Name>, other: &Option<Name>| own.filter(|own| other.as_ref() == Some(own));
        Some(Owner {
            uid: self.uid,
            cgroup: common(self.cgroup, &other.cgroup),
            executable: common(self.executable, &other.executable),
        })
    }
}

/// What a thread belongs to, as read during its life; a field is `None` if nothing was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskIdentity {
    pub tgid: Option<i32>,
    /// The name of its process, for a thread other than its process's first.
    pub process: Option<Name>,
    /// The owner of its process.
    pub owner: Option<Owner>,
    /// Whether it is a kernel thread, by its flags, because a name can be chosen freely.
    pub kernel: Option<bool>,
    /// CPUs that it may run on, as the kernel lists them.
    pub allowed: Option<Name>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    /// Kernel thread id; `None` if the record does not tell, and for several threads together.
    pub tid: Option<i32>,
    /// Its process id, if known; `None` for several processes together.
    pub tgid: Option<i32>,
    /// The name of its process, if known, for a thread other than its process's first: the name that its user knows.
    pub process: Option<Name>,
    pub comm: Name,
    /// Its earlier name, if it was renamed meanwhile and no record tells when.
    pub was: Option<Name>,
    /// Its scheduling class; `None` if unknown.
    pub class: Option<SchedClass>,
    /// Its owner, if known.
    pub owner: Option<Owner>,
    /// Whether it is a kernel thread, if known.
    pub kernel: Option<bool>,
    /// CPUs that it may run on, as the kernel lists them, if known; `None` for several threads that differ.
    pub allowed: Option<Name>,
}

impl Task {
    /// From a record of the scheduler; `comm` is its name as text.
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
            was: None,
            class: Some(class),
            owner: identity.owner,
            kernel: if task.tid == 0 {
                Some(true)
            } else {
                identity.kernel
            },
            allowed: identity.allowed,
        }
    }

    /// The name that the user knows: the name of its process, if that differs from its own.
    #[must_use]
    pub fn program(&self) -> &Name {
        self.process.as_ref().unwrap_or(&self.comm)
    }

    /// As its process: with the process's name and no thread id.
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

    /// The file name of its process's executable, if known.
    pub(super) fn executable_name(&self) -> Option<&str> {
        let path = self.owner.as_ref()?.executable.as_deref()?;
        path.rsplit('/').next().filter(|name| !name.is_empty())
    }

    /// As all that run the same file; as its process if the file is unknown.
    pub(super) fn of_executable(&self) -> Task {
        match self.executable_name() {
            Some(name) => Task {
                tid: None,
                comm: name.into(),
                process: None,
                ..self.clone()
            },
            None => self.of_process(),
        }
    }

    /// As all of its user, or as the kernel.
    pub(super) fn of_user(&self) -> Task {
        let comm = match (&self.owner, self.kernel) {
            (_, Some(true)) => "kernel".into(),
            (Some(owner), _) => format!("user {}", owner.uid).into(),
            (None, _) => "user not known".into(),
        };
        Task {
            tid: None,
            comm,
            process: None,
            ..self.clone()
        }
    }

    /// Whether it is known to be a user thread, under any name.
    #[must_use]
    pub fn is_of_user(&self) -> bool {
        self.kernel == Some(false)
    }

    /// Whether it is known to be confined to these CPUs: a change of other CPUs' settings does not move it away.
    #[must_use]
    pub fn is_pinned_within(&self, cpus: &CpuSet) -> bool {
        let allowed = self.allowed.as_ref().and_then(|list| list.parse().ok());
        allowed.is_some_and(|allowed: CpuSet| allowed.difference(cpus).is_empty())
    }

    /// Keeps what both share; the name stays.
    pub(super) fn meet(&mut self, other: &Task) {
        // One known user thread makes the result a user thread.
        self.kernel = match (self.kernel, other.kernel) {
            (Some(own), Some(other)) => Some(own && other),
            (known, None) | (None, known) => known,
        };
        self.tid = self.tid.filter(|tid| other.tid == Some(*tid));
        self.was = self
            .was
            .take()
            .filter(|was| other.was.as_ref() == Some(was));
        self.tgid = self.tgid.filter(|tgid| other.tgid == Some(*tgid));
        self.process = self
            .process
            .take()
            .filter(|process| other.process.as_ref() == Some(process));
        self.allowed = self
            .allowed
            .take()
            .filter(|allowed| other.allowed.as_ref() == Some(allowed));
        if self.owner != other.owner {
            let owner = self.owner.take();
            self.owner = owner.and_then(|own| own.meet(other.owner.as_ref()));
        }
        if self.class != other.class {
            let base = |task: &Task| task.class.as_ref().map(SchedClass::without_nice);
            self.class = base(self).filter(|own| Some(own) == base(other).as_ref());
        }
    }
}
