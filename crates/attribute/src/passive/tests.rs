//! Simulated CPUs: stolen time, time beside, and independence of later records. One tick is one nanosecond.

mod bounds;

use super::*;
use crate::name_resolver::NoNames;
use jitterscope_model::{
    Attribution, Comm, CpuId, EventKind, Evidence, ExecutionContext, KernelAddr, KernelEvent, Name,
    Nanos, PassiveCpu, Phase, Stall, StallId, TaskRef, ThreadRef, TickRate, Ticks,
};
use proptest::prelude::*;

const OWN: i32 = 100;
const TWIN: i32 = 101;
const OTHER: i32 = 200;
const HERE: CpuId = CpuId(1);
const ELSEWHERE: CpuId = CpuId(0);
const RUNNABLE: u64 = 0;
const SLEEPS: u64 = 1;

fn task(tid: i32) -> TaskRef {
    let comm = match tid {
        0 => "swapper/1".into(),
        OWN | TWIN => "own".to_owned(),
        _ => format!("task{tid}"),
    };
    TaskRef {
        tid,
        comm: Comm::new(&comm),
        prio: 120,
    }
}

fn on(cpu: CpuId, time: u64, tid: i32, kind: EventKind) -> KernelEvent {
    KernelEvent {
        time: Ticks(time),
        cpu,
        tid,
        context: ExecutionContext::Thread,
        kind,
    }
}

fn switch(time: u64, prev: i32, prev_state: u64, next: i32) -> KernelEvent {
    on(
        HERE,
        time,
        prev,
        EventKind::SchedSwitch {
            prev: task(prev),
            prev_state,
            next: task(next),
        },
    )
}

fn tick(from: u64, to: u64, tid: i32) -> [KernelEvent; 2] {
    let vector = || Name::from("local_timer");
    [
        on(HERE, from, tid, EventKind::VectorEntry { vector: vector() }),
        on(HERE, to, tid, EventKind::VectorExit { vector: vector() }),
    ]
}

fn softirq(from: u64, to: u64, tid: i32) -> [KernelEvent; 2] {
    [
        on(HERE, from, tid, EventKind::SoftirqEntry { vec: 1 }),
        on(HERE, to, tid, EventKind::SoftirqExit { vec: 1 }),
    ]
}

fn waking(time: u64, waker: i32, tid: i32, target: CpuId) -> KernelEvent {
    on(
        ELSEWHERE,
        time,
        waker,
        EventKind::SchedWaking {
            task: task(tid),
            target,
        },
    )
}

fn moved(time: u64, by: i32, tid: i32, from: CpuId, to: CpuId) -> KernelEvent {
    on(
        ELSEWHERE,
        time,
        by,
        EventKind::SchedMigrate {
            task: task(tid),
            from,
            to,
        },
    )
}

fn settings() -> PassiveSettings {
    PassiveSettings {
        rate: TickRate::NANOSECONDS,
        cpus: [HERE].into_iter().collect(),
        join_within: Ticks(10),
        threshold: Ticks(0),
        new_threads: true,
        children: false,
        names: vec![Comm::new("own")],
    }
}

type Watched = (PassiveCpu, Vec<(Stall, Attribution)>);

fn watched(settings: PassiveSettings, events: &[KernelEvent], until: u64) -> Watched {
    let mut watch = PassiveWatch::new(settings);
    watch.measure(Ticks(0), Ticks(until));
    for event in events {
        watch.event(event, &NoNames);
    }
    let mut cpus = watch.finish(Ticks(until), &NoNames);
    let stalls = watch.take_stalls().into_iter().enumerate();
    let stalls =
        stalls.map(|(n, stall)| stall.into_stall(StallId(n as u64), TickRate::NANOSECONDS));
    (cpus.remove(0), stalls.collect())
}

fn watch(events: &[KernelEvent], until: u64) -> Watched {
    watched(settings(), events, until)
}

/// Running, interrupted, waiting, beside, idle, unknown.
fn times(cpu: &PassiveCpu) -> [u64; 6] {
    [
        cpu.running_ns,
        cpu.interrupted_ns,
        cpu.waiting_ns,
        cpu.beside_ns,
        cpu.idle_ns,
        cpu.unknown_ns,
    ]
    .map(|n| n.0)
}

