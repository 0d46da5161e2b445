//! Every knob on a fake machine: apply, die at each step, roll back, compare the whole tree.

use crate::support;

use jitterscope_tune::{
    LeftFamily, Mechanism, OnDrift, OnRefusal, Op, Outcome, Select, StateDir, Stays, apply,
    catalogue, is_clean, plan, rollback,
};
use std::path::Path;
use support::{Cgroups, FakeHands, build, differences, goal, snapshot, survive, who};

fn never(_: &jitterscope_tune::Drift) -> OnDrift {
    panic!("nobody else has touched this machine")
}

/// Applies with hands that die at `die_at`, rolls back, and compares. Returns false if they did not die.
fn die_and_roll_back(select: &Select, cgroups: Cgroups, die_at: usize, what: &str) -> bool {
    let dir = support::folder();
    let (root, state) = (dir.path().join("root"), dir.path().join("state"));
    let machine = build(&root, cgroups);
    let before = snapshot(&root);
    let state = StateDir::at(&state);
    let plan = plan(&machine, &goal(&machine), select, &[], true).unwrap();
    let mut hands = FakeHands::dying_at(&machine, die_at);
    let done = survive(|| apply(&mut hands, &state, &plan, who(), OnRefusal::GoOn).unwrap());
    if let Some(report) = &done {
        let failures: Vec<_> = report.failures().collect();
        assert!(failures.is_empty(), "{what}: {failures:?}");
    }
    let report = rollback(&mut FakeHands::new(&machine), &state, &mut never).unwrap();
    assert_eq!(
        report.unsettled().count(),
        0,
        "{what}, died at {die_at}: {report:?}"
    );
    assert_eq!(
        differences(&before, &snapshot(&root)),
        Vec::<String>::new(),
        "{what}, died at {die_at}"
    );
    assert!(is_clean(&state).unwrap());
    done.is_none()
}

#[test]
fn every_knob_comes_back_from_death_at_every_step() {
    for cgroups in [Cgroups::V1, Cgroups::V2] {
        for knob in catalogue::all() {
            if cgroups == Cgroups::V2 && !matches!(knob.mechanism, Mechanism::Partition) {
                continue;
            }
            let select = Select::Only(vec![knob.id.to_owned()]);
            let mut die_at = 0;
            while die_and_roll_back(&select, cgroups, die_at, knob.id) {
                die_at += 1;
            }
            match knob.mechanism {
                Mechanism::Look(_) => assert_eq!(die_at, 0, "{} writes something", knob.id),
                _ => assert!(
                    die_at >= 2,
                    "{} changes nothing on the fake machine",
                    knob.id
                ),
            }
        }
    }
}

/// A `tune apply` was killed after it made its isolated partition. Its rollback restored the threads first, although
/// the partition still held them: in any order, one rollback must be enough.
#[test]
fn what_another_change_holds_comes_back_with_it() {
    let (interval, mask) = (
        "/proc/sys/vm/stat_interval",
        "/sys/devices/virtual/workqueue/cpumask",
    );
    for held in [(interval, mask), (mask, interval)] {
        let dir = support::folder();
        let (root, state) = (
            dir.path().join("root"),
            StateDir::at(&dir.path().join("state")),
        );
        let machine = build(&root, Cgroups::V2);
        let before = snapshot(&root);
        let select = Select::Only(vec!["vmstat".to_owned(), "wq-unbound".to_owned()]);
        let plan = plan(&machine, &goal(&machine), &select, &[], true).unwrap();
        apply(
            &mut FakeHands::new(&machine),
            &state,
            &plan,
            who(),
            OnRefusal::GoOn,
        )
        .unwrap();
        let changed = differences(&before, &snapshot(&root)).join("\n");
        assert!(
            changed.contains(&interval[1..]) && changed.contains(&mask[1..]),
            "{changed}"
        );
        let mut hands = FakeHands::new(&machine);
        hands.held = Some(held);
        let report = rollback(&mut hands, &state, &mut never).unwrap();
        assert_eq!(report.unsettled().count(), 0, "{held:?}: {report:?}");
        assert_eq!(
            differences(&before, &snapshot(&root)),
            Vec::<String>::new(),
            "{held:?}"
        );
        assert!(hands.held.is_none() && is_clean(&state).unwrap());
    }
}

