//! Frequency and idle states.

use super::observed;
use crate::answer::{Answer, CulpritPattern};
use crate::cmdline::{BootParam, BootValue};
use crate::knob::{
    Conflict, Fact, Group, Knob, Mechanism, Place, Profile, Risk, Scope, Setting, Shown, Want,
    Weight,
};
use crate::settles::{InForce, Settles, Sign};
use crate::value::ValueKind;
use jitterscope_model::Verdict;

const NO_CPUFREQ: &str =
    "no cpufreq driver controls the frequency (in a virtual machine, the host does)";

/// The cost of leaving an idle state.
const IDLE: &[Verdict] = &[Verdict::IdleExit, Verdict::LeavingIdle];

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "governor",
        group: Group::Power,
        title: "Frequency governor",
        removes: "Frequency changes while the program runs, and low speed after a pause.",
        mechanism: Mechanism::Files(&[Setting::new(
            Place::PerCpu(
                "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor",
                Scope::All,
            ),
            ValueKind::Text,
            Want::By(
                "performance, if scaling_available_governors lists it",
                observed::performance_governor,
            ),
        )]),
        boot: &[BootParam {
            key: "cpufreq.default_governor",
            value: BootValue::Is("performance"),
        }],
        answers: &[
            Answer::removes(CulpritPattern::Threads(&["sugov:*"])),
            Answer::perhaps(CulpritPattern::Verdicts(&[
                Verdict::FrequencyChange,
                Verdict::OutsideThisKernel,
            ])),
            Answer::lessens(CulpritPattern::Devices(&["*cpufreq*"])),
        ],
        profiles: &[Profile::Power],
        risk: Risk::Low,
        loses: "Power and heat on every CPU.",
        weight: Weight::Major,
        kernel: "any with cpufreq; the boot parameter since 5.9",
        absent: NO_CPUFREQ,
        by_hand: "Write performance to cpufreq/scaling_governor of each CPU. If cpufreq/scaling_available_governors lacks it, load its module (cpufreq_performance) or raise the lowest frequency (freq-floor).",
        check: "A recording shows no power:cpu_frequency event while the program runs.",
        in_force: InForce::AT_ONCE,
        conflicts: &[Conflict {
            with: "tuned",
            why: "Its cpu plug-in also sets the governor.",
        }],
        fact: Fact::Tried(
            "6.12 guest with acpi-cpufreq and made-up frequencies: CPU 1 changed its frequency 139 times with ondemand, never with performance",
        ),
    },
    Knob {
        id: "freq-floor",
        group: Group::Power,
        title: "Lowest frequency and energy preference",
        removes: "Ramp-up from a low frequency, and power saving that the processor chooses itself.",
        mechanism: Mechanism::Files(&[
            Setting::new(
                Place::PerCpu(
                    "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_min_freq",
                    Scope::Isolated,
                ),
                ValueKind::Number,
                Want::SameAs("scaling_max_freq"),
            ),
            Setting::new(
                Place::PerCpu(
                    "/sys/devices/system/cpu/cpu{cpu}/cpufreq/energy_performance_preference",
                    Scope::Isolated,
                ),
                ValueKind::Text,
                Want::OneOf(&["performance", "0"]),
            ),
            Setting::new(
                Place::PerCpu(
                    "/sys/devices/system/cpu/cpu{cpu}/power/energy_perf_bias",
                    Scope::Isolated,
                ),
                ValueKind::Number,
                Want::OneOf(&["0"]),
            ),
        ]),
        boot: &[],
        answers: &[Answer::perhaps(CulpritPattern::Verdicts(&[
            Verdict::FrequencyChange,
            Verdict::OutsideThisKernel,
        ]))],
        profiles: &[],
        risk: Risk::Low,
        loses: "Power and heat. A core that never cools has less turbo.",
        weight: Weight::Minor,
        kernel: "any with cpufreq; energy_performance_preference since 4.17, energy_perf_bias since 5.2 (versions unverified)",
        absent: NO_CPUFREQ,
        by_hand: "Write the value of scaling_max_freq to scaling_min_freq, performance to energy_performance_preference and 0 to power/energy_perf_bias.",
        check: "scaling_cur_freq stays at the maximum while the program runs.",
        in_force: InForce::AT_ONCE,
        conflicts: &[],
        fact: Fact::Unverified(
            "scaling_min_freq was tried in a 6.12 guest with acpi-cpufreq and made-up frequencies: CPU 1 went to the lower one 69 times before, never after. The other two files are from kernel documentation, versions from memory",
        ),
    },
    Knob {
        id: "turbo",
        group: Group::Power,
        title: "Turbo",
        removes: "Frequency transitions when the turbo budget changes.",
        mechanism: Mechanism::Files(&[
            Setting::file(
                "/sys/devices/system/cpu/intel_pstate/no_turbo",
                ValueKind::Number,
                Want::OneOf(&["1"]),
            ),
            Setting::file(
                "/sys/devices/system/cpu/cpufreq/boost",
                ValueKind::Number,
                Want::OneOf(&["0"]),
            ),
        ]),
        boot: &[],
        answers: &[Answer::perhaps(CulpritPattern::Verdicts(&[
            Verdict::FrequencyChange,
            Verdict::OutsideThisKernel,
        ]))],
        profiles: &[],
        risk: Risk::Medium,
        loses: "Speed: everything runs steadily at the base frequency.",
        weight: Weight::Rare,
        kernel: "any with intel_pstate, or a driver with boost",
        absent: "no driver has turbo control",
        by_hand: "Write 1 to intel_pstate/no_turbo, or 0 to cpufreq/boost.",
        check: "scaling_cur_freq is constant under full load.",
        in_force: InForce::AT_ONCE,
        conflicts: &[],
        fact: Fact::Unverified(
            "no tested machine has a driver with turbo control; from kernel CPU frequency documentation",
        ),
    },
    Knob {
        id: "pstate-drv",
        group: Group::Power,
        title: "Frequency driver",
        removes: "Frequency choices by the processor itself, if the vendor's driver allows disabling them.",
        mechanism: Mechanism::Look(observed::frequency_driver),
        boot: &[],
        answers: &[Answer::perhaps(CulpritPattern::Verdicts(&[
            Verdict::FrequencyChange,
            Verdict::OutsideThisKernel,
        ]))],
        profiles: &[],
        risk: Risk::Medium,
        loses: "Depends on the processor: measure before and after.",
        weight: Weight::Rare,
        kernel: "any with cpufreq",
        absent: NO_CPUFREQ,
        by_hand: "intel_pstate=passive|disable or amd_pstate=passive|guided|active on the kernel command line, depending on the processor.",
        check: "scaling_driver names the chosen driver.",
        in_force: InForce::BY_HAND,
        conflicts: &[],
        fact: Fact::Seen(
            "6.12 guest: audit named acpi-cpufreq; no tested machine offers another driver, and the parameters are from the kernel's list",
        ),
    },
    Knob {
        id: "cstate",
        group: Group::Power,
        title: "Deep idle states",
        removes: "Wake-up latency and late timer interrupts after deep sleep, for threads that sleep.",
        mechanism: Mechanism::Files(&[Setting::new(
            Place::PerCpu(
                "/sys/devices/system/cpu/cpu{cpu}/cpuidle/state*/disable",
                Scope::Isolated,
            ),
            ValueKind::Number,
            Want::By(
                "1 for states with more than 2 us of exit latency",
                observed::deep_idle_states,
            ),
        )]),
        boot: &[
            BootParam {
                key: "intel_idle.max_cstate",
                value: BootValue::Is("1"),
            },
            BootParam {
                key: "processor.max_cstate",
                value: BootValue::Is("1"),
            },
        ],
        answers: &[
            Answer::lessens(CulpritPattern::Verdicts(IDLE)),
            Answer::lessens(CulpritPattern::Threads(&["swapper/*"])),
            Answer::perhaps(CulpritPattern::Verdicts(&[
                Verdict::FrequencyChange,
                Verdict::OutsideThisKernel,
            ])),
        ],
        profiles: &[Profile::Power],
        risk: Risk::Low,
        loses: "Power and the siblings' turbo. A spinning CPU never idles, so it gains nothing.",
        weight: Weight::Minor,
        kernel: "any with cpuidle",
        absent: "the kernel does not manage idle states of these CPUs (in a virtual machine, the host does)",
        by_hand: "Write 1 to cpuidle/stateN/disable. Or write a 32-bit 0 to /dev/cpu_dma_latency, which affects all CPUs while the file is open.",
        check: "power:cpu_idle shows only shallow states.",
        in_force: InForce::both(
            Settles::AtNextEvent("each sleeping CPU next wakes"),
            Sign::ReadsBack,
        ),
        conflicts: &[Conflict {
            with: "cstate-cpu",
            why: "Either one is enough.",
        }],
        fact: Fact::Tried(
            "6.12 guest with acpi_idle and made-up idle states: CPU 1 entered the deeper one 709 times before, never after, and again after the rollback",
        ),
    },
    Knob {
        id: "cstate-cpu",
        group: Group::Power,
        title: "Idle exit latency limit",
        removes: "Wake-up latency after deep sleep, through the CPU's own quality-of-service file (see cstate).",
        mechanism: Mechanism::Files(&[Setting::new(
            Place::PerCpu(
                "/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us",
                Scope::Isolated,
            ),
            ValueKind::Text,
            Want::OneOf(&["n/a"]),
        )]),
        boot: &[],
        answers: &[
            Answer::lessens(CulpritPattern::Verdicts(IDLE)),
            Answer::lessens(CulpritPattern::Threads(&["swapper/*"])),
        ],
        profiles: &[Profile::Power],
        risk: Risk::Low,
        loses: "Power, on these CPUs only.",
        weight: Weight::Minor,
        kernel: "4.12 and later (unverified); n/a means no latency at all",
        absent: "the kernel has no such file for the CPUs",
        by_hand: "Write n/a to /sys/devices/system/cpu/cpuN/power/pm_qos_resume_latency_us (0 means no restriction).",
        check: "The file reads n/a.",
        in_force: InForce::both(
            Settles::AtNextEvent("the CPU next goes idle"),
            Sign::ReadsBack,
        ),
        conflicts: &[],
        fact: Fact::Tried(
            "6.18: written and restored. 6.12 guest with acpi_idle and made-up idle states: CPU 1 then only polled",
        ),
    },
    Knob {
        id: "idle-poll",
        group: Group::Power,
        title: "Idle by polling",
        removes: "The last microsecond of leaving idle.",
        mechanism: Mechanism::Boot(Shown::Cmdline),
        boot: &[BootParam {
            key: "idle",
            value: BootValue::Is("poll"),
        }],
        answers: &[],
        profiles: &[],
        risk: Risk::Medium,
        loses: "All CPUs run hot permanently, have no turbo and starve their SMT siblings.",
        weight: Weight::Rare,
        kernel: "any x86",
        absent: "-",
        by_hand: "Add idle=poll to the kernel command line. cstate-cpu works for chosen CPUs.",
        check: "power:cpu_idle shows only state 0 (POLL).",
        in_force: InForce::AT_BOOT,
        conflicts: &[Conflict {
            with: "turbo",
            why: "Polling CPUs leave no power budget for turbo.",
        }],
        fact: Fact::Tried("6.12 guest: CPUs entered state 0 only; effect not measured"),
    },
    Knob {
        id: "uncore",
        group: Group::Power,
        title: "Uncore frequency",
        removes: "Memory and cache latency that drifts when the rest of the chip changes frequency.",
        mechanism: Mechanism::Files(&[Setting::file(
            "/sys/devices/system/cpu/intel_uncore_frequency/*/min_freq_khz",
            ValueKind::Number,
            Want::SameAs("max_freq_khz"),
        )]),
        boot: &[],
        answers: &[Answer::perhaps(CulpritPattern::Verdicts(&[
            Verdict::FrequencyChange,
            Verdict::OutsideThisKernel,
        ]))],
        profiles: &[],
        risk: Risk::Low,
        loses: "Power and heat.",
        weight: Weight::Rare,
        kernel: "5.6 and later (unverified), Intel servers",
        absent: "no uncore frequency driver (not an Intel server, not loaded, or a virtual machine)",
        by_hand: "Load intel-uncore-frequency and write the value of max_freq_khz to min_freq_khz.",
        check: "Both files read the same value.",
        in_force: InForce::AT_ONCE,
        conflicts: &[],
        fact: Fact::Unverified(
            "not on the tested machine; path from kernel documentation, version from memory",
        ),
    },
    Knob {
        id: "aspm",
        group: Group::Power,
        title: "PCIe link power saving",
        removes: "Waits for a sleeping link on device access.",
        mechanism: Mechanism::Files(&[Setting::file(
            "/sys/module/pcie_aspm/parameters/policy",
            ValueKind::Choice,
            Want::OneOf(&["performance"]),
        )]),
        boot: &[BootParam {
            key: "pcie_aspm.policy",
            value: BootValue::Is("performance"),
        }],
        answers: &[],
        profiles: &[Profile::Power],
        risk: Risk::Low,
        loses: "Power.",
        weight: Weight::Rare,
        kernel: "any with PCIEASPM",
        absent: "the kernel is built without PCIe power management",
        by_hand: "Write performance to /sys/module/pcie_aspm/parameters/policy. Firmware that keeps control refuses it.",
        check: "The file brackets [performance].",
        in_force: InForce::AT_ONCE,
        conflicts: &[],
        fact: Fact::Tried("6.18"),
    },
];
