//! The declared state of a machine: written from one host, checked against others.

mod check;
mod file;
mod report;

pub use check::{Checked, Deviation, DeviationState};
pub use file::{ExpectedError, written};

use crate::compare::machine_value;
use jitterscope_analyze::{MachineFact, MachineValue};

/// What a file declares: settings and their values in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    declared: Vec<Declared>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Declared {
    /// The setting, as a path within `machine.json`.
    what: String,
    value: String,
    /// Its line in the file, from 1.
    line: usize,
}

const BOOT_LINE: &str = "kernel.boot_line";
/// Parameters of the boot line that name this host's disks, addresses and files, not its state.
const OF_ONE_HOST: [&str; 8] = [
    "BOOT_IMAGE",
    "initrd",
    "root",
    "rootflags",
    "resume",
    "resume_offset",
    "ip",
    "systemd.hostname",
];

/// The value of a setting in the words of the file.
fn words(fact: &MachineFact) -> String {
    let text = machine_value(&fact.value);
    if fact.what != BOOT_LINE {
        return text;
    }
    let kept = text.split_whitespace().filter(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default();
        !OF_ONE_HOST.contains(&name)
    });
    Vec::from_iter(kept).join(" ")
}

/// Whether a value was read.
fn is_known(value: &MachineValue) -> bool {
    match value {
        MachineValue::Denied | MachineValue::Unreadable => false,
        MachineValue::With { value, .. } => is_known(value),
        MachineValue::Several(all) => all.iter().all(is_known),
        _ => true,
    }
}
