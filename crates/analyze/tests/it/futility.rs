//! When an experiment may stop early: eight pairs of synthetic runs of a spinning probe.

use crate::common;

use common::{RATE, manifest, result, stall};
use jitterscope_analyze::compare::{
    ComparedRun, ComparedRunBuilder, DiffRules, Looks, Side, is_futile,
};
use jitterscope_model::*;
use std::path::Path;

/// Shares without a trend: an increase in one pair is a decrease in the next.
const UP_AND_DOWN: [f64; 8] = [0.010, 0.014, 0.009, 0.015, 0.010, 0.014, 0.009, 0.015];

fn down_and_up() -> [f64; 8] {
    UP_AND_DOWN.map(|share| 0.024 - share)
}

/// The share of each run's time that a culprit took, and the number of its turns.
#[derive(Clone)]
struct Taken {
    name: String,
    shares: [f64; 8],
    turns: [u64; 8],
}

fn taken(name: &str, shares: [f64; 8]) -> Taken {
    Taken {
        name: name.into(),
        shares,
        turns: [1; 8],
    }
}

fn timer(name: &str) -> Subject {
    Subject::Timer {
        function: Some(name.into()),
        source: None,
    }
}

/// The runs of an arm with these total stolen shares.
fn side(stolen: [f64; 8], culprits: &[Taken], attributed: bool) -> Side {
    let run = |at: usize| -> ComparedRun {
        let read = result(1, &[]).sum_ticks as f64;
        let length = (stolen[at] / (1.0 - stolen[at]) * read) as u64;
        let manifest = manifest(vec![result(1, &[length])], attributed);
        let measured = RATE
            .nanos(manifest.results[0].end - manifest.results[0].start)
            .0 as f64;
        let mut builder = ComparedRunBuilder::new(&manifest, None, Path::new("x"));
        for of in culprits {
            for turn in 0..of.turns[at] {
                let net = of.shares[at] * measured / of.turns[at] as f64;
                let part =
                    Part::inside(timer(&of.name), Nanos(net as u64), Evidence::SwitchRecords);
                let attribution = Attribution {
                    stall: StallId(turn),
                    parts: vec![part],
                };
                builder.stall(&stall(turn, 1, 2_000_000 + turn * 1_000, 900), &attribution);
            }
        }
        builder.finish()
    };
    Side::of_arm("x", (0..8).map(run).collect()).unwrap()
}

/// Whether the experiment is given up if the knob should remove these culprits and these questions are decided.
fn given_up(sides: [&Side; 2], answered: &[&str], decided: &[&str]) -> bool {
    let answers = |knob: &str, subject: &Subject| {
        knob == "a knob" && answered.iter().any(|name| *subject == timer(name))
    };
    let decided = |title: &str| decided.contains(&title);
    is_futile(
        sides,
        &Looks::DEFAULT,
        DiffRules::default(),
        &["a knob".into()],
        &answers,
        &decided,
    )
}

#[test]
fn a_hopeless_total_is_given_up_and_a_decidable_one_is_not() {
    let side = |stolen| side(stolen, &[], false);
    let (before, nowhere, halved) = (
        side(UP_AND_DOWN),
        side(down_and_up()),
        side(UP_AND_DOWN.map(|share| share * share * 40.0)),
    );
    assert!(given_up([&before, &nowhere], &[], &[]));
    assert!(!given_up([&before, &halved], &[], &[]));
    assert!(
        given_up([&before, &halved], &[], &["total"]),
        "nothing else is asked"
    );
}

