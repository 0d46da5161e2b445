//! Runs that follow one another resemble one another: what the order of two labels in time does to their verdicts.

use crate::few_events::{Comes, run};
use crate::is_direction;
use jitterscope_analyze::compare::{Basis, Count, Design, Grain, Hypothesis, Margin, family};
use jitterscope_testing::SplitMix64;
use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF, Normal, StudentsT};

const EXPERIMENTS: u64 = 2000;
/// The scatter of the logarithm of a run's total.
const SCATTER: f64 = 0.1;
/// Seconds of a run.
const RUN: f64 = 10.0;
/// Any order of five runs of each label.
const BY_CHANCE: &str = "by chance";

#[derive(Clone, Copy, Debug)]
enum Drift {
    /// Lag-1 autocorrelation.
    Autocorrelated(f64),
    /// At a random run the level changes by this factor, up or down.
    Step(f64),
}

/// The logarithms of a machine's levels, from run to run.
fn levels(random: &mut SplitMix64, drift: Drift, runs: usize) -> Vec<f64> {
    match drift {
        Drift::Autocorrelated(of) => {
            let mut now = random.normal();
            (0..runs)
                .map(|_| {
                    let level = now;
                    now = of * now + (1.0 - of * of).sqrt() * random.normal();
                    SCATTER * level
                })
                .collect()
        }
        Drift::Step(factor) => {
            let at = 1 + random.below(runs as u64 - 1) as usize;
            let up = if random.bits() & 1 == 1 { 1.0 } else { -1.0 };
            let step = |run: usize| if run >= at { up * factor.ln() } else { 0.0 };
            (0..runs)
                .map(|run| step(run) + SCATTER * random.normal())
                .collect()
        }
    }
}

/// The order of the runs: whether each belongs to the second label.
fn order(random: &mut SplitMix64, named: &str) -> Vec<bool> {
    let letters = if named == BY_CHANCE {
        "AAAAABBBBB"
    } else {
        named
    };
    let mut order: Vec<bool> = letters.chars().map(|label| label == 'B').collect();
    if named == BY_CHANCE {
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
    }
    order
}

/// A run of a label.
#[derive(Clone, Copy)]
struct Recorded {
    at: u64,
    figure: f64,
    basis: Basis,
}

type Labels = [Vec<Recorded>; 2];

/// The totals of both labels.
fn recorded(seed: u64, drift: Drift, named: &str, change: f64) -> Labels {
    let mut random = SplitMix64(seed);
    let order = order(&mut random, named);
    let levels = levels(&mut random, drift, order.len());
    let mut labels: Labels = [Vec::new(), Vec::new()];
    for ((second, level), at) in order.into_iter().zip(levels).zip(1u64..) {
        labels[usize::from(second)].push(Recorded {
            at,
            figure: level.exp() * if second { change } else { 1.0 },
            basis: Basis::Lengths,
        });
    }
    labels
}

/// Whether the labels get a direction, in the design that their order shows.
fn is_changed(labels: &Labels) -> bool {
    let of = |get: fn(&Recorded) -> u64| {
        labels
            .each_ref()
            .map(|label| label.iter().map(get).collect::<Vec<u64>>())
    };
    let [first, second] = of(|run| run.at);
    let design = Design::as_recorded(&first, &second);
    let bases = labels
        .each_ref()
        .map(|label| label.iter().map(|run| run.basis).collect::<Vec<_>>());
    let [first, second] = labels
        .each_ref()
        .map(|label| label.iter().map(|run| Some(run.figure)).collect());
    let hypothesis = Hypothesis {
        first,
        second,
        margin: Margin::default(),
        seconds: labels.each_ref().map(|label| RUN * label.len() as f64),
        grain: Grain::of([&bases[0], &bases[1]]),
    };
    is_direction(family(design, 0.05, &[hypothesis])[0].verdict)
}

