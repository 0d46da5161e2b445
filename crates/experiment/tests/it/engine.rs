//! Experiments on a fake machine.

use crate::fakes;

use fakes::{Bench, Fake, RULES, experiment, experiment_by, session, session_of};
use jitterscope_analyze::compare::Verdict;
use jitterscope_experiment::{
    Arm, Asked, CommandChange, Ended, InForceIn, Rules, Verified, VoidReason, order,
};
use jitterscope_model::{Doubt, Nanos};
use std::time::Instant;

#[test]
fn what_the_knob_removes_is_verified_and_the_machine_is_put_back() {
    let mut machine = Fake::new();
    let (mut bench, mut session) = (Bench::of(&machine, 1), session());
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.pairs, outcome.interleaved),
        (Ended::Decided, 8, true)
    );
    assert_eq!(outcome.verified, Verified::Yes, "{:?}", outcome.decisions);
    let culprit = outcome
        .decisions
        .iter()
        .find(|d| d.what == Asked::Culprit("kworker vmstat_update".into()))
        .unwrap();
    assert_eq!((culprit.verdict, culprit.pairs), (Verdict::Better, 8));
    assert!(!machine.applied.get());
    // Each pair has one run of each arm, in the drawn order.
    let drawn: Vec<Arm> = (0..8).flat_map(|pair| order(11, pair)).collect();
    assert_eq!(bench.arms, drawn);
    assert_eq!(session.pairs.len(), 8);
}

#[test]
fn a_total_that_is_worse_is_not_verified_whatever_became_of_the_culprit() {
    let mut machine = Fake::new();
    let (mut bench, mut session) = (Bench::of(&machine, 2), session());
    // 0.02% becomes 0.2%: more than the margin of a tenth of a point.
    bench.costs = 10.0;
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(outcome.verified, Verified::No);
    assert!(
        outcome
            .decisions
            .iter()
            .any(|d| d.what == Asked::Total("total".into()) && d.verdict == Verdict::Worse)
    );
}

#[test]
fn a_pair_in_which_the_culprit_is_not_back_is_void() {
    let mut machine = Fake::new();
    let (mut bench, mut session) = (Bench::of(&machine, 3), session());
    bench.missing = vec![2, 5];
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.pairs, outcome.void.len(), session.pairs.len()),
        (8, 2, 10)
    );
    assert!(session.pairs[2].void.is_some() && session.pairs[5].void.is_some());
    // If it never reappears, the experiment ends.
    let (mut bench, mut session) = (Bench::of(&machine, 3), self::session());
    bench.missing = (1..100).collect();
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!((outcome.ended, outcome.pairs), (Ended::Void, 1));
}

#[test]
fn a_stopped_experiment_goes_on_where_it_was() {
    let mut machine = Fake::new();
    let (mut bench, mut session) = (Bench::of(&machine, 4), session());
    bench.stop_after = Some(7);
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.pairs, session.pairs.len()),
        (Ended::Stopped, 3, 3)
    );
    assert!(!machine.applied.get());
    bench.stop_after = None;
    bench.arms.clear();
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!((outcome.ended, outcome.pairs), (Ended::Decided, 8));
    assert_eq!(bench.arms.len(), 10, "five pairs more");
}

#[test]
fn a_change_that_fails_half_way_is_undone() {
    let mut machine = Fake {
        fails_at: Some(2),
        ..Fake::new()
    };
    let (mut bench, mut session) = (Bench::of(&machine, 5), session());
    let error = experiment(&mut machine, &mut bench, &mut session).unwrap_err();
    assert!(error.to_string().contains("half of it"), "{error}");
    assert!(!machine.applied.get());
    assert_eq!(machine.done.borrow().last(), Some(&"revert"));
}

