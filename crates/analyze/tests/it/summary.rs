//! Summaries of synthetic runs.

use crate::common;

use common::{RATE, manifest, part, result, stall, with_control};
use jitterscope_analyze::gate::{GateReason, GateVerdict, evaluate, parse};
use jitterscope_analyze::{Blame, BlameLevel, RunLine, RunSummary, SummaryBuilder};
use jitterscope_model::*;
use proptest::prelude::*;

fn assert_identity(summary: &RunSummary) {
    let a = summary.attribution.as_ref().unwrap();
    let explained: Nanos = a.culprits.iter().map(|c| c.total_ns).sum();
    assert_eq!(explained + a.unexplained.total_ns, a.stalled_ns);
    assert_eq!(
        a.unexplained.by_class.values().copied().sum::<Nanos>(),
        a.unexplained.total_ns
    );
    assert_eq!(
        a.unexplained
            .classes
            .iter()
            .map(|c| c.total_ns)
            .sum::<Nanos>(),
        a.unexplained.total_ns
    );
    assert!(a.culprits.iter().all(|c| c.subject.kind().is_explained()));
}

#[test]
fn the_contract_of_the_json() {
    let manifest = manifest(vec![result(1, &[2600, 26_000])], true);
    let mut builder = SummaryBuilder::new(&manifest);
    for (id, length) in [(0, 2600), (1, 26_000)] {
        builder.stall(&stall(id, 1, 2_000_000 + id * 100_000, length));
        let ns = length * 5 / 13;
        builder.attribution(&Attribution {
            stall: StallId(id),
            parts: vec![
                part(CulpritKind::Timer, "tick_nohz_handler", ns / 2),
                part(CulpritKind::Hypervisor, "late interrupt", ns - ns / 2),
            ],
        });
    }
    let summary = builder.finish();
    assert_identity(&summary);
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["schema_version"], SCHEMA_VERSION);
    for (at, keys) in [
        (&json["run"], vec!["id", "label", "path"]),
        (
            &json["probe"],
            vec!["kind", "threshold_ns", "tsc_hz", "cpus"],
        ),
        (
            &json["probe"]["cpus"][0],
            vec![
                "cpu",
                "samples",
                "samples_per_sec",
                "coverage",
                "floor_ns",
                "mean_ns",
                "stddev_ns",
                "percentiles_ns",
                "max_ns",
                "stalls",
                "stolen_ns",
                "stolen_fraction",
                "dropped_records",
            ],
        ),
        (
            &json["attribution"],
            vec![
                "explained_fraction",
                "stalls",
                "stalled_ns",
                "events_in_gaps_fraction",
                "events_in_gaps_control",
                "culprits",
                "unexplained",
            ],
        ),
        (
            &json["attribution"]["culprits"][0],
            vec![
                "kind", "name", "threads", "sender", "count", "total_ns", "share", "mean_ns",
                "max_ns",
            ],
        ),
        (
            &json["attribution"]["unexplained"],
            vec!["total_ns", "by_class_ns"],
        ),
        (
            &json["worst"][0],
            vec!["cpu", "start_realtime_ns", "duration_ns", "parts"],
        ),
        (
            &json["worst"][0]["parts"][0],
            vec!["kind", "name", "net_ns"],
        ),
    ] {
        for key in keys {
            assert!(at.get(key).is_some(), "{key} is missing in {at}");
        }
    }
    let percentiles: Vec<&String> = json["probe"]["cpus"][0]["percentiles_ns"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(
        percentiles,
        ["50", "90", "99", "99.9", "99.99", "99.999", "99.9999"]
    );
    assert_eq!(
        json["attribution"]["unexplained"]["by_class_ns"]["hypervisor: late interrupt"],
        5500
    );
    assert_eq!(json["attribution"]["explained_fraction"], 0.5);
    assert_eq!(json["attribution"]["events_in_gaps_fraction"], 0.995);
    assert_eq!(json["worst"][0]["duration_ns"], 10_000);
    assert_eq!(json["worst"][0]["rank"], 1);
    assert_eq!(json["probe"]["cpus"][0]["floor_ns"], 6.923);
    assert_eq!(json["probe"]["cpus"][0]["coverage"], 1.0);
    // Two stalls do not support a percentile of the stalls.
    assert!(json["probe"]["cpus"][0]["stall_percentiles_ns"]["50"].is_null());
}

