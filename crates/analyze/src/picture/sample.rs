//! Limits the number of stalls to what a page can hold.

use super::{DrawnPart, DrawnStall};
use jitterscope_model::{Nanos, PutInOrder, StallId};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// The number of longest stalls that always stay.
const LONGEST: usize = 1_000;

/// The stalls to keep. If there are too many, each lane's time is cut into spans, and each span keeps its shortest and
/// its longest stall, so that the drawing has the right extent.
#[derive(Debug)]
pub(super) struct Sample {
    /// `None` if all stay.
    spans: Option<Spans>,
    kept: HashMap<StallId, Kept>,
}

#[derive(Debug)]
struct Kept {
    stall: DrawnStall,
    /// The number of reasons to keep it.
    reasons: u8,
}

#[derive(Debug)]
struct Spans {
    length: u64,
    /// The shortest and the longest stall, by lane and number of the span.
    ends: HashMap<(usize, u64), (StallId, StallId)>,
    longest: BTreeSet<(Nanos, Reverse<StallId>)>,
    most_longest: usize,
}

impl Sample {
    /// Keeps `most` of `stalls` on `lanes` lanes.
    pub(super) fn new(stalls: u64, most: usize, lanes: usize, duration: Nanos) -> Sample {
        let all = usize::try_from(stalls).is_ok_and(|stalls| stalls <= most);
        let most_longest = LONGEST.min(most / 4).max(1);
        let spans = ((most.saturating_sub(most_longest)) / (2 * lanes.max(1))).max(1) as u64;
        let spans = Spans {
            length: (duration.0 / spans).max(1) + 1,
            ends: HashMap::new(),
            longest: BTreeSet::new(),
            most_longest,
        };
        Sample {
            spans: (!all).then_some(spans),
            kept: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, stall: DrawnStall) {
        let (id, length) = (stall.id, stall.length);
        let Some(spans) = &mut self.spans else {
            self.kept.insert(id, Kept { stall, reasons: 1 });
            return;
        };
        let mut reasons = 0;
        let mut given_up = Vec::new();
        let span = (stall.lane, stall.start.0 / spans.length);
        match spans.ends.get_mut(&span) {
            None => {
                spans.ends.insert(span, (id, id));
                reasons += 2;
            }
            Some((shortest, longest)) => {
                let of = |id: &StallId| {
                    self.kept
                        .get(id)
                        .map_or(Nanos::ZERO, |kept| kept.stall.length)
                };
                if length < of(shortest) {
                    given_up.push(std::mem::replace(shortest, id));
                    reasons += 1;
                }
                if length > of(longest) {
                    given_up.push(std::mem::replace(longest, id));
                    reasons += 1;
                }
            }
        }
        spans.longest.insert((length, Reverse(id)));
        reasons += 1;
        if spans.longest.len() > spans.most_longest
            && let Some((_, Reverse(id))) = spans.longest.pop_first()
        {
            given_up.push(id);
        }
        self.kept.insert(id, Kept { stall, reasons });
        for id in given_up {
            if let Some(kept) = self.kept.get_mut(&id) {
                kept.reasons = kept.reasons.saturating_sub(1);
                if kept.reasons == 0 {
                    self.kept.remove(&id);
                }
            }
        }
    }

    pub(super) fn is_kept(&self, id: StallId) -> bool {
        self.kept.contains_key(&id)
    }

    pub(super) fn parts(&mut self, id: StallId, parts: Vec<DrawnPart>) {
        if let Some(kept) = self.kept.get_mut(&id) {
            kept.stall.parts = parts;
        }
    }

    /// All kept stalls, by start.
    pub(super) fn finish(self) -> Vec<DrawnStall> {
        let mut stalls: Vec<DrawnStall> = self.kept.into_values().map(|kept| kept.stall).collect();
        stalls.order_by_key(|stall| (stall.start, stall.id));
        stalls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::CpuId;
    use jitterscope_testing::SplitMix64;

    fn stall(id: u64, start: u64, length: u64) -> DrawnStall {
        let (start, length) = (Nanos(start), Nanos(length));
        DrawnStall {
            id: StallId(id),
            lane: 0,
            cpu: CpuId(0),
            start,
            length,
            parts: Vec::new(),
        }
    }

    #[test]
    fn all_stay_while_they_may() {
        let mut sample = Sample::new(3, 3, 1, Nanos(100));
        for id in 0..3 {
            sample.add(stall(id, 10 * (3 - id), id));
        }
        assert_eq!(
            sample.finish().iter().map(|s| s.id.0).collect::<Vec<_>>(),
            [2, 1, 0]
        );
    }

    #[test]
    fn every_span_keeps_its_extent_and_the_longest_are_there() {
        let (duration, most) = (1_000_000u64, 400);
        let mut random = SplitMix64(7);
        let all: Vec<DrawnStall> = (0..20_000)
            .map(|id| stall(id, random.below(duration), random.below(50_000)))
            .collect();
        let mut sample = Sample::new(20_000, most, 1, Nanos(duration));
        let span = sample.spans.as_ref().unwrap().length;
        all.iter().for_each(|stall| sample.add(stall.clone()));
        let kept = sample.finish();
        assert!(kept.len() <= most, "{}", kept.len());
        for at in 0..=(duration / span) {
            let lengths = |of: &[DrawnStall]| {
                let inside = of
                    .iter()
                    .filter(|s| s.start.0 / span == at)
                    .map(|s| s.length);
                (inside.clone().min(), inside.max())
            };
            assert_eq!(lengths(&kept), lengths(&all));
        }
        let longest = |of: &[DrawnStall]| {
            let mut lengths: Vec<_> = of.iter().map(|s| s.length).collect();
            lengths.sort();
            lengths.split_off(lengths.len() - 50)
        };
        assert_eq!(longest(&kept), longest(&all));
    }
}