/// A wrong name often fails in both commands, and the first says why.
#[test]
fn where_the_undoing_fails_too_both_commands_are_heard() {
    let machine = Fake::new();
    let says = |what: &str| format!("echo {what} >&2; exit 3");
    let mut change = CommandChange::new(&says("no such device"), &says("nothing to undo"), None);
    let (mut bench, mut session) = (Bench::of(&machine, 5), session());
    let error = experiment_by(RULES, &mut change, &mut bench, &mut session).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("no such device") && text.contains("nothing to undo"),
        "{text}"
    );
    assert!(error.leaves_the_change(), "{error:?}");
}

/// Each wait would take an hour.
#[test]
fn an_arm_begins_when_what_the_change_removes_is_seen_again() {
    let mut machine = Fake {
        settles: InForceIn::Within(Nanos(3_600_000_000_000)),
        ..Fake::new()
    };
    let (mut bench, mut session) = (Bench::of(&machine, 7), session());
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.pairs, outcome.interleaved),
        (Ended::Decided, 8, true)
    );
    let drawn: Vec<Arm> = (0..8).flat_map(|pair| order(11, pair)).collect();
    let undone = drawn
        .windows(2)
        .filter(|arms| arms == &[Arm::B, Arm::A])
        .count();
    assert_eq!(bench.looks, vec![Nanos(3_600_000_000_000); undone]);
}

/// Each wait would take an hour.
#[test]
fn an_arm_begins_when_what_shows_it_is_seen_and_is_asked_for_until_then() {
    let hour = InForceIn::Within(Nanos(3_600_000_000_000));
    let mut machine = Fake {
        settles: hour,
        seen: Some(|_, asked| asked % 2 == 0),
        ..Fake::new()
    };
    let (mut bench, mut session) = (Bench::of(&machine, 8), session());
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.pairs, outcome.interleaved),
        (Ended::Decided, 8, true)
    );
    assert!(outcome.void.is_empty() && bench.looks.is_empty());
    let drawn: Vec<Arm> = (0..8).flat_map(|pair| order(11, pair)).collect();
    // If the first arm is A, it is the machine as found.
    let first = drawn.first().filter(|arm| **arm == Arm::B).copied();
    let turns = drawn
        .windows(2)
        .filter(|arms| arms[0] != arms[1])
        .map(|arms| arms[1]);
    let twice: Vec<Arm> = first
        .into_iter()
        .chain(turns)
        .flat_map(|arm| [arm, arm])
        .collect();
    assert_eq!(*machine.asked.borrow(), twice);
}

#[test]
fn a_pair_is_void_where_an_arm_was_not_seen_to_be_in_force() {
    // It is never seen without the change again; a repeated check does not apply or revert again.
    let soon = InForceIn::Within(Nanos(1_000));
    let mut machine = Fake {
        settles: soon.clone(),
        seen: Some(|arm, _| arm == Arm::B),
        ..Fake::new()
    };
    let (mut bench, mut session) = (Bench::of(&machine, 9), session());
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!((outcome.ended, outcome.void.len()), (Ended::Void, 5));
    assert_eq!(
        outcome.void[0],
        VoidReason::NotInForce {
            arm: Arm::A,
            within_ns: Nanos(1_000)
        }
    );
    assert!(
        session
            .pairs
            .iter()
            .filter(|pair| pair.void.is_some())
            .all(|pair| pair.a.is_none() && pair.b.is_none())
    );
    assert!(!machine.applied.get());
    // An arm that was not seen to be in force is not measured; a session with such pairs can be resumed.
    let reverts = machine
        .done
        .borrow()
        .iter()
        .filter(|what| **what == "revert")
        .count();
    assert!(
        bench.arms.iter().filter(|arm| **arm == Arm::A).count() <= 1,
        "{:?}",
        bench.arms
    );
    assert!(reverts <= 6, "{reverts}");
    machine.seen = None;
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(outcome.void.len(), 5, "it was given up already");
    // The change is seen at the fourth check, in the second pair at the earliest.
    let mut machine = Fake {
        settles: soon,
        seen: Some(|_, asked| asked > 3),
        ..Fake::new()
    };
    let (mut bench, mut session) = (Bench::of(&machine, 10), self::session());
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!((outcome.ended, outcome.pairs), (Ended::Decided, 8));
    assert!(!outcome.void.is_empty() && session.pairs[0].void.is_some());
}

