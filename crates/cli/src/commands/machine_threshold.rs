//! The threshold of this machine. It is that of the newest stored run that chose one by the costs of its clock: a later
//! run keeps it, or takes a longer one if its clock costs more, so that the runs of a machine can be compared.

use jitterscope_model::{ClockCosts, ClockKind, Nanos, ProbeKind};
use jitterscope_platform::{Machine, choose_clock};
use jitterscope_recording::THRESHOLDS;
use jitterscope_store::{RunEntry, RunReader};
use std::path::Path;
use std::time::Duration;

/// The threshold of a machine, with its calibration.
pub struct MachineThreshold {
    pub threshold: Nanos,
    /// The costs that it is above.
    pub costs: ClockCosts,
    pub clock: ClockKind,
    /// The id of the run that measured them.
    pub run: String,
}

/// The clock that a recording would use; `None` if none works.
pub fn clock(machine: &Machine, asked: Option<ClockKind>) -> Option<ClockKind> {
    let choice = choose_clock(machine, asked, Duration::from_millis(1));
    choice.ok().map(|choice| choice.kind)
}

/// The threshold of this machine with this clock; `None` before its first run in this folder.
pub fn of_machine(runs: &Path, machine: &Machine, clock: ClockKind) -> Option<MachineThreshold> {
    let host = machine.read_trimmed("/proc/sys/kernel/hostname").ok()?;
    let chosen = |run: &&RunEntry| {
        let probe = &run.head.probe;
        // Others were asked for in another way, as those of `sljtest`.
        run.head.hostname == host
            && probe.kind() == Some(ProbeKind::Spin)
            && probe
                .clock_costs
                .is_some_and(|costs| costs.decide_threshold)
            && THRESHOLDS.contains(&probe.threshold_ns.0)
    };
    let all = jitterscope_store::list_own(runs).unwrap_or_default();
    let of_clock = |run: &RunEntry| {
        RunReader::open(&run.path).is_ok_and(|reader| reader.manifest().clock == clock)
    };
    let newest = all.iter().rev().filter(chosen).find(|run| of_clock(run))?;
    Some(MachineThreshold {
        threshold: newest.head.probe.threshold_ns,
        costs: newest.head.probe.clock_costs?,
        clock,
        run: newest.head.id.clone(),
    })
}
