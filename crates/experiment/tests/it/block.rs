//! Experiments without interleaving, because the undoing takes too long.

use crate::fakes;

use fakes::{Bench, Fake, experiment, session};
use jitterscope_experiment::{Arm, BootArm, Ended, InForceIn, Verified, VoidReason};
use jitterscope_model::Nanos;

#[test]
fn what_takes_too_long_to_undo_is_not_interleaved() {
    let mut machine = Fake {
        undoing: InForceIn::Within(Nanos(2)),
        ..Fake::new()
    };
    let (mut bench, mut session) = (Bench::of(&machine, 6), session());
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!((outcome.interleaved, outcome.pairs), (false, 8));
    assert_eq!(machine.done.borrow()[..], ["apply", "revert"]);
    assert_eq!(bench.arms[..8], [Arm::A; 8]);
}

/// Runs without the change stay; after a break the change is made again before more runs with it.
#[test]
fn blocks_resume_where_they_stopped_unless_the_machine_rebooted() {
    let slow = || Fake {
        undoing: InForceIn::Within(Nanos(2)),
        ..Fake::new()
    };
    for (stopped, had) in [(3, [3, 0]), (8, [8, 0]), (11, [8, 3])] {
        let mut machine = slow();
        let (mut bench, mut session) = (Bench::of(&machine, 6), session());
        bench.stop_after = Some(stopped);
        let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
        assert_eq!(
            (outcome.ended, outcome.interleaved, session.block.len()),
            (Ended::Stopped, false, stopped)
        );
        assert!(!machine.applied.get());
        (bench.stop_after, bench.arms) = (None, Vec::new());
        let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
        assert_eq!(
            (outcome.ended, outcome.pairs, outcome.left_out_runs),
            (Ended::LastLook, 8, 0)
        );
        let of = |arm: Arm| bench.arms.iter().filter(|made| **made == arm).count();
        assert_eq!([of(Arm::A), of(Arm::B)], [8 - had[0], 8 - had[1]]);
        // Nothing has a verdict: whatever drifted meanwhile is in every difference.
        assert_eq!(
            (outcome.verified, &outcome.decisions[..]),
            (Verified::Undecided, &[][..])
        );
        assert!(!machine.applied.get());
    }
    // Everything that a reboot changes would be part of the difference.
    let mut machine = slow();
    let (mut bench, mut session) = (Bench::of(&machine, 6), session());
    bench.stop_after = Some(10);
    experiment(&mut machine, &mut bench, &mut session).unwrap();
    (bench.stop_after, bench.arms) = (None, Vec::new());
    session.boot_id = "the next".into();
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.pairs, bench.arms.len()),
        (Ended::LastLook, 8, 16)
    );
    assert_eq!(outcome.left_out_runs, 10);
}

/// A run without names is made again, and also counts as void after a break.
#[test]
fn void_runs_stay_void_after_a_break() {
    let mut machine = Fake {
        undoing: InForceIn::Within(Nanos(2)),
        ..Fake::new()
    };
    let (mut bench, mut session) = (Bench::of(&machine, 11), session());
    (bench.lost, bench.stop_after) = (vec![1, 2], Some(4));
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!((outcome.ended, outcome.void.len()), (Ended::Stopped, 2));
    (bench.stop_after, bench.arms, bench.lost) = (None, Vec::new(), vec![0, 1, 2]);
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.void.len(), bench.arms.len()),
        (Ended::Void, 5, 3)
    );
}

/// Only the arm with the change is checked: it is not seen, which is no void run.
#[test]
fn a_change_that_is_not_seen_to_be_in_force_is_reported_as_that() {
    let (undoing, settles) = (InForceIn::Within(Nanos(2)), InForceIn::Within(Nanos(1_000)));
    let mut machine = Fake {
        undoing,
        settles,
        seen: Some(|arm, _| arm == Arm::A),
        ..Fake::new()
    };
    let (mut bench, mut session) = (Bench::of(&machine, 6), session());
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.interleaved, bench.arms.len()),
        (Ended::Unseen, false, 8)
    );
    assert_eq!(
        outcome.void,
        [VoidReason::NotInForce {
            arm: Arm::B,
            within_ns: Nanos(1_000)
        }]
    );
    assert!(!machine.applied.get());
    // Runs without it stay.
    (machine.seen, bench.arms) = (None, Vec::new());
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.void.len(), bench.arms.len()),
        (Ended::LastLook, 0, 8)
    );
}

/// The arm without the change is from one boot, the arm with it from a later one.
#[test]
fn across_a_reboot_each_boot_makes_its_arm() {
    let boot = |arm| Fake {
        undoing: InForceIn::Unknown,
        boot: arm,
        ..Fake::new()
    };
    let mut machine = boot(BootArm::Without);
    let (mut bench, mut session) = (Bench::of(&machine, 6), session());
    session.boot_id = "first".into();
    bench.stop_after = Some(5);
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!((outcome.ended, session.block.len()), (Ended::Stopped, 5));
    // A reboot without the change: the earlier boot's runs do not count for this one.
    session.boot_id = "second".into();
    (bench.stop_after, bench.arms) = (None, Vec::new());
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.across_reboot, bench.arms.len()),
        (Ended::AwaitsReboot, true, 8)
    );
    assert_eq!(outcome.left_out_runs, 5);
    assert!(
        machine.done.borrow().is_empty(),
        "nothing is changed but by a reboot"
    );
    // Running it again measures nothing.
    bench.arms = Vec::new();
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!((outcome.ended, bench.arms.len()), (Ended::AwaitsReboot, 0));
    // Two boots with it: the first has only some of the runs, which are left out.
    session.boot_id = "third".into();
    let mut machine = boot(BootArm::With);
    bench.machine = machine.clone();
    bench.stop_after = Some(2);
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!((outcome.ended, outcome.left_out_runs), (Ended::Stopped, 0));
    session.boot_id = "fourth".into();
    (bench.stop_after, bench.arms) = (None, Vec::new());
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.pairs, outcome.across_reboot),
        (Ended::LastLook, 8, true)
    );
    assert_eq!(bench.arms, [Arm::B; 8]);
    assert_eq!(outcome.left_out_runs, 2);
    assert_eq!(
        (outcome.verified, &outcome.decisions[..]),
        (Verified::Undecided, &[][..])
    );
}

#[test]
fn across_a_reboot_too_few_runs_without_the_change_cannot_be_made_up_for() {
    let mut machine = Fake {
        undoing: InForceIn::Unknown,
        ..Fake::new()
    };
    machine.boot = BootArm::Without;
    let (mut bench, mut session) = (Bench::of(&machine, 6), session());
    bench.stop_after = Some(3);
    experiment(&mut machine, &mut bench, &mut session).unwrap();
    machine.boot = BootArm::With;
    session.boot_id = "next".into();
    (bench.stop_after, bench.arms) = (None, Vec::new());
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!((outcome.ended, bench.arms.len()), (Ended::Unseen, 0));
    assert_eq!(
        outcome.void,
        [VoidReason::TooFewBeforeReboot { made: 3, wanted: 8 }]
    );
}
