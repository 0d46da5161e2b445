//! Facts about this machine.

use crate::machine::Machine;
use crate::topology::Topology;
use jitterscope_model::HostFacts;

/// Empty if it cannot be read.
#[must_use]
pub fn hostname(machine: &Machine) -> String {
    machine
        .read_trimmed("/proc/sys/kernel/hostname")
        .unwrap_or_default()
}

/// The kernel's id of this boot; empty if it cannot be read.
#[must_use]
pub fn boot_id(machine: &Machine) -> String {
    machine
        .read_trimmed("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
}

/// Reads the machine's facts for a report.
#[must_use]
pub fn host_facts(machine: &Machine, topology: &Topology) -> HostFacts {
    let text = |path: &str| machine.read_trimmed(path).unwrap_or_default();
    let cpuinfo = text("/proc/cpuinfo");
    let field = |name: &str| {
        cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix(name)?.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    HostFacts {
        hostname: hostname(machine),
        kernel_release: text("/proc/sys/kernel/osrelease"),
        kernel_version: text("/proc/sys/kernel/version"),
        arch: std::env::consts::ARCH.to_owned(),
        cpu_model: field("model name"),
        cmdline: text("/proc/cmdline"),
        online: topology.online.clone(),
        isolated: topology.isolated.clone(),
        nohz_full: topology.nohz_full.clone(),
        hypervisor: hypervisor(machine, &field("flags")),
        boot_id: Some(boot_id(machine)).filter(|id| !id.is_empty()),
    }
}

/// The hypervisor's signature (`KVMKVMKVM`, ...), `unknown` for a hypervisor without one, `None` on bare metal.
fn hypervisor(machine: &Machine, flags: &str) -> Option<String> {
    if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return None;
    }
    if !machine.is_host() {
        return Some("unknown".into());
    }
    Some(signature().unwrap_or_else(|| "unknown".into()))
}

#[cfg(target_arch = "x86_64")]
fn signature() -> Option<String> {
    let leaf = core::arch::x86_64::__cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx]
        .iter()
        .flat_map(|r| r.to_le_bytes())
        .collect();
    let name: String = bytes
        .iter()
        .map(|b| char::from(*b))
        .filter(|c| c.is_ascii_graphic())
        .collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(not(target_arch = "x86_64"))]
fn signature() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_knows_its_kernel() {
        let machine = Machine::host();
        let facts = host_facts(&machine, &Topology::read(&machine));
        assert!(!facts.kernel_release.is_empty());
        assert!(!facts.online.is_empty());
    }
}
