//! Simulated machines as an experiment's subject.

use crate::common::{RATE, Scenario, part, thread};
use crate::processes::{CULPRITS, Machine, PLAIN, Process, Run, Setting};
use jitterscope_analyze::compare::{ComparedRun, ComparedRunBuilder, Looks, Margin, Side};
use jitterscope_experiment::{
    Arm, Change, Experiment, ExperimentError, Header, InForceIn, NoChange, Outcome, Predicted,
    Rules, Runner, SESSION_VERSION, Session, run,
};
use jitterscope_model::{Nanos, Part, Subject};
use jitterscope_testing::SplitMix64;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The knob that predicts culprit 0.
pub const KNOB: &str = "knob";
const LABEL: usize = 5;

/// The name of a simulated culprit.
pub fn name(culprit: usize) -> String {
    format!("culprit-{culprit}")
}

pub fn answers(knob: &str, culprit: &Subject) -> bool {
    knob == KNOB && culprit.name() == name(0)
}

/// A simulated machine, measured with the setting of either arm.
struct Simulated {
    machine: Machine,
    second: Setting,
    parts: Vec<Part>,
    /// Runs so far: each is a separate recording.
    made: u64,
}

impl Simulated {
    fn new(process: Process, seed: u64, second: Setting) -> Simulated {
        let of = |culprit| part(thread(&name(culprit), 100 + culprit as i32), 1);
        Simulated {
            machine: Machine::new(process, seed),
            second,
            parts: (0..=CULPRITS).map(of).collect(),
            made: 0,
        }
    }

    fn run(&mut self, arm: Arm) -> ComparedRun {
        let setting = if arm == Arm::A { PLAIN } else { self.second };
        let run = self.machine.run(setting);
        self.made += 1;
        self.compared(&run)
    }

    /// The recording of a run.
    fn compared(&self, run: &Run) -> ComparedRun {
        let mut scenario = Scenario::new(&[1]);
        for (at, seconds, culprit) in run.stalls() {
            let net = Nanos((seconds * 1e9).round() as u64);
            if RATE.ticks(net).0 > 0 {
                scenario.stall(
                    1,
                    (at * 1e6) as u64,
                    vec![Part {
                        net,
                        ..self.parts[*culprit].clone()
                    }],
                );
            }
        }
        let mut scenario = scenario.finish();
        scenario.manifest.id = format!("run{}", self.made);
        let mut builder = ComparedRunBuilder::new(&scenario.manifest, None, Path::new(""));
        for (stall, attribution) in scenario.stalls.iter().zip(&scenario.attributions) {
            builder.stall(stall, attribution);
        }
        builder.finish()
    }
}

impl Runner for Simulated {
    fn measure(
        &mut self,
        arm: Arm,
        _: &AtomicBool,
    ) -> Result<Option<ComparedRun>, ExperimentError> {
        Ok(Some(self.run(arm)))
    }

    fn load(&mut self, _: &Path) -> Result<ComparedRun, ExperimentError> {
        unreachable!("nothing is resumed")
    }
}

/// An experiment from its first pair to its end, with the default settings of `experiment`.
pub fn experiment(process: Process, seed: u64, second: Setting, knobs: &[&str]) -> Outcome {
    let removes = knobs
        .iter()
        .map(|knob| Predicted::Knob((*knob).to_owned()))
        .collect();
    let mut change = NoChange {
        what: "simulated".into(),
        removes,
    };
    assert_eq!(change.apply().unwrap(), InForceIn::Now);
    let header = Header {
        version: SESSION_VERSION,
        asked: String::new(),
        seed: SplitMix64(seed).bits(),
        started_realtime_ns: 0,
        boot_id: String::new(),
    };
    run(Experiment {
        change: &mut change,
        runner: &mut Simulated::new(process, seed, second),
        session: &mut Session::in_memory(header),
        rules: Rules {
            looks: Looks::DEFAULT,
            margin: Margin::RELATIVE,
            longest_wait: Nanos(1),
            most_void: 4,
            deadline: None,
        },
        answers: &answers,
        observer: &mut (),
        stop: &AtomicBool::new(false),
    })
    .unwrap()
}

/// Two labels whose runs were made in one common random order.
pub fn labels(process: Process, seed: u64, second: Setting) -> [Side; 2] {
    let mut order: Vec<Arm> = [Arm::A, Arm::B].repeat(LABEL);
    let mut random = SplitMix64(seed ^ 0x5bd1);
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64 + 1) as usize);
    }
    let mut simulated = Simulated::new(process, seed, second);
    let mut runs = [Vec::new(), Vec::new()];
    for arm in order {
        runs[arm as usize].push(simulated.run(arm));
    }
    let [first, second] = runs;
    [
        Side::pool("first", first).unwrap(),
        Side::pool("second", second).unwrap(),
    ]
}
