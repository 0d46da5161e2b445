//! Periods that a Linux kernel is known to have.

use jitterscope_model::{CulpritKind, Nanos};

/// A period with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// How long.
    pub period: Nanos,
    /// What has it.
    pub name: &'static str,
    /// Of a timer tick: its frequency.
    pub hz: Option<u32>,
}

const fn known_as(micros: u64, name: &'static str) -> Known {
    Known { period: Nanos(micros * 1000), name, hz: None }
}

const fn tick(micros: u64, hz: u32, name: &'static str) -> Known {
    Known { hz: Some(hz), ..known_as(micros, name) }
}

impl Known {
    /// Whether it can be what a culprit of this kind does at this period, `None` standing for all stalls of a
    /// CPU: threads and devices have no tick, and a kernel has the one that it was built with.
    #[must_use]
    pub fn fits(&self, kind: Option<CulpritKind>, kernel_hz: Option<u32>) -> bool {
        let Some(hz) = self.hz else { return true };
        let of_this_kernel = kernel_hz.is_none_or(|own| own == hz);
        match kind {
            // The host has a tick, too, which this kernel does not see.
            None | Some(CulpritKind::Unresolved | CulpritKind::Hypervisor | CulpritKind::Firmware) => true,
            Some(CulpritKind::Timer | CulpritKind::Softirq | CulpritKind::Irq | CulpritKind::Switch) => {
                of_this_kernel
            }
            Some(_) => false,
        }
    }
}

/// The kernel's own defaults: 1/HZ, `WATCHDOG_INTERVAL` of the clocksource watchdog, `vm.stat_interval`,
/// `PSI_FREQ`, `vm.dirty_writeback_centisecs`, two fifths of `kernel.watchdog_thresh`, and the
/// machine-check poll.
const DICTIONARY: [Known; 10] = [
    tick(1000, 1000, "timer tick at HZ=1000, this kernel's or the host's"),
    tick(3333, 300, "timer tick at HZ=300, this kernel's or the host's"),
    tick(4000, 250, "timer tick at HZ=250, this kernel's or the host's"),
    tick(10_000, 100, "timer tick at HZ=100, this kernel's or the host's"),
    known_as(500_000, "clocksource watchdog"),
    known_as(1_000_000, "vmstat update, or another job of one second"),
    known_as(2_000_000, "pressure stall averages"),
    known_as(4_000_000, "soft-lockup watchdog"),
    known_as(5_000_000, "periodic writeback"),
    known_as(300_000_000, "machine-check poll"),
];

/// The name of a period as the dictionary has it.
pub(super) fn called(name: &str) -> Option<&'static str> {
    DICTIONARY.iter().map(|known| known.name).find(|known| *known == name)
}

/// Two thousandths: jiffies round, and timers of a second are deferred by some.
const TOLERANCE: f64 = 0.002;

/// What is known to have this period.
#[must_use]
pub fn known(period: Nanos) -> Option<Known> {
    let near = |entry: &Known| (period.0 as f64 / entry.period.0 as f64 - 1.0).abs() <= TOLERANCE;
    DICTIONARY.into_iter().find(near)
}

/// All frequencies of the dictionary, in Hz.
pub(super) fn frequencies() -> impl Iterator<Item = f64> {
    DICTIONARY.into_iter().map(|entry| 1e9 / entry.period.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_of_ten_milliseconds_is_no_tick_nor_is_a_timer_of_another_frequency_than_the_kernels() {
        let ten = known(Nanos(10_000_000)).unwrap();
        let four = known(Nanos(4_000_000)).unwrap();
        assert!(
            !ten.fits(Some(CulpritKind::Thread), Some(250)) && !ten.fits(Some(CulpritKind::Thread), None)
        );
        assert!(
            !ten.fits(Some(CulpritKind::Timer), Some(250)) && four.fits(Some(CulpritKind::Timer), Some(250))
        );
        // Where nothing was seen it may be the host's.
        assert!(ten.fits(Some(CulpritKind::Unresolved), Some(250)) && ten.fits(None, Some(250)));
        let second = known(Nanos(1_000_000_000)).unwrap();
        assert!(second.fits(Some(CulpritKind::Kworker), Some(250)));
    }
}
