//! Whether a pair counts.

use super::Engine;
use crate::{Arm, Predicted, VoidReason};
use jitterscope_analyze::compare::ComparedRun;
use jitterscope_model::Subject;

impl Engine<'_> {
    /// Why a run does not count: what it measured failed, or it cannot say what became of what is predicted. `None`
    /// where it can, or nothing is predicted: the total needs no names.
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

    /// Why a pair does not count: a run of it is void, or what is predicted to go was there without the change
    /// before and is not back. Then the undoing is not in force.
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

    /// Whether a run has anything of what is predicted, if it can tell.
    fn has(&self, run: &ComparedRun, what: &Predicted) -> Option<bool> {
        let meant = |culprit: &Subject| what.removes(culprit, self.of.answers);
        run.events_of(&meant).map(|events| events > 0)
    }

    fn not_back(&self, what: &Predicted) -> VoidReason {
        VoidReason::not_back(what, self.of.change.predicted().len() < 2)
    }

    /// Counts a pair. Where the very first run was with the change, nothing said yet what is there without it when
    /// the first pair was judged: it is judged anew by this one, before the first look. Returns why it does not
    /// count any longer.
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
