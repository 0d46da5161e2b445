//! Senders by what they sent: the last before the moment, and no more memory than is needed.

use super::*;
use crate::lexicon::NoNames;
use jitterscope_model::{Comm, TaskIdentity, TaskRef};

fn waking(time: u64, waker: i32, woken: i32) -> KernelEvent {
    let task = TaskRef {
        tid: woken,
        comm: Comm::new("x"),
        prio: 120,
    };
    let kind = EventKind::SchedWaking {
        task,
        target: CpuId(1),
    };
    KernelEvent {
        time: Ticks(time),
        cpu: CpuId(0),
        tid: waker,
        context: ExecutionContext::Thread,
        kind,
    }
}

#[test]
fn the_last_sender_before_the_moment_counts_whatever_the_order_of_arrival() {
    let mut senders = Senders::new(TickRate::NANOSECONDS);
    for event in [waking(300, 3, 9), waking(100, 1, 9), waking(200, 2, 9)] {
        senders.note(&event);
    }
    let at = |time| {
        senders
            .waker(9, CpuId(1), Ticks(time), &NoNames)
            .map(|s| s.tid)
    };
    assert_eq!(
        [at(99), at(100), at(250), at(1000)],
        [None, Some(1), Some(2), Some(3)]
    );
}

#[test]
fn a_sender_of_before_a_loss_is_not_told_for_what_came_after_it() {
    let mut senders = Senders::new(TickRate::NANOSECONDS);
    for event in [waking(100, 1, 9), waking(400, 2, 9)] {
        senders.note(&event);
    }
    let at = |senders: &Senders, time| {
        senders
            .waker(9, CpuId(1), Ticks(time), &NoNames)
            .map(|s| s.tid)
    };
    assert_eq!(at(&senders, 300), Some(1));
    senders.lost(Ticks(200), Ticks(400));
    // In between somebody else may have woken it; what is recorded since holds.
    assert_eq!(
        [at(&senders, 150), at(&senders, 300), at(&senders, 500)],
        [Some(1), None, Some(2)]
    );
    for n in 0..1000 {
        senders.lost(Ticks(1000 + n), Ticks(1001 + n));
    }
    assert!(senders.losses.len() <= MOST_LOSSES);
    assert_eq!(
        [at(&senders, 150), at(&senders, 300), at(&senders, 1500)],
        [Some(1), None, None]
    );
}

#[test]
fn memory_stays_bounded_over_many_keys() {
    let mut senders = Senders::new(TickRate::NANOSECONDS);
    for n in 0..200_000 {
        senders.note(&waking(n, 1, i32::try_from(n).unwrap()));
    }
    assert!(senders.wakers.sent.len() <= MOST_KEYS);
    assert!(
        senders
            .waker(199_999, CpuId(1), Ticks(200_000), &NoNames)
            .is_some()
    );
    // Those that are used once, a while apart, go first.
    let mut senders = Senders::new(TickRate::NANOSECONDS);
    for n in 0..20_000 {
        senders.note(&waking(n * 10_000_000, 1, i32::try_from(n).unwrap()));
    }
    assert!(senders.wakers.sent.len() <= KEYS);
    assert_eq!(
        (senders.wakers.total, senders.dropped()),
        (senders.wakers.sent.len(), 0)
    );
}

#[test]
fn of_a_key_that_is_used_often_the_window_is_kept_whole_and_no_more() {
    // 36,000 wake-ups a second of one thread by one after the other; attribution is a second behind.
    let (each, last) = (27_777, 180_000u64);
    let mut senders = Senders::new(TickRate::NANOSECONDS);
    for n in 0..last {
        senders.note(&waking(n * each, i32::try_from(n).unwrap(), 9));
    }
    for n in last - 36_000..last {
        let waker = senders
            .waker(9, CpuId(1), Ticks(n * each), &NoNames)
            .map(|sender| sender.tid);
        assert_eq!(waker, Some(i32::try_from(n).unwrap()));
    }
    assert!(senders.wakers.total <= 72_010, "{}", senders.wakers.total);
}

