//! A fake machine and the benches that measure it.
#![allow(dead_code, reason = "each test uses its part")]

use crate::common::{Scenario, part, thread, work};
use jitterscope_analyze::compare::{ComparedRun, ComparedRunBuilder, Looks};
use jitterscope_experiment::{
    Arm, BootArm, Change, Experiment, ExperimentError, Header, InForceIn, Outcome, Predicted,
    Rules, Runner, SESSION_VERSION, Session, run,
};
use jitterscope_model::{Nanos, Subject, Warning};
use jitterscope_testing::SplitMix64;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A machine whose `vmstat_update` runs once a second unless the knob is set.
#[derive(Clone)]
pub struct Fake {
    pub applied: Rc<Cell<bool>>,
    /// The calls, in order.
    pub done: Rc<RefCell<Vec<&'static str>>>,
    pub undoing: InForceIn,
    /// How long its undoing takes to be in force, if something is watched for meanwhile.
    pub settles: InForceIn,
    /// The number of the failing apply.
    pub fails_at: Option<usize>,
    /// Whether the n-th check sees an arm in force; none if there is no check.
    pub seen: Option<fn(Arm, usize) -> bool>,
    pub asked: Rc<RefCell<Vec<Arm>>>,
    pub knobs: Vec<&'static str>,
    pub boot: BootArm,
}

impl Fake {
    pub fn new() -> Fake {
        Fake {
            applied: Rc::default(),
            done: Rc::default(),
            undoing: InForceIn::Now,
            settles: InForceIn::Now,
            fails_at: None,
            seen: None,
            asked: Rc::default(),
            knobs: vec!["vmstat"],
            boot: BootArm::Either,
        }
    }
}

impl Change for Fake {
    fn apply(&mut self) -> Result<InForceIn, ExperimentError> {
        self.applied.set(true);
        self.done.borrow_mut().push("apply");
        let applies = self
            .done
            .borrow()
            .iter()
            .filter(|what| **what == "apply")
            .count();
        if self.fails_at == Some(applies) {
            return Err(ExperimentError::NotApplied("half of it".into()));
        }
        Ok(if self.seen.is_some() {
            self.settles.clone()
        } else {
            InForceIn::Now
        })
    }

    fn revert(&mut self) -> Result<InForceIn, ExperimentError> {
        if self.applied.replace(false) {
            self.done.borrow_mut().push("revert");
        }
        Ok(self.settles.clone())
    }

    fn shown_by_recording(&self) -> Vec<Predicted> {
        self.predicted()
    }

    fn is_shown(&self, _: Arm) -> bool {
        self.seen.is_some()
    }

    fn shows(&mut self, arm: Arm, _: Duration, _: &AtomicBool) -> Result<bool, ExperimentError> {
        self.asked.borrow_mut().push(arm);
        let asked = self.asked.borrow().len();
        Ok(self.seen.is_none_or(|seen| seen(arm, asked)))
    }

    fn undoing(&self) -> InForceIn {
        self.undoing.clone()
    }

    fn boot(&self) -> BootArm {
        self.boot
    }

    fn predicted(&self) -> Vec<Predicted> {
        self.knobs
            .iter()
            .map(|knob| Predicted::Knob((*knob).to_owned()))
            .collect()
    }

    fn describe(&self) -> String {
        "vmstat".into()
    }
}

pub struct Bench {
    pub machine: Fake,
    pub random: SplitMix64,
    pub made: BTreeMap<String, ComparedRun>,
    /// Numbers of the runs of A in which the culprit has not reappeared.
    pub missing: Vec<usize>,
    /// The same for the culprit of another knob, if there is one.
    pub drained: Option<Vec<usize>>,
    /// Numbers of the runs of either arm that lost most kernel events.
    pub lost: Vec<usize>,
    /// Numbers of the runs of either arm whose COMMAND failed.
    pub failing: Vec<usize>,
    /// Whether the length of the other stalls varies randomly between runs.
    pub swings: bool,
    /// The length of the culprit that the knob should remove, instead of about 5 us.
    pub length: Option<u64>,
    /// The share of that time that a thread takes over with the knob.
    pub taken_over: f64,
    /// Whether the culprit that the knob should remove stays with it, and varies in length between runs.
    pub stays: bool,
    pub of_a: usize,
    pub stop_after: Option<usize>,
    /// Factor by which other stalls are longer with the change.
    pub costs: f64,
    pub arms: Vec<Arm>,
    /// Time limit of each look.
    pub looks: Vec<Nanos>,
}

impl Bench {
    pub fn of(machine: &Fake, seed: u64) -> Bench {
        Bench {
            machine: machine.clone(),
            random: SplitMix64(seed),
            made: BTreeMap::new(),
            missing: Vec::new(),
            drained: None,
            lost: Vec::new(),
            failing: Vec::new(),
            swings: false,
            length: None,
            taken_over: 0.0,
            stays: false,
            of_a: 0,
            stop_after: None,
            costs: 1.0,
            arms: Vec::new(),
            looks: Vec::new(),
        }
    }
}

