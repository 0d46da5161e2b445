//! Whether a pair counts.

use super::Engine;
use crate::{Arm, Predicted, VoidReason};
use jitterscope_analyze::compare::ComparedRun;
use jitterscope_model::Subject;

impl Engine<'_> {
    /// Why a run does not count: its command failed, or it cannot show what became of the predicted culprits. `None` if
    /// it counts. Without a prediction it always can: the total needs no names.
    pub(super) fn run_is_void(&self, arm: Arm, run: &ComparedRun) -> Option<VoidReason> {
        if let Some(status) = &run.failed {
            return Some(VoidReason::CommandFailed {
                arm,
                status: status.clone(),
            });
        }
        if self.of.change.predicted().is_empty() || run.events_of(&|_| true).is_some() {
            return None;
        }
        Some(VoidReason::NamesNobody {
            arm,
            doubts: run.doubts.clone(),
        })
    }

    /// Why a pair does not count: one of its runs is void, or a predicted culprit that an earlier run without the
    /// change had is missing in this pair's run without it. Then the undoing is not in force.
    pub(super) fn is_void(&self, a: &ComparedRun, b: &ComparedRun) -> Option<VoidReason> {
        let unnamed = self
            .run_is_void(Arm::A, a)
            .or_else(|| self.run_is_void(Arm::B, b));
        let missing = || {
            let gone = |what: &&Predicted| {
                self.runs[0]
                    .iter()
                    .any(|run| self.has(run, what) == Some(true))
                    && self.has(a, what) == Some(false)
            };
            self.of
                .change
                .predicted()
                .iter()
                .find(gone)
                .map(|what| self.not_back(what))
        };
        unnamed.or_else(missing)
    }

    /// Whether a run contains a predicted culprit, if it can show that.
    fn has(&self, run: &ComparedRun, what: &Predicted) -> Option<bool> {
        let meant = |culprit: &Subject| what.removes(culprit, self.of.answers);
        run.events_of(&meant).map(|events| events > 0)
    }

    fn not_back(&self, what: &Predicted) -> VoidReason {
        VoidReason::not_back(what, self.of.change.predicted().len() < 2)
    }

    /// Counts a pair. If the very first run was with the change, it was unknown which culprits exist without it when
    /// the first pair was judged. So the next pair judges it again, before the first look. Returns why it no longer
    /// counts.
    pub(super) fn count(
        &mut self,
        number: usize,
        order: [Arm; 2],
        [a, b]: [ComparedRun; 2],
    ) -> Option<VoidReason> {
        let mut why = None;
        if self.unsure && self.runs[0].len() < self.of.rules.looks.first().pairs {
            let first = &self.runs[0][0];
            let late = |what: &&Predicted| {
                self.has(&a, what) == Some(true) && self.has(first, what) == Some(false)
            };
            why = self
                .of
                .change
                .predicted()
                .iter()
                .find(late)
                .map(|what| self.not_back(what));
        }
        if let Some(why) = &why {
            self.unsure = false;
            for runs in &mut self.runs {
                runs.remove(0);
            }
            self.void.push(why.clone().into());
        }
        if number == 0 {
            self.unsure = order[0] == Arm::B;
        }
        self.runs[0].push(a);
        self.runs[1].push(b);
        why
    }
}
