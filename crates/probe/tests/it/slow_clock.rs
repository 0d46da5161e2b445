//! Clocks so slow that every read is a stall, with a queue that is not emptied.

use jitterscope_clock::{Clock, MonotonicRaw};
use jitterscope_model::{Gap, ProbeResult, Ticks};
use jitterscope_platform::current_affinity;
use jitterscope_probe::{ProbeControl, SpinProbe, SpinSettings};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static SHOWN: Cell<u64> = const { Cell::new(0) };
    static READS: Cell<u64> = const { Cell::new(0) };
}

/// Every read takes 400 ticks, and every five thousandth takes three million, like a real-time thread's turn.
#[derive(Clone, Copy)]
struct Slow;

impl Clock for Slow {
    fn now(self) -> u64 {
        READS.set(READS.get() + 1);
        let step = if READS.get().is_multiple_of(5_000) {
            LONG
        } else {
            400
        };
        SHOWN.set(SHOWN.get() + step);
        SHOWN.get()
    }
}

const LONG: u64 = 3_000_000;

fn settings(threshold: u64, own: u64) -> SpinSettings {
    SpinSettings {
        cpu: current_affinity().unwrap().last().unwrap(),
        threshold: Ticks(threshold),
        interval: Ticks(1_000_000_000),
        poll: Ticks(1_000_000),
        fifo_priority: None,
        queue: 1 << 10,
        own: Ticks(own),
    }
}

/// Measures from `start` to `end` on a thread of its own; returns its result and the contents of the queue.
fn measured<C: Clock>(
    clock: C,
    settings: SpinSettings,
    start: u64,
    end: u64,
) -> (ProbeResult, Vec<Gap>) {
    let (probe, mut output) = SpinProbe::new(clock, settings).unwrap();
    let control = Arc::new(ProbeControl::new());
    control.measure(Ticks(start), Ticks(end));
    let result = std::thread::spawn(move || probe.run(&control).unwrap())
        .join()
        .unwrap();
    let sent: Vec<Gap> = std::iter::from_fn(|| output.gaps.pop().ok()).collect();
    let begins = sent.iter().position(Gap::is_beginning).unwrap();
    (result, sent[begins + 1..].to_vec())
}

#[test]
fn a_flood_of_short_stalls_costs_no_long_one() {
    let (result, gaps) = measured(Slow, settings(300, 0), 0, 200 * LONG);
    let long = |gaps: &[Gap]| gaps.iter().filter(|gap| gap.length.0 == LONG).count();
    assert_eq!(result.sum_ticks, result.end.since(result.start).0);
    assert_eq!(gaps.len() as u64 + result.dropped_records, result.stalls);
    let met: u64 = result
        .above
        .iter()
        .filter(|(length, _)| *length >= LONG)
        .map(|row| row.1)
        .sum();
    assert!(
        result.dropped_records > 100_000 && met > 50,
        "{} {met}",
        result.dropped_records
    );
    assert_eq!(long(&gaps) as u64, met, "a long one gave way to short ones");
    assert!(gaps.is_sorted_by_key(|gap| gap.start));
}

#[test]
fn bookkeeping_is_counted_and_makes_no_bookkeeping() {
    let now = MonotonicRaw.now();
    // Every read is at least as long as this threshold, and a direct successor of a stall is no longer than that.
    let (result, gaps) = measured(MonotonicRaw, settings(1, 1_000_000), now, now + 20_000_000);
    assert_eq!(result.sum_ticks, result.end.since(result.start).0);
    assert!(
        result.stalls > 1_000 && result.own_bookkeeping > result.stalls / 2,
        "{result:?}"
    );
    assert_eq!(gaps.len() as u64 + result.dropped_records, result.stalls);
    // Stalls are sent if they began on their own or are longer.
    assert_eq!(result.dropped_records, result.own_bookkeeping);
    let directly = |two: &&[Gap]| two[0].end() == two[1].start;
    assert!(
        gaps.windows(2)
            .filter(directly)
            .all(|two| two[1].length.0 > 1_000_000)
    );
}
