use super::super::{Episode, EpisodeKind, FollowerSettings, Following, Start};
use super::*;
use jitterscope_model::{Comm, EventKind, Name, Subject, Task, ThreadRef};
use std::sync::Arc;

#[path = "../../benches/support/crowd.rs"]
mod crowd;
use crowd::{Names, at, follower, task};

/// Threads 1 to `threads` take turns on one CPU, each preempted by the next, with ticks and idle time in between; some
/// are woken instead of preempted. Also returns the time of the last record.
fn crowd(threads: i32, turns: u64) -> (ThreadFollower, Ticks) {
    crowd_of(threads, &(1..=threads).collect::<Vec<i32>>(), turns)
}

/// The same, with only some of them followed.
fn crowd_of(threads: i32, followed: &[i32], turns: u64) -> (ThreadFollower, Ticks) {
    let mut follower = follower();
    for &tid in followed {
        let thread = ThreadRef {
            tid,
            comm: Comm::new("worker"),
        };
        follower.follow(
            Following {
                thread,
                role: None,
                start: Start::Asleep,
            },
            Ticks(0),
        );
    }
    let (mut time, mut on, mut next) = (1000, 0, 1);
    for tid in 1..=threads {
        time += 7;
        let kind = EventKind::SchedWaking {
            task: task(tid),
            target: CpuId(0),
        };
        follower.event(&at(time, 0, kind), &Names);
    }
    for turn in 0..turns {
        time += 100_000 + (turn * 7_919) % 900_000;
        // Some turns are idle, or a thread sleeps at its end and is woken in the next turn.
        let to = if turn % 11 == 5 { 0 } else { next };
        let state = u64::from(turn % 5 == 3 && on != 0);
        let kind = EventKind::SchedSwitch {
            prev: task(on),
            prev_state: state,
            next: task(to),
        };
        follower.event(&at(time, on, kind), &Names);
        if state != 0 {
            let kind = EventKind::SchedWaking {
                task: task(on),
                target: CpuId(0),
            };
            follower.event(&at(time + 3000, to, kind), &Names);
        }
        let vector: Name = "local_timer".into();
        follower.event(
            &at(
                time + 9000,
                to,
                EventKind::VectorEntry {
                    vector: vector.clone(),
                },
            ),
            &Names,
        );
        follower.event(
            &at(time + 9500, to, EventKind::SoftirqEntry { vec: 1 }),
            &Names,
        );
        follower.event(
            &at(time + 9900, to, EventKind::SoftirqExit { vec: 1 }),
            &Names,
        );
        follower.event(
            &at(time + 11_000, to, EventKind::VectorExit { vector }),
            &Names,
        );
        time += 20_000;
        on = to;
        if to != 0 {
            next = next % threads + 1;
        }
    }
    (follower, Ticks(time))
}

/// The content of an episode, without the numbers of its turns.
fn slices_of(episode: &Episode) -> Vec<(Ticks, Ticks, Culprit, Evidence, u32, bool)> {
    let before = std::iter::once(None).chain(episode.slices.iter().map(|slice| Some(slice.turn)));
    let slices = episode.slices.iter().zip(before);
    slices
        .map(|(slice, before)| {
            let (culprit, evidence) = ((**slice.culprit).clone(), slice.evidence.clone());
            (
                slice.start,
                slice.end,
                culprit,
                evidence,
                slice.sums,
                before == Some(slice.turn),
            )
        })
        .collect()
}

#[test]
fn waits_that_end_together_equal_waits_that_end_alone() {
    let (mut follower, end) = crowd(60, 500);
    follower.take_episodes();
    follower.now = end;
    let alone: BTreeMap<i32, Episode> = (1..=60)
        .filter_map(|tid| Some((tid, follower.under_way(tid, end, &Names)?)))
        .collect();
    assert!(alone.len() > 50, "{}", alone.len());
    // Waits that ended earlier may have been too many to be reported in order.
    let before = follower.folded();
    follower.finish(end, &Names);
    // The last thread on the CPU was interrupted in its turn; that is not a wait.
    let waits = follower
        .take_episodes()
        .into_iter()
        .filter(|episode| episode.kind != EpisodeKind::Interrupted);
    let together: BTreeMap<i32, Episode> =
        waits.map(|episode| (episode.thread.tid, episode)).collect();
    assert_eq!(together.len(), alone.len());
    for (tid, alone) in &alone {
        let together = &together[tid];
        assert_eq!(
            (together.start, together.end, together.kind),
            (alone.start, alone.end, alone.kind)
        );
        assert_eq!(slices_of(together), slices_of(alone), "thread {tid}");
    }
    assert_eq!(follower.folded(), before);
}

