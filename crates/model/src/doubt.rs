//! Reasons not to trust a run's verdicts.

use crate::{Nanos, RunManifest, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why the evidence of a run fails its own check. Then the reports name no culprits, advise no setting, and gates
/// neither pass nor fail. The measured times are still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Doubt {
    /// Kernel events of the measured CPUs lie outside of all stalls, although each event must stall a spinning probe.
    EventsOutsideStalls {
        /// Recorded events.
        events: u64,
        /// Events inside of stalls.
        inside: u64,
    },
    /// Kernel events were lost.
    EventsLost {
        lost: u64,
        /// Recorded events.
        events: u64,
    },
    /// Another process wrote to the controls of the trace. Verdicts are withheld for that time only
    /// ([`crate::Verdict::TraceDisturbed`]), but no gate passes on the rest.
    TraceDisturbed {
        /// Start of the distrusted time, from the beginning of the measurement.
        first_ns: Nanos,
        time_ns: Nanos,
    },
    /// The kernel counted more of an event than was recorded, for an unknown reason.
    EventsMissing { counted: u64, recorded: u64 },
    /// Stalls have no record.
    StallsUnrecorded { unrecorded: u64, stalls: u64 },
    /// Slow messages of a pipeline have no row, so their causes are unknown.
    MessagesUnrecorded { unrecorded: u64, slow: u64 },
}

/// A check passes if at most one in this many fails it.
///
/// This also holds for lost records, because a loss does not spread: a stall that touches a loss gets only the verdict
/// [`crate::Verdict::TraceDataLost`]; a record before a loss names no sender for what comes after it; a followed
/// thread's state is unknown until its next record; and gates assume that any lost record may belong to any culprit. So
/// a few losses change no other verdict, and cannot change the order of the culprits that matter. The first screen
/// reports any loss, however small.
const ONE_IN: u64 = 100;
/// So few at the edges of a measurement do not matter.
const AT_THE_EDGES: u64 = 2;

impl Doubt {
    /// Whether `part` of `whole` is enough to fail a check.
    #[must_use]
    pub fn fails(part: u64, whole: u64) -> bool {
        part > (whole / ONE_IN).max(AT_THE_EDGES)
    }

    /// Whether it invalidates all verdicts of the run. Otherwise single verdicts are withheld.
    #[must_use]
    pub fn is_of_all(&self) -> bool {
        !matches!(self, Doubt::TraceDisturbed { .. })
    }
}

impl RunManifest {
    /// The doubts about this run's verdicts; empty if they hold, or if there are none.
    #[must_use]
    pub fn doubts(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        if !self.attributed {
            return doubts;
        }
        let fails = Doubt::fails;
        let (all, due, inside) = (
            self.events_in_gaps.events,
            self.events_in_gaps.due(),
            self.events_in_gaps.inside,
        );
        // Only a spinning probe is stalled by every event: others have events between wake-ups and messages.
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
        doubts.extend(self.warnings.iter().filter_map(|warning| match *warning {
            Warning::TraceDisturbed {
                first_ns, time_ns, ..
            } => Some(Doubt::TraceDisturbed { first_ns, time_ns }),
            Warning::EventsMissing {
                counted, recorded, ..
            } => Some(Doubt::EventsMissing { counted, recorded }),
            _ => None,
        }));
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