#[test]
fn a_pair_of_which_a_run_names_nobody_is_void() {
    let mut machine = Fake::new();
    for lost in 2..4 {
        let (mut bench, mut session) = (Bench::of(&machine, 11), session());
        bench.lost = vec![lost];
        let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
        assert_eq!(
            (outcome.pairs, outcome.verified),
            (8, Verified::Yes),
            "{:?}",
            outcome.decisions
        );
        let [why] = &outcome.void[..] else {
            panic!("{:?}", outcome.void)
        };
        let Some(VoidReason::NamesNobody { doubts, .. }) = why.known() else {
            panic!("{why:?}")
        };
        assert!(
            matches!(doubts[..], [Doubt::EventsLost { .. }]),
            "{doubts:?}"
        );
        assert!(session.pairs[1].void.is_some());
    }
    // If no run can name culprits, the experiment ends without a statement about culprits.
    let (mut bench, mut session) = (Bench::of(&machine, 11), session());
    bench.lost = (0..100).collect();
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.pairs, outcome.verified),
        (Ended::Void, 0, Verified::Undecided)
    );
    // Without interleaving, the run is made again.
    let mut slow = Fake {
        undoing: InForceIn::Within(Nanos(2)),
        ..Fake::new()
    };
    let (mut bench, mut session) = (Bench::of(&slow, 11), self::session());
    bench.lost = vec![3, 12];
    let outcome = experiment(&mut slow, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.pairs, outcome.void.len(), bench.arms.len()),
        (8, 2, 18)
    );
    assert!(outcome.diff.unwrap().against[0].culprits.is_some());
    // The total needs no names.
    let mut unnamed = Fake {
        knobs: Vec::new(),
        ..Fake::new()
    };
    let (mut bench, mut session) = (Bench::of(&unnamed, 11), self::session());
    bench.lost = vec![2];
    let outcome = experiment(&mut unnamed, &mut bench, &mut session).unwrap();
    assert!(outcome.void.is_empty() && outcome.pairs >= 2, "{outcome:?}");
}

#[test]
fn a_pair_of_which_a_command_failed_is_void() {
    let mut machine = Fake::new();
    let (mut bench, mut session) = (Bench::of(&machine, 11), session());
    bench.failing = vec![3];
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.pairs, outcome.void.len()),
        (8, 1),
        "{:?}",
        outcome.void
    );
    assert!(
        matches!(
            outcome.void[0].known(),
            Some(VoidReason::CommandFailed { .. })
        ),
        "{:?}",
        outcome.void
    );
    // A quick failure is no improvement.
    let (mut bench, mut session) = (Bench::of(&machine, 11), self::session());
    bench.failing = (0..100).collect();
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!((outcome.ended, outcome.pairs), (Ended::Void, 0));
}

#[test]
fn a_total_that_is_worse_by_less_than_the_margin_denies_nothing() {
    let mut machine = Fake::new();
    let (mut bench, mut session) = (Bench::of(&machine, 2), session());
    bench.costs = 1.05;
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    let total = outcome
        .decisions
        .iter()
        .find(|d| d.what == Asked::Total("total".into()));
    assert_eq!(
        total.map(|total| total.verdict),
        Some(Verdict::Equivalent),
        "a twentieth more is within the margin"
    );
    assert_eq!(outcome.verified, Verified::Yes);
}

