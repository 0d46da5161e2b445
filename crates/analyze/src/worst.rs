//! The longest stalls, in bounded memory; those that began together count once.

use crate::simultaneous::Start;
use crate::summary::{Together, TogetherStall, WorstPart, WorstStall};
use jitterscope_model::{Attribution, RunManifest, Stall, StallId, Ticks};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A stall and, once they came, its parts.
#[derive(Debug)]
struct Kept {
    stall: Stall,
    parts: Vec<WorstPart>,
}

/// Keeps enough of the longest stalls to tell the `limit` longest, whatever began together: a group has
/// no more stalls than there are CPUs.
#[derive(Debug)]
pub(crate) struct Worst {
    limit: usize,
    keep: usize,
    /// Longest first; of equals, the earlier.
    kept: BTreeMap<(Reverse<Ticks>, StallId), Kept>,
    lengths: HashMap<StallId, Ticks>,
}

impl Worst {
    pub(crate) fn new(limit: usize, cpus: usize) -> Worst {
        let keep = limit.saturating_mul(cpus.max(1));
        Worst { limit, keep, kept: BTreeMap::new(), lengths: HashMap::new() }
    }

    pub(crate) fn stall(&mut self, stall: &Stall) {
        let shortest = self.kept.last_key_value().map(|((length, _), _)| length.0);
        if self.kept.len() >= self.keep && shortest.is_none_or(|shortest| stall.length() <= shortest) {
            return;
        }
        let kept = Kept { stall: *stall, parts: Vec::new() };
        self.kept.insert((Reverse(stall.length()), stall.id), kept);
        self.lengths.insert(stall.id, stall.length());
        if self.kept.len() > self.keep
            && let Some(((_, id), _)) = self.kept.pop_last()
        {
            self.lengths.remove(&id);
        }
    }

    pub(crate) fn attribution(&mut self, attribution: &Attribution) {
        let Some(length) = self.lengths.get(&attribution.stall) else { return };
        let Some(kept) = self.kept.get_mut(&(Reverse(*length), attribution.stall)) else { return };
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

    /// `groups`: stalls that began together, the longest of each first.
    pub(crate) fn finish(self, manifest: &RunManifest, groups: &[Vec<Start>]) -> Vec<WorstStall> {
        let began = manifest.results.iter().map(|r| r.start).min().unwrap_or(manifest.clock_start.ticks);
        let leaders: HashMap<StallId, &[Start]> =
            groups.iter().filter_map(|group| Some((group.first()?.id, group.as_slice()))).collect();
        let told: HashSet<StallId> =
            groups.iter().flat_map(|group| group.iter().skip(1)).map(|s| s.id).collect();
        self.kept
            .into_values()
            .filter(|kept| !told.contains(&kept.stall.id))
            .take(self.limit)
            .enumerate()
            .map(|(at, kept)| WorstStall {
                rank: at + 1,
                stall: kept.stall.id,
                cpu: kept.stall.cpu,
                start_realtime_ns: manifest.realtime_ns(kept.stall.start),
                start_offset_ns: manifest.rate.nanos(kept.stall.start.since(began)),
                duration_ns: manifest.rate.nanos(kept.stall.length()),
                together: leaders.get(&kept.stall.id).map(|group| together(group, manifest)),
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
    stalls.sort_by_key(|stall| stall.cpu);
    Together { cpus: stalls.iter().map(|stall| stall.cpu).collect(), stalls }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Comm, CpuId, ThreadRef};
    use proptest::prelude::*;

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
