//! A real SIGKILL at a write, in a separate process: the lock is released, and rollback restores everything.

use crate::support;

use jitterscope_testing::name_of_test;
use jitterscope_tune::{OnDrift, OnRefusal, Select, StateDir, apply, is_clean, plan, rollback};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use support::{Cgroups, FakeHands, build, differences, folder, goal, snapshot, who};

const ROOT: &str = "JITTERSCOPE_TEST_ROOT";
const DIE_AT: &str = "JITTERSCOPE_TEST_DIE_AT";

/// The child's part; without the variables it does nothing.
#[test]
fn child_applies_until_it_is_killed() {
    let (Ok(root), Ok(die_at)) = (std::env::var(ROOT), std::env::var(DIE_AT)) else {
        return;
    };
    let base = PathBuf::from(root);
    let machine = jitterscope_platform::Machine::at(&base.join("root"));
    let plan = plan(&machine, &goal(&machine), &Select::All, &[], true).unwrap();
    let mut hands = FakeHands::dying_at(&machine, die_at.parse().unwrap());
    hands.for_real = true;
    apply(
        &mut hands,
        &StateDir::at(&base.join("state")),
        &plan,
        who(),
        OnRefusal::GoOn,
    )
    .unwrap();
}

#[test]
fn killed_at_any_write_it_comes_back() {
    for die_at in [0, 1, 2, 5, 8, 13, 20, 33, 47, 60, 75] {
        let dir = folder();
        let (root, state) = (
            dir.path().join("root"),
            StateDir::at(&dir.path().join("state")),
        );
        let machine = build(&root, Cgroups::V1);
        let before = snapshot(&root);
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name_of_test!(child_applies_until_it_is_killed)])
            .env(ROOT, dir.path())
            .env(DIE_AT, die_at.to_string())
            .output()
            .unwrap();
        assert_eq!(
            child.status.signal(),
            Some(9),
            "{}",
            String::from_utf8_lossy(&child.stdout)
        );
        let report = rollback(&mut FakeHands::new(&machine), &state, &mut |_| {
            OnDrift::Later
        })
        .unwrap();
        assert_eq!(
            report.unsettled().count(),
            0,
            "killed at {die_at}: {report:?}"
        );
        assert_eq!(
            differences(&before, &snapshot(&root)),
            Vec::<String>::new(),
            "killed at {die_at}"
        );
        assert!(is_clean(&state).unwrap());
    }
}
