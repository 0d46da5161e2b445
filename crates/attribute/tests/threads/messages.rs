//! Splitting a slow message.

use crate::common::*;
use jitterscope_attribute::{
    FollowerSettings, MessageWindow, Senders, ThreadFollower, TimelineOf, timeline_rows,
};
use jitterscope_model::{
    CpuId, KernelEvent, Stall, StallId, ThreadRef, TickRate, Ticks, TimelineItem, TimelineRow,
};

fn split(follower: &jitterscope_attribute::ThreadFollower, window: MessageWindow) -> Vec<String> {
    let attribution = follower.split(StallId(0), (A, B), &window, &Names);
    let whole = window.received.0 - window.intended.0;
    assert_eq!(attribution.total().0, whole);
    attribution
        .parts
        .iter()
        .map(|part| {
            let phase = part.phase.as_ref().unwrap();
            let moved = part
                .moved_from
                .map_or_else(String::new, |cpu| format!(" from {cpu}"));
            format!(
                "{phase}{moved}: {} {}",
                part.culprit.subject.name(),
                part.net.0
            )
        })
        .collect()
}

fn window(times: [u64; 6]) -> MessageWindow {
    let [
        intended,
        published,
        received,
        published_before,
        received_before,
        waited,
    ] = times.map(Ticks);
    MessageWindow {
        intended,
        published,
        received,
        published_before,
        received_before,
        waited,
        in_kernel: false,
    }
}

/// A on CPU 0 and B on CPU 1; each is preempted once.
fn machine() -> jitterscope_attribute::ThreadFollower {
    let mut events = vec![
        switch(0, 0, 0, 0, A),
        switch(0, 1, 0, 0, B),
        switch(1000, 0, A, 0, HOG),
        switch(2000, 0, HOG, 1, A),
        switch(5000, 1, B, 0, 400),
        switch(6000, 1, 400, 1, B),
    ];
    events.extend(tick(7000, 7100, 1, B));
    run(&[A, B], &events)
}

#[test]
fn the_producers_stall_and_its_catching_up() {
    let reported = split(&machine(), window([900, 2500, 2600, 2200, 2300, 0]));
    assert_eq!(
        reported,
        [
            // From 900 to 1000 and from 2000 to 2200 it processed earlier messages.
            "queueing: earlier messages 300",
            "producer stalled: hog 1000",
            "unexplained: no record 400",
        ]
    );
}

#[test]
fn the_consumers_absence_its_interrupts_and_its_queue() {
    let reported = split(&machine(), window([5500, 5500, 6400, 5400, 6300, 0]));
    assert_eq!(
        reported,
        [
            "consumer not running: kworker/1:0 500",
            "queueing: earlier messages 300",
            "unexplained: no record 100"
        ]
    );
    let reported = split(&machine(), window([6990, 6990, 7150, 6900, 6910, 0]));
    assert_eq!(
        reported,
        [
            "unexplained: no record 60",
            "consumer interrupted: local_timer 100"
        ]
    );
}

#[test]
fn what_holds_up_the_producers_call_delays_the_message_in_it() {
    let through = |in_kernel, times| {
        let window = MessageWindow {
            in_kernel,
            ..window(times)
        };
        split(&machine(), window)
    };
    // Published at 900; the producer, within its call, was preempted from 1000 to 2000.
    let times = [900, 900, 2100, 800, 950, 0];
    assert_eq!(
        through(true, times),
        [
            "queueing: earlier messages 50",
            "unexplained: no record 150",
            "delivery: hog 1000",
        ]
    );
    assert_eq!(
        through(false, times),
        [
            "queueing: earlier messages 50",
            "unexplained: no record 1150"
        ]
    );
    // Where the consumer does not look for the message, the producer holds up nothing.
    let busy = [900, 900, 2100, 800, 1900, 0];
    assert_eq!(
        through(true, busy),
        [
            "queueing: earlier messages 1000",
            "delivery: hog 100",
            "unexplained: no record 100",
        ]
    );
}