#[test]
fn what_each_knob_removes_must_be_back() {
    let mut machine = Fake {
        knobs: vec!["vmstat", "drain"],
        ..Fake::new()
    };
    let (mut bench, mut session) = (Bench::of(&machine, 12), session());
    (bench.missing, bench.drained) = (vec![2], Some(vec![4]));
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.pairs, outcome.void.len()),
        (8, 2),
        "{:?}",
        outcome.void
    );
    let not_back = |which: &str| VoidReason::NotBack {
        which: Some(which.into()),
    };
    assert_eq!(outcome.void, [not_back("vmstat"), not_back("drain")]);
    assert!(session.pairs[2].void.is_some() && session.pairs[4].void.is_some());
    // A culprit that never occurred is not waited for.
    let (mut bench, mut session) = (Bench::of(&machine, 12), self::session());
    bench.drained = None;
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert!(outcome.void.is_empty(), "{:?}", outcome.void);
}

/// The seed whose first pair begins with this arm.
fn seed_with(first: Arm) -> u64 {
    (0..).find(|seed| order(*seed, 0)[0] == first).unwrap()
}

#[test]
fn a_first_pair_that_began_with_the_change_is_judged_by_the_next() {
    let mut machine = Fake::new();
    let (mut bench, mut session) = (Bench::of(&machine, 13), session_of(seed_with(Arm::B)));
    (bench.missing, bench.stop_after) = (vec![0], Some(8));
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.pairs, outcome.void.len()),
        (Ended::Stopped, 3, 1)
    );
    // The same after it resumes.
    bench.stop_after = None;
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.pairs, outcome.void.len()),
        (Ended::Decided, 8, 1)
    );
    assert_eq!((session.pairs.len(), outcome.verified), (9, Verified::Yes));
    assert!(
        matches!(outcome.void[0].known(), Some(VoidReason::NotBack { .. })),
        "{:?}",
        outcome.void
    );
    // It was missing on the machine as found, which is legitimate.
    let (mut bench, mut session) = (Bench::of(&machine, 13), session_of(seed_with(Arm::A)));
    bench.missing = vec![0];
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert!(outcome.void.is_empty(), "{:?}", outcome.void);
}

#[test]
fn it_is_given_up_where_only_the_total_is_open_and_hardly_ever_decided() {
    let mut machine = Fake::new();
    let (mut bench, mut session) = (Bench::of(&machine, 14), session());
    // Runs vary by a factor of 16, so an increase by a third is indistinguishable from chance and from none.
    (bench.swings, bench.costs) = (true, 1.3);
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(outcome.ended, Ended::Futile, "{:?}", outcome.decisions);
    assert!(
        (8..16).contains(&outcome.pairs),
        "not before what is predicted was looked at: {}",
        outcome.pairs
    );
    assert_eq!(
        outcome.verified,
        Verified::CulpritsOnly,
        "{:?}",
        outcome.decisions
    );
    assert!(
        outcome
            .decisions
            .iter()
            .all(|decision| !matches!(decision.what, Asked::Total(_)))
    );
    assert!(!machine.applied.get());
}

/// The culprit is decided at the first look; the total keeps the experiment going.
#[test]
fn a_row_is_that_of_the_look_that_decided_it() {
    let mut later = 0;
    for seed in 0..8 {
        let mut machine = Fake::new();
        let (mut bench, mut session) = (Bench::of(&machine, 40 + seed), session_of(seed));
        (bench.swings, bench.costs) = (true, 3.0);
        let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
        let Some(against) = outcome.diff.as_ref().map(|diff| &diff.against[0]) else {
            continue;
        };
        for decision in &outcome.decisions {
            let row = match &decision.what {
                Asked::Total(title) => against.totals().find(|of| of.0 == *title).unwrap().1,
                Asked::Culprit(title) => {
                    let mut rows = against.culprits.iter().flatten();
                    let row = rows.find(|row| row.title() == *title).unwrap();
                    assert_eq!(row.verdict, decision.verdict);
                    row.telling()
                }
            };
            assert_eq!(
                (row.verdict, row.runs),
                (decision.verdict, [decision.pairs; 2])
            );
            let alpha = RULES.looks.due(decision.pairs).alpha;
            assert_eq!(row.alpha, alpha);
            assert_eq!(row.interval.map(|of| of.level), Some(1.0 - alpha));
            later += usize::from(decision.pairs < outcome.pairs);
        }
    }
    assert!(later >= 1, "no question was decided before the last look");
}

