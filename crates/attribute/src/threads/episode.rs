//! A stretch in which a followed thread made no progress, and what had the CPU instead.

use crate::culprits;
use crate::part_sums::{PartKey, PartSums};
use crate::windows::Slice;
use jitterscope_model::{
    Attribution, CpuId, Evidence, Phase, Sender, Stall, StallId, ThreadRef, TickRate, Ticks,
};
use std::sync::Arc;

/// Why the thread made no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EpisodeKind {
    /// It was preempted while runnable.
    Preempted,
    /// It was woken, and had to wait for a CPU.
    WaitAfterWakeUp,
    /// It kept its CPU, and an interrupt ran on it.
    Interrupted,
    /// A signal or a tracer had stopped it.
    Stopped,
}

impl EpisodeKind {
    /// The phase of its parts.
    #[must_use]
    pub fn phase(self) -> Phase {
        match self {
            EpisodeKind::Preempted => Phase::Preempted,
            EpisodeKind::WaitAfterWakeUp => Phase::WaitAfterWakeUp,
            EpisodeKind::Interrupted => Phase::Interrupted,
            EpisodeKind::Stopped => Phase::Stopped,
        }
    }
}

/// A stretch in which a followed thread was runnable, or stopped, and made no progress. Its slices are in order,
/// adjacent, and fill it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    pub thread: ThreadRef,
    /// The kind; for several joined ones, the kind of the first.
    pub kind: EpisodeKind,
    /// The CPU where it ended.
    pub cpu: CpuId,
    /// The CPU where it began, if the thread was moved meanwhile.
    pub migrated_from: Option<CpuId>,
    pub start: Ticks,
    pub end: Ticks,
    /// What had the CPU.
    pub slices: Vec<Slice>,
    /// For a wait after a wake-up: the waker.
    pub waker: Option<Sender>,
}

impl Episode {
    #[must_use]
    pub fn length(&self) -> Ticks {
        self.end.since(self.start)
    }

