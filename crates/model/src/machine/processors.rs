//! Processors, and the control of their frequency and idle states.

use super::{PerCpu, Reading};
use crate::CpuSet;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processors {
    pub model: PerCpu<String>,
    /// Revision of the microcode.
    pub microcode: Reading<PerCpu<String>>,
    pub online: CpuSet,
    /// CPUs outside every scheduling domain.
    pub isolated: CpuSet,
    /// CPUs whose tick can stop while busy.
    pub nohz_full: CpuSet,
    /// Packages with an online CPU.
    pub sockets: Reading<u32>,
    /// Physical cores with an online CPU.
    pub cores: Reading<u32>,
    pub smt: Smt,
    pub numa: Reading<Vec<NumaNode>>,
    /// Frequency policy, if the kernel controls it.
    pub frequency: Reading<PerCpu<FrequencyPolicy>>,
    /// Frequencies above the nominal: `on` or `off`.
    pub boost: Reading<String>,
    pub idle: IdlePolicy,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Smt {
    /// `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub control: Reading<String>,
    /// Whether a core has two online threads.
    pub active: Reading<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NumaNode {
    pub id: u32,
    pub cpus: CpuSet,
    /// Its memory, KiB.
    pub memory_kib: Reading<u64>,
}

/// How the frequency of a CPU is controlled. Frequencies in kHz, as in the kernel's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FrequencyPolicy {
    pub driver: Reading<String>,
    pub governor: Reading<String>,
    /// The lowest frequency that the governor may choose.
    pub min_khz: Reading<u64>,
    /// The highest frequency that the governor may choose.
    pub max_khz: Reading<u64>,
    /// The processor's preference between energy and performance, if it controls its frequency itself.
    pub energy_preference: Reading<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdlePolicy {
    pub driver: Reading<String>,
    pub governor: Reading<String>,
    /// The states of each CPU.
    pub states: PerCpu<Vec<IdleState>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdleState {
    pub name: String,
    /// Exit latency, microseconds.
    pub latency_us: Reading<u64>,
    /// Whether it is disabled.
    pub disabled: Reading<bool>,
}
