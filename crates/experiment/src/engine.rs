//! Making pairs until they decide.

mod block;
mod judging;
mod turning;

use crate::{
    Arm, BootArm, Change, ExperimentError, InForceIn, Pair, Predicted, Session, VoidReason, order,
};
use jitterscope_analyze::compare::{
    ComparedRun, Comparison, Design, Diff, DiffRules, Looks, Side, Verdict, diff, is_futile,
};
use jitterscope_model::{AnyVersion, Nanos, SCHEMA_VERSION, Subject};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use turning::Turn;

/// Makes the runs of an experiment: a probe or a command, measured under one arm at a time.
pub trait Runner {
    /// Makes a run; `None` where it was stopped before its end.
    ///
    /// # Errors
    /// It cannot be measured.
    fn measure(
        &mut self,
        arm: Arm,
        stop: &AtomicBool,
    ) -> Result<Option<ComparedRun>, ExperimentError>;

    /// Looks on until `seen` is true of some culprit, for so long at most; whether it was. `None`: it has no
    /// means to look.
    ///
    /// # Errors
    /// It cannot be measured.
    fn look_for(
        &mut self,
        _seen: &mut (dyn FnMut(&Subject) -> bool + Send),
        _at_most: Nanos,
        _stop: &AtomicBool,
    ) -> Result<Option<bool>, ExperimentError> {
        Ok(None)
    }

    /// A run of before.
    ///
    /// # Errors
    /// It cannot be read.
    fn load(&mut self, path: &Path) -> Result<ComparedRun, ExperimentError>;
}

/// Looks on.
pub trait Observer {
    /// A run of this pair begins.
    fn measuring(&mut self, _pair: usize, _arm: Arm) {}

    /// It is waited until a change or its undoing is in force.
    fn settling(&mut self, _arm: Arm, _left: Duration) {}

    /// A pair is whole, so many count, and there is a look after so many.
    fn paired(&mut self, _counted: usize) {}

    /// A run is whole where the arms do not take turns; so many of its arm count, of so many.
    fn measured(&mut self, _arm: Arm, _counted: usize, _of: usize) {}

    /// A pair, or a run where the arms do not take turns, does not count; why.
    fn void(&mut self, _why: &VoidReason) {}
}

impl Observer for () {}

/// What is fixed before anything is measured.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// When there is a look, and the end.
    pub looks: Looks,
    /// The share of a figure that counts as no difference.
    pub margin: f64,
    /// The longest wait until a change or its undoing is in force; beyond it arms are not interleaved.
    pub longest_wait: Nanos,
    /// Void pairs beyond which it is given up.
    pub most_void: usize,
    /// No pair begins after this.
    pub deadline: Option<Instant>,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Everything that was asked is decided.
    Decided,
    /// The last look.
    LastLook,
    /// More pairs would hardly decide.
    Futile,
    /// Too many pairs were void.
    Void,
    /// Where the arms do not take turns: the change was not seen to be in force, so nothing more was measured with
    /// it. Why is the last of what is void.
    Unseen,
    /// The arm without the change is measured, and the other one needs a reboot.
    AwaitsReboot,
    /// No time was left for another pair.
    Deadline,
    /// It was stopped; it can go on.
    Stopped,
}

/// Whether the change does what it declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    /// The predicted culprits fell, and the total is not worse beyond the margin.
    Yes,
    /// The predicted culprits fell; whether the total is worse is undecided.
    CulpritsOnly,
    /// A predicted culprit did not fall, or the total is worse.
    No,
    /// It cannot be told yet.
    Undecided,
    /// Nothing was predicted, or nothing of it was seen: the total alone speaks.
    NothingPredicted,
}

/// What was fixed to be asked before anything was measured. As JSON it is its title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Asked {
    /// A total: `total`, of which there may be several.
    Total(String),
    /// A predicted culprit, by kind and name.
    Culprit(String),
}

impl Asked {
    /// What it is called.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Asked::Total(title) | Asked::Culprit(title) => title,
        }
    }
}

/// Something that was decided, and when: what was decided at a look stays so.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// What.
    pub what: Asked,
    /// Of the total or of a predicted culprit.
    pub verdict: Verdict,
    /// After so many pairs.
    pub pairs: usize,
}

/// What an experiment came to.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// Why it ended.
    pub ended: Ended,
    /// Pairs that count.
    pub pairs: usize,
    /// Why the others do not.
    pub void: Vec<AnyVersion<VoidReason>>,
    /// Runs that were made before the machine was started anew and are left out, for a restart changes more than what
    /// is tried.
    pub left_out_runs: u64,
    /// Whether the arms took turns. Where they did not, whatever drifted is in the difference.
    pub interleaved: bool,
    /// Whether a reboot lies between them. Whatever else that changed is in the difference, too.
    pub across_reboot: bool,
    /// What was decided.
    pub decisions: Vec<Decision>,
    /// Whether the change does what it declares.
    pub verified: Verified,
    /// The last comparison; none before the first look. In JSON view puts it there, with its words.
    #[serde(skip)]
    pub diff: Option<Diff>,
}

