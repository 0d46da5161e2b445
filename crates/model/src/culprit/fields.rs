//! The flat form of a subject: one column or JSON field a fact.

use super::subject::{FAULT_KERNEL, FAULT_USER, OTHERS};
use super::{
    About, CulpritKind, Evidence, Meanwhile, Owner, Quota, QuotaLimit, SchedClass, Subject, Task,
    TimerSource, Verdict, Work, Worker,
};
use crate::{CpuId, Name};
use serde::{Deserialize, Serialize};

/// A subject as a row of a table and as JSON: `kind` and `name` always, and of the rest what there is.
/// Reading it back gives the same subject; what does not make one is kept as [`Subject::Unknown`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubjectFields {
    /// The word for its kind.
    pub kind: Name,
    /// Its name.
    pub name: Name,
    /// Of a thread or worker: kernel thread id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<i32>,
    /// Of a thread: its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tgid: Option<i32>,
    /// Of a thread that is not its process's first: the name of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Name>,
    /// Of a thread, of a worker, of who ran meanwhile: the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<Name>,
    /// Of these: the scheduling class, `deadline`, `real_time`, `fair` or `idle`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Name>,
    /// Of a real-time thread: its priority as the user sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Of a fair thread: its nice value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<i8>,
    /// Of a thread: the user whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Of a thread: `kernel` or `user`, whose it is by its flags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<Name>,
    /// Of a CPU quota: the time granted, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_us: Option<u64>,
    /// Of a CPU quota: in each of these, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_us: Option<u64>,
    /// Of a thread: its control group; of a CPU quota: the one that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Name>,
    /// Of a work item, timer, call or NMI: the kernel function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<Name>,
    /// Of a work item: the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workqueue: Option<Name>,
    /// Of a work item that several workers ran: whether all of them were bound to no single CPU (`true`), or
    /// each to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unbound: Option<bool>,
    /// Of a device's interrupt: its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irq: Option<u32>,
    /// Of other interrupts: the vector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector: Option<Name>,
    /// Of a softirq: its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub softirq: Option<u32>,
    /// Of a timer: what ran it, `hrtimer`, `wheel` or `interrupt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerSource>,
    /// Of a machine check: the bank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bank: Option<u32>,
    /// Of an idle exit: the state that was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_state: Option<u32>,
    /// Of a late timer: what went on meanwhile, `thread`, `work`, `idle_ended` or
    /// `unrecorded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<Name>,
    /// Of untraced interrupts: those that were counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untraced: Vec<Name>,
    /// Of time of which no record says what ran: the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen_cpu: Option<CpuId>,
    /// Of a frame whose end is missing: its records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<Evidence>,
    /// Of what is not known: what else was said of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Name>,
}

/// The words for whose a thread is.
const KERNEL: &str = "kernel";
const USER: &str = "user";

impl SubjectFields {
    fn put_class(&mut self, class: Option<&SchedClass>) {
        if let Some(class) = class {
            self.class = Some(class.as_str().into());
            (self.priority, self.nice) = (class.priority(), class.nice());
        }
    }

    fn put_task(&mut self, task: &Task) {
        self.tid = task.tid;
        self.tgid = task.tgid;
        self.process.clone_from(&task.process);
        self.comm = Some(task.comm.clone());
        self.put_class(task.class.as_ref());
        if let Some(owner) = &task.owner {
            self.uid = Some(owner.uid);
            self.cgroup.clone_from(&owner.cgroup);
        }
        self.space = task.kernel.map(|kernel| if kernel { KERNEL } else { USER }.into());
    }

    fn put_work(&mut self, work: &Work) {
        self.function.clone_from(&work.function);
        self.workqueue.clone_from(&work.workqueue);
        self.unbound = work.unbound;
        if let Some(worker) = &work.worker {
            self.tid = worker.tid;
            self.comm.clone_from(&worker.comm);
            self.put_class(worker.class.as_ref());
        }
    }

    fn take_class(&self) -> Option<SchedClass> {
        self.class.as_deref().map(|word| SchedClass::from_word(word, self.priority, self.nice))
    }

    fn take_task(&mut self) -> Task {
        Task {
            tid: self.tid,
            tgid: self.tgid,
            process: self.process.take(),
            comm: self.comm.take().unwrap_or_default(),
            class: self.take_class(),
            owner: self.uid.map(|uid| Owner { uid, cgroup: self.cgroup.take() }),
            kernel: match self.space.take().as_deref() {
                Some(KERNEL) => Some(true),
                Some(USER) => Some(false),
                _ => None,
            },
        }
    }

    fn take_work(&mut self) -> Work {
        let worker = Worker { tid: self.tid, comm: self.comm.take(), class: self.take_class() };
        Work {
            function: self.function.take(),
            workqueue: self.workqueue.take(),
            worker: (worker != Worker::default()).then_some(worker),
            unbound: self.unbound,
        }
    }

