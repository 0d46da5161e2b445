//! Equivalence: on quiet CPUs, over the looks of an experiment, and of percentiles next to the maximum.

use crate::{MOST_WRONG, is_direction};
use jitterscope_analyze::compare::{
    Basis, Comparison, Design, FigureKind, Grain, Hypothesis, Looks, Margin, Verdict, family,
};
use jitterscope_testing::SplitMix64;

const EXPERIMENTS: usize = 400;

fn compared(
    design: Design,
    alpha: f64,
    arms: &[Vec<f64>; 2],
    runs: usize,
    margin: Margin,
) -> Comparison {
    let of = |arm: &Vec<f64>| arm[..runs].iter().map(|figure| Some(*figure)).collect();
    let bases: Vec<Basis> = vec![Basis::Lengths; runs];
    let hypothesis = Hypothesis {
        first: of(&arms[0]),
        second: of(&arms[1]),
        margin,
        seconds: [runs as f64 * 10.0; 2],
        grain: Grain::of([&bases, &bases]),
    };
    family(design, alpha, &[hypothesis]).remove(0)
}

/// Runs of both arms around `level`, with this scatter of their logarithms, and `change` times as much in the second.
fn lognormal(seed: u64, runs: usize, level: f64, scatter: f64, change: f64) -> [Vec<f64>; 2] {
    let mut random = SplitMix64(seed);
    [1.0, change].map(|factor| {
        (0..runs)
            .map(|_| level * factor * (scatter * random.normal()).exp())
            .collect()
    })
}

/// The verdict of an experiment's first look that has one.
fn over_looks(arms: &[Vec<f64>; 2], margin: Margin) -> Verdict {
    let looks = Looks::DEFAULT;
    (1..=looks.last().pairs)
        .filter_map(|pairs| looks.at(pairs))
        .map(|look| compared(Design::Paired, look.alpha, arms, look.pairs, margin).verdict)
        .find(|verdict| *verdict != Verdict::Inconclusive)
        .unwrap_or(Verdict::Inconclusive)
}

fn count(of: impl Fn(u64) -> bool) -> usize {
    (0..EXPERIMENTS as u64)
        .filter(|seed| of(seed * 733 + 41))
        .count()
}

/// 0.01 % stolen, and twice that.
#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn a_doubling_on_a_quiet_cpu_is_not_called_equivalent() {
    let margin = FigureKind::Stolen.margin(Margin::RELATIVE);
    for (level, scatter) in [
        (1e-5, 0.3),
        (1e-4, 0.1),
        (1e-4, 0.3),
        (1e-4, 0.6),
        (1e-3, 0.3),
    ] {
        let labels = count(|seed| {
            let arms = lognormal(seed, 5, level, scatter, 2.0);
            compared(Design::Unpaired, 0.05, &arms, 5, margin).verdict == Verdict::Equivalent
        });
        let looks = count(|seed| {
            let arms = lognormal(seed, 16, level, scatter, 2.0);
            over_looks(&arms, margin) == Verdict::Equivalent
        });
        println!(
            "{level:e} doubled, runs scatter by {scatter}: of {EXPERIMENTS} called equivalent {labels} as labels, \
             {looks} as experiments"
        );
        assert!(
            labels <= MOST_WRONG && looks <= MOST_WRONG,
            "{labels} {looks}"
        );
    }
}

/// The worst case of equivalence: a true change of exactly the margin.
#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn a_change_of_the_margin_is_rarely_called_equivalent_at_any_look() {
    let margin = Margin::default();
    for scatter in [0.03, 0.06, 0.1] {
        let wrong = count(|seed| {
            let arms = lognormal(seed, 16, 1.0, scatter, 1.1);
            over_looks(&arms, margin) == Verdict::Equivalent
        });
        let alike = count(|seed| {
            let arms = lognormal(seed, 16, 1.0, scatter, 1.0);
            over_looks(&arms, margin) == Verdict::Equivalent
        });
        let fifth = count(|seed| {
            let arms = lognormal(seed, 16, 1.0, scatter, 0.8);
            over_looks(&arms, margin) == Verdict::Better
        });
        println!(
            "runs scatter by {scatter}: of {EXPERIMENTS} experiments {wrong} call 10 % more equivalent, {alike} \
             call equal arms equivalent, {fifth} find a fifth less"
        );
        assert!(wrong <= MOST_WRONG, "{scatter}: {wrong}");
        if scatter <= 0.06 {
            assert!(
                alike > EXPERIMENTS / 2 && fifth > EXPERIMENTS * 9 / 10,
                "{alike} {fifth}"
            );
        }
    }
}

/// Percentiles with two or three values above them: nearly the maximum of heavy-tailed stalls.
#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn percentiles_next_to_the_maximum_are_rarely_different_and_a_fix_shows() {
    const RUNS: usize = 6;
    let runs = |seed: u64, change: f64| -> [Vec<f64>; 2] {
        let mut random = SplitMix64(seed);
        [1.0, change].map(|factor| {
            let mut run = || {
                let mut longest: Vec<f64> = (0..200)
                    .map(|_| (1.0 - random.uniform()).powf(-1.0 / 1.5))
                    .collect();
                longest.sort_by(f64::total_cmp);
                factor * longest[197]
            };
            (0..RUNS).map(|_| run()).collect()
        })
    };
    for design in [Design::Unpaired, Design::Paired] {
        let directed = |change: f64| {
            count(|seed| {
                let arms = runs(seed, change);
                let found = compared(design, 0.05, &arms, RUNS, Margin::default());
                is_direction(found.verdict)
            })
        };
        let (equal, fixed) = (directed(1.0), directed(0.1));
        println!(
            "{design:?}, next to the maximum: of {EXPERIMENTS} {equal} equal arms called different, {fixed} tenfold \
             falls found"
        );
        assert!(
            equal <= MOST_WRONG && fixed > EXPERIMENTS * 3 / 4,
            "{equal} {fixed}"
        );
    }
}
