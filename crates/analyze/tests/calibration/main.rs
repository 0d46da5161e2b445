//! Checks on simulated machines that intervals have their stated coverage, that one setting is rarely called different,
//! and that a change is found. The criteria were fixed before the methods were chosen. The calibration in
//! `crates/experiment` covers experiments and comparisons of labels.
//!
//! Ignored by default, because the tests take minutes: `cargo xtask test calibration` runs them.

mod blocks;
mod few_events;
mod margins;
mod processes;

use jitterscope_analyze::compare::{Design, Effect, Scale, Verdict};
use jitterscope_testing::SplitMix64;
use processes::{ALL, Machine, PLAIN, Process, Run, Setting};
use statrs::distribution::{Beta, ContinuousCDF};

/// The number of experiments for each coverage.
const EXPERIMENTS: usize = 1000;
/// The largest accepted number of wrong verdicts in 400: 20 are expected, and a correct method exceeds this one time in
/// a hundred.
const MOST_WRONG: usize = 31;

/// The 99 % lower bound of a probability, from the number of hits.
fn lower_bound(hits: usize, of: usize) -> f64 {
    if hits == 0 {
        return 0.0;
    }
    Beta::new(hits as f64, (of - hits + 1) as f64)
        .unwrap()
        .inverse_cdf(0.01)
}

fn scatter(figures: &[f64]) -> f64 {
    let mean = figures.iter().sum::<f64>() / figures.len() as f64;
    (figures.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / (figures.len() - 1) as f64).sqrt()
}

type Figure = (&'static str, fn(&Run) -> f64);

const STOLEN: Figure = ("stolen", Run::stolen);
const WAIT: Figure = ("wait", Run::wait);

/// Stalls that many runs do not have.
fn rare(process: Process) -> Figure {
    match process {
        Process::Bursty | Process::HeavyTailed => ("rate over 300 us", |run| run.rate_over(300e-6)),
        Process::Periodic => ("rate over 105 us", |run| run.rate_over(105e-6)),
        Process::Drifting => ("rate over 80 us", |run| run.rate_over(80e-6)),
    }
}

/// The runs of both arms: in pairs, each in random order, or all in random order.
fn arms(
    process: Process,
    seed: u64,
    design: Design,
    runs: usize,
    second: Setting,
) -> [Vec<Run>; 2] {
    let mut machine = Machine::new(process, seed);
    let mut arms = [Vec::new(), Vec::new()];
    match design {
        Design::Paired => {
            for _ in 0..runs {
                let order = if machine.coin() { [0, 1] } else { [1, 0] };
                for arm in order {
                    let run = machine.run([PLAIN, second][arm]);
                    arms[arm].push(run);
                }
            }
        }
        Design::Unpaired | Design::Blocks => {
            let mut order: Vec<usize> = (0..2 * runs).map(|at| at % 2).collect();
            let mut random = SplitMix64(seed ^ 0x5bd1);
            for at in (1..order.len()).rev() {
                order.swap(at, random.below(at as u64 + 1) as usize);
            }
            for arm in order {
                let run = machine.run([PLAIN, second][arm]);
                arms[arm].push(run);
            }
        }
    }
    arms
}

fn figures(arms: &[Vec<Run>; 2], figure: Figure) -> [Vec<f64>; 2] {
    [0, 1].map(|arm| arms[arm].iter().map(figure.1).collect())
}

/// Checks the coverage of the truth at 95 %, and the width relative to the optimum given the scatter of the estimates.
/// Without a `truth` (a distance on the scale), the truth is the mean of the other half of the experiments.
fn check_coverage(what: &str, found: &[Effect], truth: Option<f64>) -> Result<(), String> {
    let (one, other) = found.split_at(found.len() / 2);
    let mut hits = 0;
    for (half, rest) in [(one, other), (other, one)] {
        let mean = rest.iter().map(|effect| effect.distance).sum::<f64>() / rest.len() as f64;
        let truth = truth.unwrap_or(mean);
        let holds = |effect: &&Effect| {
            let interval = effect.interval(0.95);
            interval.low <= truth && truth <= interval.high
        };
        hits += half.iter().filter(holds).count();
    }
    let bound = lower_bound(hits, found.len());
    let width = found
        .iter()
        .map(|effect| effect.interval(0.95).width())
        .sum::<f64>()
        / found.len() as f64;
    let estimates: Vec<f64> = found.iter().map(|effect| effect.distance).collect();
    let oracle = 2.0 * 1.96 * scatter(&estimates);
    let line = format!(
        "{what}: coverage {:.3} (at least {bound:.3}), width {:.2} of an oracle's",
        hits as f64 / found.len() as f64,
        width / oracle
    );
    println!("{line}");
    if bound >= 0.92 && width <= 1.5 * oracle {
        Ok(())
    } else {
        Err(line)
    }
}

/// A fifth off all lengths, and a quarter off their number.
const LESS: Setting = Setting {
    rate: 1.0,
    length: 0.8,
    injected: 0.0,
};
const FEWER: Setting = Setting {
    rate: 0.75,
    length: 1.0,
    injected: 0.0,
};

#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn intervals_hold_what_they_say() {
    let mut wrong = Vec::new();
    for process in ALL {
        // Lengths and their sums scale; waits are not in proportion.
        let figures_of = [
            (STOLEN, LESS, Some(0.8f64.ln()), Scale::Ratio),
            (WAIT, LESS, None, Scale::Ratio),
            (rare(process), FEWER, None, Scale::Difference),
        ];
        for second in [LESS, FEWER] {
            let asked: Vec<_> = figures_of
                .iter()
                .filter(|(_, setting, ..)| *setting == second)
                .collect();
            for (design, simulated, taken) in [
                (Design::Paired, 16, &[8, 16][..]),
                (Design::Unpaired, 5, &[5][..]),
            ] {
                let mut found = vec![vec![Vec::new(); taken.len()]; asked.len()];
                for seed in 0..EXPERIMENTS as u64 {
                    let arms = arms(process, seed * 7919 + 1, design, simulated, second);
                    for ((figure, _, _, scale), found) in asked.iter().zip(&mut found) {
                        let [first, second] = figures(&arms, *figure);
                        for (runs, found) in taken.iter().zip(found) {
                            // If neither arm saw it, the result is a bound instead of an interval.
                            if first[..*runs]
                                .iter()
                                .chain(&second[..*runs])
                                .all(|figure| *figure == 0.0)
                            {
                                continue;
                            }
                            let effect = match design {
                                Design::Paired => Effect::paired(&first[..*runs], &second[..*runs]),
                                Design::Unpaired | Design::Blocks => {
                                    Effect::unpaired(&first, &second)
                                }
                            };
                            found.push(effect.filter(|effect| effect.scale == *scale));
                        }
                    }
                }
                for ((figure, _, truth, _), found) in asked.iter().zip(found) {
                    for (runs, found) in taken.iter().zip(found) {
                        let found: Vec<Effect> = found.into_iter().flatten().collect();
                        let what = format!("{process:?} {design:?} {runs} {}", figure.0);
                        // Figures near zero are ratios in one experiment and differences in the next: two different
                        // truths.
                        assert!(
                            found.len() > EXPERIMENTS / 2,
                            "{what}: {} on that scale",
                            found.len()
                        );
                        wrong.extend(check_coverage(&what, &found, *truth).err());
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_direction(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse)
}
