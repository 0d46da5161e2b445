//! Probes by the kind of their clock. Their loops are compiled with this crate, so they are as fast in a debug build as
//! in a release.

use crate::{
    ClockCosts, ProbeControl, SpinError, SpinOutput, SpinProbe, SpinSettings, WakeupError,
    WakeupProbe, WakeupSettings, clock_costs,
};
use jitterscope_clock::MonotonicRaw;
/// Other architectures have no TSC.
#[cfg(not(target_arch = "x86_64"))]
use jitterscope_clock::MonotonicRaw as Tsc;
#[cfg(target_arch = "x86_64")]
use jitterscope_clock::Tsc;
use jitterscope_model::{ClockKind, CpuId, ProbeResult, Ticks, WakeupResult};
use std::sync::Arc;

/// Runs a probe on the calling thread: see [`SpinProbe::run`] and [`WakeupProbe::run`].
pub type Run<T, E> = Box<dyn FnOnce(&Arc<ProbeControl>) -> Result<T, E> + Send>;

/// See [`SpinProbe::new`].
///
/// # Errors
/// The threshold is out of range.
pub fn spin_probe(
    clock: ClockKind,
    settings: SpinSettings,
) -> Result<(Run<ProbeResult, SpinError>, SpinOutput), SpinError> {
    Ok(match clock {
        ClockKind::Tsc => {
            let (probe, output) = SpinProbe::new(Tsc, settings)?;
            (Box::new(move |control| probe.run(control)), output)
        }
        ClockKind::MonotonicRaw => {
            let (probe, output) = SpinProbe::new(MonotonicRaw, settings)?;
            (Box::new(move |control| probe.run(control)), output)
        }
    })
}

/// See [`WakeupProbe::new`].
///
/// # Errors
/// The period is out of range.
pub fn wakeup_probe(
    clock: ClockKind,
    settings: WakeupSettings,
) -> Result<(Run<WakeupResult, WakeupError>, SpinOutput), WakeupError> {
    Ok(match clock {
        ClockKind::Tsc => {
            let (probe, output) = WakeupProbe::new(Tsc, settings)?;
            (Box::new(move |control| probe.run(control)), output)
        }
        ClockKind::MonotonicRaw => {
            let (probe, output) = WakeupProbe::new(MonotonicRaw, settings)?;
            (Box::new(move |control| probe.run(control)), output)
        }
    })
}

/// See [`clock_costs`].
///
/// # Errors
/// The thread cannot be put on its CPU.
pub fn costs_of_clock(
    clock: ClockKind,
    cpu: CpuId,
    length: Ticks,
) -> Result<ClockCosts, SpinError> {
    match clock {
        ClockKind::Tsc => clock_costs(Tsc, cpu, length),
        ClockKind::MonotonicRaw => clock_costs(MonotonicRaw, cpu, length),
    }
}