#[test]
fn a_wake_up_before_the_thread_slept_again_is_not_that_of_its_turn() {
    let task = |tid| TaskRef {
        tid,
        comm: Comm::new("x"),
        prio: 120,
    };
    let slept = |time, cpu, prev_state| {
        let kind = EventKind::SchedSwitch {
            prev: task(9),
            prev_state,
            next: task(0),
        };
        let context = ExecutionContext::Thread;
        KernelEvent {
            time: Ticks(time),
            cpu: CpuId(cpu),
            tid: 9,
            context,
            kind,
        }
    };
    let moved = |time, to| {
        let kind = EventKind::SchedMigrate {
            task: task(9),
            from: CpuId(1 - to),
            to: CpuId(to),
        };
        KernelEvent {
            kind,
            ..waking(time, 4, 9)
        }
    };
    let waker = |events: &[KernelEvent], cpu| {
        let mut senders = Senders::new(TickRate::NANOSECONDS);
        events.iter().for_each(|event| senders.note(event));
        senders
            .waker(9, CpuId(cpu), Ticks(1000), &NoNames)
            .map(|sender| sender.tid)
    };
    assert_eq!(waker(&[waking(100, 3, 9), slept(50, 1, 1)], 1), Some(3));
    assert_eq!(waker(&[waking(100, 3, 9), slept(200, 1, 1)], 1), None);
    // It was preempted: it did not sleep.
    assert_eq!(waker(&[waking(100, 3, 9), slept(200, 1, 0)], 1), Some(3));
    assert_eq!(
        waker(&[waking(100, 3, 9), slept(200, 1, 0x100)], 1),
        Some(3)
    );
    // Woken where it had run, and put elsewhere: that is its wake-up. Not so when it came back since.
    assert_eq!(waker(&[waking(100, 3, 9), moved(101, 0)], 0), Some(3));
    assert_eq!(
        waker(&[waking(100, 3, 9), moved(300, 0), moved(900, 1)], 1),
        None
    );
}

/// Thread 7 is of process 70; functions are their addresses.
struct Known;
impl Lexicon for Known {
    fn function(&self, addr: KernelAddr) -> Name {
        format!("f{}", addr.0).into()
    }
    fn comm(&self, tid: i32) -> Option<Name> {
        (tid < 100).then(|| format!("t{tid}").into())
    }
    fn identity(&self, tid: i32, comm: Comm) -> TaskIdentity {
        let tgid = (comm == Comm::new("t7") && tid == 7).then_some(70);
        TaskIdentity {
            tgid,
            ..TaskIdentity::default()
        }
    }
}

fn event(time: u64, tid: i32, kind: EventKind) -> KernelEvent {
    KernelEvent {
        time: Ticks(time),
        cpu: CpuId(3),
        tid,
        context: ExecutionContext::Thread,
        kind,
    }
}

/// Senders who took note of these.
fn noted(events: &[KernelEvent]) -> Senders {
    let mut senders = Senders::new(TickRate::NANOSECONDS);
    events.iter().for_each(|event| senders.note(event));
    senders
}

/// Thread, and through which function, of who is found among these.
fn named(senders: &Senders, trigger: Option<Trigger>) -> Option<(i32, Option<String>)> {
    who_and_name(trigger.map(|trigger| senders.sender(trigger, &Known)))
}

fn who_and_name(sender: Option<Sender>) -> Option<(i32, Option<String>)> {
    sender.map(|sender| {
        assert_eq!(
            (sender.cpu, sender.context),
            (CpuId(3), ExecutionContext::Thread)
        );
        assert_eq!(
            sender.comm.as_deref(),
            Some(format!("t{}", sender.tid).as_str())
        );
        assert_eq!(sender.tgid, (sender.tid == 7).then_some(70));
        (sender.tid, sender.via.map(|via| via.to_string()))
    })
}