#[test]
fn evidence_that_fails_its_own_proof_is_known_by_what_it_fails() {
    let source = |lost| SourceReport {
        lost,
        ..SourceReport::available("tracefs")
    };
    let run = |events, inside, lost, dropped, own| {
        let mut result = result(1, &[2600; 1000]);
        (result.dropped_records, result.own_bookkeeping) = (dropped, own);
        let mut run = manifest(vec![result], true);
        run.events_in_gaps = EventsInGaps {
            events,
            inside,
            too_short: 0,
            control_events: 1,
            control_inside: 0,
        };
        run.sources = vec![source(lost)];
        run
    };
    // One in a hundred, or two of any number, do not refute the proof.
    for sound in [
        run(5_138, 5_087, 51, 10, 0),
        run(3, 1, 2, 0, 0),
        run(0, 0, 0, 0, 0),
        run(10_000, 10_000, 0, 900, 900),
    ] {
        assert_eq!(sound.doubts(), []);
        let summary = SummaryBuilder::new(&sound).finish();
        assert!(summary.trust.doubts.is_empty() && summary.attribution.unwrap().proven);
    }
    let outside = Doubt::EventsOutsideStalls {
        events: 5_138,
        inside: 1_027,
    };
    let lost = Doubt::EventsLost {
        lost: 200,
        events: 5_138,
    };
    let unrecorded = Doubt::StallsUnrecorded {
        unrecorded: 11,
        stalls: 999,
    };
    for (run, doubts) in [
        (run(5_138, 1_027, 0, 0, 0), vec![outside]),
        (run(5_138, 5_138, 200, 0, 0), vec![lost]),
        (run(5_138, 5_138, 0, 12, 1), vec![unrecorded]),
        (
            run(5_138, 1_027, 200, 12, 1),
            vec![outside, lost, unrecorded],
        ),
    ] {
        assert_eq!(run.doubts(), doubts);
        let summary = SummaryBuilder::new(&run).finish();
        assert_eq!(summary.trust.doubts, doubts);
        assert!(!summary.attribution.unwrap().proven);
        assert_eq!(
            RunManifest {
                attributed: false,
                ..run
            }
            .doubts(),
            [],
            "it names nobody"
        );
    }
    let json = serde_json::to_value(unrecorded).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"kind": "stalls_unrecorded", "unrecorded": 11, "stalls": 999})
    );
}

#[test]
fn events_of_what_took_less_than_the_threshold_need_not_lie_in_stalls() {
    let summary = |too_short| {
        let mut run = manifest(vec![result(1, &[2600; 1000])], true);
        run.events_in_gaps = EventsInGaps {
            events: 10_000,
            inside: 9_000,
            too_short,
            control_events: 1,
            control_inside: 0,
        };
        (
            run.doubts(),
            SummaryBuilder::new(&run).finish().attribution.unwrap(),
        )
    };
    let (doubts, all_short) = summary(1_000);
    assert_eq!(
        (
            doubts.len(),
            all_short.proven,
            all_short.events_in_gaps_fraction
        ),
        (0, true, Some(1.0))
    );
    assert_eq!(
        (all_short.events, all_short.events_too_short),
        (9_000, 1_000)
    );
    // The others are judged separately.
    let (doubts, some_long) = summary(500);
    assert_eq!(
        doubts,
        [Doubt::EventsOutsideStalls {
            events: 9_500,
            inside: 9_000
        }]
    );
    assert!(!some_long.proven);
}