/// At any time, even before the first look, if nothing predicted falls either.
#[test]
fn it_is_given_up_before_the_first_look_where_nothing_goes_anywhere() {
    let mut before = 0;
    for seed in 0..16 {
        let mut machine = Fake::new();
        let (mut bench, mut session) = (Bench::of(&machine, 100 + seed), session_of(seed));
        (bench.swings, bench.stays) = (true, true);
        let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
        if outcome.ended == Ended::Futile && outcome.pairs < 8 {
            before += 1;
            assert_eq!(
                (outcome.verified, &outcome.decisions[..]),
                (Verified::Undecided, &[][..])
            );
        }
        assert!(!machine.applied.get());
    }
    assert!(before >= 1, "of 16 none");
}

#[test]
fn no_pair_begins_after_the_deadline() {
    let mut machine = Fake::new();
    let (mut bench, mut session) = (Bench::of(&machine, 15), session());
    bench.stop_after = Some(6);
    experiment(&mut machine, &mut bench, &mut session).unwrap();
    bench.stop_after = None;
    bench.arms.clear();
    let rules = Rules {
        deadline: Some(Instant::now()),
        ..RULES
    };
    let outcome = experiment_by(rules, &mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.pairs, bench.arms.len()),
        (Ended::Deadline, 3, 0)
    );
    assert_eq!(outcome.verified, Verified::Undecided);
}

#[test]
fn where_nothing_that_is_predicted_was_there_the_total_alone_speaks() {
    let mut machine = Fake::new();
    let (mut bench, mut session) = (Bench::of(&machine, 16), session());
    bench.missing = (0..100).collect();
    let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
    assert_eq!(
        (outcome.ended, outcome.verified),
        (Ended::Decided, Verified::NothingPredicted)
    );
    let [total] = &outcome.decisions[..] else {
        panic!("{:?}", outcome.decisions)
    };
    assert_eq!(
        (&total.what, total.verdict),
        (&Asked::Total("total".into()), Verdict::Equivalent)
    );
}

/// 3.5 % of the time: a fall that the total must show.
#[test]
fn a_culprit_that_goes_on_under_another_name_verifies_nothing() {
    let of = |taken_over: f64| {
        let mut machine = Fake::new();
        let (mut bench, mut session) = (Bench::of(&machine, 21), session());
        (bench.length, bench.taken_over) = (Some(35_000_000), taken_over);
        let outcome = experiment(&mut machine, &mut bench, &mut session).unwrap();
        let fell = |what: &Asked| {
            let of = outcome.decisions.iter().find(|d| d.what == *what);
            of.map(|decision| decision.verdict)
        };
        let culprit = fell(&Asked::Culprit("kworker vmstat_update".into()));
        assert_eq!(culprit, Some(Verdict::Better), "{:?}", outcome.decisions);
        let total = fell(&Asked::Total("total".into()));
        (outcome.verified, total, outcome.moved_to)
    };
    let other = vec!["thread other".to_owned()];
    let (none, renamed) = (of(0.0), of(1.0));
    assert_eq!(none, (Verified::Yes, Some(Verdict::Better), Vec::new()));
    assert_eq!(
        renamed,
        (Verified::Moved, Some(Verdict::Equivalent), other.clone())
    );
    // Most of it, and a small part of it.
    assert_eq!(of(0.7), (Verified::Moved, Some(Verdict::Better), other));
    assert_eq!(of(0.2).0, Verified::Yes);
}
