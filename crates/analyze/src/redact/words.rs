//! The words that say nothing about who owns a machine. What is in no list here is left out, or gets a
//! pseudonym.

/// Vectors, codes of `/proc/interrupts` and softirqs, by which counters are known.
pub(super) const COUNTERS: &[&str] = &[
    "LOC", "RES", "CAL", "TLB", "NMI", "PMI", "IWI", "SPU", "RTR", "TRM", "THR", "DFR", "MCE", "MCP", "HYP",
    "HRE", "HVS", "PIN", "NPI", "PIW", "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET",
    "SCHED", "HRTIMER", "RCU",
];

/// Kinds of device interrupts, by how a handler's name begins.
pub(super) const DEVICES: &[&str] = &[
    "nvme",
    "virtio",
    "mlx5",
    "mlx4",
    "ixgbe",
    "i40e",
    "ice",
    "igb",
    "igc",
    "e1000e",
    "bnxt",
    "ena",
    "gve",
    "tg3",
    "ahci",
    "mpt3sas",
    "megasas",
    "xhci_hcd",
    "ehci_hcd",
    "i8042",
    "rtc0",
    "acpi",
    "ACPI:Ged",
    "ttyS",
    "timer",
    "dmar",
    "AMD-Vi",
    "PCIe PME",
    "aerdrv",
    "pciehp",
    "hv_",
    "xen-",
    "snd_hda",
    "i915",
    "amdgpu",
    "nvidia",
    "arch_timer",
];

/// Words that a setting, a policy or a state of the machine can have.
pub(super) const VALUES: &[&str] = &[
    "on",
    "off",
    "forceoff",
    "notsupported",
    "notimplemented",
    "always",
    "madvise",
    "never",
    "defer",
    "defer+madvise",
    "default",
    "performance",
    "powersave",
    "powersupersave",
    "schedutil",
    "ondemand",
    "conservative",
    "userspace",
    "balance_performance",
    "balance_power",
    "power",
    "intel_pstate",
    "intel_cpufreq",
    "acpi-cpufreq",
    "amd-pstate",
    "amd-pstate-epp",
    "cppc_cpufreq",
    "intel_idle",
    "acpi_idle",
    "haltpoll",
    "none",
    "menu",
    "teo",
    "ladder",
    "POLL",
    "haltpoll idle",
    "C1",
    "C1E",
    "C1_ACPI",
    "C2",
    "C2_ACPI",
    "C3",
    "C3_ACPI",
    "C6",
    "C6P",
    "C7s",
    "C8",
    "C10",
    "tsc",
    "tsc-early",
    "hpet",
    "acpi_pm",
    "kvm-clock",
    "xen",
    "jiffies",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "full",
    "lazy",
    "voluntary",
    "member",
    "root",
    "isolated",
    "Y",
    "N",
    "y",
    "m",
    "n",
];

/// Flaws of processors, as the kernel names them.
pub(super) const FLAWS: &[&str] = &[
    "gather_data_sampling",
    "ghostwrite",
    "indirect_target_selection",
    "itlb_multihit",
    "l1tf",
    "mds",
    "meltdown",
    "mmio_stale_data",
    "old_microcode",
    "reg_file_data_sampling",
    "retbleed",
    "spec_rstack_overflow",
    "spec_store_bypass",
    "spectre_v1",
    "spectre_v2",
    "srbds",
    "tsa",
    "tsx_async_abort",
    "vmscape",
];

/// Options of the kernel's build.
pub(super) const OPTIONS: &[&str] = &[
    "CPU_ISOLATION",
    "CPU_MITIGATIONS",
    "HIGH_RES_TIMERS",
    "HZ",
    "HZ_PERIODIC",
    "IRQ_FORCED_THREADING",
    "IRQ_TIME_ACCOUNTING",
    "KASAN",
    "KFENCE",
    "LOCKDEP",
    "NO_HZ_FULL",
    "NO_HZ_IDLE",
    "NUMA_BALANCING",
    "PREEMPT",
    "PREEMPT_DYNAMIC",
    "PREEMPT_LAZY",
    "PREEMPT_NONE",
    "PREEMPT_RT",
    "PREEMPT_VOLUNTARY",
    "RCU_NOCB_CPU",
    "TICK_CPU_ACCOUNTING",
    "VIRT_CPU_ACCOUNTING_GEN",
    "WQ_POWER_EFFICIENT_DEFAULT",
];

