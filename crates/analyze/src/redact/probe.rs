//! Redacts how a run was measured: removes names of newer versions.

use super::LEFT_OUT;
use jitterscope_model::{EventGrain, ProbeKind, ProbeSettings};

pub(super) fn probe(probe: &ProbeSettings) -> ProbeSettings {
    ProbeSettings {
        kind: probe.kind().map_or(LEFT_OUT, ProbeKind::as_str).to_owned(),
        cpus: probe.cpus.clone(),
        cpus_chosen_because: None,
        duration_ns: probe.duration_ns,
        warmup_ns: probe.warmup_ns,
        threshold_ns: probe.threshold_ns,
        clock_costs: probe.clock_costs,
        interval_ns: probe.interval_ns,
        fifo_priority: probe.fifo_priority,
        wakeup: probe.wakeup.clone(),
        event_grain: grain(&probe.event_grain),
    }
}

pub(super) fn grain(of: &EventGrain) -> EventGrain {
    match of {
        EventGrain::Other(_) => EventGrain::Other(LEFT_OUT.into()),
        known => known.clone(),
    }
}
