//! Waits for quiet CPUs before an iteration.

use crate::exit::UnavailableError;
use jitterscope_analyze::guard::QuietWait;
use jitterscope_model::{CpuSet, Nanos};
use jitterscope_platform::{CpuTimes, Machine, Topology, current_affinity, monotonic_now};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time of one look. The kernel counts in hundredths of a second, so a share is known to 2 %.
const LOOK: Duration = Duration::from_millis(500);
/// Looks whether it is to stop as often.
const NAP: Duration = Duration::from_millis(50);
/// The largest share of a look in which a quiet CPU is not idle.
const BUSY: f64 = 0.05;

/// Waits until the CPUs that a command of this process may use are quiet, for `limit` or one look, whichever is
/// longer. Calls `busy` with the first look that is not quiet, if it waits on. `None` if it was stopped.
///
/// # Errors
/// The kernel does not tell how busy they are.
pub(super) fn wait(
    machine: &Machine,
    limit: Nanos,
    stop: &AtomicBool,
    busy: impl FnOnce(&QuietWait),
) -> anyhow::Result<Option<QuietWait>> {
    let cpus = match current_affinity() {
        Ok(cpus) => cpus,
        // More CPUs than the call's mask has.
        Err(_) => Topology::read(machine).online,
    };
    wait_for(machine, &cpus, limit, busy, || sleep(stop))
}

/// Sleeps for a look; false if it was stopped.
fn sleep(stop: &AtomicBool) -> bool {
    for _ in 0..LOOK.as_millis() / NAP.as_millis() {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(NAP);
    }
    !stop.load(Ordering::Relaxed)
}

fn wait_for(
    machine: &Machine,
    cpus: &CpuSet,
    limit: Nanos,
    busy: impl FnOnce(&QuietWait),
    mut sleep: impl FnMut() -> bool,
) -> anyhow::Result<Option<QuietWait>> {
    let unknown =
        || UnavailableError("--wait-quiet: /proc/stat does not tell how busy the CPUs are".into());
    let read = || CpuTimes::read(machine).value().cloned();
    let begin = monotonic_now();
    let mut before = read().ok_or_else(unknown)?;
    let mut busy = Some(busy);
    while sleep() {
        let after = read().ok_or_else(unknown)?;
        let (busiest_cpu, busy_fraction) =
            before.busiest_until(&after, cpus).ok_or_else(unknown)?;
        let look = QuietWait {
            waited: monotonic_now().saturating_sub(begin),
            quiet: busy_fraction <= BUSY,
            busiest_cpu,
            busy_fraction,
        };
        if look.quiet || look.waited >= limit {
            return Ok(Some(look));
        }
        if let Some(busy) = busy.take() {
            busy(&look);
        }
        before = after;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::CpuId;

    /// Waits on a machine whose CPU 3 is idle for these ticks of each look of 50, one look after the other.
    fn waited(limit: Nanos, idle: &[u64]) -> (Option<QuietWait>, Option<f64>) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let stat = root.path().join("proc/stat");
        let write = |busy: u64, idle: u64| {
            std::fs::write(&stat, format!("cpu3 {busy} 0 0 {idle} 0 0 0 0\n")).unwrap();
        };
        write(0, 0);
        let (mut sums, mut looks) = ((0, 0), idle.iter());
        let machine = Machine::at(root.path());
        let mut first_busy = None;
        let note = |look: &QuietWait| first_busy = Some(look.busy_fraction);
        let waited = wait_for(&machine, &"3".parse().unwrap(), limit, note, || {
            let Some(idle) = looks.next() else {
                return false;
            };
            sums = (sums.0 + 50 - idle, sums.1 + idle);
            write(sums.0, sums.1);
            true
        });
        (waited.unwrap(), first_busy)
    }

    #[test]
    fn it_ends_with_the_first_quiet_look_or_with_its_time() {
        let hour = Nanos(3_600_000_000_000);
        let (quiet, first_busy) = waited(hour, &[0, 40, 48, 50]);
        let quiet = quiet.unwrap();
        assert!(quiet.quiet);
        assert_eq!((quiet.busiest_cpu, quiet.busy_fraction), (CpuId(3), 0.04));
        assert_eq!(first_busy, Some(1.0));
        let (busy, first_busy) = waited(Nanos(1), &[40, 50]);
        let busy = busy.unwrap();
        assert_eq!((busy.quiet, busy.busy_fraction), (false, 0.2));
        assert_eq!(first_busy, None);
        assert_eq!(waited(hour, &[0, 0]).0, None, "stopped");
    }

    #[test]
    fn a_machine_that_does_not_tell_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        let error = wait_for(&machine, &CpuSet::new(), Nanos(1), |_| {}, || true).unwrap_err();
        assert!(error.is::<UnavailableError>(), "{error:#}");
    }
}
