//! Processors, and who governs their frequency and sleep.

use super::{PerCpu, Reading};
use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// The processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processors {
    /// Model name.
    pub model: PerCpu<String>,
    /// Revision of the microcode.
    pub microcode: Reading<PerCpu<String>>,
    /// Running CPUs.
    pub online: CpuSet,
    /// CPUs outside every scheduling domain.
    pub isolated: CpuSet,
    /// CPUs whose tick can stop while busy.
    pub nohz_full: CpuSet,
    /// Packages with an online CPU.
    pub sockets: Reading<u32>,
    /// Physical cores with an online CPU.
    pub cores: Reading<u32>,
    /// Simultaneous multithreading.
    pub smt: Smt,
    /// NUMA nodes.
    pub numa: Reading<Vec<NumaNode>>,
    /// Frequency, where the kernel governs it.
    pub frequency: Reading<PerCpu<FrequencyPolicy>>,
    /// Frequencies above the nominal: `on` or `off`.
    pub boost: Reading<String>,
    /// Sleep.
    pub idle: IdlePolicy,
}

/// Simultaneous multithreading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Smt {
    /// `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub control: Reading<String>,
    /// Whether a core has two running threads.
    pub active: Reading<bool>,
}

/// Memory that is near to some CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NumaNode {
    /// Number.
    pub id: u32,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Its memory, KiB.
    pub memory_kib: Reading<u64>,
}

/// How the frequency of a CPU is governed. Frequencies in kHz, as the kernel has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrequencyPolicy {
    /// The driver.
    pub driver: Reading<String>,
    /// The governor.
    pub governor: Reading<String>,
    /// The lowest frequency that the governor may choose.
    pub min_khz: Reading<u64>,
    /// The highest.
    pub max_khz: Reading<u64>,
    /// What the processor is to prefer, where it chooses by itself.
    pub energy_preference: Reading<String>,
}

/// How CPUs sleep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdlePolicy {
    /// The driver.
    pub driver: Reading<String>,
    /// The governor.
    pub governor: Reading<String>,
    /// The states of each CPU.
    pub states: PerCpu<Vec<IdleState>>,
}

/// One state of sleep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdleState {
    /// Its name.
    pub name: String,
    /// Time to leave it, microseconds.
    pub latency_us: Reading<u64>,
    /// Whether it is switched off.
    pub disabled: Reading<bool>,
}