#[test]
fn a_whole_profile_comes_back_from_death_at_every_step() {
    for cgroups in [Cgroups::V1, Cgroups::V2] {
        let mut die_at = 0;
        while die_and_roll_back(&Select::All, cgroups, die_at, "all") {
            die_at += 1;
        }
        assert!(die_at > 80, "only {die_at} points to die at");
    }
}

#[test]
fn a_rollback_that_dies_is_finished_by_the_next() {
    for cgroups in [Cgroups::V1, Cgroups::V2] {
        for die_at in 0.. {
            let dir = support::folder();
            let (root, state) = (
                dir.path().join("root"),
                StateDir::at(&dir.path().join("state")),
            );
            let machine = build(&root, cgroups);
            let before = snapshot(&root);
            let plan = plan(&machine, &goal(&machine), &Select::All, &[], true).unwrap();
            apply(
                &mut FakeHands::new(&machine),
                &state,
                &plan,
                who(),
                OnRefusal::GoOn,
            )
            .unwrap();
            assert_ne!(before, snapshot(&root));
            let mut dying = FakeHands::dying_at(&machine, die_at);
            let first = survive(|| rollback(&mut dying, &state, &mut never).unwrap());
            rollback(&mut FakeHands::new(&machine), &state, &mut never).unwrap();
            assert_eq!(
                differences(&before, &snapshot(&root)),
                Vec::<String>::new(),
                "died at {die_at}"
            );
            assert!(is_clean(&state).unwrap());
            if first.is_some() {
                assert!(die_at > 80);
                break;
            }
        }
    }
}

fn cut_journal(state: &Path, keep: usize) {
    let path = state.join("journal.jsonl");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..keep.min(bytes.len())]).unwrap();
}

#[test]
fn a_torn_last_line_loses_nothing() {
    // The line with a step's end is truncated to any length: the step is in doubt, and undone.
    for lost in 1..400 {
        let dir = support::folder();
        let (root, at) = (dir.path().join("root"), dir.path().join("state"));
        let state = StateDir::at(&at);
        let machine = build(&root, Cgroups::V1);
        let before = snapshot(&root);
        let select = Select::Only(vec!["vmstat".into(), "thp".into()]);
        let plan = plan(&machine, &goal(&machine), &select, &[], false).unwrap();
        apply(
            &mut FakeHands::new(&machine),
            &state,
            &plan,
            who(),
            OnRefusal::GoOn,
        )
        .unwrap();
        let length = std::fs::metadata(at.join("journal.jsonl")).unwrap().len() as usize;
        let intents = std::fs::read_to_string(at.join("journal.jsonl")).unwrap();
        let intents = intents.rfind("\"record\":\"intend\"").unwrap();
        let intents = intents
            + std::fs::read_to_string(at.join("journal.jsonl")).unwrap()[intents..]
                .find('\n')
                .unwrap()
            + 1;
        if length - lost < intents {
            break;
        }
        cut_journal(&at, length - lost);
        rollback(&mut FakeHands::new(&machine), &state, &mut never).unwrap();
        assert_eq!(
            differences(&before, &snapshot(&root)),
            Vec::<String>::new(),
            "{lost} bytes lost"
        );
    }
}

