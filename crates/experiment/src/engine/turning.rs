//! Switches from one arm to the other, and waits until that is in force.

use super::Engine;
use crate::{Arm, ExperimentError, InForceIn, VoidReason};
use jitterscope_model::{Nanos, Subject};
use std::time::{Duration, Instant};

/// How often a wait checks whether to end.
const TURN: Duration = Duration::from_millis(50);

/// How often the check of an arm runs: it is a command, which competes with what it waits for.
const ASK: Duration = Duration::from_millis(250);

/// A look takes about this long to begin, so shorter waits are waited out.
const WORTH_A_LOOK: Duration = Duration::from_secs(5);

/// Whether an arm can be measured.
pub(super) enum Turn {
    Begins,
    Stopped,
    /// The arm was not seen to be in force in time.
    Unseen(VoidReason),
}

impl Engine<'_> {
    /// Applies or reverts, and waits until that is in force.
    pub(super) fn turn_to(&mut self, arm: Arm) -> Result<Turn, ExperimentError> {
        if self.stopped() {
            return Ok(Turn::Stopped);
        }
        if self.now != arm {
            let settles = match arm {
                Arm::A => self.of.change.revert()?,
                Arm::B => {
                    // From here on it may be applied, even if the call fails.
                    self.now = Arm::B;
                    self.of.change.apply()?
                }
            };
            (self.now, self.settles) = (arm, Some(settles));
        }
        let Some(settles) = &self.settles else {
            return Ok(Turn::Begins);
        };
        let wait = match settles {
            InForceIn::Now => Duration::ZERO,
            InForceIn::Within(time) => Duration::from_nanos(time.0),
            // The run itself checks it by the predicted culprit.
            InForceIn::Unknown => Duration::ZERO,
        };
        let turn = self.wait_for(arm, wait)?;
        if matches!(turn, Turn::Begins) {
            self.settles = None;
        }
        Ok(turn)
    }

    /// Waits until the arm is seen to be in force; without a check, for the maximum time.
    fn wait_for(&mut self, arm: Arm, wait: Duration) -> Result<Turn, ExperimentError> {
        if self.of.change.is_shown(arm) {
            return self.until_shown(arm, wait);
        }
        let until = Instant::now() + wait;
        if arm == Arm::A && wait >= WORTH_A_LOOK && self.is_back(wait)? {
            return Ok(self.begins());
        }
        while let Some(left) = left(until) {
            if self.stopped() {
                return Ok(Turn::Stopped);
            }
            self.of.observer.settling(arm, left);
            std::thread::sleep(TURN.min(left));
        }
        Ok(self.begins())
    }

    fn begins(&self) -> Turn {
        if self.stopped() {
            Turn::Stopped
        } else {
            Turn::Begins
        }
    }

    /// Runs the check of the arm until it succeeds, at least once.
    fn until_shown(&mut self, arm: Arm, longest: Duration) -> Result<Turn, ExperimentError> {
        let until = Instant::now() + longest;
        let mut asked_last = false;
        loop {
            if self.stopped() {
                return Ok(Turn::Stopped);
            }
            let stop = self.of.stop;
            let patience = left(until).unwrap_or_default().max(ASK);
            if self.of.change.shows(arm, patience, stop)? {
                return Ok(self.begins());
            }
            let Some(left) = left(until) else {
                if asked_last {
                    break;
                }
                // One last check at the end of the time.
                asked_last = true;
                continue;
            };
            self.of.observer.settling(arm, left);
            std::thread::sleep(ASK.min(left));
        }
        let within_ns = Nanos(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
        Ok(Turn::Unseen(VoidReason::NotInForce { arm, within_ns }))
    }

    /// Whether everything that the change removes, and that reappears with a delay, was seen within the longest
    /// possible time. A culprit that never existed is never seen; then all of that time passes.
    fn is_back(&mut self, longest: Duration) -> Result<bool, ExperimentError> {
        let mut missing = self.of.change.shown_by_recording();
        if missing.is_empty() {
            return Ok(false);
        }
        self.of.observer.settling(Arm::A, longest);
        let answers = self.of.answers;
        let mut seen = |culprit: &Subject| {
            missing.retain(|what| !what.removes(culprit, &answers));
            missing.is_empty()
        };
        let longest = Nanos(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
        Ok(self.of.runner.look_for(&mut seen, longest, self.of.stop)? == Some(true))
    }
}

/// The remaining time; none if it is over.
fn left(until: Instant) -> Option<Duration> {
    until
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
}
