//! What limits what a run can say, as it is found while recording.

use jitterscope_attribute::GroupThrottled;
use jitterscope_model::{CpuId, Nanos, Warning};
use jitterscope_store::Room;
use std::collections::BTreeMap;

/// Switches that the kernel did not record, by CPU.
pub(crate) fn of_switches(unrecorded: &BTreeMap<CpuId, u64>) -> Option<Warning> {
    (!unrecorded.is_empty()).then(|| Warning::UnrecordedSwitches {
        count: unrecorded.values().sum(),
        cpus: unrecorded.keys().copied().collect(),
    })
}

/// Stalled time of which only sums were kept.
pub(crate) fn of_folded(time_ns: Nanos) -> Option<Warning> {
    (time_ns > Nanos::ZERO).then_some(Warning::Folded { time_ns })
}

/// The disk.
pub(crate) fn of_room(room: Room) -> Option<Warning> {
    match room {
        Room::Ample => None,
        Room::TraceGivenUp => Some(Warning::TraceDiscarded { at_the_end: false }),
        Room::None { unstored } => Some(Warning::DiskFull { unstored }),
    }
}

/// A control group that was throttled.
pub(crate) fn of_throttled(group: &GroupThrottled) -> Warning {
    Warning::CpuQuota {
        cgroup: group.quota.cgroup.to_string(),
        limit: group.quota.limit,
        times: group.times,
        time_ns: group.throttled,
    }
}
