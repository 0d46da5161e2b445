//! What followed threads waited for while they slept.

use crate::common::*;
use jitterscope_attribute::{FollowerSettings, Following, NameResolver, Start, ThreadFollower};
use jitterscope_model::{
    BlockReason, BlockedOn, CpuId, KernelAddr, KernelEvent, Name, Nanos, NoReason, SleepStack,
    ThreadRef, TickRate, Ticks,
};

/// Names of functions: those of `FUNCTIONS`, and numbered ones.
struct Functions;

const FUNCTIONS: [&str; 4] = ["schedule", "anon_pipe_read", "do_nanosleep", "0xffff"];
const SCHEDULE: u64 = 0;
const PIPE: u64 = 1;
const SLEEP: u64 = 2;
const NAMELESS: u64 = 3;

impl NameResolver for Functions {
    fn function(&self, addr: KernelAddr) -> Name {
        match FUNCTIONS.get(addr.0 as usize) {
            Some(name) => (*name).into(),
            None => format!("waits_for_{}", addr.0).into(),
        }
    }
    fn comm(&self, tid: i32) -> Option<Name> {
        Some(comm(tid).to_string().into())
    }
}

fn stack(time: u64, cpu: u32, tid: i32, frames: &[u64]) -> Step {
    Step::Stack(SleepStack {
        time: Ticks(time),
        cpu: CpuId(cpu),
        tid,
        frames: frames.iter().map(|addr| KernelAddr(*addr)).collect(),
    })
}

enum Step {
    Event(KernelEvent),
    Stack(SleepStack),
}

impl From<KernelEvent> for Step {
    fn from(event: KernelEvent) -> Step {
        Step::Event(event)
    }
}

/// What thread A was blocked on, followed from 0 to 1000.
fn blocked(settings: FollowerSettings, start: Start, steps: Vec<Step>) -> Vec<BlockedOn> {
    let mut follower = ThreadFollower::new(settings);
    follower.measure(Ticks(0), Ticks(u64::MAX));
    let thread = ThreadRef {
        tid: A,
        comm: comm(A),
    };
    let following = Following {
        thread,
        role: None,
        start,
    };
    follower.follow(following, Ticks(0));
    for step in steps {
        match step {
            Step::Event(event) => follower.event(&event, &Functions),
            Step::Stack(stack) => follower.stack(&stack, &Functions),
        }
    }
    let account = follower.finish(Ticks(1000), &Functions).remove(0);
    let sum: Nanos = account.blocked_on.iter().map(|row| row.blocked_ns).sum();
    assert_eq!(sum, account.blocked_ns);
    account.blocked_on
}

fn with_stacks() -> FollowerSettings {
    FollowerSettings {
        stacks: true,
        ..settings()
    }
}

fn row(reason: BlockReason, function: Option<&str>, count: u64, of: (u64, u64)) -> BlockedOn {
    BlockedOn {
        reason,
        function: function.map(str::to_owned),
        unknown_because: None,
        count,
        blocked_ns: Nanos(of.0),
        max_ns: Nanos(of.1),
    }
}

fn unknown(why: NoReason, count: u64, of: (u64, u64)) -> BlockedOn {
    BlockedOn {
        unknown_because: Some(why),
        ..row(BlockReason::NotRecorded, None, count, of)
    }
}

#[test]
fn a_sleep_has_the_reason_of_its_stack() {
    let steps = vec![
        switch(100, 1, HOG, 0, A).into(),
        switch(110, 1, A, 1, HOG).into(),
        stack(112, 1, A, &[SCHEDULE, PIPE]),
        waking(210, 0, 0, A, 1).into(),
        switch(220, 1, HOG, 0, A).into(),
        // Another CPU wakes it before its stack is written.
        switch(230, 1, A, 1, HOG).into(),
        waking(260, 0, 0, A, 1).into(),
        stack(265, 1, A, &[SCHEDULE, PIPE]),
        switch(270, 1, HOG, 0, A).into(),
        switch(280, 1, A, 2, HOG).into(),
        stack(282, 1, A, &[SCHEDULE, SLEEP]),
    ];
    let found = blocked(with_stacks(), Start::Asleep, steps);
    let wanted = [
        row(BlockReason::Timer, Some("do_nanosleep"), 1, (720, 720)),
        row(BlockReason::Pipe, Some("anon_pipe_read"), 2, (130, 100)),
        unknown(NoReason::Before, 1, (100, 100)),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn a_sleep_without_its_own_stack_has_no_reason() {
    let steps = || {
        vec![
            switch(100, 1, HOG, 0, A).into(),
            switch(110, 1, A, 1, HOG).into(),
            // Of another CPU, and of another thread.
            stack(111, 0, A, &[PIPE]),
            stack(112, 1, B, &[PIPE]),
            waking(210, 0, 0, A, 1).into(),
            switch(220, 1, HOG, 0, A).into(),
            switch(300, 1, A, 1, HOG).into(),
            stack(301, 1, A, &[NAMELESS]),
        ]
    };
    let found = blocked(with_stacks(), Start::Unknown, steps());
    let wanted = [
        unknown(NoReason::NoNames, 1, (700, 700)),
        unknown(NoReason::Lost, 1, (100, 100)),
    ];
    // It was runnable before its first record.
    assert_eq!(found[..2], wanted);
    let found = blocked(
        settings(),
        Start::Unknown,
        steps().into_iter().take(3).collect(),
    );
    assert_eq!(found, [unknown(NoReason::Off, 1, (890, 890))]);
}

#[test]
fn a_stack_may_come_before_its_switch_but_not_long_before() {
    let of = |early: u64| {
        let steps = vec![
            switch(100, 1, HOG, 0, A).into(),
            stack(early, 1, A, &[SLEEP]),
            switch(2_000_500, 1, A, 1, HOG).into(),
            waking(2_000_600, 0, 0, A, 1).into(),
        ];
        let mut follower = ThreadFollower::new(with_stacks());
        follower.measure(Ticks(0), Ticks(u64::MAX));
        follow(&mut follower, A);
        for step in steps {
            match step {
                Step::Event(event) => follower.event(&event, &Functions),
                Step::Stack(stack) => follower.stack(&stack, &Functions),
            }
        }
        let account = follower.finish(Ticks(2_000_700), &Functions).remove(0);
        account.blocked_on[0].reason.clone()
    };
    assert_eq!(of(2_000_499), BlockReason::Timer);
    assert_eq!(of(200), BlockReason::NotRecorded);
}

#[test]
fn many_reasons_are_few_rows_and_their_times_still_sum() {
    let mut steps: Vec<Step> = vec![switch(1, 1, HOG, 0, A).into()];
    for n in 0..40 {
        let at = 10 + 20 * n;
        steps.push(switch(at, 1, A, 1, HOG).into());
        steps.push(stack(at + 1, 1, A, &[SCHEDULE, 100 + n]));
        steps.push(waking(at + 7 + n % 3, 0, 0, A, 1).into());
        steps.push(switch(at + 15, 1, HOG, 0, A).into());
    }
    let uneven = FollowerSettings {
        rate: TickRate {
            hz: 2_345_678_901,
            ..TickRate::NANOSECONDS
        },
        ..with_stacks()
    };
    let found = blocked(uneven, Start::Unknown, steps);
    assert_eq!(found.len(), 13);
    assert!(found.iter().all(|row| row.reason == BlockReason::Function));
    let without: Vec<_> = found.iter().filter(|row| row.function.is_none()).collect();
    assert_eq!(without.len(), 1, "{found:?}");
    assert_eq!(found.iter().map(|row| row.count).sum::<u64>(), 40);
}
