//! The measuring loop, and a loop that waits.

use crate::{Clock, ShortDeltas};

/// Reads of a turn. On AMD's Zen 3 a read waits for the instructions before it: with a table update between any two
/// reads the loop makes 0.62 times the reads of a bare loop, with sixteen reads in a row 0.98 times. Eight reads are too
/// few (0.93); the times of 24 no longer fit the registers and the nearest cache lines (0.94).
const READS_A_TURN: usize = 16;

/// What the loop does after a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtMark {
    /// Go on until the clock shows this many ticks.
    Until(u64),
    End,
}

/// Handles the events of a loop. The time it takes is part of the next delta.
pub trait Watcher {
    /// A delta was at least as long as the threshold: `length` ticks from `start`. True asks for
    /// [`Watcher::at_mark`] at the end of this turn.
    fn stalled(&mut self, start: u64, length: u64) -> bool;

    /// The clock shows `now`, which is at or past the mark.
    fn at_mark(&mut self, now: u64) -> AtMark;
}

/// Reads the clock from `first` on and accounts for every delta: short ones in `deltas`, longer ones with the watcher.
/// At the end of the first turn past each mark it asks the watcher how to go on. Returns the last read.
///
/// The reads are chained: each ends one delta and begins the next. So the deltas sum to the time from `first` to the
/// last read, even if something interrupts the loop between two reads. A turn reads [`READS_A_TURN`] times, then accounts for
/// the deltas; the time of the accounting is part of the next turn's first delta.
#[inline(always)]
pub fn spin<C: Clock>(
    clock: C,
    deltas: &mut ShortDeltas<'_>,
    watcher: &mut impl Watcher,
    first: u64,
    first_mark: u64,
) -> u64 {
    let mut previous = first;
    let mut mark = first_mark;
    let mut reads = [0; READS_A_TURN];
    loop {
        for read in &mut reads {
            *read = clock.now();
        }
        // A constant bound: the compiler unrolls it, and `step` becomes a constant offset.
        for (step, &now) in reads.iter().enumerate() {
            let delta = now.wrapping_sub(previous);
            if !deltas.count(step, delta) && stalled(watcher, previous, delta) {
                mark = previous;
            }
            previous = now;
        }
        if previous >= mark {
            match watcher.at_mark(previous) {
                AtMark::Until(next) => mark = next,
                AtMark::End => return previous,
            }
        }
    }
}

/// Cold: a separate call keeps this code out of the loop.
#[cold]
#[inline(never)]
fn stalled(watcher: &mut impl Watcher, start: u64, length: u64) -> bool {
    watcher.stalled(start, length)
}

/// Reads the clock, at least once, until it shows `deadline` or more. Returns the last read.
#[inline(always)]
pub fn wait_until<C: Clock>(clock: C, deadline: u64) -> u64 {
    loop {
        let now = clock.now();
        if now >= deadline {
            return now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static READS: Cell<u64> = const { Cell::new(0) };
        static SHOWN: Cell<u64> = const { Cell::new(0) };
    }

    /// Advances by 3 ticks a read, by 50 at every tenth read.
    #[derive(Clone, Copy)]
    struct Uneven;

    impl Clock for Uneven {
        fn now(self) -> u64 {
            let read = READS.get() + 1;
            READS.set(read);
            SHOWN.set(SHOWN.get() + if read.is_multiple_of(10) { 50 } else { 3 });
            SHOWN.get()
        }
    }

    #[derive(Default)]
    struct Notes {
        stalls: Vec<(u64, u64)>,
        marks: Vec<u64>,
        end_at: usize,
        look_at_stall: Option<usize>,
    }

    impl Watcher for Notes {
        fn stalled(&mut self, start: u64, length: u64) -> bool {
            self.stalls.push((start, length));
            Some(self.stalls.len()) == self.look_at_stall
        }

        fn at_mark(&mut self, now: u64) -> AtMark {
            self.marks.push(now);
            if self.marks.len() == self.end_at {
                AtMark::End
            } else {
                AtMark::Until(now + 1000)
            }
        }
    }

    #[test]
    fn every_delta_is_in_exactly_one_account_and_they_sum_to_the_whole() {
        let mut memory = vec![0; ShortDeltas::counters(20)];
        let mut notes = Notes {
            end_at: 3,
            ..Notes::default()
        };
        let first = Uneven.now();
        let last = spin(
            Uneven,
            &mut ShortDeltas::within(&mut memory),
            &mut notes,
            first,
            first + 500,
        );
        let short: u64 = ShortDeltas::seen(&memory)
            .map(|(delta, count)| u64::from(delta) * count)
            .sum();
        let long: u64 = notes.stalls.iter().map(|stall| stall.1).sum();
        assert_eq!(short + long, last - first);
        assert!(notes.stalls.len() > 10 && notes.stalls.iter().all(|stall| stall.1 == 50));
        let reads: u64 = ShortDeltas::seen(&memory).map(|row| row.1).sum();
        assert_eq!(reads + notes.stalls.len() as u64, READS.get() - 1);
        // The loop sees each mark within a turn of its time, and the last mark ends it.
        assert_eq!((notes.marks.len(), notes.marks[2]), (3, last));
        let turn = 2 * 50 + 3 * (READS_A_TURN as u64 - 2);
        assert!((first + 500..first + 500 + turn).contains(&notes.marks[0]));
        assert!(
            notes
                .marks
                .windows(2)
                .all(|two| (1000..1000 + turn).contains(&(two[1] - two[0])))
        );
    }

    /// As a counter that the CPU updates every 26 ticks: most reads repeat, or jump.
    #[derive(Clone, Copy)]
    struct Stepping;

    impl Clock for Stepping {
        fn now(self) -> u64 {
            Uneven.now() / 26 * 26
        }
    }

    #[test]
    fn a_clock_that_advances_in_steps_loses_no_read_and_no_tick() {
        let mut memory = vec![0; ShortDeltas::counters(40)];
        let mut notes = Notes {
            end_at: 3,
            ..Notes::default()
        };
        let first = Stepping.now();
        let last = spin(
            Stepping,
            &mut ShortDeltas::within(&mut memory),
            &mut notes,
            first,
            first + 500,
        );
        let short: Vec<_> = ShortDeltas::seen(&memory).collect();
        assert_eq!(short.iter().map(|row| row.0).collect::<Vec<_>>(), [0, 26]);
        let sum: u64 = short.iter().map(|row| u64::from(row.0) * row.1).sum();
        let long: u64 = notes.stalls.iter().map(|stall| stall.1).sum();
        assert_eq!(sum + long, last - first);
        let reads: u64 = short.iter().map(|row| row.1).sum();
        assert_eq!(reads + notes.stalls.len() as u64, READS.get() - 1);
    }

    #[test]
    fn a_watcher_that_asks_is_heard_at_the_end_of_the_turn() {
        let mut memory = vec![0; ShortDeltas::counters(20)];
        let mut notes = Notes {
            end_at: 1,
            look_at_stall: Some(1),
            ..Notes::default()
        };
        let last = spin(
            Uneven,
            &mut ShortDeltas::within(&mut memory),
            &mut notes,
            SHOWN.get(),
            u64::MAX,
        );
        let (start, length) = notes.stalls[0];
        assert_eq!(notes.stalls.len(), 1);
        let turn = 3 * READS_A_TURN as u64;
        assert!((start + length..=start + length + turn).contains(&last));
    }

    #[test]
    fn waiting_ends_at_the_deadline_or_at_the_first_read() {
        assert_eq!(wait_until(Uneven, 10), 12);
        assert_eq!(wait_until(Uneven, 0), 15);
    }
}
