//! Firmware and the host.

use super::observed;
use crate::answer::{Answer, CulpritPattern};
use crate::knob::{Fact, Group, Knob, Mechanism, Risk, Weight};
use crate::settles::InForce;
use jitterscope_model::{CulpritKind, Verdict};

/// Time without any kernel event, and time around the recorded events: the host may have run something else.
const UNSEEN: &[Verdict] = &[
    Verdict::NoEventInVm,
    Verdict::BetweenEvents,
    Verdict::BeforeFirstEvent,
    Verdict::AfterLastEvent,
];

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "smi",
        group: Group::Firmware,
        title: "System management interrupts",
        removes: "Firmware that stops all CPUs at once, invisibly to the kernel.",
        mechanism: Mechanism::Look(observed::system_management),
        boot: &[],
        answers: &[
            Answer::removes(CulpritPattern::VerdictsOf(CulpritKind::Firmware)),
            Answer::perhaps(CulpritPattern::Verdicts(&[Verdict::OutsideThisKernel])),
        ],
        profiles: &[],
        risk: Risk::High,
        loses: "Firmware features, some of them for safety. Never turn off thermal protection.",
        weight: Weight::Major,
        kernel: "-",
        absent: "in a virtual machine, firmware interrupts belong to the host",
        by_hand: "In the firmware setup: disable legacy USB and patrol scrubbing, reduce correctable-error interrupts, choose the vendor's low-latency profile. Stop fwupd-refresh.timer, whose queries enter firmware.",
        check: "The SMI count (MSR 0x34 on Intel, `perf stat -e msr/smi/`) stands still during a recording. No stall without an event hits several CPUs at once.",
        in_force: InForce::BY_HAND,
        conflicts: &[],
        fact: Fact::Unverified("no MSR access on the tested machine"),
    },
    Knob {
        id: "host-vcpu",
        group: Group::Firmware,
        title: "Host scheduling of this virtual machine",
        removes: "Time that the host gives to other work instead of this CPU, and interrupts that it delivers late.",
        mechanism: Mechanism::Look(observed::host),
        boot: &[],
        answers: &[
            Answer::removes(CulpritPattern::VerdictsOf(CulpritKind::Hypervisor)),
            Answer::perhaps(CulpritPattern::Verdicts(UNSEEN)),
        ],
        profiles: &[],
        risk: Risk::Low,
        loses: "Host capacity: other guests cannot use pinned CPUs.",
        weight: Weight::Major,
        kernel: "-",
        absent: "-",
        by_hand: "On the host, pin each virtual CPU to its own physical CPU, keep emulator threads elsewhere and do not overcommit. Or use a bare-metal or dedicated instance.",
        check: "Steal in /proc/stat stands still, and the recording's hypervisor share falls.",
        in_force: InForce::BY_HAND,
        conflicts: &[],
        fact: Fact::Seen("on the tested virtual machines, the host takes the most time"),
    },
    Knob {
        id: "kvm-host",
        group: Group::Firmware,
        title: "This machine as a KVM host",
        removes: "Periodic exits that KVM forces on its guests.",
        mechanism: Mechanism::Look(observed::kvm_host),
        boot: &[],
        answers: &[
            Answer::removes(CulpritPattern::Threads(&["CPU */KVM"])),
            Answer::lessens(CulpritPattern::Work(&["kvmclock_*"])),
        ],
        profiles: &[],
        risk: Risk::Medium,
        loses: "Clock corrections of old guests; with polling, also power.",
        weight: Weight::Rare,
        kernel: "any host with KVM",
        absent: "this machine runs no virtual machines",
        by_hand: "Set kvm.kvmclock_periodic_sync=0 in modprobe.d or on the kernel command line. Test kvm.halt_poll_ns and lapic_timer_advance with the guest's load.",
        check: "Count kvm:kvm_exit per second on the isolated CPUs.",
        in_force: InForce::BY_HAND,
        conflicts: &[],
        fact: Fact::Seen("the parameters exist on 6.18; effect not measured"),
    },
];
