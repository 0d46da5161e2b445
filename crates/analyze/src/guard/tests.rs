//! Verdicts of iterations and headlines, from a recorded run with changed accounts.

use super::*;
use jitterscope_model::{
    Attribution, Confidence, Doubt, Evidence, Nanos, Part, Placement, RanInstead, RunManifest,
    StallId, Subject, Task, ThreadAccount, Warning,
};
use jitterscope_store::RunReader;
use std::path::Path;
use std::sync::Arc;

const LIMIT: f64 = 0.01;

fn thread(comm: &str, tid: Option<i32>, tgid: Option<i32>) -> Subject {
    Subject::Thread(Task {
        tid,
        tgid,
        comm: comm.into(),
        ..Task::default()
    })
}

fn ran(subject: Subject, total: u64) -> RanInstead {
    RanInstead {
        subject,
        threads: 1,
        count: 1,
        min_ns: Nanos(total),
        max_ns: Nanos(total),
        total_ns: Nanos(total),
    }
}

/// A run of one thread, number 10, that ran for a second in all.
fn run(waited: u64, instead: Vec<RanInstead>) -> RunManifest {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures/attach");
    let mut manifest = RunReader::open(&fixture).unwrap().manifest().clone();
    manifest.recorder_pid = Some(77);
    manifest.interrupted = false;
    manifest.warnings.clear();
    for source in &mut manifest.sources {
        source.lost = 0;
    }
    manifest.threads = vec![ThreadAccount {
        tid: 10,
        comm: "bench".into(),
        running_ns: Nanos(1_000_000_000 - waited),
        waiting_ns: Nanos(waited),
        ran_instead: instead,
        ..manifest.threads[0].clone()
    }];
    let account = &mut manifest.threads[0];
    (account.interrupted_ns, account.unknown_ns) = (Nanos::ZERO, Nanos::ZERO);
    account.stopped_ns = Nanos::ZERO;
    assert_eq!(manifest.doubts(), []);
    manifest
}

fn made(exit_code: u8) -> Made {
    Made {
        exit_code: Some(exit_code),
        ..Made::default()
    }
}

fn judged(manifest: &RunManifest) -> Iteration {
    Iteration::of(manifest, made(0), LIMIT)
}

#[test]
fn an_iteration_is_contaminated_by_who_took_more_than_the_limit() {
    let thief = || ran(thread("thief", Some(20), Some(20)), 15_000_000);
    let quiet = judged(&run(10_000_000, vec![]));
    assert_eq!(quiet.contamination, Contamination::Clean);
    let found = judged(&run(
        20_000_000,
        vec![ran(thread("other", Some(30), Some(30)), 5_000_000), thief()],
    ));
    assert_eq!(found.contamination, Contamination::Contaminated);
    assert_eq!(found.stolen.lost(), Nanos(20_000_000));
    assert!((found.stolen.share() - 0.02).abs() < 1e-9);
    let most = found.stolen.thief.unwrap();
    assert_eq!((&*most.subject.name(), most.total.0), ("thief", 15_000_000));
    assert!(!most.recorder);
    // Interruptions count like waits.
    let mut interrupted = run(0, vec![]);
    interrupted.threads[0].interrupted_ns = Nanos(11_000_000);
    assert_eq!(
        judged(&interrupted).contamination,
        Contamination::Contaminated
    );
}

#[test]
fn the_recorder_is_a_thief_like_any_other_and_is_told_apart() {
    let found = judged(&run(
        20_000_000,
        vec![ran(thread("jitterscope", Some(77), Some(77)), 20_000_000)],
    ));
    assert_eq!(found.contamination, Contamination::Contaminated);
    assert!(found.stolen.thief.unwrap().recorder);
}