    /// Its slices between two times.
    pub(crate) fn clipped(&self, from: Ticks, to: Ticks) -> impl Iterator<Item = Slice> + '_ {
        self.slices.iter().filter_map(move |slice| {
            let (start, end) = (slice.start.max(from), slice.end.min(to));
            (start < end).then(|| Slice {
                start,
                end,
                ..slice.clone()
            })
        })
    }

    /// Whether the next one may be joined to it: a stop is not joined to other kinds.
    pub(super) fn joins(&self, next: &Episode) -> bool {
        (self.kind == EpisodeKind::Stopped) == (next.kind == EpisodeKind::Stopped)
    }

    /// Joins the next one, which followed at once.
    pub(super) fn join(&mut self, next: Episode) {
        if next.start > self.end {
            let turn = self.slices.last().map_or(0, |slice| slice.turn + 1);
            let culprit = Arc::new(culprits::context_switch().into());
            let evidence = Evidence::ThreadRecords;
            self.slices.push(Slice {
                start: self.end,
                end: next.start,
                culprit,
                evidence,
                turn,
                sums: 0,
            });
        }
        let base = self.slices.last().map_or(0, |slice| slice.turn + 1);
        self.slices.extend(next.slices.into_iter().map(|s| Slice {
            turn: s.turn + base,
            ..s
        }));
        if next.cpu != self.cpu {
            self.migrated_from.get_or_insert(self.cpu);
        }
        self.cpu = next.cpu;
        self.end = next.end;
    }

    /// Converts it to a stall and its attribution, for the store.
    #[must_use]
    pub fn as_stall(&self, id: StallId, rate: TickRate) -> (Stall, Attribution) {
        let stall = Stall {
            id,
            cpu: self.cpu,
            victim: self.thread,
            start: self.start,
            end: self.end,
        };
        let at = |time: Ticks| rate.nanos(time.since(self.start));
        let (phase, mut sums) = (self.kind.phase(), PartSums::default());
        for slice in &self.slices {
            let Slice {
                culprit, evidence, ..
            } = slice;
            let key = PartKey {
                culprit: culprit.shared(),
                phase: &phase,
                moved_from: self.migrated_from,
                evidence,
            };
            let net = at(slice.end).saturating_sub(at(slice.start));
            sums.add(key, net, slice.sums);
        }
        (
            stall,
            Attribution {
                stall: id,
                parts: sums.into_parts(),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, Culprit, Subject};

    fn episode(cpu: u32, start: u64, ends: &[(u64, usize)]) -> Episode {
        let mut at = start;
        let slices = ends.iter().map(|(end, turn)| {
            let culprit = Arc::new(Culprit::from(Subject::Softirq(1)).into());
            Slice {
                start: Ticks(std::mem::replace(&mut at, *end)),
                end: Ticks(*end),
                culprit,
                evidence: Evidence::ThreadRecords,
                turn: *turn,
                sums: 0,
            }
        });
        let slices: Vec<Slice> = slices.collect();
        Episode {
            thread: ThreadRef {
                tid: 1,
                comm: Comm::new("x"),
            },
            kind: EpisodeKind::Preempted,
            cpu: CpuId(cpu),
            migrated_from: None,
            start: Ticks(start),
            end: Ticks(at),
            slices,
            waker: None,
        }
    }

    fn slices(episode: &Episode) -> Vec<(u64, u64, usize)> {
        episode
            .slices
            .iter()
            .map(|slice| (slice.start.0, slice.end.0, slice.turn))
            .collect()
    }

    #[test]
    fn joined_episodes_touch_and_count_their_turns_apart() {
        let mut joined = episode(1, 10, &[(20, 0), (30, 1)]);
        joined.join(episode(1, 30, &[(40, 0), (45, 2)]));
        assert_eq!(
            slices(&joined),
            [(10, 20, 0), (20, 30, 1), (30, 40, 2), (40, 45, 4)]
        );
        assert_eq!(
            (joined.end, joined.migrated_from, joined.length()),
            (Ticks(45), None, Ticks(35))
        );
        // The time between belongs to the scheduler.
        joined.join(episode(2, 50, &[(60, 0)]));
        assert_eq!(slices(&joined)[4..], [(45, 50, 5), (50, 60, 6)]);
        assert_eq!(**joined.slices[4].culprit, culprits::context_switch());
        assert_eq!(
            (joined.cpu, joined.migrated_from),
            (CpuId(2), Some(CpuId(1)))
        );
        // It keeps the CPU of its beginning.
        joined.join(episode(3, 60, &[(61, 0)]));
        assert_eq!(
            (joined.cpu, joined.migrated_from, joined.start),
            (CpuId(3), Some(CpuId(1)), Ticks(10))
        );
    }

    #[test]
    fn a_clipped_episode_is_what_lies_between() {
        let whole = episode(1, 10, &[(20, 0), (30, 1), (40, 2)]);
        let clipped = |from, to| {
            let found = whole.clipped(Ticks(from), Ticks(to));
            found
                .map(|slice| (slice.start.0, slice.end.0))
                .collect::<Vec<_>>()
        };
        assert_eq!(clipped(0, 100), [(10, 20), (20, 30), (30, 40)]);
        assert_eq!(clipped(15, 30), [(15, 20), (20, 30)]);
        assert_eq!(clipped(20, 21), [(20, 21)]);
        assert!(clipped(40, 50).is_empty() && clipped(25, 25).is_empty());
    }

    #[test]
    fn as_a_stall_its_parts_sum_to_its_length_whatever_the_clock() {
        let rate = TickRate {
            hz: 3_000_000_000,
            ..TickRate::NANOSECONDS
        };
        let mut moved = episode(1, 10, &[(15, 0), (16, 1), (20, 2)]);
        moved.migrated_from = Some(CpuId(9));
        moved.slices[1].culprit = Arc::new(culprits::context_switch().into());
        let (stall, attribution) = moved.as_stall(StallId(4), rate);
        assert_eq!(
            (stall.id, stall.cpu, stall.start, stall.end),
            (StallId(4), CpuId(1), Ticks(10), Ticks(20))
        );
        assert_eq!(attribution.parts.len(), 2);
        // Ten ticks are three and a third nanoseconds; the boundaries are at 1.67 and 2.
        assert_eq!(
            attribution
                .parts
                .iter()
                .map(|part| part.net.0)
                .collect::<Vec<_>>(),
            [2, 1]
        );
        for part in &attribution.parts {
            assert_eq!(
                (part.phase.clone(), part.moved_from),
                (Some(Phase::Preempted), Some(CpuId(9)))
            );
        }
    }
}
