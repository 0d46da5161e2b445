//! The position of a moment on a timeline.

use crate::common::*;
use jitterscope_attribute::{Senders, TimelineOf, timeline_rows};
use jitterscope_model::{
    CpuId, EventKind, KernelAddr, KernelEvent, TickRate, TimelineItem, TimelineRow,
};

/// The rows of a stall from 1000 to 2000.
fn rows(spins: bool, events: &[KernelEvent]) -> Vec<TimelineRow> {
    let stall = stall(1000, 2000);
    let of = TimelineOf {
        stall: &stall,
        spins,
        producer: None,
    };
    let events = with_current(events);
    let senders = Senders::new(TickRate::NANOSECONDS);
    timeline_rows(&of, &events, &senders, TickRate::NANOSECONDS, &Names)
}

fn is_frame(row: &TimelineRow) -> bool {
    matches!(row.item, TimelineItem::Frame { .. })
}

/// (start within the stall, depth) of rows that are not frames.
fn instants(events: &[KernelEvent]) -> Vec<(u64, usize)> {
    let rows = rows(true, events);
    rows.iter()
        .filter(|row| !is_frame(row))
        .map(|row| (row.start.0, row.depth))
        .collect()
}

/// `start..end name` of each frame, indented by its depth; `?` without a recorded end.
fn frames(spins: bool, events: &[KernelEvent]) -> Vec<String> {
    let line = |row: &TimelineRow| {
        let TimelineItem::Frame { culprit, ended, .. } = &row.item else {
            return None;
        };
        assert_eq!(*ended, row.end.is_some());
        let end = row.end.map_or("?".into(), |end| end.0.to_string());
        Some(format!(
            "{}{}..{end} {}",
            "  ".repeat(row.depth),
            row.start.0,
            culprit.subject.name()
        ))
    };
    rows(spins, events).iter().filter_map(line).collect()
}

fn stop(time: u64) -> KernelEvent {
    at(
        time,
        EventKind::TickStop {
            success: true,
            dependency: 0,
        },
    )
}

#[test]
fn a_moment_is_inside_a_frame_only_between_its_ends() {
    let events = [
        enter(1100, "local_timer"),
        stop(1100),
        stop(1101),
        hrtimer(1200, 1),
        stop(1200),
        stop(1250),
        hrtimer_exit(1300),
        stop(1300),
        stop(1399),
        exit(1400, "local_timer"),
        stop(1400),
        stop(1500),
    ];
    assert_eq!(
        instants(&events),
        [
            (100, 0),
            (101, 1),
            (200, 1),
            (250, 2),
            (300, 1),
            (399, 1),
            (400, 0),
            (500, 0)
        ]
    );
}

#[test]
fn only_moments_of_the_stall_are_shown_its_ends_among_them() {
    assert_eq!(
        instants(&[999, 1000, 2000, 2001].map(stop)),
        [(0, 0), (1000, 0)]
    );
}

#[test]
fn records_that_open_no_frame_keep_their_meaning() {
    let (noise, other) = (task(200, "noise", 120), CpuId(3));
    let flush = |pages| EventKind::TlbFlush { reason: 0, pages };
    let stopped = |success, dependency| EventKind::TickStop {
        success,
        dependency,
    };
    let queued = EventKind::WorkQueued {
        work: 7,
        function: KernelAddr(2),
        workqueue: "events".into(),
        target: None,
    };
    let moved = EventKind::SchedMigrate {
        task: noise,
        from: CPU,
        to: other,
    };
    for (kind, item) in [
        (
            EventKind::SchedWaking {
                task: noise,
                target: other,
            },
            TimelineItem::Wakes {
                comm: "noise".into(),
                tid: 200,
                target_cpu: other,
            },
        ),
        (
            moved,
            TimelineItem::Migrates {
                comm: "noise".into(),
                tid: 200,
                from_cpu: CPU,
                to_cpu: other,
            },
        ),
        (
            queued,
            TimelineItem::QueuesWork {
                function: "vmstat_update".into(),
                workqueue: "events".into(),
            },
        ),
        (flush(5), TimelineItem::TlbFlush { pages: Some(5) }),
        (flush(-1), TimelineItem::TlbFlush { pages: None }),
        (stopped(true, 8), TimelineItem::TickStopped),
        (stopped(false, 8), TimelineItem::TickKept { dependency: 8 }),
        (
            EventKind::CpuFrequency {
                target: other,
                khz: 800,
            },
            TimelineItem::Frequency {
                target_cpu: other,
                khz: 800,
            },
        ),
        (
            EventKind::CpuIdle { state: Some(2) },
            TimelineItem::Idle { state: 2 },
        ),
        (EventKind::CpuIdle { state: None }, TimelineItem::IdleEnds),
    ] {
        let reported = rows(true, &[at(1500, kind)]);
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert_eq!(
            (
                &reported[0].item,
                reported[0].start.0,
                reported[0].end,
                reported[0].depth
            ),
            (&item, 500, None, 0)
        );
    }
    let charge = EventKind::StatRuntime {
        tid: VICTIM,
        runtime_ns: 5,
    };
    assert_eq!(rows(true, &[at(1500, charge)]), []);
}

