//! The threshold of this machine: the one that its latest calibrations needed, except for the longest of them, which a
//! busy moment may have raised. A run keeps it, or takes a longer one if its own clock costs more, so that the runs of a
//! machine can be compared.

use jitterscope_model::{ClockCosts, ClockKind, Nanos, ProbeKind, PutInOrder};
use jitterscope_platform::{Machine, choose_clock, hostname};
use jitterscope_recording::needed_threshold;
use jitterscope_store::{RunEntry, RunReader};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::path::Path;
use std::time::Duration;

/// The number of latest calibrations that count.
const LATEST: usize = 9;

/// The threshold of a machine, with its calibration.
#[derive(Serialize, JsonSchema)]
pub struct MachineThreshold {
    #[serde(rename = "threshold_ns")]
    pub threshold: Nanos,
    /// The costs that it is above.
    #[serde(flatten)]
    pub costs: ClockCosts,
    pub clock: ClockKind,
    /// The id of the run that measured them.
    pub run: String,
}

/// The threshold of this machine, with the clock that a recording would use; `None` if no clock works, or before the
/// first run in this folder.
pub fn of_machine(
    runs: &Path,
    machine: &Machine,
    asked: Option<ClockKind>,
) -> Option<MachineThreshold> {
    let clock = choose_clock(machine, asked, Duration::from_millis(1))
        .ok()?
        .kind;
    let host = hostname(machine);
    let all = jitterscope_store::list_own(runs).unwrap_or_default();
    let calibrated = |run: &RunEntry| {
        let probe = &run.head.probe;
        // Others were asked for in another way, as those of `sljtest`.
        let of_machine = run.head.hostname == host && probe.kind() == Some(ProbeKind::Spin);
        let costs = probe.clock_costs.filter(|costs| costs.decide_threshold)?;
        let same_clock = || RunReader::open(&run.path).is_ok_and(|of| of.manifest().clock == clock);
        (of_machine && same_clock()).then(|| MachineThreshold {
            threshold: needed_threshold(costs),
            costs,
            clock,
            run: run.head.id.clone(),
        })
    };
    let latest = all.iter().rev().filter_map(calibrated).take(LATEST);
    longest_but_one(latest.collect())
}

/// That of a single calibration; the newest of equal ones.
fn longest_but_one(mut latest: Vec<MachineThreshold>) -> Option<MachineThreshold> {
    latest.order_by_key(|of| Reverse(of.threshold));
    let at = usize::from(latest.len() > 1);
    (at < latest.len()).then(|| latest.swap_remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_busy_moment_does_not_raise_the_threshold_and_two_do() {
        let of = |thresholds: &[u64]| {
            let made = thresholds.iter().zip(0..).map(|(ns, n)| MachineThreshold {
                threshold: Nanos(*ns),
                costs: ClockCosts::default(),
                clock: ClockKind::Tsc,
                run: format!("r{n}"),
            });
            longest_but_one(made.collect()).map(|of| (of.threshold.0, of.run))
        };
        let found = |ns, run: &str| Some((ns, run.to_owned()));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[500]), found(500, "r0"));
        assert_eq!(of(&[2_000, 300]), found(300, "r1"));
        assert_eq!(of(&[300, 2_000, 300, 500]), found(500, "r3"));
        assert_eq!(of(&[300, 500, 500, 300]), found(500, "r2"));
    }
}
