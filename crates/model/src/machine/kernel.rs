//! The kernel and how it was built and started.

use super::Reading;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelState {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// Machine architecture.
    pub arch: String,
    /// Kernel command line.
    pub boot_line: Reading<String>,
    /// The hypervisor's signature; absent on bare metal.
    pub hypervisor: Reading<String>,
    /// How the kernel preempts now, where debugfs tells: `full`, `lazy`, ...
    pub preemption: Reading<String>,
    /// Whether it is a PREEMPT_RT kernel.
    pub realtime: Reading<bool>,
    /// Options that it was built with and that bear on stalls, without `CONFIG_`; an option that is not set
    /// is left out.
    pub config: Reading<BTreeMap<String, String>>,
    /// The clock source in use.
    pub clocksource: Reading<String>,
    /// Those to choose from, in the kernel's order.
    pub clocksources: Reading<Vec<String>>,
    /// What the kernel does about each known flaw of the processor.
    pub mitigations: Reading<BTreeMap<String, String>>,
}
