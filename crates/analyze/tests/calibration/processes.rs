//! Realistic stalls: in bursts, periodic, heavy-tailed, drifting.
#![allow(dead_code, reason = "each test uses its part")]

use jitterscope_testing::SplitMix64;

/// The length of a run in seconds.
pub const RUN: f64 = 10.0;
const BREAK: f64 = 1.5;
/// The number of culprits.
pub const CULPRITS: usize = 8;

#[derive(Clone, Copy, Debug)]
pub enum Process {
    Bursty,
    Periodic,
    HeavyTailed,
    Drifting,
}

pub const ALL: [Process; 4] = [
    Process::Bursty,
    Process::Periodic,
    Process::HeavyTailed,
    Process::Drifting,
];

/// The effect of a setting on the frequency and the length of stalls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    pub rate: f64,
    pub length: f64,
    /// Stolen by one additional culprit, in shares of the time.
    pub injected: f64,
}

pub const PLAIN: Setting = Setting {
    rate: 1.0,
    length: 1.0,
    injected: 0.0,
};

/// A machine whose time continues from run to run.
pub struct Machine {
    process: Process,
    random: SplitMix64,
    now: f64,
    drift: f64,
}

/// The measurements of a run.
pub struct Run {
    /// (when, seconds, culprit).
    stalls: Vec<(f64, f64, usize)>,
}

impl Machine {
    pub fn new(process: Process, seed: u64) -> Machine {
        let mut random = SplitMix64(seed);
        let now = random.uniform() * 100.0;
        Machine {
            process,
            random,
            now,
            drift: 0.0,
        }
    }

    pub fn coin(&mut self) -> bool {
        self.random.bits() & 1 == 1
    }

    pub fn run(&mut self, setting: Setting) -> Run {
        let mut stalls = Vec::new();
        let random = &mut self.random;
        match self.process {
            Process::Bursty => {
                // Runs differ by more than their bursts.
                let of_run = (0.25 * random.normal()).exp();
                poisson(random, 20.0 * setting.rate, |random, at| {
                    stalls.push((
                        at,
                        random.exponential(5e-6) * of_run,
                        random.below(CULPRITS as u64) as usize,
                    ));
                });
                poisson(random, setting.rate, |random, at| {
                    let culprit = random.below(3) as usize;
                    for _ in 0..=random.exponential(20.0) as usize {
                        stalls.push((at, 20e-6 * random.normal().exp() * of_run, culprit));
                    }
                });
            }
            Process::Periodic => {
                let of_run = (0.1 * random.normal()).exp();
                for (period, length, culprit) in [
                    (0.01, 3e-6, 0),
                    (0.25, 20e-6, 1),
                    (1.0, 40e-6, 2),
                    (4.0, 90e-6, 3),
                ] {
                    let period = period / setting.rate;
                    let mut at = (self.now / period).ceil() * period;
                    while at < self.now + RUN {
                        stalls.push((
                            at - self.now,
                            length * of_run * (1.0 + 0.1 * random.normal()).max(0.1),
                            culprit,
                        ));
                        at += period;
                    }
                }
                poisson(random, 5.0 * setting.rate, |random, at| {
                    stalls.push((
                        at,
                        random.exponential(5e-6),
                        random.below(CULPRITS as u64) as usize,
                    ));
                });
            }
            Process::HeavyTailed => {
                poisson(random, 100.0 * setting.rate, |random, at| {
                    // Pareto with an infinite variance, up to a limit.
                    let length = (2e-6 * (1.0 - random.uniform()).powf(-1.0 / 1.3)).min(20e-3);
                    stalls.push((at, length, random.below(CULPRITS as u64) as usize));
                });
            }
            Process::Drifting => {
                // A tenth more from run to run, plus a random walk.
                self.drift += 0.1 + 0.15 * random.normal();
                let level = self.drift.clamp(-2.0, 2.0).exp();
                poisson(random, 100.0 * setting.rate * level, |random, at| {
                    stalls.push((
                        at,
                        random.exponential(10e-6),
                        random.below(CULPRITS as u64) as usize,
                    ));
                });
            }
        }
        for (_, length, _) in &mut stalls {
            *length *= setting.length;
        }
        if setting.injected > 0.0 {
            // About 40 us at a time, as a competitor that is woken at most a hundred times a second.
            let mean = 40e-6;
            poisson(&mut self.random, setting.injected / mean, |random, at| {
                stalls.push((at, mean * random.exponential(1.0), CULPRITS));
            });
        }
        self.now += RUN + BREAK;
        Run { stalls }
    }
}

fn poisson(random: &mut SplitMix64, rate: f64, mut each: impl FnMut(&mut SplitMix64, f64)) {
    let mut at = random.exponential(1.0 / rate);
    while at < RUN {
        each(random, at);
        at += random.exponential(1.0 / rate);
    }
}

impl Run {
    /// (when, seconds, culprit); times are in seconds from the start.
    pub fn stalls(&self) -> &[(f64, f64, usize)] {
        &self.stalls
    }

    pub fn stolen(&self) -> f64 {
        self.stalls.iter().map(|(_, length, _)| length).sum::<f64>() / RUN
    }

    /// Stalls of at least this length, per second.
    pub fn rate_over(&self, threshold: f64) -> f64 {
        self.stalls
            .iter()
            .filter(|(_, length, _)| *length >= threshold)
            .count() as f64
            / RUN
    }

    /// The 99.99th percentile of the wait of a random instant.
    pub fn wait(&self) -> f64 {
        let mut lengths: Vec<f64> = self.stalls.iter().map(|(_, length, _)| *length).collect();
        lengths.sort_by(|a, b| b.total_cmp(a));
        let remaining = 1e-4 * RUN;
        let (mut longer, mut sum) = (0.0, 0.0);
        for length in &lengths {
            if sum - longer * length > remaining {
                break;
            }
            longer += 1.0;
            sum += length;
        }
        ((sum - remaining) / f64::max(longer, 1.0)).max(0.0)
    }

    pub fn stolen_by(&self, culprit: usize) -> f64 {
        self.stalls
            .iter()
            .filter(|(_, _, of)| *of == culprit)
            .map(|(_, length, _)| length)
            .sum::<f64>()
            / RUN
    }
}