/// Start, end, and each part's name, length and phase.
fn row((stall, attribution): &(Stall, Attribution)) -> (u64, u64, Vec<(String, u64, Phase)>) {
    let part = |part: &jitterscope_model::Part| {
        (
            part.culprit.subject.name().to_string(),
            part.net.0,
            part.phase.clone().unwrap(),
        )
    };
    (
        stall.start.0,
        stall.end.0,
        attribution.parts.iter().map(part).collect(),
    )
}

#[test]
fn interrupts_steal_from_what_has_the_cpu() {
    let mut events = vec![switch(100, 0, SLEEPS, OWN)];
    events.extend(tick(300, 350, OWN));
    // Directly after it: the thread ran no code in between.
    events.extend(softirq(355, 400, OWN));
    events.extend(tick(600, 620, OWN));
    events.push(switch(900, OWN, SLEEPS, 0));
    let (cpu, stalls) = watch(&events, 1000);
    // Before the first record nothing is known.
    assert_eq!(times(&cpu), [800 - 100 - 20, 120, 0, 0, 100, 100]);
    assert_eq!(
        (cpu.stretches, cpu.longest_ns, cpu.threads[0].runs),
        (2, Nanos(100), 1)
    );
    let (start, end, parts) = row(&stalls[0]);
    assert_eq!((start, end), (300, 400));
    let lengths: Vec<(&str, u64)> = parts
        .iter()
        .map(|(name, net, _)| (name.as_str(), *net))
        .collect();
    assert_eq!(
        lengths[1..],
        [("between events", 5), ("TIMER", 45)],
        "{lengths:?}"
    );
    assert!(parts.iter().all(|part| part.2 == Phase::Interrupted));
    assert_eq!(
        stalls[0].0.victim,
        ThreadRef {
            tid: OWN,
            comm: Comm::new("own")
        }
    );
    assert_eq!(row(&stalls[1]).0, 600);
}

#[test]
fn who_runs_while_it_sleeps_takes_nothing_from_it() {
    let mut events = vec![switch(100, 0, SLEEPS, OWN), switch(200, OWN, SLEEPS, OTHER)];
    events.extend(tick(250, 280, OTHER));
    events.push(switch(500, OTHER, SLEEPS, 0));
    // An interrupt in idle time delays no thread either.
    events.extend(tick(600, 640, 0));
    events.push(switch(800, 0, SLEEPS, OWN));
    let (cpu, stalls) = watch(&events, 1000);
    assert!(stalls.is_empty(), "{stalls:?}");
    assert_eq!(times(&cpu), [300, 0, 0, 340, 260, 100]);
    let beside: Vec<(String, u64, u64)> = cpu
        .ran_beside
        .iter()
        .map(|row| (row.subject.name().to_string(), row.count, row.total_ns.0))
        .collect();
    assert_eq!(beside[0], ("task200".into(), 1, 270));
    assert_eq!((beside[1].1, beside[1].2), (2, 70), "{beside:?}");
}

#[test]
fn who_has_the_cpu_while_it_waits_steals() {
    let events = [
        switch(100, 0, SLEEPS, OWN),
        // Preempted, by one after the other.
        switch(200, OWN, RUNNABLE, OTHER),
        switch(300, OTHER, SLEEPS, 300),
        switch(450, 300, SLEEPS, OWN),
        // Asleep while another runs, which continues after the wake-up.
        switch(500, OWN, SLEEPS, OTHER),
        waking(700, 9, OWN, HERE),
        switch(800, OTHER, RUNNABLE, OWN),
        // Asleep, with the exit from idle.
        switch(900, OWN, SLEEPS, 0),
        waking(950, 9, OWN, HERE),
        switch(960, 0, RUNNABLE, OWN),
    ];
    let (cpu, stalls) = watch(&events, 1000);
    let preempted = |name: &str, ns| (name.to_owned(), ns, Phase::Preempted);
    let woken = |name: &str, ns| (name.to_owned(), ns, Phase::WaitAfterWakeUp);
    let all: Vec<_> = stalls.iter().map(row).collect();
    assert_eq!(
        all[0],
        (
            200,
            450,
            vec![preempted("task200", 100), preempted("task300", 150)]
        )
    );
    assert_eq!(all[1], (700, 800, vec![woken("task200", 100)]));
    assert_eq!((all[2].0, all[2].1, all.len()), (950, 960, 3), "{all:?}");
    assert_eq!(
        times(&cpu),
        [100 + 50 + 100 + 40, 0, 250 + 100 + 10, 200, 50, 100]
    );
}

