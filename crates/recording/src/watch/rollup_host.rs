//! This machine, as its rollups describe it.

use jitterscope_analyze::{KNOBS, MachineFact, MachineValue, machine_facts};
use jitterscope_model::{CpuSet, DifferenceClass, MachineState, Reading, Scalar, TuningState};
use jitterscope_platform::{Machine, Topology, host_facts, machine_settings};
use jitterscope_store::rollup::RollupHost;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Settings that tell machines and kernels apart, and not how they are tuned; and those whose values name devices, which
/// differ between equal hosts.
const NO_TUNING: [&str; 14] = [
    "kernel.arch",
    "kernel.hypervisor",
    "kernel.release",
    "kernel.boot_line",
    "kernel.config",
    "processors.model",
    "processors.sockets",
    "processors.cores",
    "processors.microcode",
    "processors.online",
    "processors.numa",
    "firmware",
    "interrupts",
    "cpusets",
];
/// Knobs whose values are by device or by process.
const OF_DEVICES: [&str; 12] = [
    "irq-aff",
    "nic-queues",
    "rps",
    "xps",
    "napi-thread",
    "blk-compl",
    "irq-coalesce",
    "io-sched",
    "kthread-aff",
    "systemd-aff",
    "pinned",
    "tlb",
];

/// What a watch says of its machine in rollups.
pub(super) struct Described {
    pub(super) host: RollupHost,
    /// The measured CPUs by NUMA node.
    pub(super) groups: Vec<CpuSet>,
}

impl Described {
    /// Reads it: some hundred files.
    pub(super) fn read(
        machine: &Machine,
        cpus: &CpuSet,
        tuning: Option<&TuningState>,
    ) -> Described {
        let topology = Topology::read(machine);
        let facts = host_facts(machine, &topology);
        let state = MachineState {
            settings: machine_settings(machine, &topology, &facts),
            tuning: tuning.cloned().into(),
        };
        let known = machine_facts(&state);
        let firmware = |name: &str| text_of(&known, name);
        let made_by = ["firmware.vendor", "firmware.product"].map(firmware);
        let host = RollupHost {
            id: host_id(machine, &facts.hostname),
            name: facts.hostname,
            boot: facts.boot_id.unwrap_or_default(),
            kernel: facts.kernel_release,
            cpu_model: facts.cpu_model,
            machine: made_by.into_iter().flatten().collect::<Vec<_>>().join(" "),
            firmware: firmware("firmware.bios_version"),
            tuning: fingerprint(&known),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            probe: String::new(),
        };
        let nodes = state.settings.get("processors.numa").iter();
        let nodes = nodes.filter_map(|entry| match &entry.is {
            Reading::Value(Scalar::Text(cpus)) => cpus.parse::<CpuSet>().ok(),
            _ => None,
        });
        Described {
            host,
            groups: by_node(cpus, nodes),
        }
    }
}

/// Divides CPUs by node; those of no known node are a group of their own.
fn by_node(cpus: &CpuSet, nodes: impl Iterator<Item = CpuSet>) -> Vec<CpuSet> {
    let mut left = cpus.clone();
    let mut groups = Vec::new();
    for node in nodes {
        let here = left.intersection(&node);
        left = left.difference(&here);
        groups.push(here);
    }
    groups.push(left);
    groups.retain(|group| !group.is_empty());
    groups
}

fn text_of(facts: &[MachineFact], name: &str) -> Option<String> {
    let fact = facts.iter().find(|fact| fact.what == name)?;
    match &fact.value {
        MachineValue::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

/// Equal for hosts whose tuning is equal, whatever the hardware and the kernel.
fn fingerprint(facts: &[MachineFact]) -> String {
    let mut hash = Sha256::new();
    for fact in facts {
        let below = |prefix: &str| {
            let rest = fact.what.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let knob = fact.what.strip_prefix(KNOBS);
        let of_devices = knob.is_some_and(|of| OF_DEVICES.contains(&of.trim_start_matches('.')));
        let is_tuning = fact.class == DifferenceClass::Matters
            && !NO_TUNING.iter().any(|prefix| below(prefix))
            && !of_devices;
        if is_tuning {
            hash.update(format!("{}={:?}\n", fact.what, fact.value));
        }
    }
    digits(&hash.finalize())
}

/// Stays the same when the host is renamed, and does not tell the machine id, which systemd asks to keep secret.
fn host_id(machine: &Machine, hostname: &str) -> String {
    let id = machine.read_trimmed("/etc/machine-id").unwrap_or_default();
    let (what, of) = match id.is_empty() {
        false => ("machine", id.as_str()),
        true => ("name", hostname),
    };
    digits(&Sha256::digest(format!("jitterscope {what} {of}")))
}

/// The first 64 bits, in hexadecimal digits.
fn digits(hash: &[u8]) -> String {
    hash.iter().take(8).fold(String::new(), |mut text, byte| {
        // A text takes everything.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_grouped_by_node() {
        let of = |text: &str| text.parse::<CpuSet>().unwrap();
        let nodes = || ["0-3", "4-7", "8-9"].map(of).into_iter();
        let groups = by_node(&of("2-5,12"), nodes());
        assert_eq!(groups, ["2-3", "4-5", "12"].map(of));
        assert_eq!(by_node(&of("1"), std::iter::empty()), [of("1")]);
    }

    #[test]
    fn a_renamed_host_keeps_its_id_and_its_machine_id_is_not_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::at(dir.path());
        let without = host_id(&machine, "a");
        assert_ne!(without, host_id(&machine, "b"));
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        let id = "0123456789abcdef0123456789abcdef";
        std::fs::write(dir.path().join("etc/machine-id"), id).unwrap();
        let with = host_id(&machine, "a");
        assert_eq!(with, host_id(&machine, "b"));
        assert!(with.len() == 16 && with != without && !id.contains(&with));
    }

    #[test]
    fn the_fingerprint_is_of_the_tuning_alone() {
        let fact = |what: &str, value: &str| MachineFact {
            class: DifferenceClass::Matters,
            what: what.into(),
            value: MachineValue::Text(value.into()),
        };
        let of = |kernel: &str, governor: &str| {
            fingerprint(&[
                fact("kernel.release", kernel),
                fact("interrupts.eth0", kernel),
                fact("processors.frequency.governor", governor),
            ])
        };
        assert_eq!(of("6.1", "performance"), of("6.12", "performance"));
        assert_ne!(of("6.1", "performance"), of("6.1", "powersave"));
    }

    #[test]
    fn this_machine_describes_itself() {
        let machine = Machine::host();
        let cpus = Topology::read(&machine).online;
        let of = Described::read(&machine, &cpus, None);
        let again = Described::read(&machine, &cpus, None);
        assert_eq!(
            (of.host.clone(), of.groups.clone()),
            (again.host, again.groups)
        );
        assert!(!of.host.kernel.is_empty() && of.host.tuning.len() == 16);
        let grouped: usize = of.groups.iter().map(CpuSet::len).sum();
        assert_eq!(grouped, cpus.len());
    }
}