/// Words of `uname -v` that tell kernels apart.
pub(super) const KERNEL_VERSION: &[&str] =
    &["SMP", "PREEMPT", "PREEMPT_DYNAMIC", "PREEMPT_RT", "PREEMPT_LAZY"];

/// Words of processors' names; a word with a digit of up to nine characters is a model's number.
pub(super) const PROCESSORS: &[&str] = &[
    "Intel(R)",
    "Xeon(R)",
    "Core(TM)",
    "Atom(TM)",
    "Pentium(R)",
    "Platinum",
    "Gold",
    "Silver",
    "Bronze",
    "CPU",
    "@",
    "AMD",
    "EPYC",
    "Ryzen",
    "Threadripper",
    "PRO",
    "Processor",
    "with",
    "Radeon",
    "Graphics",
    "Gen",
    "Ultra",
    "Max",
    "ARM",
    "Neoverse",
    "Ampere",
    "Altra",
    "Graviton",
    "Apple",
    "IBM",
    "POWER",
];

/// Makers of machines and firmware.
pub(super) const MAKERS: &[&str] = &[
    "Dell Inc.",
    "HP",
    "HPE",
    "Hewlett-Packard",
    "Lenovo",
    "LENOVO",
    "Supermicro",
    "ASUSTeK COMPUTER INC.",
    "Gigabyte Technology Co., Ltd.",
    "ASRock",
    "Intel Corporation",
    "Intel(R) Corporation",
    "QEMU",
    "SeaBIOS",
    "EDK II",
    "Red Hat",
    "Amazon EC2",
    "Google",
    "Microsoft Corporation",
    "VMware, Inc.",
    "Xen",
    "innotek GmbH",
    "Fujitsu",
    "FUJITSU",
    "American Megatrends Inc.",
    "American Megatrends International, LLC.",
    "Phoenix Technologies LTD",
    "Insyde Corp.",
    "coreboot",
    "Apple Inc.",
    "Cisco Systems Inc",
    "Quanta Cloud Technology Inc.",
];

/// Signatures of hypervisors.
pub(super) const HYPERVISORS: &[&str] =
    &["KVMKVMKVM", "Microsoft Hv", "VMwareVMware", "XenVMMXenVMM", "TCGTCGTCGTCG", "ACRNACRNACRN", "unknown"];

/// Architectures.
pub(super) const ARCHITECTURES: &[&str] =
    &["x86_64", "aarch64", "riscv64", "powerpc64", "s390x", "arm", "x86"];

/// Programs that write the machine's settings.
pub(super) const COMPETITORS: &[&str] =
    &["irqbalance", "tuned", "tuned-ppd", "ksmtuned", "power-profiles-", "thermald", "auto-cpufreq", "tlp"];

/// Workqueues of the kernel itself.
pub(super) const QUEUES: &[&str] =
    &["writeback", "blkcg_punt_bio", "nvme-wq", "nvme-reset-wq", "scsi_tmf", "raid5wq"];

/// Functions through which the kernel sends, wakes and queues.
pub(super) const SENDERS: &[&str] = &[
    "try_to_wake_up",
    "ttwu_queue_wakelist",
    "__queue_work",
    "queue_work_on",
    "delayed_work_timer_fn",
    "smp_call_function_many_cond",
    "smp_call_function_single",
    "generic_exec_single",
    "native_smp_send_reschedule",
    "resched_curr",
    "irq_work_queue_on",
    "on_each_cpu_cond_mask",
    "flush_tlb_mm_range",
    "arch_tlbbatch_flush",
    "membarrier_private_expedited",
    "membarrier_global_expedited",
    "text_poke_bp_batch",
    "kick_all_cpus_sync",
];

/// Sources of evidence.
pub(super) const SOURCES: &[&str] = &[
    "tracefs",
    "senders",
    "smi",
    "counters",
    "interrupts",
    "softirqs",
    "schedstat",
    "stat",
    "steal",
    "symbols",
    "tsc",
    "perf",
];

/// Roles of threads.
pub(super) const ROLES: &[&str] = &["producer", "accumulator", "journaller"];
