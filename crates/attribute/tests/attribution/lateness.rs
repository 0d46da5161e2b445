//! Time before an interrupt on a virtual machine: the host's, but only from the known due time of the interrupt.

use crate::common::*;
use jitterscope_attribute::{Attributor, OutsideHints};
use jitterscope_model::{
    Confidence, CpuId, EventKind, Evidence, ExecutionContext, Gap, KernelAddr, KernelEvent, Nanos,
    Ticks,
};

const MS: u64 = 1_000_000;
const PERIOD: u64 = 4 * MS;
/// The offset of the ticks' due time in the period.
const DUE: u64 = 1_234_567;

/// The `n`th tick of its CPU, which came `late`, in a stall that had begun `stood` before.
fn tick(attributor: &mut Attributor, n: u64, late: u64, stood: u64) -> Vec<String> {
    let came = n * PERIOD + DUE + late;
    let events = [
        enter(came, "local_timer"),
        hrtimer(came + 200, 1),
        hrtimer_exit(came + 900),
        exit(came + 1000, "local_timer"),
    ];
    shown(&attribute(
        attributor,
        &stall(came - stood, came + 1000),
        &events,
    ))
}

/// An attributor after twenty ticks that were a microsecond late; the first half of each was granted to the tick.
fn settled(virtual_machine: bool) -> (Attributor, u64) {
    let mut attributor = attributor(virtual_machine);
    for n in 1..=20 {
        tick(&mut attributor, n, 1000, 500);
    }
    (attributor, 21)
}

#[test]
fn a_tick_is_late_from_when_it_was_due_and_what_was_before_is_nobodys() {
    let (mut attributor, n) = settled(true);
    // The host had the CPU before and after.
    assert_eq!(
        tick(&mut attributor, n, 301_000, 400_000),
        [
            "unresolved/before first event 100200",
            "hypervisor/late interrupt 299300",
            "timer/tick_nohz_handler 1500"
        ]
    );
    // Also for a tick that was due when the CPU stood still: its delivery alone took the host this long. Its due time
    // is known to within the delay of the earliest tick.
    assert_eq!(
        tick(&mut attributor, n + 1, 11_000, 10_300),
        [
            "unresolved/before first event 500",
            "hypervisor/late interrupt 9300",
            "timer/tick_nohz_handler 1500"
        ]
    );
}

#[test]
fn a_trap_before_a_tick_that_comes_in_time_is_not_the_hosts() {
    // Uprobes: each takes two microseconds of the thread, with interrupts enabled, and some tick comes within that
    // time.
    let (mut attributor, n) = settled(true);
    assert_eq!(
        tick(&mut attributor, n, 1000, 2000),
        [
            "unresolved/before first event 1500",
            "timer/tick_nohz_handler 1500"
        ]
    );
}

#[test]
fn without_a_host_nothing_is_late() {
    let (mut attributor, n) = settled(false);
    assert_eq!(
        tick(&mut attributor, n, 301_000, 400_000),
        [
            "unresolved/before first event 399500",
            "timer/tick_nohz_handler 1500"
        ]
    );
}

#[test]
fn a_thread_has_medium_confidence_where_a_tick_was_due_in_its_turn() {
    let parts = |virtual_machine, late| {
        let (mut attributor, n) = settled(virtual_machine);
        let noise = task(200, "noise", 120);
        let ticks = |n: u64, late: u64| {
            let came = n * PERIOD + DUE + late;
            [
                enter(came, "local_timer"),
                hrtimer(came + 200, 1),
                hrtimer_exit(came + 900),
                exit(came + 1000, "local_timer"),
            ]
        };
        let (from, to) = (n * PERIOD, (n + 3) * PERIOD);
        let mut events = vec![switch(from + 1000, victim(), noise)];
        events.extend(ticks(n, 1000));
        events.extend(ticks(n + 1, late));
        events.extend(ticks(n + 2, 1000));
        events.push(switch(to, noise, victim()));
        let got = attribute(&mut attributor, &stall(from, to + 1000), &events);
        let of_noise = got
            .parts
            .iter()
            .filter(|part| part.culprit.subject.name() == "noise");
        let shown =
            of_noise.map(|part| format!("{} {:?} {}", part.net.0, part.confidence, part.evidence));
        shown.collect::<Vec<_>>()
    };
    let certain = ["11996000 High sched_switch"];
    assert_eq!(parts(true, 1000), certain);
    assert_eq!(parts(false, MS), certain);
    assert_eq!(
        parts(true, MS),
        [
            "10997000 High sched_switch",
            "999000 Medium an interrupt came later than it was due, on a virtual machine"
        ]
    );
}

#[test]
fn an_interrupt_that_another_cpu_sent_is_late_from_when_it_was_sent() {
    let call = |send: Option<u64>| {
        let mut attributor = attributor(true);
        let (csd, function) = (0x77, KernelAddr(3));
        if let Some(time) = send {
            let kind = EventKind::CsdQueued {
                target: CPU,
                function,
                csd,
                callsite: KernelAddr(9),
            };
            let (cpu, context) = (CpuId(0), ExecutionContext::Thread);
            attributor.sender_event(&KernelEvent {
                time: Ticks(time),
                cpu,
                tid: 7,
                context,
                kind,
            });
        }
        let vector = "call_function_single";
        let events = [
            enter(90_000, vector),
            at(90_100, EventKind::CsdEntry { function, csd }),
            at(90_900, EventKind::CsdExit { function, csd }),
            exit(91_000, vector),
        ];
        let got = attribute(&mut attributor, &stall(50_000, 91_000), &events);
        let first = got
            .parts
            .iter()
            .find(|part| part.culprit.kind().as_str() == "hypervisor");
        if let Some(late) = first {
            assert_eq!(
                (late.confidence, &late.evidence),
                (Confidence::Medium, &Evidence::LateInterruptInVm)
            );
        }
        shown(&got)
    };
    assert_eq!(
        call(Some(60_000)),
        [
            "unresolved/before first event 10000",
            "hypervisor/late interrupt 30000",
            "ipi/ipi_mb 1000"
        ]
    );
    // The call was under way when the CPU stood still.
    assert_eq!(
        call(Some(49_000)),
        ["hypervisor/late interrupt 40000", "ipi/ipi_mb 1000"]
    );
    // Another call: the CPU would have got this one long before.
    for sent in [None, Some(20_000)] {
        assert_eq!(
            call(sent),
            ["unresolved/before first event 40000", "ipi/ipi_mb 1000"]
        );
    }
}

