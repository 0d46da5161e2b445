//! The queue of stalls from a probe to the drain. The fuller it is, the longer a stall must be to be accepted, so that
//! long stalls find room among any number of short ones.

use jitterscope_model::{Gap, Ticks};
use rtrb::{Consumer, Producer, RingBuffer};

pub(crate) struct GapQueue {
    gaps: Producer<Gap>,
    /// Slots reserved for stalls longer than about the threshold: half of all.
    kept: usize,
    /// Leading zeros of the threshold in ticks: a length's order of magnitude then takes one subtraction.
    zeros: u32,
}

impl GapQueue {
    /// Minimum number of slots, so that several are reserved.
    const SHORTEST: usize = 16;

    /// A queue with this many slots, for stalls at or above `threshold`.
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

    /// Sends a stall; returns false if there is no room for its length. Stalls of about the threshold's length may fill
    /// half of the slots; each factor of four in length halves the reserved rest. Stalls cannot overlap, so longer ones
    /// take longer to fill their share: with 32,768 slots and 300 ns, stalls of 31 us and more need 50 ms for it, even if
    /// nothing but stalls happens. After a refused stall, only longer ones are accepted until the receiver makes room.
    #[inline]
    pub(crate) fn send(&mut self, gap: Gap) -> bool {
        self.gaps.slots() > self.kept_from(gap.length) && self.gaps.push(gap).is_ok()
    }

    /// Sends a mark, which is not a stall, if there is a slot.
    pub(crate) fn send_mark(&mut self, mark: Gap) -> bool {
        self.gaps.push(mark).is_ok()
    }

    /// Slots reserved for stalls longer than this.
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
        // `write_chunk` fills the slots with the default value; dropping it uncommitted leaves the queue empty.
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
        // As many turns of a real-time thread as occur while a drain is delayed by a third of a second.
        assert!((0..100).all(|n| queue.send(gap(n, 3_000_000))));
        // In the order sent.
        let lengths: Vec<u64> = std::iter::from_fn(|| receiver.pop().ok())
            .map(|gap| gap.length.0)
            .collect();
        assert!(lengths.is_sorted() && lengths.len() == short + middle + 100);
        assert!(queue.send(gap(0, 300)), "there is room again");
    }

    #[test]
    fn after_a_refused_stall_no_shorter_one_is_stored_without_room() {
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