#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn labels_of_one_setting_are_rarely_different_in_any_order() {
    let mut wrong = Vec::new();
    for named in [
        "AAAAABBBBB",
        "AAAABBBBBA",
        "AAABBBAAABBB",
        "ABABABABAB",
        "AABBAABBAA",
        BY_CHANCE,
    ] {
        for drift in [
            Drift::Autocorrelated(0.0),
            Drift::Autocorrelated(0.3),
            Drift::Autocorrelated(0.5),
            Drift::Autocorrelated(0.8),
            Drift::Step(1.3),
            Drift::Step(2.0),
        ] {
            let called = |seed: &u64| is_changed(&recorded(seed * 331 + 17, drift, named, 1.0));
            let differ = (0..EXPERIMENTS).filter(called).count();
            let line =
                format!("{named}, {drift:?}: {differ} of {EXPERIMENTS} called better or worse");
            println!("{line}");
            // Six in a hundred.
            if differ as u64 * 100 > EXPERIMENTS * 6 {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The power of the two-sided t test of two samples of `runs` whose means differ by `distance` standard deviations:
/// the normal tail beyond the critical t, averaged over the estimate of the deviation.
fn textbook_power(runs: usize, distance: f64) -> f64 {
    let freedom = 2.0 * (runs - 1) as f64;
    let critical = StudentsT::new(0.0, 1.0, freedom)
        .unwrap()
        .inverse_cdf(0.975);
    let (normal, chi) = (
        Normal::new(0.0, 1.0).unwrap(),
        ChiSquared::new(freedom).unwrap(),
    );
    let shift = distance * (runs as f64 / 2.0).sqrt();
    const STEP: f64 = 0.01;
    (0..10_000)
        .map(|n| {
            let square = (f64::from(n) + 0.5) * STEP;
            let limit = critical * (square / freedom).sqrt();
            let beyond = normal.cdf(shift - limit) + normal.cdf(-shift - limit);
            chi.pdf(square) * beyond * STEP
        })
        .sum()
}

/// A setting may change how runs scatter, and not their level: alone, a test that reassigns runs takes that for a
/// difference in one of ten experiments.
#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn labels_that_scatter_unequally_are_rarely_different() {
    for (runs, scatters) in [(4, [0.02, 0.3]), (5, [0.02, 0.3]), (5, [0.3, 0.1])] {
        let called = |seed: &u64| {
            let mut random = SplitMix64(seed * 211 + 3);
            let labels = [0, 1].map(|label: usize| {
                let mut one = |at: u64| Recorded {
                    at: 2 * at + label as u64,
                    figure: (scatters[label] * random.normal()).exp(),
                    basis: Basis::Lengths,
                };
                (0..runs).map(&mut one).collect()
            });
            is_changed(&labels)
        };
        let differ = (0..EXPERIMENTS).filter(called).count();
        println!("{runs} runs each that scatter by {scatters:?}: {differ} of {EXPERIMENTS}");
        // Six in a hundred.
        assert!(
            differ as u64 * 100 <= EXPERIMENTS * 6,
            "{scatters:?}: {differ}"
        );
    }
}

/// The earlier rule: among all 252 divisions of ten runs into two labels, at most 5 % have means of logarithms that
/// differ by at least as much.
fn is_found_by_rearranging(labels: &Labels) -> bool {
    let logs: Vec<f64> = labels.iter().flatten().map(|run| run.figure.ln()).collect();
    let all: f64 = logs.iter().sum();
    let half = labels[0].len();
    let differ = |of_first: f64| (of_first - (all - of_first)).abs();
    let seen = differ(logs[..half].iter().sum());
    let (mut as_large, mut divisions) = (0u32, 0u32);
    for chosen in 0u32..1 << logs.len() {
        if chosen.count_ones() as usize != half {
            continue;
        }
        let of_first = (0..logs.len())
            .filter(|at| chosen >> at & 1 == 1)
            .map(|at| logs[at])
            .sum();
        divisions += 1;
        as_large += u32::from(differ(of_first) >= seen - 1e-12);
    }
    f64::from(as_large) <= 0.05 * f64::from(divisions)
}

/// Withholding every verdict would pass the test above.
#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn a_fifth_less_is_found_about_as_often_as_by_rearranging_alone() {
    let textbook = textbook_power(5, 0.8f64.ln().abs() / SCATTER);
    assert!((textbook - 0.87).abs() < 0.01, "{textbook}");
    for (named, judged) in [
        ("ABABABABAB", 1.0),
        ("ABBAABBAAB", 1.0),
        // Ten of the 252 orders have at most three stretches.
        (BY_CHANCE, 242.0 / 252.0),
    ] {
        let runs = |seed: u64| recorded(seed * 577 + 5, Drift::Autocorrelated(0.0), named, 0.8);
        let share = |is: fn(&Labels) -> bool| {
            let found = (0..EXPERIMENTS).filter(|seed| is(&runs(*seed))).count();
            found as f64 / EXPERIMENTS as f64
        };
        let (found, before) = (share(is_changed), share(is_found_by_rearranging) * judged);
        let wanted = textbook * judged;
        println!(
            "{named}: {found:.3} found, {before:.3} by rearranging, {wanted:.3} by the t test"
        );
        assert!(found >= before - FOR_SCATTER, "{named}: {found} {before}");
        assert!(found >= wanted - LOST_POWER, "{named}: {found} {wanted}");
    }
}

/// What it costs that labels which scatter unequally are not called different (see the test above): rearranging alone
/// calls them different in one of ten experiments. Measured: 0.021, 0.016 and 0.026.
const FOR_SCATTER: f64 = 0.03;

/// What a test may lose that assumes neither equal variances nor normal figures. Measured: 4.5 points, of which the 126
/// different rearrangements cost 3, and unknown variances the rest.
const LOST_POWER: f64 = 0.05;

/// The level doubles where the second label begins: no count of events, however many, tells that from the setting.
#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn counts_in_block_order_have_no_direction() {
    for comes in [Comes::ByChance, Comes::Evenly] {
        for named in ["AB", "AABB", "AAAAABBBBB", "AAAABBBBBA", "AAABBBAAABBB"] {
            for mean in [8.0, 300.0] {
                let called = |seed: &u64| {
                    let mut random = SplitMix64(seed * 97 + 29);
                    let mut labels: Labels = [Vec::new(), Vec::new()];
                    for (label, at) in named.chars().zip(1u64..) {
                        let second = label == 'B';
                        let level = if second { 2.0 } else { 1.0 };
                        let count = Count {
                            events: run(&mut random, comes, mean * level),
                            seconds: RUN,
                        };
                        labels[usize::from(second)].push(Recorded {
                            at,
                            figure: count.rate(),
                            basis: Basis::Events(count),
                        });
                    }
                    is_changed(&labels)
                };
                let differ = (0..200u64).filter(called).count();
                println!("{named}, {mean} events a run, {comes:?}: {differ} of 200");
                assert_eq!(differ, 0, "{named} {mean} {comes:?}");
            }
        }
    }
}
