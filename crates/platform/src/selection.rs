//! From the user's input to the CPUs to measure.

use crate::topology::Topology;
use jitterscope_model::{CpuId, CpuList, CpuSet, CpusBecause};

/// The CPUs to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuChoice {
    pub cpus: CpuSet,
    /// Why these were chosen, if the user named none.
    pub because: Option<CpusBecause>,
}

/// Why the requested CPUs cannot be measured.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// There is no such CPU.
    #[error("CPU {cpu} does not exist: this machine has CPUs {present}")]
    NotPresent { cpu: CpuId, present: CpuSet },
    /// It exists, but is offline.
    #[error(
        "CPU {cpu} is offline (online: {online}); write 1 to /sys/devices/system/cpu/cpu{cpu}/online to start it"
    )]
    Offline { cpu: CpuId, online: CpuSet },
    /// The cpuset of this process excludes it.
    #[error(
        "CPU {cpu} is outside this process's cpuset ({cpuset}); start jitterscope from a cgroup whose cpuset has it"
    )]
    OutsideCpuset { cpu: CpuId, cpuset: CpuSet },
    /// The user asked for `isolated`, and no CPU is.
    #[error(
        "no CPU is isolated (isolcpus= or an isolated cpuset partition); name CPUs with --cpus, online are {online}"
    )]
    NoneIsolated { online: CpuSet },
    /// No CPU is left to measure.
    #[error("no CPU is both online and allowed to this process")]
    Nothing,
}

/// Resolves `wanted` against the machine. Without `wanted`: the isolated CPUs, else the highest CPU in `allowed` (the
/// affinity mask of this process).
///
/// # Errors
/// A named CPU is absent, offline or outside the cpuset, or nothing is left.
pub fn select_cpus(
    wanted: Option<&CpuList>,
    topology: &Topology,
    allowed: &CpuSet,
) -> Result<CpuChoice, SelectionError> {
    let named = |cpus: CpuSet| {
        check_cpus(&cpus, topology)?;
        Ok(CpuChoice {
            cpus,
            because: None,
        })
    };
    let isolated = topology.isolated.intersection(&topology.online);
    match wanted {
        Some(CpuList::Set(cpus)) if cpus.is_empty() => Err(SelectionError::Nothing),
        Some(CpuList::Set(cpus)) => named(cpus.clone()),
        Some(CpuList::All) => named(match &topology.cpuset {
            Some(cpuset) => topology.online.intersection(cpuset),
            None => topology.online.clone(),
        }),
        Some(CpuList::Isolated) if isolated.is_empty() => Err(SelectionError::NoneIsolated {
            online: topology.online.clone(),
        }),
        Some(CpuList::Isolated) => named(isolated),
        None => {
            let usable = match &topology.cpuset {
                Some(cpuset) => isolated.intersection(cpuset),
                None => isolated,
            };
            if !usable.is_empty() {
                let because = CpusBecause::Isolated {
                    cpus: usable.clone(),
                };
                return Ok(CpuChoice {
                    cpus: usable,
                    because: Some(because),
                });
            }
            let highest = allowed
                .intersection(&topology.online)
                .last()
                .ok_or(SelectionError::Nothing)?;
            Ok(CpuChoice {
                cpus: [highest].into_iter().collect(),
                because: Some(CpusBecause::HighestAllowed),
            })
        }
    }
}

/// Checks that each of `cpus` exists, is online and is in this process's cpuset.
///
/// # Errors
/// One of them is not, or `cpus` is empty.
pub fn check_cpus(cpus: &CpuSet, topology: &Topology) -> Result<(), SelectionError> {
    for cpu in cpus.iter() {
        if !topology.present.contains(cpu) && !topology.online.contains(cpu) {
            return Err(SelectionError::NotPresent {
                cpu,
                present: topology.present.clone(),
            });
        }
        if !topology.online.contains(cpu) {
            return Err(SelectionError::Offline {
                cpu,
                online: topology.online.clone(),
            });
        }
        if let Some(cpuset) = topology.cpuset.as_ref().filter(|set| !set.contains(cpu)) {
            return Err(SelectionError::OutsideCpuset {
                cpu,
                cpuset: cpuset.clone(),
            });
        }
    }
    if cpus.is_empty() {
        Err(SelectionError::Nothing)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    fn topology() -> Topology {
        Topology {
            present: set("0-7"),
            online: set("0-6"),
            isolated: set("5-6"),
            nohz_full: set(""),
            cpuset: Some(set("0-3,5-6")),
        }
    }

    fn select(list: &str) -> Result<CpuChoice, SelectionError> {
        select_cpus(Some(&list.parse().unwrap()), &topology(), &set("0-3"))
    }

    #[test]
    fn isolated_cpus_come_first_then_the_highest_allowed() {
        let choice = select_cpus(None, &topology(), &set("0-3")).unwrap();
        assert_eq!(choice.cpus, set("5-6"));
        assert_eq!(
            choice.because,
            Some(CpusBecause::Isolated { cpus: set("5-6") })
        );
        let plain = Topology {
            isolated: set(""),
            ..topology()
        };
        let choice = select_cpus(None, &plain, &set("0-3")).unwrap();
        assert_eq!(
            (choice.cpus, choice.because),
            (set("3"), Some(CpusBecause::HighestAllowed))
        );
    }

    #[test]
    fn named_isolated_cpus_work_though_the_affinity_mask_hides_them() {
        assert_eq!(select("5").unwrap().cpus, set("5"));
        assert_eq!(select("all").unwrap().cpus, set("0-3,5-6"));
    }

    #[test]
    fn each_refusal_says_which_cpu_and_what_there_is() {
        assert!(matches!(
            select("9"),
            Err(SelectionError::NotPresent { cpu: CpuId(9), .. })
        ));
        assert!(matches!(
            select("0,7"),
            Err(SelectionError::Offline { cpu: CpuId(7), .. })
        ));
        assert!(matches!(
            select("4"),
            Err(SelectionError::OutsideCpuset { cpu: CpuId(4), .. })
        ));
        let plain = Topology {
            isolated: set(""),
            ..topology()
        };
        let none = select_cpus(Some(&CpuList::Isolated), &plain, &set("0-3"));
        assert!(matches!(none, Err(SelectionError::NoneIsolated { .. })));
    }
}