#[test]
fn one_of_its_own_kind_steals_nothing() {
    let events = [
        switch(100, 0, SLEEPS, OWN),
        switch(300, OWN, RUNNABLE, TWIN),
        // It sleeps, and the other one has waited all the time.
        switch(500, TWIN, SLEEPS, OTHER),
        switch(600, OTHER, SLEEPS, OWN),
    ];
    let (cpu, stalls) = watch(&events, 800);
    assert_eq!(
        stalls
            .iter()
            .map(|row| (row.0.start.0, row.0.end.0))
            .collect::<Vec<_>>(),
        [(500, 600)]
    );
    assert_eq!(stalls[0].0.victim.tid, OWN);
    assert_eq!(
        (times(&cpu), cpu.thread_count),
        ([600, 0, 100, 0, 0, 100], 2)
    );
}

#[test]
fn a_wait_ends_where_the_thread_is_moved_away_and_begins_where_it_comes() {
    let events = [
        switch(100, 0, SLEEPS, OWN),
        switch(200, OWN, RUNNABLE, OTHER),
        moved(260, 9, OWN, HERE, ELSEWHERE),
        // It runs on an unwatched CPU; then it is moved back.
        moved(500, 9, OWN, ELSEWHERE, HERE),
        switch(540, OTHER, RUNNABLE, OWN),
    ];
    let (cpu, stalls) = watch(&events, 600);
    let found: Vec<_> = stalls
        .iter()
        .map(|row| (row.0.start.0, row.0.end.0))
        .collect();
    assert_eq!(found, [(200, 260), (500, 540)]);
    assert_eq!(times(&cpu), [160, 0, 100, 240, 0, 100]);
}

#[test]
fn a_thread_whose_waker_puts_it_elsewhere_never_waited_here() {
    let events = [
        switch(100, 0, SLEEPS, OWN),
        switch(200, OWN, SLEEPS, OTHER),
        // A wake-up's record names the thread's last CPU; then its waker chooses one.
        waking(300, 9, OWN, HERE),
        moved(302, 9, OWN, HERE, ELSEWHERE),
        switch(500, OTHER, SLEEPS, 0),
    ];
    let (cpu, stalls) = watch(&events, 600);
    assert!(stalls.is_empty(), "{stalls:?}");
    assert_eq!(times(&cpu), [100, 0, 0, 300, 100, 100]);
    // Moved later by another thread: it did wait.
    let mut events = events;
    events[3] = moved(302, 8, OWN, HERE, ELSEWHERE);
    assert_eq!(watch(&events, 600).0.waiting_ns, Nanos(2));
}

#[test]
fn a_wake_up_on_the_way_to_sleep_is_a_wait() {
    let wakes = |at| {
        let events = [
            switch(100, 0, SLEEPS, OWN),
            waking(at, 9, OWN, HERE),
            switch(90_000, OWN, SLEEPS, OTHER),
            switch(95_000, OTHER, SLEEPS, OWN),
        ];
        watch(&events, 100_000).0.waiting_ns
    };
    assert_eq!(wakes(89_990), Nanos(5_000));
    // That wake-up was long before it slept.
    assert_eq!(wakes(50_000), Nanos::ZERO);
}

