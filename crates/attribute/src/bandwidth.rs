//! CPU quotas of control groups: which groups were throttled when, and which threads are in them.
//!
//! The kernel counts throttling by group, and a recorder reads the counts turn by turn. So a window was perhaps
//! throttled if a group above the thread was, in a turn that the window touches.

use jitterscope_model::{
    DrainTurn, Name, Nanos, Quota, QuotaLimit, ThrottledGroup, TickRate, Ticks,
};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Turns with throttling that are remembered: at one every 50 ms the last minutes.
const MOST_TURNS: usize = 4096;
/// Threads whose groups are remembered.
const MOST_THREADS: usize = 1 << 16;

/// A turn in which groups were throttled.
#[derive(Clone, Debug)]
struct Turn {
    from: Ticks,
    to: Ticks,
    groups: Vec<(Name, QuotaLimit)>,
}

/// What one group came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupThrottled {
    /// The group, with the limit that it had last.
    pub quota: Quota,
    /// Periods in which it was throttled.
    pub times: u64,
    /// For how long, summed over the CPUs.
    pub throttled: Nanos,
}

/// What is known of CPU quotas.
#[derive(Clone, Debug, Default)]
pub struct Bandwidth {
    read: Ticks,
    turns: VecDeque<Turn>,
    /// The groups with a quota that threads are in, innermost first.
    members: HashMap<i32, Vec<Name>>,
    /// Threads whose groups were read at the end of the turn that is handed over: no record of it is newer.
    reported: HashSet<i32>,
    sums: BTreeMap<Name, GroupThrottled>,
}

