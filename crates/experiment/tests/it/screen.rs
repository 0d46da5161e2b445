//! Which of several knobs tried at once are kept.

use crate::common;

use common::{Scenario, part, work};
use jitterscope_analyze::compare::{ComparedRun, ComparedRunBuilder, Margin};
use jitterscope_experiment::{NotKept, Screened, screen};
use jitterscope_model::Subject;
use std::path::Path;

/// A run of ten seconds with these work items and how often each ran.
fn run(works: &[(&str, u64)]) -> ComparedRun {
    let mut scenario = Scenario::new(&[1]);
    for (at, (name, count)) in works.iter().enumerate() {
        for n in 0..*count {
            let item = part(work(name, Some("kworker/1:1"), Some("events")), 5_000);
            scenario.stall(1, n * 10_000 + at as u64 * 100, vec![item]);
        }
    }
    let scenario = scenario.finish();
    let mut builder = ComparedRunBuilder::new(&scenario.manifest, None, Path::new("run"));
    for (stall, attribution) in scenario.stalls.iter().zip(&scenario.attributions) {
        builder.stall(stall, attribution);
    }
    builder.finish()
}

/// A knob answers the work item with its name.
fn answers(knob: &str, culprit: &Subject) -> bool {
    culprit.name() == knob
}

fn screened(without: &[ComparedRun], with: &[ComparedRun], knobs: &[&str]) -> Vec<Screened> {
    let knobs: Vec<String> = knobs.iter().map(|knob| (*knob).to_owned()).collect();
    screen(without, with, &knobs, Margin::RELATIVE, &answers).unwrap()
}

#[test]
fn what_fell_is_kept_and_each_other_knob_says_why_it_is_not() {
    let without: Vec<_> = (0..4)
        .map(|n| run(&[("falls", 50 + n), ("stays", 40 + n), ("grows", 10 + n)]))
        .collect();
    let with: Vec<_> = (0..4)
        .map(|n| run(&[("falls", 2 * n), ("stays", 41 + n), ("grows", 60 + n)]))
        .collect();
    let found = screened(&without, &with, &["falls", "stays", "grows", "absent"]);
    let of = |knob: &str| found.iter().find(|of| of.knob == knob).unwrap();
    assert_eq!((of("falls").kept, of("falls").cause), (true, None));
    let [before, after] = of("falls").events_per_sec;
    // Fifty in ten seconds, about a fiftieth of which is not measured.
    assert!(
        (before - 5.2).abs() < 0.1 && after < 0.5,
        "{before} {after}"
    );
    for (knob, why) in [
        ("stays", NotKept::NotBeyondChance),
        ("grows", NotKept::More),
        ("absent", NotKept::NothingThere),
    ] {
        let of = of(knob);
        assert!(!of.kept && of.cause == Some(why), "{of:?}");
    }
    // In the order given.
    assert_eq!(
        found.iter().map(|of| &*of.knob).collect::<Vec<_>>(),
        ["falls", "stays", "grows", "absent"]
    );
}

/// Candidates share an alpha: of many without effect, none is kept because one fell by chance.
#[test]
fn of_many_that_do_nothing_hardly_one_is_kept() {
    let names: Vec<String> = (0..12).map(|n| format!("work-{n}")).collect();
    let mut random = jitterscope_testing::SplitMix64(7);
    let mut kept = 0;
    for _ in 0..50 {
        let mut arm = || -> Vec<ComparedRun> {
            let mut one = || {
                let works: Vec<(&str, u64)> = names
                    .iter()
                    .map(|name| (name.as_str(), 5 + random.below(40)))
                    .collect();
                run(&works)
            };
            (0..4).map(|_| one()).collect()
        };
        let (without, with) = (arm(), arm());
        let knobs: Vec<&str> = names.iter().map(String::as_str).collect();
        kept += usize::from(screened(&without, &with, &knobs).iter().any(|of| of.kept));
    }
    // Half of 5% is in the direction that keeps: about 1 of 50, and more than 6 one time in ten thousand.
    assert!(kept <= 6, "{kept} of 50");
}

#[test]
fn an_arm_without_runs_is_an_error() {
    let one = run(&[("falls", 5)]);
    assert!(screen(&[], &[one], &["falls".to_owned()], 0.1, &answers).is_err());
}
