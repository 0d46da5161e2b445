//! Firmware and product, from DMI.

use super::Reading;
use serde::{Deserialize, Serialize};

/// What the machine is sold as and which firmware runs it. Serial numbers, UUIDs and asset tags are never
/// read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Firmware {
    /// Maker of the system.
    pub vendor: Reading<String>,
    /// Name of the product.
    pub product: Reading<String>,
    /// Name of the mainboard.
    pub board: Reading<String>,
    /// Maker of the BIOS.
    pub bios_vendor: Reading<String>,
    /// Version of the BIOS.
    pub bios_version: Reading<String>,
    /// Date of the BIOS, as it writes it.
    pub bios_date: Reading<String>,
}
