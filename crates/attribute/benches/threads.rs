//! The cost of ending a recording in which many threads still wait for one CPU: `cargo bench -p jitterscope-attribute
//! --bench threads`. Uses synthetic records; prints one line of JSON.

use jitterscope_attribute::{FollowerSettings, Following, NameResolver, Start, ThreadFollower};
use jitterscope_model::{Comm, CpuId, EventKind, Name, ThreadRef, Ticks};
use std::time::Instant;

#[path = "support/crowd.rs"]
mod crowd;
use crowd::{Names, at, follower, task};

/// The number of turns on the CPU, as in two seconds.
const TURNS: u64 = 1500;

/// Seconds to end the recording, and the number of reported slices.
fn end(threads: i32) -> (f64, usize) {
    let mut follower = follower();
    for tid in 1..=threads {
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
        let kind = EventKind::SchedWaking {
            task: task(tid),
            target: CpuId(0),
        };
        follower.event(&at(1000 + tid as u64, 0, kind), &Names);
    }
    let (mut time, mut on) = (1_000_000, 0);
    for turn in 0..TURNS {
        let next = turn as i32 % threads + 1;
        let kind = EventKind::SchedSwitch {
            prev: task(on),
            prev_state: 0,
            next: task(next),
        };
        follower.event(&at(time, on, kind), &Names);
        let vector: Name = "local_timer".into();
        follower.event(
            &at(
                time + 500_000,
                next,
                EventKind::VectorEntry {
                    vector: vector.clone(),
                },
            ),
            &Names,
        );
        follower.event(
            &at(time + 506_000, next, EventKind::VectorExit { vector }),
            &Names,
        );
        (time, on) = (time + 1_300_000, next);
    }
    follower.take_episodes();
    let start = Instant::now();
    follower.finish(Ticks(time), &Names);
    let slices = follower
        .take_episodes()
        .iter()
        .map(|episode| episode.slices.len())
        .sum();
    (start.elapsed().as_secs_f64(), slices)
}

fn main() {
    let rows: Vec<String> = [1000, 4000, 20_000]
        .into_iter()
        .map(|threads| {
            let (seconds, slices) = end(threads);
            format!("\"seconds_{threads}\": {seconds:.4}, \"slices_{threads}\": {slices}")
        })
        .collect();
    println!("{{{}}}", rows.join(", "));
}