#[test]
fn a_call_is_known_by_its_descriptor_and_its_function() {
    let queued = |time, tid, csd, function, callsite| {
        let (function, callsite) = (KernelAddr(function), KernelAddr(callsite));
        event(
            time,
            tid,
            EventKind::CsdQueued {
                target: CpuId(1),
                function,
                csd,
                callsite,
            },
        )
    };
    let senders = noted(&[
        queued(10, 7, 1, 100, 900),
        queued(20, 8, 1, 200, 0),
        queued(30, 9, 2, 100, 901),
    ]);
    let caller = |csd, function, time| {
        named(
            &senders,
            senders.called_by(csd, KernelAddr(function), Ticks(time)),
        )
    };
    assert_eq!(caller(1, 100, 9), None);
    assert_eq!(caller(1, 100, 50), Some((7, Some("f900".into()))));
    // Where it was called from is not known.
    assert_eq!(caller(1, 200, 50), Some((8, None)));
    assert_eq!(caller(2, 100, 50), Some((9, Some("f901".into()))));
    assert_eq!(caller(2, 200, 50), None);
}

#[test]
fn a_work_item_is_known_with_its_queue() {
    let queued = |time, tid, work, queue: &str| {
        let workqueue = Name::from(queue);
        event(
            time,
            tid,
            EventKind::WorkQueued {
                work,
                function: KernelAddr(5),
                workqueue,
                target: None,
            },
        )
    };
    let senders = noted(&[
        queued(10, 7, 1, "events"),
        queued(30, 8, 1, "mm"),
        queued(20, 9, 2, "x"),
    ]);
    let queuer = |work, time| {
        let (who, queue) = (
            senders.queued_by(work, Ticks(time)),
            senders.workqueue(work, Ticks(time)),
        );
        (
            named(&senders, who).map(|who| who.0),
            queue.map(|queue| queue.to_string()),
        )
    };
    assert_eq!(queuer(1, 9), (None, None));
    assert_eq!(queuer(1, 29), (Some(7), Some("events".into())));
    assert_eq!(queuer(1, 30), (Some(8), Some("mm".into())));
    assert_eq!(queuer(2, 30), (Some(9), Some("x".into())));
}

#[test]
fn a_reschedule_is_an_interrupt_without_a_function() {
    let sent = |time, tid, target, callback| {
        let (target, callsite, callback) = (CpuId(target), KernelAddr(60), KernelAddr(callback));
        event(
            time,
            tid,
            EventKind::IpiSendCpu {
                target,
                callsite,
                callback,
            },
        )
    };
    let senders = noted(&[sent(10, 7, 1, 0), sent(20, 8, 1, 55), sent(30, 9, 2, 0)]);
    let sender = |cpu, time| named(&senders, senders.rescheduled_by(CpuId(cpu), Ticks(time)));
    assert_eq!(sender(1, 50), Some((7, Some("f60".into()))));
    assert_eq!(sender(2, 50), Some((9, Some("f60".into()))));
    assert_eq!([sender(1, 9), sender(3, 50)], [None, None]);
}

#[test]
fn a_thread_is_stopped_by_a_signal_to_it_or_to_its_process_whichever_came_last() {
    let stop = |time, tid, whom| event(time, tid, EventKind::StopSignal { tid: whom });
    let stopper = |events: &[KernelEvent], tid| {
        who_and_name(noted(events).stopper(tid, Ticks(50), &Known)).map(|who| who.0)
    };
    assert_eq!(stopper(&[stop(10, 1, 7), stop(20, 2, 70)], 7), Some(2));
    assert_eq!(stopper(&[stop(30, 1, 7), stop(20, 2, 70)], 7), Some(1));
    assert_eq!(stopper(&[stop(20, 2, 70)], 7), Some(2));
    assert_eq!(stopper(&[stop(51, 2, 70)], 7), None);
    // Of this one no process is known.
    assert_eq!(stopper(&[stop(20, 2, 70)], 8), None);
}