#[test]
fn slow_messages_without_rows_are_a_doubt_of_who_made_them_slow() {
    let run = |slow, slow_dropped| {
        let consumer = PipelineConsumer {
            slow,
            slow_dropped,
            ..PipelineConsumer::default()
        };
        let pipeline = PipelineResult {
            consumers: vec![consumer],
            ..PipelineResult::default()
        };
        RunManifest {
            pipeline: Some(pipeline),
            ..manifest(Vec::new(), true)
        }
    };
    assert_eq!(run(10_000, 100).doubts(), []);
    let doubt = Doubt::MessagesUnrecorded {
        unrecorded: 13_526,
        slow: 281_044,
    };
    assert_eq!(run(281_044, 13_526).doubts(), [doubt]);
    assert_eq!(
        RunManifest {
            attributed: false,
            ..run(281_044, 13_526)
        }
        .doubts(),
        []
    );
}

#[test]
fn messages_are_explained_where_enough_of_them_have_a_row() {
    let consumer = PipelineConsumer {
        slow: 4_996,
        slow_dropped: 1_112,
        ..PipelineConsumer::default()
    };
    let role = consumer.role;
    let manifest = RunManifest {
        pipeline: Some(PipelineResult {
            consumers: vec![consumer],
            ..PipelineResult::default()
        }),
        ..manifest(Vec::new(), true)
    };
    let blame = |level, above, split| Blame {
        role,
        level,
        longer_than_ns: Nanos(1),
        above,
        split,
        total_ns: Nanos(1),
        rows: Vec::new(),
    };
    let shown = |above_p99: (u64, u64), slow: (u64, u64)| {
        let mut summary = SummaryBuilder::new(&manifest).finish();
        let pipeline = summary.pipeline.as_mut().unwrap();
        pipeline.blame = vec![
            blame(BlameLevel::AboveP99, above_p99.0, above_p99.1),
            blame(BlameLevel::Slow, slow.0, slow.1),
        ];
        let level = pipeline.held_up(role).map(|blame| blame.level);
        assert_eq!(summary.withheld().is_empty(), level.is_some());
        // A basis for action must hold without exception.
        assert_eq!(summary.trust.doubts.len(), 1);
        // Lost events are a different case.
        summary
            .trust
            .doubts
            .push(Doubt::EventsLost { lost: 9, events: 9 });
        assert_eq!(summary.withheld().len(), 2);
        level
    };
    let (p99, slow) = (Some(BlameLevel::AboveP99), Some(BlameLevel::Slow));
    assert_eq!(shown((50, 40), (4_996, 3_884)), p99);
    assert_eq!(shown((50, 3), (4_996, 3_884)), slow);
    assert_eq!(shown((50, 3), (4_996, 60)), None);
    assert_eq!(shown((50, 0), (4_996, 0)), None);
}

#[test]
fn where_wake_ups_and_messages_fall_proves_nothing() {
    let mut slept = manifest(vec![result(1, &[2600])], true);
    slept.events_in_gaps = EventsInGaps {
        events: 1000,
        inside: 10,
        too_short: 0,
        control_events: 1000,
        control_inside: 9,
    };
    slept.wakeups = vec![WakeupResult::default()];
    assert_eq!(slept.doubts(), []);
    let followed = RunManifest {
        results: Vec::new(),
        wakeups: Vec::new(),
        ..slept
    };
    assert_eq!(followed.doubts(), []);
}

