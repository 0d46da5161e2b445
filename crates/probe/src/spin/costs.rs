//! The costs of reading the clock and of storing a stall on a CPU: shorter deltas cannot be distinguished from the
//! probe's own work.

use super::counts::{ShortCounts, Stalls};
use super::thread::Spinner;
use super::{SpinError, SpinSettings};
use crate::gap_queue::GapQueue;
use jitterscope_clock::{AtMark, Clock, Watcher, spin};
use jitterscope_model::{CpuId, Ticks};
use rtrb::RingBuffer;

/// Costs of single operations, on one CPU and clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockCosts {
    /// At most one in a thousand reads takes longer.
    pub read_tail: Ticks,
    /// At most one in a hundred times, counting and sending a stall takes longer, including the next read.
    pub store: Ticks,
}

impl ClockCosts {
    /// The maximum of each field.
    #[must_use]
    pub fn max(self, other: ClockCosts) -> ClockCosts {
        ClockCosts {
            read_tail: self.read_tail.max(other.read_tail),
            store: self.store.max(other.store),
        }
    }
}

/// Longer reads count as this long: 6 us at 2.6 GHz, 16 us in nanoseconds.
const LONGEST_READ: Ticks = Ticks(1 << 14);
/// Minimum number of reads for the tail, which is then the longest hundred of them.
const FEWEST_READS: u64 = 100_000;
/// Limit on repetitions of the given length until there are that many reads.
const PATIENCE: usize = 8;
/// How many stalls are stored to learn that cost.
const STORED: usize = 2000;

/// Learns both costs on the calling thread, which it pins: reads the clock for `length`, or longer if that gives too
/// few reads, and then stores stalls that no thread receives.
///
/// # Errors
/// The thread cannot be put on its CPU.
pub fn clock_costs<C: Clock>(clock: C, cpu: CpuId, length: Ticks) -> Result<ClockCosts, SpinError> {
    jitterscope_platform::pin_current_thread(cpu)?;
    let mut short = ShortCounts::new(LONGEST_READ);
    short.prefault();
    let mut reads = Reads::default();
    for _ in 0..PATIENCE {
        let first = clock.now();
        spin(
            clock,
            &mut short.deltas(),
            &mut reads,
            first,
            first.saturating_add(length.0),
        );
        if short.rows().iter().map(|row| row.1).sum::<u64>() >= FEWEST_READS {
            break;
        }
    }
    Ok(ClockCosts {
        read_tail: tail(&short.rows(), reads.longer),
        store: store(clock, cpu)?,
    })
}

/// Counts reads beyond the table.
#[derive(Default)]
struct Reads {
    longer: u64,
}

impl Watcher for Reads {
    fn stalled(&mut self, _start: u64, _length: u64) -> bool {
        self.longer += 1;
        false
    }

    fn at_mark(&mut self, _now: u64) -> AtMark {
        AtMark::End
    }
}

/// The shortest length that at most one in a thousand exceeds. `rows`: length and count, ascending; `longer`: the
/// number of further reads, each longer than all of these.
fn tail(rows: &[(u32, u64)], longer: u64) -> Ticks {
    let allowed = (rows.iter().map(|row| row.1).sum::<u64>() + longer) / 1000;
    let mut above = longer;
    if above > allowed {
        return LONGEST_READ;
    }
    for (length, count) in rows.iter().rev() {
        above += count;
        if above > allowed {
            return Ticks(u64::from(*length));
        }
    }
    Ticks(0)
}

/// The cost of storing a stall, from storing some as in a measurement.
fn store<C: Clock>(clock: C, cpu: CpuId) -> Result<Ticks, SpinError> {
    let settings = SpinSettings {
        cpu,
        threshold: Ticks(1),
        interval: Ticks(u64::MAX),
        poll: Ticks(u64::MAX),
        fifo_priority: None,
        queue: 4 * STORED,
        own: Ticks(0),
    };
    let (gaps, _receiver) = GapQueue::new(settings.queue, settings.threshold);
    let (intervals, _marks) = RingBuffer::new(1);
    let mut spinner = Spinner::new(settings, Stalls::new()?, gaps, intervals);
    spinner.prefault();
    let mut took: Vec<u64> = (0..STORED as u64)
        .map(|nth| {
            let before = clock.now();
            spinner.store(before, 1 + nth);
            clock.now().wrapping_sub(before)
        })
        .collect();
    took.sort_unstable();
    Ok(Ticks(took[STORED * 99 / 100]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_clock::MonotonicRaw;
    use jitterscope_platform::current_affinity;

    /// The C library's clock after some useless work: a slow clock.
    #[derive(Clone, Copy)]
    struct Slow;

    impl Clock for Slow {
        fn now(self) -> u64 {
            (0..20).map(|_| MonotonicRaw.now()).fold(0, u64::max)
        }
    }

    #[test]
    fn one_in_a_thousand_may_lie_above_the_tail() {
        assert_eq!(tail(&[(20, 9_980), (50, 10), (900, 10)], 0), Ticks(50));
        assert_eq!(tail(&[(20, 9_980), (50, 10)], 10), Ticks(50));
        assert_eq!(tail(&[(20, 9_980), (50, 9)], 11), LONGEST_READ);
        assert_eq!(tail(&[(20, 10_000)], 0), Ticks(20));
        assert_eq!(tail(&[], 0), Ticks(0));
    }

    #[test]
    fn a_slow_clock_costs_more_than_a_quick_one() {
        let cpu = current_affinity().unwrap().last().unwrap();
        let length = Ticks(20_000_000);
        std::thread::spawn(move || {
            let quick = clock_costs(MonotonicRaw, cpu, length).unwrap();
            let slow = clock_costs(Slow, cpu, length).unwrap();
            assert!(
                quick.read_tail > Ticks(0) && quick.store > Ticks(0),
                "{quick:?}"
            );
            // One slow read takes as long as twenty fast ones; other load may blur the tails.
            assert!(
                slow.read_tail.0 > 2 * quick.read_tail.0 || slow.read_tail == LONGEST_READ,
                "{quick:?} {slow:?}"
            );
            assert!(slow.store > quick.store, "{quick:?} {slow:?}");
            assert_eq!(quick.max(slow).store, slow.store);
        })
        .join()
        .unwrap();
    }
}
