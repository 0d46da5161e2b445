//! Warnings about the limits of a run, found while recording.

use jitterscope_attribute::{FrequencyChanges, GroupThrottled};
use jitterscope_model::{CpuId, Nanos, PutInOrder, SourceReport, Warning};
use jitterscope_store::Room;
use std::collections::BTreeMap;

/// Limit on CPUs whose frequency changes are listed.
const MOST_FREQUENCIES: usize = 8;

/// Warns about switches that the kernel did not record, per CPU.
pub(crate) fn of_switches(unrecorded: &BTreeMap<CpuId, u64>) -> Option<Warning> {
    (!unrecorded.is_empty()).then(|| Warning::UnrecordedSwitches {
        count: unrecorded.values().sum(),
        cpus: unrecorded.keys().copied().collect(),
    })
}

/// Warns about stalled time for which only sums were kept.
pub(crate) fn of_folded(time_ns: Nanos) -> Option<Warning> {
    (time_ns > Nanos::ZERO).then_some(Warning::Folded { time_ns })
}

/// Warns about disk space.
pub(crate) fn of_room(room: Room) -> Option<Warning> {
    match room {
        Room::Ample => None,
        Room::TraceGivenUp => Some(Warning::TraceDiscarded { at_the_end: false }),
        Room::None { unstored } => Some(Warning::DiskFull { unstored }),
    }
}

/// Warns about a late writer. The wait matters only if it cost records.
pub(crate) fn of_writer(waited: Nanos, sources: &[SourceReport]) -> Option<Warning> {
    let lost = sources.iter().any(|source| source.lost > 0);
    (lost && waited > Nanos::ZERO).then_some(Warning::WriterBehind { waited_ns: waited })
}

/// Warns about a throttled control group.
pub(crate) fn of_throttled(group: &GroupThrottled) -> Warning {
    Warning::CpuQuota {
        cgroup: group.quota.cgroup.to_string(),
        limit: group.quota.limit,
        times: group.times,
        time_ns: group.throttled,
    }
}

/// Warns about frequency changes, for the few CPUs with the most.
pub(crate) fn of_frequencies(of: &BTreeMap<CpuId, FrequencyChanges>) -> Vec<Warning> {
    let mut cpus: Vec<_> = of.iter().collect();
    cpus.order_by_key(|(cpu, changes)| (std::cmp::Reverse(changes.times), **cpu));
    let warnings = cpus
        .into_iter()
        .take(MOST_FREQUENCIES)
        .map(|(cpu, changes)| Warning::FrequencyChanged {
            cpu: *cpu,
            times: changes.times,
            lowest_khz: changes.lowest_khz,
            highest_khz: changes.highest_khz,
        });
    warnings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_the_writer_is_reported_only_with_lost_records() {
        let source = |lost| SourceReport {
            lost,
            ..SourceReport::available("events")
        };
        let (whole, lossy) = ([source(0)], [source(0), source(3)]);
        assert_eq!(of_writer(Nanos(5), &whole), None);
        assert_eq!(of_writer(Nanos::ZERO, &lossy), None);
        assert_eq!(
            of_writer(Nanos(5), &lossy),
            Some(Warning::WriterBehind {
                waited_ns: Nanos(5)
            })
        );
    }

    #[test]
    fn the_cpus_that_changed_most_often_are_reported() {
        let changes = |times| FrequencyChanges {
            times,
            lowest_khz: 1_200_000,
            highest_khz: 3_400_000,
        };
        let of = (0..20)
            .map(|cpu| (CpuId(cpu), changes(u64::from(cpu) + 1)))
            .collect();
        let warnings = of_frequencies(&of);
        assert_eq!(warnings.len(), MOST_FREQUENCIES);
        let first = Warning::FrequencyChanged {
            cpu: CpuId(19),
            times: 20,
            lowest_khz: 1_200_000,
            highest_khz: 3_400_000,
        };
        assert_eq!(warnings[0], first);
    }
}
