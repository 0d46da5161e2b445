//! Checks whether the machine has room for the pipeline's threads: each needs a CPU and a core to itself.

use super::settings::Places;
use jitterscope_model::{CpuId, CpuSet, Misfit, PipelineRole, RoleNode};
use jitterscope_platform::{CpuLayout, SelectionError, Topology, check_cpus};

/// The CPUs available to the threads, and their topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// CPUs of the machine.
    pub topology: Topology,
    pub layout: CpuLayout,
    /// The affinity mask of this process.
    pub allowed: CpuSet,
    /// CPU time granted by the control groups, in thousandths of a CPU; `None` without a limit.
    pub quota_millis: Option<u64>,
}

impl Room {
    /// CPUs for threads that are not pinned.
    #[must_use]
    pub fn usable(&self) -> CpuSet {
        let online = self.allowed.intersection(&self.topology.online);
        match &self.topology.cpuset {
            Some(cpuset) => online.intersection(cpuset),
            None => online,
        }
    }
}

/// Whether threads that never give way would keep other pipeline threads from running: spinning real-time threads share
/// a CPU.
pub(crate) fn would_starve(misfits: &[Misfit]) -> bool {
    misfits
        .iter()
        .any(|misfit| matches!(misfit, Misfit::SameCpu { .. } | Misfit::TooFewCpus { .. }))
}

/// Placements that would distort the measurement; empty if there are none.
///
/// # Errors
/// A thread was placed on a CPU that is absent, offline or outside the cpuset; `force` does not allow that.
pub fn misfits(
    room: &Room,
    roles: &[PipelineRole],
    places: &Places,
) -> Result<Vec<Misfit>, SelectionError> {
    let pinned: Vec<(PipelineRole, CpuId)> = roles
        .iter()
        .filter_map(|role| Some((*role, places.of(*role).cpu?)))
        .collect();
    let taken: CpuSet = pinned.iter().map(|(_, cpu)| *cpu).collect();
    if !taken.is_empty() {
        check_cpus(&taken, &room.topology)?;
    }
    let mut found = Vec::new();
    if let Some(quota_millis) = room
        .quota_millis
        .filter(|quota| *quota < roles.len() as u64 * 1000)
    {
        found.push(Misfit::Quota {
            threads: roles.len(),
            quota_millis,
        });
    }
    let on = |cpus: &CpuSet| -> Vec<PipelineRole> {
        pinned
            .iter()
            .filter(|(_, cpu)| cpus.contains(*cpu))
            .map(|(role, _)| *role)
            .collect()
    };
    for cpu in taken.iter() {
        let roles = on(&[cpu].into_iter().collect());
        if roles.len() > 1 {
            found.push(Misfit::SameCpu { roles, cpu });
        }
    }
    let usable = room.usable();
    let free = roles.len() - pinned.len();
    let all: CpuSet = usable
        .iter()
        .filter(|_| free > 0)
        .chain(taken.iter())
        .collect();
    if usable.difference(&taken).len() < free {
        let cpuset = room.topology.cpuset.clone().filter(|set| {
            set.intersection(&room.topology.online).len() < room.topology.online.len()
        });
        let two_would_fit = roles.len() == 3 && all.len() == 2;
        found.push(Misfit::TooFewCpus {
            threads: roles.len(),
            cpus: all,
            cpuset,
            two_would_fit,
        });
        return Ok(found);
    }
    let mut cores: Vec<CpuSet> = Vec::new();
    for cpu in taken.iter() {
        let core = room.layout.core(cpu);
        let own = taken.intersection(&core);
        if own.len() > 1 && !cores.contains(&core) {
            found.push(Misfit::SameCore {
                roles: on(&core),
                core: own,
            });
            cores.push(core);
        }
    }
    let there = room.layout.cores_of(&all);
    if cores.is_empty() && free > 0 && there < roles.len() {
        found.push(Misfit::TooFewCores {
            threads: roles.len(),
            cpus: all,
            cores: there,
        });
    }
    let node = |(role, cpu): &(PipelineRole, CpuId)| {
        Some(RoleNode {
            role: *role,
            node: room.layout.node(*cpu)?,
        })
    };
    let nodes: Vec<RoleNode> = pinned.iter().filter_map(node).collect();
    if nodes.iter().any(|of| of.node != nodes[0].node) {
        found.push(Misfit::AcrossNodes { nodes });
    }
    Ok(found)
}

