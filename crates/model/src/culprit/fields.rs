//! The flat form of a subject: one column or JSON field per fact.

use super::fact::{AsNumber, AsText, Fact, FactForm};
use super::subject::{FAULT_KERNEL, FAULT_USER, OTHERS};
use super::{
    About, CulpritKind, Evidence, Meanwhile, Owner, Quota, QuotaLimit, SchedClass, Subject, Task,
    TimerSource, Verdict, Work, Worker,
};
use crate::{CpuId, Name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a field is stored in a column.
macro_rules! form {
    (text $field:ident) => {
        FactForm::Text(
            |of| AsText::text(&of.$field),
            |of, text| AsText::put_text(&mut of.$field, text),
        )
    };
    ($form:ident $field:ident) => {
        FactForm::$form(
            |of| AsNumber::number(&of.$field),
            |of, number| AsNumber::put_number(&mut of.$field, number),
        )
    };
}

/// The one table of facts: a JSON field each, and a column in this order, except for facts without a form.
macro_rules! facts {
    ($($field:ident: $type:ty [$($form:ident)?] $meaning:literal,)*) => {
        /// A subject as a row of a table and as JSON: always `kind` and `name`, and the other facts if present. Reading
        /// it back gives the same subject; fields that make no valid subject become [`Subject::Unknown`].
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct SubjectFields {
            /// The word of its kind.
            pub kind: Name,
            pub name: Name,
            $(
                #[doc = concat!("A fact: ", $meaning, ".")]
                #[serde(skip_serializing_if = "is_absent")]
                pub $field: $type,
            )*
        }

        impl SubjectFields {
            /// The facts with a column, in the order of the columns.
            pub const FACTS: &'static [Fact<SubjectFields>] = &[
                $($(Fact { name: stringify!($field), meaning: $meaning, form: form!($form $field) },)?)*
            ];
        }
    };
}

fn is_absent<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

facts! {
    tid: Option<i32> [I32] "thread id of a thread, a worker, the thread that ran during a late timer or that had the CPU beside a quota",
    tgid: Option<i32> [I32] "process id, if known",
    process: Option<Name> [text] "process name (name of the first thread), for other threads of the process",
    comm: Option<Name> [text] "thread name",
    was: Option<Name> [text] "first name of a thread, if no record shows when it was renamed",
    class: Option<Name> [text] "deadline, real_time, fair or idle",
    priority: Option<u8> [U32] "priority of a real-time thread, as the user sets it",
    nice: Option<i8> [I32] "nice value of a fair thread",
    uid: Option<u32> [U32] "user id, if known",
    space: Option<Name> [text] "kernel or user, from the thread's flags, if known",
    allowed: Option<Name> [text] "the thread's allowed CPUs, in the kernel's list format, if known",
    cgroup: Option<Name> [text] "control group, if known; for a CPU quota, the limited group",
    executable: Option<Name> [text] "executable of the thread's process, if known",
    quota_us: Option<u64> [U64] "CPU quota per period, microseconds",
    period_us: Option<u64> [U64] "period of the CPU quota, microseconds",
    function: Option<Name> [text] "kernel function of work, a timer, a call or an NMI",
    workqueue: Option<Name> [text] "workqueue of a work item, if seen",
    // A row describes one worker.
    unbound: Option<bool> [] "for work of several workers: true if all are unbound, false if each is bound to one CPU",
    irq: Option<u32> [U32] "number of a device interrupt",
    vector: Option<Name> [text] "vector of other interrupts",
    softirq: Option<u32> [U32] "softirq number",
    timer: Option<TimerSource> [text] "source of a timer function: hrtimer, wheel or interrupt",
    bank: Option<u32> [U32] "bank of a machine check",
    idle_state: Option<u32> [U32] "idle state that an idle exit left",
    meanwhile: Option<Name> [text] "what ran before a late timer: thread, work, idle_ended or unrecorded",
    untraced: Vec<Name> [text] "untraced interrupts, separated by commas",
    unseen_cpu: Option<CpuId> [U32] "CPU without a record of what ran",
    frame: Option<Evidence> [text] "records of the frame whose end is missing",
    detail: Option<Name> [text] "description of a culprit that the writer does not know",
}