#[test]
fn a_crowd_that_waits_at_the_end_has_bounded_cost_and_exact_sums() {
    let (mut follower, end) = crowd(4000, 3000);
    follower.take_episodes();
    follower.now = end;
    let alone = follower.under_way(3999, end, &Names).unwrap();
    follower.finish(end, &Names);
    let episodes = follower.take_episodes();
    assert!(episodes.len() > 3900, "{}", episodes.len());
    let slices: usize = episodes.iter().map(|episode| episode.slices.len()).sum();
    // Each alone would have thousands.
    assert!(slices < 2 * MOST_SLICES, "{slices} slices");
    assert!(alone.slices.len() > 5000, "{}", alone.slices.len());
    for episode in &episodes {
        let fills = episode
            .slices
            .windows(2)
            .all(|pair| pair[0].end == pair[1].start);
        let (first, last) = (
            &episode.slices[0],
            &episode.slices[episode.slices.len() - 1],
        );
        assert!(
            fills && (first.start, last.end) == (episode.start, episode.end),
            "{episode:?}"
        );
    }
    // Everything but single threads is exact to the tick, and so is the sum of all threads.
    let sums = |episode: &Episode| {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for slice in &episode.slices {
            let what = slice.culprit.subject.name().into_owned();
            *sums.entry(what).or_default() += slice.end.since(slice.start).0;
        }
        sums
    };
    let together = episodes
        .iter()
        .find(|episode| episode.thread.tid == 3999)
        .unwrap();
    assert_eq!(sums(together), sums(&alone));
    let turns = |episode: &Episode| -> u32 { episode.slices.iter().map(Slice::turns).sum() };
    assert_eq!(turns(together), turns(&alone));
    assert!(
        follower.folded() > Ticks(0),
        "that only sums are kept is counted"
    );
}

/// The oldest activity was folded into sums while they waited.
#[test]
fn folded_time_equals_that_of_waits_that_end_alone() {
    // These have no turn, or one in the first third.
    let followed: Vec<i32> = (19_999..=20_000).chain(4_001..=4_002).collect();
    let (mut alone, end) = crowd_of(20_000, &followed, 12_500);
    for tid in &followed {
        alone.end_wait(*tid, end, &Names);
    }
    let (mut together, _) = crowd_of(20_000, &followed, 12_500);
    together.finish(end, &Names);
    let slices: Vec<usize> = together
        .take_episodes()
        .iter()
        .map(|episode| episode.slices.len())
        .collect();
    assert!(
        slices
            .iter()
            .all(|slices| *slices < MOST_SLICES / followed.len()),
        "sums are reported: {slices:?}"
    );
    assert!(alone.folded() > Ticks(0));
    assert_eq!(together.folded(), alone.folded());
}

/// Turns of threads by their ids, ten ticks each, one after the other.
fn turns_of(tids: &[i32]) -> Vec<Slice> {
    let slice = |(turn, tid): (usize, &i32)| {
        let culprit = Culprit::from(Subject::Thread(Task {
            tid: Some(*tid),
            ..Task::default()
        }));
        let (start, evidence) = (Ticks(10 * turn as u64), Evidence::ThreadRecords);
        Slice {
            start,
            end: start + Ticks(10),
            culprit: Arc::new(culprit.into()),
            evidence,
            turn,
            sums: 0,
        }
    };
    tids.iter().enumerate().map(slice).collect()
}

fn tail(share: usize, own: u64) -> Tail {
    let folded = vec![(Ticks(10), Ticks(5)), (Ticks(20), Ticks(7))];
    // The slice at 10 continues the turn that began at 0.
    Tail::new(
        Seen {
            slices: turns_of(&[1, 2, 1, 3]),
            turns: vec![0, 2, 3],
            folded,
        },
        share,
        Ticks(own),
    )
}

#[test]
fn waits_share_turns_once_both_are_surely_queued() {
    let common_from = |from| {
        tail(9, 5)
            .common_from(Ticks(from))
            .map(|(first, at)| (first, at.0))
    };
    assert_eq!(
        [0, 15, 16, 25, 26].map(common_from),
        [
            Some((2, 20)),
            Some((2, 20)),
            Some((3, 30)),
            Some((3, 30)),
            None
        ]
    );
    let folded_from = |from| tail(9, 5).folded_from(Ticks(from)).0;
    assert_eq!([0, 10, 11, 20, 21].map(folded_from), [12, 12, 7, 7, 0]);
}

#[test]
fn a_short_common_part_keeps_its_order_and_a_long_one_becomes_sums() {
    let mut tail = tail(2, 0);
    let reported = |common: Common| {
        let slices = common.slices.iter().map(|slice| {
            let tid = slice
                .culprit
                .subject
                .task()
                .and_then(|task| task.tid)
                .unwrap();
            (slice.start.0, slice.end.0, tid)
        });
        (slices.collect::<Vec<_>>(), common.summed)
    };
    assert_eq!(
        reported(tail.common(2)),
        (vec![(20, 30, 1), (30, 40, 3)], false)
    );
    // Later threads must be queried first.
    assert_eq!(
        reported(tail.common(1)),
        (vec![(10, 20, 1), (20, 30, 2), (30, 40, 3)], true)
    );
    assert_eq!(
        reported(tail.common(0)),
        (vec![(0, 20, 1), (20, 30, 2), (30, 40, 3)], true)
    );
}
