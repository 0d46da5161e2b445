//! The cost of recording kernel events for the measured CPUs and threads.

use jitterscope_model::{
    EventClass, EventPrice, GraphPrice, Nanos, ProbeKind, RecordCost, RunManifest, StackPrice,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The cost of recording kernel events. The time is an estimate between two cases: everything that a record needs is in
/// the CPU's near caches, or nothing is (see [`Taken`]).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Price {
    /// Records during the measured time, by class.
    pub events: BTreeMap<EventClass, u64>,
    /// The number of them written on CPUs that were measured, watched or followed.
    pub on_measured: u64,
    /// The cost of one record, measured on this machine; null if that failed.
    pub record: Option<RecordCost>,
    /// The stacks of sleeping threads; null if none were recorded.
    pub stacks: Option<StackPrice>,
    /// The time of the records and the stacks on measured CPUs.
    pub taken: Option<Taken>,
    /// The additional cost of tracing kernel functions; null if it was off.
    pub graph: Option<GraphPrice>,
    /// CPU time of the recorder's own thread, per second of the measurement.
    pub helper_fraction: f64,
}

/// The time that the records took, as an estimate between two costs of one record: the fastest row of calls with warm
/// caches, and the median of calls with the near caches flushed. Single records may have taken longer than the latter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Taken {
    /// With warm caches for every record.
    pub least_ns: Nanos,
    /// With cold caches for every record, in the median.
    pub most_ns: Nanos,
    /// `least_ns` as a share of the stolen time; null if no probe measured the stolen time.
    pub least_of_stolen: Option<f64>,
    /// `most_ns` as a share of the stolen time.
    pub most_of_stolen: Option<f64>,
    /// `least_ns` as a share of all time of the measured CPUs.
    pub least_of_time: f64,
    /// `most_ns` as a share of all time of the measured CPUs.
    pub most_of_time: f64,
}

/// `stolen`: the time measured by probes, on all CPUs.
pub(crate) fn of(price: &EventPrice, manifest: &RunManifest, stolen: Nanos) -> Price {
    let duration = manifest.duration();
    // Following threads records all CPUs.
    let recorded = match manifest.probe.kind() {
        Some(ProbeKind::Attach) => &manifest.host.online,
        _ => &manifest.probe.cpus,
    };
    let time = duration.0 as f64 * recorded.len() as f64;
    // A sleeping probe's lateness is not stolen time: other threads may run between its wake-ups.
    let spins = manifest.probe.kind() == Some(ProbeKind::Spin);
    let of_stolen = |taken: Nanos| spins.then(|| fraction(taken, stolen.0 as f64));
    Price {
        events: price.events.clone(),
        on_measured: price.on_measured,
        record: price.record,
        stacks: price.stacks.clone(),
        taken: price.taken().map(|(least, most)| Taken {
            least_ns: least,
            most_ns: most,
            least_of_stolen: of_stolen(least),
            most_of_stolen: of_stolen(most),
            least_of_time: fraction(least, time),
            most_of_time: fraction(most, time),
        }),
        graph: price.graph.clone(),
        helper_fraction: fraction(price.helper_ns, duration.0 as f64),
    }
}

/// A part of a whole, at most 1.
fn fraction(part: Nanos, whole: f64) -> f64 {
    if whole > 0.0 {
        (part.0 as f64 / whole).min(1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_at_most_the_whole_and_none_of_nothing() {
        let cases = [
            (5, 10.0, 0.5),
            (10, 10.0, 1.0),
            (20, 10.0, 1.0),
            (0, 10.0, 0.0),
            (5, 0.0, 0.0),
            (0, 0.0, 0.0),
        ];
        for (part, whole, expected) in cases {
            assert_eq!(fraction(Nanos(part), whole), expected, "{part} of {whole}");
        }
    }
}
