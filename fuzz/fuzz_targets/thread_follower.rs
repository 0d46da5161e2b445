//! Any records, in order of time, through the follower of threads: nothing panics, every nanosecond is
//! somebody's.
#![no_main]

use jitterscope_attribute::{
    FollowerSettings, Following, MessageWindow, NameResolver, Start, ThreadFollower,
};
use jitterscope_model::{
    Comm, CpuId, EventKind, ExecutionContext, KernelAddr, KernelEvent, Name, Nanos, SleepStack,
    StallId, TaskRef, ThreadRef, TickRate, Ticks, Verdict,
};
use libfuzzer_sys::fuzz_target;

struct Names;

impl NameResolver for Names {
    fn function(&self, addr: KernelAddr) -> Name {
        format!("f{}", addr.0).into()
    }
    fn comm(&self, tid: i32) -> Option<Name> {
        (tid % 3 != 0).then(|| comm(tid).to_string().into())
    }
}

fn comm(tid: i32) -> Comm {
    Comm::new(["swapper", "a", "b", "hog", "kworker/1:0", "met", "x", "y"][tid as usize % 8])
}

fn task(tid: i32) -> TaskRef {
    TaskRef {
        tid,
        comm: comm(tid),
        prio: 120,
    }
}

/// A record of these bytes.
fn kind([what, a, b, c]: [u8; 4]) -> EventKind {
    let tid = |byte: u8| i32::from(byte % 8);
    let cpu = |byte: u8| CpuId(u32::from(byte % 3));
    match what % 16 {
        0..=4 => {
            let prev_state = [0, 0, 1, 2, 0x100, 16, 32, u64::from(b) << 3][usize::from(b % 8)];
            EventKind::SchedSwitch {
                prev: task(tid(a)),
                prev_state,
                next: task(tid(c)),
            }
        }
        5..=7 => EventKind::SchedWaking {
            task: task(tid(a)),
            target: cpu(b),
        },
        8 | 9 => EventKind::SchedMigrate {
            task: task(tid(a)),
            from: cpu(b),
            to: cpu(c),
        },
        10 => EventKind::TaskNew {
            tid: tid(a),
            comm: comm(tid(b)),
            thread: c & 1 == 1,
            into_cgroup: false,
        },
        11 => EventKind::StatRuntime {
            tid: tid(a),
            runtime_ns: u64::from(u16::from_be_bytes([b, c])),
        },
        12 => EventKind::VectorEntry {
            vector: "local_timer".into(),
        },
        13 => EventKind::VectorExit {
            vector: "local_timer".into(),
        },
        14 if a & 1 == 0 => EventKind::SoftirqEntry {
            vec: u32::from(b % 10),
        },
        14 => EventKind::SoftirqExit {
            vec: u32::from(b % 10),
        },
        15 if a & 1 == 0 => EventKind::TaskRename {
            tid: tid(a >> 1),
            old: comm(tid(a >> 1)),
            comm: comm(tid(b)),
        },
        _ => EventKind::NmiHandler {
            handler: KernelAddr(9),
            delta_ns: u64::from(u16::from_be_bytes([b, c])),
        },
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some(([flags, from, until, joined], steps)) =
        bytes.split_first_chunk::<4>().map(|(h, s)| (*h, s))
    else {
        return;
    };
    let mut follower = ThreadFollower::new(FollowerSettings {
        rate: TickRate::NANOSECONDS,
        join_within: Ticks(u64::from(joined)),
        remember: Ticks(u64::from(flags >> 4) * 100),
        new_threads: flags & 1 == 1,
        children: flags & 2 == 2,
        names: vec![Comm::new("met")],
        user: None,
        most_threads: usize::from(flags >> 2 & 3) + 2,
        virtual_machine: from & 1 == 1,
        stacks: flags & 8 == 8,
        switches: (flags & 0x10 == 0x10).then(|| [CpuId(0)].into_iter().collect()),
    });
    let from = u64::from(from) * 4;
    let until = if until == 0 {
        u64::MAX
    } else {
        from + u64::from(until) * 16
    };
    follower.measure(Ticks(from), Ticks(until));
    for tid in [1, 2] {
        let start = if flags & 1 == 1 {
            Start::Unknown
        } else {
            Start::Asleep
        };
        follower.follow(
            Following {
                thread: ThreadRef {
                    tid,
                    comm: comm(tid),
                },
                role: None,
                start,
            },
            Ticks(0),
        );
    }
    let mut now = 0;
    let mut episodes = Vec::new();
    for (number, step) in steps.as_chunks::<7>().0.iter().enumerate() {
        let [gap, place, current, rest @ ..] = *step;
        now += u64::from(gap);
        let cpu = CpuId(u32::from(place % 3));
        if place > 250 {
            let lost = (Ticks(now), Ticks(now + u64::from(current)));
            follower.lost(cpu, lost, Verdict::TraceDataLost, &Names);
        }
        let event = KernelEvent {
            time: Ticks(now),
            cpu,
            tid: i32::from(current % 8),
            context: ExecutionContext::from_flags(current),
            kind: kind(rest),
        };
        follower.event(&event, &Names);
        if flags & 8 == 8 && number % 3 > 0 {
            let stack = SleepStack {
                time: Ticks(now),
                cpu,
                tid: i32::from(current % 8),
                frames: vec![KernelAddr(u64::from(place))],
            };
            follower.stack(&stack, &Names);
        }
        if number % 16 == 15 {
            episodes.extend(follower.take_episodes());
            let window = MessageWindow {
                intended: Ticks(now / 3),
                published: Ticks(now / 2),
                received: Ticks(now),
                published_before: Ticks(now / 3),
                received_before: Ticks(now * 3 / 4),
                waited: Ticks(now / 10),
                in_kernel: number % 32 == 15,
            };
            let split = follower.split(StallId(0), (1, 2), &window, &Names);
            assert_eq!(split.total(), Nanos(now - now / 3));
        }
    }
    for a in follower.finish(Ticks(now + 50), &Names) {
        let sum = a.running_ns + a.waiting_ns + a.blocked_ns + a.unknown_ns;
        assert_eq!(sum.0, a.until.since(a.from).0, "{a:?}");
        assert!(
            a.preempted_ns <= a.waiting_ns && a.interrupted_ns <= a.running_ns,
            "{a:?}"
        );
        assert_eq!(
            a.cpus.iter().map(|share| share.running_ns).sum::<Nanos>(),
            a.running_ns
        );
        assert_eq!(
            a.blocked_on.iter().map(|row| row.blocked_ns).sum::<Nanos>(),
            a.blocked_ns
        );
    }
    episodes.extend(follower.take_episodes());
    for episode in episodes {
        let mut at = episode.start;
        assert!(
            episode.start >= Ticks(from) && episode.end <= Ticks(until),
            "{episode:?}"
        );
        for slice in &episode.slices {
            assert_eq!(slice.start, at, "{episode:?}");
            at = slice.end;
        }
        assert_eq!(at, episode.end, "{episode:?}");
    }
});