#[test]
fn records_that_were_lost_withhold_the_verdict() {
    let mut watch = PassiveWatch::new(settings());
    watch.measure(Ticks(0), Ticks(1000));
    for event in [
        switch(100, 0, SLEEPS, OWN),
        switch(200, OWN, RUNNABLE, OTHER),
    ] {
        watch.event(&event, &NoNames);
    }
    watch.lost(
        HERE,
        (Ticks(300), Ticks(600)),
        jitterscope_model::Verdict::TraceDataLost,
        &NoNames,
    );
    for event in tick(700, 720, OWN).into_iter().chain(tick(800, 830, OWN)) {
        watch.event(&event, &NoNames);
    }
    let cpu = watch.finish(Ticks(1000), &NoNames).remove(0);
    let stalls: Vec<_> = watch
        .take_stalls()
        .into_iter()
        .map(|stall| stall.into_stall(StallId(0), TickRate::NANOSECONDS))
        .collect();
    let evidence: Vec<&Evidence> = stalls.iter().map(|row| &row.1.parts[0].evidence).collect();
    assert_eq!((stalls[0].0.start.0, stalls[0].0.end.0), (200, 300));
    assert_eq!(stalls[0].1.parts.len(), 1);
    assert_eq!(*evidence[0], Evidence::LostRecords);
    assert_eq!(stalls.len(), 3);
    assert!(
        evidence[1..]
            .iter()
            .all(|evidence| **evidence != Evidence::LostRecords)
    );
    // After a loss nothing is known until a record shows who has the CPU.
    assert_eq!(
        times(&cpu),
        [100 + 300 - 50, 50, 100, 0, 0, 100 + 300 + 100]
    );
}

#[test]
fn a_cpu_that_went_offline_is_unknown_from_its_last_record_on() {
    let mut watch = PassiveWatch::new(settings());
    watch.measure(Ticks(0), Ticks(1000));
    watch.event(&switch(100, 0, SLEEPS, OWN), &NoNames);
    watch.event(&switch(300, OWN, SLEEPS, 0), &NoNames);
    // Its last records are still to come.
    watch.gone(HERE, Ticks(410));
    watch.event(&switch(400, 0, SLEEPS, OWN), &NoNames);
    let cpu = watch.finish(Ticks(1000), &NoNames).remove(0);
    assert_eq!(times(&cpu), [200, 0, 0, 0, 100, 700]);
    assert!(cpu.ended_early.is_some());
    // A CPU that comes back is watched again; the time in between is unknown.
    let mut watch = PassiveWatch::new(settings());
    watch.measure(Ticks(0), Ticks(1000));
    watch.event(&switch(100, 0, SLEEPS, OWN), &NoNames);
    watch.gone(HERE, Ticks(310));
    watch.event(&switch(600, OTHER, SLEEPS, OWN), &NoNames);
    let cpu = watch.finish(Ticks(1000), &NoNames).remove(0);
    assert_eq!(times(&cpu), [400, 0, 0, 0, 0, 600]);
    assert!(cpu.ended_early.is_none());
}

#[test]
fn faults_are_counted_and_their_time_is_the_threads_own() {
    let fault = |at| {
        on(
            HERE,
            at,
            OWN,
            EventKind::PageFault {
                user: true,
                address: 1,
                ip: 2,
            },
        )
    };
    let events = [
        switch(100, 0, SLEEPS, OWN),
        fault(150),
        fault(300),
        switch(400, OWN, SLEEPS, 0),
    ];
    let (cpu, stalls) = watch(&events, 500);
    assert!(stalls.is_empty());
    assert_eq!(
        (cpu.page_faults, times(&cpu)),
        (2, [300, 0, 0, 0, 100, 100])
    );
}

#[test]
fn children_of_an_owner_are_owners_and_a_reused_id_is_new() {
    let named = PassiveSettings {
        names: Vec::new(),
        ..settings()
    };
    let events = [
        on(
            HERE,
            110,
            OWN,
            EventKind::TaskNew {
                tid: 400,
                comm: Comm::new("worker"),
                thread: true,
                into_cgroup: false,
            },
        ),
        switch(200, OWN, SLEEPS, 400),
        switch(300, 400, 0x10, OTHER),
        // The id is reused by an unrelated thread.
        on(
            ELSEWHERE,
            350,
            9,
            EventKind::TaskNew {
                tid: 400,
                comm: Comm::new("x"),
                thread: false,
                into_cgroup: false,
            },
        ),
        switch(400, OTHER, SLEEPS, 400),
    ];
    let mut watch = PassiveWatch::new(named);
    watch.measure(Ticks(100), Ticks(500));
    let thread = ThreadRef {
        tid: OWN,
        comm: Comm::new("own"),
    };
    watch.belongs(Belonging {
        thread,
        on: None,
        asleep: false,
    });
    events.iter().for_each(|event| watch.event(event, &NoNames));
    let cpu = watch.finish(Ticks(500), &NoNames).remove(0);
    // The time before the CPU's first record is unknown.
    assert_eq!(times(&cpu), [100, 0, 0, 200, 0, 100]);
    assert_eq!(cpu.threads[0].tid, 400);
}

