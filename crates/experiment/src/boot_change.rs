//! Knobs that are set only at boot: one arm is measured before a reboot, the other after it.

use crate::{BootArm, Change, ExperimentError, InForceIn, Predicted, Untried};
use jitterscope_model::CpuSet;
use jitterscope_platform::Machine;
use jitterscope_tune::{
    BootLine, Cmdline, Goal, Select, SkipReason, Skipped, catalogue, online_cpus, plan,
};
use serde::{Deserialize, Serialize};

/// What must be equal in both boots, so that only the change differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The kernel's release and build.
    pub kernel: String,
    pub online: CpuSet,
    /// The kernel command line without the tried parameters.
    pub boot_line: String,
    /// The tried parameters as they appear on it.
    pub parameters: Vec<String>,
    /// The declared settings of the machine and its knobs, as `audit --write` writes them, if a person makes the change:
    /// compared by the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl Surroundings {
    /// The first difference; `None` if everything is equal.
    #[must_use]
    pub fn difference(&self, now: &Surroundings) -> Option<Difference> {
        if self.kernel != now.kernel {
            return Some(Difference::Kernel {
                before: self.kernel.clone(),
                now: now.kernel.clone(),
            });
        }
        if self.online != now.online {
            return Some(Difference::Online {
                before: self.online.clone(),
                now: now.online.clone(),
            });
        }
        (self.boot_line != now.boot_line).then(|| Difference::BootLine {
            before: self.boot_line.clone(),
            now: now.boot_line.clone(),
        })
    }
}

/// How two boots differ apart from the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The kernel's release or build.
    Kernel {
        before: String,
        now: String,
    },
    Online {
        before: CpuSet,
        now: CpuSet,
    },
    /// The kernel command line without the tried parameters.
    BootLine {
        before: String,
        now: String,
    },
}

/// Some boot parameters, for some CPUs.
#[derive(Debug)]
pub struct BootChange {
    knobs: Vec<String>,
    arm: BootArm,
    surroundings: Surroundings,
    /// How to add the parameters to the kernel command line; `None` if they are there.
    line: Option<BootLine>,
}

impl BootChange {
    /// Determines the arm of this boot; changes nothing.
    ///
    /// # Errors
    /// A knob is unknown, needs no reboot or does not exist here, or this boot has only some of them.
    pub fn new(
        machine: &Machine,
        goal: &Goal,
        knobs: Vec<String>,
    ) -> Result<BootChange, ExperimentError> {
        let now = plan(machine, goal, &Select::Only(knobs.clone()), &[], false)?;
        let of = |knob: &String| now.skipped.iter().find(|skipped| skipped.knob == knob);
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for knob in &knobs {
            let at_boot = catalogue::find(knob).is_some_and(|knob| !knob.boot.is_empty());
            match of(knob) {
                Some(Skipped {
                    why: SkipReason::AlreadySo { .. },
                    ..
                }) if at_boot => with.push(knob.clone()),
                Some(Skipped {
                    why: SkipReason::NeedsReboot { .. },
                    ..
                }) if at_boot => {
                    without.push(knob.clone());
                }
                Some(skipped) => {
                    let why = Untried::NoChange(Some(skipped.why.clone()));
                    return Err(ExperimentError::Untried {
                        knob: knob.clone(),
                        why,
                    });
                }
                None => {
                    let why = Untried::NeedsNoReboot;
                    return Err(ExperimentError::Untried {
                        knob: knob.clone(),
                        why,
                    });
                }
            }
        }
        if !with.is_empty() && !without.is_empty() {
            return Err(ExperimentError::PartInForce { with, without });
        }
        let lasting = plan(machine, goal, &Select::Only(knobs.clone()), &[], true)?;
        let arm = if without.is_empty() {
            BootArm::With
        } else {
            BootArm::Without
        };
        let parameters = lasting
            .boot
            .as_ref()
            .map_or_else(Vec::new, |line| line.add.clone());
        let surroundings = surroundings(machine, &knobs, parameters)?;
        Ok(BootChange {
            knobs,
            arm,
            surroundings,
            line: lasting.boot,
        })
    }

    #[must_use]
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// How to add the parameters to the kernel command line; `None` if they are there.
    #[must_use]
    pub fn line(&self) -> Option<&BootLine> {
        self.line.as_ref()
    }
}

