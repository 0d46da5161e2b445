//! Results of experiments and label comparisons on simulated machines, with the program's own looks, alphas, families
//! and futility, from stalls to the verdict. The criteria were set before the methods were chosen.
//!
//! Ignored by default because they take minutes: `cargo xtask test calibration` runs them.

#[path = "../../../view/tests/common/mod.rs"]
mod common;
#[path = "../../../analyze/tests/calibration/processes.rs"]
mod processes;
mod simulated;

use jitterscope_analyze::compare::{Against, DiffRules, Side, Verdict, diff};
use jitterscope_experiment::{Arm, Asked, Ended, Outcome};
use processes::{ALL, CULPRITS, PLAIN, Process, Setting};
use simulated::{KNOB, answers, experiment, labels, name};

/// Acceptable number of wrong verdicts out of 400: 20 are expected, and more than this happens one time in a hundred.
const MOST_WRONG: usize = 31;
/// Minimum found out of 100.
const FEWEST_FOUND: usize = 90;

fn is_direction(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}

/// How many of several experiments reported something better or worse, per family.
#[derive(Debug, Default)]
struct Claims {
    total: usize,
    figures: usize,
    predicted: usize,
    others: usize,
}

impl Claims {
    fn add(&mut self, against: &Against, decided: &[(Asked, Verdict)]) {
        let figures = |total: bool| {
            let rows = against
                .figures
                .iter()
                .filter(move |row| row.is_total == total);
            rows.filter_map(|row| row.comparison.as_ref())
                .any(|c| is_direction(c.verdict))
        };
        let culprits = |predicted: bool| {
            let rows = against
                .culprits
                .iter()
                .flatten()
                .filter(move |row| row.predicted == predicted);
            rows.into_iter().any(|row| is_direction(row.verdict))
        };
        // An earlier look's decision stays, whatever the last look shows.
        let earlier = |total: bool| {
            decided
                .iter()
                .any(|(what, v)| is_direction(*v) && matches!(what, Asked::Total(_)) == total)
        };
        self.total += usize::from(figures(true) || earlier(true));
        self.figures += usize::from(figures(false));
        self.predicted += usize::from(culprits(true) || earlier(false));
        self.others += usize::from(culprits(false));
    }

    fn hold(&self, what: &str) {
        println!("{what}: of 400 {self:?}");
        let all = [self.total, self.figures, self.predicted, self.others];
        assert!(
            all.iter().all(|wrong| *wrong <= MOST_WRONG),
            "{what}: {self:?}"
        );
    }
}

fn decisions(outcome: &Outcome) -> Vec<(Asked, Verdict)> {
    outcome
        .decisions
        .iter()
        .map(|d| (d.what.clone(), d.verdict))
        .collect()
}

fn equal_arms(process: Process) {
    for knobs in [&[KNOB][..], &[]] {
        let (mut claims, mut futile, mut pairs) = (Claims::default(), 0, 0);
        for seed in 0..400 {
            let outcome = experiment(process, seed * 31 + 5, PLAIN, knobs);
            futile += usize::from(outcome.ended == Ended::Futile);
            pairs += outcome.pairs;
            let diff = outcome.diff.as_ref().expect("it was looked at");
            claims.add(&diff.against[0], &decisions(&outcome));
        }
        println!(
            "{process:?}: {:.1} pairs, {futile} given up",
            pairs as f64 / 400.0
        );
        claims.hold(&format!("{process:?} pairs, {} predicted", knobs.len()));
    }
}

fn equal_labels(process: Process) {
    let mut claims = Claims::default();
    for seed in 0..400 {
        let sides = labels(process, seed * 17 + 3, PLAIN);
        claims.add(
            &diff(&sides, DiffRules::default(), &[KNOB.to_owned()], &answers).against[0],
            &[],
        );
    }
    claims.hold(&format!("{process:?} labels"));
}

/// A culprit of one arm that takes 0.2% of the time.
fn injected(process: Process) {
    let second = Setting {
        injected: 0.002,
        ..PLAIN
    };
    for knobs in [&[KNOB][..], &[]] {
        let mut found = 0;
        for seed in 0..100 {
            let outcome = experiment(process, seed * 13 + 11, second, knobs);
            let rows = outcome
                .diff
                .as_ref()
                .and_then(|diff| diff.against[0].culprits.as_ref());
            let row =
                rows.and_then(|rows| rows.iter().find(|row| row.subject.name() == name(CULPRITS)));
            found += usize::from(row.is_some_and(|row| row.verdict == Verdict::Worse));
        }
        println!("{process:?}, {} predicted: {found} of 100", knobs.len());
        assert!(found >= FEWEST_FOUND, "{process:?}: {found} of 100");
    }
}

macro_rules! of_each_process {
    ($($module:ident: $process:expr,)*) => {
        $(mod $module {
            use super::*;

            #[test]
            #[ignore = "takes minutes: cargo xtask test calibration"]
            fn equal_arms_are_rarely_called_different() {
                equal_arms($process);
            }

            #[test]
            #[ignore = "takes minutes: cargo xtask test calibration"]
            fn equal_labels_are_rarely_called_different() {
                equal_labels($process);
            }

            #[test]
            #[ignore = "takes minutes: cargo xtask test calibration"]
            fn a_culprit_of_a_fifth_of_a_percent_is_called_worse() {
                injected($process);
            }
        })*

        #[test]
        fn no_process_is_left_out() {
            let tested = [$($process),*].map(|process| format!("{process:?}"));
            assert_eq!(ALL.map(|process| format!("{process:?}")).to_vec(), tested.to_vec());
        }
    };
}

of_each_process! {
    bursty: Process::Bursty,
    periodic: Process::Periodic,
    heavy_tailed: Process::HeavyTailed,
    drifting: Process::Drifting,
}

/// The simulation delivers the engine's input: a run's total, its culprits, and one arm's additional culprit.
#[test]
fn a_simulated_run_is_reported_as_it_was_made() {
    let sides: [Side; 2] = labels(
        Process::Periodic,
        1,
        Setting {
            injected: 0.002,
            ..PLAIN
        },
    );
    let found = diff(&sides, DiffRules::default(), &[], &answers);
    let rows = found.against[0].culprits.as_ref().unwrap();
    let row = rows
        .iter()
        .find(|row| row.subject.name() == name(CULPRITS))
        .unwrap();
    let stolen = row.stolen.second.unwrap();
    assert!(
        (stolen - 0.002).abs() < 0.0003 && row.stolen.first == Some(0.0),
        "{stolen}"
    );
    let outcome = experiment(Process::Periodic, 1, PLAIN, &[KNOB]);
    assert!(outcome.interleaved && outcome.pairs >= 2 && Arm::A != Arm::B);
}
