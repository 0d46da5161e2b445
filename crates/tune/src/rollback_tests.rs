//! The results of undoing one change, and its state until then.

use super::*;
use crate::fake_machine::FakeMachine;
use crate::machine_writer::HostWriter;
use crate::status::{NowIs, now_is};
use crate::value::ValueKind;

fn step(op: Op, outcome: Option<Outcome>) -> Step {
    Step {
        seq: 1,
        knob: "k".into(),
        op,
        begin: 0,
        outcome,
        done_at: None,
        undone: None,
        restored_at: None,
    }
}

/// Changes `/x` from "a" to "b".
fn write() -> Op {
    Op::Write {
        path: "/x".into(),
        kind: ValueKind::Text,
        from: Some("a".into()),
        to: "b".into(),
        effective: None,
    }
}

fn put() -> Op {
    Op::PutFile {
        path: "/x".into(),
        from: Some("a".into()),
        to: "b".into(),
        access: None,
    }
}

fn ignored(reads: &str) -> Option<Outcome> {
    Some(Outcome::Ignored {
        reads: reads.into(),
    })
}

#[test]
fn a_value_stands_as_it_reads_and_after_a_reboot_it_is_the_boots() {
    let refused = NowIs::Refused {
        why: "c".into(),
        means: Some(Meaning::MadeOtherwise),
    };
    let drifted = NowIs::Drifted { reads: "c".into() };
    for (reads, outcome, now, rebooted) in [
        ("a", None, NowIs::Original, NowIs::UndoneByReboot),
        ("b", None, NowIs::InForce, NowIs::InForce),
        ("c", None, drifted.clone(), NowIs::UndoneByReboot),
        ("c", ignored("c"), refused, NowIs::UndoneByReboot),
        ("c", ignored("d"), drifted, NowIs::UndoneByReboot),
    ] {
        let fake = FakeMachine::of(&[("/x", reads)]);
        let found = [false, true]
            .map(|rebooted| now_is(&fake.machine, &write(), outcome.as_ref(), rebooted));
        assert_eq!(found, [now, rebooted], "{reads}");
    }
    // A reboot keeps what is on disk: a file, and a folder that is not a cgroup.
    let fake = FakeMachine::of(&[("/x", "c")]);
    assert!(matches!(
        now_is(&fake.machine, &put(), None, true),
        NowIs::Drifted { .. }
    ));
    let folder = |cgroup| Op::MakeDir {
        path: "/none".into(),
        cgroup,
    };
    assert_eq!(
        now_is(&fake.machine, &folder(false), None, true),
        NowIs::Original
    );
    assert_eq!(
        now_is(&fake.machine, &folder(true), None, true),
        NowIs::UndoneByReboot
    );
}

#[test]
fn a_mask_is_pending_while_it_holds_unwanted_cpus() {
    let op = Op::Write {
        path: "/x".into(),
        kind: ValueKind::CpuList,
        from: Some("0-3".into()),
        to: "0-1".into(),
        effective: Some("/effective".into()),
    };
    for (effective, pending) in [("3", true), ("0,3", true), ("0", false), ("0-1", false)] {
        let fake = FakeMachine::of(&[("/x", "0-1"), ("/effective", effective)]);
        let found = now_is(&fake.machine, &op, None, false);
        assert_eq!(
            matches!(found, NowIs::Pending { .. }),
            pending,
            "{effective}: {found:?}"
        );
    }
}

#[test]
fn our_value_is_undone_and_a_foreign_one_needs_an_answer() {
    let undone =
        |op: Op, reads: &str, outcome: Option<Outcome>, rebooted: bool, answer: OnDrift| {
            let fake = FakeMachine::of(&[("/x", reads)]);
            let mut asked = 0;
            let mut on_drift = |drift: &Drift| {
                asked += 1;
                assert_eq!(
                    (
                        drift.original.as_str(),
                        drift.ours.as_str(),
                        drift.now.as_str()
                    ),
                    ("a", "b", "c")
                );
                answer
            };
            let found = undo(
                &mut HostWriter::new(&fake.machine),
                &step(op, outcome),
                rebooted,
                &mut on_drift,
            );
            (found, fake.text("/x"), asked)
        };
    let keep = OnDrift::Keep;
    for (reads, outcome, rebooted, answer, expected, left, asked) in [
        ("a", None, false, keep, Undoing::WasOriginal, "a", 0),
        ("a", None, true, keep, Undoing::UndoneByReboot, "a", 0),
        ("b", None, false, keep, Undoing::Restored, "a", 0),
        ("b", None, true, keep, Undoing::Restored, "a", 0),
        (
            "c",
            None,
            true,
            OnDrift::Restore,
            Undoing::UndoneByReboot,
            "c",
            0,
        ),
        (
            "c",
            None,
            false,
            keep,
            Undoing::KeptForeign { now: "c".into() },
            "c",
            1,
        ),
        (
            "c",
            None,
            false,
            OnDrift::Later,
            Undoing::Drifted { now: "c".into() },
            "c",
            1,
        ),
        (
            "c",
            None,
            false,
            OnDrift::Restore,
            Undoing::Restored,
            "a",
            1,
        ),
        // The kernel stored its own form; or it did then, and another process wrote since.
        ("c", ignored("c"), false, keep, Undoing::Restored, "a", 0),
        (
            "c",
            ignored("d"),
            false,
            keep,
            Undoing::KeptForeign { now: "c".into() },
            "c",
            1,
        ),
    ] {
        let found = undone(write(), reads, outcome.clone(), rebooted, answer);
        assert_eq!(
            found,
            (expected, left.to_owned(), asked),
            "{reads} {outcome:?} rebooted: {rebooted}"
        );
    }
    // A missing target cannot be undone, and after a reboot need not be.
    let gone = |rebooted| {
        let fake = FakeMachine::of(&[]);
        let hands = &mut HostWriter::new(&fake.machine);
        undo(hands, &step(write(), None), rebooted, &mut |_| {
            OnDrift::Keep
        })
    };
    assert!(matches!(gone(false), Undoing::Gone { .. }));
    assert_eq!(gone(true), Undoing::UndoneByReboot);
}