#[test]
fn a_clean_machine_and_an_unmeasured_one_have_no_bogus_numbers() {
    let clean = manifest(vec![result(1, &[])], true);
    let summary = SummaryBuilder::new(&clean).finish();
    assert_identity(&summary);
    assert_eq!(summary.attribution.unwrap().explained_fraction, 0.0);
    let mut nothing = result(1, &[]);
    nothing = ProbeResult {
        start: Ticks(0),
        end: Ticks(0),
        samples: 0,
        sum_ticks: 0,
        sum_squares: 0,
        min_ticks: u64::MAX,
        max_ticks: 0,
        below: vec![],
        ..nothing
    };
    let manifest = manifest(vec![nothing], false);
    let json = serde_json::to_value(SummaryBuilder::new(&manifest).finish()).unwrap();
    assert!(json["attribution"].is_null());
    let cpu = &json["probe"]["cpus"][0];
    assert!(
        cpu["floor_ns"].is_null()
            && cpu["max_ns"].is_null()
            && cpu["percentiles_ns"]["50"].is_null()
    );
    assert_eq!(cpu["samples_per_sec"], 0.0);
    assert_eq!(RunLine::new(&RunHead::of(&manifest)).max_ns, None);
}

#[test]
fn a_condition_on_a_thread_name_is_undecided_by_process_rows() {
    let manifest = manifest(vec![result(1, &[2600, 2600])], true);
    let mut builder = SummaryBuilder::new(&manifest);
    for (id, comm) in [(0, "lto cgu.00"), (1, "lto cgu.01")] {
        builder.stall(&stall(id, 1, id * 10_000, 2600));
        let process = Some("rustc".into());
        let task = Task {
            tid: Some(71 + id as i32),
            tgid: Some(70),
            process,
            comm: comm.into(),
            ..Task::default()
        };
        let part = Part::inside(Subject::Thread(task), Nanos(1000), Evidence::SwitchRecords);
        builder.attribution(&Attribution {
            stall: StallId(id),
            parts: vec![part],
        });
    }
    let summary = builder.finish();
    let rows = &summary.attribution.as_ref().unwrap().culprits;
    assert_eq!(
        (
            rows.len(),
            &*rows[0].subject.name(),
            rows[0].count,
            rows[0].threads
        ),
        (1, "rustc", 2, 2)
    );
    assert_eq!(rows[0].thread_names.join(", "), "lto cgu.00, lto cgu.01");
    let verdict = |text: &str| evaluate(&parse(text).unwrap(), &summary).remove(0);
    assert_eq!(verdict("culprit(rustc)>0%").verdict, GateVerdict::Exceeded);
    assert_eq!(verdict("culprit(cron)>0%").verdict, GateVerdict::Kept);
    // `Kept` would be wrong: it took time, under another name.
    let of_thread = verdict("culprit(lto*)>0%");
    assert_eq!(of_thread.verdict, GateVerdict::Undecided);
    let by_process = |why: &GateReason| matches!(why, GateReason::GoesByProcess { program, .. } if program == "rustc");
    assert!(
        of_thread.why.as_ref().is_some_and(by_process),
        "{of_thread:?}"
    );
}

#[test]
fn inconsistent_rows_are_reported_and_keep_the_identity() {
    let manifest = manifest(vec![result(1, &[2600, 2600, 2600])], true);
    let mut builder = SummaryBuilder::new(&manifest);
    for id in 0..4 {
        builder.stall(&stall(id, 1, id * 10_000, 2600));
    }
    // Stall 0 has no row, 1 too much, 2 too little, 9 does not exist.
    let timer = |id, net| Attribution {
        stall: StallId(id),
        parts: vec![part(CulpritKind::Timer, "t", net)],
    };
    builder.attribution(&timer(1, 5000));
    builder.attribution(&timer(9, 5000));
    builder.attribution(&timer(2, 400));
    let summary = builder.finish();
    assert_identity(&summary);
    assert_eq!(summary.trust.inconsistent_rows, 5);
    assert_eq!(summary.warnings[0].warning.id(), "inconsistent-rows");
    let a = summary.attribution.unwrap();
    assert_eq!(
        (a.stalled_ns, a.culprits[0].total_ns),
        (Nanos(4000), Nanos(1400))
    );
}

