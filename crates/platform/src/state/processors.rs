//! Processors, from `/proc/cpuinfo` and `/sys/devices/system`.

use super::{cpu_list, cut, number, switch, text};
use crate::machine::Machine;
use crate::topology::Topology;
use jitterscope_model::{
    CpuId, FrequencyPolicy, IdlePolicy, IdleState, NumaNode, PerCpu, Processors, Reading, Smt,
};
use std::collections::BTreeSet;

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";
/// The longest name kept, in bytes.
const LONGEST: usize = 128;

pub(super) fn read(machine: &Machine, topology: &Topology) -> Processors {
    let cpuinfo = machine.read("/proc/cpuinfo").unwrap_or_default();
    let of_all = |name: &str| -> PerCpu<String> { cpuinfo_field(&cpuinfo, name).collect() };
    let microcode = of_all("microcode");
    Processors {
        model: of_all("model name"),
        microcode: if microcode.is_empty() {
            Reading::Absent
        } else {
            Reading::Value(microcode)
        },
        online: topology.online.clone(),
        isolated: topology.isolated.clone(),
        nohz_full: topology.nohz_full.clone(),
        sockets: distinct(machine, topology, &["physical_package_id"]),
        cores: distinct(
            machine,
            topology,
            &["physical_package_id", "core_cpus_list"],
        ),
        smt: Smt {
            control: text(machine, &format!("{CPU}/smt/control")),
            active: switch(machine, &format!("{CPU}/smt/active")),
        },
        numa: numa(machine),
        frequency: frequency(machine, topology),
        boost: boost(machine),
        idle: idle(machine, topology),
    }
}

/// A field of every CPU in `/proc/cpuinfo`.
fn cpuinfo_field<'a>(
    cpuinfo: &'a str,
    wanted: &'a str,
) -> impl Iterator<Item = (CpuId, String)> + 'a {
    let mut cpu = None;
    cpuinfo.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        let (name, value) = (name.trim(), value.trim());
        if name == "processor" {
            cpu = value.parse().ok().map(CpuId);
        }
        (name == wanted)
            .then(|| Some((cpu?, cut(value.to_owned(), LONGEST))))
            .flatten()
    })
}

/// The number of distinct combinations of these files' contents among the online CPUs.
fn distinct(machine: &Machine, topology: &Topology, files: &[&str]) -> Reading<u32> {
    let mut found = BTreeSet::new();
    for cpu in topology.online.iter() {
        let mut key = Vec::new();
        for file in files {
            match text(machine, &format!("{CPU}/cpu{cpu}/topology/{file}")) {
                Reading::Value(text) => key.push(text),
                other => return other.and_then(|_| Reading::Absent),
            }
        }
        found.insert(key);
    }
    if found.is_empty() {
        Reading::Absent
    } else {
        Reading::Value(found.len() as u32)
    }
}

fn numa(machine: &Machine) -> Reading<Vec<NumaNode>> {
    let nodes: Vec<NumaNode> = machine
        .list(NODE)
        .iter()
        .filter_map(|name| name.strip_prefix("node")?.parse::<u32>().ok())
        .map(|id| NumaNode {
            id,
            cpus: cpu_list(machine, &format!("{NODE}/node{id}/cpulist"))
                .value()
                .cloned()
                .unwrap_or_default(),
            memory_kib: text(machine, &format!("{NODE}/node{id}/meminfo")).and_then(|text| {
                let total = text.lines().find_map(|line| line.split_once("MemTotal:"));
                total
                    .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok())
                    .into()
            }),
        })
        .collect();
    let mut nodes = nodes;
    nodes.sort_by_key(|node| node.id);
    if nodes.is_empty() {
        Reading::Absent
    } else {
        Reading::Value(nodes)
    }
}