#[test]
fn what_ran_on_top_of_a_thread_is_its_doing_only_where_that_can_be() {
    let woken = |context, spins| {
        let task = TaskRef {
            tid: 9,
            comm: Comm::new("x"),
            prio: 120,
        };
        let waking = EventKind::SchedWaking {
            task,
            target: CpuId(1),
        };
        let mut senders = noted(&[KernelEvent {
            context,
            ..event(10, 7, waking)
        }]);
        if spins {
            senders.spins(7);
        }
        let sender = senders.waker(9, CpuId(1), Ticks(50), &Known).unwrap();
        assert_eq!(sender.context, context);
        (sender.tid, sender.comm.is_some(), sender.tgid)
    };
    let (itself, nobody) = ((7, true, Some(70)), (0, false, None));
    assert_eq!(
        [
            woken(ExecutionContext::Thread, false),
            woken(ExecutionContext::Thread, true)
        ],
        [itself; 2]
    );
    assert_eq!(
        [
            woken(ExecutionContext::Softirq, false),
            woken(ExecutionContext::Softirq, true)
        ],
        [itself, nobody]
    );
    for context in [
        ExecutionContext::Interrupt,
        ExecutionContext::Nmi,
        ExecutionContext::Unknown,
    ] {
        assert_eq!(woken(context, false), nobody);
    }
}

#[test]
fn an_id_that_begins_again_has_not_been_woken_yet() {
    let begins = event(
        200,
        1,
        EventKind::TaskNew {
            tid: 9,
            comm: Comm::new("y"),
            thread: true,
        },
    );
    let waker = |events: &[KernelEvent]| {
        noted(events)
            .waker(9, CpuId(1), Ticks(300), &NoNames)
            .map(|sender| sender.tid)
    };
    assert_eq!(waker(&[waking(100, 3, 9), begins.clone()]), None);
    assert_eq!(waker(&[begins, waking(250, 3, 9)]), Some(3));
}

#[test]
fn what_is_dropped_within_the_window_is_counted_for_every_kind() {
    let mut senders = Senders::new(TickRate::NANOSECONDS);
    assert_eq!(senders.dropped(), 0);
    for n in 0..MOST as u64 + 3 {
        senders.note(&waking(n, 5, 9));
    }
    assert_eq!((senders.dropped(), senders.wakers.total), (3, MOST));
    // The oldest went.
    let waker = |time| senders.waker(9, CpuId(1), Ticks(time), &NoNames);
    assert!(waker(2).is_none() && waker(3).is_some());
    senders.sleeps.dropped = 10;
    senders.arrivals.dropped = 100;
    senders.stops.dropped = 1000;
    senders.callers.dropped = 10_000;
    senders.queuers.dropped = 100_000;
    senders.reschedules.dropped = 1_000_000;
    assert_eq!(senders.dropped(), 1_111_113);
}

#[test]
fn a_key_that_is_used_keeps_its_last_record_through_a_sweep() {
    let mut senders = Senders::new(TickRate::NANOSECONDS);
    let window = WINDOW.0;
    // At the edge of the window when it is swept, and just beyond.
    senders.note(&waking(999, 1, 1));
    senders.note(&waking(1000, 1, 2));
    for tid in 3..=i32::try_from(KEYS).unwrap() {
        senders.note(&waking(1000 + window, 1, tid));
    }
    assert_eq!(senders.wakers.sent.len(), KEYS);
    senders.note(&waking(1000 + window, 1, 100_000));
    assert_eq!(
        (senders.wakers.sent.len(), senders.wakers.total),
        (KEYS, KEYS)
    );
    assert!(!senders.wakers.sent.contains_key(&1) && senders.wakers.sent.contains_key(&2));
    assert_eq!(senders.wakers.sweep_at, (KEYS - 1) * 2);
}

#[test]
fn of_too_many_keys_within_the_window_the_newer_half_stays() {
    let mut senders = Senders::new(TickRate::NANOSECONDS);
    let most = i32::try_from(MOST_KEYS).unwrap();
    for tid in 0..=most {
        senders.note(&waking(u64::try_from(tid).unwrap(), 1, tid));
    }
    let kept = |tid: i32| senders.wakers.sent.contains_key(&tid);
    assert_eq!(
        (kept(0), kept(most / 2), kept(most / 2 + 1), kept(most)),
        (false, false, true, true)
    );
    assert_eq!(
        (senders.wakers.sent.len(), senders.wakers.total),
        (MOST_KEYS / 2, MOST_KEYS / 2)
    );
}