#[test]
fn stalls_that_begin_together_are_grouped_whatever_order_they_come_in() {
    let mut manifest = manifest(vec![result(0, &[2600; 3]), result(1, &[2600; 3])], false);
    manifest.results[0].end = Ticks(26_000_000_000);
    manifest.results[1].end = Ticks(26_000_000_000);
    let mut builder = SummaryBuilder::new(&manifest);
    // CPU 0's stalls come first, then CPU 1's: two pairs within 2 us, two alone.
    for (id, cpu, start) in [
        (0, 0, 1_000_000),
        (1, 0, 2_000_000),
        (2, 0, 3_000_000),
        (3, 1, 1_002_600),
        (4, 1, 2_900_000),
        (5, 1, 3_000_000),
    ] {
        builder.stall(&stall(id, cpu, start, 2600));
    }
    let found = builder.finish().simultaneous.unwrap();
    assert_eq!(
        (
            found.groups,
            found.stalls,
            found.on_all_cpus,
            found.worst.len()
        ),
        (2, 4, 2, 2)
    );
    assert!(found.groups_by_chance > 0.0 && found.groups_by_chance < 0.01);
}

#[test]
fn intervals_become_a_history() {
    let mut manifest = manifest(vec![result(1, &[2600])], false);
    manifest.results[0].start = Ticks(0);
    manifest.results[0].end = Ticks(26_000_000_000);
    let mut builder = SummaryBuilder::new(&manifest);
    for n in 0..10u64 {
        let (start, end) = (Ticks(n * 2_600_000_000), Ticks((n + 1) * 2_600_000_000));
        builder.interval(&IntervalRow {
            cpu: CpuId(1),
            start,
            end,
            count: n,
            max: Nanos(n),
            stolen: Nanos(n * 10),
        });
    }
    let history = builder.finish().history;
    assert_eq!(history.step_ns, Nanos(1_000_000_000));
    assert_eq!(
        history.stolen_ns,
        (0..10).map(|n| Nanos(n * 10)).collect::<Vec<_>>()
    );
    assert_eq!(
        (history.cpus.len(), &history.cpus[0].stolen_ns),
        (1, &history.stolen_ns)
    );
}

proptest! {
    #[test]
    fn explained_and_unexplained_sum_to_the_stalled_time(
        stalls in proptest::collection::vec(
            (1u64..1_000_000, proptest::collection::vec((0usize..15, 0u8..3, 0u64..100_000), 0..5), 0u8..10),
            0..60,
        ),
        cap in 1usize..6,
    ) {
        let manifest = manifest(vec![result(1, &[])], true);
        let mut builder = SummaryBuilder::new(&manifest).max_culprits(cap).worst(3);
        for (id, (length, parts, skip)) in (0u64..).zip(&stalls) {
            builder.stall(&stall(id, 1, id * 2_000_000, *length));
            if *skip > 0 {
                let parts = parts.iter().map(|(k, n, net)| {
                    part(CulpritKind::ALL[*k], &format!("c{n}"), *net)
                });
                builder.attribution(&Attribution { stall: StallId(id), parts: parts.collect() });
            }
        }
        let summary = builder.finish();
        assert_identity(&summary);
        let expected: Nanos = stalls.iter().map(|(length, ..)| RATE.nanos(Ticks(*length))).sum();
        prop_assert_eq!(summary.attribution.unwrap().stalled_ns, expected);
        prop_assert!(summary.worst.len() <= 3);
    }
}

