//! Other writers, a second apply, a reboot.

use crate::support;

use jitterscope_platform::Machine;
use jitterscope_tune::{
    ApplyError, Goal, NowIs, OnDrift, OnRefusal, Select, StateDir, StateError, Undoing, apply,
    is_clean, plan, rollback, status,
};
use std::fs;
use std::path::PathBuf;
use support::{
    Cgroups, FakeHands, build, differences, folder, goal, put_thread, snapshot, survive, who,
};

struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
    machine: Machine,
    state: StateDir,
    state_path: PathBuf,
}

fn world() -> World {
    let dir = folder();
    let root = dir.path().join("root");
    let machine = build(&root, Cgroups::V1);
    let state_path = dir.path().join("state");
    World {
        root,
        machine,
        state: StateDir::at(&state_path),
        state_path,
        _dir: dir,
    }
}

impl World {
    fn apply(
        &self,
        ids: &[&str],
        persist: bool,
    ) -> Result<jitterscope_tune::ApplyReport, ApplyError> {
        let select = Select::Only(ids.iter().map(|s| (*s).to_owned()).collect());
        let plan = plan(&self.machine, &goal(&self.machine), &select, &[], persist).unwrap();
        apply(
            &mut FakeHands::new(&self.machine),
            &self.state,
            &plan,
            who(),
            OnRefusal::GoOn,
        )
    }

