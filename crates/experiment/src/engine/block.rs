//! Experiments whose undoing takes longer than the longest wait: all runs without the change, then all runs with it.

use super::turning::Turn;
use super::{Ended, Engine, Outcome};
use crate::{Arm, BootArm, ExperimentError, VoidReason};
use jitterscope_analyze::compare::{ALPHA, Design};
use std::path::PathBuf;

impl Engine<'_> {
    /// Makes the missing runs of both arms, those without the change first, because they are impossible once it was
    /// made. After a break the change is made and waited for again before the next run with it.
    pub(super) fn one_after_the_other(&mut self) -> Result<Outcome, ExperimentError> {
        let runs = self.of.rules.looks.first().pairs;
        self.go_on()?;
        for arm in [Arm::A, Arm::B] {
            if self.runs[arm as usize].len() >= runs {
                continue;
            }
            match (arm, self.of.change.boot()) {
                (Arm::B, BootArm::Without) => {
                    return Ok(self.outcome(Ended::AwaitsReboot, false, None));
                }
                (Arm::A, BootArm::With) => {
                    let made = self.runs[0].len();
                    let (made, wanted) = (made as u64, runs as u64);
                    self.void
                        .push(VoidReason::TooFewBeforeReboot { made, wanted }.into());
                    return Ok(self.outcome(Ended::Unseen, false, None));
                }
                _ => {}
            }
            match self.turn_to(arm)? {
                Turn::Begins => {}
                Turn::Stopped => return Ok(self.outcome(Ended::Stopped, false, None)),
                Turn::Unseen(why) => {
                    self.void.push(why.into());
                    return Ok(self.outcome(Ended::Unseen, false, None));
                }
            }
            while self.runs[arm as usize].len() < runs {
                if self.void.len() > self.of.rules.most_void {
                    return Ok(self.outcome(Ended::Void, false, None));
                }
                self.of
                    .observer
                    .measuring(self.runs[arm as usize].len(), arm);
                let Some(run) = self.of.runner.measure(arm, self.of.stop)? else {
                    return Ok(self.outcome(Ended::Stopped, false, None));
                };
                let void = self.run_is_void(arm, &run);
                self.of
                    .session
                    .add_run(arm, PathBuf::from(&run.path), void.clone())?;
                match void {
                    Some(why) => {
                        self.of.observer.void(&why);
                        self.void.push(why.into());
                    }
                    None => self.runs[arm as usize].push(run),
                }
                self.of
                    .observer
                    .measured(arm, self.runs[arm as usize].len(), runs);
            }
        }
        let found = self.compare(Design::Blocks, ALPHA)?;
        self.decide(&found, runs);
        Ok(self.outcome(Ended::LastLook, false, Some(found)))
    }

    /// Takes earlier runs. Runs of another boot are left out, which is reported: everything that a reboot changes would
    /// otherwise be part of the difference between the arms, or within one.
    fn go_on(&mut self) -> Result<(), ExperimentError> {
        let block = std::mem::take(&mut self.of.session.block);
        // If the change needs a reboot, all runs of the arm without it are from one other boot.
        let without = block
            .iter()
            .rev()
            .find(|run| run.arm == Arm::A)
            .map(|run| run.boot_id.clone());
        let across = self.of.change.boot() == BootArm::With;
        for made in block {
            let belongs = across && made.arm == Arm::A && Some(&made.boot_id) == without.as_ref();
            if made.boot_id != self.of.session.boot_id && !belongs {
                self.left_out += 1;
                continue;
            }
            match &made.void {
                Some(why) => self.void.push(why.clone()),
                None => {
                    let run = self.of.runner.load(&made.run)?;
                    self.runs[made.arm as usize].push(run);
                }
            }
            self.of.session.block.push(made);
        }
        Ok(())
    }
}
