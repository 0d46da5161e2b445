//! CPU quotas of control groups: which groups were throttled when and for how long, and which threads are in them.
//!
//! The kernel counts throttling per group when it ends, and the recorder reads the counts in every turn and between
//! turns. So the length of a throttling is known, and the two reads between which it ended.

use jitterscope_model::{
    CpuId, DrainTurn, Name, Nanos, PutInOrder, Quota, QuotaLimit, ThrottledGroup, Ticks,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// Maximum of reads that found throttling: at one per 40 ms, the last minutes.
const MOST_TURNS: usize = 4096;
/// Turns for which the assigned throttled time is remembered, and the maximum of such entries.
const TURNS_GIVEN: usize = 64;
const MOST_GIVEN: usize = 1 << 14;
/// Maximum of groups with a known limit.
const MOST_LIMITS: usize = 4096;
/// Maximum of threads with known groups.
const MOST_THREADS: usize = 1 << 16;

/// The time between two reads, in which groups were throttled.
#[derive(Clone, Debug)]
struct Turn {
    from: Ticks,
    to: Ticks,
    groups: Vec<ThrottledGroup>,
}

/// The throttled time of a group above a thread in some turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rise {
    /// The group's level among those with a quota above the thread: 0 is the innermost.
    pub(crate) level: usize,
    /// The group, with its last limit.
    pub(crate) quota: Quota,
    /// Throttled time, summed over the CPUs.
    pub(crate) throttled: Nanos,
    /// The part of it that is not yet assigned to a wait of the thread.
    pub(crate) left: Nanos,
    /// The part of `left` that may have ended without the end of a kernel's period, because the quota was changed.
    pub(crate) by_nobody: Nanos,
    /// Whether a process wrote the quota in these turns.
    pub(crate) changed: bool,
}

/// The totals of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupThrottled {
    /// The group, with its last limit.
    pub quota: Quota,
    /// Periods in which it was throttled.
    pub times: u64,
    /// Throttled time, summed over the CPUs.
    pub throttled: Nanos,
}

/// The known facts about CPU quotas.
#[derive(Clone, Debug, Default)]
pub struct Bandwidth {
    read: Ticks,
    turns: VecDeque<Turn>,
    /// The groups with a quota that threads are in, innermost first.
    members: HashMap<i32, Vec<Name>>,
    /// Threads whose groups were read at the end of the current turn: no record of them is newer.
    reported: HashSet<i32>,
    sums: BTreeMap<Name, GroupThrottled>,
    /// The time assigned to waits, by thread, level and end of the turn that counted it.
    given: RefCell<BTreeMap<(i32, usize, Ticks), Nanos>>,
    /// The last limit of each group.
    limits: HashMap<Name, QuotaLimit>,
    /// CPUs with a record of the end of a throttling.
    listed: RefCell<BTreeSet<CpuId>>,
}

impl Bandwidth {
    /// Notes that a record of this CPU showed the end of a throttling.
    pub(crate) fn is_told(&self, cpu: CpuId) {
        self.listed.borrow_mut().insert(cpu);
    }

    /// Whether records of this CPU show the end of throttling.
    pub(crate) fn tells(&self, cpu: CpuId) -> bool {
        self.listed.borrow().contains(&cpu)
    }

    /// Adds the counts of a turn. `counts`: whether they belong to the measurement.
    pub fn turn(&mut self, turn: &DrainTurn, counts: bool) {
        self.reported.clear();
        for (tid, groups) in &turn.members {
            self.reported.insert(*tid);
            if groups.is_empty() {
                // It no longer has its creator's groups either.
                self.members.remove(tid);
                continue;
            }
            if self.members.len() >= MOST_THREADS {
                self.members.clear();
            }
            self.members.insert(*tid, groups.clone());
        }
        if turn.quotas_read == Ticks(0) {
            return;
        }
        for read in &turn.quota_reads {
            self.take_in(read.at, &read.throttled, counts);
        }
        self.take_in(turn.quotas_read, &turn.throttled, counts);
    }

