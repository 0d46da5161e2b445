//! Makes pairs until they decide.

mod block;
mod judging;
mod turning;
mod verified;

use crate::{
    Arm, BootArm, Change, ExperimentError, InForceIn, Pair, Predicted, Session, VoidReason, order,
};
use jitterscope_analyze::compare::{
    ComparedRun, Comparison, Design, Diff, DiffRules, Looks, PlannedRow, Side, Verdict, diff,
    is_futile,
};
use jitterscope_model::{AnyVersion, Nanos, SCHEMA_VERSION, Subject};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use turning::Turn;
pub use verified::Verified;
use verified::verified;

/// Makes the runs of an experiment: measures a probe or a command under one arm at a time.
pub trait Runner {
    /// Makes a run; `None` if it was stopped before its end.
    ///
    /// # Errors
    /// The run cannot be measured.
    fn measure(
        &mut self,
        arm: Arm,
        stop: &AtomicBool,
    ) -> Result<Option<ComparedRun>, ExperimentError>;

    /// Watches until `seen` is true of a culprit, for a limited time, and returns whether it was. `None`: it cannot
    /// watch.
    ///
    /// # Errors
    /// The machine cannot be measured.
    fn look_for(
        &mut self,
        _seen: &mut (dyn FnMut(&Subject) -> bool + Send),
        _at_most: Nanos,
        _stop: &AtomicBool,
    ) -> Result<Option<bool>, ExperimentError> {
        Ok(None)
    }

    /// Reads an earlier run.
    ///
    /// # Errors
    /// It cannot be read.
    fn load(&mut self, path: &Path) -> Result<ComparedRun, ExperimentError>;
}

pub trait Observer {
    fn measuring(&mut self, _pair: usize, _arm: Arm) {}

    /// Waiting until a change or its undoing is in force.
    fn settling(&mut self, _arm: Arm, _left: Duration) {}

    /// A pair is complete: the number that count, and the number at which the next look happens.
    fn paired(&mut self, _counted: usize) {}

    /// A run is complete and the arms are not interleaved: how many of its arm count, and how many are needed.
    fn measured(&mut self, _arm: Arm, _counted: usize, _of: usize) {}

    /// A pair, or a run without interleaving, does not count, and why.
    fn void(&mut self, _why: &VoidReason) {}
}

impl Observer for () {}

/// Rules that are fixed before anything is measured.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// When the looks and the end are.
    pub looks: Looks,
    /// Relative difference that counts as no difference.
    pub margin: f64,
    /// The longest wait until a change or its undoing is in force; if more is needed, the arms are not interleaved.
    pub longest_wait: Nanos,
    /// The experiment ends after more void pairs than this.
    pub most_void: usize,
    /// No pair begins after this.
    pub deadline: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Every question is decided.
    Decided,
    LastLook,
    /// More pairs would hardly decide anything.
    Futile,
    /// Too many pairs were void.
    Void,
    /// Without interleaving: the change was not seen to be in force, so nothing more was measured with it. The last
    /// void reason says why.
    Unseen,
    /// The arm without the change is measured; the other one needs a reboot.
    AwaitsReboot,
    /// No time was left for another pair.
    Deadline,
    /// It was stopped and can be resumed.
    Stopped,
}

/// A question that was fixed before anything was measured. In JSON it is its title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Asked {
    /// A total: `total`, or one of several.
    Total(String),
    /// A predicted culprit, by kind and name.
    Culprit(String),
}

impl Asked {
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Asked::Total(title) | Asked::Culprit(title) => title,
        }
    }
}

/// A decided question; a decision at a look is final.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Decision {
    pub what: Asked,
    /// The verdict on the total or on a predicted culprit.
    pub verdict: Verdict,
    /// The number of pairs when it was decided.
    pub pairs: usize,
}

