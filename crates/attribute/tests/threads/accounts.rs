//! What an account says of a thread, all of it.

use crate::common::*;
use jitterscope_attribute::{Following, Start, ThreadFollower};
use jitterscope_model::{CpuId, EventKind, KernelEvent, Nanos, ThreadRef, Ticks};

fn fault(time: u64, tid: i32) -> KernelEvent {
    at(time, 1, tid, EventKind::PageFault { user: true, address: 1, ip: 2 })
}

#[test]
fn an_account_tells_what_became_of_all_its_time() {
    let mut follower = ThreadFollower::new(settings());
    follower.measure(Ticks(0), Ticks(u64::MAX));
    let thread = ThreadRef { tid: A, comm: comm(A) };
    follower.follow(Following { thread, role: Some("producer"), start: Start::Asleep }, Ticks(0));
    let mut events = vec![switch(100, 1, 0, 1, A), fault(150, A), fault(160, A)];
    events.extend(tick(200, 230, 1, A));
    events.extend([
        switch(300, 1, A, 0, HOG),
        // Not its own.
        fault(350, HOG),
        switch(450, 1, HOG, 1, A),
        switch(500, 1, A, 1, HOG),
        waking(600, 0, 0, A, 2),
        switch(660, 2, 0, 1, A),
    ]);
    events.iter().for_each(|event| follower.event(event, &Names));
    let account = follower.finish(Ticks(800), &Names).remove(0);
    assert_eq!((account.tid, account.comm.as_str(), account.role.as_deref()), (A, "a", Some("producer")));
    assert_eq!((account.from, account.until), (Ticks(0), Ticks(800)));
    assert_eq!((account.appeared, account.exited), (false, false));
    assert_eq!(
        [account.running_ns, account.interrupted_ns, account.waiting_ns, account.preempted_ns],
        [Nanos(200 + 50 + 140), Nanos(30), Nanos(150 + 60), Nanos(150)]
    );
    assert_eq!((account.blocked_ns, account.unknown_ns), (Nanos(100 + 100), Nanos::ZERO));
    assert_eq!(account.longest_wait_ns, Nanos(150));
    assert_eq!((account.page_faults, account.migrations), (2, 1));
    assert_eq!((account.runs, account.voluntary_switches, account.involuntary_switches), (3, 1, 1));
    let cpus: Vec<(CpuId, u64, Nanos)> =
        account.cpus.iter().map(|share| (share.cpu, share.runs, share.running_ns)).collect();
    assert_eq!(cpus, [(CpuId(1), 2, Nanos(250)), (CpuId(2), 1, Nanos(140))]);
    let total: Nanos = account.ran_instead.iter().map(|row| row.total_ns).sum();
    assert_eq!(total, Nanos(30 + 150 + 60));
}

#[test]
fn a_switch_that_left_no_record_is_counted_unless_records_were_lost() {
    let first = switch(100, 1, 0, 1, A);
    let mut follower = run(&[A], std::slice::from_ref(&first));
    assert!(follower.unrecorded_switches().is_empty());
    tick(300, 310, 1, HOG).iter().for_each(|event| follower.event(event, &Names));
    assert_eq!(follower.unrecorded_switches().into_iter().collect::<Vec<_>>(), [(CpuId(1), 1)]);
    let mut follower = run(&[A], &[first]);
    follower.lost(CpuId(1), Ticks(150), Ticks(250), &Names);
    tick(300, 310, 1, HOG).iter().for_each(|event| follower.event(event, &Names));
    assert!(follower.unrecorded_switches().is_empty());
}
