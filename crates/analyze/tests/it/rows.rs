//! The rows of a recording, and the other inputs of a summary.

use crate::common;

use common::{RATE, manifest, result, stall};
use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::{
    RowSummer, RowSums, RowsOf, RunSummary, SummaryBuilder, timer_frequency,
};
use jitterscope_model::*;

fn attribution(of: &Stall, name: &str) -> Attribution {
    let subject = Subject::Timer {
        function: Some(name.into()),
        source: Some(TimerSource::Wheel),
    };
    let part = Part::inside(subject, RATE.nanos(of.length()), Evidence::SwitchRecords);
    Attribution {
        stall: of.id,
        parts: vec![part],
    }
}

fn run() -> (RunManifest, Vec<Stall>, Vec<Attribution>) {
    let manifest = manifest(vec![result(1, &[2_600, 5_200, 26_000])], true);
    let stalls: Vec<Stall> = (0..)
        .zip([2_600, 5_200, 26_000])
        .map(|(id, l)| stall(id, 1, 2_000_000 + id * 100_000, l))
        .collect();
    let attributions = stalls.iter().map(|of| attribution(of, "tick")).collect();
    (manifest, stalls, attributions)
}

#[test]
fn a_summary_of_live_rows_equals_that_of_stored_rows() {
    let (manifest, stalls, attributions) = run();
    let (start, end) = (Ticks(1_000_000), Ticks(2_000_000));
    let interval = IntervalRow {
        cpu: CpuId(1),
        start,
        end,
        count: 3,
        max: Nanos(10_000),
        stolen: Nanos(13_000),
    };
    let lengths = hdrhistogram::Histogram::new(3).unwrap();
    let mut reported = SummaryBuilder::new(&manifest);
    reported.begin(&RunFacts::of(&manifest)).unwrap();
    let mut read = SummaryBuilder::new(&manifest);
    let mut rows: Vec<Row<'_>> = stalls
        .iter()
        .zip(&attributions)
        .map(|(stall, of)| Row::Stall(stall, Some(of)))
        .collect();
    rows.push(Row::Interval(&interval, &lengths));
    assert!(rows.iter().all(|row| reported.takes(row)));
    assert!(!reported.takes(&Row::Whole("x", (start, end), &lengths)));
    rows.push(Row::Whole("x", (start, end), &lengths));
    reported.rows(&rows).unwrap();
    for (stall, of) in stalls.iter().zip(&attributions) {
        read.stall(stall);
        read.attribution(of);
    }
    read.interval(&interval);
    assert_eq!(reported.end(&manifest).unwrap(), Delivery::of(3));
    let [reported, read] =
        [reported.finish(), read.finish()].map(|of| serde_json::to_value(of).unwrap());
    assert_eq!(reported, read);
    assert_eq!(reported["attribution"]["stalls"], 3);
    assert!(
        reported["history"].to_string().contains("13000"),
        "{}",
        reported["history"]
    );
}

fn sums(effort: Option<Effort>) -> (RunManifest, RowSums) {
    let (manifest, stalls, attributions) = run();
    let of = RowsOf::run(&manifest);
    let mut summer = if effort.is_some() {
        RowSummer::stored(of)
    } else {
        RowSummer::new(of)
    };
    summer.begin(&RunFacts::of(&manifest)).unwrap();
    let rows: Vec<Row<'_>> = stalls
        .iter()
        .zip(&attributions)
        .map(|(stall, of)| Row::Stall(stall, Some(of)))
        .collect();
    assert!(rows.iter().all(|row| summer.takes(row)));
    let lengths = hdrhistogram::Histogram::new(3).unwrap();
    assert!(!summer.takes(&Row::Whole("x", (Ticks(0), Ticks(1)), &lengths)));
    summer.rows(&rows).unwrap();
    assert_eq!(summer.end(&manifest).unwrap(), Delivery::of(3));
    let sums = summer.finish(&manifest, Some(250));
    (manifest, sums)
}