fn frequency(machine: &Machine, topology: &Topology) -> Reading<PerCpu<FrequencyPolicy>> {
    let policies: PerCpu<FrequencyPolicy> = topology
        .online
        .iter()
        .filter(|cpu| machine.exists(format!("{CPU}/cpu{cpu}/cpufreq")))
        .map(|cpu| {
            let file = |name: &str| format!("{CPU}/cpu{cpu}/cpufreq/{name}");
            let policy = FrequencyPolicy {
                driver: text(machine, &file("scaling_driver")),
                governor: text(machine, &file("scaling_governor")),
                min_khz: number(machine, &file("scaling_min_freq")),
                max_khz: number(machine, &file("scaling_max_freq")),
                energy_preference: text(machine, &file("energy_performance_preference")),
            };
            (cpu, policy)
        })
        .collect();
    if policies.is_empty() {
        Reading::Absent
    } else {
        Reading::Value(policies)
    }
}

/// From whichever driver's file exists.
fn boost(machine: &Machine) -> Reading<String> {
    let word = |on: bool| if on { "on" } else { "off" }.to_owned();
    match switch(machine, &format!("{CPU}/cpufreq/boost")).map(word) {
        Reading::Absent => {
            switch(machine, &format!("{CPU}/intel_pstate/no_turbo")).map(|no_turbo| word(!no_turbo))
        }
        known => known,
    }
}

fn idle(machine: &Machine, topology: &Topology) -> IdlePolicy {
    let states = topology
        .online
        .iter()
        .map(|cpu| (cpu, idle_states(machine, cpu)))
        .filter(|(_, states)| !states.is_empty())
        .collect();
    let governor = match text(machine, &format!("{CPU}/cpuidle/current_governor_ro")) {
        Reading::Absent => text(machine, &format!("{CPU}/cpuidle/current_governor")),
        known => known,
    };
    IdlePolicy {
        driver: text(machine, &format!("{CPU}/cpuidle/current_driver")),
        governor,
        states,
    }
}

fn idle_states(machine: &Machine, cpu: CpuId) -> Vec<IdleState> {
    let folder = format!("{CPU}/cpu{cpu}/cpuidle");
    let mut numbers: Vec<u32> = machine
        .list(&folder)
        .iter()
        .filter_map(|name| name.strip_prefix("state")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    let state = |n: &u32| IdleState {
        name: text(machine, &format!("{folder}/state{n}/name"))
            .value()
            .cloned()
            .unwrap_or_default(),
        latency_us: number(machine, &format!("{folder}/state{n}/latency")),
        disabled: switch(machine, &format!("{folder}/state{n}/disable")),
    };
    numbers.iter().map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fake;

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
            files.push((
                format!("{at}/cpufreq/scaling_governor"),
                format!("{governor}\n"),
            ));
            files.push((
                format!("{at}/topology/physical_package_id"),
                format!("{}\n", cpu / 128),
            ));
            files.push((format!("{at}/topology/core_cpus_list"), format!("{cpu}\n")));
            files.push((format!("{at}/cpuidle/state0/name"), "POLL\n".into()));
            files.push((format!("{at}/cpuidle/state10/name"), "C10\n".into()));
            files.push((format!("{at}/cpuidle/state2/disable"), "1\n".into()));
        }
        files.push(("/proc/cpuinfo".into(), cpuinfo));
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(p, t)| (p.as_str(), t.as_str()))
            .collect();
        let (_dir, machine) = fake::machine(&files);
        let found = read(&machine, &Topology::read(&machine));
        assert_eq!(
            (found.sockets, found.cores),
            (Reading::Value(2), Reading::Value(256))
        );
        assert_eq!(found.boost, Reading::Value("off".into()));
        let microcode = found.microcode.value().unwrap();
        assert_eq!(microcode.0[1].cpus.to_string(), "128-255");
        let policies = found.frequency.value().unwrap();
        assert_eq!(policies.0.len(), 2);
        assert_eq!(
            policies.of(CpuId(7)).unwrap().governor,
            Reading::Value("performance".into())
        );
        let states = found.idle.states.of(CpuId(0)).unwrap();
        assert_eq!(
            states.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
            ["POLL", "", "C10"]
        );
        assert_eq!(states[1].disabled, Reading::Value(true));
    }
}
