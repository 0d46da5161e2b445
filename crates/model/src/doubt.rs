//! When what a run says of culprits does not hold.

use crate::RunManifest;
use serde::{Deserialize, Serialize};

/// Why the evidence of a run fails its own proof: who stole the time is not said then, no setting is advised,
/// and nothing is passed or failed by it. What was measured holds all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Doubt {
    /// Kernel events of the measured CPUs lie outside of all stalls, where a probe that spins must have been
    /// stalled by each.
    EventsOutsideStalls {
        /// Events that were recorded.
        events: u64,
        /// Those inside of stalls.
        inside: u64,
    },
    /// Kernel events were lost.
    EventsLost {
        /// How many.
        lost: u64,
        /// How many were not.
        events: u64,
    },
    /// Stalls have no record.
    StallsUnrecorded {
        /// How many.
        unrecorded: u64,
        /// All stalls.
        stalls: u64,
    },
    /// Slow messages of a pipeline have no row: what made them slow is not known.
    MessagesUnrecorded {
        /// How many.
        unrecorded: u64,
        /// All slow messages.
        slow: u64,
    },
}

/// A proof holds if no more than one in so many fails it.
///
/// That goes for lost records, too. What is lost does not spread: a stall that touches a loss has no verdict but
/// that ([`crate::Verdict::TraceDataLost`]), no sender from before a loss is named for what came after it, a followed
/// thread is in no known state until it is seen again, and gates take whatever was lost as perhaps somebody's. So
/// few of them leave every other verdict as it was and cannot turn the order of culprits that matter. The loss itself
/// is said on the first screen, however small.
const ONE_IN: u64 = 100;
/// So few at the edges of a measurement prove nothing.
const AT_THE_EDGES: u64 = 2;

impl RunManifest {
    /// What the verdicts of this run fail by; nothing where they hold, or where there are none.
    #[must_use]
    pub fn doubts(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        if !self.attributed {
            return doubts;
        }
        let fails = |part: u64, whole: u64| part > (whole / ONE_IN).max(AT_THE_EDGES);
        let (all, due, inside) = (
            self.events_in_gaps.events,
            self.events_in_gaps.due(),
            self.events_in_gaps.inside,
        );
        // Only who spins is stalled by every event: others lie between wake-ups and messages.
        let spun = !self.results.is_empty() && self.wakeups.is_empty();
        if spun && fails(due.saturating_sub(inside), due) {
            doubts.push(Doubt::EventsOutsideStalls {
                events: due,
                inside,
            });
        }
        let lost = self
            .sources
            .iter()
            .fold(0u64, |sum, source| sum.saturating_add(source.lost));
        if fails(lost, all.saturating_add(lost)) {
            doubts.push(Doubt::EventsLost { lost, events: all });
        }
        let sum = |of: fn(&crate::ProbeResult) -> u64| {
            self.results.iter().map(of).fold(0u64, u64::saturating_add)
        };
        let stalls = sum(|result| result.stalls.saturating_sub(result.own_bookkeeping));
        let unrecorded = sum(|result| {
            result
                .dropped_records
                .saturating_sub(result.own_bookkeeping)
        });
        if fails(unrecorded, stalls) {
            doubts.push(Doubt::StallsUnrecorded { unrecorded, stalls });
        }
        let consumers = || {
            self.pipeline
                .iter()
                .flat_map(|pipeline| &pipeline.consumers)
        };
        let slow = consumers().fold(0u64, |sum, consumer| sum.saturating_add(consumer.slow));
        let unrecorded = consumers().fold(0u64, |sum, consumer| {
            sum.saturating_add(consumer.slow_dropped)
        });
        if fails(unrecorded, slow) {
            doubts.push(Doubt::MessagesUnrecorded { unrecorded, slow });
        }
        doubts
    }
}
