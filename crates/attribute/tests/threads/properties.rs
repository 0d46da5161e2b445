//! For any records: nothing panics, and every nanosecond is assigned.

use crate::common::*;
use jitterscope_attribute::{FollowerSettings, MessageWindow, ThreadFollower};
use jitterscope_model::{
    CpuId, DrainTurn, EventKind, ExecutionContext, KernelAddr, KernelEvent, Nanos, SleepStack,
    StallId, ThrottledGroup, Ticks,
};
use proptest::prelude::*;

fn tid() -> impl Strategy<Value = i32> {
    prop::sample::select(vec![0, A, B, HOG, 400, 500])
}

fn kind() -> impl Strategy<Value = EventKind> {
    let state = prop::sample::select(vec![0, 0, 1, 2, 0x100, 16, 32]);
    prop_oneof![
        6 => (tid(), state, tid()).prop_map(|(prev, prev_state, next)| EventKind::SchedSwitch {
            prev: task(prev),
            prev_state,
            next: task(next),
        }),
        3 => (tid(), 0..3_u32).prop_map(|(t, cpu)| EventKind::SchedWaking { task: task(t), target: CpuId(cpu) }),
        2 => (tid(), 0..3_u32, 0..3_u32)
            .prop_map(|(t, from, to)| EventKind::SchedMigrate { task: task(t), from: CpuId(from), to: CpuId(to) }),
        1 => (tid(), any::<bool>()).prop_map(|(t, thread)| EventKind::TaskNew { tid: t, comm: comm(t), thread, into_cgroup: false }),
        1 => (tid(), 0..300_u64).prop_map(|(tid, runtime_ns)| EventKind::StatRuntime { tid, runtime_ns }),
        2 => Just(EventKind::VectorEntry { vector: "local_timer".into() }),
        2 => Just(EventKind::VectorExit { vector: "local_timer".into() }),
        1 => Just(EventKind::SoftirqEntry { vec: 3 }),
        1 => Just(EventKind::SoftirqExit { vec: 3 }),
        1 => (2..5_u64).prop_map(|function| EventKind::HrtimerEntry {
            hrtimer: 7,
            function: KernelAddr(function),
            now: Nanos(0),
        }),
        1 => Just(EventKind::HrtimerExit { hrtimer: 7 }),
        1 => (tid(), tid(), tid())
            .prop_map(|(tid, old, new)| EventKind::TaskRename { tid, old: comm(old), comm: comm(new) }),
        1 => (0..300_u64).prop_map(|delta_ns| EventKind::NmiHandler {
            handler: jitterscope_model::KernelAddr(9),
            delta_ns,
        }),
    ]
}

/// For the inner and the outer group: the throttled time, and how often.
type Throttled = (u64, u64, u64);

fn counted(at: u64, (inner, outer, times): Throttled) -> DrainTurn {
    let group = |cgroup: &str, throttled_us| ThrottledGroup {
        cgroup: cgroup.into(),
        quota_us: 20_000,
        period_us: 100_000,
        times,
        throttled_us,
        changed: false,
    };
    let groups = |levels: &[&str]| levels.iter().map(|level| (*level).into()).collect();
    DrainTurn {
        quotas_read: Ticks(at),
        members: vec![(A, groups(&["/a/b", "/a"])), (B, groups(&["/a"]))],
        throttled: vec![group("/a/b", inner), group("/a", outer)],
        ..DrainTurn::default()
    }
}

type Step = (u64, u32, i32, EventKind, bool, Option<Throttled>);

fn events() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        (
            0..40_u64,
            0..3_u32,
            tid(),
            kind(),
            prop::bool::weighted(0.03),
            prop::option::weighted(0.2, (0..60_000_u64, 0..60_000_u64, 0..2_u64)),
        ),
        0..200,
    )
}

proptest! {
    #[test]
    fn time_is_conserved(
        steps in events(),
        from in 0..500_u64,
        scale in prop::sample::select(vec![1, 200_000]),
        one_cpu in any::<bool>(),
    ) {
        let switches = one_cpu.then(|| [CpuId(1)].into_iter().collect());
        let mut follower = ThreadFollower::new(FollowerSettings { stacks: true, switches, ..settings() });
        follower.measure(Ticks(from), Ticks(u64::MAX));
        follow(&mut follower, A);
        follow(&mut follower, B);
        let mut now = 0;
        for (gap, cpu, current, kind, loss, quotas) in steps {
            now += gap * scale;
            if let Some(throttled) = quotas {
                follower.quotas(&counted(now + 20 * scale, throttled));
            }
            if loss {
                follower.lost(CpuId(cpu), (Ticks(now), Ticks(now + 5)), jitterscope_model::Verdict::TraceDataLost, &Names);
            }
            let context = ExecutionContext::ALL[now as usize % 4];
            let event = KernelEvent { time: Ticks(now), cpu: CpuId(cpu), tid: current, context, kind };
            follower.event(&event, &Names);
            // Two of three stacks are there, whether a thread is followed, sleeps or neither.
            if let EventKind::SchedSwitch { prev, .. } = event.kind && now % 3 > 0 {
                let frames = vec![KernelAddr(1000 + now % 5)];
                let stack = SleepStack { time: Ticks(now), cpu: CpuId(cpu), tid: prev.tid, frames };
                follower.stack(&stack, &Names);
            }
        }
        let window = MessageWindow {
            intended: Ticks(now / 3),
            published: Ticks(now / 2),
            received: Ticks(now),
            published_before: Ticks(now / 3),
            received_before: Ticks(now * 3 / 4),
            waited: Ticks(now / 10),
            in_kernel: now % 2 == 0,
        };
        let split = follower.split(StallId(0), (A, B), &window, &Names);
        prop_assert_eq!(split.total(), Nanos(now - now / 3));
        let accounts = follower.finish(Ticks(now + 50), &Names);
        for a in &accounts {
            let sum = a.followed_ns();
            prop_assert_eq!(sum.0, a.until.since(a.from).0, "{:?}", a);
            prop_assert!(a.preempted_ns <= a.waiting_ns && a.interrupted_ns <= a.running_ns, "{:?}", a);
            let on_cpus: Nanos = a.cpus.iter().map(|share| share.running_ns).sum();
            prop_assert_eq!(on_cpus, a.running_ns);
            let blocked: Nanos = a.blocked_on.iter().map(|row| row.blocked_ns).sum();
            prop_assert_eq!(blocked, a.blocked_ns);
        }
        for episode in follower.take_episodes() {
            let mut at = episode.start;
            for slice in &episode.slices {
                prop_assert_eq!(slice.start, at);
                at = slice.end;
            }
            prop_assert_eq!(at, episode.end);
            let (stall, attribution) = episode.as_stall(StallId(1), jitterscope_model::TickRate::NANOSECONDS);
            prop_assert_eq!(attribution.total().0, stall.length().0);
        }
    }
}
