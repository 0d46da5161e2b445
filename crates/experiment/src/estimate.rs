//! An experiment's duration and power, estimated before anything is changed.

use crate::{Change, InForceIn, Rules, interleaves};
use jitterscope_analyze::compare::{Design, Tail, detectable};
use jitterscope_model::{Nanos, SCHEMA_VERSION};
use schemars::JsonSchema;
use serde::Serialize;

/// The duration and power of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    /// Whether the arms are interleaved.
    pub interleaved: bool,
    /// Runs per arm at the first look and at the last.
    pub runs: [usize; 2],
    /// Time until either; null if the length of a run is unknown.
    pub takes_ns: Option<[Nanos; 2]>,
    /// Measured time of a run; null if unknown, as for a command that never ran.
    pub run_ns: Option<Nanos>,
    /// Time of a run besides its measurement.
    pub overhead_ns: Nanos,
    pub overhead_from: OverheadFrom,
    /// Maximum wait until the change is in force, each time that it is made.
    pub apply_wait_ns: Nanos,
    /// Maximum wait until its undoing is in force, each time that another run follows; zero if none does.
    pub wait_ns: Nanos,
    /// Whether anything is predicted; a prediction is decided separately.
    pub predicts: bool,
    /// Number of runs behind the scatter; 0 if it is assumed.
    pub known_from: usize,
    /// Standard deviation of the logarithm of a run's total.
    pub scatter: f64,
    /// The percentiles that runs of this length cannot support, by the newest earlier run. Empty without an earlier run.
    pub unsupported: Vec<Tail>,
    /// The smallest fall of the total, as a share, that the last look would find four times in five; null if no number
    /// of runs could.
    pub detectable_fraction: Option<f64>,
}

/// What is known of the runs before they are made.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The measured time of one run; `None` if unknown.
    pub run: Option<Nanos>,
    pub overhead: RunOverhead,
    /// Totals of earlier runs of one setting on this machine, newest first.
    pub totals: Vec<f64>,
    /// The percentiles that the newest of them cannot support.
    pub unsupported: Vec<Tail>,
}

/// The time of a run besides its measurement.
#[derive(Clone, Copy, Debug)]
pub struct RunOverhead {
    pub time: Nanos,
    pub from: OverheadFrom,
}

/// How the time of a run besides its measurement is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverheadFrom {
    /// Earlier experiments on this machine took that time.
    EarlierRuns,
    /// A short run took it, made for the estimate.
    TrialRun,
    Assumption,
}

impl Default for RunOverhead {
    /// Two idle CPUs of a virtual machine take that long.
    fn default() -> RunOverhead {
        RunOverhead {
            time: Nanos(1_500_000_000),
            from: OverheadFrom::Assumption,
        }
    }
}

/// Assumed scatter of runs: that of one setting on a shared virtual machine.
const ASSUMED: f64 = 0.3;

/// How long `runs` runs take if each measures for `run`.
#[must_use]
pub fn runs_take(run: Nanos, overhead: RunOverhead, runs: usize) -> Nanos {
    Nanos((run.0.saturating_add(overhead.time.0)).saturating_mul(runs as u64))
}

