//! A change that a person makes by hand between the arms, as in a machine's firmware, with a reboot or a power cycle if it
//! needs one.

use crate::boot_change::surroundings;
use crate::{BootArm, Change, ExperimentError, InForceIn, Predicted, Surroundings};
use jitterscope_platform::Machine;

/// A change in the user's words. Nothing here makes or checks it; everything else is compared.
#[derive(Debug)]
pub struct ManualChange {
    what: String,
    removes: Vec<Predicted>,
    is_made: bool,
    surroundings: Surroundings,
}

impl ManualChange {
    /// A change described by `what`, which should remove `removes`; `is_made`: the user says that it is in force.
    ///
    /// # Errors
    /// What the arms are compared by cannot be read.
    pub fn new(
        machine: &Machine,
        what: &str,
        removes: Vec<Predicted>,
        is_made: bool,
    ) -> Result<ManualChange, ExperimentError> {
        Ok(ManualChange {
            what: what.to_owned(),
            removes,
            is_made,
            surroundings: surroundings(machine, &[], Vec::new())?,
        })
    }

    /// The kernel, its command line and the online CPUs.
    #[must_use]
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }
}

impl Change for ManualChange {
    fn apply(&mut self) -> Result<InForceIn, ExperimentError> {
        match self.is_made {
            true => Ok(InForceIn::Now),
            false => Err(ExperimentError::NeedsReboot {
                change: self.describe(),
            }),
        }
    }

    fn revert(&mut self) -> Result<InForceIn, ExperimentError> {
        // Whoever made it undoes it.
        Ok(InForceIn::Now)
    }

    fn undoing(&self) -> InForceIn {
        InForceIn::Unknown
    }

    fn boot(&self) -> BootArm {
        match self.is_made {
            true => BootArm::With,
            false => BootArm::Without,
        }
    }

    fn predicted(&self) -> Vec<Predicted> {
        self.removes.clone()
    }

    fn describe(&self) -> String {
        self.what.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_says_whether_it_is_made() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/cmdline", "quiet isolcpus=3\n"),
            ("proc/sys/kernel/osrelease", "6.12.1\n"),
            ("proc/sys/kernel/version", "#1 SMP\n"),
            ("sys/devices/system/cpu/online", "0-3\n"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let machine = Machine::at(dir.path());
        let of = |is_made| ManualChange::new(&machine, "turbo off", Vec::new(), is_made).unwrap();
        let (mut before, mut after) = (of(false), of(true));
        assert_eq!(before.boot(), BootArm::Without);
        assert_eq!(after.boot(), BootArm::With);
        assert!(before.apply().is_err());
        assert_eq!(after.apply().unwrap(), InForceIn::Now);
        // The whole command line must be equal.
        assert_eq!(before.surroundings().boot_line, "quiet isolcpus=3");
        assert_eq!(before.surroundings().difference(after.surroundings()), None);
    }
}
