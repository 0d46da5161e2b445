//! Finding senders by what they sent: always the last one before a moment, in bounded memory.

use super::*;
use crate::name_resolver::NoNames;
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
fn the_last_sender_counts_in_any_order_of_arrival() {
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
fn a_sender_before_a_loss_is_not_named_for_events_after_it() {
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
    // In between, a lost record may show another waker; later records are valid.
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
    // Keys that are used once are dropped first.
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
    // 36,000 wake-ups a second of one thread, by one waker after the other; attribution is a second behind.
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
    // Woken where it had run, and moved elsewhere: this is its wake-up. But not if it came back since.
    assert_eq!(waker(&[waking(100, 3, 9), moved(101, 0)], 0), Some(3));
    assert_eq!(
        waker(&[waking(100, 3, 9), moved(300, 0), moved(900, 1)], 1),
        None
    );
}

#[test]
fn where_a_wake_up_is_not_recorded_who_moved_the_sleeper_here_woke_it() {
    let task = |tid| TaskRef {
        tid,
        comm: Comm::new("x"),
        prio: 120,
    };
    let moved = |by, context, cpu| {
        let kind = EventKind::SchedMigrate {
            task: task(9),
            from: CpuId(0),
            to: CpuId(1),
        };
        KernelEvent {
            time: Ticks(900),
            cpu: CpuId(cpu),
            tid: by,
            context,
            kind,
        }
    };
    let leaves = |prev, prev_state| {
        let kind = EventKind::SchedSwitch {
            prev: task(prev),
            prev_state,
            next: task(9),
        };
        KernelEvent {
            time: Ticks(1000),
            cpu: CpuId(1),
            tid: prev,
            context: ExecutionContext::Thread,
            kind,
        }
    };
    let waker = |senders: &Senders| {
        let sender = senders.waker(9, CpuId(1), Ticks(1000), &Known);
        sender.map(|sender| (sender.tid, sender.context))
    };
    let found = |events: &[KernelEvent]| {
        let mut senders = Senders::of_some_wakings(TickRate::NANOSECONDS);
        senders.records_wakings_of(CpuId(1));
        events.iter().for_each(|event| senders.note(event));
        let mut all = Senders::new(TickRate::NANOSECONDS);
        events.iter().for_each(|event| all.note(event));
        assert_eq!(waker(&all), None, "its wake-up would be recorded");
        waker(&senders)
    };
    let (thread, interrupt) = (ExecutionContext::Thread, ExecutionContext::Interrupt);
    assert_eq!(found(&[moved(3, thread, 0)]), Some((3, thread)));
    assert_eq!(found(&[moved(3, interrupt, 0)]), Some((0, interrupt)));
    // Load balancing happens in a softirq, by the idle thread, by a stopper, and by the thread that leaves.
    assert_eq!(found(&[moved(3, ExecutionContext::Softirq, 0)]), None);
    assert_eq!(found(&[moved(0, thread, 1)]), None);
    assert_eq!(found(&[moved(STOPPER_TID, thread, 0)]), None);
    assert_eq!(found(&[moved(3, thread, 1), leaves(3, 1)]), None);
    assert_eq!(
        found(&[moved(3, thread, 1), leaves(3, 0)]),
        Some((3, thread))
    );
    // It has slept since, and its later waker is unknown.
    let slept = KernelEvent {
        time: Ticks(950),
        ..leaves(9, 1)
    };
    assert_eq!(found(&[moved(3, thread, 0), slept]), None);
    let mut senders = Senders::of_some_wakings(TickRate::NANOSECONDS);
    senders.note(&moved(3, thread, 0));
    senders.records_wakings_of(CpuId(0));
    assert_eq!(
        waker(&senders),
        None,
        "where it came from they are recorded"
    );
}

const STOPPER_TID: i32 = 99;

/// Thread 7 belongs to process 70; functions are named by their addresses.
struct Known;
impl NameResolver for Known {
    fn function(&self, addr: KernelAddr) -> Name {
        format!("f{}", addr.0).into()
    }
    fn comm(&self, tid: i32) -> Option<Name> {
        match tid {
            STOPPER_TID => Some("migration/0".into()),
            _ => (tid < 100).then(|| format!("t{tid}").into()),
        }
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

/// Senders with these records.
fn noted(events: &[KernelEvent]) -> Senders {
    let mut senders = Senders::new(TickRate::NANOSECONDS);
    events.iter().for_each(|event| senders.note(event));
    senders
}

/// Thread and function of a trigger among these.
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
    // The calling address is unknown.
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
        queued(21, 9, 0, "another tool's trace does not state the item"),
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
    assert_eq!(queuer(0, 30), (None, None));
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
fn the_last_signal_to_thread_or_process_stops_it() {
    let stop = |time, tid, whom| {
        event(
            time,
            tid,
            EventKind::Signal {
                tid: whom,
                sig: 19,
                code: 0,
            },
        )
    };
    let stopper = |events: &[KernelEvent], tid| {
        who_and_name(noted(events).stopper(tid, Ticks(50), &Known)).map(|who| who.0)
    };
    assert_eq!(stopper(&[stop(10, 1, 7), stop(20, 2, 70)], 7), Some(2));
    assert_eq!(stopper(&[stop(30, 1, 7), stop(20, 2, 70)], 7), Some(1));
    assert_eq!(stopper(&[stop(20, 2, 70)], 7), Some(2));
    assert_eq!(stopper(&[stop(51, 2, 70)], 7), None);
    // The process of this thread is unknown.
    assert_eq!(stopper(&[stop(20, 2, 70)], 8), None);
}

#[test]
fn a_process_timer_is_armed_by_the_thread_that_its_signal_is_for() {
    let signal = |time, cpu, (sig, code)| KernelEvent {
        cpu: CpuId(cpu),
        context: ExecutionContext::Interrupt,
        ..event(time, 3, EventKind::Signal { tid: 7, sig, code })
    };
    let (timer_create, setitimer, kill) = ((34, -2), (14, 0x80), (14, 0));
    let owner = |cause, from, to| {
        let senders = noted(&[signal(20, 1, cause), signal(30, 2, timer_create)]);
        let trigger = senders.armed_by(CpuId(1), (Ticks(from), Ticks(to)));
        trigger.map(|trigger| {
            let sender = senders.sender(trigger, &Known);
            (
                sender.tid,
                sender.comm.as_deref().map(str::to_owned),
                sender.tgid,
            )
        })
    };
    let known = Some((7, Some("t7".to_owned()), Some(70)));
    assert_eq!(owner(timer_create, 20, 25), known);
    assert_eq!(owner(setitimer, 15, 40), known);
    // The signal belongs to another function, or to no timer.
    assert_eq!(owner(timer_create, 21, 40), None);
    assert_eq!(owner(timer_create, 10, 19), None);
    assert_eq!(owner(kill, 10, 40), None);
}

#[test]
fn an_interrupted_thread_is_no_waker_and_named_beneath_the_softirq() {
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
        let (comm, beneath) = (sender.comm.as_deref(), sender.beneath.as_deref());
        let [comm, beneath] = [comm, beneath].map(|name| name.map(str::to_owned));
        (sender.tid, comm, sender.tgid, beneath)
    };
    let name = || Some("t7".to_owned());
    let itself = (7, name(), Some(70), None);
    let (above, nobody) = ((0, None, None, name()), (0, None, None, None));
    assert_eq!(
        [
            woken(ExecutionContext::Thread, false),
            woken(ExecutionContext::Thread, true)
        ],
        [itself.clone(), itself]
    );
    assert_eq!(
        [
            woken(ExecutionContext::Softirq, false),
            woken(ExecutionContext::Softirq, true)
        ],
        [above, nobody.clone()]
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
            into_cgroup: false,
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
    // The oldest was dropped.
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
    // At the edge of the window at the time of the check, and just beyond.
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

#[test]
fn a_waker_bears_the_name_that_it_had_when_it_woke() {
    let name = Comm::new;
    let renamed = |time, old: &str, new: &str| {
        let (old, comm) = (name(old), name(new));
        event(time, 3, EventKind::TaskRename { tid: 3, old, comm })
    };
    let begun = event(
        900,
        1,
        EventKind::TaskNew {
            tid: 3,
            comm: name("shell"),
            thread: false,
            into_cgroup: false,
        },
    );
    let events = [
        waking(100, 3, 9),
        renamed(150, "first", "second"),
        waking(200, 3, 9),
        renamed(250, "second", "third"),
        waking(300, 3, 9),
    ];
    let waker = |senders: &Senders, time: u64| {
        let sender = senders.waker(9, CpuId(1), Ticks(time), &Known).unwrap();
        assert_eq!(sender.tid, 3);
        sender.comm
    };
    // Later records change nothing.
    for until in 1..=events.len() {
        let senders = noted(&events[..until]);
        let found = waker(&senders, 120);
        let wanted = if until == 1 { "t3" } else { "first" };
        assert_eq!(found.as_deref(), Some(wanted), "{until}");
    }
    let senders = noted(&events);
    assert_eq!(waker(&senders, 220).as_deref(), Some("second"));
    // It has another name now, and no record tells since when.
    assert_eq!(waker(&senders, 320).as_deref(), Some("third or t3"));
    // It has ended, and its id belongs to another thread.
    let senders = noted(&[waking(100, 3, 9), begun, renamed(950, "shell", "tool")]);
    assert_eq!(waker(&senders, 120), None);
}
