//! Why a knob is not judged by its value here, as data.

use schemars::JsonSchema;
use serde::Serialize;

/// Why a knob is unavailable, does not apply or cannot be read. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum KnobReason {
    /// This machine has no such thing, for the reason in the knob's declaration.
    AsDeclared {
        /// The declaration's text ([`Knob::absent`](crate::Knob::absent)).
        words: &'static str,
    },
    /// The system refuses to read it.
    System {
        /// The system's error, with the file.
        system: String,
    },
    /// No CPU is left for housekeeping.
    NoHousekeeping,
    /// It is an action, not a setting.
    LeavesNoTrace,
    /// It is a property of programs, which a recording shows.
    ProgramsOwn,
    /// Some threads may be pinned to these CPUs: only a recording shows which of them are their owners.
    OwnersUnknown,
    /// The CPUs have no full dynticks, so the tick stays anyway.
    NoFullDynticks,
    /// They have full dynticks, and only a recording shows what keeps the tick.
    TickInRecording,
    /// No control group can have a CPU quota.
    NoQuotaPossible,
    /// No network device has more than one receive queue.
    NoReceiveQueues,
    /// Open files of other users' programs cannot be seen.
    OtherUsersFiles,
    /// There is no frequency driver.
    NoFrequencyDriver,
    /// There is a frequency driver, and the best setting needs a measurement.
    FrequencyDriver {
        driver: String,
    },
    /// resctrl is mounted: its groups show how the cache is divided.
    ResctrlMounted,
    /// The processor can divide its cache.
    CacheAllocationPossible,
    NoCacheAllocation,
    /// A virtual machine does not see the firmware's interrupts.
    FirmwareBelowHost,
    /// The firmware's settings cannot be read.
    FirmwareHidden,
    /// A virtual machine cannot see the host's settings.
    HostHidden,
    /// The host manages the links of a virtual machine's devices.
    LinksOfHost,
    /// This is not a virtual machine.
    NoVirtualMachine,
    /// `/proc/cpuinfo` cannot be read.
    ProcessorUnknown,
    /// This machine runs no virtual machines.
    NoGuests,
    /// KVM's parameters cannot be read.
    KvmUnreadable,
    /// Kernel threads of these CPUs cannot be seen.
    KernelThreadsHidden,
}

impl KnobReason {
    /// Whether a recording can show what is wrong although the machine's state cannot.
    #[must_use]
    pub fn is_for_a_recording(&self) -> bool {
        match self {
            KnobReason::ProgramsOwn
            | KnobReason::OwnersUnknown
            | KnobReason::TickInRecording
            | KnobReason::LeavesNoTrace
            | KnobReason::FirmwareHidden
            | KnobReason::HostHidden => true,
            KnobReason::AsDeclared { .. }
            | KnobReason::System { .. }
            | KnobReason::NoHousekeeping
            | KnobReason::NoFullDynticks
            | KnobReason::NoQuotaPossible
            | KnobReason::NoReceiveQueues
            | KnobReason::OtherUsersFiles
            | KnobReason::NoFrequencyDriver
            | KnobReason::FrequencyDriver { .. }
            | KnobReason::ResctrlMounted
            | KnobReason::CacheAllocationPossible
            | KnobReason::NoCacheAllocation
            | KnobReason::FirmwareBelowHost
            | KnobReason::LinksOfHost
            | KnobReason::NoVirtualMachine
            | KnobReason::ProcessorUnknown
            | KnobReason::NoGuests
            | KnobReason::KvmUnreadable
            | KnobReason::KernelThreadsHidden => false,
        }
    }

    /// The system's error when reading a file.
    #[must_use]
    pub(crate) fn system(error: &jitterscope_platform::FileError) -> KnobReason {
        KnobReason::System {
            system: error.to_string(),
        }
    }
}
