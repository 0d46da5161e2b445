//! Interrupts of devices.

use super::Reading;
use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// Interrupts and where they may go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interrupts {
    /// CPUs that a new interrupt may go to.
    pub default_affinity: Reading<CpuSet>,
    /// Each with a handler, by number.
    pub rows: Vec<InterruptRow>,
    /// How many more there are.
    pub omitted: u64,
}

/// One interrupt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterruptRow {
    /// Its number; it may differ from one boot to the next.
    pub irq: u32,
    /// Who handles it, as the kernel joins them with commas.
    pub actions: String,
    /// CPUs that it may go to.
    pub affinity: Reading<CpuSet>,
    /// CPUs that it does go to.
    pub effective: Reading<CpuSet>,
}
