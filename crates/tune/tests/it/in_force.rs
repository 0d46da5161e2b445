//! When a change and its undoing are in force, as reported by apply, rollback and status.

use crate::support;

use jitterscope_model::Nanos;
use jitterscope_platform::Machine;
use jitterscope_testing::sealed_journal;
use jitterscope_tune::{
    InForceBy, LONGEST_UNDOING, OnDrift, OnRefusal, Select, StateDir, apply, plan, realtime_ns,
    rollback, status,
};
use std::fs;
use support::{Cgroups, FakeHands, build, folder, goal, who};

const STAT: &str = "proc/sys/vm/stat_interval";

fn world() -> (tempfile::TempDir, Machine, StateDir) {
    let dir = folder();
    let machine = build(&dir.path().join("root"), Cgroups::V1);
    let state = StateDir::at(&dir.path().join("state"));
    (dir, machine, state)
}

fn turn(machine: &Machine, state: &StateDir, ids: &[&str]) -> jitterscope_tune::ApplyReport {
    let select = Select::Only(ids.iter().map(|s| (*s).to_owned()).collect());
    let plan = plan(machine, &goal(machine), &select, &[], false).unwrap();
    apply(
        &mut FakeHands::new(machine),
        state,
        &plan,
        who(),
        OnRefusal::GoOn,
    )
    .unwrap()
}

fn within(by: &Option<InForceBy>) -> Nanos {
    match by {
        Some(InForceBy::AtLatest {
            within_ns,
            at_realtime_ns,
            shown_by,
        }) => {
            assert_eq!(shown_by, "vmstat_update");
            assert!(*at_realtime_ns > within_ns.0);
            *within_ns
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn apply_takes_the_old_interval_and_rollback_the_new_one() {
    let (dir, machine, state) = world();
    fs::write(dir.path().join("root").join(STAT), "7\n").unwrap();
    let report = turn(&machine, &state, &["vmstat", "ksm", "irq-aff", "governor"]);
    let by = |id: &str| {
        &report
            .applied
            .iter()
            .find(|a| a.knob == id)
            .unwrap()
            .in_force_by
    };
    assert_eq!(
        within(by("vmstat")),
        Nanos(10_000_000_000),
        "7 s, a seventh of it, and 2 s"
    );
    assert_eq!(by("governor"), &Some(InForceBy::Now));
    // Interrupt 24 is still delivered to CPU 2, 25 already to CPU 0.
    assert!(matches!(by("irq-aff"), Some(InForceBy::AtEvent { .. })));
    assert_eq!(
        report
            .applied
            .iter()
            .rfind(|a| a.knob == "irq-aff")
            .unwrap()
            .in_force_by,
        Some(InForceBy::Now)
    );
    let now = status(&machine, &state).unwrap();
    within(
        &now.changes
            .iter()
            .find(|c| c.knob == "vmstat")
            .unwrap()
            .in_force_by,
    );
    assert_eq!(now.settling, []);

    let rolled = rollback(&mut FakeHands::new(&machine), &state, &mut |_| {
        OnDrift::Later
    })
    .unwrap();
    let vmstat = rolled.steps.iter().find(|s| s.knob == "vmstat").unwrap();
    let longest = within(&vmstat.in_force_by);
    assert!(
        longest > Nanos(60_000_000_000) && longest <= LONGEST_UNDOING,
        "{longest}"
    );
    // Nothing is applied, but the old value still has an effect: status says until when.
    let now = status(&machine, &state).unwrap();
    assert!(!now.active);
    let reported = now.settling.iter().find(|s| s.knob == "vmstat").unwrap();
    assert_eq!(
        (reported.original.as_str(), Some(&reported.in_force_by)),
        ("7", vmstat.in_force_by.as_ref())
    );
}

#[test]
fn a_value_without_a_time_settles_within_its_own_length() {
    let (dir, machine, state) = world();
    turn(&machine, &state, &["vmstat"]);
    // As if 3600 had been applied at an unknown time.
    let path = dir.path().join("state/journal.jsonl");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("\"to\":\"60\"", "\"to\":\"3600\"");
    let records = text.lines().map(|line| {
        let at = line.find(",\"chain\"").unwrap();
        let line = match line
            .find(",\"at_realtime_ns\"")
            .filter(|_| line.contains("\"record\":\"done\""))
        {
            Some(time) => &line[..time],
            None => &line[..at],
        };
        format!("{line}}}")
    });
    fs::write(&path, sealed_journal(records)).unwrap();
    fs::write(dir.path().join("root").join(STAT), "3600\n").unwrap();
    let now = status(&machine, &state).unwrap();
    assert_eq!(
        now.changes[0].in_force_by, None,
        "the journal does not tell when"
    );
    let rolled = rollback(&mut FakeHands::new(&machine), &state, &mut |_| {
        OnDrift::Later
    })
    .unwrap();
    assert!(within(&rolled.steps[0].in_force_by) > Nanos(3_600_000_000_000));
    let settling = status(&machine, &state).unwrap().settling;
    assert!(
        settling[0]
            .in_force_by
            .is_ahead(realtime_ns() + 3_600_000_000_000)
    );
}

#[test]
fn what_the_kernel_refused_is_in_force_at_no_time() {
    let (_dir, machine, state) = world();
    let select = Select::Only(vec!["vmstat".into()]);
    let plan = plan(&machine, &goal(&machine), &select, &[], false).unwrap();
    let mut hands = FakeHands::new(&machine);
    hands.refuse = vec![("*/stat_interval", 16)];
    let report = apply(&mut hands, &state, &plan, who(), OnRefusal::GoOn).unwrap();
    assert_eq!(report.applied[0].in_force_by, None);
    let rolled = rollback(&mut FakeHands::new(&machine), &state, &mut |_| {
        OnDrift::Later
    })
    .unwrap();
    assert_eq!(rolled.steps[0].in_force_by, None);
}
