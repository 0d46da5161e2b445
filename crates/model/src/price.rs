//! The overhead of recording kernel events, for the measured CPUs and for ourselves.

use crate::words::open_words;
use crate::{EventKind, GraphPrice, Nanos, RecordCost};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

open_words! {
    /// The classes of kernel events that overhead is reported for.
    EventClass {
        /// Switches of threads, and charges of their run time.
        Switches = "switches",
        /// Wake-ups of threads, and moves to other CPUs.
        WakeUps = "wake_ups",
        /// Device interrupts, interrupt vectors, NMIs, machine checks.
        Interrupts = "interrupts",
        Softirqs = "softirqs",
        /// Timer functions, and the tick.
        Timers = "timers",
        /// Work items, queued and run.
        Work = "work",
        /// Functions called on other CPUs, and the interrupts sent for that.
        Calls = "calls",
        /// Page faults and flushes of translations.
        Faults = "faults",
        /// Idle states and changes of frequency.
        Power = "power",
        /// Threads that begin, are renamed or are stopped.
        Threads = "threads",
    }
}

impl EventKind {
    /// The index of its class in [`EventClass::KNOWN`].
    #[must_use]
    #[inline]
    pub fn class_index(&self) -> usize {
        match self {
            EventKind::SchedSwitch { .. } | EventKind::StatRuntime { .. } => 0,
            EventKind::SchedWaking { .. } | EventKind::SchedMigrate { .. } => 1,
            EventKind::IrqEntry { .. }
            | EventKind::IrqExit { .. }
            | EventKind::VectorEntry { .. }
            | EventKind::VectorExit { .. }
            | EventKind::NmiHandler { .. }
            | EventKind::MachineCheck { .. } => 2,
            EventKind::SoftirqEntry { .. } | EventKind::SoftirqExit { .. } => 3,
            EventKind::TimerEntry { .. }
            | EventKind::TimerExit { .. }
            | EventKind::HrtimerEntry { .. }
            | EventKind::HrtimerExit { .. }
            | EventKind::TickStop { .. } => 4,
            EventKind::WorkStart { .. }
            | EventKind::WorkEnd { .. }
            | EventKind::WorkQueued { .. } => 5,
            EventKind::CsdEntry { .. }
            | EventKind::CsdExit { .. }
            | EventKind::CsdQueued { .. }
            | EventKind::IpiSendCpu { .. }
            | EventKind::IpiSendCpumask { .. } => 6,
            EventKind::PageFault { .. } | EventKind::TlbFlush { .. } => 7,
            EventKind::CpuIdle { .. } | EventKind::CpuFrequency { .. } => 8,
            EventKind::TaskNew { .. }
            | EventKind::TaskRename { .. }
            | EventKind::CgroupAttach { .. }
            | EventKind::Signal { .. } => 9,
        }
    }
}

/// The overhead of the kernel stacks of sleeping threads in one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StackPrice {
    /// Stacks within the measured time.
    pub records: u64,
    /// Cost of one stack with the record that it belongs to, measured before the recording; null if that was not
    /// possible.
    pub record: Option<RecordCost>,
}

impl StackPrice {
    /// Time that the stacks took, with warm and with cold caches; zero if the cost of one is not known.
    fn taken(&self) -> (Nanos, Nanos) {
        let times = |each: Nanos| Nanos(each.0.saturating_mul(self.records));
        self.record.map_or((Nanos::ZERO, Nanos::ZERO), |record| {
            (times(record.warm_ns), times(record.cold_ns))
        })
    }
}

/// The overhead of kernel events in one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPrice {
    /// The number of records within the measured time, by class.
    pub events: BTreeMap<EventClass, u64>,
    /// The number of these records that were written on measured, watched or followed CPUs.
    pub on_measured: u64,
    /// The cost of one record; `None` if it could not be measured.
    pub record: Option<RecordCost>,
    /// CPU time of our own thread during the measurement.
    pub helper_ns: Nanos,
    /// The overhead of tracing kernel functions, if enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphPrice>,
    /// The overhead of the stacks of sleeping threads, if they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<StackPrice>,
}

impl EventPrice {
    /// The number of records within the measured time.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.events
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Time that the records and the stacks took from the measured CPUs: the range from all caches warm to all caches
    /// cold.
    #[must_use]
    pub fn taken(&self) -> Option<(Nanos, Nanos)> {
        let times = |each: Nanos| Nanos(each.0.saturating_mul(self.on_measured));
        let stacks = self.stacks.as_ref().map(StackPrice::taken);
        let (warm, cold) = stacks.unwrap_or_default();
        self.record
            .map(|record| (times(record.warm_ns) + warm, times(record.cold_ns) + cold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comm, TaskRef};

    #[test]
    fn each_event_is_of_one_class_and_classes_are_kept_by_their_word() {
        let task = TaskRef {
            tid: 1,
            comm: Comm::new("a"),
            prio: 120,
        };
        let switch = EventKind::SchedSwitch {
            prev: task,
            prev_state: 0,
            next: task,
        };
        let renamed = EventKind::TaskRename {
            tid: 1,
            old: Comm::new("a"),
            comm: Comm::new("b"),
        };
        assert_eq!(
            EventClass::KNOWN[switch.class_index()],
            EventClass::Switches
        );
        assert_eq!(
            EventClass::KNOWN[renamed.class_index()],
            EventClass::Threads
        );
        let text = r#"{"events": {"switches": 7, "of_tomorrow": 3}, "on_measured": 9, "record": {"warm_ns": 50, "cold_ns": 300}, "helper_ns": 5}"#;
        let price: EventPrice = serde_json::from_str(text).unwrap();
        assert_eq!(price.events[&EventClass::Other("of_tomorrow".into())], 3);
        assert_eq!(
            (price.records(), price.taken()),
            (10, Some((Nanos(450), Nanos(2700))))
        );
        assert_eq!(EventPrice::default().taken(), None);
        let again = serde_json::to_string(&price).unwrap();
        assert_eq!(serde_json::from_str::<EventPrice>(&again).unwrap(), price);
    }
}
