//! The contents of a plan by evidence: the knobs that answer, and only those that are worth it.

use crate::support;

use jitterscope_model::{
    Attribution, Confidence, CpuSet, Evidence, Nanos, Part, StallId, Subject, Work, Worker,
};
use jitterscope_store::RunReader;
use jitterscope_tune::{
    ChangeReason, Effect, MeasuredCulprit, RunCulprits, Select, SkipReason, catalogue, plan,
};
use std::convert::Infallible;
use std::path::Path;
use support::{Cgroups, build, folder, goal};

fn work(function: &str, ns: u64) -> MeasuredCulprit {
    let subject = Subject::Work(Work {
        function: Some(function.into()),
        ..Work::default()
    });
    MeasuredCulprit {
        subject,
        total_ns: Nanos(ns),
        count: 1,
    }
}

#[test]
fn power_efficient_queues_are_not_credited_with_other_work() {
    let knob = catalogue::find("wq-powereff").unwrap();
    let answers = |function: &str| {
        knob.answers(&work(function, 1).subject, &CpuSet::new())
            .is_some()
    };
    assert!(answers("neigh_periodic_work"));
    // Permanently bound, and unbound from the start.
    assert!(!answers("vmstat_update") && !answers("wb_workfn"));
}

#[test]
fn an_unbound_mask_is_not_credited_with_bound_work() {
    let effect = |knob: &str, function: &str, worker: Option<&str>| {
        let worker = worker.map(|comm| Worker {
            comm: Some(comm.into()),
            ..Worker::default()
        });
        let work = Work {
            function: Some(function.into()),
            worker,
            ..Work::default()
        };
        catalogue::find(knob)
            .unwrap()
            .answers(&Subject::Work(work), &CpuSet::new())
    };
    let (bound, unbound) = (Some("kworker/1:2"), Some("kworker/u4:1"));
    assert_eq!(effect("wq-unbound", "gc_worker", bound), None);
    assert_eq!(
        effect("wq-unbound", "gc_worker", unbound),
        Some(Effect::Removes)
    );
    assert_eq!(
        effect("wq-unbound", "gc_worker", None),
        Some(Effect::Perhaps)
    );
    // The knob that would make it unbound gains nothing if it is already unbound.
    assert_eq!(
        effect("wq-powereff", "gc_worker", bound),
        Some(Effect::Lessens)
    );
    assert_eq!(effect("wq-powereff", "gc_worker", unbound), None);
}

#[test]
fn what_is_negligible_is_left_out_and_named() {
    let dir = folder();
    let machine = build(dir.path(), Cgroups::V1);
    let culprits = vec![work("vmstat_update", 40_000_000), work("wb_workfn", 6_670)];
    let measured = RunCulprits {
        run: "r".into(),
        measured_ns: Nanos(10_000_000_000),
        culprits,
        ..RunCulprits::default()
    };
    let plan = plan(
        &machine,
        &goal(&machine),
        &Select::RunCulprits(measured),
        &[],
        false,
    )
    .unwrap();
    assert!(
        plan.changes.iter().all(|c| c.knob == "vmstat"),
        "{:?}",
        plan.changes
    );
    assert!(!plan.changes.is_empty());
    let left: Vec<&str> = plan
        .skipped
        .iter()
        .filter(|s| matches!(s.why, SkipReason::Negligible { .. }))
        .map(|s| s.knob)
        .collect();
    assert!(left.contains(&"wq-named"), "{:?}", plan.skipped);
}

#[test]
fn a_culprit_with_several_parts_of_a_stall_caused_it_once() {
    let spin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures/spin");
    let run = RunReader::open(&spin).unwrap();
    let part = |function: &str, net| {
        Part::whole(
            work(function, 1).subject,
            Nanos(net),
            Confidence::High,
            Evidence::SwitchRecords,
        )
    };
    let rows = [
        vec![
            part("vmstat_update", 40),
            part("other", 5),
            part("vmstat_update", 2),
        ],
        vec![part("vmstat_update", 300)],
    ];
    let rows = rows.into_iter().enumerate().map(|(n, parts)| {
        Ok(Attribution {
            stall: StallId(n as u64),
            parts,
        })
    });
    let measured = RunCulprits::gather::<Infallible, _>(run.manifest(), || Ok(rows)).unwrap();
    let reported = |name: &str| {
        let of = measured
            .culprits
            .iter()
            .find(|of| of.subject.name() == name)
            .unwrap();
        (of.total_ns, of.count)
    };
    assert_eq!(
        (reported("vmstat_update"), reported("other")),
        ((Nanos(342), 2), (Nanos(5), 1))
    );
}

/// A thread on a CPU that leaves the scheduler's domains stays there, whatever else waits for that CPU.
#[test]
fn threads_move_before_their_cpu_leaves_the_domains() {
    for cgroups in [Cgroups::V1, Cgroups::V2] {
        let dir = folder();
        let machine = build(&dir.path().join("root"), cgroups);
        let goal = goal(&machine);
        let of = |knob: &str, persist| {
            let select = Select::Only(vec![knob.into()]);
            plan(&machine, &goal, &select, &[], persist).unwrap()
        };
        let alone = of("cpuset-part", false);
        let knobs: Vec<&str> = alone.changes.iter().map(|change| change.knob).collect();
        let partition = knobs
            .iter()
            .position(|knob| *knob == "cpuset-part")
            .unwrap();
        let (before, after) = knobs.split_at(partition);
        for mover in ["kthread-aff", "systemd-aff"] {
            assert_eq!(
                before.iter().filter(|knob| **knob == mover).count(),
                of(mover, false).changes.len(),
                "{cgroups:?}: {knobs:?}"
            );
        }
        assert!(!before.is_empty() && after.iter().all(|knob| *knob == "cpuset-part"));
        let needed = &alone.changes[0].why;
        assert_eq!(*needed, ChangeReason::Needed { by: "cpuset-part" });
        // They are moved for now, as the CPUs are isolated for now.
        assert!(
            of("systemd-aff", true)
                .changes
                .iter()
                .any(|change| change.knob == "persist")
        );
        assert!(
            of("cpuset-part", true)
                .changes
                .iter()
                .all(|change| change.knob != "persist")
        );
        let without = plan(
            &machine,
            &goal,
            &Select::Only(vec!["cpuset-part".into()]),
            &["systemd-aff".into()],
            false,
        );
        let without = without.unwrap().changes;
        assert!(without.iter().all(|change| change.knob != "systemd-aff"));
    }
}