impl Runner for Bench {
    fn measure(
        &mut self,
        arm: Arm,
        stop: &AtomicBool,
    ) -> Result<Option<ComparedRun>, ExperimentError> {
        assert_eq!(
            self.machine.applied.get(),
            arm == Arm::B,
            "the change is there in B, and only there"
        );
        self.arms.push(arm);
        if self.stop_after.is_some_and(|after| self.arms.len() > after) {
            stop.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        let with = self.stays || (arm == Arm::A && !self.missing.contains(&self.of_a));
        let drains = arm == Arm::A
            && self
                .drained
                .as_ref()
                .is_some_and(|missing| !missing.contains(&self.of_a));
        let swing = if self.swings {
            25 << self.random.below(5)
        } else {
            1
        };
        let restless = if self.stays {
            1 << self.random.below(6)
        } else {
            1
        };
        self.of_a += usize::from(arm == Arm::A);
        let mut scenario = Scenario::new(&[1]);
        for second in 0..10u64 {
            if with {
                let length = (4_000 + self.random.below(2_000)) * restless;
                let length = self.length.map_or(length, |longer| longer + length);
                let part = part(item("vmstat_update"), length);
                scenario.stall(1, second * 1_000_000 + 100, vec![part]);
            } else if let Some(length) = self.length.filter(|_| self.taken_over > 0.0) {
                let length = (length as f64 * self.taken_over) as u64 + self.random.below(2_000);
                let part = part(thread("other", 77), length);
                scenario.stall(1, second * 1_000_000 + 100, vec![part]);
            }
            if drains {
                let part = part(item("lru_add_drain_per_cpu"), 5_000);
                scenario.stall(1, second * 1_000_000 + 500, vec![part]);
            }
            for n in 0..20 {
                // After the long ones.
                let at = second * 1_000_000 + 100_000 + n * 10_000;
                let cost = if arm == Arm::B { self.costs } else { 1.0 };
                let length = ((8_000 + self.random.below(4_000)) as f64 * cost) as u64 * swing;
                let part = part(thread("rival", 99), length);
                scenario.stall(1, at, vec![part]);
            }
        }
        let mut scenario = scenario.finish();
        if self.lost.contains(&(self.arms.len() - 1)) {
            scenario.manifest.sources[0].lost = scenario.manifest.events_in_gaps.events + 1_000;
        }
        if self.failing.contains(&(self.arms.len() - 1)) {
            scenario.manifest.warnings.push(Warning::CommandFailed {
                status: "exit status: 1".into(),
            });
        }
        let path = format!("run-{}", self.made.len());
        let mut builder = ComparedRunBuilder::new(&scenario.manifest, None, Path::new(&path));
        for (stall, attribution) in scenario.stalls.iter().zip(&scenario.attributions) {
            builder.stall(stall, attribution);
        }
        let run = builder.finish();
        self.made.insert(path, run.clone());
        Ok(Some(run))
    }

    fn look_for(
        &mut self,
        seen: &mut (dyn FnMut(&Subject) -> bool + Send),
        at_most: Nanos,
        _: &AtomicBool,
    ) -> Result<Option<bool>, ExperimentError> {
        self.looks.push(at_most);
        assert!(
            !seen(&item("lru_add_drain_per_cpu")),
            "that is not what the knob removes"
        );
        Ok(Some(seen(&item("vmstat_update"))))
    }

    fn load(&mut self, path: &Path) -> Result<ComparedRun, ExperimentError> {
        Ok(self.made[&path.display().to_string()].clone())
    }
}

/// A work item on the measured CPU.
fn item(function: &str) -> Subject {
    work(function, Some("kworker/1:1"), Some("mm_percpu_wq"))
}

pub fn answers(knob: &str, culprit: &Subject) -> bool {
    (knob == "vmstat" && culprit.name() == "vmstat_update")
        || (knob == "drain" && culprit.name() == "lru_add_drain_per_cpu")
}

pub fn session() -> Session {
    session_of(11)
}

pub fn session_of(seed: u64) -> Session {
    Session::in_memory(Header {
        version: SESSION_VERSION,
        asked: String::new(),
        seed,
        started_realtime_ns: 0,
        boot_id: String::new(),
    })
}

pub const RULES: Rules = Rules {
    looks: Looks::DEFAULT,
    margin: 0.1,
    longest_wait: Nanos(1),
    most_void: 4,
    deadline: None,
};

pub fn experiment(
    machine: &mut Fake,
    bench: &mut Bench,
    session: &mut Session,
) -> Result<Outcome, ExperimentError> {
    experiment_by(RULES, machine, bench, session)
}

pub fn experiment_by(
    rules: Rules,
    machine: &mut dyn Change,
    bench: &mut Bench,
    session: &mut Session,
) -> Result<Outcome, ExperimentError> {
    let stop = AtomicBool::new(false);
    run(Experiment {
        change: machine,
        runner: bench,
        session,
        rules,
        answers: &answers,
        observer: &mut (),
        stop: &stop,
    })
}