#[test]
fn a_command_whose_threads_wait_for_one_another_is_not_contaminated_by_itself() {
    let own = |tid, tgid| ran(thread("worker", tid, tgid), 500_000_000);
    for row in [
        own(Some(10), None),
        own(Some(11), Some(10)),
        own(None, Some(10)),
    ] {
        let found = judged(&run(500_000_000, vec![row]));
        assert_eq!(found.contamination, Contamination::Clean);
        assert_eq!(found.stolen.own, Nanos(500_000_000));
        assert_eq!(found.stolen.thief, None);
    }
    // Only the name of its own thread is known.
    let found = judged(&run(
        500_000_000,
        vec![ran(thread("bench", None, None), 500_000_000)],
    ));
    assert_eq!(found.contamination, Contamination::Unknown);
    assert_eq!(
        found.unsure,
        [Unsure::SameName {
            time: Nanos(500_000_000)
        }]
    );
    // Its stalls name each thread; what is longer than all waits is not believed.
    let manifest = run(
        500_000_000,
        vec![ran(thread("bench", None, None), 500_000_000)],
    );
    let with = |subject: Subject, net: u64| {
        let mut found = Namesakes::new(&manifest);
        found.add(&Attribution {
            stall: StallId(1),
            parts: vec![Part {
                culprit: Arc::new(subject.into()),
                phase: None,
                moved_from: None,
                net: Nanos(net),
                gross: Nanos(net),
                turns: 1,
                placement: Placement::Inside,
                confidence: Confidence::High,
                evidence: Evidence::SwitchRecords,
                others_stalled: None,
            }],
        });
        judged(&manifest).with_stalls(&manifest, found, LIMIT)
    };
    let cleared = with(thread("bench", Some(11), Some(10)), 498_000_000);
    assert_eq!(cleared.contamination, Contamination::Clean);
    assert_eq!(cleared.stolen.lost(), Nanos(2_000_000));
    let too_long = with(thread("bench", Some(11), Some(10)), u64::MAX);
    assert_eq!(
        (too_long.stolen.own, too_long.is_unclear()),
        (Nanos(500_000_000), false)
    );
    let foreign = with(thread("bench", Some(40), Some(40)), 498_000_000);
    assert_eq!(foreign.contamination, Contamination::Contaminated);
    let thief = foreign.stolen.thief.unwrap();
    assert_eq!(
        (&*thief.subject.name(), thief.total.0),
        ("bench", 498_000_000)
    );
    let nobody = with(thread("other", Some(40), Some(40)), 498_000_000);
    assert_eq!(nobody.contamination, Contamination::Unknown);
    // Another process of that name is somebody else's.
    let found = judged(&run(
        500_000_000,
        vec![ran(thread("bench", Some(40), Some(40)), 500_000_000)],
    ));
    assert_eq!(found.contamination, Contamination::Contaminated);
}

#[test]
fn what_the_evidence_does_not_show_is_never_clean() {
    let changed = |change: fn(&mut RunManifest)| {
        let mut manifest = run(0, vec![]);
        change(&mut manifest);
        let found = judged(&manifest);
        assert_eq!(found.contamination, Contamination::Unknown);
        serde_json::to_value(found.unsure[0]).unwrap()["reason"].clone()
    };
    assert_eq!(changed(|of| of.interrupted = true), "interrupted");
    assert_eq!(changed(|of| of.sources[0].lost = 1), "records_lost");
    assert_eq!(changed(|of| of.sources[0].lost = u64::MAX), "doubted");
    assert_eq!(changed(|of| of.threads.clear()), "nothing_followed");
    assert_eq!(changed(|of| of.threads[0].stopped_ns = Nanos(1)), "stopped");
    let second = |of: &mut RunManifest| of.threads[0].unknown_ns = Nanos(1_000_000_000);
    assert_eq!(changed(second), "state_unknown");
    let late = |of: &mut RunManifest| {
        of.warnings
            .push(Warning::NotFollowed { late: 0, missed: 1 });
    };
    assert_eq!(changed(late), "not_followed");
    let full = |of: &mut RunManifest| of.warnings.push(Warning::DiskFull { unstored: 0 });
    assert_eq!(changed(full), "disk_full");
    // A little time of unknown state cannot lift it above the limit.
    let mut little = run(0, vec![]);
    little.threads[0].unknown_ns = Nanos(1_000_000);
    assert_eq!(judged(&little).contamination, Contamination::Clean);
}

