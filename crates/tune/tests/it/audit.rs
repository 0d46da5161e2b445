//! The order of an audit, and other programs that write the same settings.

use crate::support;

use jitterscope_model::{Nanos, Subject};
use jitterscope_tune::{Audit, Competes, Helps, KnobState, MeasuredCulprit, RunCulprits, audit};
use support::{Cgroups, build, folder, goal, put_thread};

fn rank(state: &KnobState) -> u8 {
    match state {
        KnobState::Wrong => 0,
        KnobState::Fine => 1,
        KnobState::Unreadable(_) => 2,
        KnobState::NotApplicable(_) => 3,
        KnobState::Unavailable(_) => 4,
    }
}

fn audited(measured: Option<&RunCulprits>) -> Audit {
    let folder = folder();
    let machine = build(folder.path(), Cgroups::V2);
    std::fs::remove_file(
        folder
            .path()
            .join("sys/module/kfence/parameters/sample_interval"),
    )
    .unwrap();
    audit(&machine, &goal(&machine), measured)
}

#[test]
fn without_a_run_knobs_rank_by_state_weight_and_risk() {
    let audit = audited(None);
    assert!(
        audit
            .knobs
            .is_sorted_by_key(|knob| (rank(&knob.state), knob.weight, knob.risk))
    );
    let ranks: Vec<u8> = audit.knobs.iter().map(|knob| rank(&knob.state)).collect();
    for there in [0, 1, 3, 4] {
        assert!(ranks.contains(&there), "{there}: {ranks:?}");
    }
    assert!(audit.run.is_none() && audit.remedies.is_empty());
}

#[test]
fn with_a_run_the_largest_gain_comes_first() {
    let culprit = |subject, ns| MeasuredCulprit {
        subject,
        total_ns: Nanos(ns),
        count: 1,
    };
    let fault = Subject::PageFault { user: true };
    let measured = RunCulprits {
        run: "r".into(),
        measured_ns: Nanos(1_000_000_000),
        culprits: vec![
            culprit(fault, 900),
            culprit(Subject::Call("flush_tlb_func".into()), 5_000),
            culprit(
                Subject::Unknown {
                    kind: "gremlin".into(),
                    name: "a".into(),
                    detail: "".into(),
                },
                7,
            ),
            culprit(
                Subject::Unknown {
                    kind: "gremlin".into(),
                    name: "b".into(),
                    detail: "".into(),
                },
                70,
            ),
        ],
        ..RunCulprits::default()
    };
    let audit = audited(Some(&measured));
    let won: Vec<_> = audit
        .knobs
        .iter()
        .take_while(|knob| knob.win.is_some())
        .collect();
    let totals = won
        .iter()
        .filter_map(|knob| Some(knob.win.as_ref()?.total_ns));
    assert!(totals.is_sorted_by(|a, b| a >= b));
    assert!(won[0].id == "tlb" && won.iter().any(|knob| knob.id == "prefault"));
    assert!(matches!(audit.knobs[0].state, KnobState::NotApplicable(_)));
    // Knobs without a gain keep their order from an audit without a run.
    let others = audit
        .knobs
        .iter()
        .filter(|knob| knob.win.is_none())
        .map(|knob| rank(&knob.state));
    assert!(others.is_sorted());
    assert_eq!(audit.run.as_deref(), Some("r"));
    let remedies: Vec<(&str, bool)> = audit
        .remedies
        .iter()
        .map(|remedy| (remedy.kind.as_str(), remedy.helps == Helps::Nothing))
        .collect();
    assert_eq!(
        remedies,
        [("ipi", false), ("page_fault", false), ("unknown", true)]
    );
}

#[test]
fn programs_that_write_the_same_settings_are_named_and_no_others() {
    let folder = folder();
    let machine = build(folder.path(), Cgroups::V2);
    assert!(jitterscope_tune::competitors(&machine).is_empty());
    put_thread(folder.path(), 50, 1, "irqbalance", 0, "0-3");
    put_thread(folder.path(), 51, 1, "irqbalancer", 0, "0-3");
    put_thread(folder.path(), 52, 1, "tuned", 0, "0-3");
    let found = jitterscope_tune::competitors(&machine);
    let found: Vec<(&str, i32, Competes)> = found
        .iter()
        .map(|one| (one.name.as_str(), one.pid, one.does))
        .collect();
    assert_eq!(
        found,
        [
            ("irqbalance", 50, Competes::MovesInterrupts),
            ("tuned", 52, Competes::SetsProfile)
        ]
    );
}
