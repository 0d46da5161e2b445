//! What recording the kernel's events took from whom it was about.

use jitterscope_model::{
    EventClass, EventPrice, GraphPrice, Nanos, ProbeKind, RecordCost, RunManifest,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// What recording the kernel's events cost. What they took is an estimate: from if all that a record needs was in
/// the CPU's near caches to if nothing was (see [`Taken`]).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Price {
    /// Records of the measured time, by what they are about.
    pub events: BTreeMap<EventClass, u64>,
    /// Those of them that were written on CPUs that were measured, watched or followed.
    pub on_measured: u64,
    /// What one took, measured on this machine; null where that could not be.
    pub record: Option<RecordCost>,
    /// What those on measured CPUs took of them.
    pub taken: Option<Taken>,
    /// What looking into kernel functions cost beside that; null where it was not asked for.
    pub graph: Option<GraphPrice>,
    /// CPU time of our own thread, in a second of the measurement.
    pub helper_fraction: f64,
}

/// What our records took, as an estimate between two figures of one record: the fastest row of calls with warm
/// caches, and the median of calls after the near caches were filled with something else. Single records can
/// have taken more than the latter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Taken {
    /// If each took what one takes with warm caches.
    pub least_ns: Nanos,
    /// If each took what one takes with cold caches, in the median.
    pub most_ns: Nanos,
    /// The former, of the stolen time; null where no probe measured what was stolen.
    pub least_of_stolen: Option<f64>,
    /// The latter, of the stolen time.
    pub most_of_stolen: Option<f64>,
    /// The former, of all time of the measured CPUs.
    pub least_of_time: f64,
    /// The latter, of all time of the measured CPUs.
    pub most_of_time: f64,
}

/// `stolen`: what probes measured, on all CPUs.
pub(crate) fn of(price: &EventPrice, manifest: &RunManifest, stolen: Nanos) -> Price {
    let duration = manifest.duration();
    // Who follows threads records all CPUs.
    let recorded = match manifest.probe.kind() {
        Some(ProbeKind::Attach) => &manifest.host.online,
        _ => &manifest.probe.cpus,
    };
    let time = duration.0 as f64 * recorded.len() as f64;
    // What a sleeping probe is late by is not what was taken from it: others may run between its wake-ups.
    let spins = manifest.probe.kind() == Some(ProbeKind::Spin);
    let of_stolen = |taken: Nanos| spins.then(|| fraction(taken, stolen.0 as f64));
    Price {
        events: price.events.clone(),
        on_measured: price.on_measured,
        record: price.record,
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

/// A part of a whole, which is no more than all of it.
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
