//! Waits that are open at the end of the recording: all of a CPU's end at the same moment, so they are evaluated
//! together.
//!
//! A thread that waits for a CPU has none of its turns. So two threads that wait until the end see the same turns after
//! the later one began to wait. These are named once, for the thread that has waited longest. Each of the others only
//! has its own beginning. If there are so many that even copies would fill the memory, sums are reported instead: exact
//! for the largest culprits, and by process for the rest.

use super::cpus::{Asking, Cpus, Seen};
use super::follower::ThreadFollower;
use super::state::State;
use super::summed::{FEWEST_CULPRITS, MOST_CULPRITS, Sum, laid_out};
use crate::name_resolver::NameResolver;
use crate::occupancy::Frame;
use crate::windows::Slice;
use jitterscope_model::{CpuId, Culprit, Evidence, Nanos, PutInOrder, Ticks};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Maximum of slices for all waits that are open at the end.
const MOST_SLICES: usize = 1 << 17;
/// A wake-up is recorded before its thread is on a run queue, which affects the verdict on turns within this time.
const OWN: Nanos = Nanos(1_000_000);

/// The view of the thread that has waited longest for a CPU. For later threads it is summed up, from the newest slice
/// on.
pub(super) struct Tail {
    slices: Vec<Slice>,
    /// The slices that begin a turn on the CPU: from such a slice on, all waiting threads see the same.
    turns: Vec<usize>,
    /// Beginnings of slices that are already sums, each with the total length of these from there on.
    folded: Vec<(Ticks, Ticks)>,
    /// The index in `culprits`, by slice.
    numbers: Vec<u32>,
    culprits: Vec<(Culprit, Evidence)>,
    /// By culprit: the length and the number of stretches of the slices from `summed` on.
    sums: Vec<(Ticks, u32)>,
    summed: usize,
    /// Maximum of slices for one wait.
    share: usize,
    own: Ticks,
}

/// The part of a wait that others share.
pub(super) struct Common {
    pub(super) slices: Vec<Slice>,
    /// Whether it only has sums, without the order of events.
    pub(super) summed: bool,
}

impl Tail {
    fn new(
        Seen {
            slices,
            turns,
            mut folded,
        }: Seen,
        share: usize,
        own: Ticks,
    ) -> Tail {
        folded
            .iter_mut()
            .rev()
            .fold(Ticks(0), |after, (_, length)| {
                *length = *length + after;
                *length
            });
        let mut known: FxHashMap<(Culprit, Evidence), u32> = FxHashMap::default();
        let mut culprits = Vec::new();
        let number = |slice: &Slice| {
            // A sum has no single sender.
            let subject = slice.culprit.subject.clone();
            let key = (
                Culprit {
                    subject,
                    sender: None,
                },
                slice.evidence.clone(),
            );
            *known.entry(key).or_insert_with_key(|key| {
                culprits.push(key.clone());
                culprits.len() as u32 - 1
            })
        };
        let numbers = slices.iter().map(number).collect();
        let (sums, summed) = (vec![(Ticks(0), 0); culprits.len()], slices.len());
        Tail {
            slices,
            turns,
            folded,
            numbers,
            culprits,
            sums,
            summed,
            share,
            own,
        }
    }

    /// The point from which the wait that began at `from` equals all others.
    pub(super) fn common_from(&self, from: Ticks) -> Option<(usize, Ticks)> {
        let place = self
            .turns
            .partition_point(|at| self.slices[*at].start < from + self.own);
        let first = *self.turns.get(place)?;
        Some((first, self.slices[first].start))
    }

    /// The total length of slices from then on that are already sums.
    fn folded_from(&self, from: Ticks) -> Ticks {
        let place = self.folded.partition_point(|(start, _)| *start < from);
        self.folded
            .get(place)
            .map_or(Ticks(0), |(_, length)| *length)
    }

    /// The shared part from a slice on. Must be called for later threads first.
    pub(super) fn common(&mut self, first: usize) -> Common {
        if self.slices.len() - first <= self.share {
            return Common {
                slices: self.slices[first..].to_vec(),
                summed: false,
            };
        }
        for at in (first..self.summed).rev() {
            let (sum, slice) = (&mut self.sums[self.numbers[at] as usize], &self.slices[at]);
            sum.0 = sum.0 + slice.end.since(slice.start);
            sum.1 = sum.1.saturating_add(slice.turns());
        }
        self.summed = self.summed.min(first);
        Common {
            slices: self.laid_out(first),
            summed: true,
        }
    }

