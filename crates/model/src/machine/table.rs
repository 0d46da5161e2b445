//! The settings of a machine that a run stores, in the order of `machine.json` and of comparisons.

use super::Compared::{ByName, ByNameIfBoth, Mean, Not, Whole};
use super::DifferenceClass::{Incomparable, Informational, Matters};
use super::FileForm::{
    After, Bracketed, Cpus, InParentheses, Mask, Number, Off, On, Switch, Text, Words,
};
use super::ReadFrom::{Code, CpuInfo, Files, Topology};
use super::{KeptNames, KeptText, MachineSetting};

/// `name = source, comparison, kept texts, of kept names`: one row per setting.
macro_rules! settings {
    ($($name:literal = $from:expr, $compared:expr, $kept:ident $(, of $names:ident)?;)*) => {
        /// Every setting that a run stores of its machine.
        pub const MACHINE_SETTINGS: &[MachineSetting] = &[$(MachineSetting {
            name: $name,
            from: $from,
            compared: $compared,
            kept: KeptText::$kept,
            names: settings!(@names $($names)?),
        },)*];
    };
    (@names) => { KeptNames::Nothing };
    (@names $names:ident) => { KeptNames::$names };
}

macro_rules! cpu {
    ($file:literal) => {
        concat!("/sys/devices/system/cpu/", $file)
    };
}

/// A file of each CPU.
macro_rules! each_cpu {
    ($file:literal) => {
        concat!("/sys/devices/system/cpu/cpu{cpu}/", $file)
    };
}

