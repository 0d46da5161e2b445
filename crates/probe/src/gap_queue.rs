//! The queue of stalls from a probe to the drain. The more of it is full, the longer a stall must be to be
//! taken in, so that long ones find room however many short ones there are.

use jitterscope_model::{Gap, Ticks};
use rtrb::{Consumer, Producer, RingBuffer};

/// The sending end.
pub(crate) struct GapQueue {
    gaps: Producer<Gap>,
    /// Slots that are not for stalls of about the threshold's length: half of all.
    kept: usize,
    /// Leading zeros of the threshold in ticks: with them a length's order is one subtraction.
    zeros: u32,
}

impl GapQueue {
    /// Fewest slots: those that are kept are several then.
    const SHORTEST: usize = 16;

    /// A queue of so many slots, for stalls from `threshold` on.
    pub(crate) fn new(slots: usize, threshold: Ticks) -> (GapQueue, Consumer<Gap>) {
        let slots = slots.max(GapQueue::SHORTEST);
        let (gaps, receiver) = RingBuffer::new(slots);
        (
            GapQueue {
                gaps,
                kept: slots / 2,
                zeros: threshold.0.leading_zeros(),
            },
            receiver,
        )
    }

    /// Writes to every slot without publishing any.
    pub(crate) fn fault_in(&mut self) {
        fault_in(&mut self.gaps);
    }

    /// Sends a stall; false when there is no room for one of its length. A stall of the threshold's length may
    /// fill half of the slots, and one four times as long may go twice as far into the rest. As stalls cannot
    /// overlap, the longer they are the longer it takes to fill what is theirs: with 32,768 slots and 300 ns
    /// those of 31 us and more need 50 ms for it, even if nothing but stalls happens. Once a stall was refused,
    /// only longer ones are taken in until the receiver has made room.
    #[inline]
    pub(crate) fn send(&mut self, gap: Gap) -> bool {
        self.gaps.slots() > self.kept_from(gap.length) && self.gaps.push(gap).is_ok()
    }

    /// Sends what is no stall, if there is a slot.
    pub(crate) fn send_mark(&mut self, mark: Gap) -> bool {
        self.gaps.push(mark).is_ok()
    }

    /// Slots that are kept for stalls longer than this.
    #[inline]
    fn kept_from(&self, length: Ticks) -> usize {
        let fourfold = self.zeros.saturating_sub(length.0.leading_zeros()) / 2;
        self.kept >> fourfold
    }
}

/// Writes to every slot of an empty queue without publishing any.
pub(crate) fn fault_in<T: Copy + Default>(queue: &mut Producer<T>) {
    let free = queue.slots();
    if let Ok(chunk) = queue.write_chunk(free) {
        // `write_chunk` fills the slots with the default value; dropping it uncommitted leaves the
        // queue empty.
        drop(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_testing::SplitMix64;

    fn gap(start: u64, length: u64) -> Gap {
        Gap {
            start: Ticks(start),
            length: Ticks(length),
        }
    }

    #[test]
    fn a_flood_of_short_stalls_leaves_room_for_long_ones() {
        let (mut queue, mut receiver) = GapQueue::new(1 << 10, Ticks(300));
        let short = (0..100_000).filter(|n| queue.send(gap(*n, 310))).count();
        assert_eq!(short, 1 << 9);
        let middle = (0..100_000).filter(|n| queue.send(gap(*n, 5_000))).count();
        assert_eq!(middle, (1 << 9) - (1 << 7));
        // As many turns of a real-time thread as a drain that was held up for a third of a second would meet.
        assert!((0..100).all(|n| queue.send(gap(n, 3_000_000))));
        // In the order in which they were sent.
        let lengths: Vec<u64> = std::iter::from_fn(|| receiver.pop().ok())
            .map(|gap| gap.length.0)
            .collect();
        assert!(lengths.is_sorted() && lengths.len() == short + middle + 100);
        assert!(queue.send(gap(0, 300)), "there is room again");
    }

    #[test]
    fn once_a_stall_was_refused_no_shorter_one_is_taken_in_before_there_is_room() {
        let mut random = SplitMix64(3);
        for threshold in [1, 300, 780, 4096] {
            let (mut queue, _receiver) = GapQueue::new(1 << 8, Ticks(threshold));
            let (mut refused, mut taken) = (0, 0);
            for n in 0..20_000 {
                let length = threshold + random.exponential(threshold as f64 * 8.0) as u64;
                if queue.send(gap(n, length)) {
                    assert!(length > refused, "{length} after {refused}");
                    taken += 1;
                } else {
                    refused = refused.max(length);
                }
            }
            assert!((129..=256).contains(&taken) && refused > 0, "{taken}");
        }
    }

    #[test]
    fn the_smallest_queue_has_room_for_all_lengths() {
        let (mut queue, _receiver) = GapQueue::new(0, Ticks(300));
        assert_eq!((0..100).filter(|n| queue.send(gap(*n, 300))).count(), 8);
        assert_eq!(
            (0..100).filter(|n| queue.send(gap(*n, u64::MAX))).count(),
            8
        );
        assert!(!queue.send_mark(Gap::measurement_begins(Ticks(1))));
    }
}