    /// The sums end to end.
    fn laid_out(&self, first: usize) -> Vec<Slice> {
        let most = self.share.clamp(FEWEST_CULPRITS, MOST_CULPRITS);
        let sums = self.culprits.iter().zip(&self.sums);
        let sums = sums.map(|((culprit, evidence), sum)| Sum {
            culprit,
            evidence,
            length: sum.0,
            turns: sum.1,
        });
        laid_out(self.slices[first].start, sums, most)
    }
}

impl ThreadFollower {
    /// Ends the open waits that have much in common.
    pub(super) fn end_common_waits(&mut self, at: Ticks, resolver: &dyn NameResolver) {
        let mut waiting: BTreeMap<(CpuId, bool), Vec<(Ticks, i32)>> = BTreeMap::new();
        for (tid, thread) in &self.threads {
            let State::Runnable { leg, prio, .. } = &thread.state else {
                continue;
            };
            let known = *prio != Frame::NO_PRIORITY;
            // Throttling of a class, or of a group, differs between threads.
            let plain = (!known || *prio >= Frame::FIRST_FAIR) && !self.senders.is_spinner(*tid);
            if plain && leg.from < at && self.bandwidth.rises(*tid, leg.from, at).is_empty() {
                waiting
                    .entry((leg.cpu, known))
                    .or_default()
                    .push((leg.from, *tid));
            }
        }
        let all: usize = waiting.values().map(Vec::len).sum();
        let share = MOST_SLICES / all.max(1);
        let own = self.settings.rate.ticks(OWN);
        for ((cpu, _), mut waiting) in waiting {
            waiting.put_in_order();
            let Some(((_, longest), later)) =
                waiting.split_first().filter(|(_, later)| !later.is_empty())
            else {
                continue;
            };
            let Some(seen) = self.seen_by(*longest, cpu, at, resolver) else {
                continue;
            };
            let mut tail = Tail::new(seen, share, own);
            // The longest comes last: it also takes no more than its share.
            for (_, tid) in later.iter().rev() {
                self.end_wait_in(*tid, at, Some(&mut tail), resolver);
            }
            self.end_wait_in(*longest, at, Some(&mut tail), resolver);
        }
    }

    /// A waiting thread's view of its CPU, and the beginnings of turns in it.
    fn seen_by(
        &self,
        tid: i32,
        cpu: CpuId,
        at: Ticks,
        resolver: &dyn NameResolver,
    ) -> Option<Seen> {
        let thread = self.threads.get(&tid)?;
        let State::Runnable { leg, .. } = &thread.state else {
            return None;
        };
        let (senders, bandwidth) = (&self.senders, &self.bandwidth);
        let asking = Asking {
            thread: thread.id,
            senders,
            resolver,
            bandwidth,
            waits: leg.waits(),
        };
        Some(
            self.cpus
                .peek_turns(cpu, &leg.mark, (leg.from, at), &asking),
        )
    }
}

impl Cpus {
    /// Ends a wait whose later part is known: only evaluates its beginning.
    pub(super) fn close_into(
        &mut self,
        cpu: CpuId,
        mark: crate::occupancy::Mark,
        (from, to): (Ticks, Ticks),
        tail: &mut Tail,
        asking: &Asking<'_>,
    ) -> Vec<Slice> {
        let Some((first, common)) = tail.common_from(from).filter(|(_, at)| *at < to) else {
            return self.close(cpu, mark, (from, to), asking);
        };
        let mut slices = self.close_early(cpu, mark, (from, common), asking);
        let Common {
            slices: more,
            summed,
        } = tail.common(first);
        self.fold(if summed {
            to.since(common)
        } else {
            tail.folded_from(common)
        });
        append(&mut slices, more);
        slices
    }
}

/// Appends slices, with separate turn numbers.
pub(super) fn append(slices: &mut Vec<Slice>, more: Vec<Slice>) {
    let base = slices.last().map_or(0, |last| last.turn + 1);
    slices.extend(more.into_iter().map(|slice| Slice {
        turn: slice.turn + base,
        ..slice
    }));
}

#[cfg(test)]
#[path = "closing_tests.rs"]
mod tests;
