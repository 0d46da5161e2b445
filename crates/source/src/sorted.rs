//! Records in order of time, from a file that has those of each CPU or of each buffer in turn.

use jitterscope_model::CpuId;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What waits for its turn at most, bytes.
const MOST: usize = 64 << 20;
/// What a waiting record takes beside its bytes.
const OVERHEAD: usize = 64;

/// What waits: the earliest first, and at one time in the order of the file.
struct Waiting<W> {
    time: u64,
    order: u64,
    cpu: CpuId,
    bytes: usize,
    what: W,
}

impl<W> Ord for Waiting<W> {
    fn cmp(&self, other: &Waiting<W>) -> Ordering {
        // The heap's greatest is the earliest.
        (other.time, other.order).cmp(&(self.time, self.order))
    }
}

impl<W> PartialOrd for Waiting<W> {
    fn partial_cmp(&self, other: &Waiting<W>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<W> PartialEq for Waiting<W> {
    fn eq(&self, other: &Waiting<W>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<W> Eq for Waiting<W> {}

/// Takes a record in its turn.
pub(crate) type Take<'a, W, E> = &'a mut dyn FnMut(u64, CpuId, W) -> Result<(), E>;

/// The records that wait.
pub(crate) struct Sorted<W> {
    waiting: BinaryHeap<Waiting<W>>,
    bytes: usize,
    next: u64,
    /// The latest time so far, and at the end of the last round.
    latest: u64,
    until: u64,
}

impl<W> Sorted<W> {
    pub(crate) fn new() -> Sorted<W> {
        Sorted {
            waiting: BinaryHeap::new(),
            bytes: 0,
            next: 0,
            latest: 0,
            until: 0,
        }
    }

    /// Adds what has so many bytes.
    pub(crate) fn put(&mut self, time: u64, cpu: CpuId, what: W, bytes: usize) {
        self.latest = self.latest.max(time);
        let bytes = bytes + OVERHEAD;
        self.bytes += bytes;
        self.waiting.push(Waiting {
            time,
            order: self.next,
            cpu,
            bytes,
            what,
        });
        self.next += 1;
    }

    /// A round ends: no later record is older than the latest one of the round before.
    pub(crate) fn round<E>(&mut self, take: Take<'_, W, E>) -> Result<(), E> {
        self.up_to(self.until, take)?;
        self.until = self.latest;
        Ok(())
    }

    /// Hands over the older half if no more may wait, where rounds are too long or are not marked.
    pub(crate) fn relieve<E>(&mut self, take: Take<'_, W, E>) -> Result<(), E> {
        if self.bytes >= MOST {
            while self.bytes > MOST / 2 && self.one(take)? {}
        }
        Ok(())
    }

    /// Hands over all records.
    pub(crate) fn all<E>(&mut self, take: Take<'_, W, E>) -> Result<(), E> {
        self.up_to(u64::MAX, take)
    }

    fn up_to<E>(&mut self, until: u64, take: Take<'_, W, E>) -> Result<(), E> {
        while self.waiting.peek().is_some_and(|next| next.time <= until) {
            self.one(take)?;
        }
        Ok(())
    }

    /// Hands over the earliest; `false` if there is none.
    fn one<E>(&mut self, take: Take<'_, W, E>) -> Result<bool, E> {
        let Some(next) = self.waiting.pop() else {
            return Ok(false);
        };
        self.bytes -= next.bytes;
        take(next.time, next.cpu, next.what)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_hand_over_what_no_later_record_can_precede() {
        let mut sorted = Sorted::new();
        let mut taken = Vec::new();
        let mut rounds = Vec::new();
        // Two CPUs in turn, as perf empties their buffers.
        for times in [[10, 30, 20, 25], [31, 50, 26, 49], [51, 52, 53, 54]] {
            for time in times {
                sorted.put(time, CpuId(0), (), 4);
            }
            let round = sorted.round(&mut |time, _, _| {
                taken.push(time);
                Ok::<_, ()>(())
            });
            round.unwrap();
            rounds.push(taken.len());
        }
        assert_eq!(rounds, [0, 5, 8]);
        sorted.put(53, CpuId(1), (), 0);
        let all = sorted.all(&mut |time, _, _| {
            taken.push(time);
            Ok::<_, ()>(())
        });
        all.unwrap();
        assert_eq!(taken, [10, 20, 25, 26, 30, 31, 49, 50, 51, 52, 53, 53, 54]);
        assert_eq!(sorted.bytes, 0);
    }
}
