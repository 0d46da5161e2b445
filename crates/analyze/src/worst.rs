//! The longest stalls, in bounded memory.

use crate::builder::span;
use crate::summary::{WorstPart, WorstStall};
use jitterscope_model::{Attribution, Nanos, RunManifest, Stall, StallId};

/// A stall and, once they came, its parts.
#[derive(Debug)]
struct Kept {
    stall: Stall,
    parts: Vec<WorstPart>,
}

/// Keeps the `limit` longest stalls, longest first; of equals, the earlier.
#[derive(Debug)]
pub(crate) struct Worst {
    limit: usize,
    /// Of stalls of one victim that overlap only the longest is kept.
    one_of_overlapping: bool,
    kept: Vec<Kept>,
}

impl Worst {
    pub(crate) fn new(limit: usize) -> Worst {
        Worst { limit, one_of_overlapping: false, kept: Vec::new() }
    }

    /// Those of a run: messages that queued up behind one another are one episode, told by its longest.
    pub(crate) fn of(manifest: &RunManifest, limit: usize) -> Worst {
        Worst { one_of_overlapping: manifest.pipeline.is_some(), ..Worst::new(limit) }
    }

    pub(crate) fn stall(&mut self, stall: &Stall) {
        if let Some(at) = self.overlapping(stall) {
            if self.kept[at].stall.length() >= stall.length() {
                return;
            }
            self.kept.remove(at);
        }
        let shortest = self.kept.last().map(|kept| kept.stall.length());
        if self.kept.len() >= self.limit && shortest.is_none_or(|shortest| stall.length() <= shortest) {
            return;
        }
        let at = self.kept.partition_point(|kept| kept.stall.length() >= stall.length());
        self.kept.insert(at, Kept { stall: *stall, parts: Vec::new() });
        self.kept.truncate(self.limit);
    }

    fn overlapping(&self, stall: &Stall) -> Option<usize> {
        let overlaps = |kept: &Kept| {
            let other = &kept.stall;
            other.victim.tid == stall.victim.tid && other.start <= stall.end && stall.start <= other.end
        };
        self.one_of_overlapping.then(|| self.kept.iter().position(overlaps)).flatten()
    }

    pub(crate) fn attribution(&mut self, attribution: &Attribution) {
        let Some(kept) = self.find(attribution.stall) else { return };
        kept.parts = attribution
            .parts
            .iter()
            .map(|part| WorstPart {
                kind: part.culprit.kind,
                name: part.culprit.name.clone(),
                detail: part.culprit.detail.clone(),
                sender: part.culprit.sender.clone(),
                net_ns: part.net,
                gross_ns: part.gross,
                placement: part.placement,
                confidence: part.confidence,
                evidence: part.evidence.clone(),
            })
            .collect();
        kept.parts.sort_by_key(|part| std::cmp::Reverse(part.net_ns));
    }

    fn find(&mut self, id: StallId) -> Option<&mut Kept> {
        self.kept.iter_mut().find(|kept| kept.stall.id == id)
    }

    pub(crate) fn finish(self, manifest: &RunManifest) -> Vec<WorstStall> {
        let began = span(manifest).map_or(manifest.clock_start.ticks, |(first, _)| first);
        self.kept
            .into_iter()
            .enumerate()
            .map(|(at, kept)| WorstStall {
                rank: at + 1,
                stall: kept.stall.id,
                cpu: kept.stall.cpu,
                victim: kept.stall.victim.comm.to_string(),
                start_realtime_ns: manifest.realtime_ns(kept.stall.start),
                start_offset_ns: manifest.rate.nanos(kept.stall.start.since(began)),
                duration_ns: Nanos(manifest.rate.nanos(kept.stall.length()).0),
                parts: kept.parts,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, CpuId, ThreadRef, Ticks};
    use proptest::prelude::*;

    #[test]
    fn messages_that_queued_up_are_told_by_the_longest() {
        let mut worst = Worst { one_of_overlapping: true, ..Worst::new(3) };
        let message = |id, tid, start, end| Stall {
            id: StallId(id),
            cpu: CpuId(0),
            victim: ThreadRef { tid, comm: Comm::default() },
            start: Ticks(start),
            end: Ticks(end),
        };
        // A pile of three, the same at the other consumer, and one alone.
        for (id, tid, start, end) in
            [(0, 1, 100, 500), (1, 1, 110, 520), (2, 1, 120, 505), (3, 2, 100, 490), (4, 1, 600, 650)]
        {
            worst.stall(&message(id, tid, start, end));
        }
        assert_eq!(worst.kept.iter().map(|kept| kept.stall.id.0).collect::<Vec<_>>(), [1, 3, 4]);
    }

    proptest! {
        #[test]
        fn the_longest_are_kept(lengths in proptest::collection::vec(0u64..30, 0..60), limit in 0usize..12) {
            let mut worst = Worst::new(limit);
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
                worst.kept.iter().map(|k| (k.stall.length().0, k.stall.id.0 as usize)).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
