//! The state of the machine, read for a run's `machine.json`.
//!
//! Everything is bounded. Many CPUs are grouped; lists of interrupts or cgroups are cut, and state by how much. Names
//! that any user can choose (cgroups) are cut, too.

mod cpusets;
mod files;
mod interrupts;
mod kernel;
mod load;
mod processors;

pub use load::CpuTimes;

use crate::machine::{FileError, Machine};
use crate::topology::Topology;
use jitterscope_model::{
    CpuSet, HostFacts, MACHINE_SETTINGS, MachineEntry, MachineSettings, ReadFrom, Reading,
};

/// The longest text kept of one file, in bytes: a boot line can have 4 KiB.
const LONGEST: usize = 8192;

/// Reads the settings of the machine, except for the load, which needs a second moment.
#[must_use]
pub fn machine_settings(
    machine: &Machine,
    topology: &Topology,
    host: &HostFacts,
) -> MachineSettings {
    let mut settings = MachineSettings::default();
    let cpuinfo = machine.read("/proc/cpuinfo").unwrap_or_default();
    for setting in MACHINE_SETTINGS {
        let name = setting.name;
        match setting.from {
            ReadFrom::Files(files) => files::read(machine, topology, name, files, &mut settings),
            ReadFrom::CpuInfo(field) => {
                settings.put_each(name, processors::cpuinfo_field(&cpuinfo, field));
            }
            ReadFrom::Topology(files) => {
                settings.put(name, processors::distinct(machine, topology, files));
            }
            ReadFrom::Code => {}
        }
    }
    let mut text = |name: &str, text: &str| settings.put(name, [MachineEntry::new(text)]);
    text("kernel.release", &host.kernel_release);
    text("kernel.version", &host.kernel_version);
    text("kernel.arch", &host.arch);
    if let Some(hypervisor) = &host.hypervisor {
        text("kernel.hypervisor", hypervisor);
    }
    let mut cpus = |name: &str, cpus: &CpuSet| settings.put(name, [MachineEntry::new(cpus)]);
    cpus("processors.online", &topology.online);
    cpus("processors.isolated", &topology.isolated);
    cpus("processors.nohz_full", &topology.nohz_full);
    if let Some(own) = &topology.cpuset {
        cpus("cpusets.own", own);
    }
    kernel::read(machine, &host.kernel_release, &mut settings);
    processors::read_idle_states(machine, topology, &mut settings);
    interrupts::read(machine, &mut settings);
    cpusets::read(machine, &mut settings);
    settings
}

/// Why a file could not be read.
fn missing<T>(error: &FileError) -> Reading<T> {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, Unsupported};
    match error.source.kind() {
        NotFound | NotADirectory | Unsupported => Reading::Absent,
        PermissionDenied => Reading::Denied,
        // The device exists and does not support this.
        _ if matches!(
            error.source.raw_os_error(),
            Some(libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP)
        ) =>
        {
            Reading::Absent
        }
        _ => Reading::refused(error.source.to_string()),
    }
}

#[cfg(test)]
pub(crate) mod fake {
    use crate::machine::Machine;
    use std::fs;

    /// A tree of files that resembles a machine.
    pub(crate) fn machine(
        files: &[(impl AsRef<str>, impl AsRef<str>)],
    ) -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path.as_ref().trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.as_ref()).unwrap();
        }
        let machine = Machine::at(dir.path());
        (dir, machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_facts;
    use jitterscope_model::FileForm;
    use std::collections::BTreeSet;

    fn read(machine: &Machine) -> MachineSettings {
        let topology = Topology::read(machine);
        machine_settings(machine, &topology, &host_facts(machine, &topology))
    }

    #[test]
    fn nothing_there_is_absent_not_empty() {
        let (_dir, machine) = fake::machine(&[("/proc/sys/kernel/hostname", "x\n")]);
        let settings = read(&machine);
        let names: BTreeSet<&str> = settings.iter().map(|(setting, _)| setting.name).collect();
        let always = [
            "kernel.arch",
            "kernel.release",
            "kernel.version",
            "processors.isolated",
            "processors.nohz_full",
            "processors.online",
        ];
        assert_eq!(names, always.into());
    }

    #[test]
    fn this_machine_is_read_within_bounds() {
        let settings = read(&Machine::host());
        for name in ["kernel.release", "processors.online"] {
            assert_ne!(settings.get(name)[0].text().unwrap(), "", "{name}");
        }
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(
            serde_json::from_str::<MachineSettings>(&text).unwrap(),
            settings
        );
        assert!(text.len() < 1 << 20, "{} bytes", text.len());
    }

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
        let settings = read(&machine);
        assert_eq!(settings.value("firmware.vendor"), Some(&"Dell Inc.".into()));
        assert_eq!(
            settings.value("firmware.bios_version"),
            Some(&"1.8.2".into())
        );
        assert!(!serde_json::to_string(&settings).unwrap().contains("SERIAL"));
    }

    /// Every declared file is read, at the place that it names.
    #[test]
    fn a_machine_with_every_file_has_every_declared_setting() {
        let mut files = vec![
            ("/proc/cpuinfo".to_owned(), "processor: 0\n".to_owned()),
            (
                "/sys/devices/system/cpu/online".to_owned(),
                "0\n".to_owned(),
            ),
        ];
        let mut declared = BTreeSet::new();
        for setting in MACHINE_SETTINGS {
            match setting.from {
                ReadFrom::Files(of) => {
                    let (path, form) = of[of.len() - 1];
                    let path = path.replace("{cpu}", "0").replace('*', "7");
                    let text = match form {
                        FileForm::After(before) => format!("{before} 1\n"),
                        _ => "1".to_owned(),
                    };
                    match files.iter_mut().find(|(known, _)| *known == path) {
                        Some((_, known)) => *known += &text,
                        None => files.push((path, text)),
                    }
                }
                ReadFrom::CpuInfo(field) => files[0].1 += &format!("{field}: 1\n"),
                ReadFrom::Topology(of) => files.extend(of.iter().map(|file| {
                    let path = format!("/sys/devices/system/cpu/cpu0/topology/{file}");
                    (path, "1".to_owned())
                })),
                ReadFrom::Code => continue,
            }
            declared.insert(setting.name);
        }
        let (_dir, machine) = fake::machine(&files);
        let settings = read(&machine);
        for name in declared {
            let entries = settings.get(name);
            assert!(
                matches!(entries, [one] if one.is.value().is_some()),
                "{name}: {entries:?}"
            );
        }
        assert_eq!(settings.get("workqueues")[0].of.as_deref(), Some("7"));
        assert_eq!(settings.value("processors.boost"), Some(&"off".into()));
    }
}
