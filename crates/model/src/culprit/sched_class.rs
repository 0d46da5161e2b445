//! A thread's scheduling class and priority.

use crate::Name;

/// A thread's scheduling class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchedClass {
    /// SCHED_DEADLINE.
    Deadline,
    /// SCHED_FIFO or SCHED_RR, with the user's priority: 1 to 99, higher is more urgent. Kernel threads such as
    /// migration have 99, too.
    RealTime(u8),
    /// SCHED_OTHER or SCHED_BATCH, with its nice value if known.
    Fair(Option<i8>),
    /// The idle thread of a CPU.
    Idle,
    /// A class that this version does not know.
    Other(Name),
}

impl SchedClass {
    /// Decodes the priority in the scheduler's records: below 0 deadline, 0 to 99 real-time (lower is more urgent), 100
    /// to 139 fair.
    #[must_use]
    pub fn of_priority(kernel_priority: i32) -> SchedClass {
        match kernel_priority {
            i32::MIN..=-1 => SchedClass::Deadline,
            // The kernel counts real-time priorities downwards: 99 - prio is the user's value.
            urgent @ 0..=99 => SchedClass::RealTime(u8::try_from(99 - urgent).unwrap_or(0)),
            fair => SchedClass::Fair(i8::try_from(fair - 120).ok()),
        }
    }

    /// Its word in files and JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            SchedClass::Deadline => "deadline",
            SchedClass::RealTime(_) => "real_time",
            SchedClass::Fair(_) => "fair",
            SchedClass::Idle => "idle",
            SchedClass::Other(word) => word,
        }
    }

    /// The inverse of [`SchedClass::as_str`], with its priority or nice value.
    #[must_use]
    pub fn from_word(word: &str, priority: Option<u8>, nice: Option<i8>) -> SchedClass {
        match (word, priority) {
            ("deadline", _) => SchedClass::Deadline,
            ("real_time", Some(priority)) => SchedClass::RealTime(priority),
            ("fair", _) => SchedClass::Fair(nice),
            ("idle", _) => SchedClass::Idle,
            (other, _) => SchedClass::Other(other.into()),
        }
    }

    /// The real-time priority.
    #[must_use]
    pub fn priority(&self) -> Option<u8> {
        match self {
            SchedClass::RealTime(priority) => Some(*priority),
            _ => None,
        }
    }

    /// The nice value, if known.
    #[must_use]
    pub fn nice(&self) -> Option<i8> {
        match self {
            SchedClass::Fair(nice) => *nice,
            _ => None,
        }
    }

    /// The class without the nice value.
    #[must_use]
    pub(super) fn without_nice(&self) -> SchedClass {
        match self {
            SchedClass::Fair(_) => SchedClass::Fair(None),
            other => other.clone(),
        }
    }
}
