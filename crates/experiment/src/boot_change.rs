//! Knobs that are set at boot only: one arm is measured before a reboot, the other after it.

use crate::{BootArm, Change, ExperimentError, InForceIn, Predicted};
use jitterscope_model::CpuSet;
use jitterscope_platform::Machine;
use jitterscope_tune::{Because, BootLine, Cmdline, Goal, Select, catalogue, online_cpus, plan};
use serde::{Deserialize, Serialize};

/// What must be the same in both boots for their difference to be the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The kernel's release and build.
    pub kernel: String,
    /// CPUs that are online.
    pub online: CpuSet,
    /// The boot line without the parameters that are tried.
    pub boot_line: String,
    /// The parameters that are tried, as they are to stand on it.
    pub parameters: Vec<String>,
}

impl Surroundings {
    /// What is other than it was; `None` where all is the same.
    #[must_use]
    pub fn difference(&self, now: &Surroundings) -> Option<String> {
        let said = |text: &str| if text.is_empty() { "nothing".to_owned() } else { format!("\"{text}\"") };
        if self.kernel != now.kernel {
            return Some(format!("the kernel was {} and is {}", self.kernel, now.kernel));
        }
        if self.online != now.online {
            return Some(format!("CPUs {} were online and {} are", self.online, now.online));
        }
        let (before, after) = (said(&self.boot_line), said(&now.boot_line));
        (before != after)
            .then(|| format!("beside what is tried the kernel's command line said {before} and says {after}"))
    }
}

/// Some boot parameters, for some CPUs.
#[derive(Debug)]
pub struct BootChange {
    knobs: Vec<String>,
    arm: BootArm,
    surroundings: Surroundings,
    /// How they get onto the boot line; none where they stand there.
    line: Option<BootLine>,
}

impl BootChange {
    /// Looks which arm this boot is of; changes nothing.
    ///
    /// # Errors
    /// A knob is unknown, needs no reboot or is not there, or this boot has some of them.
    pub fn new(machine: &Machine, goal: &Goal, knobs: Vec<String>) -> Result<BootChange, ExperimentError> {
        let now = plan(machine, goal, &Select::Only(knobs.clone()), &[], false)?;
        let of = |knob: &String| now.skipped.iter().find(|skipped| skipped.knob == knob);
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for knob in &knobs {
            let at_boot = catalogue::find(knob).is_some_and(|knob| !knob.boot.is_empty());
            match of(knob) {
                Some(skipped) if at_boot && skipped.because == Because::AlreadySo => with.push(knob.as_str()),
                Some(skipped) if at_boot && skipped.because == Because::NeedsReboot => {
                    without.push(knob.as_str());
                }
                Some(skipped) => return Err(refused(format!("{knob}: {}", skipped.why))),
                None => {
                    return Err(refused(format!("{knob} needs no reboot: try it without --across-reboot")));
                }
            }
        }
        if !with.is_empty() && !without.is_empty() {
            return Err(refused(format!(
                "{} is in force in this boot and {} is not: each boot of the experiment has all of them or none",
                with.join(", "),
                without.join(", ")
            )));
        }
        let lasting = plan(machine, goal, &Select::Only(knobs.clone()), &[], true)?;
        let arm = if without.is_empty() { BootArm::With } else { BootArm::Without };
        let parameters = lasting.boot.as_ref().map_or_else(Vec::new, |line| line.add.clone());
        let surroundings = surroundings(machine, &knobs, parameters)?;
        Ok(BootChange { knobs, arm, surroundings, line: lasting.boot })
    }

    /// What this boot is like.
    #[must_use]
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// How the parameters get onto the boot line; none where they stand there.
    #[must_use]
    pub fn line(&self) -> Option<&BootLine> {
        self.line.as_ref()
    }
}

fn refused(why: String) -> ExperimentError {
    ExperimentError::NotApplied(why)
}

fn surroundings(
    machine: &Machine,
    knobs: &[String],
    parameters: Vec<String>,
) -> Result<Surroundings, ExperimentError> {
    let read = |path: &str| {
        machine.read_trimmed(path).map_err(|error| refused(format!("the machine cannot be told by: {error}")))
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
    // Parameters that stand on the line are reported as they stand there.
    let line = Cmdline::parse(&text);
    let standing = || tried.iter().filter_map(|key| line.shown(key)).collect();
    Ok(Surroundings {
        kernel: format!("{} {}", read("/proc/sys/kernel/osrelease")?, read("/proc/sys/kernel/version")?),
        online: online_cpus(machine).map_err(|error| refused(error.to_string()))?,
        boot_line: others.join(" "),
        parameters: if parameters.is_empty() { standing() } else { parameters },
    })
}

impl Change for BootChange {
    fn apply(&mut self) -> Result<InForceIn, ExperimentError> {
        match self.arm {
            BootArm::With => Ok(InForceIn::Now),
            _ => Err(refused(format!("{} needs a reboot", self.describe()))),
        }
    }

    fn revert(&mut self) -> Result<InForceIn, ExperimentError> {
        // Nothing was changed: a reboot did that, and another one undoes it.
        Ok(InForceIn::Now)
    }

    fn undoing(&self) -> InForceIn {
        InForceIn::Unknown("it is after a reboot".into())
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
        let goal = Goal { isolated: "3".parse().unwrap(), housekeeping: "0-2".parse().unwrap() };
        BootChange::new(&machine, &goal, knobs.iter().map(|knob| (*knob).to_owned()).collect())
    }

    #[test]
    fn a_boot_is_of_one_arm_and_nothing_else_may_differ() {
        let mut without = change("quiet root=/dev/vda", "\n", &["isolcpus-domain"]).unwrap();
        assert_eq!(without.boot(), BootArm::Without);
        assert!(without.apply().is_err(), "this boot cannot have it");
        assert_eq!(without.line().unwrap().add, ["isolcpus=domain,3"]);
        let line = "quiet isolcpus=domain,3 root=/dev/vda";
        let mut with = change(line, "3\n", &["isolcpus-domain"]).unwrap();
        assert_eq!((with.boot(), with.apply().unwrap()), (BootArm::With, InForceIn::Now));
        assert_eq!(with.surroundings().parameters, ["isolcpus=domain,3"]);
        assert_eq!(without.surroundings().difference(with.surroundings()), None);
        let other =
            change("quiet isolcpus=domain,3 root=/dev/vdb mitigations=off", "3\n", &["isolcpus-domain"]);
        let told = without.surroundings().difference(other.unwrap().surroundings()).unwrap();
        assert!(told.contains("mitigations=off"), "{told}");
        let mut newer = with.surroundings().clone();
        newer.kernel = "6.13.0 #2".into();
        assert!(without.surroundings().difference(&newer).unwrap().contains("6.13.0"));
        let mut fewer = with.surroundings().clone();
        fewer.online = "0-2".parse().unwrap();
        assert!(without.surroundings().difference(&fewer).unwrap().contains("0-2"));
    }

    #[test]
    fn what_needs_no_reboot_or_is_there_in_part_is_refused() {
        let part = change("isolcpus=domain,3", "3\n", &["isolcpus-domain", "isolcpus-managed"]).unwrap_err();
        assert!(part.to_string().contains("isolcpus-managed is not"), "{part}");
        assert!(change("quiet", "\n", &["vmstat"]).is_err());
    }
}