#[test]
fn a_large_loss_is_certain_in_spite_of_a_few_lost_records_but_not_of_a_doubt() {
    let mut lossy = run(500_000_000, vec![]);
    lossy.sources[0].lost = 1;
    assert_eq!(judged(&lossy).contamination, Contamination::Contaminated);
    lossy.sources[0].lost = u64::MAX;
    let found = judged(&lossy);
    assert_eq!(found.contamination, Contamination::Unknown);
    assert!(matches!(
        found.unsure[..],
        [Unsure::Doubted(Doubt::EventsLost { .. })]
    ));
}

fn iteration(contamination: Contamination, time: u64, additional: bool) -> Iteration {
    let made = Made {
        additional,
        ..made(0)
    };
    Iteration {
        time: Nanos(time),
        contamination,
        made,
        ..judged(&run(0, vec![]))
    }
}

fn series(planned: usize, retry: usize, iterations: Vec<Iteration>) -> Series {
    Series {
        command: vec!["bench".into()],
        label: "guard".into(),
        planned,
        retry,
        limit: LIMIT,
        tool: None,
        baseline: None,
        iterations,
        interrupted: false,
    }
}

use Contamination::{Clean, Contaminated, Unknown};

#[test]
fn the_headline_counts_all_iterations_contaminated_and_additional_ones_too() {
    let all = vec![
        iteration(Clean, 10, false),
        iteration(Contaminated, 40, false),
        iteration(Unknown, 20, false),
        iteration(Clean, 12, true),
    ];
    let headline = series(3, 1, all).headline();
    assert_eq!(
        headline,
        Headline {
            counted: 4,
            median: Some(Nanos(16)),
            min: Some(Nanos(10)),
            max: Some(Nanos(40)),
            mean: Some(Nanos(21)),
            deviation: Some(Nanos(14)),
            clean: 2,
            contaminated: 1,
            unknown: 1,
            additional: 1,
            remaining: 0,
        }
    );
    assert_eq!(series(3, 0, vec![]).headline(), Headline::default());
    let one = series(1, 0, vec![iteration(Clean, 7, false)]).headline();
    assert_eq!((one.median, one.deviation), (Some(Nanos(7)), None));
}

#[test]
fn contaminated_iterations_are_repeated_until_a_clean_one_stands_for_each() {
    let with = |kinds: &[(Contamination, bool)]| {
        let all = kinds
            .iter()
            .map(|(kind, extra)| iteration(*kind, 1, *extra));
        series(2, 2, all.collect())
    };
    let next = |kinds: &[_]| (with(kinds).next(), with(kinds).outcome());
    assert_eq!(next(&[]), (Some(false), Unknown));
    assert_eq!(next(&[(Contaminated, false)]), (Some(false), Contaminated));
    let half = [(Contaminated, false), (Clean, false)];
    assert_eq!(next(&half), (Some(true), Contaminated));
    assert_eq!(next(&[&half[..], &[(Clean, true)]].concat()), (None, Clean));
    let again = [&half[..], &[(Contaminated, true)]].concat();
    assert_eq!(next(&again), (Some(true), Contaminated));
    let last = [&again[..], &[(Clean, true)]].concat();
    assert_eq!(next(&last), (None, Clean));
    let used_up = [&again[..], &[(Contaminated, true)]].concat();
    assert_eq!(next(&used_up), (None, Contaminated));
    assert_eq!(next(&[(Clean, false), (Unknown, false)]), (None, Unknown));
    assert_eq!(next(&[(Clean, false), (Clean, false)]), (None, Clean));
}

#[test]
fn a_failed_or_interrupted_iteration_ends_the_series() {
    let mut failed = series(3, 0, vec![iteration(Clean, 1, false)]);
    assert_eq!(failed.next(), Some(false));
    failed.iterations[0].made.exit_code = Some(7);
    assert_eq!((failed.next(), failed.outcome()), (None, Unknown));
    assert_eq!(failed.headline().counted, 1);
    failed.iterations[0].made.exit_code = None;
    assert_eq!((failed.next(), failed.headline().counted), (None, 0));
    let mut stopped = series(3, 0, vec![]);
    stopped.interrupted = true;
    assert_eq!((stopped.next(), stopped.outcome()), (None, Unknown));
}