/// What the scheduler may do with threads that are not pinned, although there is room for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Freedom {
    /// Place two of them on hardware threads of one core.
    pub(crate) one_core: bool,
    /// Place them on different NUMA nodes.
    pub(crate) many_nodes: bool,
}

/// The scheduler's freedom; `None` if every thread is pinned or all placements are equivalent.
pub(crate) fn freedom(room: &Room, roles: &[PipelineRole], places: &Places) -> Option<Freedom> {
    roles.iter().find(|role| places.of(**role).cpu.is_none())?;
    let usable = room.usable();
    let nodes: std::collections::BTreeSet<u32> = usable
        .iter()
        .filter_map(|cpu| room.layout.node(cpu))
        .collect();
    let one_core = room.layout.cores_of(&usable) < usable.len();
    let freedom = Freedom {
        one_core,
        many_nodes: nodes.len() > 1,
    };
    (freedom != Freedom::default()).then_some(freedom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_platform::Machine;
    use jitterscope_probe::pipeline::Place;
    use std::fs;

    const THREE: [PipelineRole; 3] = [
        PipelineRole::Producer,
        PipelineRole::Accumulator,
        PipelineRole::Journaller,
    ];

    /// A machine: online CPUs, siblings by core, CPUs by node, cpuset.
    fn room(
        online: &str,
        cores: &[&str],
        nodes: &[&str],
        cpuset: Option<&str>,
        allowed: &str,
    ) -> Room {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("sys/devices/system/cpu/online", online);
        for core in cores {
            for cpu in core.parse::<CpuSet>().unwrap().iter() {
                write(
                    &format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"),
                    core,
                );
            }
        }
        for (n, cpus) in nodes.iter().enumerate() {
            write(&format!("sys/devices/system/node/node{n}/cpulist"), cpus);
        }
        if let Some(cpuset) = cpuset {
            write("proc/self/cgroup", "0::/box\n");
            write("sys/fs/cgroup/box/cpuset.cpus.effective", cpuset);
        }
        let machine = Machine::at(dir.path());
        let topology = Topology::read(&machine);
        let layout = CpuLayout::read(&machine, &topology.online);
        Room {
            topology,
            layout,
            allowed: allowed.parse().unwrap(),
            quota_millis: None,
        }
    }

    fn pinned(cpus: [Option<u32>; 3]) -> Places {
        let place = |cpu: Option<u32>| Place {
            cpu: cpu.map(CpuId),
            fifo_priority: None,
        };
        Places {
            producer: place(cpus[0]),
            accumulator: place(cpus[1]),
            journaller: place(cpus[2]),
        }
    }

    fn found(room: &Room, roles: usize, cpus: [Option<u32>; 3]) -> Vec<Misfit> {
        misfits(room, &THREE[..roles], &pinned(cpus)).unwrap()
    }

    #[test]
    fn two_cpus_hold_two_threads_and_refuse_three() {
        let small = room("0-1", &["0", "1"], &["0-1"], None, "0-1");
        assert_eq!(found(&small, 2, [None; 3]), []);
        assert_eq!(found(&small, 2, [Some(0), Some(1), None]), []);
        for cpus in [[None; 3], [Some(0), Some(1), None]] {
            let refused = found(&small, 3, cpus);
            let [
                Misfit::TooFewCpus {
                    threads: 3,
                    two_would_fit: true,
                    ..
                },
            ] = &refused[..]
            else {
                panic!("{refused:?}")
            };
        }
    }

    #[test]
    fn the_affinity_mask_and_the_cpuset_count_not_the_machine() {
        let masked = room("0-7", &[], &[], None, "3");
        let refused = found(&masked, 2, [None; 3]);
        assert!(
            matches!(
                &refused[..],
                [Misfit::TooFewCpus {
                    two_would_fit: false,
                    cpuset: None,
                    ..
                }]
            ),
            "{refused:?}"
        );
        let boxed = room("0-7", &[], &[], Some("2-3"), "0-7");
        let refused = found(&boxed, 3, [None; 3]);
        let Misfit::TooFewCpus {
            cpuset: Some(cpuset),
            ..
        } = &refused[0]
        else {
            panic!("{refused:?}")
        };
        assert_eq!(cpuset.to_string(), "2-3");
        let outside = misfits(&boxed, &THREE, &pinned([Some(2), Some(5), None]));
        assert!(matches!(
            outside,
            Err(SelectionError::OutsideCpuset { cpu: CpuId(5), .. })
        ));
        // An isolated CPU outside the mask can still be named.
        let isolated = room("0-3", &[], &[], None, "0");
        assert_eq!(found(&isolated, 3, [Some(1), Some(2), Some(3)]), []);
    }

    #[test]
    fn one_cpu_for_two_threads_is_refused() {
        let big = room("0-7", &[], &[], None, "0-7");
        let refused = found(&big, 3, [Some(4), Some(4), None]);
        let roles = vec![PipelineRole::Producer, PipelineRole::Accumulator];
        assert_eq!(
            refused,
            [Misfit::SameCpu {
                roles,
                cpu: CpuId(4)
            }]
        );
    }

    #[test]
    fn siblings_of_a_core_and_too_few_cores_are_refused() {
        let smt = room("0-3", &["0,2", "1,3"], &["0-3"], None, "0-3");
        let refused = found(&smt, 2, [Some(0), Some(2), None]);
        assert!(
            matches!(&refused[..], [Misfit::SameCore { core, .. }] if core.to_string() == "0,2"),
            "{refused:?}"
        );
        assert_eq!(found(&smt, 2, [Some(0), Some(1), None]), []);
        assert_eq!(found(&smt, 2, [None; 3]), []);
        let refused = found(&smt, 3, [None; 3]);
        assert!(
            matches!(
                &refused[..],
                [Misfit::TooFewCores {
                    threads: 3,
                    cores: 2,
                    ..
                }]
            ),
            "{refused:?}"
        );
    }

    #[test]
    fn a_quota_below_the_threads_is_refused() {
        let mut big = room("0-7", &[], &[], None, "0-7");
        big.quota_millis = Some(2_500);
        assert_eq!(found(&big, 2, [None; 3]), []);
        let refused = found(&big, 3, [None; 3]);
        assert_eq!(
            refused,
            [Misfit::Quota {
                threads: 3,
                quota_millis: 2_500
            }]
        );
    }

    #[test]
    fn what_the_scheduler_may_do_is_known() {
        let large = room("0-7", &["0,4", "1,5"], &["0-3", "4-7"], None, "0-7");
        let of = |room: &Room, cpus| freedom(room, &THREE[..2], &pinned(cpus));
        assert_eq!(
            of(&large, [None; 3]),
            Some(Freedom {
                one_core: true,
                many_nodes: true
            })
        );
        assert_eq!(of(&large, [Some(1), Some(2), None]), None);
        let half = room("0-7", &["0,4", "1,5"], &["0-3", "4-7"], None, "0-3");
        assert_eq!(of(&half, [None; 3]), None);
    }

    #[test]
    fn nodes_are_told_apart() {
        let numa = room("0-7", &[], &["0-3", "4-7"], None, "0-7");
        assert_eq!(found(&numa, 3, [Some(1), Some(2), Some(3)]), []);
        assert_eq!(found(&numa, 3, [None; 3]), []);
        let refused = found(&numa, 2, [Some(3), Some(4), None]);
        let nodes = vec![
            RoleNode {
                role: PipelineRole::Producer,
                node: 0,
            },
            RoleNode {
                role: PipelineRole::Accumulator,
                node: 1,
            },
        ];
        assert_eq!(refused, [Misfit::AcrossNodes { nodes }]);
    }
}
