//! The wake-up probe on this machine: its account is consistent under any load.

use jitterscope_clock::MonotonicRaw;
use jitterscope_model::{ClockKind, Gap, Nanos, TickRate, WakeupResult};
use jitterscope_platform::{clock, current_affinity};
use jitterscope_probe::{ProbeControl, WakeupError, WakeupProbe, WakeupSettings};
use std::sync::Arc;
use std::time::Duration;

fn settings(period_us: u64) -> WakeupSettings {
    WakeupSettings {
        cpu: current_affinity().unwrap().last().unwrap(),
        period: Nanos(period_us * 1000),
        threshold: Nanos(1),
        interval: TickRate::NANOSECONDS.ticks(Nanos(50_000_000)),
        rate: TickRate::NANOSECONDS,
        fifo_priority: None,
        queue: 1 << 16,
    }
}

fn count(rows: &[(u64, u64)]) -> u64 {
    rows.iter().map(|row| row.1).sum()
}

#[test]
fn every_deadline_is_counted_or_missed_and_every_late_one_is_sent() {
    let settings = settings(500);
    let (probe, mut output) = WakeupProbe::new(MonotonicRaw, settings).unwrap();
    let control = Arc::new(ProbeControl::new());
    let of_probe = Arc::clone(&control);
    let thread = std::thread::spawn(move || probe.run(&of_probe));
    while control.ready() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let start = clock::now(ClockKind::MonotonicRaw);
    let start = start + TickRate::NANOSECONDS.ticks(Nanos(10_000_000));
    control.measure(
        start,
        start + TickRate::NANOSECONDS.ticks(Nanos(300_000_000)),
    );
    let result: WakeupResult = thread.join().unwrap().unwrap();

    assert!(result.wakeups > 0, "{result:?}");
    assert!(result.start >= start && result.end > result.start);
    // Deadlines are a period apart, met or missed; the clocks differ by their slew.
    let deadlines = result.wakeups + result.missed;
    let expected = result.end.since(result.start).0 / settings.period.0;
    assert!(
        deadlines.abs_diff(expected) <= 2 + expected / 1000,
        "{deadlines} of {expected}"
    );
    assert_eq!(count(&result.plain), result.wakeups);
    assert_eq!(count(&result.corrected), deadlines);
    assert_eq!(result.plain.last().map(|row| row.0), Some(result.max.0));
    assert!(result.min <= result.max);

    assert_eq!(output.gaps.pop(), Ok(Gap::measurement_begins(result.start)));
    let mut gaps = Vec::new();
    while let Ok(gap) = output.gaps.pop() {
        gaps.push(gap);
    }
    assert_eq!(gaps.len() as u64 + result.dropped_records, result.stalls);
    assert!(gaps.windows(2).all(|pair| pair[0].end() <= pair[1].end()));
    assert_eq!(
        gaps.iter().map(|gap| gap.length.0).max(),
        Some(result.max.0)
    );
    let (mut intervals, mut of_intervals) = (0, 0);
    while let Ok(mark) = output.intervals.pop() {
        intervals += 1;
        of_intervals += mark.count;
    }
    assert!(intervals >= 1);
    assert_eq!(of_intervals, result.stalls);
}

#[test]
fn a_probe_that_is_stopped_before_it_begins_has_counted_nothing() {
    let (probe, _output) = WakeupProbe::new(MonotonicRaw, settings(1000)).unwrap();
    let control = Arc::new(ProbeControl::new());
    control.stop();
    let result = std::thread::spawn(move || probe.run(&control))
        .join()
        .unwrap()
        .unwrap();
    assert_eq!((result.wakeups, result.missed, result.stalls), (0, 0, 0));
}

#[test]
fn periods_out_of_range_are_refused() {
    for period_us in [0, 49, 1_000_001] {
        let refused = WakeupProbe::new(MonotonicRaw, settings(period_us))
            .err()
            .unwrap();
        assert!(matches!(refused, WakeupError::Period(_)), "{refused}");
    }
}
