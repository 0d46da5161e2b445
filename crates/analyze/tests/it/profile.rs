//! The verdict of a profile: from the exact maximum and the measured times, not from rows.

use crate::common::{RATE, manifest, part, result, stall};
use jitterscope_analyze::gate::GateVerdict;
use jitterscope_analyze::{ProfileVerdict, RunSummary, SummaryBuilder};
use jitterscope_model::*;

const LIMIT: Nanos = Nanos(50_000);
/// 100 us.
const LONG: u64 = 260_000;

fn run(results: Vec<ProbeResult>, taken_ppm: Option<u32>) -> RunManifest {
    RunManifest {
        profile: Some(ProfileLimit {
            title: "a test".into(),
            limit_ns: LIMIT,
            replaces_ns: None,
            taken_ppm,
        }),
        ..manifest(results, true)
    }
}

/// The summary with a row for each of these stalls, and the verdict that has most of it.
fn summary(manifest: &RunManifest, rows: &[(u64, Verdict)]) -> (RunSummary, ProfileVerdict) {
    let mut builder = SummaryBuilder::new(manifest);
    for (id, (length, verdict)) in (0..).zip(rows) {
        let row = stall(id, 1, 1_000_000 * id, *length);
        builder.stall(&row);
        let net = RATE.nanos(row.length()).0;
        let most = part(verdict.kind(), verdict.as_str(), net - 10);
        let rest = part(CulpritKind::Thread, "other", 10);
        builder.attribution(&Attribution {
            stall: row.id,
            parts: vec![rest, most],
        });
    }
    let summary = builder.finish();
    let verdict = summary.profile.clone().unwrap();
    (summary, verdict)
}

#[test]
fn the_maximum_decides_with_and_without_rows() {
    // 30 us, below the recording's threshold of any row.
    let quiet = run(vec![result(1, &[78_000])], None);
    assert!(!SummaryBuilder::needs_stalls(&quiet));
    let (whole, verdict) = summary(&quiet, &[]);
    assert_eq!(verdict.verdict, GateVerdict::Kept);
    assert_eq!(whole.worst_case.unwrap().longest_ns, Nanos(30_000));
    assert_eq!((verdict.above, verdict.above_is_least), (0, false));

    let mut dropped = run(vec![result(1, &[LONG])], None);
    dropped.results[0].dropped_records = 1;
    assert!(SummaryBuilder::needs_stalls(&dropped));
    let (_, verdict) = summary(&dropped, &[]);
    assert_eq!(verdict.verdict, GateVerdict::Exceeded);
    assert_eq!((verdict.above, verdict.above_is_least), (1, true));
    assert_eq!(verdict.culprits, []);

    let mut coarse = run(vec![result(1, &[LONG, LONG])], None);
    coarse.probe.threshold_ns = Nanos(60_000);
    let (_, verdict) = summary(&coarse, &[(LONG, Verdict::Smi), (LONG, Verdict::Smi)]);
    assert_eq!((verdict.above, verdict.above_is_least), (2, true));

    let (_, nothing) = summary(&run(Vec::new(), None), &[]);
    assert_eq!(nothing.verdict, GateVerdict::Undecided);
}

#[test]
fn culprits_are_those_with_most_of_a_stall_above_the_limit() {
    let lengths = [LONG, 78_000, LONG, LONG];
    let rows = [Verdict::Smi, Verdict::Smi, Verdict::CpuTaken, Verdict::Smi];
    let rows: Vec<_> = lengths.into_iter().zip(rows).collect();
    let (_, verdict) = summary(&run(vec![result(1, &lengths)], None), &rows);
    assert_eq!((verdict.above, verdict.above_is_least), (3, false));
    let culprits = verdict.culprits.iter();
    let culprits: Vec<_> = culprits.map(|of| (of.subject.clone(), of.count)).collect();
    let of = Subject::verdict;
    assert_eq!(
        culprits,
        [(of(Verdict::Smi), 2), (of(Verdict::CpuTaken), 1)]
    );
}

#[test]
fn the_exposure_is_what_each_cpu_measured() {
    let whole = result(1, &[]);
    let mut half = result(2, &[]);
    half.end = Ticks(half.start.0 + whole.end.since(whole.start).0 / 2);
    let (both, _) = summary(&run(vec![whole, half], None), &[]);
    let cpus = &both.probe.cpus;
    let worst = both.worst_case.unwrap();
    let sum = cpus[0].measured_ns + cpus[1].measured_ns;
    assert!(cpus[1].measured_ns < cpus[0].measured_ns);
    assert!(worst.exposure_ns.0.abs_diff(sum.0) <= 1, "{worst:?} {sum}");
    let bound = 3.0 * 3600.0 / worst.exposure_ns.as_secs_f64();
    assert!((worst.longer_below_per_hour.unwrap() / bound - 1.0).abs() < 1e-9);
    assert_eq!(worst.of, 2);
    for (own, cpu) in worst.cpus.iter().zip(cpus) {
        assert_eq!((own.cpu, own.exposure_ns), (cpu.cpu, cpu.measured_ns));
        assert_eq!(own.longest_ns, cpu.max_ns);
        let bound = 3.0 * 3600.0 / cpu.measured_ns.as_secs_f64();
        assert!((own.longer_below_per_hour.unwrap() / bound - 1.0).abs() < 1e-9);
    }
    assert_eq!(worst.cpus.len(), 2);
    // The bound of one CPU is that of the run.
    let (one, _) = summary(&run(vec![result(1, &[])], None), &[]);
    assert_eq!(one.worst_case.unwrap().cpus, []);
}

#[test]
fn the_score_is_that_of_the_worse_limit() {
    // One stall of 100 us: twice the limit, and 1.34 % of the time.
    let one = |taken_ppm| summary(&run(vec![result(1, &[LONG])], Some(taken_ppm)), &[]);
    let (whole, verdict) = one(20_000);
    assert_eq!(verdict.verdict, GateVerdict::Exceeded);
    assert!((verdict.score.unwrap() - 50.0).abs() < 1e-6, "{verdict:?}");
    let (_, verdict) = one(1_000);
    let taken = whole.probe.total.stolen_fraction;
    let score = 100.0 * 0.001 / taken;
    assert!(score < 50.0 && (verdict.score.unwrap() - score).abs() < 1e-6);
    let quiet = run(vec![result(1, &[78_000])], Some(500_000));
    let (_, verdict) = summary(&quiet, &[]);
    assert_eq!(
        (verdict.score, verdict.verdict),
        (Some(100.0), GateVerdict::Kept)
    );
    // The maximum is kept, the share is not.
    let often = run(vec![result(1, &[78_000])], Some(1));
    let (_, verdict) = summary(&often, &[]);
    assert_eq!((verdict.above, verdict.verdict), (0, GateVerdict::Exceeded));
}
