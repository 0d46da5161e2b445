//! Intervals whose receiver is delayed for longer than their queue lasts.

use jitterscope_clock::MonotonicRaw;
use jitterscope_model::{ClockKind, Nanos, TickRate, Ticks};
use jitterscope_platform::{clock, current_affinity};
use jitterscope_probe::{
    ProbeControl, SpinOutput, SpinProbe, SpinSettings, WakeupProbe, WakeupSettings,
};
use std::sync::Arc;
use std::time::Duration;

/// Number of measured intervals: more than fit in the queue.
const INTERVALS: u64 = 3000;
const INTERVAL: Ticks = Ticks(100_000);

/// Runs a probe, takes nothing until it has measured, and then everything: start and end of the measurement, and its
/// stalls.
fn held_up(
    mut output: SpinOutput,
    run: impl FnOnce(&Arc<ProbeControl>) -> (Ticks, Ticks, u64) + Send + 'static,
) {
    let control = Arc::new(ProbeControl::new());
    let of_probe = Arc::clone(&control);
    let thread = std::thread::spawn(move || run(&of_probe));
    while control.ready() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let start =
        clock::now(ClockKind::MonotonicRaw) + TickRate::NANOSECONDS.ticks(Nanos(10_000_000));
    let end = start + Ticks(INTERVALS * INTERVAL.0);
    control.measure(start, end);
    while clock::now(ClockKind::MonotonicRaw) < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut marks = Vec::new();
    while !thread.is_finished() || output.intervals.slots() > 0 {
        match output.intervals.pop() {
            Ok(mark) => marks.push(mark),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    let (start, end, stalls) = thread.join().unwrap();
    assert_eq!(marks.first().map(|mark| mark.start), Some(start));
    assert_eq!(marks.last().map(|mark| mark.end), Some(end));
    assert!(
        marks.windows(2).all(|two| two[0].end == two[1].start),
        "there is a hole between intervals"
    );
    assert_eq!(marks.iter().map(|mark| mark.count).sum::<u64>(), stalls);
    // Nothing was taken for longer than the queue lasts, so one interval is long.
    let longest = marks
        .iter()
        .map(|mark| mark.end.since(mark.start))
        .max()
        .unwrap();
    assert!(longest.0 > 100 * INTERVAL.0, "{longest:?}");
}

#[test]
fn a_spinning_probe_makes_an_interval_longer_and_loses_none() {
    let cpu = current_affinity().unwrap().last().unwrap();
    let settings = SpinSettings {
        cpu,
        threshold: Ticks(300),
        interval: INTERVAL,
        poll: Ticks(1_000_000),
        fifo_priority: None,
        queue: 1 << 16,
        own: Ticks(0),
    };
    let (probe, output) = SpinProbe::new(MonotonicRaw, settings).unwrap();
    held_up(output, move |control| {
        let result = probe.run(control).unwrap();
        (result.start, result.end, result.stalls)
    });
}

#[test]
fn nor_does_a_sleeping_one() {
    let cpu = current_affinity().unwrap().last().unwrap();
    let settings = WakeupSettings {
        cpu,
        period: Nanos(50_000),
        threshold: Nanos(1),
        interval: INTERVAL,
        rate: TickRate::NANOSECONDS,
        fifo_priority: None,
        queue: 1 << 16,
    };
    let (probe, output) = WakeupProbe::new(MonotonicRaw, settings).unwrap();
    held_up(output, move |control| {
        let result = probe.run(control).unwrap();
        (result.start, result.end, result.stalls)
    });
}