#[test]
fn what_the_kernel_refuses_is_classified_and_the_rest_goes_on() {
    let dir = support::folder();
    let (root, state) = (
        dir.path().join("root"),
        StateDir::at(&dir.path().join("state")),
    );
    let machine = build(&root, Cgroups::V1);
    let before = snapshot(&root);
    let select = Select::Only(
        ["irq-aff", "nmi-wd", "vmstat", "wq-unbound", "ksm"]
            .map(String::from)
            .to_vec(),
    );
    let plan = plan(&machine, &goal(&machine), &select, &[], false).unwrap();
    let mut hands = FakeHands::new(&machine);
    hands.refuse = vec![
        ("/proc/irq/24/*", 5),
        ("/proc/irq/25/*", 1),
        ("*nmi_watchdog", 95),
        ("*/ksm/run", 16),
    ];
    hands.deaf = vec!["*/workqueue/cpumask"];
    let report = apply(&mut hands, &state, &plan, who(), OnRefusal::GoOn).unwrap();
    let class = |path: &str| match &report
        .applied
        .iter()
        .find(|a| a.path.contains(path))
        .unwrap()
        .outcome
    {
        Outcome::Refused { class, .. } => format!("{class:?}"),
        other => format!("{other:?}"),
    };
    assert_eq!(class("irq/24"), "Managed");
    assert_eq!(class("irq/25"), "Managed");
    assert_eq!(class("nmi_watchdog"), "Other");
    assert_eq!(class("ksm"), "Busy");
    assert!(class("workqueue").starts_with("Ignored"));
    assert!(class("stat_interval").starts_with("Applied"));
    assert_eq!(report.failures().count(), 5);
    rollback(&mut FakeHands::new(&machine), &state, &mut never).unwrap();
    assert_eq!(differences(&before, &snapshot(&root)), Vec::<String>::new());

    // With the option to stop it stops; the earlier changes can be rolled back.
    let stopped = apply(&mut hands, &state, &plan, who(), OnRefusal::Stop).unwrap();
    let (last, before) = stopped.applied.split_last().unwrap();
    assert!(
        !last.outcome.is_success() && !last.outcome.is_managed(),
        "{last:?}"
    );
    assert_eq!(
        stopped.not_tried,
        plan.changes.len() - stopped.applied.len()
    );
    assert!(stopped.not_tried > 0);
    // An interrupt placed by the kernel does not stop it.
    assert_eq!(
        before.iter().filter(|a| a.outcome.is_managed()).count(),
        2,
        "{before:?}"
    );
    assert!(
        before
            .iter()
            .all(|a| a.outcome.is_success() || a.outcome.is_managed()),
        "{before:?}"
    );
    // Nothing was changed, so all three are reported. Earlier, the two managed ones were no failures.
    assert_eq!(
        (stopped.refused().count(), report.refused().count()),
        (3, 3)
    );
}

#[test]
fn what_has_changed_since_the_plan_is_seen_before_it_is_overwritten() {
    let dir = support::folder();
    let (root, state) = (
        dir.path().join("root"),
        StateDir::at(&dir.path().join("state")),
    );
    let machine = build(&root, Cgroups::V2);
    let ids = ["systemd-aff", "vmstat", "ksm", "edac-ghes", "cpuset-part"];
    let select = Select::Only(ids.map(String::from).to_vec());
    let plan = plan(&machine, &goal(&machine), &select, &[], false).unwrap();
    // A thread has ended, a file is gone, one has another value, one is right already, and a cgroup belongs to another
    // process.
    std::fs::remove_dir_all(root.join("proc/302")).unwrap();
    std::fs::remove_file(root.join("sys/module/edac_core/parameters/edac_mc_poll_msec")).unwrap();
    support::put(&root, "proc/sys/vm/stat_interval", "7\n");
    support::put(&root, "sys/kernel/mm/ksm/run", "0\n");
    let group = "sys/fs/cgroup/jitterscope.isolated";
    std::fs::create_dir(root.join(group)).unwrap();
    support::put(&root, &format!("{group}/cpuset.cpus"), "\n");
    support::put(&root, &format!("{group}/cpuset.cpus.partition"), "member\n");
    let before = snapshot(&root);
    let report = apply(
        &mut FakeHands::new(&machine),
        &state,
        &plan,
        who(),
        OnRefusal::GoOn,
    )
    .unwrap();
    let outcome = |what: &str| {
        let of = report
            .applied
            .iter()
            .find(|a| a.path.contains(what) || a.knob == what)
            .unwrap();
        (of.from.clone(), of.to.clone(), of.outcome.clone())
    };
    assert_eq!(
        outcome("(half)").2,
        Outcome::Gone {
            cause: jitterscope_tune::GoneBecause::EndedUnmoved.into()
        }
    );
    assert!(matches!(outcome("edac-ghes").2, Outcome::Refused { .. }));
    assert_eq!(outcome("ksm").2, Outcome::Applied { reads: "0".into() });
    let theirs = report
        .applied
        .iter()
        .find(|a| a.path.ends_with("jitterscope.isolated"))
        .unwrap();
    assert!(matches!(
        theirs.outcome,
        Outcome::Refused {
            means: Some(jitterscope_tune::Meaning::MadeByOthers),
            ..
        }
    ));
    // What is restored is what was overwritten, and what was not ours stays.
    rollback(&mut FakeHands::new(&machine), &state, &mut never).unwrap();
    assert_eq!(differences(&before, &snapshot(&root)), Vec::<String>::new());
    assert!(root.join(group).is_dir());
}

