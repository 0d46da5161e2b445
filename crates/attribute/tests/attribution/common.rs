//! A simulated machine: one measured CPU, one victim, hand-written events. One tick is one nanosecond.

use jitterscope_attribute::{Attributor, AttributorSettings, NameResolver, OutsideHints};
use jitterscope_model::{
    Attribution, Comm, CpuId, EventKind, ExecutionContext, Gap, KernelAddr, KernelEvent, Name,
    Nanos, Stall, StallId, Subject, TaskRef, ThreadRef, TickRate, Ticks,
};

pub const VICTIM: i32 = 100;
pub const CPU: CpuId = CpuId(1);

pub struct Names;

impl NameResolver for Names {
    fn function(&self, addr: KernelAddr) -> Name {
        match addr.0 {
            1 => "tick_nohz_handler".into(),
            2 => "vmstat_update".into(),
            3 => "ipi_mb".into(),
            4 => "hrtimer_wakeup".into(),
            5 => "clocksource_watchdog".into(),
            other => format!("f{other}").into(),
        }
    }
    fn comm(&self, tid: i32) -> Option<Name> {
        (tid < 1000).then(|| format!("task{tid}").into())
    }
}

pub fn task(tid: i32, comm: &str, prio: i32) -> TaskRef {
    TaskRef {
        tid,
        comm: Comm::new(comm),
        prio,
    }
}

pub fn victim() -> TaskRef {
    task(VICTIM, "js-spin/1", 120)
}

pub fn at(time: u64, kind: EventKind) -> KernelEvent {
    KernelEvent {
        time: Ticks(time),
        cpu: CPU,
        tid: VICTIM,
        context: ExecutionContext::Thread,
        kind,
    }
}

pub fn switch(time: u64, prev: TaskRef, next: TaskRef) -> KernelEvent {
    at(
        time,
        EventKind::SchedSwitch {
            prev,
            prev_state: 0,
            next,
        },
    )
}

pub fn enter(time: u64, vector: &str) -> KernelEvent {
    at(
        time,
        EventKind::VectorEntry {
            vector: vector.into(),
        },
    )
}

pub fn exit(time: u64, vector: &str) -> KernelEvent {
    at(
        time,
        EventKind::VectorExit {
            vector: vector.into(),
        },
    )
}

pub fn hrtimer(time: u64, function: u64) -> KernelEvent {
    at(
        time,
        EventKind::HrtimerEntry {
            hrtimer: 77,
            function: KernelAddr(function),
            now: Nanos(time),
        },
    )
}

pub fn hrtimer_exit(time: u64) -> KernelEvent {
    at(time, EventKind::HrtimerExit { hrtimer: 77 })
}

pub fn stall(start: u64, end: u64) -> Stall {
    let victim = ThreadRef {
        tid: VICTIM,
        comm: Comm::new("js-spin/1"),
    };
    Stall {
        id: StallId(0),
        cpu: CPU,
        victim,
        start: Ticks(start),
        end: Ticks(end),
    }
}

pub fn attributor(virtual_machine: bool) -> Attributor {
    let mut attributor = Attributor::new(AttributorSettings {
        rate: TickRate::NANOSECONDS,
        virtual_machine,
        measured: 2,
    });
    attributor.measure(Ticks(0), Ticks(u64::MAX));
    attributor
}

/// The same events, each with the thread that has the CPU then: the victim, until a switch.
pub fn with_current(events: &[KernelEvent]) -> Vec<KernelEvent> {
    let mut tid = VICTIM;
    let mut whole = Vec::new();
    for event in events {
        let next = match &event.kind {
            EventKind::SchedSwitch { prev, next, .. } => {
                tid = prev.tid;
                next.tid
            }
            _ => tid,
        };
        whole.push(KernelEvent {
            tid,
            ..event.clone()
        });
        tid = next;
    }
    whole
}

pub fn attribute(
    attributor: &mut Attributor,
    stall: &Stall,
    events: &[KernelEvent],
) -> Attribution {
    for event in with_current(events) {
        attributor.event(&event);
    }
    attributor.announce(
        CPU,
        Gap {
            start: stall.start,
            length: stall.length(),
        },
    );
    attributor.attribute(stall, &OutsideHints::default(), &Names)
}

/// `kind/name net` of each part.
pub fn shown(attribution: &Attribution) -> Vec<String> {
    let shown = |p: &jitterscope_model::Part| {
        format!(
            "{}/{} {}",
            p.culprit.kind(),
            p.culprit.subject.name(),
            p.net.0
        )
    };
    attribution.parts.iter().map(shown).collect()
}

/// Whether the culprit is the idle thread, which takes nothing from anyone.
pub fn is_idle_thread(subject: &Subject) -> bool {
    matches!(subject, Subject::Thread(task) if task.tid == Some(0))
}
