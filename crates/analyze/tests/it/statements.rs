//! One statement a row: where the order of the runs allows none, where two figures of a culprit disagree, and where an
//! earlier look decided. Tables and conditions say the same.

use crate::common;

use common::{manifest, part, result, stall};
use jitterscope_analyze::compare::{
    Against, ComparedRun, ComparedRunBuilder, Design, DiffRules, PlannedRow, Side, Undecided,
    Verdict, diff,
};
use jitterscope_analyze::gate::{GateVerdict, evaluate_changes, parse};
use jitterscope_model::*;
use std::path::Path;

/// A run that began at this second, in which a timer stole `events` times `length`.
fn run(second: u64, events: u64, length: u64) -> ComparedRun {
    let ticks: Vec<u64> = vec![26_000 + length; events as usize];
    let mut manifest = manifest(vec![result(1, &ticks)], true);
    manifest.id = format!("run{second}");
    manifest.clock_start.realtime_ns += second * 1_000_000_000;
    manifest.events_in_gaps = EventsInGaps {
        events: 20_000,
        inside: 20_000,
        ..EventsInGaps::default()
    };
    manifest.sources = vec![SourceReport::available("tracefs")];
    let mut builder = ComparedRunBuilder::new(&manifest, None, Path::new("x"));
    for n in 0..events {
        let parts = vec![part(CulpritKind::Timer, "tick_nohz_handler", length)];
        builder.stall(
            &stall(n, 1, 2_000_000 + n * 30_000, 26_000),
            &Attribution {
                stall: StallId(n),
                parts,
            },
        );
    }
    builder.finish()
}

/// Both labels, recorded in this order, compared at this alpha; the timer is predicted.
fn compared(order: &str, rules: DiffRules, of: impl Fn(char, u64) -> (u64, u64)) -> Against {
    let arm = |label: char| {
        let runs = order.chars().zip(0u64..).filter(|(of, _)| *of == label);
        let runs = runs.map(|(_, at)| {
            let (events, length) = of(label, at);
            run(at, events, length)
        });
        Side::of_arm(&label.to_string(), runs.collect()).unwrap()
    };
    let answers = |_: &str, subject: &Subject| subject.name() == "tick_nohz_handler";
    diff(&[arm('A'), arm('B')], rules, &["a knob".into()], &answers)
        .against
        .remove(0)
}

fn gate(condition: &str, against: &Against) -> GateVerdict {
    evaluate_changes(&parse(condition).unwrap(), against)
        .remove(0)
        .verdict
}

#[test]
fn runs_of_one_stretch_of_time_show_their_difference_and_state_nothing() {
    for (order, why) in [
        ("AB", Undecided::SingleRuns),
        ("AAAAABBBBB", Undecided::OneAfterTheOther),
        ("AAAABBBBBA", Undecided::OneAfterTheOther),
        ("AAABBBAAABBB", Undecided::OneAfterTheOther),
    ] {
        // Evenly spaced events, twice as many in the second label.
        let twice = |label, _| (if label == 'A' { 300 } else { 600 }, 5_000);
        let found = compared(order, DiffRules::default(), twice);
        let row = &found.culprits.as_ref().unwrap()[0];
        assert!(row.predicted);
        let total = found.totals().next().unwrap().1;
        for of in [&row.events, &row.stolen, total] {
            assert_eq!(
                (of.verdict, of.undecided),
                (Verdict::Inconclusive, Some(why)),
                "{order}"
            );
            assert!(of.change.is_some_and(|change| change > 0.4), "{of:?}");
            let runs = order.len() / 2;
            assert_eq!(
                (of.interval, of.probability, of.runs),
                (None, None, [runs; 2])
            );
            assert!(!of.not_worse());
        }
        for condition in ["worse(culprit *)", "worse(any)", "worse(total)"] {
            assert_eq!(gate(condition, &found), GateVerdict::Undecided, "{order}");
        }
    }
    // In turns, the same is decided.
    let found = compared("ABABABABAB", DiffRules::default(), |label, at| {
        (if label == 'A' { 300 } else { 600 } + at, 5_000)
    });
    assert_eq!(found.culprits.as_ref().unwrap()[0].verdict, Verdict::Worse);
    assert_eq!(gate("worse(culprit *)", &found), GateVerdict::Exceeded);
}

