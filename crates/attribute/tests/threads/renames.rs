//! Threads that are renamed while they have a CPU.

use crate::common::*;
use jitterscope_attribute::Episode;
use jitterscope_model::{Comm, EventKind, KernelEvent, Subject};

fn renamed(time: u64, cpu: u32, by: i32, tid: i32, names: [&str; 2]) -> KernelEvent {
    let [old, comm] = names.map(Comm::new);
    at(time, cpu, by, EventKind::TaskRename { tid, old, comm })
}

/// A switch away from a thread that has this name by now.
fn leaves(time: u64, tid: i32, comm: &str, next: i32) -> KernelEvent {
    let mut prev = task(tid);
    prev.comm = Comm::new(comm);
    let kind = EventKind::SchedSwitch {
        prev,
        prev_state: 1,
        next: task(next),
    };
    at(time, 1, tid, kind)
}

/// What had the CPU while A waited, and for how long.
fn reported(events: &[KernelEvent]) -> Vec<String> {
    let mut follower = run(&[A], events);
    let name = |subject: &Subject| {
        let was = subject.task().and_then(|task| task.was.clone());
        let was = was.map_or_else(String::new, |was| format!(" (was {was})"));
        format!("{}{was}", subject.name())
    };
    let episodes: Vec<Episode> = follower.take_episodes();
    follower.finish(jitterscope_model::Ticks(10_000_000), &Names);
    let episodes = episodes.into_iter().chain(follower.take_episodes());
    let slices: Vec<_> = episodes.flat_map(|episode| episode.slices).collect();
    let shown = slices.iter().map(|slice| {
        let length = slice.end.since(slice.start).0;
        format!("{} {length}", name(&slice.culprit.subject))
    });
    shown.collect()
}

#[test]
fn a_turn_is_parted_where_its_thread_takes_another_name() {
    let waits = |names: &[KernelEvent], last: &str| {
        let mut events = vec![switch(10, 1, 0, 0, A), switch(1000, 1, A, 0, HOG)];
        events.extend(names.iter().cloned());
        events.push(leaves(1340, HOG, last, A));
        reported(&events)
    };
    let once = [renamed(1300, 1, HOG, HOG, ["hog", "other"])];
    assert_eq!(waits(&once, "other"), ["hog 300", "other 40"]);
    // For each renaming, by any thread.
    let thrice = [
        renamed(1100, 1, HOG, HOG, ["hog", "x"]),
        renamed(1200, 0, 900, HOG, ["x", "hog"]),
        renamed(1300, 0, 900, HOG, ["hog", "y"]),
    ];
    assert_eq!(waits(&thrice, "y"), ["hog 100", "x 100", "hog 100", "y 40"]);
    // Without a record, it has both names.
    assert_eq!(waits(&[], "other"), ["other (was hog) 340"]);
    let late = [renamed(1300, 1, HOG, HOG, ["x", "y"])];
    assert_eq!(waits(&late, "y"), ["x (was hog) 300", "y 40"]);
    // Another thread's name does not affect it.
    let elsewhere = [renamed(1300, 0, B, B, ["b", "c"])];
    assert_eq!(waits(&elsewhere, "hog"), ["hog 340"]);
}

#[test]
fn what_is_under_way_goes_on_under_the_other_name() {
    let function = jitterscope_model::KernelAddr(2);
    let item = |time, kind| at(time, 1, 400, kind);
    let events = [
        switch(10, 1, 0, 0, A),
        switch(1000, 1, A, 0, 400),
        item(1010, EventKind::WorkStart { work: 9, function }),
        renamed(1200, 1, 400, 400, ["kworker/1:0", "kworker/1:0-x"]),
        item(1300, EventKind::WorkEnd { work: 9 }),
        leaves(1340, 400, "kworker/1:0-x", A),
    ];
    assert_eq!(
        reported(&events),
        ["vmstat_update 200", "vmstat_update 140"]
    );
    // Inside an interrupt its turn is not split.
    let [enters, leaves_it] = tick(1200, 1250, 1, HOG);
    let events = [
        switch(10, 1, 0, 0, A),
        switch(1000, 1, A, 0, HOG),
        enters,
        renamed(1220, 0, 900, HOG, ["hog", "other"]),
        leaves_it,
        leaves(1340, HOG, "other", A),
    ];
    assert_eq!(
        reported(&events),
        [
            "other (was hog) 200",
            "local_timer 50",
            "other (was hog) 90"
        ]
    );
}
