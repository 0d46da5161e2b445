//! Takes CPUs out of the scheduler's domains at run time with cpusets.
//!
//! cgroup v2: an isolated partition. cgroup v1: one cpuset with load balancing for the housekeeping CPUs, and none in
//! any cpuset that contains isolated CPUs. Threads are moved by their affinity (`kthread-aff`, `systemd-aff`) and not
//! into the v1 cpuset, so that a program started later can still pin itself to an isolated CPU without being moved to a
//! cpuset first.

use crate::finding::Finding;
use crate::goal::Goal;
use crate::notice::Notice;
use crate::op::Op;
use crate::value::ValueKind;
use crate::wanted::Wanted;
use jitterscope_model::CpuSet;
use jitterscope_platform::Machine;

/// The cgroup that we create: for the isolated CPUs on v2, for the housekeeping CPUs on v1.
const V2_GROUP: &str = "jitterscope.isolated";
const V1_GROUP: &str = "jitterscope.housekeeping";

const CONTROL: &str = "cgroup.subtree_control";
const ENABLE: &str = "+cpuset";
const BALANCE: &str = "cpuset.sched_load_balance";

/// The state of the machine's cpusets relative to the goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    pub found: Finding,
    pub wanted: Wanted,
    /// The changes to reach the goal; empty if it is reached.
    pub ops: Vec<Op>,
    /// Where a program must be started afterwards to use the isolated CPUs.
    pub use_it: Notice,
}

/// Examines the cpusets; `None` if the machine has none.
#[must_use]
pub fn look(machine: &Machine, goal: &Goal) -> Option<Partition> {
    match mounted(machine)? {
        (root, true) => Some(look_v2(machine, goal, &root)),
        (root, false) => Some(look_v1(machine, goal, &root)),
    }
}

/// The mount point of the cpuset controller, and whether that is cgroup v2.
fn mounted(machine: &Machine) -> Option<(String, bool)> {
    let has_v2 = |root: &str| {
        machine
            .read(format!("{root}/cgroup.controllers"))
            .is_ok_and(|text| text.split_whitespace().any(|name| name == "cpuset"))
    };
    let has_v1 = |root: &str| machine.exists(format!("{root}/cpuset.sched_load_balance"));
    roots(machine)
        .into_iter()
        .find(|(root, is_v2)| if *is_v2 { has_v2(root) } else { has_v1(root) })
}

/// The mount points of cgroups, or their usual places, and whether each is cgroup v2.
fn roots(machine: &Machine) -> Vec<(String, bool)> {
    let mounts = machine.read("/proc/mounts").unwrap_or_default();
    let mut roots: Vec<(String, bool)> = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let (root, kind) = (fields.next()?, fields.next()?);
            matches!(kind, "cgroup" | "cgroup2").then(|| (root.to_owned(), kind == "cgroup2"))
        })
        .collect();
    roots.extend([
        ("/sys/fs/cgroup".to_owned(), true),
        ("/sys/fs/cgroup/cpuset".to_owned(), false),
    ]);
    roots
}

/// The mount point of the changed cgroups; `None` if [`look`] proposes no such change.
#[must_use]
pub fn may_make(machine: &Machine, op: &Op) -> Option<String> {
    let fits = |root: &str, is_v2: bool| {
        let group = if is_v2 { V2_GROUP } else { V1_GROUP };
        let below = |path: &str| {
            path.strip_prefix(root)?
                .strip_prefix('/')
                .map(str::to_owned)
        };
        match op {
            Op::MakeDir { path, cgroup: true } => below(path).as_deref() == Some(group),
            Op::Write {
                path,
                kind,
                to,
                effective: None,
                ..
            } => {
                let Some(file) = below(path) else {
                    return false;
                };
                match (
                    kind,
                    is_v2,
                    file.strip_prefix(group)
                        .and_then(|rest| rest.strip_prefix('/')),
                ) {
                    (ValueKind::Controllers, true, None) => file == CONTROL && to == ENABLE,
                    (ValueKind::CpuList, true, Some("cpuset.cpus")) => true,
                    (ValueKind::Text, true, Some("cpuset.cpus.partition")) => true,
                    (ValueKind::CpuList, false, Some("cpuset.cpus" | "cpuset.mems")) => true,
                    (ValueKind::Number, false, _) => file.rsplit('/').next() == Some(BALANCE),
                    _ => false,
                }
            }
            _ => false,
        }
    };
    roots(machine)
        .into_iter()
        .find(|(root, is_v2)| fits(root, *is_v2))
        .map(|(root, _)| root)
}

fn write(path: String, kind: ValueKind, from: Option<String>, to: String) -> Op {
    Op::Write {
        path,
        kind,
        from,
        to,
        effective: None,
    }
}

