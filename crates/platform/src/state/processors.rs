//! Processors, from `/proc/cpuinfo` and `/sys/devices/system/cpu`.

use super::files::{cut, value};
use crate::machine::Machine;
use crate::topology::Topology;
use jitterscope_model::{CpuId, FileForm, MachineEntry, MachineSettings, Reading, Scalar};
use std::collections::BTreeSet;

const CPU: &str = "/sys/devices/system/cpu";
/// The longest name kept, in bytes.
const LONGEST: usize = 128;

/// A field of every CPU in `/proc/cpuinfo`.
pub(super) fn cpuinfo_field<'a>(
    cpuinfo: &'a str,
    wanted: &'a str,
) -> impl Iterator<Item = (CpuId, MachineEntry)> + 'a {
    let mut cpu = None;
    cpuinfo.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        let (name, value) = (name.trim(), value.trim());
        if name == "processor" {
            cpu = value.parse().ok().map(CpuId);
        }
        let entry = || MachineEntry::new(cut(value.to_owned(), LONGEST));
        (name == wanted).then(|| Some((cpu?, entry()))).flatten()
    })
}

/// The number of distinct combinations of these files' contents among the online CPUs.
pub(super) fn distinct(
    machine: &Machine,
    topology: &Topology,
    files: &[&str],
) -> Vec<MachineEntry> {
    let mut found = BTreeSet::new();
    for cpu in topology.online.iter() {
        let mut key = Vec::new();
        for file in files {
            match machine.read_trimmed(format!("{CPU}/cpu{cpu}/topology/{file}")) {
                Ok(text) if !text.is_empty() => key.push(text),
                Ok(_) => return Vec::new(),
                Err(error) => return vec![super::missing(&error).into()],
            }
        }
        found.insert(key);
    }
    match found.len() as u64 {
        0 => Vec::new(),
        number => vec![MachineEntry::new(number)],
    }
}

/// The idle states of each CPU that are not disabled, and the time that the processor takes to leave each state.
pub(super) fn read_idle_states(
    machine: &Machine,
    topology: &Topology,
    settings: &mut MachineSettings,
) {
    let (mut enabled, mut latencies) = (Vec::new(), Vec::new());
    for cpu in topology.online.iter() {
        let folder = format!("{CPU}/cpu{cpu}/cpuidle");
        let mut numbers: Vec<u32> = machine
            .list(&folder)
            .iter()
            .filter_map(|name| name.strip_prefix("state")?.parse().ok())
            .collect();
        numbers.sort_unstable();
        let mut usable = Vec::new();
        for n in &numbers {
            let file =
                |name: &str, form| value(machine, &format!("{folder}/state{n}/{name}"), form);
            let name = match file("name", FileForm::Text) {
                Reading::Value(Scalar::Text(name)) => cut(name, LONGEST),
                _ => String::new(),
            };
            let latency = MachineEntry::from(file("latency", FileForm::Number));
            latencies.push((cpu, latency.of(name.clone())));
            if file("disable", FileForm::Switch) != Reading::Value(true.into()) {
                usable.push(name);
            }
        }
        if !numbers.is_empty() {
            enabled.push((cpu, MachineEntry::new(Scalar::Words(usable))));
        }
    }
    settings.put_each("processors.idle.states", enabled);
    settings.put_each("processors.idle.latency_us", latencies);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{fake, machine_settings};
    use jitterscope_model::HostFacts;

    #[test]
    fn a_large_machine_is_a_few_entries() {
        let mut files = vec![
            (format!("{CPU}/online"), "0-255\n".to_owned()),
            (format!("{CPU}/smt/control"), "off\n".to_owned()),
            (format!("{CPU}/intel_pstate/no_turbo"), "1\n".to_owned()),
        ];
        let mut cpuinfo = String::new();
        for cpu in 0..256 {
            let governor = if cpu == 7 { "performance" } else { "powersave" };
            let microcode = if cpu < 128 {
                "0x2b000571"
            } else {
                "0x2b000590"
            };
            cpuinfo +=
                &format!("processor\t: {cpu}\nmodel name\t: Big\nmicrocode\t: {microcode}\n\n");
            let at = format!("{CPU}/cpu{cpu}");
            for (file, text) in [
                ("cpufreq/scaling_governor", governor.to_owned()),
                ("topology/physical_package_id", (cpu / 128).to_string()),
                ("topology/core_cpus_list", cpu.to_string()),
                ("cpuidle/state0/name", "POLL".to_owned()),
                ("cpuidle/state0/latency", "3".to_owned()),
                ("cpuidle/state10/name", "C10".to_owned()),
                ("cpuidle/state2/disable", "1".to_owned()),
            ] {
                files.push((format!("{at}/{file}"), text + "\n"));
            }
        }
        files.push(("/proc/cpuinfo".into(), cpuinfo));
        let (_dir, machine) = fake::machine(&files);
        let topology = Topology::read(&machine);
        let found = machine_settings(&machine, &topology, &HostFacts::default());
        assert_eq!(found.value("processors.sockets"), Some(&2u64.into()));
        assert_eq!(found.value("processors.cores"), Some(&256u64.into()));
        assert_eq!(found.value("processors.boost"), Some(&"off".into()));
        let on = |name: &str| -> Vec<(String, Option<String>)> {
            let entries = found.get(name).iter();
            entries
                .map(|e| {
                    let cpus = e.cpus.as_ref().unwrap().to_string();
                    (cpus, e.text().map(str::to_owned))
                })
                .collect()
        };
        let some = |cpus: &str, text: &str| (cpus.to_owned(), Some(text.to_owned()));
        assert_eq!(
            on("processors.microcode"),
            [some("0-127", "0x2b000571"), some("128-255", "0x2b000590")]
        );
        assert_eq!(
            on("processors.frequency.governor"),
            [some("0-6,8-255", "powersave"), some("7", "performance")]
        );
        assert_eq!(
            found.value("processors.idle.states"),
            Some(&Scalar::Words(vec!["POLL".into(), "C10".into()]))
        );
        let latencies = found.get("processors.idle.latency_us");
        let names: Vec<_> = latencies.iter().map(|e| e.of.as_deref().unwrap()).collect();
        assert_eq!(names, ["POLL", "", "C10"]);
        assert_eq!(latencies[0].is, Reading::Value(3u64.into()));
    }
}