#[test]
fn a_full_ring_is_the_consumers_doing_where_it_did_not_run() {
    let reported = split(&machine(), window([4800, 6200, 6300, 4700, 6200, 1400]));
    assert_eq!(
        reported,
        [
            "ring full: ring full 400",
            "consumer not running: kworker/1:0 1000",
            "unexplained: no record 100",
        ]
    );
}

#[test]
fn a_message_near_lost_records_gets_no_verdict() {
    let mut follower = machine();
    follower.lost(
        jitterscope_model::CpuId(1),
        (Ticks(8000), Ticks(8100)),
        jitterscope_model::Verdict::TraceDataLost,
        &Names,
    );
    let reported = split(&follower, window([8050, 8060, 8200, 7000, 7001, 0]));
    assert_eq!(reported.len(), 1);
    assert!(reported[0].starts_with("lost records"), "{reported:?}");
}

#[test]
fn a_wait_whose_end_was_not_seen_still_counts() {
    let events = [
        switch(0, 0, 0, 0, A),
        switch(0, 1, 0, 0, B),
        switch(1000, 1, B, 0, HOG),
        switch(9000, 0, A, 0, HOG),
    ];
    let follower = run(&[A, B], &events);
    let reported = split(&follower, window([500, 500, 4000, 400, 450, 0]));
    assert_eq!(
        reported,
        [
            "unexplained: no record 500",
            "consumer not running: hog 3000"
        ]
    );
}

#[test]
fn messages_are_split_also_when_their_threads_have_ended() {
    let events = [
        switch(0, 0, 0, 0, A),
        switch(0, 1, 0, 0, B),
        switch(1000, 1, B, 0, HOG),
        switch(2000, 1, HOG, 0, B),
        switch(3000, 1, B, 16, 0),
        switch(3000, 0, A, 16, 0),
    ];
    let reported = split(
        &run(&[A, B], &events),
        window([900, 900, 2100, 800, 850, 0]),
    );
    assert_eq!(
        reported,
        [
            "unexplained: no record 200",
            "consumer not running: hog 1000"
        ]
    );
}

#[test]
fn a_consumer_that_was_moved_while_it_waited_says_from_where() {
    let events = [
        switch(0, 0, 0, 0, A),
        switch(0, 1, 0, 0, B),
        switch(1000, 1, B, 0, HOG),
        migrate(1500, 0, B, 1, 0),
        switch(2000, 0, A, 0, B),
    ];
    let reported = split(
        &run(&[A, B], &events),
        window([900, 900, 2100, 800, 850, 0]),
    );
    assert_eq!(
        reported,
        [
            "unexplained: no record 200",
            "consumer not running from 1: hog 500",
            "consumer not running from 1: a 500",
        ]
    );
}

/// `CPU start..end name` of each frame of B's timeline.
fn timeline(
    events: &[KernelEvent],
    (start, end): (u64, u64),
    producer: Option<i32>,
) -> Vec<String> {
    let victim = ThreadRef {
        tid: B,
        comm: comm(B),
    };
    let (start, end) = (Ticks(start), Ticks(end));
    let stall = Stall {
        id: StallId(0),
        cpu: CpuId(1),
        victim,
        start,
        end,
    };
    let of = TimelineOf {
        stall: &stall,
        spins: false,
        producer,
    };
    let reported = |row: TimelineRow| {
        let TimelineItem::Frame { culprit, .. } = row.item else {
            return "instant".into();
        };
        let cpu = row.cpu.map_or("-".into(), |cpu| cpu.to_string());
        let end = row.end.map_or("?".into(), |end| end.0.to_string());
        format!(
            "{cpu} {}{}..{end} {}",
            "  ".repeat(row.depth),
            row.start.0,
            culprit.subject.name()
        )
    };
    let rows = timeline_rows(
        &of,
        events,
        &Senders::new(TickRate::NANOSECONDS),
        TickRate::NANOSECONDS,
        &Names,
    );
    rows.into_iter().map(reported).collect()
}