#[test]
fn an_interrupt_that_moves_later_is_pending() {
    let dir = support::folder();
    let (root, state) = (
        dir.path().join("root"),
        StateDir::at(&dir.path().join("state")),
    );
    let machine = build(&root, Cgroups::V1);
    let plan = plan(
        &machine,
        &goal(&machine),
        &Select::Only(vec!["irq-aff".into()]),
        &[],
        false,
    )
    .unwrap();
    assert_eq!(plan.changes.len(), 2, "IRQ 26 is off the CPUs already");
    let report = apply(
        &mut FakeHands::new(&machine),
        &state,
        &plan,
        who(),
        OnRefusal::GoOn,
    )
    .unwrap();
    assert_eq!(
        report.applied[0].outcome,
        Outcome::Pending {
            effective: "2".into()
        }
    );
    assert!(matches!(report.applied[1].outcome, Outcome::Applied { .. }));
}

#[test]
fn only_threads_that_can_and_should_move_are_moved() {
    let dir = support::folder();
    let machine = build(dir.path(), Cgroups::V1);
    let select = Select::Only(vec!["kthread-aff".into(), "systemd-aff".into()]);
    let plan = plan(&machine, &goal(&machine), &select, &[], false).unwrap();
    let moved: Vec<String> = plan
        .changes
        .iter()
        .map(|c| match &c.op {
            Op::Thread { comm, from, to, .. } => format!("{comm} {from} {to}"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        moved,
        [
            "rcu_preempt 0-3 0-1",
            "kswapd0 0-3 0-1",
            "systemd 0-3 0-1",
            "a (odd) name 0-3 0-1",
            "half 1-2 1"
        ]
    );
    let family = |of: &LeftFamily| (of.name.clone(), of.threads, of.tid);
    let left: Vec<_> = plan
        .left
        .iter()
        .map(|of| {
            (
                of.because,
                of.families.iter().map(family).collect::<Vec<_>>(),
            )
        })
        .collect();
    let bound = vec![("migration".into(), 1, 16), ("kworker".into(), 2, 17)];
    assert_eq!(
        left,
        [
            (Stays::Immovable, vec![("kthreadd".into(), 1, 2)]),
            (Stays::BoundToCpu, bound),
            (Stays::PinnedThere, vec![("pinned-app".into(), 1, 301)]),
        ]
    );
}

#[test]
fn members_of_the_cgroup_go_to_its_parent_before_it_is_removed() {
    for (cgroups, group, list) in [
        (
            Cgroups::V2,
            "sys/fs/cgroup/jitterscope.isolated",
            "cgroup.procs",
        ),
        (
            Cgroups::V1,
            "sys/fs/cgroup/cpuset/jitterscope.housekeeping",
            "tasks",
        ),
    ] {
        let dir = support::folder();
        let (root, state) = (
            dir.path().join("root"),
            StateDir::at(&dir.path().join("state")),
        );
        let machine = build(&root, cgroups);
        let plan = plan(
            &machine,
            &goal(&machine),
            &Select::Only(vec!["cpuset-part".into()]),
            &[],
            false,
        )
        .unwrap();
        apply(
            &mut FakeHands::new(&machine),
            &state,
            &plan,
            who(),
            OnRefusal::GoOn,
        )
        .unwrap();
        std::fs::write(root.join(group).join(list), "77\n78\n").unwrap();
        rollback(&mut FakeHands::new(&machine), &state, &mut never).unwrap();
        assert!(!root.join(group).exists());
        let parent = root.join(group).parent().unwrap().join(list);
        assert!(
            std::fs::read_to_string(parent)
                .unwrap()
                .ends_with("77\n78\n")
        );
    }
}
