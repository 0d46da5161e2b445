//! Rates of rare events: equal counts of runs do not mean that a rate is known exactly.

use crate::{MOST_WRONG, is_direction, lower_bound};
use jitterscope_analyze::compare::{
    Basis, Comparison, Count, Design, Grain, Hypothesis, Margin, Scale, Verdict, family,
};
use jitterscope_testing::SplitMix64;

/// The length of a run in seconds.
const RUN: f64 = 8.0;
const EXPERIMENTS: u64 = 400;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Comes {
    ByChance,
    /// Equidistant events, from a random start.
    Evenly,
}

/// The number of events of a run with this expectation.
pub(crate) fn run(random: &mut SplitMix64, comes: Comes, mean: f64) -> u64 {
    match comes {
        Comes::Evenly => (mean + random.uniform()).floor() as u64,
        Comes::ByChance => {
            let (mut at, mut events) = (random.exponential(1.0), 0);
            while at < mean {
                events += 1;
                at += random.exponential(1.0);
            }
            events
        }
    }
}

/// An experiment with this many runs in each arm.
fn experiment(seed: u64, comes: Comes, design: Design, runs: usize, means: [f64; 2]) -> Comparison {
    let mut random = SplitMix64(seed);
    let counts = means.map(|mean| {
        let of = |_| Count {
            events: run(&mut random, comes, mean),
            seconds: RUN,
        };
        (0..runs).map(of).collect::<Vec<Count>>()
    });
    let figures = |arm: usize| counts[arm].iter().map(|count| Some(count.rate())).collect();
    let bases = [0, 1].map(|arm: usize| {
        counts[arm]
            .iter()
            .map(|c| Basis::Events(*c))
            .collect::<Vec<_>>()
    });
    let hypothesis = Hypothesis {
        first: figures(0),
        second: figures(1),
        margin: Margin::default(),
        seconds: [RUN * runs as f64; 2],
        grain: Grain::of([&bases[0], &bases[1]]),
    };
    family(design, 0.05, &[hypothesis]).remove(0)
}

#[test]
#[ignore = "takes minutes: cargo xtask test calibration"]
fn rates_of_few_events_lie_in_their_intervals() {
    let mut wrong = Vec::new();
    for comes in [Comes::ByChance, Comes::Evenly] {
        for (design, runs) in [
            (Design::Paired, 6),
            (Design::Paired, 8),
            (Design::Unpaired, 4),
            (Design::Unpaired, 5),
        ] {
            for (mean, factor) in [
                (0.4, 1.0),
                (3.0, 1.0),
                (3.0, 1.5),
                (20.0, 1.0),
                (300.0, 1.12),
            ] {
                let (mut hits, mut of, mut alike, mut differ) = (0, 0, 0, 0);
                for seed in 0..EXPERIMENTS {
                    let found =
                        experiment(seed * 613 + 11, comes, design, runs, [mean, mean * factor]);
                    alike += usize::from(found.verdict == Verdict::Equivalent);
                    differ += usize::from(is_direction(found.verdict));
                    let Some(interval) = found.interval else {
                        continue;
                    };
                    of += 1;
                    let truth = match found.scale {
                        Scale::Ratio => factor - 1.0,
                        Scale::Difference => mean * (factor - 1.0) / RUN,
                    };
                    hits += usize::from(interval.low <= truth && truth <= interval.high);
                }
                let bound = lower_bound(hits, of);
                let line = format!(
                    "{comes:?} {design:?} {runs} runs of {mean}, {factor} times as many: {hits} of {of} (at least \
                     {bound:.3}), {alike} equivalent, {differ} better or worse"
                );
                println!("{line}");
                let too_many = if factor == 1.0 {
                    differ
                } else if factor > 1.1 {
                    alike
                } else {
                    0
                };
                if bound < 0.92 || too_many > MOST_WRONG {
                    wrong.push(line);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
