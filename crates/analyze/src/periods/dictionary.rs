//! Periods that a Linux kernel is known to have.
//!
//! A name here is the word for its period wherever one is: a stored summary and JSON hold it, and the former is read
//! back by it ([`called`]), as the words of verdicts, phases and evidence are (`model/culprit/`). So this table has them
//! and view prints them as they stand.

use super::of_kind::{TickOwner, of_kind};
use jitterscope_model::{CulpritKind, Nanos};

/// A period with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// How long.
    pub period: Nanos,
    what: What,
}

/// What has a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Something of this kernel.
    Job(&'static str),
    /// A timer tick.
    Tick(Tick),
}

/// A timer tick, by whose it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tick {
    /// Its frequency.
    hz: u32,
    /// It is this kernel's.
    own: &'static str,
    /// It is this kernel's, or its host has the same.
    either: &'static str,
    /// This kernel has another.
    hosts: &'static str,
}

const fn known_as(micros: u64, name: &'static str) -> Known {
    Known {
        period: Nanos(micros * 1000),
        what: What::Job(name),
    }
}

const fn tick(micros: u64, tick: Tick) -> Known {
    Known {
        period: Nanos(micros * 1000),
        what: What::Tick(tick),
    }
}

macro_rules! tick {
    ($micros:literal, $hz:literal) => {
        tick(
            $micros,
            Tick {
                hz: $hz,
                own: concat!("timer tick at HZ=", $hz),
                either: concat!("timer tick at HZ=", $hz, ", this kernel's or the host's"),
                hosts: concat!("perhaps the host's timer tick, at HZ=", $hz),
            },
        )
    };
}

/// The machine of which a run's periods are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickOf {
    /// The frequency of its kernel's tick; `None` where that could not be read.
    pub kernel_hz: Option<u32>,
    /// Whether it has a host, which has a tick, too.
    pub virtual_machine: bool,
}

impl Known {
    /// What it is called where it can be what a culprit of this kind does at this period, `None` standing for all
    /// stalls of a CPU: threads and devices have no tick, a kernel has the one that it was built with, and a host's
    /// is a possibility only where this kernel saw nothing itself.
    #[must_use]
    pub fn name(&self, kind: Option<CulpritKind>, of: TickOf) -> Option<&'static str> {
        let tick = match self.what {
            What::Job(name) => return Some(name),
            What::Tick(tick) => tick,
        };
        let own = of.kernel_hz.is_none_or(|own| own == tick.hz);
        match kind.map_or(TickOwner::KernelOrHost, |kind| of_kind(kind).tick) {
            TickOwner::KernelOrHost => match (own, of.virtual_machine) {
                (true, true) => Some(tick.either),
                (true, false) => Some(tick.own),
                (false, true) => Some(tick.hosts),
                (false, false) => None,
            },
            TickOwner::Kernel => own.then_some(tick.own),
            TickOwner::Nobody => None,
        }
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        match self.what {
            What::Job(name) => [Some(name), None, None],
            What::Tick(tick) => [Some(tick.own), Some(tick.either), Some(tick.hosts)],
        }
        .into_iter()
        .flatten()
    }
}

/// The kernel's own defaults: 1/HZ, `WATCHDOG_INTERVAL` of the clocksource watchdog, `vm.stat_interval`,
/// `PSI_FREQ`, `vm.dirty_writeback_centisecs`, two fifths of `kernel.watchdog_thresh`, and the
/// machine-check poll.
const DICTIONARY: [Known; 10] = [
    tick!(1000, 1000),
    tick!(3333, 300),
    tick!(4000, 250),
    tick!(10_000, 100),
    known_as(500_000, "clocksource watchdog"),
    known_as(1_000_000, "vmstat update, or another job of one second"),
    known_as(2_000_000, "pressure stall averages"),
    known_as(4_000_000, "soft-lockup watchdog"),
    known_as(5_000_000, "periodic writeback"),
    known_as(300_000_000, "machine-check poll"),
];

/// The name of a period as the dictionary has it.
pub(super) fn called(name: &str) -> Option<&'static str> {
    DICTIONARY
        .iter()
        .flat_map(Known::names)
        .find(|known| *known == name)
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
    DICTIONARY
        .into_iter()
        .map(|entry| 1e9 / entry.period.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(millis: u64, kind: Option<CulpritKind>, of: TickOf) -> Option<&'static str> {
        known(Nanos(millis * 1_000_000)).unwrap().name(kind, of)
    }

    #[test]
    fn a_tick_is_this_kernels_by_its_own_frequency_and_at_another_at_most_the_hosts() {
        use CulpritKind::{Hypervisor, Thread, Timer, Unresolved};
        let metal = TickOf {
            kernel_hz: Some(250),
            virtual_machine: false,
        };
        let guest = TickOf {
            virtual_machine: true,
            ..metal
        };
        for (millis, kind, of, name) in [
            // A sleeper of ten milliseconds has none.
            (10, Some(Thread), guest, None),
            (10, Some(Thread), TickOf::default(), None),
            // Nor is a timer of this kernel one of another frequency.
            (10, Some(Timer), guest, None),
            (4, Some(Timer), guest, Some("timer tick at HZ=250")),
            // Where this kernel saw nothing.
            (10, Some(Unresolved), metal, None),
            (10, None, metal, None),
            (
                10,
                Some(Unresolved),
                guest,
                Some("perhaps the host's timer tick, at HZ=100"),
            ),
            (
                10,
                Some(Hypervisor),
                guest,
                Some("perhaps the host's timer tick, at HZ=100"),
            ),
            (
                4,
                Some(Hypervisor),
                guest,
                Some("timer tick at HZ=250, this kernel's or the host's"),
            ),
            (4, None, metal, Some("timer tick at HZ=250")),
            // Its own frequency is not known.
            (
                10,
                Some(Timer),
                TickOf::default(),
                Some("timer tick at HZ=100"),
            ),
            (
                1000,
                Some(CulpritKind::Kworker),
                metal,
                Some("vmstat update, or another job of one second"),
            ),
        ] {
            assert_eq!(
                named(millis, kind, of),
                name,
                "{millis} ms of {kind:?}, {of:?}"
            );
        }
    }

    #[test]
    fn what_a_summary_keeps_is_found_again() {
        for name in DICTIONARY.iter().flat_map(Known::names) {
            assert_eq!(called(name), Some(name));
        }
    }
}