    /// Adds what a read found since the one before.
    fn take_in(&mut self, at: Ticks, throttled: &[ThrottledGroup], counts: bool) {
        let from = std::mem::replace(&mut self.read, at);
        if throttled.is_empty() {
            return;
        }
        for group in throttled.iter().filter(|group| group.quota_us > 0) {
            if self.limits.len() >= MOST_LIMITS {
                self.limits.clear();
            }
            self.limits
                .extend((group.quota().limit).map(|limit| (group.cgroup.clone(), limit)));
        }
        if counts {
            throttled.iter().for_each(|group| self.sum_up(group));
        }
        if self.turns.len() >= MOST_TURNS {
            self.turns.pop_front();
        }
        self.turns.push_back(Turn {
            from,
            to: at,
            groups: throttled.to_vec(),
        });
    }

    /// The group with its last limit, which may have been removed before the count was read.
    fn quota(&self, group: &ThrottledGroup) -> Quota {
        let last = self.limits.get(&group.cgroup).copied();
        Quota {
            limit: last.or(group.quota().limit),
            ..group.quota()
        }
    }

    fn sum_up(&mut self, group: &ThrottledGroup) {
        let quota = self.quota(group);
        let new = || GroupThrottled {
            quota: quota.clone(),
            times: 0,
            throttled: Nanos::ZERO,
        };
        let sum = self.sums.entry(group.cgroup.clone()).or_insert_with(new);
        sum.quota.clone_from(&quota);
        sum.times = sum.times.saturating_add(group.times);
        sum.throttled = Nanos(sum.throttled.0.saturating_add(group.throttled().0));
    }

    /// A thread begins, in its creator's groups. Discards an earlier thread with its id.
    pub(crate) fn begun(&mut self, tid: i32, maker: i32) {
        if self.reported.contains(&tid) {
            return;
        }
        match self.members.get(&maker).cloned() {
            Some(groups) => self.members.insert(tid, groups),
            None => self.members.remove(&tid),
        };
    }

    /// The throttled time of the groups above a thread, in the turns that overlap this time, innermost first. Only
    /// groups with throttled time.
    pub(crate) fn rises(&self, tid: i32, from: Ticks, to: Ticks) -> Vec<Rise> {
        let mut found: Vec<Rise> = Vec::new();
        let Some(own) = self.members.get(&tid).filter(|groups| !groups.is_empty()) else {
            return found;
        };
        let given = self.given.borrow();
        for turn in self.touched(from, to) {
            for group in &turn.groups {
                let Some(level) = own.iter().position(|name| *name == group.cgroup) else {
                    continue;
                };
                let throttled = group.throttled();
                let given = given.get(&(tid, level, turn.to)).copied();
                let left = throttled.saturating_sub(given.unwrap_or_default());
                let by_nobody = if group.changed || group.times == 0 || group.quota_us == 0 {
                    left
                } else {
                    Nanos::ZERO
                };
                match found.iter_mut().find(|rise| rise.level == level) {
                    Some(rise) => {
                        rise.quota = self.quota(group);
                        rise.throttled += throttled;
                        rise.left += left;
                        rise.by_nobody += by_nobody;
                        rise.changed |= group.changed;
                    }
                    None => found.push(Rise {
                        level,
                        quota: self.quota(group),
                        throttled,
                        left,
                        by_nobody,
                        changed: group.changed,
                    }),
                }
            }
        }
        found.order_by_key(|rise| rise.level);
        found
    }

    fn touched(&self, from: Ticks, to: Ticks) -> impl Iterator<Item = &Turn> {
        let first = self.turns.partition_point(|turn| turn.to < from);
        self.turns
            .range(first..)
            .take_while(move |turn| turn.from <= to)
    }

    /// Assigns counted time of these turns to a finished wait of a thread; the oldest first.
    pub(crate) fn give(&self, tid: i32, level: usize, (from, to): (Ticks, Ticks), mut time: Nanos) {
        let own = self.members.get(&tid);
        let Some(name) = own.and_then(|groups| groups.get(level)) else {
            return;
        };
        let mut given = self.given.borrow_mut();
        for turn in self.touched(from, to) {
            let of_it = turn.groups.iter().filter(|group| group.cgroup == *name);
            let counted: Nanos = of_it.map(ThrottledGroup::throttled).sum();
            let given = given.entry((tid, level, turn.to)).or_default();
            let more = time.min(counted.saturating_sub(*given));
            *given += more;
            time = time.saturating_sub(more);
        }
        if given.len() > MOST_GIVEN {
            let oldest = self.turns.len().saturating_sub(TURNS_GIVEN);
            let oldest = self.turns.get(oldest).map_or(Ticks(0), |turn| turn.to);
            given.retain(|(_, _, turn), _| *turn >= oldest);
        }
    }