/// The result of an experiment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    pub ended: Ended,
    pub pairs: usize,
    /// Why the void ones do not count.
    pub void: Vec<AnyVersion<VoidReason>>,
    /// Runs made before a reboot and left out, because a reboot changes more than the tested change.
    pub left_out_runs: u64,
    /// Whether the arms were interleaved. If not, the difference contains any drift.
    pub interleaved: bool,
    /// Whether a reboot lies between the arms. The difference then contains its other effects, too.
    pub across_reboot: bool,
    pub decisions: Vec<Decision>,
    /// Whether the change does what it declares.
    pub verified: Verified,
    /// The culprits that took over the time of the predicted ones, by kind and name; empty unless `verified` says that it
    /// moved, and if the total alone shows it.
    pub moved_to: Vec<String>,
    /// The last comparison, with the rows of decided questions from the looks that decided them; none before the first
    /// look. In JSON, view adds it with its words.
    #[serde(skip)]
    pub diff: Option<Diff>,
}

/// The input of an experiment.
pub struct Experiment<'e> {
    pub change: &'e mut dyn Change,
    pub runner: &'e mut dyn Runner,
    pub session: &'e mut Session,
    pub rules: Rules,
    /// Whether a knob declares that it removes a culprit.
    pub answers: &'e (dyn Fn(&str, &Subject) -> bool + Sync),
    pub observer: &'e mut dyn Observer,
    /// Set by the caller to end it.
    pub stop: &'e AtomicBool,
}

/// Whether the arms are interleaved: the undoing takes no longer than the longest wait.
#[must_use]
pub fn interleaves(change: &dyn Change, rules: &Rules) -> bool {
    match change.undoing() {
        InForceIn::Now => true,
        InForceIn::Within(time) => time <= rules.longest_wait,
        InForceIn::Unknown => false,
    }
}

/// Runs the experiment. The change is always reverted when this returns.
///
/// # Errors
/// A run cannot be made, or a change cannot be applied or reverted. The session contains what was measured.
pub fn run(experiment: Experiment<'_>) -> Result<Outcome, ExperimentError> {
    let mut engine = Engine {
        of: experiment,
        now: Arm::A,
        settles: None,
        runs: [Vec::new(), Vec::new()],
        unsure: false,
        void: Vec::new(),
        left_out: 0,
        decisions: Vec::new(),
        decided: Vec::new(),
    };
    let made = engine.make();
    match (made, engine.of.change.revert()) {
        (made, Ok(_)) => made,
        (Ok(_), Err(left)) => Err(left),
        // What went wrong first is often the cause of the second.
        (Err(first), Err(left)) => Err(ExperimentError::Left {
            first: Box::new(first),
            left: Box::new(left),
        }),
    }
}

/// The names of the predicted culprits in a comparison.
fn names(predicted: &[Predicted]) -> Vec<String> {
    predicted.iter().map(ToString::to_string).collect()
}

struct Engine<'e> {
    of: Experiment<'e>,
    now: Arm,
    /// When that arm is in force, if it was not seen to be.
    settles: Option<InForceIn>,
    runs: [Vec<ComparedRun>; 2],
    /// Whether the first of `runs` are the first pair, and its run without the change followed the one with it.
    unsure: bool,
    void: Vec<AnyVersion<VoidReason>>,
    /// Earlier runs that cannot be used.
    left_out: u64,
    decisions: Vec<Decision>,
    /// The row of each decision, as the look that decided it found it.
    decided: Vec<PlannedRow>,
}

