//! Redacts a culprit: every variant is built anew from data known to be harmless.

use super::{LEFT_OUT, Redactor, listed, words};
use crate::known_names;
use jitterscope_model::{
    About, CpuSet, Evidence, Meanwhile, Phase, Quota, SchedClass, Subject, Task, TimerSource, Work,
    Worker,
};

pub(super) fn redacted(by: &mut Redactor, subject: &Subject) -> Subject {
    match subject {
        Subject::Thread(of) => Subject::Thread(task(by, of)),
        Subject::Throttle(of) => Subject::Throttle(task(by, of)),
        // The group's owner is removed; its limit reveals nothing about the owner.
        Subject::Quota(of) => Subject::Quota(Quota {
            cgroup: LEFT_OUT.into(),
            limit: of.limit,
            beside: of.beside.as_ref().map(|of| task(by, of)),
        }),
        Subject::Work(of) => Subject::Work(work(by, of)),
        Subject::Interrupt { number, action } => Subject::Interrupt {
            number: *number,
            action: by.device(action).into(),
        },
        Subject::Vector(vector) if known_names::is_vector(vector) => {
            Subject::Vector(vector.clone())
        }
        Subject::Vector(vector) => Subject::Vector(by.device(vector).into()),
        Subject::Timer { function, source } => Subject::Timer {
            function: function
                .as_ref()
                .map(|function| by.function(function).into()),
            source: source
                .clone()
                .filter(|source| !matches!(source, TimerSource::Other(_))),
        },
        Subject::Call(function) => Subject::Call(by.function(function).into()),
        Subject::Ipi(vector) => Subject::Ipi(by.function(vector).into()),
        Subject::Nmi(handler) => Subject::Nmi(by.function(handler).into()),
        Subject::Verdict(verdict, of) => Subject::Verdict(*verdict, about(by, of)),
        Subject::Softirq(_)
        | Subject::PageFault { .. }
        | Subject::MachineCheck { .. }
        | Subject::Others(_) => subject.clone(),
        Subject::Unknown { .. } => Subject::Unknown {
            kind: subject.kind().as_str().into(),
            name: LEFT_OUT.into(),
            detail: "".into(),
        },
    }
}

/// Keeps ids, name, class and CPUs; removes the owner.
fn task(by: &mut Redactor, of: &Task) -> Task {
    Task {
        tid: of.tid,
        tgid: of.tgid,
        process: of.process.as_ref().map(|process| by.thread(process).into()),
        comm: by.thread(&of.comm).into(),
        was: of.was.as_ref().map(|was| by.thread(was).into()),
        class: class(of.class.as_ref()),
        owner: None,
        kernel: of.kernel,
        allowed: of
            .allowed
            .clone()
            .filter(|list| list.parse::<CpuSet>().is_ok()),
    }
}

fn class(of: Option<&SchedClass>) -> Option<SchedClass> {
    of.cloned()
        .filter(|class| !matches!(class, SchedClass::Other(_)))
}

fn work(by: &mut Redactor, of: &Work) -> Work {
    let queue = |by: &mut Redactor, queue: &str| {
        listed(words::QUEUES, queue).unwrap_or_else(|| by.queues.of(queue, "workqueue"))
    };
    Work {
        function: of
            .function
            .as_ref()
            .map(|function| by.function(function).into()),
        workqueue: of.workqueue.as_ref().map(|name| queue(by, name).into()),
        worker: of.worker.as_ref().map(|worker| Worker {
            tid: worker.tid,
            comm: worker.comm.as_ref().map(|comm| by.thread(comm).into()),
            class: class(worker.class.as_ref()),
        }),
        unbound: of.unbound,
    }
}

fn about(by: &mut Redactor, of: &About) -> About {
    match of {
        About::Meanwhile(Meanwhile::Ran(of)) => About::Meanwhile(Meanwhile::Ran(task(by, of))),
        About::Meanwhile(Meanwhile::Worked(of)) => {
            About::Meanwhile(Meanwhile::Worked(work(by, of)))
        }
        About::Vectors(vectors) => About::Vectors(
            vectors
                .iter()
                .map(|code| {
                    listed(words::COUNTERS, code)
                        .unwrap_or_else(|| by.counters.of(code, "counter"))
                        .into()
                })
                .collect(),
        ),
        About::Frame(records) => About::Frame(evidence(records)),
        About::Nothing | About::IdleState(_) | About::Meanwhile(_) | About::Cpu(_) => of.clone(),
    }
}

/// Words of this program's own tables.
pub(super) fn phase(of: &Phase) -> Phase {
    match of {
        Phase::Other(_) => Phase::Other(LEFT_OUT.into()),
        known => known.clone(),
    }
}

/// Words of this program's own tables.
pub(super) fn evidence(of: &Evidence) -> Evidence {
    match of {
        Evidence::Other(_) => Evidence::Other(LEFT_OUT.into()),
        known => known.clone(),
    }
}
