//! Runs that follow one another resemble one another: what the order of two labels in time does to their verdicts.

use crate::is_direction;
use jitterscope_analyze::compare::{
    Count, Design, Grain, Hypothesis, Margin, SingleCounts, dispersion, family,
};
use jitterscope_testing::SplitMix64;

const EXPERIMENTS: u64 = 2000;
/// The scatter of the logarithm of a run's total.
const SCATTER: f64 = 0.1;
/// Seconds of a run.
const RUN: f64 = 10.0;

#[derive(Clone, Copy, Debug)]
enum Drift {
    /// Lag-1 autocorrelation.
    Autocorrelated(f64),
    /// At a random run the level changes by a factor of 1.3, up or down.
    Step,
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
        Drift::Step => {
            let at = 1 + random.below(runs as u64 - 1) as usize;
            let up = if random.bits() & 1 == 1 { 1.0 } else { -1.0 };
            let step = |run: usize| if run >= at { up * 1.3f64.ln() } else { 0.0 };
            (0..runs)
                .map(|run| step(run) + SCATTER * random.normal())
                .collect()
        }
    }
}

/// The order of the runs: whether each belongs to the second label.
fn order(random: &mut SplitMix64, named: &str) -> Vec<bool> {
    let mut order: Vec<bool> = match named {
        "by chance" => "AAAAABBBBB",
        letters => letters,
    }
    .chars()
    .map(|label| label == 'B')
    .collect();
    if named == "by chance" {
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
    }
    order
}

/// The runs of both labels, each with the time of its recording.
fn recorded(seed: u64, drift: Drift, named: &str, change: f64) -> [Vec<(u64, f64)>; 2] {
    let mut random = SplitMix64(seed);
    let order = order(&mut random, named);
    let levels = levels(&mut random, drift, order.len());
    let mut arms = [Vec::new(), Vec::new()];
    for ((second, level), at) in order.into_iter().zip(levels).zip(1u64..) {
        let total = level.exp() * if second { change } else { 1.0 };
        arms[usize::from(second)].push((at, total));
    }
    arms
}

fn as_recorded(arms: &[Vec<(u64, f64)>; 2]) -> Design {
    let [first, second] = arms
        .each_ref()
        .map(|arm| arm.iter().map(|(at, _)| *at).collect::<Vec<u64>>());
    Design::as_recorded(&first, &second)
}

fn is_changed(design: Design, arms: &[Vec<(u64, f64)>; 2]) -> bool {
    let [first, second] = arms
        .each_ref()
        .map(|arm| arm.iter().map(|(_, total)| Some(*total)).collect());
    let hypothesis = Hypothesis {
        first,
        second,
        margin: Margin::default(),
        seconds: [RUN; 2],
        counts: None,
        grain: Grain::Fine,
    };
    is_direction(family(design, 0.05, &[hypothesis])[0].verdict)
}

#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn labels_of_one_setting_are_rarely_different_in_any_order() {
    let mut wrong = Vec::new();
    for named in [
        "AAAAABBBBB",
        "AAABBBAAABBB",
        "ABABABABAB",
        "AABBAABBAA",
        "by chance",
    ] {
        for drift in [
            Drift::Autocorrelated(0.0),
            Drift::Autocorrelated(0.3),
            Drift::Autocorrelated(0.5),
            Drift::Autocorrelated(0.8),
            Drift::Step,
        ] {
            let called = |seed: u64| {
                let arms = recorded(seed * 331 + 17, drift, named, 1.0);
                is_changed(as_recorded(&arms), &arms)
            };
            let differ = (0..EXPERIMENTS).filter(|seed| called(*seed)).count();
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

/// Withholding every verdict would pass the test above.
#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn a_fifth_less_is_found_as_often_as_without_regard_to_the_order() {
    for named in ["ABABABABAB", "ABBAABBAAB"] {
        let found = |design: &dyn Fn(&[Vec<(u64, f64)>; 2]) -> Design| {
            let is = |seed: &u64| {
                let drift = Drift::Autocorrelated(0.0);
                let arms = recorded(seed * 577 + 5, drift, named, 0.8);
                is_changed(design(&arms), &arms)
            };
            (0..EXPERIMENTS / 2).filter(is).count()
        };
        let (with, without) = (found(&as_recorded), found(&|_| Design::Unpaired));
        println!("{named}: {with} of {} found", EXPERIMENTS / 2);
        assert_eq!(with, without, "{named}");
        assert!(with as u64 * 100 > EXPERIMENTS / 2 * 80, "{named}: {with}");
    }
}

/// The count of a predicted culprit, summed over each label, is decided even where the order decides nothing else.
#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn counts_of_blocks_are_rarely_different_and_show_what_is_gone() {
    for (mean, change, least, most) in
        [(8.0, 1.0, 0, 60), (30.0, 1.0, 0, 60), (8.0, 0.0, 900, 1000)]
    {
        for drift in [
            Drift::Autocorrelated(0.0),
            Drift::Autocorrelated(0.5),
            Drift::Autocorrelated(0.8),
            Drift::Step,
        ] {
            let differ = (0..1000u64)
                .filter(|seed| {
                    let arms = recorded(seed * 97 + 29, drift, "AAAAABBBBB", change);
                    let mut random = SplitMix64(seed ^ 0x77);
                    let counts = arms.each_ref().map(|arm| -> Vec<u64> {
                        arm.iter()
                            .map(|(_, level)| {
                                (mean * level + random.uniform() * f64::from(*level > 0.0)) as u64
                            })
                            .collect()
                    });
                    let count = |arm: usize| Count {
                        events: counts[arm].iter().sum(),
                        seconds: 5.0 * RUN,
                    };
                    let spread = counts
                        .iter()
                        .filter_map(|arm| dispersion(arm))
                        .reduce(f64::max);
                    let of =
                        |arm: usize| counts[arm].iter().map(|n| Some(*n as f64 / RUN)).collect();
                    let hypothesis = Hypothesis {
                        first: of(0),
                        second: of(1),
                        margin: Margin::default(),
                        seconds: [5.0 * RUN; 2],
                        counts: Some(SingleCounts {
                            first: count(0),
                            second: count(1),
                            dispersion: spread,
                        }),
                        grain: Grain::Fine,
                    };
                    is_direction(family(Design::Blocks, 0.05, &[hypothesis])[0].verdict)
                })
                .count();
            println!("{mean} events a run, {change} times as many, {drift:?}: {differ} of 1000");
            assert!(
                (least..=most).contains(&differ),
                "{mean} {change} {drift:?}: {differ}"
            );
        }
    }
}