#[test]
fn sums_are_valid_only_for_the_code_that_made_them() {
    let (manifest, sums) = sums(Some(Effort::BRIEF));
    let reported = |sums: RowSums| SummaryBuilder::new(&manifest).known(sums).finish();
    let whole: RunSummary = reported(sums.clone());
    assert_eq!(
        whole
            .worst
            .iter()
            .map(|of| of.duration_ns)
            .collect::<Vec<_>>(),
        [10_000, 2_000, 1_000].map(Nanos)
    );
    assert!(whole.periods.is_some());
    let less = reported(sums.clone().without_periods());
    assert!(less.periods.is_none() && less.worst.len() == 3);
    assert_eq!(reported(sums.clone().with_worst(1)).worst.len(), 1);
    let other = reported(sums.clone().showing(whole.worst[1..2].to_vec()));
    assert_eq!(
        other
            .worst
            .iter()
            .map(|of| of.duration_ns)
            .collect::<Vec<_>>(),
        [Nanos(2_000)]
    );
    assert!(other.periods.is_some());
    // Stored, read, and from other code.
    assert!(sums.is_current());
    let mut stored = serde_json::to_value(&sums).unwrap();
    assert_eq!(stored["code"], env!("JITTERSCOPE_SUMMARY_CODE"));
    assert_eq!(
        serde_json::from_value::<RowSums>(stored.clone()).unwrap(),
        sums
    );
    stored["code"] = "of another time".into();
    assert!(
        !serde_json::from_value::<RowSums>(stored)
            .unwrap()
            .is_current()
    );
}

#[test]
fn periods_are_looked_for_where_a_probe_spun() {
    let (mut manifest, ..) = run();
    let looked = |manifest: &RunManifest| {
        SummaryBuilder::new(manifest)
            .periods(Effort::BRIEF)
            .finish()
            .periods
            .is_some()
    };
    assert!(looked(&manifest));
    manifest.wakeups = vec![WakeupResult {
        cpu: CpuId(1),
        ..WakeupResult::default()
    }];
    assert!(!looked(&manifest), "deadlines are periodic themselves");
    manifest.wakeups.clear();
    manifest.results.clear();
    assert!(!looked(&manifest), "nothing spun");
}

#[test]
fn what_recording_cost_and_lost_is_summed_over_cpus_and_threads() {
    let (mut manifest, ..) = run();
    manifest.results.push(result(2, &[]));
    for (at, result) in manifest.results.iter_mut().enumerate() {
        (
            result.dropped_records,
            result.page_faults,
            result.involuntary_switches,
        ) = (3, 5, 7 + at as u64);
    }
    manifest.sources = vec![SourceReport {
        lost: 11,
        ..SourceReport::available("tracefs")
    }];
    manifest.senders_dropped = 13;
    manifest.self_noise.helper_cpus = "0".parse().unwrap();
    let trust = |manifest: &RunManifest| SummaryBuilder::new(manifest).finish().trust;
    let reported = trust(&manifest);
    assert_eq!(
        (
            reported.dropped_records,
            reported.page_faults,
            reported.involuntary_switches
        ),
        (6, Some(10), Some(15))
    );
    assert_eq!(
        (reported.lost_records, reported.senders_dropped),
        (Some(11), 13)
    );
    assert_eq!(
        (reported.floor_ticks, reported.helpers_on_measured),
        (Some(18), false)
    );
    // The threads of a pipeline.
    let thread = |role| PipelineThread {
        role,
        tid: 1,
        comm: "x".into(),
        cpu: None,
        fifo_priority: None,
        page_faults: 100,
        involuntary_switches: 1_000,
        cpu_time_ns: Nanos(0),
    };
    let consumer = PipelineConsumer {
        role: PipelineRole::Accumulator,
        received: 0,
        disordered: 0,
        transit: MessageTimes::default(),
        from_intended: MessageTimes::default(),
        inter: MessageTimes::default(),
        slow_above_ns: Nanos(0),
        slow: 0,
        slow_dropped: 10_000,
    };
    let piped = RunManifest {
        pipeline: Some(PipelineResult {
            threads: vec![
                thread(PipelineRole::Producer),
                thread(PipelineRole::Accumulator),
            ],
            consumers: vec![consumer],
            ..PipelineResult::default()
        }),
        ..manifest.clone()
    };
    let reported = trust(&piped);
    assert_eq!(
        (
            reported.dropped_records,
            reported.page_faults,
            reported.involuntary_switches
        ),
        (10_006, Some(210), Some(2_015))
    );
    for (helpers, on_measured) in [
        ("0", false),
        ("1", true),
        ("0-1", true),
        ("3", false),
        ("", true),
    ] {
        manifest.self_noise.helper_cpus = helpers.parse().unwrap();
        assert_eq!(
            trust(&manifest).helpers_on_measured,
            on_measured,
            "{helpers:?}"
        );
    }
}

#[test]
fn the_timers_frequency_is_what_the_kernel_was_configured_with() {
    let put = |hz: &str, machine: &mut MachineState| {
        let options = [
            MachineEntry::new("y").of("PREEMPT"),
            MachineEntry::new(hz).of("HZ"),
        ];
        machine.settings.put("kernel.config", options);
    };
    let mut machine = MachineState::default();
    assert_eq!(timer_frequency(&machine), None);
    put("250", &mut machine);
    assert_eq!(timer_frequency(&machine), Some(250));
    put("many", &mut machine);
    assert_eq!(timer_frequency(&machine), None);
}