/// A record of CPU 0, by thread 7.
fn sent(time: u64, kind: EventKind) -> KernelEvent {
    let (cpu, context) = (CpuId(0), ExecutionContext::Thread);
    KernelEvent {
        time: Ticks(time),
        cpu,
        tid: 7,
        context,
        kind,
    }
}

#[test]
fn a_reschedule_is_late_from_its_sending_if_it_interrupted_the_cpu() {
    let interrupted = |vector: &str, time: u64| {
        let mut attributor = attributor(true);
        let (callsite, callback) = (KernelAddr(9), KernelAddr(0));
        attributor.sender_event(&sent(
            time,
            EventKind::IpiSendCpu {
                target: CPU,
                callsite,
                callback,
            },
        ));
        let events = [enter(90_000, vector), exit(91_000, vector)];
        shown(&attribute(&mut attributor, &stall(50_000, 91_000), &events))
    };
    let nobodys = |vector: &str| {
        vec![
            "unresolved/before first event 40000".to_owned(),
            vector.to_owned(),
        ]
    };
    let reschedule = "ipi/reschedule 1000";
    assert_eq!(
        interrupted("reschedule", 60_000),
        [
            "unresolved/before first event 10000",
            "hypervisor/late interrupt 30000",
            reschedule
        ]
    );
    // It may be under way for as long as stalls count as simultaneous.
    assert_eq!(
        interrupted("reschedule", 45_000),
        ["hypervisor/late interrupt 40000", reschedule]
    );
    assert_eq!(interrupted("reschedule", 44_999), nobodys(reschedule));
    assert_eq!(
        interrupted("irq_work", 60_000),
        nobodys("ipi/irq_work 1000")
    );
}

#[test]
fn a_later_call_does_not_make_the_first_interrupt_late() {
    let mut attributor = attributor(true);
    let (csd, function, callsite) = (0x77, KernelAddr(3), KernelAddr(9));
    attributor.sender_event(&sent(
        60_000,
        EventKind::CsdQueued {
            target: CPU,
            function,
            csd,
            callsite,
        },
    ));
    let call = "call_function_single";
    let events = [
        enter(70_000, "reschedule"),
        exit(71_000, "reschedule"),
        enter(71_000, call),
        at(71_100, EventKind::CsdEntry { function, csd }),
        at(71_900, EventKind::CsdExit { function, csd }),
        exit(72_000, call),
    ];
    let got = attribute(&mut attributor, &stall(50_000, 72_000), &events);
    assert_eq!(
        shown(&got),
        [
            "unresolved/before first event 20000",
            "ipi/reschedule 1000",
            "ipi/ipi_mb 1000"
        ]
    );
}

#[test]
fn only_the_tick_states_when_its_interrupt_was_due() {
    let is_late = |functions: &[u64]| {
        let (mut attributor, n) = settled(true);
        let came = n * PERIOD + DUE + 301_000;
        let mut events = vec![enter(came, "local_timer")];
        for (n, function) in (0..).zip(functions) {
            events.extend([
                hrtimer(came + n * 100, *function),
                hrtimer_exit(came + n * 100 + 50),
            ]);
        }
        events.push(exit(came + 1000, "local_timer"));
        let got = shown(&attribute(
            &mut attributor,
            &stall(came - 400_000, came + 1000),
            &events,
        ));
        got.iter()
            .any(|part| part.starts_with("hypervisor/late interrupt"))
    };
    // The tick's timer may come after another one.
    assert_eq!(
        [is_late(&[4]), is_late(&[1]), is_late(&[4, 1])],
        [false, true, true]
    );
}

#[test]
fn before_a_devices_interrupt_only_stolen_time_shows_the_host() {
    let device = |stolen| {
        let mut attributor = attributor(true);
        let action = "virtio0-input.0".into();
        let start = 10 * MS;
        let events = [
            at(start + 2 * MS, EventKind::IrqEntry { irq: 25, action }),
            at(start + 2 * MS + 5000, EventKind::IrqExit { irq: 25 }),
        ];
        for event in with_current(&events) {
            attributor.event(&event);
        }
        let stall = stall(start, start + 2 * MS + 5000);
        attributor.announce(
            CPU,
            Gap {
                start: stall.start,
                length: stall.length(),
            },
        );
        let hints = OutsideHints {
            stolen: Nanos(stolen),
            ..OutsideHints::default()
        };
        shown(&attributor.attribute(&stall, &hints, &Names))
    };
    assert_eq!(
        device(0),
        [
            "unresolved/before first event 2000000",
            "irq/virtio0-input.0 5000"
        ]
    );
    assert_eq!(
        device(10 * MS),
        [
            "hypervisor/before first event 2000000",
            "irq/virtio0-input.0 5000"
        ]
    );
}