#[test]
fn processes_of_a_group_belong_unless_they_begin_in_another() {
    let new = |at: u64, by: i32, tid: i32, into_cgroup: bool| {
        let kind = EventKind::TaskNew {
            tid,
            comm: Comm::new("job"),
            thread: false,
            into_cgroup,
        };
        on(HERE, at, by, kind)
    };
    for children in [true, false] {
        let mut watch = PassiveWatch::new(PassiveSettings {
            names: Vec::new(),
            children,
            ..settings()
        });
        watch.measure(Ticks(100), Ticks(600));
        let thread = ThreadRef {
            tid: OWN,
            comm: Comm::new("own"),
        };
        watch.belongs(Belonging {
            thread,
            on: None,
            asleep: false,
        });
        let attach = EventKind::CgroupAttach {
            hierarchy: 0,
            tid: OTHER,
            path: "/elsewhere".into(),
        };
        for event in [
            switch(100, 0, SLEEPS, OWN),
            new(150, OWN, 400, false),
            new(160, OWN, 401, true),
            on(ELSEWHERE, 170, OTHER, attach),
            switch(200, OWN, SLEEPS, 400),
            switch(300, 400, 0x10, 401),
            switch(500, 401, 0x10, 0),
        ] {
            watch.event(&event, &NoNames);
        }
        // Who moved is for the recorder to look at.
        let moved: Vec<i32> = watch.take_moved().into_iter().map(|of| of.0).collect();
        assert_eq!(
            moved,
            if children {
                vec![401, OTHER]
            } else {
                Vec::new()
            }
        );
        let cpu = watch.finish(Ticks(600), &NoNames).remove(0);
        let owners: Vec<i32> = cpu.threads.iter().map(|of| of.tid).collect();
        assert_eq!(owners.contains(&400), children, "{owners:?}");
        assert!(!owners.contains(&401), "{owners:?}");
    }
}

#[test]
fn what_belongs_on_one_cpu_is_a_stranger_on_another() {
    let settings = PassiveSettings {
        names: Vec::new(),
        ..settings()
    };
    let mut watch = PassiveWatch::new(settings);
    watch.measure(Ticks(0), Ticks(500));
    let thread = ThreadRef {
        tid: OWN,
        comm: Comm::new("own"),
    };
    watch.belongs(Belonging {
        thread,
        on: Some(ELSEWHERE),
        asleep: false,
    });
    [switch(100, 0, SLEEPS, OWN), switch(300, OWN, RUNNABLE, 0)]
        .iter()
        .for_each(|e| watch.event(e, &NoNames));
    let cpu = watch.finish(Ticks(500), &NoNames).remove(0);
    assert_eq!(times(&cpu), [0, 0, 0, 200, 200, 100]);
}

