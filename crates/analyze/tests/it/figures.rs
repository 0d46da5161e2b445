//! The figures of comparisons, at their limits and without measurements.

use crate::common;

use common::{RATE, manifest, part, result, stall};
use jitterscope_analyze::compare::{
    ComparedRunBuilder, DiffRules, FigureKind, Side, Verdict, diff,
};
use jitterscope_model::*;
use std::path::Path;

/// The value of each figure of a run.
fn figures(manifest: &RunManifest) -> Vec<(FigureKind, Option<f64>)> {
    let run = ComparedRunBuilder::new(manifest, None, Path::new("x")).finish();
    let sides = ["a", "b"].map(|name| Side::of_arm(name, vec![run.clone()]).unwrap());
    let reported = diff(&sides, DiffRules::default(), &[], &|_, _| false);
    reported.against[0]
        .figures
        .iter()
        .map(|row| (row.kind, row.first[0]))
        .collect()
}

fn one(manifest: &RunManifest, kind: FigureKind) -> Option<f64> {
    let all = figures(manifest);
    let found = all.iter().find(|(of, _)| *of == kind);
    found
        .unwrap_or_else(|| panic!("{kind:?} is not among {all:?}"))
        .1
}

fn near(found: Option<f64>, wanted: f64) {
    assert!(
        found.is_some_and(|found| (found / wanted - 1.0).abs() < 1e-6),
        "{found:?} {wanted}"
    );
}