#[test]
fn only_the_stall_that_was_asked_for_is_shown() {
    let (manifest, stalls, attributions) = run();
    let mut builder = SummaryBuilder::new(&manifest).only(StallId(1));
    for (stall, of) in stalls.iter().zip(&attributions) {
        builder.stall(stall);
        builder.attribution(of);
    }
    let summary = builder.finish();
    assert_eq!(
        summary
            .worst
            .iter()
            .map(|of| of.duration_ns)
            .collect::<Vec<_>>(),
        [Nanos(2_000)]
    );
    assert_eq!(summary.attribution.unwrap().stalls, 3, "all are summed up");
}

#[test]
fn threads_of_a_program_are_told_apart_where_that_is_asked_for() {
    let (manifest, stalls, _) = run();
    let rows = |level| {
        let mut builder = SummaryBuilder::new(&manifest).level(level);
        for of in &stalls {
            let tid = Some(70 + of.id.0 as i32);
            let process = Some("make".into());
            let task = Task {
                tid,
                tgid: Some(70),
                process,
                comm: "cc".into(),
                ..Task::default()
            };
            let net = RATE.nanos(of.length());
            let parts = vec![Part::inside(
                Subject::Thread(task),
                net,
                Evidence::SwitchRecords,
            )];
            builder.stall(of);
            builder.attribution(&Attribution {
                stall: of.id,
                parts,
            });
        }
        builder.finish().attribution.unwrap().culprits.len()
    };
    assert_eq!([rows(KeyLevel::Program), rows(KeyLevel::Thread)], [1, 3]);
}

/// A stall waits for its attribution while there is room; after that it counts as unexplained.
#[test]
fn a_stall_whose_attribution_comes_too_late_has_no_verdict() {
    let room = 1 << 16;
    for (stalls, contradictions) in [(room, room - 1), (room + 1, room + 2)] {
        let (manifest, ..) = run();
        let mut builder = SummaryBuilder::new(&manifest);
        let all: Vec<Stall> = (0..stalls)
            .map(|id| stall(id, 1, 2_000_000 + id * 3_000, 2_600))
            .collect();
        all.iter().for_each(|stall| builder.stall(stall));
        builder.attribution(&attribution(&all[0], "tick"));
        let summary = builder.finish();
        assert_eq!(summary.trust.inconsistent_rows, contradictions);
        let reported = summary.attribution.unwrap();
        assert_eq!(
            (reported.stalls, reported.stalled_ns),
            (stalls, Nanos(stalls * 1_000))
        );
        assert_eq!(reported.culprits.len() as u64, room + 1 - stalls);
    }
}

#[test]
fn what_is_attributed_to_the_nanosecond_leaves_nothing_without_a_verdict() {
    let (manifest, stalls, attributions) = run();
    let mut builder = SummaryBuilder::new(&manifest);
    for (stall, of) in stalls.iter().zip(&attributions) {
        builder.stall(stall);
        builder.attribution(of);
    }
    let reported = builder.finish().attribution.unwrap();
    assert!(
        reported.unexplained.classes.is_empty(),
        "{:?}",
        reported.unexplained
    );
    assert_eq!(
        (reported.culprits.len(), reported.culprits[0].count),
        (1, 3)
    );
}

/// Who had the CPU beside a throttled group is known; whether that thread or the quota cost the time is not.
#[test]
fn time_beside_a_throttled_group_counts_as_unexplained() {
    let (manifest, stalls, mut attributions) = run();
    let beside = Subject::Quota(Quota {
        cgroup: "/shop".into(),
        limit: None,
        beside: Some(Task {
            comm: "hog".into(),
            ..Task::default()
        }),
    });
    let last = &stalls[2];
    let part = Part::inside(
        beside,
        RATE.nanos(last.length()),
        Evidence::SwitchRecordsWhileThrottled,
    );
    attributions[2].parts = vec![part];
    let mut builder = SummaryBuilder::new(&manifest);
    for (stall, of) in stalls.iter().zip(&attributions) {
        builder.stall(stall);
        builder.attribution(of);
    }
    let reported = builder.finish().attribution.unwrap();
    // 3 us of 13 us are ticks.
    let explained = reported.explained_fraction;
    assert!((explained - 3.0 / 13.0).abs() < 1e-9, "{explained}");
    assert_eq!(reported.unexplained.classes.len(), 1, "{reported:?}");
}