    fn rollback(&self, on_drift: OnDrift) -> jitterscope_tune::RollbackReport {
        rollback(&mut FakeHands::new(&self.machine), &self.state, &mut |_| {
            on_drift
        })
        .unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.root.join(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }
}

const STAT: &str = "proc/sys/vm/stat_interval";

#[test]
fn somebody_elses_value_is_shown_asked_about_and_kept_or_overwritten() {
    for (decision, left) in [(OnDrift::Keep, "90\n"), (OnDrift::Restore, "1\n")] {
        let w = world();
        w.apply(&["vmstat", "ksm"], false).unwrap();
        w.write(STAT, "90\n");
        let seen = status(&w.machine, &w.state).unwrap();
        assert_eq!(seen.drifted().count(), 1);
        assert_eq!(
            seen.drifted().next().unwrap().standing,
            NowIs::Drifted { reads: "90".into() }
        );
        // An undecided step stays in the journal; the rest is restored.
        let report = w.rollback(OnDrift::Later);
        assert_eq!(report.unsettled().count(), 1);
        assert_eq!(w.read("sys/kernel/mm/ksm/run"), "1\n");
        assert_eq!(w.read(STAT), "90\n");
        assert!(status(&w.machine, &w.state).unwrap().active);
        let report = w.rollback(decision);
        assert_eq!(report.unsettled().count(), 0);
        assert_eq!(w.read(STAT), left);
        assert!(is_clean(&w.state).unwrap());
    }
}

#[test]
fn a_second_apply_joins_the_first_and_one_rollback_undoes_both() {
    let w = world();
    let before = snapshot(&w.root);
    assert!(!w.apply(&["vmstat", "irq-aff"], true).unwrap().merged);
    // The same apply again changes nothing more.
    assert_eq!(w.apply(&["vmstat"], true).unwrap().applied.len(), 0);
    w.write(STAT, "5\n");
    let second = w.apply(&["vmstat", "ksm", "numa-bal"], true).unwrap();
    assert!(second.merged);
    let report = w.rollback(OnDrift::Later);
    // 60 -> 5 by another process, 5 -> 60 by the second apply: back to 5, which the first apply did not write.
    assert_eq!(report.unsettled().count(), 1, "{report:?}");
    assert_eq!(w.read(STAT), "5\n");
    w.rollback(OnDrift::Restore);
    assert_eq!(
        differences(&before, &snapshot(&w.root)),
        Vec::<String>::new()
    );
}

#[test]
fn an_apply_for_other_cpus_is_refused_with_the_reason() {
    let w = world();
    w.apply(&["vmstat"], false).unwrap();
    let other = Goal::to_apply(&w.machine, "3".parse().unwrap()).unwrap();
    let plan = plan(
        &w.machine,
        &other,
        &Select::Only(vec!["ksm".into()]),
        &[],
        false,
    )
    .unwrap();
    let refused = apply(
        &mut FakeHands::new(&w.machine),
        &w.state,
        &plan,
        who(),
        OnRefusal::GoOn,
    );
    assert!(matches!(refused, Err(ApplyError::OtherCpus { .. })));
    assert_eq!(w.read("sys/kernel/mm/ksm/run"), "1\n");
}

#[test]
fn an_apply_that_was_cut_off_must_be_rolled_back_first() {
    let w = world();
    let plan = plan(&w.machine, &goal(&w.machine), &Select::All, &[], false).unwrap();
    let mut hands = FakeHands::dying_at(&w.machine, 7);
    assert!(survive(|| apply(&mut hands, &w.state, &plan, who(), OnRefusal::GoOn)).is_none());
    assert!(matches!(
        w.apply(&["ksm"], false),
        Err(ApplyError::Unfinished { .. })
    ));
    assert!(!status(&w.machine, &w.state).unwrap().applies[0].finished);
    w.rollback(OnDrift::Later);
    assert!(w.apply(&["ksm"], false).is_ok());
}

#[test]
fn while_one_changes_the_machine_another_waits_outside() {
    let w = world();
    let lock = w.state.lock().unwrap();
    assert!(matches!(
        w.apply(&["vmstat"], false),
        Err(ApplyError::State(StateError::Locked { .. }))
    ));
    assert_eq!(w.read(STAT), "1\n");
    drop(lock);
    assert!(w.apply(&["vmstat"], false).is_ok());
}

#[test]
fn after_a_reboot_it_says_what_the_reboot_undid_and_removes_what_lasts() {
    let w = world();
    let before = snapshot(&w.root);
    w.apply(
        &["vmstat", "ksm", "irq-aff", "systemd-aff", "cpuset-part"],
        true,
    )
    .unwrap();
    let applied = snapshot(&w.root);
    // A reboot: everything below /proc and /sys is at the machine's defaults, the drop-ins stay, and the sysctl drop-in
    // is in force.
    for (path, content) in &before {
        if (path.starts_with("proc/") || path.starts_with("sys/"))
            && let Some(bytes) = content
        {
            fs::write(w.root.join(path), bytes).unwrap();
        }
    }
    fs::remove_dir_all(w.root.join("sys/fs/cgroup/cpuset/jitterscope.housekeeping")).unwrap();
    w.write(
        "proc/sys/kernel/random/boot_id",
        "22222222-2222-2222-2222-222222222222\n",
    );
    w.write(STAT, "60\n");
    assert_ne!(before, applied);

    let seen = status(&w.machine, &w.state).unwrap();
    assert!(seen.applies[0].before_reboot);
    assert!(matches!(
        w.apply(&["numa-bal"], false),
        Err(ApplyError::Rebooted)
    ));
    let report = w.rollback(OnDrift::Later);
    assert!(report.rebooted && report.update_boot_loader);
    let of = |path: &str| {
        &report
            .steps
            .iter()
            .find(|s| s.path.contains(path))
            .unwrap()
            .undoing
    };
    assert_eq!(of("ksm/run"), &Undoing::UndoneByReboot);
    assert_eq!(of("thread 1 "), &Undoing::UndoneByReboot);
    assert_eq!(of("stat_interval"), &Undoing::Restored);
    assert_eq!(of("99-zz-jitterscope.conf"), &Undoing::Restored);
    w.write(
        "proc/sys/kernel/random/boot_id",
        "11111111-1111-1111-1111-111111111111\n",
    );
    assert_eq!(
        differences(&before, &snapshot(&w.root)),
        Vec::<String>::new()
    );
}

#[test]
fn confined_children_are_freed_and_dead_ones_skipped() {
    let w = world();
    // 403 began before the apply, 14 s after the boot, and somebody had confined it.
    w.write("proc/uptime", "14.05 20.00\n");
    put_thread(&w.root, 403, 1, "pinned", 0x0040_0000, "0-1");
    w.apply(&["systemd-aff"], false).unwrap();
    let begins_later = |pid: i32| {
        let file = format!("proc/{pid}/task/{pid}/stat");
        let began = format!(" {} ", 1000 + pid);
        let stat = w.read(&file).replace(&began, " 9999 ");
        w.write(&file, &stat);
    };
    // 300 has ended, and a later thread has its id; 1 has a new child, which also has a child.
    put_thread(&w.root, 300, 1, "another", 0x0040_0000, "0-1");
    begins_later(300);
    put_thread(&w.root, 400, 1, "young", 0x0040_0000, "0-1");
    put_thread(&w.root, 401, 400, "younger", 0x0040_0000, "0-1");
    put_thread(&w.root, 402, 400, "own-will", 0x0040_0000, "0");
    [400, 401, 402].into_iter().for_each(begins_later);
    let report = w.rollback(OnDrift::Later);
    assert!(
        report
            .steps
            .iter()
            .any(|s| s.path.contains("300") && matches!(s.undoing, Undoing::Gone { .. }))
    );
    let allowed = |pid: i32| {
        let status = w.read(&format!("proc/{pid}/task/{pid}/status"));
        status
            .lines()
            .find(|l| l.starts_with("Cpus_allowed_list"))
            .unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .to_owned()
    };
    let now = [1, 400, 401, 402, 403].map(allowed);
    assert_eq!(now, ["0-3", "0-3", "0-3", "0", "0-1"]);
    assert_eq!(report.inherited_freed, 3, "400, 401 and the new 300");
}

#[test]
fn a_damaged_journal_is_never_guessed_at() {
    let w = world();
    w.apply(&["vmstat"], false).unwrap();
    let path = w.state_path.join("journal.jsonl");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replacen("intend", "intnd", 1);
    fs::write(&path, text).unwrap();
    let error = rollback(&mut FakeHands::new(&w.machine), &w.state, &mut |_| {
        OnDrift::Later
    })
    .unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
    assert_eq!(w.read(STAT), "60");
    assert!(w.apply(&["ksm"], false).is_err());
}
