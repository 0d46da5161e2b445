//! The throttling counters of control groups, also read between the turns of the drain: on a busy machine a turn may
//! last for seconds, and a count tells when its time was lost only as exactly as it is read.

use jitterscope_model::{ClockKind, Name, QuotaRead, ThrottledGroup, Ticks};
use jitterscope_platform::{
    CpuGroupCounts, Throttling, Watched, clock, name_current_thread, set_nice,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two reads: somewhat less than a turn of a quiet machine.
const EVERY: Duration = Duration::from_millis(40);
/// Limit on reads that are kept until the end of the turn.
const MOST_READS: usize = 1024;

pub(crate) struct Group {
    counts: CpuGroupCounts,
    counted: Throttling,
    /// The file that sets its quota.
    pub(crate) limit: Option<Watched>,
}

impl Group {
    /// A group, counting from now on; `None` if it counts nothing.
    pub(crate) fn of(mut counts: CpuGroupCounts, limit: Option<Watched>) -> Option<Group> {
        let counted = counts.throttling()?;
        Some(Group {
            counts,
            counted,
            limit,
        })
    }
}

/// The groups, and the reads since the last turn.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) groups: BTreeMap<Name, Group>,
    reads: Vec<QuotaRead>,
    /// Groups that no longer exist; a new one may get the same name.
    gone: Vec<Name>,
    /// Whether the thread that reads between turns ends.
    ends: bool,
}

impl Counts {
    /// Everything counted since the last read.
    fn risen(&mut self) -> Vec<ThrottledGroup> {
        let mut risen = Vec::new();
        self.groups.retain(|cgroup, group| {
            let Some(now) = group.counts.throttling() else {
                self.gone.push(cgroup.clone());
                return false;
            };
            let before = std::mem::replace(&mut group.counted, now);
            let times = now.times.saturating_sub(before.times);
            let throttled_us = now.throttled_us.saturating_sub(before.throttled_us);
            if (times, throttled_us) == (0, 0) {
                return true;
            }
            // Without a limit now: it was removed meanwhile.
            let limit = group.counts.limit();
            risen.push(ThrottledGroup {
                cgroup: cgroup.clone(),
                quota_us: limit.map_or(0, |limit| limit.quota_us),
                period_us: limit.map_or(0, |limit| limit.period_us),
                times,
                throttled_us,
                changed: false,
            });
            true
        });
        risen
    }

    /// A read between turns. Of reads that found nothing only the last one before a find matters.
    fn read_between(&mut self, clock: ClockKind) {
        if self.groups.is_empty() || self.reads.len() >= MOST_READS {
            return;
        }
        let throttled = self.risen();
        let at = clock::now(clock).max(Ticks(1));
        match self.reads.last_mut() {
            Some(last) if last.throttled.is_empty() && throttled.is_empty() => last.at = at,
            _ => self.reads.push(QuotaRead { at, throttled }),
        }
    }

    /// The read at the end of a turn: the earlier reads of the turn, this one, and groups that no longer exist. Reads
    /// are left out if none found anything.
    pub(crate) fn end_turn(&mut self) -> (Vec<QuotaRead>, Vec<ThrottledGroup>, Vec<Name>) {
        let throttled = self.risen();
        let mut reads = std::mem::take(&mut self.reads);
        if throttled.is_empty() && reads.iter().all(|read| read.throttled.is_empty()) {
            reads.clear();
        }
        (reads, throttled, std::mem::take(&mut self.gone))
    }
}

/// The counters, and the thread that reads them between turns. Dropping this ends it.
pub(crate) struct SharedCounts {
    counts: Arc<(Mutex<Counts>, Condvar)>,
    clock: ClockKind,
    reader: Option<JoinHandle<()>>,
}

