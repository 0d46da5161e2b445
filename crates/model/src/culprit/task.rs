//! A thread as a culprit.

use super::{GroupPath, KeyLevel, SchedClass};
use crate::{CpuSet, Name, TaskRef};

/// User, control group and executable of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// User id (the real one).
    pub uid: Option<u32>,
    /// Control group, as in `/proc/PID/cgroup`: `/system.slice/cron.service`. With version 1, that of the CPU controller,
    /// or systemd's own where that is the topmost.
    pub cgroup: Option<Name>,
    /// The file that it runs: `/usr/sbin/cron`. A process can change its name, but not this.
    pub executable: Option<Name>,
}

impl Owner {
    /// A user without further facts.
    #[must_use]
    pub fn user(uid: u32) -> Owner {
        Owner {
            uid: Some(uid),
            ..Owner::default()
        }
    }

    /// `None` if nothing is known.
    #[must_use]
    pub fn known(self) -> Option<Owner> {
        Some(self).filter(|owner| *owner != Owner::default())
    }

    /// Keeps what both share.
    fn meet(self, other: Option<&Owner>) -> Option<Owner> {
        fn common<T: PartialEq>(own: Option<T>, other: &Option<T>) -> Option<T> {
            own.filter(|own| other.as_ref() == Some(own))
        }
        let other = other?;
        let shared = Owner {
            uid: common(self.uid, &other.uid),
            cgroup: common(self.cgroup, &other.cgroup),
            executable: common(self.executable, &other.executable),
        };
        shared.known()
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
        let uid = self.owner.as_ref().and_then(|owner| owner.uid);
        let comm = match (uid, self.kernel) {
            (_, Some(true)) => "kernel".into(),
            (Some(uid), _) => format!("user {uid}").into(),
            (None, _) => "user not known".into(),
        };
        Task {
            tid: None,
            comm,
            process: None,
            ..self.clone()
        }
    }

    /// What its control group is, if known. Kernel threads have none of their own.
    #[must_use]
    pub fn group(&self) -> Option<GroupPath<'_>> {
        let cgroup = self.owner.as_ref()?.cgroup.as_deref()?;
        (self.kernel != Some(true)).then_some(GroupPath(cgroup))
    }

    /// As all of its unit, pod or control group, or as the kernel.
    pub(super) fn of_group(&self, level: KeyLevel) -> Task {
        let comm: Name = match (self.group(), self.kernel) {
            (_, Some(true)) => "kernel".into(),
            (None, _) => "control group not known".into(),
            (Some(GroupPath(path)), _) if level == KeyLevel::Cgroup => path.into(),
            (Some(group), _) => match group.pod().filter(|_| level == KeyLevel::Pod) {
                Some(pod) => format!("pod {pod}").into(),
                None => group.to_string().into(),
            },
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
