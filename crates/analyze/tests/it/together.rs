//! Stalls that begin together on several CPUs: groups, and the number expected by chance.

use crate::common;

use common::{manifest, result, stall};
use jitterscope_analyze::{RunSummary, SummaryBuilder};
use jitterscope_model::*;

/// Two microseconds.
const WINDOW: u64 = 5_200;

/// Each stall: its CPU, start and length in ticks.
fn summary(manifest: &RunManifest, stalls: &[(u32, u64, u64)]) -> RunSummary {
    let mut builder = SummaryBuilder::new(manifest);
    for (id, (cpu, start, length)) in (0..).zip(stalls) {
        builder.stall(&stall(id, *cpu, *start, *length));
    }
    builder.finish()
}

fn run(cpus: u32, stalls: &[(u32, u64, u64)]) -> RunSummary {
    summary(
        &manifest((0..cpus).map(|cpu| result(cpu, &[])).collect(), false),
        stalls,
    )
}

#[test]
fn a_group_lasts_two_microseconds_from_its_first_stall() {
    let groups = |starts: &[(u32, u64)]| {
        let stalls: Vec<(u32, u64, u64)> = starts
            .iter()
            .map(|(cpu, start)| (*cpu, *start, 2_600))
            .collect();
        let found = run(3, &stalls).simultaneous.unwrap();
        (found.groups, found.stalls, found.on_all_cpus)
    };
    assert_eq!(groups(&[(0, 10_000), (1, 10_000 + WINDOW)]), (1, 2, 0));
    assert_eq!(groups(&[(0, 10_000), (1, 10_001 + WINDOW)]), (0, 0, 0));
    // Relative to the first stall, not the previous one.
    assert_eq!(
        groups(&[(0, 10_000), (1, 10_000 + WINDOW), (2, 10_001 + WINDOW)]),
        (1, 2, 0)
    );
    assert_eq!(groups(&[(0, 10_000), (1, 10_001), (2, 10_002)]), (1, 3, 1));
    // One CPU has no group.
    assert_eq!(groups(&[(0, 10_000), (0, 10_001)]), (0, 0, 0));
    assert_eq!(run(1, &[(0, 10_000, 2_600)]).simultaneous, None);
}

#[test]
fn the_groups_with_the_longest_stalls_are_listed_longest_first() {
    let lengths = [5_000, 9_000, 3_000, 8_000, 4_000, 7_000, 6_000];
    let stalls: Vec<(u32, u64, u64)> = (1..)
        .zip(lengths)
        .flat_map(|(at, length)| [(0, at * 100_000, length), (1, at * 100_000 + 26, 2_600)])
        .collect();
    let run = run(2, &stalls);
    let found = run.simultaneous.unwrap();
    assert_eq!((found.groups, found.stalls, found.on_all_cpus), (7, 14, 7));
    let listed: Vec<u64> = found.worst.iter().map(|group| group.longest_ns.0).collect();
    assert_eq!(
        listed,
        [9_000, 8_000, 7_000, 6_000, 5_000].map(|ticks: u64| ticks * 5 / 13)
    );
    // The second of them began first.
    let began: Vec<u64> = found
        .worst
        .iter()
        .map(|group| group.start_realtime_ns)
        .collect();
    assert_eq!(began[1] - began[0], 200_000 * 5 / 13);
}

#[test]
fn a_part_far_below_the_longest_is_not_named_with_it() {
    let together = |short| {
        let run = run(2, &[(0, 10_000, 26_000), (1, 10_000, short)]);
        run.worst[0].together.as_ref().map(|of| of.stalls.len())
    };
    assert_eq!(together(2_600), Some(2));
    assert_eq!(together(2_599), None);
}

#[test]
fn chance_puts_stalls_together_as_often_as_their_rates_say() {
    let counts = [30u64, 20, 10];
    let results: Vec<ProbeResult> = (0..)
        .zip(counts)
        .map(|(cpu, stalls)| ProbeResult {
            end: Ticks(1_000_000 + 20_000_000),
            ..result(cpu, &vec![900; stalls as usize])
        })
        .collect();
    let found = summary(&manifest(results, false), &[])
        .simultaneous
        .unwrap();
    // Each CPU's stalls that a stall of another CPU follows within the window.
    let of = |stalls: f64, others: f64| stalls * (1.0 - (-others / 20e6 * WINDOW as f64).exp());
    let expected = of(30.0, 30.0) + of(20.0, 40.0) + of(10.0, 50.0);
    assert!(
        (found.groups_by_chance / expected - 1.0).abs() < 1e-9,
        "{} {expected}",
        found.groups_by_chance
    );
}

#[test]
fn an_idle_control_is_no_measured_cpu() {
    let slept = |cpus: u32| {
        let mut run = manifest((0..cpus).map(|cpu| result(cpu, &[900])).collect(), false);
        run.wakeups = (0..cpus)
            .map(|cpu| WakeupResult {
                cpu: CpuId(cpu),
                ..WakeupResult::default()
            })
            .collect();
        run.probe.wakeup = Some(WakeupConditions {
            period_ns: Nanos(1_000_000),
            hold_latency: true,
            idle_control: Some(CpuId(0)),
        });
        summary(
            &run,
            &[(0, 10_000, 900), (1, 10_000, 900), (2, 10_000, 900)],
        )
    };
    assert_eq!(slept(2).simultaneous, None);
    let found = slept(3).simultaneous.unwrap();
    assert_eq!((found.groups, found.stalls, found.on_all_cpus), (1, 2, 1));
}

#[test]
fn the_others_are_listed_with_the_control() {
    let mut run = manifest(vec![result(0, &[]), result(1, &[]), result(2, &[])], false);
    run.wakeups = (0..)
        .zip([(1_000, 200), (3_000, 500), (5_000, 900)])
        .map(|(cpu, (sum, max))| WakeupResult {
            cpu: CpuId(cpu),
            wakeups: 10,
            sum: Nanos(sum),
            max: Nanos(max),
            ..WakeupResult::default()
        })
        .collect();
    run.probe.wakeup = Some(WakeupConditions {
        period_ns: Nanos(1_000_000),
        hold_latency: true,
        idle_control: Some(CpuId(0)),
    });
    let reported = summary(&run, &[]).wakeup.unwrap();
    assert_eq!(reported.total.max_ns, Some(Nanos(900)));
    let control = reported.idle_control.unwrap();
    assert_eq!(
        (control.mean_ratio, control.max_ratio),
        (Some(4.0), Some(4.5))
    );
    // A control without a result does not change the count.
    run.results.clear();
    assert_eq!(summary(&run, &[]).simultaneous, None);
}