#[test]
fn too_few_runs_keep_no_condition_however_alike_they_are() {
    let found = compared("ABABAB", DiffRules::default(), |_, _| (300, 5_000));
    let total = found.totals().next().unwrap().1;
    assert_eq!(total.undecided, Some(Undecided::TooFewRuns { fewest: 4 }));
    for condition in ["worse(culprit *)", "worse(any)", "worse(total)"] {
        assert_eq!(gate(condition, &found), GateVerdict::Undecided);
    }
    // With enough of them, all are kept.
    let found = compared("ABABABAB", DiffRules::default(), |_, _| (3000, 5_000));
    for condition in ["worse(culprit *)", "worse(any)", "worse(total)"] {
        assert_eq!(gate(condition, &found), GateVerdict::Kept);
    }
}

#[test]
fn a_condition_on_a_culprit_is_about_what_its_row_states() {
    // Twice as many events, each a tenth as long: more events, and less time.
    let found = compared(
        "ABABABABAB",
        DiffRules::default(),
        |label, at| match label {
            'A' => (300 + at, 50_000),
            _ => (600 + at, 5_000),
        },
    );
    let row = &found.culprits.as_ref().unwrap()[0];
    assert_eq!(
        (row.events.verdict, row.stolen.verdict, row.verdict),
        (Verdict::Worse, Verdict::Better, Verdict::Better)
    );
    assert_eq!(gate("worse(culprit *)", &found), GateVerdict::Kept);
}

#[test]
fn a_decided_row_is_that_of_the_look_that_decided_it() {
    let at = |pairs: usize, alpha| {
        let rules = DiffRules {
            design: Some(Design::Paired),
            alpha,
            ..DiffRules::default()
        };
        // Three times as much in the first eight pairs, and a tenth in those after them.
        compared(&"AB".repeat(pairs), rules, |label, at| {
            let events = match (label, at < 16) {
                ('A', _) => 300,
                (_, true) => 900,
                (_, false) => 30,
            };
            (events + at % 5, 5_000)
        })
    };
    let (early, mut last) = (at(8, 0.01), at(16, 0.025));
    let rows = |of: &Against| -> Vec<String> {
        let total = of.figures.iter().find(|row| row.is_total).unwrap();
        let culprit = &of.culprits.as_ref().unwrap()[0];
        vec![
            serde_json::to_string(total).unwrap(),
            serde_json::to_string(culprit).unwrap(),
        ]
    };
    let others = last.figures.iter().filter(|row| !row.is_total);
    let others = serde_json::to_string(&others.collect::<Vec<_>>()).unwrap();
    assert_eq!(gate("worse(culprit *)", &early), GateVerdict::Exceeded);
    assert_ne!(gate("worse(culprit *)", &last), GateVerdict::Exceeded);
    assert_ne!(rows(&early), rows(&last));
    for title in ["total", "timer tick_nohz_handler"] {
        let decided = early.planned(title).unwrap();
        assert_eq!(matches!(decided, PlannedRow::Total(_)), title == "total");
        last.settle(title, decided);
    }
    assert_eq!(rows(&early), rows(&last));
    let row = &last.culprits.as_ref().unwrap()[0];
    for of in [&row.events, &row.stolen, last.totals().next().unwrap().1] {
        assert_eq!(
            (of.runs, of.alpha, of.verdict),
            ([8; 2], 0.01, Verdict::Worse)
        );
    }
    assert_eq!(gate("worse(culprit *)", &last), GateVerdict::Exceeded);
    assert_eq!(gate("worse(total)", &last), GateVerdict::Exceeded);
    // What was not planned stays as the last look found it.
    let now = last.figures.iter().filter(|row| !row.is_total);
    assert_eq!(
        serde_json::to_string(&now.collect::<Vec<_>>()).unwrap(),
        others
    );
    assert!(last.planned("another").is_none());
}