/// Whether a thread belongs to the kernel or to a user.
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
        self.was.clone_from(&task.was);
        self.put_class(task.class.as_ref());
        if let Some(owner) = &task.owner {
            self.uid = owner.uid;
            self.cgroup.clone_from(&owner.cgroup);
            self.executable.clone_from(&owner.executable);
        }
        self.allowed.clone_from(&task.allowed);
        self.space = task
            .kernel
            .map(|kernel| if kernel { KERNEL } else { USER }.into());
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
        self.class
            .as_deref()
            .map(|word| SchedClass::from_word(word, self.priority, self.nice))
    }

    fn take_task(&mut self) -> Task {
        Task {
            tid: self.tid,
            tgid: self.tgid,
            process: self.process.take(),
            comm: self.comm.take().unwrap_or_default(),
            was: self.was.take(),
            class: self.take_class(),
            owner: Owner {
                uid: self.uid,
                cgroup: self.cgroup.take(),
                executable: self.executable.take(),
            }
            .known(),
            kernel: match self.space.take().as_deref() {
                Some(KERNEL) => Some(true),
                Some(USER) => Some(false),
                _ => None,
            },
            allowed: self.allowed.take(),
        }
    }

    fn take_work(&mut self) -> Work {
        let worker = Worker {
            tid: self.tid,
            comm: self.comm.take(),
            class: self.take_class(),
        };
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

    /// The subject; `None` if a required field is missing.
    fn known(&mut self) -> Option<Subject> {
        let kind = CulpritKind::from_word(&self.kind)?;
        if &*self.name == OTHERS
            && self.comm.is_none()
            && self.function.is_none()
            && self.irq.is_none()
        {
            return Some(Subject::Others(kind));
        }
        if let Some(verdict) = Verdict::parse(kind, &self.name) {
            return Some(Subject::Verdict(verdict, self.take_about()));
        }
        match kind {
            CulpritKind::Thread => self
                .comm
                .is_some()
                .then(|| Subject::Thread(self.take_task())),
            CulpritKind::Kworker => {
                let known = self.function.is_some() || self.comm.is_some();
                known.then(|| Subject::Work(self.take_work()))
            }
            CulpritKind::Irq => Some(match self.vector.take() {
                Some(vector) => Subject::Vector(vector),
                None => Subject::Interrupt {
                    number: self.irq,
                    action: self.name.clone(),
                },
            }),
            CulpritKind::Timer => Some(Subject::Timer {
                function: self.function.take(),
                source: self.timer.take(),
            }),
            CulpritKind::Softirq => self.softirq.map(Subject::Softirq),
            CulpritKind::Ipi => match self.function.take() {
                Some(function) => Some(Subject::Call(function)),
                None => self.vector.take().map(Subject::Ipi),
            },
            CulpritKind::PageFault => match &*self.name {
                FAULT_USER => Some(Subject::PageFault { user: true }),
                FAULT_KERNEL => Some(Subject::PageFault { user: false }),
                _ => None,
            },
            CulpritKind::Nmi => self.function.take().map(Subject::Nmi),
            CulpritKind::Mce => Some(Subject::MachineCheck { bank: self.bank }),
            CulpritKind::RtThrottle => Some(Subject::Throttle(self.take_task())),
            CulpritKind::Quota | CulpritKind::QuotaBeside => {
                let limit = self.quota_us.zip(self.period_us);
                let limit = limit.map(|(quota_us, period_us)| QuotaLimit {
                    quota_us,
                    period_us,
                });
                let cgroup = self.cgroup.take()?;
                let beside = kind == CulpritKind::QuotaBeside;
                Some(Subject::Quota(Quota {
                    cgroup,
                    limit,
                    beside: beside.then(|| self.take_task()),
                }))
            }
            // These kinds only have verdicts: a newer version wrote this one.
            CulpritKind::Stopped
            | CulpritKind::Switch
            | CulpritKind::Hypervisor
            | CulpritKind::Firmware
            | CulpritKind::Unresolved
            | CulpritKind::Loss
            | CulpritKind::Unknown => None,
        }
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
                quota.beside.iter().for_each(|task| fields.put_task(task));
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
            Subject::Call(function) | Subject::Nmi(function) => {
                fields.function = Some(function.clone())
            }
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
