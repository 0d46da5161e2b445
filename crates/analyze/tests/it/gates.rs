//! Conditions on synthetic runs: exceeded, kept and undecided.

use crate::common;

use common::{RATE, manifest, part, result, stall};
use jitterscope_analyze::gate::{Counted, GateReason, GateResult, GateVerdict, evaluate, parse};
use jitterscope_analyze::{RunSummary, SummaryBuilder};
use jitterscope_model::*;

fn gate(condition: &str, run: &RunSummary) -> GateResult {
    evaluate(&parse(condition).unwrap(), run).remove(0)
}

fn verdict(condition: &str, run: &RunSummary) -> GateVerdict {
    gate(condition, run).verdict
}

/// Checks that the condition is exceeded just below the value and kept at and above it.
fn assert_is(quantity: &str, percent: f64, run: &RunSummary) {
    let at = |value: f64| format!("{quantity}>{value:.9}%");
    assert_eq!(
        verdict(&at(percent * 0.999), run),
        GateVerdict::Exceeded,
        "{quantity} {percent}"
    );
    assert_eq!(
        verdict(&at(percent * 1.001), run),
        GateVerdict::Kept,
        "{quantity} {percent}"
    );
}

/// Stalls of a microsecond and of ten, split among four culprits.
fn attributed(change: impl FnOnce(&mut RunManifest)) -> RunSummary {
    let mut manifest = manifest(vec![result(1, &[2600, 26_000])], true);
    change(&mut manifest);
    let mut builder = SummaryBuilder::new(&manifest);
    for (id, ns) in [(0, 1_000), (1, 10_000)] {
        builder.stall(&stall(id, 1, 2_000_000 + id * 100_000, ns * 13 / 5));
        let parts = vec![
            part(CulpritKind::Timer, "tick_nohz_handler", ns / 2),
            part(CulpritKind::Hypervisor, "late interrupt", ns / 4),
            part(CulpritKind::Firmware, "SMI", ns / 10),
            part(
                CulpritKind::Unresolved,
                "under one microsecond",
                ns - ns / 2 - ns / 4 - ns / 10,
            ),
        ];
        builder.attribution(&Attribution {
            stall: StallId(id),
            parts,
        });
    }
    builder.finish()
}

/// The measured time in nanoseconds.
fn measured() -> f64 {
    let result = result(1, &[2600, 26_000]);
    RATE.nanos(result.end - result.start).0 as f64
}

#[test]
fn shares_are_exceeded_below_their_value_and_kept_above_it() {
    let run = attributed(|_| ());
    assert_is("stolen", 11_000.0 / measured() * 100.0, &run);
    assert_is("culprit(timer)", 5_500.0 / measured() * 100.0, &run);
    assert_is(
        "culprit(tick_nohz_handler)",
        5_500.0 / measured() * 100.0,
        &run,
    );
    assert_is("hypervisor", 2_750.0 / measured() * 100.0, &run);
    // Relative to the stalled time.
    assert_is("unexplained", 50.0, &run);
    assert_is("unresolved", 15.0, &run);
    assert_eq!(verdict("max>9.99us", &run), GateVerdict::Exceeded);
    assert_eq!(verdict("max>10us", &run), GateVerdict::Kept);
    let per_sec = 2.0 / measured() * 1e9;
    assert_eq!(
        verdict(&format!("stalls>{:.3}/s", per_sec - 1.0), &run),
        GateVerdict::Exceeded
    );
    assert_eq!(
        verdict(&format!("stalls>{:.3}/s", per_sec + 1.0), &run),
        GateVerdict::Kept
    );
    assert_eq!(verdict("coverage<99.9%", &run), GateVerdict::Kept);
}

#[test]
fn a_percentile_takes_ten_that_lie_above_it() {
    let stalls = |n: u64| {
        let lengths: Vec<u64> = (0..n).map(|at| 2600 + at * 26).collect();
        SummaryBuilder::new(&manifest(vec![result(1, &lengths)], false)).finish()
    };
    // Ten of a thousand lie above the 99th percentile, five of five hundred.
    let (enough, few) = (stalls(1_100), stalls(500));
    assert_eq!(verdict("stall.p99>1us", &enough), GateVerdict::Exceeded);
    assert_eq!(verdict("stall.p99>1ms", &enough), GateVerdict::Kept);
    assert_eq!(verdict("stall.p99>1us", &few), GateVerdict::Undecided);
    assert_eq!(verdict("stall.p90>1us", &few), GateVerdict::Exceeded);
    // A random instant: half of them wait within a short read; the longest waits are those of the stalls.
    assert_eq!(verdict("wait.p50>1ns", &enough), GateVerdict::Exceeded);
    assert_eq!(verdict("wait.p50>1ms", &enough), GateVerdict::Kept);
    let one = SummaryBuilder::new(&manifest(vec![result(1, &[26_000_000])], false)).finish();
    let alone = gate("wait.p99>1s", &one);
    assert_eq!(alone.verdict, GateVerdict::Undecided, "{alone:?}");
    assert!(
        matches!(
            alone.why,
            Some(GateReason::RestsOnFew {
                of: Counted::Waits,
                ..
            })
        ),
        "{alone:?}"
    );
}

#[test]
fn what_was_not_measured_is_not_decided() {
    let counted = SummaryBuilder::new(&manifest(vec![result(1, &[2600])], false)).finish();
    for text in [
        "culprit(timer)>1%",
        "hypervisor>1%",
        "unexplained>1%",
        "unresolved>1%",
        "late.p50>1us",
    ] {
        assert_eq!(verdict(text, &counted), GateVerdict::Undecided, "{text}");
    }
    for text in ["message.p50>1us", "lost>1%"] {
        assert_eq!(
            verdict(text, &attributed(|_| ())),
            GateVerdict::Undecided,
            "{text}"
        );
    }
}

