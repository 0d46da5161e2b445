//! One knob rolled back separately: as if it had never been in the plan, wherever the process dies; and the rest still
//! rolls back.

use crate::support;

use jitterscope_tune::{
    OnDrift, OnRefusal, Plan, RollbackError, RollbackReport, Select, StateDir, Undoing, apply,
    is_clean, plan, rollback, rollback_only, status,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Cgroups, FakeHands, build, differences, folder, goal, snapshot, survive, who};

type Tree = BTreeMap<String, Option<Vec<u8>>>;

const GRUB: &str = "etc/default/grub.d/90-jitterscope.cfg";
const MANAGER: &str = "etc/systemd/system.conf.d/90-jitterscope.conf";

fn never(_: &jitterscope_tune::Drift) -> OnDrift {
    panic!("nobody else has touched this machine")
}

struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
    machine: jitterscope_platform::Machine,
    state: StateDir,
    before: Tree,
    plan: Plan,
}

/// A machine with all profiles applied permanently, except these knobs.
fn applied(cgroups: Cgroups, except: &[&str]) -> World {
    let dir = folder();
    let root = dir.path().join("root");
    let machine = build(&root, cgroups);
    let before = snapshot(&root);
    let state = StateDir::at(&dir.path().join("state"));
    let except: Vec<String> = except.iter().map(|id| (*id).to_owned()).collect();
    let plan = plan(&machine, &goal(&machine), &Select::All, &except, true).unwrap();
    apply(
        &mut FakeHands::new(&machine),
        &state,
        &plan,
        who(),
        OnRefusal::GoOn,
    )
    .unwrap();
    World {
        _dir: dir,
        root,
        machine,
        state,
        before,
        plan,
    }
}

impl World {
    fn only(&self, hands: &mut FakeHands, id: &str) -> Result<RollbackReport, RollbackError> {
        rollback_only(hands, &self.state, &[id.to_owned()], &mut never)
    }

    fn is_applied(&self, id: &str) -> bool {
        status(&self.machine, &self.state)
            .unwrap()
            .changes
            .iter()
            .any(|c| c.knob == id)
    }
}

/// The tree without everything reported as left: boot parameters that knobs share, a drop-in without a line.
fn reported(root: &Path, id: &str) -> Tree {
    let mut tree = snapshot(root);
    tree.remove(GRUB);
    if id == "systemd-aff"
        && let Some(Some(text)) = tree.remove(MANAGER)
    {
        assert!(!String::from_utf8(text).unwrap().contains("CPUAffinity"));
        tree.remove("etc/systemd/system.conf.d");
    }
    tree
}

#[test]
fn one_knob_is_undone_after_a_kill_at_every_step() {
    for cgroups in [Cgroups::V1, Cgroups::V2] {
        let mut ids: Vec<&str> = applied(cgroups, &[])
            .plan
            .changes
            .iter()
            .map(|c| c.knob)
            .collect();
        ids.dedup();
        assert!(ids.len() > 15, "{ids:?}");
        for id in ids.into_iter().filter(|id| *id != "persist") {
            // The cpusets differ between the two.
            if cgroups == Cgroups::V2 && id != "cpuset-part" {
                continue;
            }
            let wanted = reported(&applied(cgroups, &[id]).root, id);
            for die_at in 0.. {
                let w = applied(cgroups, &[]);
                let mut dying = FakeHands::dying_at(&w.machine, die_at);
                let first = survive(|| w.only(&mut dying, id).unwrap());
                if first.is_none() && w.is_applied(id) {
                    w.only(&mut FakeHands::new(&w.machine), id).unwrap();
                }
                let what = format!("{id}, died at {die_at}");
                assert_eq!(
                    differences(&wanted, &reported(&w.root, id)),
                    Vec::<String>::new(),
                    "{what}"
                );
                assert!(!w.is_applied(id), "{what}");
                let now = status(&w.machine, &w.state).unwrap();
                assert!(now.active && now.drifted().count() == 0, "{what}: {now:?}");
                assert!(matches!(
                    w.only(&mut FakeHands::new(&w.machine), id),
                    Err(RollbackError::NotApplied { .. })
                ));
                let report =
                    rollback(&mut FakeHands::new(&w.machine), &w.state, &mut never).unwrap();
                assert_eq!(report.unsettled().count(), 0, "{what}: {report:?}");
                assert_eq!(
                    differences(&w.before, &snapshot(&w.root)),
                    Vec::<String>::new(),
                    "{what}"
                );
                assert!(is_clean(&w.state).unwrap());
                if first.is_some() {
                    assert!(die_at >= 2, "{id} wrote nothing");
                    break;
                }
            }
        }
    }
}

#[test]
fn the_rest_stays_and_it_can_be_applied_again() {
    let w = applied(Cgroups::V1, &[]);
    let report = w.only(&mut FakeHands::new(&w.machine), "vmstat").unwrap();
    assert_eq!(
        report.stays,
        w.plan.changes.len() - 1 + 1,
        "all others, and the shortened drop-in"
    );
    assert_eq!(report.lasting, []);
    assert!(
        report
            .steps
            .iter()
            .all(|s| s.knob == "vmstat" && s.undoing == Undoing::Restored)
    );
    let sysctl =
        std::fs::read_to_string(w.root.join("etc/sysctl.d/99-zz-jitterscope.conf")).unwrap();
    assert!(
        !sysctl.contains("stat_interval") && sysctl.contains(" = "),
        "{sysctl}"
    );
    assert_eq!(
        status(&w.machine, &w.state).unwrap().rolled_back,
        ["vmstat"]
    );

    let select = Select::Only(vec!["vmstat".into()]);
    let again = plan(&w.machine, &goal(&w.machine), &select, &[], true).unwrap();
    let report = apply(
        &mut FakeHands::new(&w.machine),
        &w.state,
        &again,
        who(),
        OnRefusal::GoOn,
    )
    .unwrap();
    assert!(report.merged);
    let now = status(&w.machine, &w.state).unwrap();
    assert!(
        now.rolled_back.is_empty() && now.settling.is_empty(),
        "{now:?}"
    );
    rollback(&mut FakeHands::new(&w.machine), &w.state, &mut never).unwrap();
    assert_eq!(
        differences(&w.before, &snapshot(&w.root)),
        Vec::<String>::new()
    );
}

#[test]
fn changes_that_return_at_boot_are_listed_with_their_drop_ins() {
    let w = applied(Cgroups::V1, &[]);
    let report = w.only(&mut FakeHands::new(&w.machine), "irq-aff").unwrap();
    let left: Vec<&str> = report.lasting.iter().map(|l| l.path.as_str()).collect();
    assert_eq!(left, [format!("/{GRUB}")]);
    let report = w.only(&mut FakeHands::new(&w.machine), "persist").unwrap();
    assert!(report.update_boot_loader && !w.root.join(GRUB).exists());
    assert!(w.is_applied("vmstat"));
}

#[test]
fn a_knob_that_is_not_applied_is_refused_by_name() {
    let w = applied(Cgroups::V1, &["ksm"]);
    let held = snapshot(&w.root);
    let error = w
        .only(&mut FakeHands::new(&w.machine), "ksm")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("nothing of ksm is applied; applied are: ") && error.contains("vmstat"),
        "{error}"
    );
    assert_eq!(differences(&held, &snapshot(&w.root)), Vec::<String>::new());
}
