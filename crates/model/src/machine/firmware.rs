//! Firmware and product, from DMI.

use super::Reading;
use serde::{Deserialize, Serialize};

/// The machine's product names and firmware. Serial numbers, UUIDs and asset tags are never read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Firmware {
    pub vendor: Reading<String>,
    /// Name of the product.
    pub product: Reading<String>,
    /// Name of the mainboard.
    pub board: Reading<String>,
    /// Maker of the BIOS.
    pub bios_vendor: Reading<String>,
    pub bios_version: Reading<String>,
    /// Date of the BIOS, in its own format.
    pub bios_date: Reading<String>,
}