settings! {
    "kernel.arch" = Code, Whole(Incomparable), Architectures;
    "processors.model" = CpuInfo("model name"), Whole(Incomparable), Processors;
    "kernel.hypervisor" = Code, Whole(Incomparable), Hypervisors;
    "processors.sockets" = Topology(&["physical_package_id"]), Whole(Incomparable), Words;
    "processors.cores" =
        Topology(&["physical_package_id", "core_cpus_list"]), Whole(Incomparable), Words;
    "processors.microcode" = CpuInfo("microcode"), Whole(Matters), Hexadecimal;
    "processors.online" = Code, Whole(Matters), Words;
    "processors.isolated" = Code, Whole(Matters), Words;
    "processors.nohz_full" = Code, Whole(Matters), Words;
    "processors.smt.active" = Files(&[(cpu!("smt/active"), Switch)]), Whole(Matters), Words;
    "processors.smt.control" = Files(&[(cpu!("smt/control"), Text)]), Whole(Informational), Words;
    "firmware.vendor" = Files(&[("/sys/class/dmi/id/sys_vendor", Text)]), Whole(Matters), Makers;
    // Clouds and appliances put their customers' names into these two.
    "firmware.product" =
        Files(&[("/sys/class/dmi/id/product_name", Text)]), Whole(Matters), Nothing;
    "firmware.board" =
        Files(&[("/sys/class/dmi/id/board_name", Text)]), Whole(Informational), Nothing;
    "firmware.bios_vendor" =
        Files(&[("/sys/class/dmi/id/bios_vendor", Text)]), Whole(Informational), Makers;
    "firmware.bios_version" =
        Files(&[("/sys/class/dmi/id/bios_version", Text)]), Whole(Matters), Words;
    "firmware.bios_date" =
        Files(&[("/sys/class/dmi/id/bios_date", Text)]), Whole(Informational), Date;
    "kernel.release" = Code, Whole(Matters), Releases;
    "kernel.version" = Code, Whole(Informational), KernelVersions;
    "kernel.boot_line" = Files(&[("/proc/cmdline", Text)]), Whole(Matters), Nothing;
    "kernel.preemption" =
        Files(&[("/sys/kernel/debug/sched/preempt", InParentheses)]), Whole(Matters), Words;
    "kernel.realtime" = Files(&[("/sys/kernel/realtime", Switch)]), Whole(Matters), Words;
    "kernel.clocksource" =
        Files(&[("/sys/devices/system/clocksource/clocksource0/current_clocksource", Text)]),
        Whole(Matters), Words;
    "kernel.clocksources" =
        Files(&[("/sys/devices/system/clocksource/clocksource0/available_clocksource", Words)]),
        Not, Words;
    "kernel.config" = Code, ByNameIfBoth(Matters), Words, of BuildOptions;
    "kernel.mitigations" =
        Files(&[(cpu!("vulnerabilities/*"), Text)]), ByNameIfBoth(Matters), Mitigations, of Flaws;
    "processors.boost" =
        Files(&[(cpu!("cpufreq/boost"), On), (cpu!("intel_pstate/no_turbo"), Off)]),
        Whole(Matters), Words;
    "processors.frequency.driver" =
        Files(&[(each_cpu!("cpufreq/scaling_driver"), Text)]), Whole(Matters), Words;
    "processors.frequency.governor" =
        Files(&[(each_cpu!("cpufreq/scaling_governor"), Text)]), Whole(Matters), Words;
    "processors.frequency.min_khz" =
        Files(&[(each_cpu!("cpufreq/scaling_min_freq"), Number)]), Whole(Matters), Words;
    "processors.frequency.max_khz" =
        Files(&[(each_cpu!("cpufreq/scaling_max_freq"), Number)]), Whole(Matters), Words;
    // For a processor that controls its frequency itself.
    "processors.frequency.energy_preference" =
        Files(&[(each_cpu!("cpufreq/energy_performance_preference"), Text)]), Whole(Matters), Words;
    "processors.idle.driver" =
        Files(&[(cpu!("cpuidle/current_driver"), Text)]), Whole(Matters), Words;
    "processors.idle.governor" =
        Files(&[
            (cpu!("cpuidle/current_governor_ro"), Text),
            (cpu!("cpuidle/current_governor"), Text),
        ]),
        Whole(Matters), Words;
    // The states that are not disabled.
    "processors.idle.states" = Code, Whole(Matters), Words;
    "processors.idle.latency_us" = Code, Not, Words, of Words;
    "memory.total_kib" =
        Files(&[("/proc/meminfo", After("MemTotal:"))]), Whole(Informational), Words;
    "memory.swap_kib" = Files(&[("/proc/meminfo", After("SwapTotal:"))]), Whole(Matters), Words;
    "memory.transparent_huge_pages" =
        Files(&[("/sys/kernel/mm/transparent_hugepage/enabled", Bracketed)]),
        Whole(Matters), Words;
    "memory.transparent_defrag" =
        Files(&[("/sys/kernel/mm/transparent_hugepage/defrag", Bracketed)]),
        Whole(Matters), Words;
    // Merging of equal pages: 1 if it is on.
    "memory.same_page_merging" = Files(&[("/sys/kernel/mm/ksm/run", Text)]), Whole(Matters), Words;
    "memory.huge_pages" =
        Files(&[("/sys/kernel/mm/hugepages/hugepages-*/nr_hugepages", Number)]),
        ByName(Informational), Words, of Numbers;
    "processors.numa" =
        Files(&[("/sys/devices/system/node/node*/cpulist", Cpus)]),
        ByName(Matters), Words, of Numbers;
    "processors.numa_kib" =
        Files(&[("/sys/devices/system/node/node*/meminfo", After("MemTotal:"))]),
        Not, Words, of Numbers;
    "interrupts.default_affinity" =
        Files(&[("/proc/irq/default_smp_affinity", Mask)]), Whole(Matters), Words;
    // CPUs that an interrupt may go to, and those that it goes to. By the names of its handlers, because numbers change
    // from boot to boot.
    "interrupts" = Code, ByName(Matters), Words, of Devices;
    "interrupts.effective" = Code, Not, Words, of Devices;
    "interrupts.omitted" = Code, Not, Words;
    "workqueues.unbound" =
        Files(&[("/sys/devices/virtual/workqueue/cpumask", Mask)]), Whole(Matters), Words;
    "workqueues" =
        Files(&[("/sys/devices/virtual/workqueue/*/cpumask", Mask)]),
        ByName(Matters), Words, of Queues;
    "cpusets.own" = Code, Whole(Matters), Words;
    // Groups that restrict or reserve CPUs, with their kind of partition.
    "cpusets" = Code, ByName(Matters), Words, of Groups;
    "cpusets.effective" = Code, Not, Words, of Groups;
    "cpusets.exclusive" = Code, Not, Words, of Groups;
    "cpusets.balanced" = Code, Not, Words, of Groups;
    "cpusets.omitted" = Code, Not, Words;
    // Shares of the CPUs that no probe kept busy, from 0 to 1. Interrupts are part of the busy share.
    "load.busy" = Code, Mean(Matters), Words;
    "load.interrupts" = Code, Not, Words;
    "load.steal" = Code, Mean(Matters), Words;
}