fn cpus_in(machine: &Machine, path: &str) -> CpuSet {
    machine
        .read_trimmed(path)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

/// CPUs that a boot parameter or partition keeps out of the kernel's domains.
fn isolated_already(machine: &Machine) -> CpuSet {
    cpus_in(machine, "/sys/devices/system/cpu/isolated")
}

fn pin_programs(goal: &Goal) -> Notice {
    Notice::PinPrograms {
        cpus: goal.isolated.clone(),
    }
}

fn look_v2(machine: &Machine, goal: &Goal, root: &str) -> Partition {
    let group = format!("{root}/{V2_GROUP}");
    let state = machine
        .read_trimmed(format!("{group}/cpuset.cpus.partition"))
        .ok();
    let ours = cpus_in(machine, &format!("{group}/cpuset.cpus"));
    let held: CpuSet = [
        cpus_in(machine, &format!("{root}/cpuset.cpus.isolated")),
        isolated_already(machine),
        if state.as_deref() == Some("isolated") {
            ours.clone()
        } else {
            CpuSet::new()
        },
    ]
    .iter()
    .flat_map(|set| set.iter().collect::<Vec<_>>())
    .collect();
    let wanted = Wanted::Partition {
        cpus: goal.isolated.clone(),
    };
    let use_it = if state.is_some() || !goal.isolated.difference(&held).is_empty() {
        Notice::StartInGroup {
            group: group.clone(),
        }
    } else {
        // Isolated by other means, or at boot: programs that want to run there pin themselves.
        pin_programs(goal)
    };
    if goal.isolated.difference(&held).is_empty() {
        return Partition {
            found: Finding::Isolated { cpus: held },
            wanted,
            ops: Vec::new(),
            use_it,
        };
    }
    let found = match &state {
        Some(state) => Finding::OwnPartition {
            group: group.clone(),
            state: state.clone(),
            cpus: ours,
        },
        None if held.is_empty() => Finding::NoneIsolated,
        None => Finding::Isolated { cpus: held },
    };
    let mut ops = Vec::new();
    let control = format!("{root}/{CONTROL}");
    let enabled = machine.read(&control).ok();
    if !enabled
        .as_ref()
        .is_some_and(|text| text.split_whitespace().any(|name| name == "cpuset"))
    {
        ops.push(write(
            control,
            ValueKind::Controllers,
            enabled,
            ENABLE.into(),
        ));
    }
    if state.is_none() {
        ops.push(Op::MakeDir {
            path: group.clone(),
            cgroup: true,
        });
    }
    let file = |name: &str| format!("{group}/{name}");
    let now = |name: &str| machine.read(file(name)).ok();
    ops.push(write(
        file("cpuset.cpus"),
        ValueKind::CpuList,
        now("cpuset.cpus"),
        goal.isolated.to_string(),
    ));
    ops.push(write(
        file("cpuset.cpus.partition"),
        ValueKind::Text,
        now("cpuset.cpus.partition"),
        "isolated".into(),
    ));
    Partition {
        found,
        wanted,
        ops,
        use_it,
    }
}

/// `root` and all cpusets below it, parents first.
fn v1_groups(machine: &Machine, root: &str) -> Vec<String> {
    let mut all = vec![root.to_owned()];
    let mut next = 0;
    while let Some(group) = all.get(next).cloned() {
        next += 1;
        for name in machine.list(&group) {
            let child = format!("{group}/{name}");
            if machine.exists(format!("{child}/cpuset.sched_load_balance")) {
                all.push(child);
            }
        }
    }
    all
}

fn look_v1(machine: &Machine, goal: &Goal, root: &str) -> Partition {
    let group = format!("{root}/{V1_GROUP}");
    let wanted = Wanted::BalancedAmong {
        cpus: goal.housekeeping.clone(),
    };
    let use_it = pin_programs(goal);
    let already = isolated_already(machine);
    if goal.isolated.difference(&already).is_empty() {
        let found = Finding::IsolatedAtBoot { cpus: already };
        return Partition {
            found,
            wanted,
            ops: Vec::new(),
            use_it,
        };
    }
    // Every cpuset with load balancing makes a domain of its CPUs.
    let balancing: Vec<String> = v1_groups(machine, root)
        .into_iter()
        .filter(|g| {
            machine
                .read_trimmed(format!("{g}/cpuset.sched_load_balance"))
                .is_ok_and(|v| v == "1")
        })
        .filter(|g| {
            !cpus_in(machine, &format!("{g}/cpuset.cpus"))
                .intersection(&goal.isolated)
                .is_empty()
        })
        .collect();
    if balancing.is_empty() {
        let found = Finding::NotBalanced {
            cpus: goal.isolated.clone(),
        };
        return Partition {
            found,
            wanted,
            ops: Vec::new(),
            use_it,
        };
    }
    let mut ops = Vec::new();
    let file = |name: &str| format!("{group}/{name}");
    let fresh = !machine.exists(&group);
    if fresh {
        ops.push(Op::MakeDir {
            path: group.clone(),
            cgroup: true,
        });
    }
    let memory = machine
        .read_trimmed(format!("{root}/cpuset.mems"))
        .unwrap_or_else(|_| "0".into());
    let now = |name: &str| machine.read(file(name)).ok();
    for (name, kind, to) in [
        ("cpuset.mems", ValueKind::CpuList, memory),
        (
            "cpuset.cpus",
            ValueKind::CpuList,
            goal.housekeeping.to_string(),
        ),
    ] {
        let from = now(name);
        if !from.as_ref().is_some_and(|from| kind.holds(from, &to)) {
            ops.push(write(file(name), kind, from, to));
        }
    }
    let found = Finding::Balanced {
        cpus: goal.isolated.clone(),
        cpusets: balancing.clone(),
    };
    for group in balancing {
        let path = format!("{group}/{BALANCE}");
        let from = machine.read(&path).ok();
        ops.push(write(path, ValueKind::Number, from, "0".into()));
    }
    Partition {
        found,
        wanted,
        ops,
        use_it,
    }
}

#[cfg(test)]
#[path = "partition_tests.rs"]
mod tests;
