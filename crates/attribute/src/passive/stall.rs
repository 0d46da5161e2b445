//! A maximal stretch of stolen time.

use crate::culprits;
use crate::part_sums::{PartKey, PartSums};
use jitterscope_model::{
    Attribution, CpuId, Culprit, Evidence, Phase, Stall, StallId, Subject, ThreadRef, TickRate,
    Ticks, Verdict,
};
use std::sync::Arc;

/// Something ran on a watched CPU although a belonging thread was runnable. Its parts sum to its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassiveStall {
    pub cpu: CpuId,
    /// The first belonging thread that was runnable.
    pub victim: ThreadRef,
    pub start: Ticks,
    pub end: Ticks,
    sums: PartSums,
    /// Why it gets no verdict, if records before its end are missing.
    withheld: Option<Verdict>,
}

impl PassiveStall {
    pub(super) fn new(cpu: CpuId, victim: ThreadRef, start: Ticks) -> PassiveStall {
        PassiveStall {
            cpu,
            victim,
            start,
            end: start,
            sums: PartSums::default(),
            withheld: None,
        }
    }

    /// Extends it to `until`: this culprit had the CPU. `sums`: as in a piece.
    pub(super) fn extend(
        &mut self,
        until: Ticks,
        culprit: &Arc<Culprit>,
        phase: Phase,
        sums: u32,
        rate: TickRate,
    ) {
        // Differences of rounded sums, so that the parts sum to the rounded whole.
        let at = |time: Ticks| rate.nanos(time.since(self.start));
        let net = at(until).saturating_sub(at(self.end));
        self.end = until;
        let evidence = culprits::quota_evidence(culprit.kind());
        let (evidence, moved_from) = (&evidence.unwrap_or(Evidence::ThreadRecords), None);
        self.sums.add(
            PartKey {
                culprit,
                phase: &phase,
                moved_from,
                evidence,
            },
            net,
            sums,
        );
    }

    /// Extends it to `until` by time between two records, too short for other activity.
    pub(super) fn bridge(&mut self, until: Ticks, rate: TickRate) {
        let between = Subject::verdict(Verdict::BetweenEvents);
        self.extend(until, &between.into(), Phase::Interrupted, 0, rate);
    }

    /// Withholds the verdict, because records before its end are missing for this reason.
    pub(super) fn withhold(&mut self, why: Verdict) {
        self.withheld = Some(why);
    }

    #[must_use]
    pub fn length(&self) -> Ticks {
        self.end.since(self.start)
    }

    /// Converts it to a stall and its attribution, for the store.
    #[must_use]
    pub fn into_stall(self, id: StallId, rate: TickRate) -> (Stall, Attribution) {
        let stall = Stall {
            id,
            cpu: self.cpu,
            victim: self.victim,
            start: self.start,
            end: self.end,
        };
        let parts = if let Some(why) = self.withheld {
            let part = culprits::no_verdict(why, rate.nanos(stall.length()));
            vec![part.in_phase(Phase::LostRecords)]
        } else {
            self.sums.into_parts()
        };
        (stall, Attribution { stall: id, parts })
    }
}
