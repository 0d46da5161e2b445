//! Decoding the recorded fixture gives the same result as before.

use crate::fixture;

use jitterscope_model::{
    Comm, CpuId, EventKind, ExecutionContext, KernelAddr, KernelEvent, TaskRef, Ticks,
};
use jitterscope_source::{Decoder, Role, Tasks, TraceContext};
use std::collections::BTreeMap;

fn decode(role: Role) -> (TraceContext, Decoder, Vec<KernelEvent>) {
    let (context, pages) = fixture::read(&fixture::folder());
    let mut decoder = Decoder::new(&context).unwrap();
    let mut events = Vec::new();
    for page in pages.iter().filter(|page| page.role == role) {
        let before = events.len();
        let info = decoder
            .page(page.cpu, &page.bytes, |event| events.push(event))
            .unwrap();
        let range = events
            .get(before)
            .zip(events.last())
            .map(|(a, b)| (a.time, b.time));
        assert_eq!(info.range, range, "the cheap range is that of the events");
    }
    (context, decoder, events)
}

/// The number of events of each kind.
fn counts(events: &[KernelEvent]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for event in events {
        let text = format!("{:?}", event.kind);
        let name = text.split([' ', '{']).next().unwrap_or_default();
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts
}

fn listed(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts
        .iter()
        .map(|(name, n)| ((*name).to_owned(), *n))
        .collect()
}

#[test]
fn the_measured_cpus_events_are_all_there() {
    let (_, decoder, events) = decode(Role::Local);
    let expected = [
        ("CsdEntry", 1),
        ("CsdExit", 1),
        ("HrtimerEntry", 392),
        ("HrtimerExit", 392),
        ("PageFault", 4),
        ("SchedSwitch", 864),
        ("SoftirqEntry", 54),
        ("SoftirqExit", 54),
        ("TimerEntry", 9),
        ("TimerExit", 9),
        ("TlbFlush", 5),
        ("VectorEntry", 564),
        ("VectorExit", 564),
        ("WorkEnd", 2),
        ("WorkStart", 2),
    ];
    assert_eq!(counts(&events), listed(&expected));
    let totals = decoder.counts();
    assert_eq!((totals.pages, totals.events), (25, 2917));
    assert_eq!(
        (
            totals.unknown,
            totals.malformed,
            totals.damaged_pages,
            totals.lost
        ),
        (0, 0, 0, 0)
    );
    assert!(events.is_sorted_by_key(|event| event.time));
    assert!(events.iter().all(|event| event.cpu == CpuId(1)));
}

#[test]
fn exact_events() {
    let (context, _, events) = decode(Role::Local);
    assert_eq!(
        events[0],
        KernelEvent {
            time: Ticks(5_843_205_550_962),
            cpu: CpuId(1),
            tid: 0,
            context: ExecutionContext::Interrupt,
            kind: EventKind::VectorEntry {
                vector: "reschedule".into()
            },
        }
    );
    let switch = events
        .iter()
        .find(|event| matches!(event.kind, EventKind::SchedSwitch { .. }))
        .unwrap();
    assert_eq!(
        *switch,
        KernelEvent {
            time: Ticks(5_843_205_863_842),
            cpu: CpuId(1),
            tid: 16_783,
            context: ExecutionContext::Thread,
            kind: EventKind::SchedSwitch {
                prev: TaskRef {
                    tid: 16_783,
                    comm: Comm::new("js-spin"),
                    prio: 120
                },
                prev_state: 0,
                next: TaskRef {
                    tid: 16_787,
                    comm: Comm::new("record_fixture"),
                    prio: 120
                },
            },
        }
    );
    let symbols = context.symbol_table();
    let called = events.iter().find_map(|event| match event.kind {
        EventKind::CsdEntry { function, .. } => symbols.name(function),
        _ => None,
    });
    assert_eq!(called, Some("flush_tlb_func"));
}

#[test]
fn the_senders_name_their_targets() {
    let (context, _, events) = decode(Role::Senders);
    let expected = [
        ("CsdQueued", 1),
        ("IpiSendCpu", 328),
        ("SchedMigrate", 2),
        ("SchedWaking", 826),
        ("WorkQueued", 5),
    ];
    assert_eq!(counts(&events), listed(&expected));
    let in_context = |wanted| {
        let wakings = events
            .iter()
            .filter(|event| matches!(event.kind, EventKind::SchedWaking { .. }));
        wakings.filter(|event| event.context == wanted).count()
    };
    // The sender over loopback wakes its receiver in a softirq; the interrupts are timers' and devices'.
    assert_eq!(ExecutionContext::ALL.map(in_context), [2, 332, 492, 0]);
    assert_eq!(
        events[0].kind,
        EventKind::IpiSendCpu {
            target: CpuId(1),
            callsite: KernelAddr(0xffff_ffff_813a_3965),
            callback: KernelAddr(0),
        }
    );
    for event in &events {
        let target = match &event.kind {
            EventKind::CsdQueued { target, .. }
            | EventKind::IpiSendCpu { target, .. }
            | EventKind::SchedMigrate { to: target, .. }
            | EventKind::SchedWaking { target, .. } => Some(*target),
            EventKind::WorkQueued { target, .. } => *target,
            other => panic!("{other:?} is no sender's"),
        };
        assert!(
            target.is_none_or(|cpu| cpu == CpuId(1)),
            "the kernel filters by target: {event:?}"
        );
    }
    let symbols = context.symbol_table();
    let EventKind::IpiSendCpu { callsite, .. } = events[0].kind else {
        panic!("checked above")
    };
    assert_eq!(symbols.name(callsite), Some("wakeup_preempt"));
}

#[test]
fn names_are_learnt_from_the_events() {
    let mut tasks = Tasks::default();
    for role in [Role::Local, Role::Senders] {
        decode(role).2.iter().for_each(|event| tasks.learn(event));
    }
    for name in ["js-spin", "js-sleep", "js-receive"] {
        assert!(
            tasks.iter().any(|(_, comm)| comm == Comm::new(name)),
            "{name}"
        );
    }
}

#[test]
fn a_context_survives_json() {
    let (context, _) = fixture::read(&fixture::folder());
    let text = serde_json::to_string(&context).unwrap();
    assert_eq!(
        serde_json::from_str::<TraceContext>(&text).unwrap(),
        context
    );
}
