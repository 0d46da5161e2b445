//! Missing or wrong records do not affect later results.

use super::common::*;
use crate::occupancy::{Class, Outcome, Window};
use jitterscope_model::{
    Comm, EventKind, ExecutionContext, KernelAddr, KernelEvent, TaskRef, Ticks,
};
use proptest::prelude::*;

fn turn(tid: i32) -> Who {
    Who {
        class: Class::Turn,
        key: 0,
        tid,
    }
}

fn nobody(class: Class) -> Who {
    Who {
        class,
        key: 0,
        tid: -1,
    }
}

/// A work item that began where records are missing is not known to sleep later.
fn without_items(who: Who) -> Who {
    if who.class == Class::Work {
        turn(who.tid)
    } else {
        who
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn an_exit_that_was_lost_is_healed_by_the_next_switch(acts in acts(200), which in any::<prop::sample::Index>()) {
        let acts: Vec<Act> = acts.into_iter().filter(|act| act.what % 16 != 13).collect();
        let fake = FakeCpu::play(&acts, false);
        // A softirq may continue with its thread: the machine cannot rule that out.
        let exit = |kind: &EventKind| matches!(
            kind,
            EventKind::VectorExit { .. } | EventKind::IrqExit { .. } | EventKind::HrtimerExit { .. }
                | EventKind::TimerExit { .. } | EventKind::CsdExit { .. }
        );
        let exits: Vec<usize> =
            (0..fake.events.len()).filter(|at| exit(&fake.events[*at].kind)).collect();
        prop_assume!(!exits.is_empty());
        let gone = exits[which.index(exits.len())];
        let healed = fake.events[gone..].iter()
            .find(|event| matches!(event.kind, EventKind::SchedSwitch { .. }))
            .map_or(fake.now, |event| event.time.0);
        let mut events = fake.events.clone();
        events.remove(gone);
        let window = window(&events, 0, fake.now);
        let after = stretches(&window).into_iter().map(|(a, b, who)| (a.max(healed), b, without_items(who)));
        let truth = fake.between(healed, fake.now);
        prop_assert_eq!(
            merged(after.filter(|(a, b, _)| a < b)),
            merged(truth.into_iter().map(|(a, b, who)| (a, b, without_items(who))))
        );
    }

    #[test]
    fn a_switch_that_was_lost_is_nobodys_time_and_nothing_else_changes(
        acts in acts(200),
        which in any::<prop::sample::Index>(),
    ) {
        // Leaves out faults and sleeping items: losing the switch that brings them back would lose their activity, too.
        let kept = |act: &Act| !matches!(act.what % 16, 0 | 8 | 9 | 13 | 14);
        let acts: Vec<Act> = acts.into_iter().filter(kept).collect();
        let fake = FakeCpu::play(&acts, false);
        let switches: Vec<usize> = (0..fake.events.len())
            .filter(|at| matches!(fake.events[*at].kind, EventKind::SchedSwitch { .. }))
            .collect();
        prop_assume!(!switches.is_empty());
        let gone = switches[which.index(switches.len())];
        let before = gone.checked_sub(1).map_or(0, |at| fake.events[at].time.0);
        let after = fake.events.get(gone + 1).map_or(fake.now, |event| event.time.0);
        let mut events = fake.events.clone();
        events.remove(gone);
        let found = stretches(&window(&events, 0, fake.now));
        let cut = |from: u64, until: u64| {
            let clipped = found.iter().map(move |(a, b, who)| (*a.max(&from), *b.min(&until), *who));
            merged(clipped.filter(|(a, b, _)| a < b))
        };
        prop_assert_eq!(cut(0, before), fake.between(0, before));
        prop_assert_eq!(cut(after, fake.now), fake.between(after, fake.now));
        if gone + 1 < fake.events.len() {
            prop_assert!(cut(before, after).iter().all(|(.., who)| *who == nobody(Class::Unrecorded)));
        }
    }

    #[test]
    fn after_a_loss_a_proof_or_a_switch_names_the_thread_again(acts in acts(200), from in 0..2000_u64, length in 0..1000_u64) {
        let acts: Vec<Act> = acts.into_iter().filter(|act| !matches!(act.what % 16, 0 | 13 | 14)).collect();
        let fake = FakeCpu::play(&acts, false);
        let (from, to) = (from.min(fake.now), (from + length).min(fake.now));
        let mut machine = machine();
        machine.running(VICTIM, Ticks(0));
        let mark = machine.open_mark(Ticks(0));
        let records = records(&fake.events);
        let mut told_of = false;
        for record in &records {
            if record.time.0 >= from && !told_of {
                machine.lost(Ticks(from), Ticks(to));
                told_of = true;
            }
            if record.time.0 < from || record.time.0 > to {
                machine.record(record);
            }
        }
        let mut window = Window::default();
        machine.close_mark(mark, Ticks(fake.now), &mut window);
        let healed = fake.events.iter()
            .find(|event| event.time.0 > to && matches!(event.kind, EventKind::SchedSwitch { .. }))
            .map_or(fake.now, |event| event.time.0);
        let after = stretches(&window).into_iter().map(|(a, b, who)| (a.max(healed), b, without_items(who)));
        let truth = fake.between(healed, fake.now);
        prop_assert_eq!(
            merged(after.filter(|(a, b, _)| a < b)),
            merged(truth.into_iter().map(|(a, b, who)| (a, b, without_items(who))))
        );
    }
}

#[test]
fn a_probe_that_read_the_clock_had_nothing_open() {
    let mut machine = machine();
    machine.running(VICTIM, Ticks(0));
    // The exit is lost.
    for record in records(&[tick(100, 200, VICTIM)[0].clone()]) {
        machine.record(&record);
    }
    machine.running(VICTIM, Ticks(300));
    let mark = machine.open_mark(Ticks(300));
    for record in records(&tick(400, 500, VICTIM)) {
        machine.record(&record);
    }
    let mut window = Window::default();
    machine.close_mark(mark, Ticks(600), &mut window);
    let timer = Who {
        class: Class::LocalTimer,
        key: 0,
        tid: VICTIM,
    };
    assert_eq!(
        stretches(&window),
        [
            (300, 400, turn(VICTIM)),
            (400, 500, timer),
            (500, 600, turn(VICTIM))
        ]
    );
}

#[test]
fn a_lost_exit_ends_where_the_next_interrupt_of_its_sort_begins() {
    let [entry, _] = tick(100, 200, VICTIM);
    let events: Vec<KernelEvent> = [entry]
        .into_iter()
        .chain(tick(1000, 1100, VICTIM))
        .collect();
    let window = window(&events, 50, 1200);
    let outcomes: Vec<Outcome> = window
        .frames
        .iter()
        .filter(|f| f.class == Class::LocalTimer)
        .map(|f| f.outcome)
        .collect();
    assert_eq!(outcomes, [Outcome::Unseen, Outcome::Closed]);
    assert_eq!(stretches(&window).last(), Some(&(1100, 1200, turn(VICTIM))));
}

#[test]
fn a_record_of_another_thread_shows_an_unrecorded_switch() {
    let events: Vec<KernelEvent> = [switch(100, VICTIM, 0)]
        .into_iter()
        .chain(tick(500, 600, 200))
        .chain([switch(900, 201, VICTIM)])
        .collect();
    let timer = Who {
        class: Class::LocalTimer,
        key: 0,
        tid: 200,
    };
    assert_eq!(
        stretches(&window(&events, 0, 1000)),
        [
            (0, 100, turn(VICTIM)),
            (100, 500, nobody(Class::Unrecorded)),
            (500, 600, timer),
            (600, 900, nobody(Class::Unrecorded)),
            (900, 1000, turn(VICTIM)),
        ]
    );
}

#[test]
fn a_charge_shows_since_when_the_thread_has_run() {
    let [entry, exit] = tick(500, 600, 200);
    let charge = at(
        550,
        200,
        EventKind::StatRuntime {
            tid: 200,
            runtime_ns: 350,
        },
    );
    let events = [
        switch(100, VICTIM, 0),
        entry,
        charge,
        exit,
        switch(900, 200, VICTIM),
    ];
    let timer = Who {
        class: Class::LocalTimer,
        key: 0,
        tid: 200,
    };
    let window = window(&events, 0, 1000);
    assert_eq!(
        stretches(&window),
        [
            (0, 100, turn(VICTIM)),
            (100, 200, nobody(Class::Unrecorded)),
            (200, 500, turn(200)),
            (500, 600, timer),
            (600, 900, turn(200)),
            (900, 1000, turn(VICTIM)),
        ]
    );
    // Not before the last record of another thread.
    let charge = at(
        550,
        200,
        EventKind::StatRuntime {
            tid: 200,
            runtime_ns: 10_000,
        },
    );
    let [entry, exit] = tick(500, 600, 200);
    let events = [switch(100, VICTIM, 0), entry, charge, exit];
    assert_eq!(
        stretches(&super::common::window(&events, 0, 700))[1],
        (100, 500, turn(200))
    );
}

#[test]
fn records_within_a_switch_or_nmi_do_not_show_who_runs() {
    let flush = at(
        101,
        VICTIM,
        EventKind::TlbFlush {
            reason: 0,
            pages: -1,
        },
    );
    let nmi = |time, kind| KernelEvent {
        context: ExecutionContext::Nmi,
        ..at(time, VICTIM, kind)
    };
    let events = [
        switch(100, VICTIM, 200),
        flush,
        nmi(
            102,
            EventKind::PageFault {
                user: false,
                address: 0,
                ip: 0,
            },
        ),
        nmi(
            110,
            EventKind::NmiHandler {
                handler: KernelAddr(9),
                delta_ns: 1000,
            },
        ),
        switch(300, 200, VICTIM),
    ];
    let handler = Who {
        class: Class::Nmi,
        key: 9,
        tid: 200,
    };
    assert_eq!(
        stretches(&window(&events, 0, 400)),
        [
            (0, 100, turn(VICTIM)),
            (100, 101, turn(200)),
            (101, 110, handler),
            (110, 300, turn(200)),
            (300, 400, turn(VICTIM))
        ]
    );
}

#[test]
fn a_turn_has_the_name_of_its_end_as_far_as_it_is_known() {
    let named = |tid, comm: &str| TaskRef {
        comm: Comm::new(comm),
        ..task(tid)
    };
    let switch = |time, prev: TaskRef, next| {
        at(
            time,
            prev.tid,
            EventKind::SchedSwitch {
                prev,
                prev_state: 1,
                next,
            },
        )
    };
    let events = [
        switch(100, task(VICTIM), named(300, "sh")),
        switch(900, named(300, "sha1sum"), task(VICTIM)),
    ];
    let mut names = names();
    let (sh, sha1sum) = (
        names.comm_id(Comm::new("sh")),
        names.comm_id(Comm::new("sha1sum")),
    );
    let name = |until| {
        let mut machine = machine();
        machine.running(VICTIM, Ticks(0));
        let mark = machine.open_mark(Ticks(0));
        let mut table = names.clone();
        for event in &events {
            machine.record(&crate::occupancy::Record::new(event, &mut table));
        }
        let mut window = Window::default();
        machine.close_mark(mark, Ticks(until), &mut window);
        window
            .frames
            .iter()
            .find(|frame| frame.tid == 300)
            .map(|frame| frame.named())
    };
    assert_eq!(name(1000), Some(sha1sum));
    assert_eq!(name(900), Some(sha1sum));
    // Later events do not affect a window that has ended.
    assert_eq!(name(800), Some(sh));
}

#[test]
fn who_comes_from_another_cpu_or_has_ended_goes_on_with_nothing() {
    let work = EventKind::WorkStart {
        work: 7,
        function: KernelAddr(1),
    };
    let begun = [
        switch(100, VICTIM, 50),
        at(150, 50, work),
        switch(200, 50, VICTIM),
    ];
    let back = [switch(500, VICTIM, 50), switch(600, 50, VICTIM)];
    let item = Who {
        class: Class::Work,
        key: 7,
        tid: 50,
    };
    for (moved, ended, expected) in [
        (false, false, item),
        (true, false, turn(50)),
        (false, true, turn(50)),
    ] {
        let mut machine = machine();
        machine.running(VICTIM, Ticks(0));
        let mut begun = records(&begun);
        if ended {
            let dead = EventKind::SchedSwitch {
                prev: task(50),
                prev_state: 0x10,
                next: task(VICTIM),
            };
            begun[2] = records(&[at(200, 50, dead)])[0];
        }
        begun.iter().for_each(|record| machine.record(record));
        if moved {
            machine.arrived(50, Ticks(400));
        }
        let mark = machine.open_mark(Ticks(500));
        records(&back)
            .iter()
            .for_each(|record| machine.record(record));
        let mut window = Window::default();
        machine.close_mark(mark, Ticks(600), &mut window);
        assert_eq!(stretches(&window), [(500, 600, expected)]);
    }
}

#[test]
fn frames_without_exit_end_with_their_turn() {
    let outcome = |tid: i32, kind: EventKind| {
        let events = [
            switch(100, VICTIM, tid),
            at(150, tid, kind),
            switch(200, tid, VICTIM),
        ];
        let window = window(&events, 50, 300);
        window
            .frames
            .iter()
            .find(|frame| !frame.class.is_root())
            .map(|frame| (frame.class, frame.outcome))
    };
    let fault = EventKind::PageFault {
        user: true,
        address: 0,
        ip: 0,
    };
    let irq = EventKind::IrqEntry {
        irq: 5,
        action: "device".into(),
    };
    for (tid, kind, class, ended) in [
        (
            0,
            EventKind::CpuIdle { state: Some(2) },
            Class::Idle,
            Outcome::Closed,
        ),
        (200, fault, Class::Fault, Outcome::Closed),
        (200, irq, Class::Irq, Outcome::Unseen),
    ] {
        assert_eq!(outcome(tid, kind), Some((class, ended)));
    }
}

#[test]
fn an_item_that_is_said_to_sleep_does_so_unless_its_worker_has_the_cpu() {
    use crate::occupancy::Frame;
    let sleeping = |on: Option<i32>| {
        let mut machine = machine();
        if let Some(tid) = on {
            machine.running(tid, Ticks(100));
        }
        machine.park(50, Ticks(150), Frame::item(50, 7, 1, Ticks(90)));
        machine
            .parked()
            .map(|(tid, left, frames)| (tid, left.0, frames[0].key))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        [None, Some(VICTIM)].map(sleeping),
        [vec![(50, 150, 7)], vec![(50, 150, 7)]]
    );
    assert!(sleeping(Some(50)).is_empty());
}
