//! The kernel, its build and its boot settings.

use super::Reading;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelState {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    pub arch: String,
    pub boot_line: Reading<String>,
    /// The hypervisor's signature; absent on bare metal.
    pub hypervisor: Reading<String>,
    /// The current preemption mode, if debugfs shows it: `full`, `lazy`, ...
    pub preemption: Reading<String>,
    /// Whether it is a PREEMPT_RT kernel.
    pub realtime: Reading<bool>,
    /// Build options that affect stalls, without `CONFIG_`; options that are not set are left out.
    pub config: Reading<BTreeMap<String, String>>,
    pub clocksource: Reading<String>,
    /// The available clock sources, in the kernel's order.
    pub clocksources: Reading<Vec<String>>,
    /// The kernel's mitigation of each known processor flaw.
    pub mitigations: Reading<BTreeMap<String, String>>,
}
