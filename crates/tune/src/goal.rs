//! The CPUs to isolate, and the housekeeping CPUs.

use jitterscope_model::{CpuId, CpuSet};
use jitterscope_platform::Machine;
use schemars::JsonSchema;
use serde::Serialize;

/// The CPUs that tuning is for. `isolated` and `housekeeping` are disjoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Goal {
    pub isolated: CpuSet,
    /// Online CPUs that take over the moved work; empty only for an audit of every CPU.
    pub housekeeping: CpuSet,
}

/// Why CPUs are chosen if the user named none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultCpus {
    /// The kernel isolates them.
    Isolated,
    /// No CPU is isolated, and this is the highest one.
    Highest,
}

/// Why a goal is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    #[error("no CPU to isolate was named: use --cpus")]
    Empty,
    /// CPUs that the machine does not have, or that are offline.
    #[error("CPU {missing} is not online (online: {online})")]
    NotOnline { missing: CpuSet, online: CpuSet },
    /// No housekeeping CPU would be left.
    #[error(
        "isolating CPUs {all} would isolate every online CPU: omit at least one for housekeeping"
    )]
    EveryCpu { all: CpuSet },
    #[error(
        "CPU 0 cannot be isolated here: the kernel cannot take it offline (no cpu0/online), and runs timekeeping and boot-time work on it; choose other CPUs"
    )]
    BootCpu,
    /// The list of online CPUs cannot be read.
    #[error("cannot determine which CPUs are online: {0}")]
    Unknown(String),
}

/// The online CPUs.
///
/// # Errors
/// `/sys/devices/system/cpu/online` is missing or unreadable.
pub fn online_cpus(machine: &Machine) -> Result<CpuSet, GoalError> {
    let text = machine
        .read_trimmed("/sys/devices/system/cpu/online")
        .map_err(|e| GoalError::Unknown(e.to_string()))?;
    text.parse()
        .map_err(|e: jitterscope_model::CpuListError| GoalError::Unknown(e.to_string()))
}

impl Goal {
    /// A goal for an audit only: any online CPUs, including all of them.
    ///
    /// # Errors
    /// The list is empty or names a CPU that is not online.
    pub fn to_audit(machine: &Machine, isolated: CpuSet) -> Result<Goal, GoalError> {
        if isolated.is_empty() {
            return Err(GoalError::Empty);
        }
        let online = online_cpus(machine)?;
        let missing = isolated.difference(&online);
        if !missing.is_empty() {
            return Err(GoalError::NotOnline { missing, online });
        }
        let housekeeping = online.difference(&isolated);
        Ok(Goal {
            isolated,
            housekeeping,
        })
    }

    /// A goal for changing the machine.
    ///
    /// # Errors
    /// As for [`Goal::to_audit`]; also if no housekeeping CPU would be left, or CPU 0 is named on a machine whose
    /// kernel does not release it.
    pub fn to_apply(machine: &Machine, isolated: CpuSet) -> Result<Goal, GoalError> {
        let goal = Goal::to_audit(machine, isolated)?;
        if goal.housekeeping.is_empty() {
            return Err(GoalError::EveryCpu { all: goal.isolated });
        }
        if goal.isolated.contains(CpuId(0))
            && !machine.exists("/sys/devices/system/cpu/cpu0/online")
        {
            return Err(GoalError::BootCpu);
        }
        Ok(goal)
    }

    /// The largest part of `measured` that can be isolated: all except a boot CPU that the kernel never releases, and
    /// except the lowest if no other CPU would be left; `None` if none can.
    #[must_use]
    pub fn for_advice(machine: &Machine, measured: &CpuSet) -> Option<Goal> {
        let lowest: CpuSet = measured.first().into_iter().collect();
        let tries = [measured.clone(), measured.difference(&lowest)];
        tries
            .into_iter()
            .find_map(|cpus| Goal::to_apply(machine, cpus).ok())
    }

    /// The default CPUs if the user names none: those that the kernel isolates, or else the highest one; and which of
    /// the two.
    ///
    /// # Errors
    /// The list of online CPUs cannot be read.
    pub fn default_cpus(machine: &Machine) -> Result<(CpuSet, DefaultCpus), GoalError> {
        let online = online_cpus(machine)?;
        let isolated = machine
            .read_trimmed("/sys/devices/system/cpu/isolated")
            .ok()
            .and_then(|text| text.parse::<CpuSet>().ok())
            .unwrap_or_default()
            .intersection(&online);
        if !isolated.is_empty() {
            return Ok((isolated, DefaultCpus::Isolated));
        }
        Ok((online.last().into_iter().collect(), DefaultCpus::Highest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(online: &str) -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        let cpu = dir.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&cpu).unwrap();
        std::fs::write(cpu.join("online"), online).unwrap();
        let machine = Machine::at(dir.path());
        (dir, machine)
    }

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn every_cpu_and_the_boot_cpu_are_refused() {
        let (dir, m) = machine("0-3\n");
        assert_eq!(
            Goal::to_apply(&m, cpus("2-3")).unwrap().housekeeping,
            cpus("0-1")
        );
        assert!(matches!(
            Goal::to_apply(&m, cpus("0-3")),
            Err(GoalError::EveryCpu { .. })
        ));
        assert_eq!(Goal::to_apply(&m, cpus("0")), Err(GoalError::BootCpu));
        assert!(matches!(
            Goal::to_apply(&m, cpus("4")),
            Err(GoalError::NotOnline { .. })
        ));
        assert_eq!(Goal::to_apply(&m, cpus("")), Err(GoalError::Empty));
        assert!(
            Goal::to_audit(&m, cpus("0-3"))
                .unwrap()
                .housekeeping
                .is_empty()
        );
        // A kernel that can take CPU 0 offline also allows isolating it.
        std::fs::create_dir_all(dir.path().join("sys/devices/system/cpu/cpu0")).unwrap();
        std::fs::write(dir.path().join("sys/devices/system/cpu/cpu0/online"), "1\n").unwrap();
        assert!(Goal::to_apply(&m, cpus("0")).is_ok());
    }

    #[test]
    fn advice_is_for_cpus_that_a_plan_takes() {
        let (dir, m) = machine("0-3\n");
        let advised = |list: &str| Goal::for_advice(&m, &cpus(list)).map(|g| g.isolated);
        assert_eq!(advised("2-3"), Some(cpus("2-3")));
        assert_eq!(advised("0-3"), Some(cpus("1-3")));
        assert_eq!(advised("0,2"), Some(cpus("2")), "the kernel keeps CPU 0");
        assert_eq!(advised("0"), None);
        assert_eq!(advised("7"), None);
        std::fs::create_dir_all(dir.path().join("sys/devices/system/cpu/cpu0")).unwrap();
        std::fs::write(dir.path().join("sys/devices/system/cpu/cpu0/online"), "1\n").unwrap();
        assert_eq!(advised("0-3"), Some(cpus("1-3")));
        assert_eq!(advised("0,2"), Some(cpus("0,2")));
    }

    #[test]
    fn the_default_is_what_the_kernel_isolates_else_the_highest() {
        let (dir, m) = machine("0-3\n");
        assert_eq!(Goal::default_cpus(&m).unwrap().0, cpus("3"));
        std::fs::write(dir.path().join("sys/devices/system/cpu/isolated"), "1-2\n").unwrap();
        assert_eq!(Goal::default_cpus(&m).unwrap().0, cpus("1-2"));
    }
}
