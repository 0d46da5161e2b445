//! Records of CPUs whose switches are not recorded: they show a thread there, but not since when and until when.

use crate::common::{Names, at, follow, migrate, settings, shown, switch, tick, waking};
use jitterscope_attribute::{FollowerSettings, ThreadFollower};
use jitterscope_model::{CpuId, EventKind, KernelEvent, Nanos, ThreadAccount, Ticks};

/// A sleeping thread's `prev_state`.
const SLEEPS: u64 = 1;
const A: i32 = 10;

/// Follows `A` through `events` from 0 to 1500; only the switches of CPU 1 are recorded. Returns its account and its
/// episodes.
fn followed(events: &[KernelEvent]) -> (ThreadAccount, Vec<String>) {
    let mut follower = ThreadFollower::new(FollowerSettings {
        switches: Some([CpuId(1)].into_iter().collect()),
        ..settings()
    });
    follower.measure(Ticks(0), Ticks(u64::MAX));
    follow(&mut follower, A);
    for event in events {
        follower.event(event, &Names);
    }
    let account = follower.finish(Ticks(1500), &Names).remove(0);
    let times = account.running_ns + account.waiting_ns + account.blocked_ns + account.unknown_ns;
    assert_eq!(times, Nanos(1500));
    assert!(follower.unrecorded_switches().is_empty());
    (account, shown(&follower.take_episodes()))
}

#[test]
fn a_record_on_a_cpu_without_switches_does_not_say_that_the_thread_keeps_it() {
    let events = [
        tick(200, 210, 0, A).to_vec(),
        vec![waking(400, 0, A, 20, 1)],
        tick(600, 610, 0, 30).to_vec(),
    ];
    let (account, episodes) = followed(&events.concat());
    assert_eq!(account.unknown_ns, Nanos(1500));
    assert!(episodes.is_empty(), "{episodes:?}");
}

#[test]
fn a_charge_on_a_cpu_without_switches_does_not_put_the_thread_there() {
    let charge = EventKind::StatRuntime {
        tid: A,
        runtime_ns: 100,
    };
    let (account, _) = followed(&[at(500, 0, A, charge)]);
    assert_eq!(account.unknown_ns, Nanos(1500));
}

#[test]
fn the_time_between_two_turns_on_a_cpu_with_switches_is_unknown_if_another_cpu_had_the_thread() {
    let sleeps = |time| switch(time, 1, A, SLEEPS, 0);
    let mut events = vec![
        switch(100, 1, 0, 0, A),
        sleeps(300),
        // The move to CPU 0 that follows is not recorded.
        waking(400, 0, 20, A, 1),
        waking(600, 0, A, 20, 1),
        migrate(900, 0, A, 0, 1),
        switch(950, 1, 0, 0, A),
        sleeps(1000),
    ];
    let (account, episodes) = followed(&events);
    assert_eq!(account.running_ns, Nanos(250));
    assert_eq!(account.blocked_ns, Nanos(600));
    assert_eq!(account.unknown_ns, Nanos(100 + 550));
    assert!(episodes.is_empty(), "{episodes:?}");
    // Only the way back shows that it was away.
    events.remove(3);
    assert_eq!(followed(&events), (account.clone(), episodes.clone()));
    // Neither does: it wakes up again.
    events[3] = waking(900, 0, 20, A, 1);
    let (account, episodes) = followed(&events);
    assert_eq!(
        (account.waiting_ns, account.unknown_ns),
        (Nanos(50), Nanos(600))
    );
    assert_eq!(episodes.len(), 1, "{episodes:?}");
}

#[test]
fn a_wait_that_moves_to_a_cpu_without_switches_ends_there() {
    let events = [
        switch(100, 1, 0, 0, A),
        switch(300, 1, A, 0, 20),
        migrate(420, 1, A, 1, 0),
    ];
    let (account, episodes) = followed(&events);
    assert_eq!(
        (account.running_ns, account.waiting_ns, account.unknown_ns),
        (Nanos(200), Nanos(120), Nanos(1180))
    );
    assert_eq!(episodes.len(), 1, "{episodes:?}");
}

#[test]
fn a_sleeper_that_moves_to_a_cpu_without_switches_slept_until_then() {
    let events = [
        switch(100, 1, 0, 0, A),
        switch(300, 1, A, SLEEPS, 0),
        migrate(400, 0, A, 1, 0),
    ];
    let (account, _) = followed(&events);
    assert_eq!(
        (account.blocked_ns, account.unknown_ns),
        (Nanos(100), Nanos(1200))
    );
}

#[test]
fn a_wait_that_no_switch_ends_may_have_ended_on_another_cpu() {
    let events = [switch(100, 1, 0, 0, A), switch(300, 1, A, 0, 20)];
    let (account, episodes) = followed(&events);
    assert_eq!(
        (account.running_ns, account.waiting_ns, account.unknown_ns),
        (Nanos(200), Nanos(0), Nanos(1300))
    );
    assert!(episodes.is_empty(), "{episodes:?}");
}
