//! Where a moment lies on a timeline.

use crate::common::*;
use jitterscope_attribute::{Senders, TimelineOf, timeline_rows};
use jitterscope_model::{EventKind, KernelEvent, TickRate, TimelineItem};

/// (start within the stall, depth) of what is no frame.
fn instants(events: &[KernelEvent]) -> Vec<(u64, usize)> {
    let stall = stall(1000, 2000);
    let of = TimelineOf { stall: &stall, spins: true, producer: None };
    let events = with_current(events);
    let senders = Senders::new(TickRate::NANOSECONDS);
    let rows = timeline_rows(&of, &events, &senders, TickRate::NANOSECONDS, &Names);
    let instants = rows.iter().filter(|row| !matches!(row.item, TimelineItem::Frame { .. }));
    instants.map(|row| (row.start.0, row.depth)).collect()
}

fn stop(time: u64) -> KernelEvent {
    at(time, EventKind::TickStop { success: true, dependency: 0 })
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
        [(100, 0), (101, 1), (200, 1), (250, 2), (300, 1), (399, 1), (400, 0), (500, 0)]
    );
}

#[test]
fn only_moments_of_the_stall_are_shown_its_ends_among_them() {
    assert_eq!(instants(&[999, 1000, 2000, 2001].map(stop)), [(0, 0), (1000, 0)]);
}