#[test]
fn what_was_lost_may_have_been_anybodys_and_what_was_seen_was_there() {
    let lost = |records| {
        attributed(|manifest| {
            manifest.sources = vec![SourceReport {
                lost: records,
                ..SourceReport::available("tracefs")
            }];
            manifest.events_in_gaps = EventsInGaps {
                events: 20_000,
                inside: 20_000,
                ..EventsInGaps::default()
            };
        })
    };
    let run = lost(1);
    assert_eq!(verdict("culprit(cron)>1%", &run), GateVerdict::Undecided);
    assert_eq!(verdict("culprit(cron)>1%", &lost(0)), GateVerdict::Kept);
    // Missing data cannot reduce the value.
    assert_eq!(verdict("culprit(timer)>0.01%", &run), GateVerdict::Exceeded);
    // The probe measured these itself.
    assert_eq!(verdict("max>1ms", &run), GateVerdict::Kept);
    assert_eq!(verdict("stolen>50%", &run), GateVerdict::Kept);
    // The loss is so large that nothing is proven.
    assert_eq!(
        verdict("culprit(timer)>0.01%", &lost(10_000)),
        GateVerdict::Undecided
    );
}

#[test]
fn a_threads_name_is_decided_where_accounts_tell_it() {
    let run = |followed: bool| {
        let mut manifest = manifest(vec![result(1, &[2600])], true);
        if followed {
            manifest.threads = vec![ThreadAccount {
                running_ns: Nanos(1_000),
                ..ThreadAccount::default()
            }];
        }
        let mut builder = SummaryBuilder::new(&manifest);
        builder.stall(&stall(0, 1, 10_000, 2600));
        let (process, comm) = (Some("rustc".into()), "lto cgu.00".into());
        let task = Task {
            tid: Some(71),
            tgid: Some(70),
            process,
            comm,
            ..Task::default()
        };
        let parts = vec![Part::inside(
            Subject::Thread(task),
            Nanos(1000),
            Evidence::SwitchRecords,
        )];
        builder.attribution(&Attribution {
            stall: StallId(0),
            parts,
        });
        builder.finish()
    };
    assert_eq!(
        verdict("culprit(lto*)>0%", &run(false)),
        GateVerdict::Undecided
    );
    assert_ne!(
        verdict("culprit(lto*)>0%", &run(true)),
        GateVerdict::Undecided
    );
    // Its process matches, whatever its threads are called.
    assert_eq!(
        verdict("culprit(rustc)>0%", &run(false)),
        GateVerdict::Exceeded
    );
    assert_eq!(verdict("culprit(*)>0%", &run(false)), GateVerdict::Exceeded);
}

#[test]
fn a_share_of_sleep_is_bounded_by_the_sleep_without_a_reason() {
    let run = |disk: u64, unknown: u64| {
        let mut manifest = manifest(vec![result(1, &[])], true);
        let slept = |reason, blocked: u64| BlockedOn {
            reason,
            function: None,
            unknown_because: None,
            count: 1,
            blocked_ns: Nanos(blocked),
            max_ns: Nanos(blocked),
        };
        manifest.threads = vec![ThreadAccount {
            running_ns: Nanos(1_000 - disk - unknown),
            blocked_ns: Nanos(disk + unknown),
            blocked_on: vec![
                slept(BlockReason::Disk, disk),
                slept(BlockReason::NotRecorded, unknown),
            ],
            ..ThreadAccount::default()
        }];
        SummaryBuilder::new(&manifest).finish()
    };
    for (condition, disk, unknown, wanted) in [
        ("blocked(disk)>10%", 200, 0, GateVerdict::Exceeded),
        ("blocked(disk)>10%", 200, 500, GateVerdict::Exceeded),
        ("blocked(disk)>10%", 50, 20, GateVerdict::Kept),
        ("blocked(disk)>10%", 50, 60, GateVerdict::Undecided),
        ("blocked(disk)<10%", 50, 60, GateVerdict::Undecided),
        ("blocked(network)>10%", 200, 50, GateVerdict::Kept),
        ("blocked(not_recorded)>10%", 200, 50, GateVerdict::Kept),
        ("blocked(not_recorded)>10%", 0, 200, GateVerdict::Exceeded),
    ] {
        let found = verdict(condition, &run(disk, unknown));
        assert_eq!(found, wanted, "{condition} of {disk} and {unknown}");
    }
    // Nobody was followed.
    let probes = SummaryBuilder::new(&manifest(vec![result(1, &[])], true)).finish();
    assert_eq!(verdict("blocked(disk)>1%", &probes), GateVerdict::Undecided);
}

#[test]
fn an_unknown_reason_is_refused_with_the_nearest_one() {
    for (text, near) in [
        ("blocked(dsik)>1%", "perhaps disk?"),
        ("blocked(networks)>1%", "perhaps network?"),
        ("blocked()>1%", "name something"),
        ("blocked(disk)>1ms", "is no limit"),
        ("blocked(disk)", "no limit"),
        ("blocked>1%", "blocked(REASON)"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(near), "{text}: {error}");
    }
    let all = parse("blocked(disk)>1%, blocked(kernel_lock)<=2%").unwrap();
    let again: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(again, ["blocked(disk)>1%", "blocked(kernel_lock)<=2%"]);
}
