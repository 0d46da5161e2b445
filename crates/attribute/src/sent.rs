//! The records with one key, in order of time.

use jitterscope_model::{CpuId, ExecutionContext, KernelEvent, Ticks};
use smallvec::SmallVec;
use std::cell::Cell;

/// A record of a sender.
#[derive(Clone, Debug)]
pub(crate) struct Sent<T> {
    pub(crate) time: Ticks,
    pub(crate) tid: i32,
    pub(crate) context: ExecutionContext,
    pub(crate) cpu: CpuId,
    pub(crate) what: T,
}

impl<T> Sent<T> {
    pub(crate) fn of(event: &KernelEvent, what: T) -> Sent<T> {
        let KernelEvent {
            time,
            tid,
            context,
            cpu,
            ..
        } = *event;
        Sent {
            time,
            tid,
            context,
            cpu,
            what,
        }
    }
}

/// Records in order of time. Queries advance in small steps, so each search starts at the last result: a busy thread's
/// wake-ups are thousands of records. Most keys have one record, which needs no separate memory.
#[derive(Clone, Debug)]
pub(crate) struct SentQueue<T> {
    /// At most half of them, at the front, are already dropped.
    records: SmallVec<[Sent<T>; 1]>,
    /// The number of dropped records still in `records`.
    start: usize,
    /// The number of records dropped at the front so far.
    dropped: usize,
    /// How many of all records so far were up to the last queried time: a hint.
    passed: Cell<usize>,
}

impl<T> Default for SentQueue<T> {
    fn default() -> Self {
        SentQueue {
            records: SmallVec::new(),
            start: 0,
            dropped: 0,
            passed: Cell::new(0),
        }
    }
}

impl<T> SentQueue<T> {
    fn kept(&self) -> &[Sent<T>] {
        self.records.get(self.start..).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.kept().len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Sent<T>> {
        self.kept().get(at)
    }

    pub(crate) fn last(&self) -> Option<&Sent<T>> {
        self.kept().last()
    }

    /// Records of several CPUs arrive buffer by buffer, so the newest need not come last.
    pub(crate) fn insert(&mut self, record: Sent<T>) {
        if self.last().is_none_or(|last| last.time <= record.time) {
            self.records.push(record);
            return;
        }
        let at = self
            .kept()
            .iter()
            .rposition(|sent| sent.time <= record.time)
            .map_or(0, |at| at + 1);
        self.records.insert(self.start + at, record);
    }

    /// Drops the earliest. Shrinks the allocation when it is four times too large.
    pub(crate) fn drop_first(&mut self) {
        if self.len() == 0 {
            return;
        }
        self.start += 1;
        self.dropped += 1;
        if self.start * 2 >= self.records.len() {
            self.records.drain(..self.start);
            self.start = 0;
            if self.records.capacity() > 4 * self.records.len().max(1) {
                self.records.shrink_to_fit();
            }
        }
    }

    /// The last one up to `time`.
    pub(crate) fn before(&self, time: Ticks) -> Option<&Sent<T>> {
        let passed = self.not_after(time);
        self.passed.set(self.dropped + passed);
        self.get(passed.checked_sub(1)?)
    }

    /// The first one after `time`.
    pub(crate) fn after(&self, time: Ticks) -> Option<&Sent<T>> {
        self.get(self.not_after(time))
    }

    /// The number of records up to `time`.
    fn not_after(&self, time: Ticks) -> usize {
        let all = self.len();
        let is_passed = |at: usize| self.get(at).is_some_and(|sent| sent.time <= time);
        let mut low = self.passed.get().saturating_sub(self.dropped).min(all);
        if low > 0 && !is_passed(low - 1) {
            return partition(0, low - 1, is_passed);
        }
        let mut step = 1;
        while is_passed(low + step - 1) {
            low += step;
            step *= 2;
        }
        partition(low, (low + step - 1).min(all), is_passed)
    }
}

/// The first of `low..high` that is not passed, or `high`; all before it are.
fn partition(mut low: usize, mut high: usize, is_passed: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low.midpoint(high);
        if is_passed(middle) {
            low = middle + 1
        } else {
            high = middle
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(time: u64, what: usize) -> Sent<usize> {
        Sent {
            time: Ticks(time),
            tid: 1,
            context: ExecutionContext::Thread,
            cpu: CpuId(0),
            what,
        }
    }

    proptest! {
        /// Independently of earlier queries and changes, the result equals that of a full search.
        #[test]
        fn the_last_entry_up_to_a_time_is_found_from_any_position(
            steps in prop::collection::vec((0u8..8, 0u64..50), 1..200),
        ) {
            let mut queue = SentQueue::default();
            let mut all: Vec<(u64, usize)> = Vec::new();
            for (n, (step, time)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        queue.drop_first();
                        if !all.is_empty() {
                            all.remove(0);
                        }
                    }
                    1..=4 => {
                        queue.insert(sent(time, n));
                        let at = all.partition_point(|(other, _)| *other <= time);
                        all.insert(at, (time, n));
                    }
                    _ => {
                        let found = queue.before(Ticks(time)).map(|sent| sent.what);
                        let wanted = all.iter().rfind(|(other, _)| *other <= time).map(|(_, n)| *n);
                        prop_assert_eq!(found, wanted);
                        let found = queue.after(Ticks(time)).map(|sent| sent.what);
                        let wanted = all.iter().find(|(other, _)| *other > time).map(|(_, n)| *n);
                        prop_assert_eq!(found, wanted);
                    }
                }
                prop_assert_eq!(queue.len(), all.len());
            }
        }
    }
}
