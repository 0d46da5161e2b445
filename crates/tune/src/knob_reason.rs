//! Why a knob is not judged by its value here, as data.

use serde::Serialize;

/// Why a knob is unavailable, does not apply or cannot be read. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum KnobReason {
    /// This machine has no such thing, for which the knob's declaration says why.
    AsDeclared {
        /// The declaration's own words ([`Knob::absent`](crate::Knob::absent)).
        words: &'static str,
    },
    /// The system refuses to read it.
    System {
        /// What it said, with the file.
        system: String,
    },
    /// No CPU is left for housekeeping.
    NoHousekeeping,
    /// It is an act rather than a setting.
    LeavesNoTrace,
    /// It is a property of programs, which a recording shows.
    ProgramsOwn,
    /// The CPUs have no full dynticks, so that the tick stays anyway.
    NoFullDynticks,
    /// They have, and only a recording shows what keeps the tick.
    TickInRecording,
    /// No control group can have a CPU quota.
    NoQuotaPossible,
    /// No network device has more than one receive queue.
    NoReceiveQueues,
    /// Open files of other users' programs cannot be seen.
    OtherUsersFiles,
    /// There is no frequency driver.
    NoFrequencyDriver,
    /// There is one, and which is best is a matter of measurement.
    FrequencyDriver {
        /// Its name.
        driver: String,
    },
    /// resctrl is mounted: its groups say how the cache is divided.
    ResctrlMounted,
    /// The processor can divide its cache.
    CacheAllocationPossible,
    /// It cannot.
    NoCacheAllocation,
    /// A virtual machine does not see interrupts of the firmware.
    FirmwareBelowHost,
    /// The firmware's settings cannot be read.
    FirmwareHidden,
    /// The host's settings cannot be seen from inside a virtual machine.
    HostHidden,
    /// This is no virtual machine.
    NoVirtualMachine,
    /// `/proc/cpuinfo` cannot be read.
    ProcessorUnknown,
    /// This machine runs no virtual machines.
    NoGuests,
    /// KVM's parameters cannot be read.
    KvmUnreadable,
}

impl KnobReason {
    /// The system's refusal to read a file.
    #[must_use]
    pub(crate) fn system(error: &jitterscope_platform::FileError) -> KnobReason {
        KnobReason::System {
            system: error.to_string(),
        }
    }
}