proptest! {
    /// For any length of the run and its intervals, a series loses nothing and counts nothing twice.
    #[test]
    fn series_of_cpus_sum_to_the_total(
        rows in proptest::collection::vec((0u32..5, 0u64..400, 0u64..1_000_000, 0u64..1_000_000), 0..200),
        seconds in 1u64..400,
        control in proptest::option::of(0u32..4),
    ) {
        let mut manifest = manifest((0..4).map(|cpu| result(cpu, &[])).collect(), false);
        for result in &mut manifest.results {
            (result.start, result.end) = (Ticks(0), Ticks(seconds * 2_600_000_000));
        }
        manifest.probe.wakeup = control.map(with_control);
        let mut builder = SummaryBuilder::new(&manifest);
        for (cpu, second, max, stolen) in &rows {
            builder.interval(&IntervalRow {
                cpu: CpuId(*cpu),
                start: Ticks(second * 2_600_000_000),
                end: Ticks((second + 1) * 2_600_000_000),
                count: 1,
                max: Nanos(*max),
                stolen: Nanos(*stolen),
            });
        }
        let history = builder.finish().history;
        prop_assert!(history.stolen_ns.len() <= 60 && history.stolen_ns.len() == history.max_ns.len());
        for of in &history.cpus {
            let own = || rows.iter().filter(|row| row.0 == of.cpu.0);
            prop_assert_eq!(of.stolen_ns.iter().map(|ns| ns.0).sum::<u64>(), own().map(|row| row.3).sum::<u64>());
            let longest = of.max_ns.iter().max().unwrap().0;
            prop_assert_eq!(longest, own().map(|row| row.2).max().unwrap_or(0));
        }
        let measured = || history.cpus.iter().filter(|of| Some(of.cpu.0) != control);
        for (at, total) in history.stolen_ns.iter().enumerate() {
            prop_assert_eq!(*total, measured().map(|of| of.stolen_ns[at]).sum::<Nanos>());
            prop_assert_eq!(history.max_ns[at], measured().map(|of| of.max_ns[at]).max().unwrap());
        }
    }
}

proptest! {
    /// The rows of the worst stalls equal those of a grouping that sees all stalls at once.
    #[test]
    fn stalls_that_begin_together_are_reported_once(
        starts in proptest::collection::vec((0u32..4, 0u64..40, 0u64..6_000, 800u64..400_000), 0..80),
        limit in 0usize..8,
    ) {
        let manifest = manifest((0..4).map(|cpu| result(cpu, &[])).collect(), false);
        let stalls: Vec<Stall> = (0u64..)
            .zip(&starts)
            .map(|(id, (cpu, slot, offset, length))| stall(id, *cpu, slot * 20_000 + offset, *length))
            .collect();
        let mut builder = SummaryBuilder::new(&manifest).worst(limit);
        stalls.iter().for_each(|stall| builder.stall(stall));
        let worst = builder.finish().worst;

        let mut sorted = stalls.clone();
        sorted.sort_by_key(|s| (s.start, s.cpu, s.length(), s.id));
        let window = RATE.ticks(Nanos(2000));
        let mut groups: Vec<Vec<Stall>> = Vec::new();
        for stall in sorted {
            match groups.last_mut() {
                Some(group) if stall.start.since(group[0].start) <= window => group.push(stall),
                _ => groups.push(vec![stall]),
            }
        }
        let mut expected: Vec<(u64, StallId, Vec<StallId>)> = Vec::new();
        for mut group in groups {
            group.sort_by_key(|s| (std::cmp::Reverse(s.length()), s.id));
            let least = group[0].length().0 / 10;
            let mut together: Vec<Stall> = Vec::new();
            for stall in group {
                let other = together.iter().all(|known| known.cpu != stall.cpu);
                if other && stall.length().0 >= least {
                    together.push(stall);
                } else {
                    expected.push((stall.length().0, stall.id, vec![stall.id]));
                }
            }
            let ids = together.iter().map(|s| s.id).collect();
            expected.push((together[0].length().0, together[0].id, ids));
        }
        expected.sort_by_key(|(length, id, _)| (std::cmp::Reverse(*length), *id));
        expected.truncate(limit);
        prop_assert_eq!(worst.len(), expected.len());
        for (row, (_, id, mut ids)) in worst.iter().zip(expected) {
            prop_assert_eq!(row.stall, id);
            let mut reported = match &row.together {
                Some(together) => together.stalls.iter().map(|s| s.stall).collect(),
                None => vec![row.stall],
            };
            reported.sort_unstable();
            ids.sort_unstable();
            prop_assert_eq!(reported, ids);
        }
    }
}
