//! Measurements of CPUs: the support of a figure, and its absence.

use crate::common;

use common::{manifest, result, with_control};
use jitterscope_analyze::{CpuSummary, FineNanos, RunSummary, SummaryBuilder};
use jitterscope_model::*;

fn summary(manifest: &RunManifest) -> RunSummary {
    SummaryBuilder::new(manifest).finish()
}

fn unmeasured(cpu: u32) -> ProbeResult {
    ProbeResult {
        end: Ticks(1_000_000),
        samples: 0,
        sum_ticks: 0,
        sum_squares: 0,
        max_ticks: 0,
        below: Vec::new(),
        ..result(cpu, &[])
    }
}

#[test]
fn means_and_extremes_are_of_what_stalled() {
    let summary = summary(&manifest(
        vec![result(0, &[2_600, 5_200]), result(1, &[])],
        false,
    ));
    let [stalled, quiet] = summary.probe.cpus.as_slice() else {
        panic!("two CPUs")
    };
    assert_eq!(
        (stalled.stalls, stalled.stall_mean_ns),
        (2, Some(FineNanos(1_500.0)))
    );
    assert_eq!(
        (stalled.stall_min_ns, stalled.max_ns),
        (Some(Nanos(1_000)), Some(Nanos(2_000)))
    );
    assert_eq!(
        (quiet.stalls, quiet.stall_mean_ns, quiet.stall_min_ns),
        (0, None, None)
    );
    assert_eq!(
        (quiet.max_ns, quiet.floor_ticks),
        (Some(Nanos(7)), Some(18))
    );
    let total = &summary.probe.total;
    assert_eq!(
        (total.cpus, total.stalls, total.stolen_ns),
        (2, 2, Nanos(3_000))
    );
    assert_eq!(
        (total.stall_mean_ns, total.max_cpu),
        (Some(FineNanos(1_500.0)), Some(CpuId(0)))
    );
    // There were stalls: the rate is not a bound.
    assert_eq!(total.stalls_per_sec_bound, None);
}

#[test]
fn where_nothing_stalled_the_rate_has_a_bound() {
    // 18.2 million ticks are seven milliseconds.
    let quiet = summary(&manifest(vec![result(0, &[]), result(1, &[])], false))
        .probe
        .total;
    assert_eq!(
        (quiet.measured_ns, quiet.stall_mean_ns),
        (Nanos(14_000_000), None)
    );
    let bound = quiet.stalls_per_sec_bound.unwrap();
    assert!((bound - 3.0 / 0.014).abs() < 1e-9, "{bound}");
    let mut halves = manifest(vec![result(0, &[]), result(1, &[2_600])], false);
    halves.moment = Some(SavedMoment {
        realtime_ns: 0,
        by: AskedBy::Condition,
        text: String::new(),
        joined: 0,
    });
    let halves = summary(&halves);
    let each = |of: fn(&CpuSummary) -> Option<f64>| [0, 1].map(|at| of(&halves.probe.cpus[at]));
    let [quiet_cpu, stalled] = each(|of| of.stalls_per_sec_bound);
    assert!((quiet_cpu.unwrap() - 3.0 / 0.007).abs() < 1e-9);
    assert_eq!(stalled, None);
    // A stall chose the time.
    let worst = halves.worst_case.unwrap();
    let mut bounds = worst.cpus.iter().map(|of| of.longer_below_per_hour);
    assert!(worst.cpus.len() == 2 && bounds.all(|bound| bound.is_none()));
    // Among equals the first CPU is named.
    assert_eq!(
        (quiet.max_ns, quiet.max_cpu),
        (Some(Nanos(7)), Some(CpuId(0)))
    );
    let nothing = summary(&manifest(vec![unmeasured(0)], false)).probe.total;
    assert_eq!(
        (nothing.measured_ns, nothing.stalls_per_sec_bound),
        (Nanos::ZERO, None)
    );
    assert_eq!(
        (nothing.max_ns, nothing.max_cpu, nothing.stall_mean_ns),
        (None, None, None)
    );
    let one = summary(&manifest(vec![unmeasured(0), result(1, &[])], false))
        .probe
        .total;
    assert_eq!(one.max_cpu, Some(CpuId(1)));
}

#[test]
fn an_idle_control_is_in_no_total() {
    let mut manifest = manifest(vec![result(0, &[2_600]), result(3, &[26_000])], false);
    manifest.probe.wakeup = Some(with_control(3));
    let summary = summary(&manifest);
    let total = &summary.probe.total;
    assert_eq!((summary.probe.cpus.len(), total.cpus), (2, 1));
    assert_eq!(
        (total.stalls, total.stolen_ns, total.max_ns),
        (1, Nanos(1_000), Some(Nanos(1_000)))
    );
}

#[test]
fn no_events_give_no_share_and_a_full_match_no_warning() {
    let mut manifest = manifest(vec![result(1, &[])], true);
    let reported = summary(&manifest);
    assert!(reported.warnings.is_empty(), "{:?}", reported.warnings);
    let shares = |summary: RunSummary| {
        summary
            .attribution
            .map(|of| (of.events_in_gaps_fraction, of.events_in_gaps_control))
    };
    assert_eq!(shares(reported), Some((Some(0.995), Some(0.01))));
    manifest.events_in_gaps = EventsInGaps::default();
    assert_eq!(shares(summary(&manifest)), Some((None, None)));
}