impl Bandwidth {
    /// Takes in the counts of a turn. `counts`: whether the measurement has begun, so that they belong to it.
    pub fn turn(&mut self, turn: &DrainTurn, counts: bool) {
        self.reported.clear();
        for (tid, groups) in &turn.members {
            self.reported.insert(*tid);
            if groups.is_empty() {
                // Not even those of its maker.
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
        let from = std::mem::replace(&mut self.read, turn.quotas_read);
        if turn.throttled.is_empty() {
            return;
        }
        if counts {
            turn.throttled.iter().for_each(|group| self.sum_up(group));
        }
        if self.turns.len() >= MOST_TURNS {
            self.turns.pop_front();
        }
        let limit = |of: &ThrottledGroup| QuotaLimit {
            quota_us: of.quota_us,
            period_us: of.period_us,
        };
        let groups = turn
            .throttled
            .iter()
            .map(|of| (of.cgroup.clone(), limit(of)))
            .collect();
        self.turns.push_back(Turn {
            from,
            to: turn.quotas_read,
            groups,
        });
    }

    fn sum_up(&mut self, group: &ThrottledGroup) {
        let new = || GroupThrottled {
            quota: group.quota(),
            times: 0,
            throttled: Nanos::ZERO,
        };
        let sum = self.sums.entry(group.cgroup.clone()).or_insert_with(new);
        sum.quota = group.quota();
        sum.times = sum.times.saturating_add(group.times);
        sum.throttled = Nanos(
            sum.throttled
                .0
                .saturating_add(group.throttled_us.saturating_mul(1000)),
        );
    }

    /// A thread begins, in the groups of the one that made it. Whoever had its id before is forgotten.
    pub(crate) fn begun(&mut self, tid: i32, maker: i32) {
        if self.reported.contains(&tid) {
            return;
        }
        match self.members.get(&maker).cloned() {
            Some(groups) => self.members.insert(tid, groups),
            None => self.members.remove(&tid),
        };
    }

    /// The quota that may have kept a thread from running between two times: that of a group above it which was
    /// throttled in a turn that they touch, of several the innermost.
    #[must_use]
    pub fn quota(&self, tid: i32, from: Ticks, to: Ticks) -> Option<Quota> {
        let own = self.members.get(&tid).filter(|groups| !groups.is_empty())?;
        let first = self.turns.partition_point(|turn| turn.to < from);
        let touched = self.turns.range(first..).take_while(|turn| turn.from <= to);
        let found = touched
            .flat_map(|turn| &turn.groups)
            .filter_map(|(group, limit)| {
                let depth = own.iter().position(|name| name == group)?;
                Some((depth, group, limit))
            });
        let (_, group, limit) = found.min_by_key(|(depth, ..)| *depth)?;
        Some(Quota {
            cgroup: group.clone(),
            limit: Some(*limit),
        })
    }

    /// What was counted over the measurement, by group.
    pub fn throttled(&self) -> impl Iterator<Item = &GroupThrottled> {
        self.sums.values()
    }
}

/// The way out of the deepest idle state takes less: a thread that waited longer beside an idle CPU, and whose
/// group was throttled, did not wait for that.
const LONGEST_IDLE_EXIT: Nanos = Nanos(1_000_000);

/// Whether idle of this length can be no more than its way out.
pub(crate) fn is_idle_exit(length: Ticks, rate: TickRate) -> bool {
    rate.nanos(length) <= LONGEST_IDLE_EXIT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(at: u64, throttled: &[&str]) -> DrainTurn {
        let group = |name: &&str| ThrottledGroup {
            cgroup: Name::from(*name),
            quota_us: 30_000,
            period_us: 100_000,
            times: 1,
            throttled_us: 70_000,
        };
        let throttled = throttled.iter().map(group).collect();
        DrainTurn {
            quotas_read: Ticks(at),
            throttled,
            ..DrainTurn::default()
        }
    }

    #[test]
    fn a_window_is_throttled_if_a_group_above_the_thread_was_in_a_turn_that_it_touches() {
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
        let of = |tid, from, to| {
            known
                .quota(tid, Ticks(from), Ticks(to))
                .map(|quota| quota.cgroup.to_string())
        };
        assert_eq!(of(7, 50, 99), None);
        assert_eq!(of(7, 150, 160).as_deref(), Some("/a/b"));
        assert_eq!(of(8, 150, 160).as_deref(), Some("/a"));
        assert_eq!(of(7, 210, 299), None);
        assert_eq!(of(7, 210, 350).as_deref(), Some("/a"));
        // It is in no group with a quota.
        assert_eq!(of(9, 0, 1000), None);
        let sums: Vec<(String, u64)> = known
            .throttled()
            .map(|sum| (sum.quota.cgroup.to_string(), sum.times))
            .collect();
        assert_eq!(sums, [("/a".to_owned(), 2), ("/a/b".to_owned(), 1)]);
    }

    #[test]
    fn a_thread_is_in_the_groups_of_its_maker_and_an_id_used_again_is_not_in_the_old_ones() {
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
        let of = |tid| known.quota(tid, Ticks(150), Ticks(160)).is_some();
        assert_eq!([of(70), of(7)], [true, false]);
    }

    #[test]
    fn groups_that_were_read_after_a_thread_was_made_are_its_own_and_not_its_makers() {
        let mut known = Bandwidth::default();
        let joined = vec![(70, vec!["/a".into()])];
        known.turn(
            &DrainTurn {
                members: joined,
                ..turn(100, &[])
            },
            true,
        );
        // The record of the same turn: it was made before it was read where it belongs.
        known.begun(70, 1);
        known.turn(&turn(200, &["/a"]), true);
        assert!(known.quota(70, Ticks(150), Ticks(160)).is_some());
        known.begun(70, 1);
        assert!(known.quota(70, Ticks(150), Ticks(160)).is_none());
    }

    /// A shim in a group with a quota forks, and the child moves to a group without one.
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
        let of = |tid| known.quota(tid, Ticks(150), Ticks(160)).is_some();
        assert_eq!([of(7), of(70)], [true, false]);
        known.begun(70, 7);
        assert!(
            known.quota(70, Ticks(150), Ticks(160)).is_none(),
            "it was read after it was made"
        );
    }

    #[test]
    fn what_is_counted_before_the_measurement_keeps_its_turn_and_adds_to_no_sum() {
        let mut known = Bandwidth::default();
        known.turn(
            &DrainTurn {
                members: vec![(7, vec!["/a".into()])],
                ..turn(100, &[])
            },
            false,
        );
        known.turn(&turn(200, &["/a"]), false);
        assert!(known.quota(7, Ticks(150), Ticks(160)).is_some());
        assert_eq!(known.throttled().count(), 0);
        known.turn(&turn(300, &["/a", "/b"]), true);
        known.turn(&turn(400, &["/a"]), true);
        let sums: Vec<(u64, Nanos)> = known
            .throttled()
            .map(|sum| (sum.times, sum.throttled))
            .collect();
        assert_eq!(sums, [(2, Nanos(140_000_000)), (1, Nanos(70_000_000))]);
        // Where nothing was read there is nothing to tell.
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
        let of = |from, to| known.quota(7, Ticks(from), Ticks(to)).is_some();
        assert_eq!(
            [of(50, 99), of(50, 100), of(200, 300), of(201, 300)],
            [false, true, true, false]
        );
        let limit = known
            .quota(7, Ticks(150), Ticks(160))
            .and_then(|quota| quota.limit);
        assert_eq!(
            limit,
            Some(QuotaLimit {
                quota_us: 30_000,
                period_us: 100_000
            })
        );
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
        let of = |at| known.quota(7, Ticks(at), Ticks(at)).is_some();
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

    #[test]
    fn a_millisecond_of_idle_can_be_its_way_out() {
        let is = |ns| is_idle_exit(Ticks(ns), TickRate::NANOSECONDS);
        assert_eq!([is(0), is(1_000_000), is(1_000_001)], [true, true, false]);
    }
}