impl Engine<'_> {
    fn make(&mut self) -> Result<Outcome, ExperimentError> {
        if !interleaves(&*self.of.change, &self.of.rules) {
            return self.one_after_the_other();
        }
        for at in 0..self.of.session.pairs.len() {
            let Pair {
                a, b, void, order, ..
            } = self.of.session.pairs[at].clone();
            match (void, a, b) {
                (Some(why), ..) => self.void.push(why),
                (None, None, _) | (None, _, None) => self.void.push(VoidReason::NotMeasured.into()),
                (None, Some(a), Some(b)) => {
                    let (a, b) = (self.of.runner.load(&a)?, self.of.runner.load(&b)?);
                    self.count(at, order, [a, b]);
                    // Looks of an earlier session count as looks.
                    if self.of.rules.looks.at(self.runs[0].len()).is_some() {
                        self.look(self.runs[0].len(), true)?;
                    }
                }
            }
        }
        let mut last: Option<Diff> = None;
        loop {
            let counted = self.runs[0].len();
            if let Some(look) = self.of.rules.looks.at(counted) {
                let found = self.look(look.pairs, true)?;
                let decided = self.is_decided(&found);
                last = Some(found);
                if decided {
                    return Ok(self.outcome(Ended::Decided, true, last));
                }
            }
            if counted >= self.of.rules.looks.last().pairs {
                return Ok(self.outcome(Ended::LastLook, true, last));
            }
            if self.is_futile() {
                let found = self.look(counted, true)?;
                return Ok(self.outcome(Ended::Futile, true, Some(found)));
            }
            if self.void.len() > self.of.rules.most_void {
                return Ok(self.outcome(Ended::Void, true, last));
            }
            if self
                .of
                .rules
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
            {
                return Ok(self.outcome(Ended::Deadline, true, last));
            }
            if !self.pair()? {
                return Ok(self.outcome(Ended::Stopped, true, last));
            }
        }
    }

    /// Makes one pair; returns false if it was stopped.
    fn pair(&mut self) -> Result<bool, ExperimentError> {
        let number = self.of.session.pairs.len();
        let order = order(self.of.session.header.seed, number);
        let mut made: [Option<ComparedRun>; 2] = [None, None];
        for arm in order {
            match self.turn_to(arm)? {
                Turn::Begins => {}
                Turn::Stopped => return Ok(false),
                Turn::Unseen(why) => {
                    let pair = Pair {
                        pair: number,
                        order,
                        a: None,
                        b: None,
                        void: Some(why.clone().into()),
                    };
                    self.of.session.add(pair)?;
                    self.of.observer.void(&why);
                    self.of.observer.paired(self.runs[0].len());
                    self.void.push(why.into());
                    return Ok(true);
                }
            }
            self.of.observer.measuring(number, arm);
            let Some(run) = self.of.runner.measure(arm, self.of.stop)? else {
                return Ok(false);
            };
            made[arm as usize] = Some(run);
        }
        let [Some(a), Some(b)] = made else {
            return Ok(false);
        };
        let void = self.is_void(&a, &b);
        let path = |run: &ComparedRun| Some(PathBuf::from(&run.path));
        let kept = void.clone().map(AnyVersion::from);
        self.of.session.add(Pair {
            pair: number,
            order,
            a: path(&a),
            b: path(&b),
            void: kept,
        })?;
        let void = match void {
            Some(why) => {
                self.void.push(why.clone().into());
                Some(why)
            }
            None => self.count(number, order, [a, b]),
        };
        if let Some(why) = &void {
            self.of.observer.void(why);
        }
        self.of.observer.paired(self.runs[0].len());
        Ok(true)
    }

    fn stopped(&self) -> bool {
        self.of.stop.load(Ordering::Relaxed)
    }

    /// Compares the runs so far at the alpha of this look; with `spend`, its decisions are final.
    fn look(&mut self, pairs: usize, spend: bool) -> Result<Diff, ExperimentError> {
        let alpha = self.of.rules.looks.due(pairs).alpha;
        let found = self.compare(Design::Paired, alpha)?;
        if spend {
            self.decide(&found, pairs);
        }
        Ok(found)
    }

    fn sides(&self) -> Result<[Side; 2], ExperimentError> {
        let side = |arm: Arm, name: &str| {
            Side::of_arm(name, self.runs[arm as usize].clone()).map_err(|error| {
                ExperimentError::Run {
                    arm: if arm == Arm::A { 'A' } else { 'B' },
                    why: error.to_string(),
                }
            })
        };
        Ok([
            side(Arm::A, "without")?,
            side(Arm::B, &self.of.change.describe())?,
        ])
    }

    fn compare(&self, design: Design, alpha: f64) -> Result<Diff, ExperimentError> {
        let sides = self.sides()?;
        let rules = DiffRules {
            design: Some(design),
            alpha,
            margin: self.of.rules.margin,
        };
        let predicted = self.of.change.predicted();
        Ok(diff(
            &sides,
            rules,
            &names(&predicted),
            &self.by_name(&predicted),
        ))
    }

    /// Whether the thing with this name should remove a culprit: a predicted one, or a knob that differs between the
    /// machines.
    fn by_name<'a>(&'a self, predicted: &'a [Predicted]) -> impl Fn(&str, &Subject) -> bool + 'a {
        let names = names(predicted);
        move |name, culprit| match names.iter().position(|of| of == name) {
            Some(at) => predicted[at].removes(culprit, self.of.answers),
            None => (self.of.answers)(name, culprit),
        }
    }

    fn decide(&mut self, found: &Diff, pairs: usize) {
        for (what, comparison) in primary(found) {
            if self.has_decided(&what) || !is_decided(comparison) {
                continue;
            }
            let Some(row) = found
                .against
                .first()
                .and_then(|against| against.planned(what.title()))
            else {
                continue;
            };
            self.decisions.push(Decision {
                what,
                verdict: comparison.verdict,
                pairs,
            });
            self.decided.push(row);
        }
    }

    fn is_decided(&self, found: &Diff) -> bool {
        primary(found)
            .iter()
            .all(|(what, _)| self.has_decided(what))
    }

    fn has_decided(&self, what: &Asked) -> bool {
        self.decisions.iter().any(|decision| decision.what == *what)
    }

    /// Whether more pairs are hardly worth it.
    fn is_futile(&self) -> bool {
        let Ok(sides) = self.sides() else {
            return false;
        };
        let rules = DiffRules {
            design: Some(Design::Paired),
            margin: self.of.rules.margin,
            ..DiffRules::default()
        };
        let decided = |what: &str| {
            self.decisions
                .iter()
                .any(|decision| decision.what.title() == what)
        };
        let predicted = self.of.change.predicted();
        let by_name = self.by_name(&predicted);
        is_futile(
            sides.each_ref(),
            &self.of.rules.looks,
            rules,
            &names(&predicted),
            &by_name,
            &decided,
        )
    }

    fn outcome(&mut self, ended: Ended, interleaved: bool, diff: Option<Diff>) -> Outcome {
        // A decision is final, so the table states the row of the look that decided it.
        let mut diff = diff;
        let against = diff.as_mut().and_then(|diff| diff.against.first_mut());
        if let Some(against) = against {
            for (decision, row) in self.decisions.iter().zip(&self.decided) {
                against.settle(decision.what.title(), row.clone());
            }
        }
        let against = diff.as_ref().and_then(|diff| diff.against.first());
        let (verified, moved_to) = against.map_or((Verified::Undecided, Vec::new()), |against| {
            verified(against, &self.decisions)
        });
        Outcome {
            schema_version: SCHEMA_VERSION,
            ended,
            pairs: self.runs[0].len().min(self.runs[1].len()),
            void: std::mem::take(&mut self.void),
            left_out_runs: self.left_out,
            interleaved,
            across_reboot: self.of.change.boot() != BootArm::Either,
            decisions: std::mem::take(&mut self.decisions),
            verified,
            moved_to,
            diff,
        }
    }
}

fn is_decided(comparison: &Comparison) -> bool {
    comparison.verdict != Verdict::Inconclusive
}

/// The questions that were fixed before anything was measured.
fn primary(found: &Diff) -> Vec<(Asked, &Comparison)> {
    let Some(against) = found.against.first() else {
        return Vec::new();
    };
    let totals: Vec<String> = against.totals().map(|(title, _)| title).collect();
    let asked = |title: String| match totals.contains(&title) {
        true => Asked::Total(title),
        false => Asked::Culprit(title),
    };
    against
        .primary()
        .into_iter()
        .map(|(title, comparison)| (asked(title), comparison))
        .collect()
}
