//! For any kernel activity: the parts of a stall sum to its length, and nothing panics.

use crate::common::*;
use jitterscope_attribute::{Attributor, AttributorSettings, OutsideHints};
use jitterscope_model::{
    CpuId, EventKind, Gap, KernelAddr, KernelEvent, Nanos, RateSource, TickRate, Ticks,
};
use proptest::prelude::*;

fn kind() -> impl Strategy<Value = EventKind> {
    let tid = prop_oneof![Just(VICTIM), 0i32..4, 40i32..43];
    let vector = prop_oneof![
        Just("local_timer"),
        Just("reschedule"),
        Just("call_function_single")
    ];
    let small = 0u64..3;
    prop_oneof![
        (tid.clone(), tid, prop_oneof![Just(0u64), Just(1), Just(2)]).prop_map(
            |(prev, next, prev_state)| {
                EventKind::SchedSwitch {
                    prev: task(prev, "a", 120),
                    prev_state,
                    next: task(next, "kworker/1:0", 120),
                }
            }
        ),
        vector
            .clone()
            .prop_map(|v| EventKind::VectorEntry { vector: v.into() }),
        vector.prop_map(|v| EventKind::VectorExit { vector: v.into() }),
        (0u32..2).prop_map(|irq| EventKind::IrqEntry {
            irq,
            action: "dev".into()
        }),
        (0u32..2).prop_map(|irq| EventKind::IrqExit { irq }),
        (0u32..12).prop_map(|vec| EventKind::SoftirqEntry { vec }),
        (0u32..12).prop_map(|vec| EventKind::SoftirqExit { vec }),
        small.clone().prop_map(|work| EventKind::WorkStart {
            work,
            function: KernelAddr(2)
        }),
        small.clone().prop_map(|work| EventKind::WorkEnd { work }),
        (small.clone(), small.clone()).prop_map(|(hrtimer, now)| EventKind::HrtimerEntry {
            hrtimer,
            function: KernelAddr(1),
            now: Nanos(now),
        }),
        small
            .clone()
            .prop_map(|hrtimer| EventKind::HrtimerExit { hrtimer }),
        small.clone().prop_map(|csd| EventKind::CsdEntry {
            function: KernelAddr(3),
            csd
        }),
        small.prop_map(|csd| EventKind::CsdExit {
            function: KernelAddr(3),
            csd
        }),
        (0u64..5000).prop_map(|delta_ns| EventKind::NmiHandler {
            handler: KernelAddr(4),
            delta_ns
        }),
        any::<bool>().prop_map(|user| EventKind::PageFault {
            user,
            address: 0,
            ip: 0
        }),
        Just(EventKind::MachineCheck { bank: 1 }),
        Just(EventKind::CpuIdle { state: None }),
    ]
}

/// Events in order of time over a few stalls, some outside of them.
fn events() -> impl Strategy<Value = Vec<KernelEvent>> {
    proptest::collection::vec((0u64..400, kind()), 0..60).prop_map(|steps| {
        let mut now = 0;
        steps
            .into_iter()
            .map(|(step, kind)| {
                now += step;
                at(now, kind)
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn parts_sum_to_the_stall_and_gross_is_never_less_than_net(
        events in events(),
        lengths in proptest::collection::vec((0u64..300, 1u64..4000), 1..6),
        hz in prop_oneof![Just(1_000_000_000u64), 1_000_000_000u64..5_000_000_000],
        virtual_machine: bool,
        lost_at in proptest::option::of(0u64..10_000),
    ) {
        let rate = TickRate { hz, error_ppb: 0, source: RateSource::Cpuid };
        let mut a = Attributor::new(AttributorSettings { rate, virtual_machine, measured: 1 });
        a.measure(Ticks(0), Ticks(u64::MAX));
        let total = events.len() as u64;
        for event in events {
            a.event(&event);
        }
        if let Some(at) = lost_at {
            a.lost(CPU, Ticks(at), Ticks(at + 10));
        }
        let mut start = 0;
        for (pause, length) in lengths {
            start += pause;
            let s = stall(start, start + length);
            a.announce(CPU, Gap { start: s.start, length: s.length() });
            let got = a.attribute(&s, &OutsideHints::default(), &Names);
            prop_assert_eq!(got.total(), rate.nanos(s.length()));
            for part in &got.parts {
                prop_assert!(!is_idle_thread(&part.culprit.subject), "{part:?}");
                prop_assert!(part.gross >= part.net);
                prop_assert!(part.gross <= Nanos(rate.nanos(s.length()).0 + 1));
            }
            start += length;
        }
        a.finish(&[]);
        prop_assert_eq!(a.events_in_gaps().events, total);
    }

    #[test]
    fn an_answer_depends_only_on_records_up_to_the_end_of_its_stall(
        events in events(),
        moves in proptest::collection::vec((0u64..15_000, 40i32..43, 0u32..2), 0..6),
        wakings in proptest::collection::vec((0u64..15_000, 40i32..43), 0..6),
        frequencies in proptest::collection::vec(0u64..15_000, 0..3),
        lengths in proptest::collection::vec((0u64..300, 1u64..4000), 1..6),
        behind in proptest::collection::vec(0u64..5000, 6),
        wakeups: bool,
    ) {
        let mut local = with_current(&events);
        local.extend(frequencies.iter().map(|time| {
            at(*time, EventKind::CpuFrequency { target: CPU, khz: 1_000_000 })
        }));
        local.sort_by_key(|event| event.time);
        let mut senders: Vec<KernelEvent> = moves
            .iter()
            .map(|(time, tid, to)| {
                let (task, from, to) = (task(*tid, "a", 120), CpuId(1 - to), CpuId(*to));
                KernelEvent { cpu: CpuId(0), ..at(*time, EventKind::SchedMigrate { task, from, to }) }
            })
            .chain(wakings.iter().map(|(time, tid)| {
                let kind = EventKind::SchedWaking { task: task(*tid, "a", 120), target: CPU };
                KernelEvent { cpu: CpuId(0), ..at(*time, kind) }
            }))
            .collect();
        senders.sort_by_key(|event| event.time);
        let mut stalls = Vec::new();
        let mut start = 0;
        for (pause, length) in lengths {
            start += pause;
            stalls.push(stall(start, start + length));
            start += length;
        }
        // Independently of the progress of the drain when a stall is attributed.
        let run = |behind: &[u64]| {
            let mut a = attributor(true);
            let (mut given, mut sent) = (0, 0);
            let mut reported = Vec::new();
            for (stall, behind) in stalls.iter().zip(behind) {
                let drained = stall.end.0 + behind;
                let until = senders.partition_point(|event| event.time.0 <= drained).max(sent);
                senders[sent..until].iter().for_each(|event| a.sender_event(event));
                sent = until;
                let until = local.partition_point(|event| event.time.0 <= drained).max(given);
                local[given..until].iter().for_each(|event| a.event(event));
                given = until;
                a.announce(CPU, Gap { start: stall.start, length: stall.length() });
                reported.push(match wakeups {
                    true => a.attribute_wakeup(stall, &Names),
                    false => a.attribute(stall, &OutsideHints::default(), &Names),
                });
            }
            reported
        };
        prop_assert_eq!(run(&behind), run(&[0; 6]));
    }
}