/// Any records that a kernel could write, sensible or not.
fn records() -> impl Strategy<Value = Vec<KernelEvent>> {
    let who = || prop_oneof![Just(0), Just(OWN), Just(TWIN), Just(OTHER), Just(300)];
    let state = prop_oneof![Just(RUNNABLE), Just(SLEEPS), Just(0x10_u64), Just(0x100)];
    let record = (0..60_u64, 0..11_u8, who(), who(), state, any::<bool>());
    proptest::collection::vec(record, 1..120).prop_map(|records| {
        let mut now = 0;
        let mut has = 0;
        records
            .into_iter()
            .map(|(after, what, one, other, state, flag)| {
                now += after;
                let vector = || Name::from("local_timer");
                let (from, to) = if flag {
                    (HERE, ELSEWHERE)
                } else {
                    (ELSEWHERE, HERE)
                };
                match what {
                    0..=2 => {
                        // Some switches leave no record.
                        let prev = if what == 0 { one } else { has };
                        has = other;
                        switch(now, prev, state, other)
                    }
                    3 => on(HERE, now, has, EventKind::VectorEntry { vector: vector() }),
                    4 => on(HERE, now, has, EventKind::VectorExit { vector: vector() }),
                    5 => on(HERE, now, has, EventKind::SoftirqEntry { vec: 1 }),
                    6 => on(HERE, now, has, EventKind::SoftirqExit { vec: 1 }),
                    7 => waking(now, one, other, if flag { HERE } else { ELSEWHERE }),
                    8 => moved(now, one, other, from, to),
                    9 => on(
                        HERE,
                        now,
                        has,
                        EventKind::NmiHandler {
                            handler: KernelAddr(9),
                            delta_ns: after / 2,
                        },
                    ),
                    _ => on(
                        HERE,
                        now,
                        has,
                        EventKind::PageFault {
                            user: flag,
                            address: 1,
                            ip: 2,
                        },
                    ),
                }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn sums_fill_the_time_and_parts_fill_their_stall(
        events in records(),
        from in 0..1000_u64,
        length in 1..3000_u64,
        lost in proptest::option::of((0..100_usize, 0..50_u64)),
    ) {
        let (from, until) = (Ticks(from), Ticks(from + length));
        let mut watch = PassiveWatch::new(settings());
        watch.measure(from, until);
        let mut ignore_until = Ticks(0);
        for (n, event) in events.iter().enumerate() {
            if let Some((_, gap)) = lost.filter(|(at, _)| *at == n) {
                ignore_until = event.time + Ticks(gap);
                watch.lost(HERE, (event.time, ignore_until), jitterscope_model::Verdict::TraceDataLost, &NoNames);
            }
            if event.time >= ignore_until {
                watch.event(event, &NoNames);
            }
        }
        let cpu = watch.finish(until, &NoNames).remove(0);
        prop_assert_eq!(times(&cpu).iter().sum::<u64>(), length, "{:?}", cpu);
        let mut before = from;
        let mut stolen = 0;
        let stalls = watch.take_stalls();
        prop_assert_eq!(stalls.len() as u64, cpu.stalls);
        for stall in stalls {
            prop_assert!(before <= stall.start && stall.start < stall.end && stall.end <= until);
            before = stall.end;
            let length = stall.length();
            let (_, attribution) = stall.into_stall(StallId(0), TickRate::NANOSECONDS);
            prop_assert_eq!(attribution.total(), Nanos(length.0));
            stolen += length.0;
        }
        prop_assert_eq!(stolen, cpu.stolen_ns().0);
        for (rows, sum) in [(&cpu.ran_instead, cpu.stolen_ns()), (&cpu.ran_beside, cpu.beside_ns)] {
            prop_assert_eq!(rows.iter().map(|row| row.total_ns).sum::<Nanos>(), sum);
        }
    }

    #[test]
    fn earlier_verdicts_do_not_depend_on_later_records(events in records(), cut in 0..120_usize) {
        let stalls_of = |events: &[KernelEvent], finish: bool| {
            let mut watch = PassiveWatch::new(settings());
            watch.measure(Ticks(0), Ticks(u64::MAX));
            let mut stalls = Vec::new();
            for (n, event) in events.iter().enumerate() {
                watch.event(event, &NoNames);
                // Independently of when they are taken.
                if finish && n % 3 == 0 {
                    stalls.extend(watch.take_stalls());
                }
            }
            stalls.extend(watch.take_stalls());
            stalls
        };
        let cut = cut.min(events.len());
        let (early, all) = (stalls_of(&events[..cut], false), stalls_of(&events, true));
        prop_assert!(early.len() <= all.len());
        prop_assert_eq!(&early[..], &all[..early.len()]);
        prop_assert_eq!(all, stalls_of(&events, false));
    }
}
