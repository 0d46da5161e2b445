//! The load of the other CPUs during the measurement.

use crate::CpuId;
use serde::{Deserialize, Serialize};

/// One CPU during the measurement: shares from 0 to 1 of the kernel's accounted time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuLoad {
    pub cpu: CpuId,
    /// Not idle, not waiting for a disk, not taken by the hypervisor.
    pub busy_share: f64,
    /// In interrupts and softirqs; part of `busy_share`.
    pub interrupt_share: f64,
    /// Taken by the hypervisor.
    pub steal_share: f64,
}
