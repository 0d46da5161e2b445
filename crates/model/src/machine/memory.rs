//! Memory.

use super::Reading;
use serde::{Deserialize, Serialize};

/// Memory and how it is given out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryState {
    /// All of it, KiB.
    pub total_kib: Reading<u64>,
    /// Swap space, KiB.
    pub swap_kib: Reading<u64>,
    /// Reserved huge pages, one entry a size.
    pub huge_pages: Reading<Vec<HugePages>>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub transparent_huge_pages: Reading<String>,
    /// What is done to get one at a fault.
    pub transparent_defrag: Reading<String>,
    /// Whether equal pages are merged: 1 while they are.
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