impl SharedCounts {
    pub(crate) fn new(clock: ClockKind) -> SharedCounts {
        SharedCounts {
            counts: Arc::default(),
            clock,
            reader: None,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to read between turns, if there is a group. The thread inherits the CPUs of the calling one. Without it,
    /// counts are read once a turn.
    pub(crate) fn read_between_turns(&mut self) {
        if self.reader.is_some() || self.lock().groups.is_empty() {
            return;
        }
        let (counts, clock) = (Arc::clone(&self.counts), self.clock);
        let reader = std::thread::Builder::new().name("js-quotas".into());
        self.reader = reader.spawn(move || read(&counts, clock)).ok();
    }
}

impl Drop for SharedCounts {
    fn drop(&mut self) {
        self.lock().ends = true;
        self.counts.1.notify_all();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Reads until the counts end, also while there is no group: another one may come.
fn read(counts: &(Mutex<Counts>, Condvar), clock: ClockKind) {
    name_current_thread("js-quotas");
    // A read that comes late says less; each takes microseconds.
    set_nice(-20);
    let mut held = counts.0.lock().unwrap_or_else(PoisonError::into_inner);
    while !held.ends {
        let waited = counts.1.wait_timeout(held, EVERY);
        held = waited.unwrap_or_else(PoisonError::into_inner).0;
        held.read_between(clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_platform::{CpuGroup, Machine, cpu_groups};
    use std::fs;
    use std::os::unix::fs::FileExt;
    use std::path::Path;
    use std::time::Instant;

    /// Writes in place: the file stays open, and a reader must not see an empty one.
    fn count(root: &Path, times: u64) {
        let folder = root.join("sys/fs/cgroup/shop");
        fs::create_dir_all(&folder).unwrap();
        let text = format!("nr_throttled {times}\nthrottled_usec {}\n", times * 1000);
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(false);
        let file = file.open(folder.join("cpu.stat")).unwrap();
        file.write_all_at(text.as_bytes(), 0).unwrap();
    }

    fn group(root: &Path) -> Group {
        count(root, 1);
        fs::write(root.join("sys/fs/cgroup/shop/cpu.max"), "10000 100000\n").unwrap();
        let machine = Machine::at(root);
        let group: CpuGroup = cpu_groups(&machine, "0::/shop\n").remove(0);
        Group::of(CpuGroupCounts::of(&machine, group), None).unwrap()
    }

    fn counted(root: &Path) -> SharedCounts {
        let group = group(root);
        let counts = SharedCounts::new(ClockKind::MonotonicRaw);
        counts.lock().groups.insert("/shop".into(), group);
        counts
    }

    #[test]
    fn a_rise_within_a_turn_lies_between_two_reads() {
        let dir = tempfile::tempdir().unwrap();
        let counts = counted(dir.path());
        let clock = ClockKind::MonotonicRaw;
        let read = || counts.lock().read_between(clock);
        read();
        read();
        let before = clock::now(clock);
        count(dir.path(), 3);
        read();
        let after = clock::now(clock);
        read();
        count(dir.path(), 4);
        let (reads, last, gone) = counts.lock().end_turn();
        let found: Vec<usize> = reads.iter().map(|read| read.throttled.len()).collect();
        assert_eq!(found, [0, 1, 0], "{reads:?}");
        assert!(reads[0].at <= before && before <= reads[1].at && reads[1].at <= after);
        assert_eq!((reads[1].throttled[0].times, last[0].times), (2, 1));
        assert_eq!(gone, Vec::<Name>::new());
        // Nothing happened since.
        read();
        assert_eq!(
            counts.lock().end_turn(),
            (Vec::new(), Vec::new(), Vec::new())
        );
    }

    #[test]
    fn the_thread_outlives_a_group_and_ends_with_the_counts() {
        let dir = tempfile::tempdir().unwrap();
        let mut counts = counted(dir.path());
        counts.read_between_turns();
        // The first group goes, and another one comes.
        counts.lock().groups.clear();
        std::thread::sleep(2 * EVERY);
        let again = group(dir.path());
        counts.lock().groups.insert("/shop".into(), again);
        count(dir.path(), 2);
        let until = Instant::now() + Duration::from_secs(20);
        while counts
            .lock()
            .reads
            .iter()
            .all(|read| read.throttled.is_empty())
        {
            assert!(Instant::now() < until, "nobody reads");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(counts);
    }
}
