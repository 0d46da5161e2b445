//! Records in order of time: the file has those of each CPU in turn, a round of all CPUs after another.

use super::error::PerfDataError;
use jitterscope_model::CpuId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What waits for its turn at most, bytes.
const MOST: usize = 64 << 20;
/// What a waiting record takes beside its bytes.
const OVERHEAD: usize = 64;

/// What waits.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Record(Box<[u8]>),
    /// So many records were lost before.
    Lost(u64),
}

/// Time, order in the file, CPU.
type Waiting = Reverse<(u64, u64, CpuId, What)>;

/// Takes a record in its turn.
pub(super) type Take<'a> = &'a mut dyn FnMut(u64, CpuId, What) -> Result<(), PerfDataError>;

/// The records that wait.
#[derive(Default)]
pub(super) struct Sorted {
    waiting: BinaryHeap<Waiting>,
    bytes: usize,
    next: u64,
    /// The latest time so far, and at the end of the last round.
    latest: u64,
    until: u64,
}

impl Sorted {
    pub(super) fn put(&mut self, time: u64, cpu: CpuId, what: What) {
        self.latest = self.latest.max(time);
        self.bytes += length(&what);
        self.waiting.push(Reverse((time, self.next, cpu, what)));
        self.next += 1;
    }

    /// Whether no more may wait.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= MOST
    }

    /// A round ends: no later record is older than the latest one of the round before.
    pub(super) fn round(&mut self, take: Take<'_>) -> Result<(), PerfDataError> {
        self.up_to(self.until, take)?;
        self.until = self.latest;
        Ok(())
    }

    /// Hands over the older half, where rounds are too long or are not marked.
    pub(super) fn half(&mut self, take: Take<'_>) -> Result<(), PerfDataError> {
        let goal = self.bytes / 2;
        while self.bytes > goal && self.one(take)? {}
        Ok(())
    }

    /// Hands over all records.
    pub(super) fn all(&mut self, take: Take<'_>) -> Result<(), PerfDataError> {
        self.up_to(u64::MAX, take)
    }

    fn up_to(&mut self, until: u64, take: Take<'_>) -> Result<(), PerfDataError> {
        let is_due = |waiting: &BinaryHeap<Waiting>| {
            waiting
                .peek()
                .is_some_and(|Reverse((time, ..))| *time <= until)
        };
        while is_due(&self.waiting) {
            self.one(take)?;
        }
        Ok(())
    }

    /// Hands over the earliest; `false` if there is none.
    fn one(&mut self, take: Take<'_>) -> Result<bool, PerfDataError> {
        let Some(Reverse((time, _, cpu, what))) = self.waiting.pop() else {
            return Ok(false);
        };
        self.bytes -= length(&what);
        take(time, cpu, what)?;
        Ok(true)
    }
}

fn length(what: &What) -> usize {
    match what {
        What::Record(bytes) => bytes.len() + OVERHEAD,
        What::Lost(_) => OVERHEAD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_hand_over_what_no_later_record_can_precede() {
        let mut sorted = Sorted::default();
        let mut taken = Vec::new();
        let mut rounds = Vec::new();
        // Two CPUs in turn, as perf empties their buffers.
        for times in [[10, 30, 20, 25], [31, 50, 26, 49], [51, 52, 53, 54]] {
            for time in times {
                sorted.put(time, CpuId(0), What::Record([0; 4].into()));
            }
            let round = sorted.round(&mut |time, _, _| {
                taken.push(time);
                Ok(())
            });
            round.unwrap();
            rounds.push(taken.len());
        }
        assert_eq!(rounds, [0, 5, 8]);
        sorted.put(53, CpuId(1), What::Lost(3));
        let all = sorted.all(&mut |time, _, _| {
            taken.push(time);
            Ok(())
        });
        all.unwrap();
        assert_eq!(taken, [10, 20, 25, 26, 30, 31, 49, 50, 51, 52, 53, 53, 54]);
        assert_eq!(sorted.bytes, 0);
    }
}
