//! Memory.

use super::Reading;
use serde::{Deserialize, Serialize};

/// Memory and its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryState {
    /// Total memory, KiB.
    pub total_kib: Reading<u64>,
    /// Swap space, KiB.
    pub swap_kib: Reading<u64>,
    /// Reserved huge pages, one entry per size.
    pub huge_pages: Reading<Vec<HugePages>>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub transparent_huge_pages: Reading<String>,
    /// The kernel's effort to get one at a fault.
    pub transparent_defrag: Reading<String>,
    /// Merging of equal pages: 1 if it is on.
    pub same_page_merging: Reading<String>,
}

/// Huge pages of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HugePages {
    /// Size of each, KiB.
    pub size_kib: u64,
    /// How many are reserved.
    pub pages: Reading<u64>,
}