#[test]
fn a_spinners_timeline_omits_other_threads_inner_events() {
    let noise = task(200, "noise", 120);
    let events = [
        stop(1100),
        switch(1200, victim(), noise),
        stop(1300),
        at(
            1350,
            EventKind::SchedWaking {
                task: victim(),
                target: CPU,
            },
        ),
        switch(1500, noise, victim()),
        stop(1600),
    ];
    assert_eq!(instants(&events), [(100, 0), (600, 0)]);
}

#[test]
fn a_followed_victim_shows_its_events_on_any_cpu() {
    let (noise, idle) = (task(200, "noise", 120), task(0, "swapper/1", 120));
    let wakes = |time, task| at(time, EventKind::SchedWaking { task, target: CPU });
    let events = [
        switch(900, idle, victim()),
        // The victim's own activity.
        stop(1050),
        switch(1100, victim(), noise),
        // Another thread's activity: only events that concern the victim are shown.
        stop(1150),
        wakes(1200, victim()),
        wakes(1250, task(201, "third", 120)),
        at(
            1300,
            EventKind::SchedMigrate {
                task: victim(),
                from: CPU,
                to: CPU,
            },
        ),
        switch(1400, noise, idle),
        // The idle thread's activity.
        stop(1500),
        switch(1600, idle, victim()),
        wakes(1700, noise),
    ];
    let moments: Vec<(u64, usize)> = rows(false, &events)
        .iter()
        .filter(|row| !is_frame(row))
        .map(|row| (row.start.0, row.depth))
        .collect();
    assert_eq!(moments, [(50, 1), (200, 1), (300, 1), (500, 1), (700, 1)]);
}

#[test]
fn a_frame_without_end_is_open_for_a_spinner_and_lasts_for_a_waiter() {
    let (noise, idle) = (task(200, "noise", 120), task(0, "swapper/1", 120));
    // The tick has not ended when the stall does.
    let events = [
        switch(1100, victim(), noise),
        enter(1800, "local_timer"),
        exit(2300, "local_timer"),
    ];
    assert_eq!(
        frames(true, &events),
        ["100..? noise", "  800..? local_timer"]
    );
    assert_eq!(
        frames(false, &events),
        [
            "0..100 not seen",
            "100..1000 noise",
            "  800..1000 local_timer"
        ]
    );
    // Its end was lost: another one begins.
    let lost = [
        enter(1100, "local_timer"),
        enter(1500, "local_timer"),
        exit(1600, "local_timer"),
    ];
    assert_eq!(
        frames(true, &lost),
        ["100..? local_timer", "500..600 local_timer"]
    );
    assert_eq!(
        frames(false, &[switch(900, idle, victim())]),
        ["0..1000 js-spin/1"]
    );
}

#[test]
fn outer_frames_come_first_and_empty_turns_have_no_row() {
    let (noise, third) = (task(200, "noise", 120), task(201, "third", 120));
    let events = [
        switch(1100, victim(), noise),
        switch(1500, noise, third),
        switch(1500, third, noise),
        enter(1500, "local_timer"),
        hrtimer(1500, 4),
        hrtimer_exit(1600),
        exit(1700, "local_timer"),
        switch(1900, noise, victim()),
    ];
    assert_eq!(
        frames(true, &events),
        [
            "100..500 noise",
            "500..900 noise",
            "  500..700 local_timer",
            "    500..600 hrtimer_wakeup"
        ]
    );
}

/// Two threads take turns so often that a recorder only keeps sums.
#[test]
fn a_crowded_stall_is_shown_turn_by_turn_and_each_tick_where_it_was() {
    const TURNS: u64 = 60_000;
    let (start, length) = (1000, 10);
    let crowd = [task(201, "crowd-a", 120), task(202, "crowd-b", 120)];
    let mut events = vec![switch(start, victim(), crowd[0])];
    for n in 1..TURNS {
        let time = start + n * length;
        if n % 250 == 0 {
            events.push(enter(time - 6, "local_timer"));
            events.push(exit(time - 4, "local_timer"));
        }
        let (prev, next) = (crowd[(n as usize + 1) % 2], crowd[n as usize % 2]);
        events.push(switch(time, prev, next));
    }
    let end = start + TURNS * length;
    events.push(switch(end, crowd[(TURNS as usize + 1) % 2], victim()));
    let stall = stall(start, end);
    let of = TimelineOf {
        stall: &stall,
        spins: false,
        producer: None,
    };
    let events = with_current(&events);
    let senders = Senders::new(TickRate::NANOSECONDS);
    let rows = timeline_rows(&of, &events, &senders, TickRate::NANOSECONDS, &Names);
    let of_depth = |depth| -> Vec<(u64, u64)> {
        let frames = rows
            .iter()
            .filter(|row| is_frame(row) && row.depth == depth);
        let times = frames.filter_map(|row| Some((row.start.0, row.end?.0)));
        times.filter(|(start, end)| start < end).collect()
    };
    let turns: Vec<(u64, u64)> = (0..TURNS).map(|n| (n * length, (n + 1) * length)).collect();
    assert!(of_depth(0) == turns, "{} turns", of_depth(0).len());
    let ticks: Vec<(u64, u64)> = (1..TURNS.div_ceil(250))
        .map(|n| n * 250 * length)
        .map(|at| (at - 6, at - 4))
        .collect();
    assert_eq!(of_depth(1), ticks);
}