/// The lengths over which stalls are counted, with the counts.
fn over(manifest: &RunManifest) -> Vec<(u64, f64)> {
    figures(manifest)
        .into_iter()
        .filter_map(|(kind, rate)| match kind {
            FigureKind::StallsOver { over_ns } | FigureKind::LateOver { over_ns } => {
                Some((over_ns.0, rate?))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn stalls_are_counted_from_each_length_on_that_the_threshold_shows() {
    // A microsecond is 2600 ticks.
    let mut run = manifest(
        vec![result(1, &[2_599, 2_600, 26_000, 25_999, 26_000_000])],
        false,
    );
    let seconds = RATE
        .nanos(run.results[0].end - run.results[0].start)
        .as_secs_f64();
    let counts = |run: &RunManifest| -> Vec<(u64, u64)> {
        over(run)
            .into_iter()
            .map(|(ns, rate)| (ns, (rate * seconds).round() as u64))
            .collect()
    };
    assert_eq!(
        counts(&run),
        [
            (1_000, 4),
            (10_000, 2),
            (100_000, 1),
            (1_000_000, 1),
            (10_000_000, 1)
        ]
    );
    run.probe.threshold_ns = Nanos(1_000);
    assert_eq!(counts(&run).len(), 5);
    run.probe.threshold_ns = Nanos(1_001);
    assert_eq!(counts(&run)[0], (10_000, 2));
}

#[test]
fn late_wakeups_exclude_those_of_the_control() {
    let woken = |cpu: u32, plain: &[(u64, u64)]| WakeupResult {
        cpu: CpuId(cpu),
        wakeups: 10,
        sum: Nanos(1_000),
        max: Nanos(20_000),
        plain: plain.to_vec(),
        corrected: plain.to_vec(),
        ..WakeupResult::default()
    };
    let mut run = manifest(vec![result(1, &[]), result(2, &[])], false);
    run.wakeups = vec![
        woken(1, &[(999, 4), (1_000, 3), (10_000, 2)]),
        woken(2, &[(1_000, 1)]),
    ];
    let rates =
        |run: &RunManifest| -> Vec<f64> { over(run).into_iter().map(|(_, rate)| rate).collect() };
    let seconds = RATE
        .nanos(run.results[0].end - run.results[0].start)
        .as_secs_f64();
    for (control, of, cpus) in [
        (None, [6.0, 2.0, 0.0], 2.0),
        (Some(2), [5.0, 2.0, 0.0], 1.0),
    ] {
        run.probe.wakeup = Some(WakeupConditions {
            period_ns: Nanos(1_000_000),
            hold_latency: true,
            idle_control: control.map(CpuId),
        });
        let found = rates(&run);
        for (found, wanted) in found.iter().zip(of) {
            assert!(
                (found - wanted / (cpus * seconds)).abs() < 1e-6 * found.max(1.0),
                "{control:?}: {found}"
            );
        }
    }
    near(one(&run, FigureKind::Worst), 20_000.0);
}

#[test]
fn time_of_followed_threads_is_a_share_of_that_in_which_they_had_work() {
    let mut run = manifest(Vec::new(), false);
    let account = |running, waiting, interrupted| ThreadAccount {
        running_ns: Nanos(running),
        waiting_ns: Nanos(waiting),
        interrupted_ns: Nanos(interrupted),
        longest_wait_ns: Nanos(waiting / 2),
        involuntary_switches: 3,
        migrations: 2,
        ..ThreadAccount::default()
    };
    run.threads = vec![
        account(500_000, 200_000, 30_000),
        account(300_000, 0, 10_000),
    ];
    for (kind, wanted) in [
        (FigureKind::Lost, 0.24),
        (FigureKind::Waiting, 0.2),
        (FigureKind::Interrupted, 0.04),
        (FigureKind::Preemptions, 6_000.0),
        (FigureKind::Migrations, 4_000.0),
        (FigureKind::Worst, 100_000.0),
    ] {
        near(one(&run, kind), wanted);
    }
    run.threads = vec![account(0, 0, 0)];
    for kind in [
        FigureKind::Lost,
        FigureKind::Waiting,
        FigureKind::Interrupted,
        FigureKind::Preemptions,
    ] {
        assert_eq!(one(&run, kind), None, "{kind:?} of no work");
    }
}

#[test]
fn sleeps_are_a_share_of_the_followed_time_and_only_of_runs_with_stacks() {
    let mut run = manifest(Vec::new(), false);
    let slept = |reason, blocked: u64| BlockedOn {
        reason,
        function: None,
        unknown_because: None,
        count: 1,
        blocked_ns: Nanos(blocked),
        max_ns: Nanos(blocked),
    };
    let mut account = ThreadAccount {
        running_ns: Nanos(600),
        blocked_ns: Nanos(400),
        blocked_on: vec![
            slept(BlockReason::Disk, 300),
            slept(BlockReason::NotRecorded, 100),
        ],
        ..ThreadAccount::default()
    };
    let of = |reason| FigureKind::Blocked { reason };
    run.threads = vec![account.clone()];
    near(one(&run, of("disk")), 0.3);
    near(one(&run, of("not_recorded")), 0.1);
    // No run has it.
    let has = |run: &RunManifest, reason| figures(run).iter().any(|(kind, _)| *kind == of(reason));
    assert!(!has(&run, "timer"));
    account.blocked_on = vec![slept(BlockReason::NotRecorded, 400)];
    run.threads = vec![account];
    assert!(!has(&run, "disk") && !has(&run, "not_recorded"));
}

#[test]
fn what_was_not_measured_has_no_value() {
    let mut spun = manifest(vec![result(1, &[])], false);
    spun.results[0].end = spun.results[0].start;
    assert_eq!(one(&spun, FigureKind::Stolen), None);
    assert!(over(&spun).is_empty());
    let mut watched = manifest(Vec::new(), false);
    watched.passive = vec![PassiveCpu::default()];
    assert_eq!(one(&watched, FigureKind::Lost), None);
    assert!(over(&watched).is_empty());
    let consumer = |count| PipelineConsumer {
        role: PipelineRole::Accumulator,
        received: count,
        disordered: 0,
        transit: MessageTimes::default(),
        from_intended: MessageTimes {
            count,
            sum: Nanos(500 * count),
            max: Nanos(900),
            ..MessageTimes::default()
        },
        inter: MessageTimes::default(),
        slow_above_ns: Nanos(0),
        slow: 0,
        slow_dropped: 0,
    };
    let mut piped = manifest(Vec::new(), false);
    let mean = FigureKind::MeanMessage {
        role: PipelineRole::Accumulator,
    };
    for (count, wanted) in [(0, [None; 2]), (4, [Some(500.0), Some(900.0)])] {
        let result = PipelineResult {
            consumers: vec![consumer(count)],
            ..PipelineResult::default()
        };
        piped.pipeline = Some(result);
        assert_eq!(
            [mean, FigureKind::Worst].map(|kind| one(&piped, kind)),
            wanted
        );
    }
}

#[test]
fn the_total_is_the_first_of_those_there_are() {
    let spun = ComparedRunBuilder::new(
        &manifest(vec![result(1, &[26_000])], false),
        None,
        Path::new("x"),
    )
    .finish();
    near(spun.total(), 26_000.0 / 18_226_000.0);
    assert_eq!(spun.total_kind(), Some(FigureKind::Stolen));
    let timed = spun.with_wall_time(Nanos(5_000));
    assert_eq!(
        (timed.total(), timed.total_kind()),
        (Some(5_000.0), Some(FigureKind::WallTime))
    );
    let nothing =
        ComparedRunBuilder::new(&manifest(Vec::new(), false), None, Path::new("x")).finish();
    assert_eq!((nothing.total(), nothing.total_kind()), (None, None));
}

#[test]
fn a_culprit_counts_once_a_stall_of_the_measured_cpus() {
    let events = |manifest: &RunManifest, name: &str| {
        let mut builder = ComparedRunBuilder::new(manifest, None, Path::new("x"));
        for (id, cpu, names) in [
            (0, 1, &["tick", "tick", "job"][..]),
            (1, 1, &["tick"]),
            (2, 2, &["tick"]),
            (3, 3, &["tick"]),
        ] {
            let parts = names
                .iter()
                .map(|name| part(CulpritKind::Timer, name, 100))
                .collect();
            let attribution = Attribution {
                stall: StallId(id),
                parts,
            };
            builder.stall(
                &stall(id, cpu, 2_000_000 + 100_000 * id, 26_000),
                &attribution,
            );
        }
        builder
            .finish()
            .events_of(&|subject| subject.name() == name)
    };
    let mut run = manifest(vec![result(1, &[26_000]), result(2, &[26_000])], true);
    assert_eq!(
        ["tick", "job", "cron"].map(|name| events(&run, name)),
        [Some(3), Some(1), Some(0)]
    );
    run.probe.wakeup = Some(WakeupConditions {
        period_ns: Nanos(1_000_000),
        hold_latency: true,
        idle_control: Some(CpuId(2)),
    });
    assert_eq!(events(&run, "tick"), Some(2));
    run.attributed = false;
    assert_eq!(events(&run, "tick"), None);
    // Watched CPUs count like those with a probe.
    let mut watched = manifest(Vec::new(), true);
    let cpu = |cpu| PassiveCpu {
        cpu: CpuId(cpu),
        running_ns: Nanos(1_000_000_000),
        ..PassiveCpu::default()
    };
    watched.passive = vec![cpu(1), cpu(2)];
    assert_eq!(events(&watched, "tick"), Some(3));
}

#[test]
fn blocks_of_a_run_say_where_its_own_share_lies() {
    const SECOND: u64 = 2_600_000_000;
    let mut run = manifest(vec![result(1, &[26_000])], false);
    (run.results[0].start, run.results[0].end) = (Ticks(0), Ticks(12 * SECOND));
    let mut builder = ComparedRunBuilder::new(&run, None, Path::new("x"));
    for at in 0..12 {
        for (cpu, stolen) in [
            (1, if at % 2 == 0 { 10_000_000 } else { 20_000_000 }),
            (9, 900_000_000),
        ] {
            builder.interval(&IntervalRow {
                cpu: CpuId(cpu),
                start: Ticks(at * SECOND),
                end: Ticks((at + 1) * SECOND),
                count: 1,
                max: Nanos(stolen),
                stolen: Nanos(stolen),
            });
        }
    }
    let within = builder.finish().within_run.unwrap();
    // Eleven steps, because the last may be shorter: six of one hundredth and five of two.
    near(Some(f64::midpoint(within.low, within.high)), 0.16 / 11.0);
    assert!(
        within.width() > 0.005 && within.width() < 0.01,
        "{within:?}"
    );
}

#[test]
fn waits_that_many_support_are_judged_and_as_fine_as_a_tick() {
    let run = ComparedRunBuilder::new(
        &manifest(vec![result(1, &[26_000; 2_000])], false),
        None,
        Path::new("x"),
    )
    .finish();
    let sides = ["a", "b"].map(|name| Side::of_arm(name, vec![run.clone(); 4]).unwrap());
    let reported = diff(&sides, DiffRules::default(), &[], &|_, _| false);
    let wait = FigureKind::Wait { percentile: "99" };
    let row = reported.against[0]
        .figures
        .iter()
        .find(|row| row.kind == wait)
        .unwrap();
    let comparison = row.comparison.as_ref().unwrap();
    assert_eq!(comparison.verdict, Verdict::Equivalent, "{comparison:?}");
    // A three-digit bucket to either side.
    near(
        comparison.interval.map(|of| of.width()),
        1e-3 + 1.0 - 1.0 / 1.001,
    );
}