/// An experiment about to be made.
pub struct Experiment<'e> {
    /// What differs.
    pub change: &'e mut dyn Change,
    /// Makes the runs.
    pub runner: &'e mut dyn Runner,
    /// What was measured so far.
    pub session: &'e mut Session,
    /// What is fixed beforehand.
    pub rules: Rules,
    /// Whether a knob declares that it removes a culprit.
    pub answers: &'e (dyn Fn(&str, &Subject) -> bool + Sync),
    /// Who looks on.
    pub observer: &'e mut dyn Observer,
    /// Set from outside to end it.
    pub stop: &'e AtomicBool,
}

/// Whether the arms take turns: its undoing takes no longer than is waited for.
#[must_use]
pub fn interleaves(change: &dyn Change, rules: &Rules) -> bool {
    match change.undoing() {
        InForceIn::Now => true,
        InForceIn::Within(time) => time <= rules.longest_wait,
        InForceIn::Unknown => false,
    }
}

/// Makes it. Whatever happens, the change is reverted when it returns.
///
/// # Errors
/// A run cannot be made, or a change not applied or not reverted. What was measured is in the session.
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
    };
    let made = engine.make();
    let reverted = engine.of.change.revert();
    // That the machine is not as it was is worse news than whatever came before it.
    reverted?;
    made
}

/// What a comparison calls what is predicted.
fn names(predicted: &[Predicted]) -> Vec<String> {
    predicted.iter().map(ToString::to_string).collect()
}

struct Engine<'e> {
    of: Experiment<'e>,
    now: Arm,
    /// When that arm is in force, where it was not seen to be.
    settles: Option<InForceIn>,
    runs: [Vec<ComparedRun>; 2],
    /// Whether the first of them is of the first pair, and its run without the change came after one with it.
    unsure: bool,
    void: Vec<AnyVersion<VoidReason>>,
    /// Runs of before that cannot be gone on from.
    left_out: u64,
    decisions: Vec<Decision>,
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
                    // Looks of before are looks, whoever looked.
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

    /// One pair more; false where it was stopped.
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

    /// Compares what there is at the alpha that is due; with `spend`, what is decided stays so.
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
            design,
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

    /// Whether what is called so is to remove a culprit: what is predicted, or a knob by which the machines differ.
    fn by_name<'a>(&'a self, predicted: &'a [Predicted]) -> impl Fn(&str, &Subject) -> bool + 'a {
        let names = names(predicted);
        move |name, culprit| match names.iter().position(|of| of == name) {
            Some(at) => predicted[at].removes(culprit, self.of.answers),
            None => (self.of.answers)(name, culprit),
        }
    }

    fn decide(&mut self, found: &Diff, pairs: usize) {
        for (what, comparison) in primary(found) {
            let known = self.has_decided(&what);
            if !known && is_decided(comparison) {
                self.decisions.push(Decision {
                    what,
                    verdict: comparison.verdict,
                    pairs,
                });
            }
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

    /// Whether going on is hardly worth it.
    fn is_futile(&self) -> bool {
        let Ok(sides) = self.sides() else {
            return false;
        };
        let rules = DiffRules {
            design: Design::Paired,
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
        let verified = diff
            .as_ref()
            .map_or(Verified::Undecided, |diff| self.verified(diff));
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
            diff,
        }
    }

    fn verified(&self, diff: &Diff) -> Verified {
        let Some(against) = diff.against.first() else {
            return Verified::Undecided;
        };
        let decided = |what: Asked| {
            self.decisions
                .iter()
                .find(|d| d.what == what)
                .map(|d| d.verdict)
        };
        let predicted: Vec<Option<Verdict>> = against
            .culprits
            .iter()
            .flatten()
            // What knobs answer, but neither arm saw, verifies nothing.
            .filter(|row| row.predicted && row.verdict() != Verdict::NotSeen)
            .map(|row| decided(Asked::Culprit(row.title())))
            .collect();
        let totals: Vec<(Option<Verdict>, bool)> = against
            .totals()
            .map(|(what, of)| (decided(Asked::Total(what)), of.not_worse()))
            .collect();
        // Beyond the margin: a direction that is certain may still be of no matter.
        let is_worse = |(verdict, not_worse): &(Option<Verdict>, bool)| {
            *verdict == Some(Verdict::Worse) && !not_worse
        };
        let total_worse = totals.iter().any(is_worse);
        let total_fine = !totals.is_empty()
            && totals.iter().all(|of| match of.0 {
                Some(_) => !is_worse(of),
                None => of.1,
            });
        let missed = |v: &Option<Verdict>| matches!(v, Some(Verdict::Worse | Verdict::Equivalent));
        if predicted.is_empty() {
            return Verified::NothingPredicted;
        }
        if total_worse || predicted.iter().any(missed) {
            return Verified::No;
        }
        match (
            predicted.iter().all(|v| *v == Some(Verdict::Better)),
            total_fine,
        ) {
            (true, true) => Verified::Yes,
            (true, false) => Verified::CulpritsOnly,
            (false, _) => Verified::Undecided,
        }
    }
}

fn is_decided(comparison: &Comparison) -> bool {
    comparison.verdict != Verdict::Inconclusive
}

/// What was fixed to be asked before anything was measured.
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
