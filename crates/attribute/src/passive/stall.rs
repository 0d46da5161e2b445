//! A stretch of stolen time, as long as can be.

use crate::culprits;
use crate::part_sums::{PartKey, PartSums};
use jitterscope_model::{
    Attribution, Confidence, CpuId, Culprit, Evidence, Part, Phase, Stall, StallId, Subject,
    ThreadRef, TickRate, Ticks, Verdict,
};
use std::sync::Arc;

/// Something ran on a watched CPU though what belongs there could have. Its parts sum to its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassiveStall {
    /// Where.
    pub cpu: CpuId,
    /// Who could have run: of several the first.
    pub victim: ThreadRef,
    /// From.
    pub start: Ticks,
    /// To.
    pub end: Ticks,
    sums: PartSums,
    /// Whether records were lost before it ended.
    lost: bool,
}

impl PassiveStall {
    pub(super) fn new(cpu: CpuId, victim: ThreadRef, start: Ticks) -> PassiveStall {
        PassiveStall {
            cpu,
            victim,
            start,
            end: start,
            sums: PartSums::default(),
            lost: false,
        }
    }

    /// It went on until then, and this had the CPU.
    pub(super) fn extend(
        &mut self,
        until: Ticks,
        culprit: &Arc<Culprit>,
        phase: Phase,
        rate: TickRate,
    ) {
        // Differences of rounded sums, so that the parts sum to the rounded whole.
        let at = |time: Ticks| rate.nanos(time.since(self.start));
        let net = at(until).saturating_sub(at(self.end));
        self.end = until;
        let (evidence, moved_from) = (&Evidence::ThreadRecords, None);
        self.sums.add(
            PartKey {
                culprit,
                phase: &phase,
                moved_from,
                evidence,
            },
            net,
        );
    }

    /// It went on until then, between two records, too short for anything but the way from one to the other.
    pub(super) fn bridge(&mut self, until: Ticks, rate: TickRate) {
        let between = Subject::verdict(Verdict::BetweenEvents);
        self.extend(until, &between.into(), Phase::Interrupted, rate);
    }

    /// Records were lost before it ended: it gets no verdict.
    pub(super) fn withhold(&mut self) {
        self.lost = true;
    }

    /// How long.
    #[must_use]
    pub fn length(&self) -> Ticks {
        self.end.since(self.start)
    }

    /// The same as a stall and its attribution, for the store.
    #[must_use]
    pub fn into_stall(self, id: StallId, rate: TickRate) -> (Stall, Attribution) {
        let stall = Stall {
            id,
            cpu: self.cpu,
            victim: self.victim,
            start: self.start,
            end: self.end,
        };
        let parts = if self.lost {
            let length = rate.nanos(stall.length());
            let part = Part::whole(
                culprits::lost(),
                length,
                Confidence::High,
                Evidence::LostRecords,
            );
            vec![part.in_phase(Phase::LostRecords)]
        } else {
            self.sums.into_parts()
        };
        (stall, Attribution { stall: id, parts })
    }
}
