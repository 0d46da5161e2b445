//! Changes of catalogue knobs, made through the journal of `tune`.

use crate::{Change, ExperimentError, InForceIn, Predicted, Untried};
use jitterscope_model::Nanos;
use jitterscope_platform::Machine;
use jitterscope_tune::{
    Goal, HostWriter, InForce, InForceBy, OnDrift, OnRefusal, Op, Plan, Select, Settles, Sign,
    StateDir, Who, apply, plan, realtime_ns, rollback_only, status,
};

/// Some knobs, set for some CPUs.
#[derive(Debug)]
pub struct KnobChange {
    machine: Machine,
    dir: StateDir,
    who: Who,
    goal: Goal,
    knobs: Vec<String>,
    plan: Plan,
}

impl KnobChange {
    /// Plans the change without making it.
    ///
    /// # Errors
    /// A knob is unknown, is set already, is applied by an earlier `tune`, or cannot be set here.
    pub fn new(
        machine: &Machine,
        dir: StateDir,
        who: Who,
        goal: Goal,
        knobs: Vec<String>,
    ) -> Result<KnobChange, ExperimentError> {
        let plan = plan(machine, &goal, &Select::Only(knobs.clone()), &[], false)?;
        let standing = status(machine, &dir)?;
        let mut knobs = knobs;
        for change in &plan.changes {
            if !knobs.iter().any(|knob| knob == change.knob) {
                knobs.push(change.knob.to_owned());
            }
        }
        for knob in &knobs {
            if !standing.applied_of(std::slice::from_ref(knob)).is_empty() {
                let why = Untried::Applied;
                return Err(ExperimentError::Untried {
                    knob: knob.clone(),
                    why,
                });
            }
            if !plan.changes.iter().any(|change| change.knob == knob) {
                let why = plan.skipped.iter().find(|skipped| skipped.knob == knob);
                let why = Untried::NoChange(why.map(|skipped| skipped.why.clone()));
                return Err(ExperimentError::Untried {
                    knob: knob.clone(),
                    why,
                });
            }
        }
        Ok(KnobChange {
            machine: machine.clone(),
            dir,
            who,
            goal,
            knobs,
            plan,
        })
    }

    #[must_use]
    pub fn goal(&self) -> &Goal {
        &self.goal
    }
}

impl KnobChange {
    /// Maximum time of all its changes; `of` gives a change's settling time and the value that it replaces.
    fn longest(&self, of: impl for<'o> Fn(&InForce, &'o Op) -> (Settles, &'o str)) -> InForceIn {
        let in_force = |change: &jitterscope_tune::Change| {
            let Some(declared) = InForce::of(change.knob) else {
                return InForceIn::Now;
            };
            let (settles, replaced) = of(&declared, &change.op);
            match settles.longest(replaced) {
                Some(Nanos::ZERO) => InForceIn::Now,
                Some(time) => InForceIn::Within(time),
                None => InForceIn::Unknown,
            }
        };
        self.plan
            .changes
            .iter()
            .map(in_force)
            .fold(InForceIn::Now, InForceIn::and)
    }

    /// Undoes some of its knobs; skips those that are not applied.
    ///
    /// # Errors
    /// One of them cannot be restored.
    pub fn undo(&self, knobs: &[String]) -> Result<InForceIn, ExperimentError> {
        let ours = status(&self.machine, &self.dir)?.applied_of(knobs);
        if ours.is_empty() {
            return Ok(InForceIn::Now);
        }
        let mut hands = HostWriter::new(&self.machine);
        // A value set by another program meanwhile is kept as intended.
        let report = rollback_only(&mut hands, &self.dir, &ours, &mut |_| OnDrift::Keep)
            .map_err(|error| ExperimentError::NotReverted(error.to_string()))?;
        if let Some(left) = report.unsettled().next() {
            return Err(ExperimentError::NotUndone(Box::new(left.clone())));
        }
        let waits = report
            .steps
            .iter()
            .map(|step| wait(step.in_force_by.as_ref()));
        Ok(waits.fold(InForceIn::Now, InForceIn::and))
    }
}

fn wait(by: Option<&InForceBy>) -> InForceIn {
    match by {
        None | Some(InForceBy::Now) => InForceIn::Now,
        Some(InForceBy::AtLatest { at_realtime_ns, .. }) => {
            match at_realtime_ns.saturating_sub(realtime_ns()) {
                0 => InForceIn::Now,
                ahead => InForceIn::Within(Nanos(ahead)),
            }
        }
        Some(InForceBy::AtEvent { .. } | InForceBy::AfterReboot | InForceBy::Unknown { .. }) => {
            InForceIn::Unknown
        }
    }
}

impl Change for KnobChange {
    fn apply(&mut self) -> Result<InForceIn, ExperimentError> {
        let mut hands = HostWriter::new(&self.machine);
        let who = Who {
            at_realtime_ns: realtime_ns(),
            ..self.who.clone()
        };
        let report = apply(&mut hands, &self.dir, &self.plan, who, OnRefusal::Stop)?;
        if let Some(failed) = report.refused().next() {
            return Err(ExperimentError::Refused(Box::new(failed.clone())));
        }
        let waits = report
            .applied
            .iter()
            .map(|applied| wait(applied.in_force_by.as_ref()));
        Ok(waits.fold(InForceIn::Now, InForceIn::and))
    }

    fn revert(&mut self) -> Result<InForceIn, ExperimentError> {
        self.undo(&self.knobs)
    }

    fn shown_by_recording(&self) -> Vec<Predicted> {
        let shows = |knob: &&String| {
            InForce::of(knob).is_some_and(|declared| {
                declared.rollback != Settles::Immediately
                    && matches!(declared.shown_by, Sign::Recording(_))
            })
        };
        self.knobs
            .iter()
            .filter(shows)
            .cloned()
            .map(Predicted::Knob)
            .collect()
    }

    fn making(&self) -> InForceIn {
        self.longest(|declared, op| {
            let replaced = if let Op::Write {
                from: Some(from), ..
            } = op
            {
                from
            } else {
                ""
            };
            (declared.apply, replaced)
        })
    }

    fn undoing(&self) -> InForceIn {
        self.longest(|declared, op| {
            let replaced = if let Op::Write { to, .. } = op {
                to.as_str()
            } else {
                ""
            };
            (declared.rollback, replaced)
        })
    }

    fn predicted(&self) -> Vec<Predicted> {
        self.knobs.iter().cloned().map(Predicted::Knob).collect()
    }

    fn knobs(&self) -> &[String] {
        &self.knobs
    }

    fn describe(&self) -> String {
        self.knobs.join(", ")
    }
}