pub(crate) fn surroundings(
    machine: &Machine,
    knobs: &[String],
    parameters: Vec<String>,
) -> Result<Surroundings, ExperimentError> {
    let read = |path: &str| {
        machine
            .read_trimmed(path)
            .map_err(ExperimentError::MachineUnknown)
    };
    let text = read("/proc/cmdline")?;
    let tried: Vec<&str> = knobs
        .iter()
        .filter_map(|knob| catalogue::find(knob))
        .flat_map(|knob| knob.boot)
        .map(|p| p.key)
        .collect();
    let others: Vec<&str> = text
        .split_whitespace()
        .filter(|word| !tried.contains(&word.split('=').next().unwrap_or(word)))
        .collect();
    // Parameters on the command line are reported in their spelling there.
    let line = Cmdline::parse(&text);
    let standing = || tried.iter().filter_map(|key| line.shown(key)).collect();
    Ok(Surroundings {
        kernel: format!(
            "{} {}",
            read("/proc/sys/kernel/osrelease")?,
            read("/proc/sys/kernel/version")?
        ),
        online: online_cpus(machine)?,
        boot_line: others.join(" "),
        parameters: if parameters.is_empty() {
            standing()
        } else {
            parameters
        },
        state: None,
    })
}

impl Change for BootChange {
    fn apply(&mut self) -> Result<InForceIn, ExperimentError> {
        match self.arm {
            BootArm::With => Ok(InForceIn::Now),
            _ => Err(ExperimentError::NeedsReboot {
                change: self.describe(),
            }),
        }
    }

    fn revert(&mut self) -> Result<InForceIn, ExperimentError> {
        // Nothing was changed: only a reboot sets or clears these parameters.
        Ok(InForceIn::Now)
    }

    fn undoing(&self) -> InForceIn {
        InForceIn::Unknown
    }

    fn boot(&self) -> BootArm {
        self.arm
    }

    fn predicted(&self) -> Vec<Predicted> {
        self.knobs.iter().cloned().map(Predicted::Knob).collect()
    }

    fn describe(&self) -> String {
        self.knobs.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(line: &str, isolated: &str) -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/cmdline", line),
            ("proc/sys/kernel/osrelease", "6.12.1\n"),
            ("proc/sys/kernel/version", "#1 SMP\n"),
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("sys/devices/system/cpu/present", "0-3\n"),
            ("sys/devices/system/cpu/isolated", isolated),
            ("sys/devices/system/cpu/nohz_full", "\n"),
            ("sys/devices/system/cpu/cpu0/online", "1\n"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let machine = Machine::at(dir.path());
        (dir, machine)
    }

    fn change(line: &str, isolated: &str, knobs: &[&str]) -> Result<BootChange, ExperimentError> {
        let (_dir, machine) = machine(line, isolated);
        let goal = Goal {
            isolated: "3".parse().unwrap(),
            housekeeping: "0-2".parse().unwrap(),
        };
        BootChange::new(
            &machine,
            &goal,
            knobs.iter().map(|knob| (*knob).to_owned()).collect(),
        )
    }

    #[test]
    fn a_boot_is_of_one_arm_and_nothing_else_may_differ() {
        let mut without = change("quiet root=/dev/vda", "\n", &["isolcpus-domain"]).unwrap();
        assert_eq!(without.boot(), BootArm::Without);
        assert!(without.apply().is_err(), "this boot cannot have it");
        assert_eq!(without.line().unwrap().add, ["isolcpus=domain,3"]);
        let line = "quiet isolcpus=domain,3 root=/dev/vda";
        let mut with = change(line, "3\n", &["isolcpus-domain"]).unwrap();
        assert_eq!(
            (with.boot(), with.apply().unwrap()),
            (BootArm::With, InForceIn::Now)
        );
        assert_eq!(with.surroundings().parameters, ["isolcpus=domain,3"]);
        assert_eq!(without.surroundings().difference(with.surroundings()), None);
        let other = change(
            "quiet isolcpus=domain,3 root=/dev/vdb mitigations=off",
            "3\n",
            &["isolcpus-domain"],
        );
        let reported = without
            .surroundings()
            .difference(other.unwrap().surroundings())
            .unwrap();
        assert!(
            matches!(&reported, Difference::BootLine { now, .. } if now.contains("mitigations=off")),
            "{reported:?}"
        );
        let mut newer = with.surroundings().clone();
        newer.kernel = "6.13.0 #2".into();
        let reported = without.surroundings().difference(&newer);
        assert!(matches!(reported, Some(Difference::Kernel { now, .. }) if now == "6.13.0 #2"));
        let mut fewer = with.surroundings().clone();
        fewer.online = "0-2".parse().unwrap();
        let reported = without.surroundings().difference(&fewer);
        assert!(
            matches!(reported, Some(Difference::Online { now, .. }) if now.to_string() == "0-2")
        );
    }

    #[test]
    fn what_needs_no_reboot_or_is_there_in_part_is_refused() {
        let part = change(
            "isolcpus=domain,3",
            "3\n",
            &["isolcpus-domain", "isolcpus-managed"],
        )
        .unwrap_err();
        assert!(
            part.to_string().contains("isolcpus-managed is not"),
            "{part}"
        );
        assert!(change("quiet", "\n", &["vmstat"]).is_err());
    }
}