#[test]
fn each_of_several_totals_has_to_be_decided_or_given_up() {
    let timed = |stolen: [f64; 8], times: [f64; 8]| {
        let runs = side(stolen, &[], false).runs().to_vec();
        let timed = runs
            .into_iter()
            .zip(times)
            .map(|(run, time)| run.with_wall_time(Nanos((time * 1e12) as u64)));
        Side::of_arm("x", timed.collect()).unwrap()
    };
    let before = timed(UP_AND_DOWN, UP_AND_DOWN);
    let halved = UP_AND_DOWN.map(|share| share * share * 40.0);
    for (after, decided, expected) in [
        (timed(down_and_up(), down_and_up()), &[][..], true),
        (timed(halved, down_and_up()), &[][..], false),
        (timed(halved, down_and_up()), &["total (stolen)"], true),
        (timed(halved, down_and_up()), &["total"], false),
        (timed(down_and_up(), halved), &[], false),
        (timed(down_and_up(), halved), &["total"], true),
    ] {
        assert_eq!(
            given_up([&before, &after], &[], decided),
            expected,
            "{decided:?}"
        );
    }
}

#[test]
fn a_culprit_that_may_be_decided_keeps_it_going() {
    let total = [0.2; 8];
    let of = |culprits: &[Taken]| side(total, culprits, true);
    let halved = UP_AND_DOWN.map(|share| share * share * 40.0);
    let often = |shares, turns| Taken {
        turns,
        ..taken("x", shares)
    };
    let (many, few) = (
        [40, 44, 38, 46, 41, 43, 39, 45],
        [20, 24, 18, 22, 21, 20, 19, 23],
    );
    let before = of(&[taken("x", UP_AND_DOWN)]);
    let (nowhere, less) = (of(&[taken("x", down_and_up())]), of(&[taken("x", halved)]));
    for (what, sides, answered, decided, expected) in [
        (
            "it goes nowhere",
            [&before, &nowhere],
            &[][..],
            &["total"][..],
            true,
        ),
        (
            "it goes nowhere, as predicted",
            [&before, &nowhere],
            &["x"],
            &["total"],
            true,
        ),
        ("it took less", [&before, &less], &[], &["total"], false),
        (
            "it took less, as predicted",
            [&before, &less],
            &["x"],
            &["total"],
            false,
        ),
        (
            "that is decided",
            [&before, &less],
            &["x"],
            &["total", "timer x"],
            true,
        ),
        (
            "of what nobody predicted nothing is decided early",
            [&before, &less],
            &[],
            &["total", "timer x"],
            false,
        ),
        (
            "the knob answers another",
            [&before, &less],
            &["y"],
            &["total", "timer x"],
            false,
        ),
        (
            "it came less often",
            [
                &of(&[often(UP_AND_DOWN, many)]),
                &of(&[often(down_and_up(), few)]),
            ],
            &["x"],
            &["total"],
            false,
        ),
        (
            "it came as often and took less",
            [
                &of(&[often(UP_AND_DOWN, many)]),
                &of(&[often(halved, many)]),
            ],
            &["x"],
            &["total"],
            false,
        ),
    ] {
        assert_eq!(given_up(sides, answered, decided), expected, "{what}");
    }
}

/// Distances with a mean of 0.735 standard deviations: alone or among 22 figures the probability of a result at the
/// last look exceeds 0.1, among forty it does not.
#[test]
fn what_nobody_predicted_is_one_of_two_figures_of_each_culprit() {
    let away = |at: usize| (0.2f64 * (0.735 + if at.is_multiple_of(2) { 1.0 } else { -1.0 })).exp();
    let first = [0.01; 8];
    let second = std::array::from_fn(|at| 0.01 * away(at));
    let sides = |others: usize| {
        let others = (0..others).map(|n| taken(&format!("other {n}"), first));
        [first, second].map(|of| {
            let all: Vec<Taken> = std::iter::once(taken("x", of))
                .chain(others.clone())
                .collect();
            side([0.5; 8], &all, true)
        })
    };
    let decided = ["total"];
    let [before, after] = sides(0);
    assert!(!given_up([&before, &after], &[], &decided));
    let [before, after] = sides(10);
    assert!(!given_up([&before, &after], &[], &decided));
    let [before, after] = sides(19);
    assert!(given_up([&before, &after], &[], &decided));
    // A predicted culprit is tested on its own.
    assert!(!given_up([&before, &after], &["x"], &decided));
}
