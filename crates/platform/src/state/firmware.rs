//! Firmware and product, from `/sys/class/dmi/id`. Its serial numbers, UUIDs and asset tags are not read.

use super::{cut, text};
use crate::machine::Machine;
use jitterscope_model::{Firmware, Reading};

/// The longest name kept, in bytes.
const LONGEST: usize = 128;

pub(super) fn read(machine: &Machine) -> Firmware {
    let field = |name: &str| -> Reading<String> {
        text(machine, &format!("/sys/class/dmi/id/{name}")).map(|text| cut(text, LONGEST))
    };
    Firmware {
        vendor: field("sys_vendor"),
        product: field("product_name"),
        board: field("board_name"),
        bios_vendor: field("bios_vendor"),
        bios_version: field("bios_version"),
        bios_date: field("bios_date"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fake;

    #[test]
    fn no_serial_is_ever_kept() {
        let (_dir, machine) = fake::machine(&[
            ("/sys/class/dmi/id/sys_vendor", "Dell Inc.\n"),
            ("/sys/class/dmi/id/bios_version", "1.8.2\n"),
            ("/sys/class/dmi/id/product_serial", "SERIAL1\n"),
            ("/sys/class/dmi/id/product_uuid", "SERIAL2\n"),
            ("/sys/class/dmi/id/board_serial", "SERIAL3\n"),
            ("/sys/class/dmi/id/chassis_asset_tag", "SERIAL4\n"),
            ("/sys/class/dmi/id/board_asset_tag", "SERIAL5\n"),
            ("/sys/class/dmi/id/product_sku", "SERIAL6\n"),
        ]);
        let firmware = read(&machine);
        assert_eq!(firmware.vendor, Reading::Value("Dell Inc.".into()));
        assert_eq!(firmware.bios_version, Reading::Value("1.8.2".into()));
        assert!(!serde_json::to_string(&firmware).unwrap().contains("SERIAL"));
    }
}