    /// Whether a thread is in a group, or in one below it.
    pub(crate) fn is_in(&self, tid: i32, group: &Name) -> bool {
        let groups = self.members.get(&tid);
        groups.is_some_and(|groups| groups.contains(group))
    }

    /// The totals of the measurement, by group.
    pub fn throttled(&self) -> impl Iterator<Item = &GroupThrottled> {
        self.sums.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::QuotaLimit;

    fn is_throttled(known: &Bandwidth, tid: i32, from: u64, to: u64) -> bool {
        !known.rises(tid, Ticks(from), Ticks(to)).is_empty()
    }

    fn turn(at: u64, throttled: &[&str]) -> DrainTurn {
        let group = |name: &&str| ThrottledGroup {
            cgroup: Name::from(*name),
            quota_us: 30_000,
            period_us: 100_000,
            times: 1,
            throttled_us: 70_000,
            changed: false,
        };
        let throttled = throttled.iter().map(group).collect();
        DrainTurn {
            quotas_read: Ticks(at),
            throttled,
            ..DrainTurn::default()
        }
    }

    #[test]
    fn a_window_is_throttled_if_a_turn_in_it_throttled_a_group() {
        let mut known = Bandwidth::default();
        let members = vec![
            (7, vec!["/a/b".into(), "/a".into()]),
            (8, vec!["/a".into()]),
        ];
        known.turn(
            &DrainTurn {
                members,
                ..turn(100, &[])
            },
            true,
        );
        known.turn(&turn(200, &["/a", "/a/b"]), true);
        known.turn(&turn(300, &[]), true);
        known.turn(&turn(400, &["/a"]), true);
        let of = |tid, from, to| -> Vec<(usize, String, u64)> {
            let rises = known.rises(tid, Ticks(from), Ticks(to)).into_iter();
            let shown = |rise: Rise| {
                let millis = rise.throttled.0 / 1_000_000;
                (rise.level, rise.quota.cgroup.to_string(), millis)
            };
            rises.map(shown).collect()
        };
        let (inner, outer) = (
            |ms| (0, "/a/b".to_owned(), ms),
            |ms| (1, "/a".to_owned(), ms),
        );
        assert_eq!(of(7, 50, 99), []);
        assert_eq!(of(7, 150, 160), [inner(70), outer(70)]);
        assert_eq!(of(8, 150, 160), [(0, "/a".to_owned(), 70)]);
        assert_eq!(of(7, 210, 299), []);
        assert_eq!(of(7, 210, 350), [outer(70)]);
        assert_eq!(of(7, 110, 350), [inner(70), outer(140)]);
        // It is in no group with a quota.
        assert_eq!(of(9, 0, 1000), []);
        let sums: Vec<(String, u64)> = known
            .throttled()
            .map(|sum| (sum.quota.cgroup.to_string(), sum.times))
            .collect();
        assert_eq!(sums, [("/a".to_owned(), 2), ("/a/b".to_owned(), 1)]);
    }

    #[test]
    fn a_thread_inherits_groups_and_a_reused_id_does_not_keep_them() {
        let mut known = Bandwidth::default();
        known.turn(
            &DrainTurn {
                members: vec![(7, vec!["/a".into()])],
                ..turn(100, &[])
            },
            true,
        );
        known.turn(&turn(200, &["/a"]), true);
        known.begun(70, 7);
        known.begun(7, 1);
        let of = |tid| is_throttled(&known, tid, 150, 160);
        assert_eq!([of(70), of(7)], [true, false]);
    }

    #[test]
    fn groups_read_after_a_threads_start_are_its_own() {
        let mut known = Bandwidth::default();
        let joined = vec![(70, vec!["/a".into()])];
        known.turn(
            &DrainTurn {
                members: joined,
                ..turn(100, &[])
            },
            true,
        );
        // The record of the same turn is older: the thread was created before its groups were read.
        known.begun(70, 1);
        known.turn(&turn(200, &["/a"]), true);
        assert!(is_throttled(&known, 70, 150, 160));
        known.begun(70, 1);
        assert!(!is_throttled(&known, 70, 150, 160));
    }

    /// A process in a group with a quota forks, and the child moves to a group without one.
    #[test]
    fn a_thread_found_in_no_group_with_a_quota_has_not_its_makers() {
        let mut known = Bandwidth::default();
        known.turn(
            &DrainTurn {
                members: vec![(7, vec!["/a".into()])],
                ..turn(100, &[])
            },
            true,
        );
        known.begun(70, 7);
        known.turn(
            &DrainTurn {
                members: vec![(70, Vec::new())],
                ..turn(200, &["/a"])
            },
            true,
        );
        let of = |tid| is_throttled(&known, tid, 150, 160);
        assert_eq!([of(7), of(70)], [true, false]);
        known.begun(70, 7);
        assert!(
            !is_throttled(&known, 70, 150, 160),
            "it was read after it was made"
        );
    }

    #[test]
    fn warm_up_counts_keep_their_turn_and_add_to_no_sum() {
        let mut known = Bandwidth::default();
        known.turn(
            &DrainTurn {
                members: vec![(7, vec!["/a".into()])],
                ..turn(100, &[])
            },
            false,
        );
        known.turn(&turn(200, &["/a"]), false);
        assert!(is_throttled(&known, 7, 150, 160));
        assert_eq!(known.throttled().count(), 0);
        known.turn(&turn(300, &["/a", "/b"]), true);
        known.turn(&turn(400, &["/a"]), true);
        let sums: Vec<(u64, Nanos)> = known
            .throttled()
            .map(|sum| (sum.times, sum.throttled))
            .collect();
        assert_eq!(sums, [(2, Nanos(140_000_000)), (1, Nanos(70_000_000))]);
        // A turn without a read has no counts.
        known.turn(&turn(0, &["/a"]), true);
        assert_eq!(known.throttled().next().map(|sum| sum.times), Some(2));
    }

    #[test]
    fn a_window_touches_a_turn_at_its_very_ends() {
        let mut known = Bandwidth::default();
        known.turn(
            &DrainTurn {
                members: vec![(7, vec!["/a".into()])],
                ..turn(100, &[])
            },
            true,
        );
        known.turn(&turn(200, &["/a"]), true);
        let of = |from, to| is_throttled(&known, 7, from, to);
        assert_eq!(
            [of(50, 99), of(50, 100), of(200, 300), of(201, 300)],
            [false, true, true, false]
        );
        let rises = known.rises(7, Ticks(150), Ticks(160));
        let limit = QuotaLimit {
            quota_us: 30_000,
            period_us: 100_000,
        };
        assert_eq!(rises[0].quota.limit, Some(limit));
    }

    #[test]
    fn memory_is_bounded_and_the_last_turns_stay() {
        let mut known = Bandwidth::default();
        known.turn(
            &DrainTurn {
                members: vec![(7, vec!["/a".into()])],
                ..turn(100, &[])
            },
            true,
        );
        let last = 100 + MOST_TURNS as u64 + 5;
        for at in 101..=last {
            known.turn(&turn(at, &["/a"]), true);
        }
        assert_eq!(known.turns.len(), MOST_TURNS);
        let of = |at| is_throttled(&known, 7, at, at);
        assert_eq!(
            [
                of(last),
                of(last - MOST_TURNS as u64),
                of(last - MOST_TURNS as u64 - 1)
            ],
            [true, true, false]
        );
        for tid in 0..i32::try_from(MOST_THREADS).unwrap() + 10 {
            let members = vec![(tid + 100, vec!["/b".into()])];
            known.turn(
                &DrainTurn {
                    members,
                    ..DrainTurn::default()
                },
                true,
            );
        }
        assert!(known.members.len() <= MOST_THREADS);
    }
}