    fn take_about(&mut self) -> About {
        if let Some(word) = self.meanwhile.take() {
            let meanwhile = match &*word {
                "idle_ended" => Meanwhile::IdleEnded,
                "unrecorded" => Meanwhile::Unrecorded,
                "thread" => Meanwhile::Ran(self.take_task()),
                "work" => Meanwhile::Worked(self.take_work()),
                _ => return About::Nothing,
            };
            return About::Meanwhile(meanwhile);
        }
        if !self.untraced.is_empty() {
            return About::Vectors(std::mem::take(&mut self.untraced).into());
        }
        let idle = self.idle_state.map(About::IdleState);
        idle.or_else(|| self.unseen_cpu.map(About::Cpu))
            .or_else(|| self.frame.take().map(About::Frame))
            .unwrap_or_default()
    }

    /// The subject; `None` when the fields that it needs are not there.
    fn known(&mut self) -> Option<Subject> {
        let kind = CulpritKind::from_word(&self.kind)?;
        if &*self.name == OTHERS && self.comm.is_none() && self.function.is_none() && self.irq.is_none() {
            return Some(Subject::Others(kind));
        }
        if let Some(verdict) = Verdict::parse(kind, &self.name) {
            return Some(Subject::Verdict(verdict, self.take_about()));
        }
        Some(match kind {
            CulpritKind::Thread if self.comm.is_some() => Subject::Thread(self.take_task()),
            CulpritKind::Kworker if self.function.is_some() || self.comm.is_some() => {
                Subject::Work(self.take_work())
            }
            CulpritKind::Irq if self.vector.is_some() => Subject::Vector(self.vector.take()?),
            CulpritKind::Irq => Subject::Interrupt { number: self.irq, action: self.name.clone() },
            CulpritKind::Timer => {
                Subject::Timer { function: self.function.take(), source: self.timer.take() }
            }
            CulpritKind::Softirq => Subject::Softirq(self.softirq?),
            CulpritKind::Ipi if self.function.is_some() => Subject::Call(self.function.take()?),
            CulpritKind::Ipi => Subject::Ipi(self.vector.take()?),
            CulpritKind::PageFault => match &*self.name {
                FAULT_USER => Subject::PageFault { user: true },
                FAULT_KERNEL => Subject::PageFault { user: false },
                _ => return None,
            },
            CulpritKind::Nmi => Subject::Nmi(self.function.take()?),
            CulpritKind::Mce => Subject::MachineCheck { bank: self.bank },
            CulpritKind::RtThrottle => Subject::Throttle(self.take_task()),
            CulpritKind::Quota => Subject::Quota(Quota {
                cgroup: self.cgroup.take()?,
                limit: self
                    .quota_us
                    .zip(self.period_us)
                    .map(|(quota_us, period_us)| QuotaLimit { quota_us, period_us }),
            }),
            // Without the fields that make one, or a verdict of a newer version.
            _ => return None,
        })
    }
}

impl From<SubjectFields> for Subject {
    fn from(mut fields: SubjectFields) -> Subject {
        fields.known().unwrap_or_else(|| Subject::Unknown {
            kind: fields.kind,
            name: fields.name,
            detail: fields.detail.unwrap_or_default(),
        })
    }
}

impl From<Subject> for SubjectFields {
    fn from(subject: Subject) -> SubjectFields {
        SubjectFields::from(&subject)
    }
}

impl From<&Subject> for SubjectFields {
    fn from(subject: &Subject) -> SubjectFields {
        let mut fields = SubjectFields {
            kind: subject.kind_word().into(),
            name: subject.name().into(),
            ..SubjectFields::default()
        };
        match subject {
            Subject::Thread(task) | Subject::Throttle(task) => fields.put_task(task),
            Subject::Quota(quota) => {
                fields.cgroup = Some(quota.cgroup.clone());
                fields.quota_us = quota.limit.map(|limit| limit.quota_us);
                fields.period_us = quota.limit.map(|limit| limit.period_us);
            }
            Subject::Work(work) => fields.put_work(work),
            Subject::Interrupt { number, .. } => fields.irq = *number,
            Subject::Vector(vector) | Subject::Ipi(vector) => fields.vector = Some(vector.clone()),
            Subject::Softirq(vec) => fields.softirq = Some(*vec),
            Subject::Timer { function, source } => {
                fields.function.clone_from(function);
                fields.timer.clone_from(source);
            }
            Subject::Call(function) | Subject::Nmi(function) => fields.function = Some(function.clone()),
            Subject::MachineCheck { bank } => fields.bank = *bank,
            Subject::Verdict(_, about) => match about {
                About::Nothing => {}
                About::IdleState(state) => fields.idle_state = Some(*state),
                About::Meanwhile(meanwhile) => {
                    fields.meanwhile = Some(meanwhile.as_str().into());
                    match meanwhile {
                        Meanwhile::Ran(task) => fields.put_task(task),
                        Meanwhile::Worked(work) => fields.put_work(work),
                        Meanwhile::IdleEnded | Meanwhile::Unrecorded => {}
                    }
                }
                About::Vectors(vectors) => fields.untraced = vectors.to_vec(),
                About::Cpu(cpu) => fields.unseen_cpu = Some(*cpu),
                About::Frame(records) => fields.frame = Some(records.clone()),
            },
            Subject::Unknown { detail, .. } => {
                fields.detail = Some(detail.clone()).filter(|detail| !detail.is_empty());
            }
            Subject::PageFault { .. } | Subject::Others(_) => {}
        }
        fields
    }
}