#[test]
fn a_waits_timeline_begins_with_the_running_turn() {
    let mut events = vec![switch(10, 1, B, 1, HOG)];
    events.extend(tick(1100, 1200, 1, HOG));
    events.extend([switch(1500, 1, HOG, 0, 400), switch(1800, 1, 400, 1, B)]);
    assert_eq!(
        timeline(&events, (1000, 1800), None),
        [
            "- 0..500 hog",
            "-   100..200 local_timer",
            "- 500..800 kworker/1:0"
        ]
    );
}

#[test]
fn the_timeline_of_a_message_shows_both_its_threads_cpus() {
    let mut events = vec![
        switch(10, 0, 0, 0, A),
        switch(20, 1, 0, 0, B),
        // The producer is delayed, and still is when the message has been read.
        switch(1200, 0, A, 0, HOG),
        switch(1400, 1, B, 1, 0),
    ];
    events.extend(tick(1500, 1600, 1, 0));
    events.push(switch(1700, 1, 0, 0, B));
    assert_eq!(
        timeline(&events, (1000, 2000), Some(A)),
        [
            "1 0..400 b",
            "1 400..700 swapper",
            "1   500..600 local_timer",
            "1 700..1000 b",
            "0 0..200 a",
            "0 200..1000 hog",
        ]
    );
}

#[test]
fn a_waits_timeline_shows_the_cpus_before_and_after_it() {
    let moved = |time, to| {
        let events = [
            switch(5, 0, 0, 0, B),
            switch(20, 1, 0, 0, 400),
            switch(900, 0, B, 0, HOG),
            migrate(time, 2, B, 1 - to, to),
        ];
        timeline(&events, (1000, 2000), None)
    };
    let (here, there) = ("0..1000 kworker/1:0", "0..1000 hog");
    assert_eq!(moved(999, 1), [format!("- {here}")]);
    for (time, to) in [(999, 0), (1000, 1), (1500, 0)] {
        assert_eq!(
            moved(time, to),
            [format!("1 {here}"), format!("0 {there}")],
            "{time} {to}"
        );
    }
}

#[test]
fn a_producer_stopped_when_its_message_is_due_is_reported_stopped() {
    let reported = |published: u64| {
        let mut follower = run(&[A, B], &[switch(0, 0, 0, 0, A), switch(0, 1, 0, 0, B)]);
        follower.event(&switch(1000, 0, A, 4, 0), &Names);
        tick(3000, 3100, 1, HOG)
            .iter()
            .for_each(|event| follower.event(event, &Names));
        split(&follower, window([900, published, published, 900, 900, 0]))
    };
    assert_eq!(
        reported(2000),
        [
            "unexplained: no record 100",
            "producer stalled: stopped by a signal 1000"
        ]
    );
    // It was stopped after it had published.
    assert_eq!(reported(1000), ["unexplained: no record 100"]);
}

#[test]
fn what_a_thread_suffered_is_remembered_for_as_long_as_is_said() {
    let reported = |remember: u64, second: u64| {
        let settings = FollowerSettings {
            remember: Ticks(remember),
            ..settings()
        };
        let mut follower = ThreadFollower::new(settings);
        follower.measure(Ticks(0), Ticks(u64::MAX));
        follow(&mut follower, A);
        follow(&mut follower, B);
        for event in [
            switch(0, 0, 0, 0, A),
            switch(1000, 0, A, 0, HOG),
            switch(2000, 0, HOG, 1, A),
            switch(second, 0, A, 0, HOG),
            switch(second + 100, 0, HOG, 1, A),
        ] {
            follower.event(&event, &Names);
        }
        split(&follower, window([900, 2100, 2100, 900, 900, 0]))
    };
    let (whole, forgotten) = (
        ["unexplained: no record 200", "producer stalled: hog 1000"].as_slice(),
        ["unexplained: no record 1200"].as_slice(),
    );
    // The second wait ends 500 after the first, or 501.
    assert_eq!(reported(500, 2400), whole);
    assert_eq!(reported(500, 2401), forgotten);
    assert_eq!(reported(0, 2400), forgotten);
}