/// Estimates an experiment.
#[must_use]
pub fn estimate(change: &dyn Change, known: &Known, rules: &Rules) -> Estimate {
    let Known {
        run,
        overhead,
        ref totals,
        ref unsupported,
    } = *known;
    let interleaved = interleaves(change, rules);
    let wait = |in_force| match in_force {
        InForceIn::Within(time) => time,
        InForceIn::Now | InForceIn::Unknown => Nanos::ZERO,
    };
    let apply_wait = wait(change.making());
    let wait = if interleaved {
        wait(change.undoing())
    } else {
        Nanos::ZERO
    };
    let (first, last) = (rules.looks.first(), rules.looks.last());
    let runs = if interleaved {
        [first.pairs, last.pairs]
    } else {
        [first.pairs, first.pairs]
    };
    let of = |pairs: usize, run: Nanos| {
        // A quarter of all neighbouring pairs have B followed by B, another quarter A by A.
        let turns = if interleaved { 3 * pairs as u64 / 4 } else { 1 };
        let waits = apply_wait.0.saturating_add(wait.0).saturating_mul(turns);
        Nanos(runs_take(run, overhead, 2 * pairs).0.saturating_add(waits))
    };
    let takes_ns = run.map(|run| runs.map(|pairs| of(pairs, run)));
    let logs: Vec<f64> = totals
        .iter()
        .filter(|total| **total > 0.0)
        .map(|total| total.ln())
        .collect();
    let enough = logs.len() >= 3;
    let scatter = if enough {
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (logs.len() - 1) as f64).sqrt()
    } else {
        ASSUMED
    };
    // One after the other, arms decide no total.
    let distance = interleaved
        .then(|| {
            let deviation = scatter * std::f64::consts::SQRT_2;
            detectable(Design::Paired, deviation, runs[1], last.alpha)
        })
        .flatten();
    Estimate {
        schema_version: SCHEMA_VERSION,
        interleaved,
        runs,
        takes_ns,
        run_ns: run,
        overhead_ns: overhead.time,
        overhead_from: overhead.from,
        apply_wait_ns: apply_wait,
        wait_ns: wait,
        predicts: !change.predicted().is_empty(),
        known_from: if enough { logs.len() } else { 0 },
        scatter,
        unsupported: unsupported.clone(),
        detectable_fraction: distance.map(|distance| -(-distance).exp_m1()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommandChange, Declared};
    use jitterscope_analyze::compare::Looks;

    const SECOND: Nanos = Nanos(1_000_000_000);

    fn of(making: u64, undoing: u64, removes: &[&str]) -> Estimate {
        let within = |seconds: u64| Declared {
            within: Nanos(seconds * SECOND.0),
            seen_by: None,
        };
        let removes = removes
            .iter()
            .map(|what| crate::Predicted::Pattern((*what).to_owned()))
            .collect();
        let change = CommandChange::new("true", "true", None).declaring(
            within(making),
            within(undoing),
            removes,
        );
        let longest_wait = Nanos(60 * SECOND.0);
        let rules = Rules {
            looks: Looks::DEFAULT,
            margin: 0.1,
            longest_wait,
            most_void: 4,
            deadline: None,
        };
        let known = Known {
            run: Some(SECOND),
            ..Known::default()
        };
        estimate(&change, &known, &rules)
    }

    #[test]
    fn what_is_waited_for_after_a_change_counts_as_what_is_after_its_undoing() {
        let took = |of: &Estimate| of.takes_ns.unwrap().map(|time| time.0 / SECOND.0);
        let plain = took(&of(0, 0, &[]));
        let both = of(10, 20, &[]);
        assert_eq!(
            (both.apply_wait_ns, both.wait_ns),
            (Nanos(10 * SECOND.0), Nanos(20 * SECOND.0))
        );
        assert_eq!(took(&both), [plain[0] + 6 * 30, plain[1] + 12 * 30]);
        // Without interleaving it is made once, and nothing follows its undoing.
        let block = of(10, 90, &[]);
        assert_eq!((block.interleaved, block.wait_ns), (false, Nanos::ZERO));
        assert_eq!(took(&block), [plain[0] + 10; 2]);
    }

    #[test]
    fn a_run_takes_besides_what_earlier_ones_took() {
        let run = |overhead| runs_take(SECOND, overhead, 4).0 as f64 / SECOND.0 as f64;
        let earlier = RunOverhead {
            time: Nanos(5 * SECOND.0),
            from: OverheadFrom::EarlierRuns,
        };
        assert_eq!((run(earlier), run(RunOverhead::default())), (24.0, 10.0));
    }

    #[test]
    fn something_is_predicted_only_where_it_was_named() {
        assert!(!of(0, 0, &[]).predicts && of(0, 0, &["kworker"]).predicts);
    }
}
