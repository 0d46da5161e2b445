//! The longest stalls, in bounded memory; stalls that began together count once.

use crate::rows_of::RowsOf;
use crate::simultaneous::Start;
use crate::summary::{Together, TogetherStall, WorstStall};
use jitterscope_model::{
    Attribution, CulpritSums, KeyLevel, Nanos, Part, PutInOrder, RunManifest, Stall, StallId,
    Subject, Ticks,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

impl WorstStall {
    /// The culprits and their times, by program and largest first: one entry for all threads and triggers of a program.
    #[must_use]
    pub fn by_culprit(&self) -> Vec<(Subject, Nanos)> {
        let mut sums: CulpritSums<(), Nanos> = CulpritSums::new(KeyLevel::Program, usize::MAX);
        for part in &self.parts {
            *sums.of((), &part.culprit.subject) += part.net;
        }
        let mut rows: Vec<_> = sums
            .into_rows()
            .into_iter()
            .map(|row| (row.subject, row.value))
            .collect();
        rows.order_by_key(|(_, net)| Reverse(*net));
        rows
    }
}

/// A stall and, once they arrive, its parts.
#[derive(Debug)]
struct Kept {
    stall: Stall,
    parts: Vec<Part>,
}

/// Keeps enough of the longest stalls to find the `limit` longest, whatever began together: a group has no more stalls
/// than there are CPUs.
#[derive(Debug)]
pub(crate) struct Worst {
    limit: usize,
    keep: usize,
    /// Whether to keep only the longest of one victim's overlapping stalls.
    one_of_overlapping: bool,
    /// Keeps only this stall, if set.
    asked: Option<StallId>,
    /// Longest first; of equals, the earlier.
    kept: BTreeMap<(Reverse<Ticks>, StallId), Kept>,
    lengths: HashMap<StallId, Ticks>,
}

impl Worst {
    pub(crate) fn new(limit: usize, cpus: usize) -> Worst {
        let keep = limit.saturating_mul(cpus.max(1));
        Worst {
            limit,
            keep,
            one_of_overlapping: false,
            asked: None,
            kept: BTreeMap::new(),
            lengths: HashMap::new(),
        }
    }

    /// For a run: messages that queue up behind one another are one episode, represented by its longest.
    pub(crate) fn of(run: RowsOf, limit: usize) -> Worst {
        Worst {
            one_of_overlapping: run.messages,
            ..Worst::new(limit, run.probed)
        }
    }

    /// Keeps only the stall of this id, with its parts.
    pub(crate) fn only(asked: StallId) -> Worst {
        Worst {
            asked: Some(asked),
            ..Worst::new(1, 1)
        }
    }

    pub(crate) fn stall(&mut self, stall: &Stall) {
        if self.asked.is_some_and(|asked| asked != stall.id) {
            return;
        }
        if let Some((length, id)) = self.overlapping(stall) {
            if length.0 >= stall.length() {
                return;
            }
            self.kept.remove(&(length, id));
            self.lengths.remove(&id);
        }
        let shortest = self.kept.last_key_value().map(|((length, _), _)| length.0);
        if self.kept.len() >= self.keep
            && shortest.is_none_or(|shortest| stall.length() <= shortest)
        {
            return;
        }
        let kept = Kept {
            stall: *stall,
            parts: Vec::new(),
        };
        self.kept.insert((Reverse(stall.length()), stall.id), kept);
        self.lengths.insert(stall.id, stall.length());
        if self.kept.len() > self.keep
            && let Some(((_, id), _)) = self.kept.pop_last()
        {
            self.lengths.remove(&id);
        }
    }

    fn overlapping(&self, stall: &Stall) -> Option<(Reverse<Ticks>, StallId)> {
        let overlaps = |kept: &Kept| {
            let other = &kept.stall;
            other.victim.tid == stall.victim.tid
                && other.start <= stall.end
                && stall.start <= other.end
        };
        let found = || {
            self.kept
                .iter()
                .find(|(_, kept)| overlaps(kept))
                .map(|(key, _)| *key)
        };
        self.one_of_overlapping.then(found).flatten()
    }

    pub(crate) fn attribution(&mut self, attribution: &Attribution) {
        let Some(length) = self.lengths.get(&attribution.stall) else {
            return;
        };
        let Some(kept) = self.kept.get_mut(&(Reverse(*length), attribution.stall)) else {
            return;
        };
        kept.parts.clone_from(&attribution.parts);
        kept.parts.order_by_key(|part| std::cmp::Reverse(part.net));
    }

    /// `groups`: stalls that began together, the longest of each first.
    pub(crate) fn finish(self, manifest: &RunManifest, groups: &[Vec<Start>]) -> Vec<WorstStall> {
        let began = manifest
            .span()
            .map_or(manifest.clock_start.ticks, |(first, _)| first);
        let leaders: HashMap<StallId, &[Start]> = groups
            .iter()
            .filter_map(|group| Some((group.first()?.id, group.as_slice())))
            .collect();
        let held: HashSet<StallId> = groups
            .iter()
            .flat_map(|group| group.iter().skip(1))
            .map(|s| s.id)
            .collect();
        let asked = self.asked;
        self.kept
            .into_values()
            .filter(|kept| asked.is_some() || !held.contains(&kept.stall.id))
            .take(self.limit)
            .enumerate()
            .map(|(at, kept)| WorstStall {
                rank: asked.is_none().then_some(at + 1),
                stall: kept.stall.id,
                cpu: kept.stall.cpu,
                victim: kept.stall.victim.comm.to_string(),
                start_realtime_ns: manifest.realtime_ns(kept.stall.start),
                start_offset_ns: manifest.rate.nanos(kept.stall.start.since(began)),
                duration_ns: manifest.rate.nanos(kept.stall.length()),
                together: leaders
                    .get(&kept.stall.id)
                    .map(|group| together(group, manifest)),
                parts: kept.parts,
            })
            .collect()
    }
}

fn together(group: &[Start], manifest: &RunManifest) -> Together {
    let mut stalls: Vec<TogetherStall> = group
        .iter()
        .map(|start| TogetherStall {
            cpu: start.cpu,
            stall: start.id,
            duration_ns: manifest.rate.nanos(start.length),
        })
        .collect();
    stalls.order_by_key(|stall| stall.cpu);
    Together {
        cpus: stalls.iter().map(|stall| stall.cpu).collect(),
        stalls,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, CpuId, Evidence, Task, ThreadRef};
    use proptest::prelude::*;

    #[test]
    fn a_culprit_is_reported_once_whatever_set_it_going() {
        let thread = |tid, comm: &str, process: Option<&str>| {
            let process = process.map(Into::into);
            Subject::Thread(Task {
                tid: Some(tid),
                tgid: Some(1),
                process,
                comm: comm.into(),
                ..Task::default()
            })
        };
        let part = |subject, net| Part::inside(subject, Nanos(net), Evidence::SwitchRecords);
        let stall = WorstStall {
            rank: Some(1),
            stall: StallId(0),
            cpu: CpuId(0),
            victim: String::new(),
            start_realtime_ns: 0,
            start_offset_ns: Nanos(0),
            duration_ns: Nanos(100),
            together: None,
            parts: vec![
                part(Subject::Softirq(9), 40),
                part(thread(2, "lto cgu.00", Some("rustc")), 30),
                part(thread(3, "lto cgu.01", Some("rustc")), 20),
                part(thread(1, "rustc", None), 10),
            ],
        };
        let names: Vec<(String, u64)> = stall
            .by_culprit()
            .iter()
            .map(|(who, net)| (who.name().into(), net.0))
            .collect();
        assert_eq!(names, [("rustc".to_owned(), 60), ("RCU".to_owned(), 40)]);
    }

    #[test]
    fn queued_messages_are_reported_by_the_longest() {
        let mut worst = Worst {
            one_of_overlapping: true,
            ..Worst::new(3, 1)
        };
        let message = |id, tid, start, end| Stall {
            id: StallId(id),
            cpu: CpuId(0),
            victim: ThreadRef {
                tid,
                comm: Comm::default(),
            },
            start: Ticks(start),
            end: Ticks(end),
        };
        // A pile of three, the same at the other consumer, and a single message.
        for (id, tid, start, end) in [
            (0, 1, 100, 500),
            (1, 1, 110, 520),
            (2, 1, 120, 505),
            (3, 2, 100, 490),
            (4, 1, 600, 650),
        ] {
            worst.stall(&message(id, tid, start, end));
        }
        assert_eq!(
            worst
                .kept
                .values()
                .map(|kept| kept.stall.id.0)
                .collect::<Vec<_>>(),
            [1, 3, 4]
        );
    }

    proptest! {
        #[test]
        fn the_longest_are_kept(lengths in proptest::collection::vec(0u64..30, 0..60), limit in 0usize..12) {
            let mut worst = Worst::new(limit, 1);
            for (id, length) in lengths.iter().enumerate() {
                worst.stall(&Stall {
                    id: StallId(id as u64),
                    cpu: CpuId(0),
                    victim: ThreadRef { tid: 1, comm: Comm::default() },
                    start: Ticks(100),
                    end: Ticks(100 + length),
                });
            }
            let mut expected: Vec<(u64, usize)> = lengths.iter().copied().zip(0..).collect();
            expected.sort_by_key(|(length, id)| (std::cmp::Reverse(*length), *id));
            expected.truncate(limit);
            let got: Vec<(u64, usize)> =
                worst.kept.values().map(|k| (k.stall.length().0, k.stall.id.0 as usize)).collect();
            prop_assert_eq!(worst.lengths.len(), got.len());
            prop_assert_eq!(got, expected);
        }
    }
}
