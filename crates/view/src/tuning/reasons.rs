//! Words for why a knob is not judged by its value.

use jitterscope_tune::KnobReason;

/// The reason as part of a sentence, without a full stop.
#[must_use]
pub fn knob_reason(of: &KnobReason) -> String {
    match of {
        KnobReason::AsDeclared { words } => *words,
        KnobReason::System { system } => system.as_str(),
        KnobReason::NoHousekeeping => "no CPU is left for housekeeping",
        KnobReason::LeavesNoTrace => "an action, not a setting: it leaves no trace",
        KnobReason::ProgramsOwn => {
            "a property of the programs that run, not of the machine: a recording shows it"
        }
        KnobReason::OwnersUnknown => {
            "only a recording shows which threads pinned to these CPUs belong there"
        }
        KnobReason::LinksOfHost => "in a virtual machine the host manages the links of devices",
        KnobReason::NoFullDynticks => {
            "these CPUs have no full dynticks (nohz-full), so the tick always runs"
        }
        KnobReason::TickInRecording => "only a recording (timer:tick_stop) shows what keeps the tick",
        KnobReason::NoQuotaPossible => "no group of this machine can have a CPU quota",
        KnobReason::NoReceiveQueues => "no network device has more than one receive queue",
        KnobReason::OtherUsersFiles => "other users' open files cannot be seen without root",
        KnobReason::NoFrequencyDriver => "no cpufreq driver",
        KnobReason::FrequencyDriver { driver } => {
            return format!("the driver is {driver}; measure to find the best");
        }
        KnobReason::ResctrlMounted => "resctrl is mounted: look at its groups' schemata",
        KnobReason::CacheAllocationPossible => {
            "possible here; useful if a recording shows stalls without events"
        }
        KnobReason::NoCacheAllocation => {
            "the processor cannot divide its cache (no cat_l3 or cat_l2 flag)"
        }
        KnobReason::FirmwareBelowHost => {
            "a virtual machine does not see the firmware's interrupts: they count as the host's"
        }
        KnobReason::FirmwareHidden => {
            "the firmware's settings cannot be read; a recording shows its stalls"
        }
        KnobReason::HostHidden => {
            "the host's settings cannot be seen from inside this virtual machine; a recording shows the time that the host takes"
        }
        KnobReason::NoVirtualMachine => "this is not a virtual machine",
        KnobReason::ProcessorUnknown => "/proc/cpuinfo cannot be read",
        KnobReason::NoGuests => "this machine runs no virtual machines",
        KnobReason::KvmUnreadable => "KVM's parameters cannot be read",
        KnobReason::KernelThreadsHidden => "no kernel thread of these CPUs can be seen (another PID namespace)",
    }
    .to_owned()
}
