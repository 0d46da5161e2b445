//! Periods that a Linux kernel is known to have.

use jitterscope_model::Nanos;

/// A period with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// How long.
    pub period: Nanos,
    /// What has it.
    pub name: &'static str,
}

const fn known_as(micros: u64, name: &'static str) -> Known {
    Known { period: Nanos(micros * 1000), name }
}

/// The kernel's own defaults: 1/HZ, `WATCHDOG_INTERVAL` of the clocksource watchdog, `vm.stat_interval`,
/// `PSI_FREQ`, `vm.dirty_writeback_centisecs`, two fifths of `kernel.watchdog_thresh`, and the
/// machine-check poll.
const DICTIONARY: [Known; 10] = [
    known_as(1000, "timer tick at HZ=1000, this kernel's or the host's"),
    known_as(3333, "timer tick at HZ=300, this kernel's or the host's"),
    known_as(4000, "timer tick at HZ=250, this kernel's or the host's"),
    known_as(10_000, "timer tick at HZ=100, this kernel's or the host's"),
    known_as(500_000, "clocksource watchdog"),
    known_as(1_000_000, "vmstat update, or another job of one second"),
    known_as(2_000_000, "pressure stall averages"),
    known_as(4_000_000, "soft-lockup watchdog"),
    known_as(5_000_000, "periodic writeback"),
    known_as(300_000_000, "machine-check poll"),
];

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
