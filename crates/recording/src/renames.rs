//! Limits the records of threads that rename themselves constantly: any thread may, and each rename writes a record.

use jitterscope_model::{EventKind, KernelEvent};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Minimum length of a turn in the calculation: a thread may rename itself a few times in a burst.
const LEAST_TURN: Duration = Duration::from_millis(50);
/// Maximum of renames a second by one thread, and by all together: a server may start and name a thread per request.
const MOST_OF_ONE: f64 = 640.0;
const MOST_OF_ALL: f64 = 40_000.0;
/// Limit on threads counted in a turn.
const MOST_THREADS: usize = 1 << 14;

/// Threads that rename themselves too often to record it.
pub(crate) struct RenameLimit {
    since: Instant,
    counts: FxHashMap<i32, u32>,
    left_out: BTreeSet<i32>,
}

impl RenameLimit {
    pub(crate) fn new() -> RenameLimit {
        RenameLimit {
            since: Instant::now(),
            counts: FxHashMap::default(),
            left_out: BTreeSet::new(),
        }
    }

    /// Takes a record of the current turn.
    pub(crate) fn event(&mut self, event: &KernelEvent) {
        if let EventKind::TaskRename { tid, .. } = event.kind
            && (self.counts.len() < MOST_THREADS || self.counts.contains_key(&tid))
        {
            *self.counts.entry(tid).or_default() += 1;
        }
    }

    /// Ends a turn. Returns whether more threads are now left out.
    pub(crate) fn turn(&mut self, now: Instant) -> bool {
        let length = now.saturating_duration_since(self.since).max(LEAST_TURN);
        self.since = now;
        let (one, all) = [MOST_OF_ONE, MOST_OF_ALL]
            .map(|most| most * length.as_secs_f64())
            .into();
        let before = self.left_out.len();
        let total: u32 = self.counts.values().sum();
        for (tid, count) in self.counts.drain() {
            if f64::from(count) > one || f64::from(total) > all {
                self.left_out.insert(tid);
            }
        }
        self.left_out.len() > before
    }

    /// All threads left out so far.
    pub(crate) fn left_out(&self) -> &BTreeSet<i32> {
        &self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, CpuId, ExecutionContext, Ticks};

    fn renamed(tid: i32) -> KernelEvent {
        let comm = Comm::default();
        KernelEvent {
            cpu: CpuId(0),
            time: Ticks(1),
            tid,
            context: ExecutionContext::Thread,
            kind: EventKind::TaskRename {
                tid,
                old: comm,
                comm,
            },
        }
    }

    #[test]
    fn a_thread_that_renames_itself_all_the_time_is_left_out() {
        let mut limit = RenameLimit::new();
        let mut now = limit.since;
        let mut turn = |tids: &[(i32, u32)], length| {
            for (tid, times) in tids {
                (0..*times).for_each(|_| limit.event(&renamed(*tid)));
            }
            now += Duration::from_millis(length);
            (
                limit.turn(now),
                limit.left_out().iter().copied().collect::<Vec<_>>(),
            )
        };
        assert_eq!(turn(&[(7, 32), (8, 1)], 50), (false, vec![]));
        assert_eq!(turn(&[(7, 33), (8, 32)], 50), (true, vec![7]));
        assert_eq!(turn(&[(7, 1)], 50), (false, vec![7]), "nothing new");
        // A longer turn may have more renames; a short one has the same limit as the minimum length.
        assert_eq!(turn(&[(8, 600)], 1000), (false, vec![7]));
        assert_eq!(turn(&[(8, 30)], 1), (false, vec![7]));
        // Very many threads that rename themselves once each.
        let many: Vec<(i32, u32)> = (100..2200).map(|tid| (tid, 1)).collect();
        assert_eq!(turn(&many, 50).1.len(), 2101);
    }
}
