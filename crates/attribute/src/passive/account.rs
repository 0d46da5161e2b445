//! The sums of one watched CPU's time.

use crate::instead::Instead;
use crate::subjects::Subjects;
use jitterscope_model::{
    BelongingThread, CpuId, Nanos, PassiveCpu, PutInOrder, Subject, ThreadRef, TickRate, Ticks,
};
use std::collections::BTreeMap;

/// Maximum of distinct belonging threads.
const MOST_THREADS: usize = 4096;

#[derive(Debug)]
struct Own {
    thread: ThreadRef,
    runs: u64,
    ran: Ticks,
}

/// Sums, in ticks until the report.
#[derive(Debug, Default)]
pub(super) struct Account {
    running: Ticks,
    pub(super) interrupted: Ticks,
    pub(super) waiting: Ticks,
    pub(super) beside: Ticks,
    pub(super) idle: Ticks,
    pub(super) unknown: Ticks,
    pub(super) stretches: u64,
    pub(super) stalls: u64,
    pub(super) longest: Ticks,
    pub(super) page_faults: u64,
    instead: Instead,
    beside_by: Instead,
    subjects: Subjects,
    threads: BTreeMap<i32, Own>,
}

impl Account {
    /// A belonging thread had the CPU.
    pub(super) fn ran(&mut self, thread: ThreadRef, length: Ticks) {
        self.running = self.running + length;
        if let Some(own) = self.of(thread) {
            (own.ran, own.thread.comm) = (own.ran + length, thread.comm);
        }
    }

    /// A belonging thread got the CPU.
    pub(super) fn run_begins(&mut self, thread: ThreadRef) {
        if let Some(own) = self.of(thread) {
            own.runs += 1;
        }
    }

    /// Another thread had the CPU, instead of a belonging thread or beside it.
    pub(super) fn had(&mut self, stolen: bool, subject: &Subject, length: Ticks) {
        let sums = if stolen {
            &mut self.instead
        } else {
            &mut self.beside_by
        };
        sums.add(subject, self.subjects.number(subject), length);
    }

    fn of(&mut self, thread: ThreadRef) -> Option<&mut Own> {
        if self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&thread.tid) {
            return None;
        }
        Some(self.threads.entry(thread.tid).or_insert(Own {
            thread,
            runs: 0,
            ran: Ticks(0),
        }))
    }

    /// The account in nanoseconds, for the report.
    pub(super) fn sum_up(
        &self,
        cpu: CpuId,
        (from, until): (Ticks, Ticks),
        rate: TickRate,
    ) -> PassiveCpu {
        let ns = |ticks: Ticks| rate.nanos(ticks);
        let mut threads: Vec<BelongingThread> = self
            .threads
            .values()
            .filter(|own| own.ran > Ticks(0))
            .map(|own| BelongingThread {
                tid: own.thread.tid,
                comm: own.thread.comm.to_string(),
                runs: own.runs,
                running_ns: ns(own.ran),
            })
            .collect();
        threads.order_by_key(|thread| (std::cmp::Reverse(thread.running_ns), thread.tid));
        let thread_count = threads.len() as u64;
        threads.truncate(PassiveCpu::MOST_THREADS);
        PassiveCpu {
            cpu,
            from_ticks: from,
            until_ticks: until,
            threads,
            thread_count,
            chosen: None,
            running_ns: ns(self.running),
            interrupted_ns: ns(self.interrupted),
            waiting_ns: ns(self.waiting),
            beside_ns: ns(self.beside),
            idle_ns: ns(self.idle),
            unknown_ns: ns(self.unknown),
            stretches: self.stretches,
            stalls: self.stalls,
            longest_ns: if self.stretches > 0 {
                ns(self.longest)
            } else {
                Nanos::ZERO
            },
            page_faults: self.page_faults,
            ran_instead: self.instead.rows(rate),
            ran_beside: self.beside_by.rows(rate),
            ended_early: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Comm;

    #[test]
    fn beyond_the_limit_known_threads_and_running_time_still_count() {
        let thread = |tid: usize| ThreadRef {
            tid: i32::try_from(tid).unwrap(),
            comm: Comm::new("x"),
        };
        let mut account = Account::default();
        for tid in 1..=MOST_THREADS + 3 {
            account.run_begins(thread(tid));
            account.ran(thread(tid), Ticks(2));
        }
        account.run_begins(thread(1));
        account.ran(
            ThreadRef {
                comm: Comm::new("renamed"),
                ..thread(1)
            },
            Ticks(5),
        );
        let summed = account.sum_up(CpuId(0), (Ticks(0), Ticks(9)), TickRate::NANOSECONDS);
        assert_eq!(summed.thread_count, MOST_THREADS as u64);
        let first = &summed.threads[0];
        assert_eq!((first.tid, first.runs, first.running_ns), (1, 2, Nanos(7)));
        assert_eq!(first.comm, "renamed");
        assert_eq!(summed.running_ns, Nanos(2 * (MOST_THREADS as u64 + 3) + 5));
        // Without a stretch there is no length.
        assert_eq!((summed.stretches, summed.longest_ns), (0, Nanos::ZERO));
    }
}
