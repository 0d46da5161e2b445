//! Interrupts of devices.

use super::Reading;
use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// Interrupts and their CPU affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interrupts {
    /// Default CPUs of a new interrupt.
    pub default_affinity: Reading<CpuSet>,
    /// Interrupts with a handler, by number.
    pub rows: Vec<InterruptRow>,
    /// The number of further interrupts.
    pub omitted: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterruptRow {
    /// Its number; it may differ from one boot to the next.
    pub irq: u32,
    /// Names of its handlers, which the kernel joins with commas.
    pub actions: String,
    /// CPUs that it may go to.
    pub affinity: Reading<CpuSet>,
    /// CPUs that it actually goes to.
    pub effective: Reading<CpuSet>,
}
