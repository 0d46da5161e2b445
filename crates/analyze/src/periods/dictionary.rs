//! Known periods of a Linux kernel.
//!
//! The name in this table is the only word for its period: stored summaries and JSON contain it, and reading a summary
//! looks it up ([`called`]), as for the words of verdicts, phases and evidence (`model/culprit/`). `view` prints it
//! unchanged.

use super::of_kind::{TickOwner, of_kind};
use jitterscope_model::{CulpritKind, Nanos};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub period: Nanos,
    what: What,
}

/// The source of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// An activity of this kernel.
    Job(&'static str),
    /// A timer tick.
    Tick(Tick),
}

/// A timer tick, with a name for each possible owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tick {
    hz: u32,
    /// The name of this kernel's tick.
    own: &'static str,
    /// The name if this kernel and its host may have the same tick.
    either: &'static str,
    /// The name of the host's tick, if this kernel has another.
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

/// The tick-related properties of a run's machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickOf {
    /// The frequency of its kernel's tick; `None` if unreadable.
    pub kernel_hz: Option<u32>,
    /// Whether it has a host, which has a tick, too.
    pub virtual_machine: bool,
}

impl Known {
    /// The name of the period for a culprit of this kind, or for all stalls of a CPU (`None`). Threads and devices have
    /// no tick, a kernel has the one it was built with, and the host's tick is a possibility only where this kernel
    /// recorded nothing itself.
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

/// The kernel's own defaults: 1/HZ, `WATCHDOG_INTERVAL` of the clocksource watchdog, `vm.stat_interval`, `PSI_FREQ`,
/// `vm.dirty_writeback_centisecs`, two fifths of `kernel.watchdog_thresh`, and the machine-check poll.
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

/// Looks up a name in the dictionary.
pub(super) fn called(name: &str) -> Option<&'static str> {
    DICTIONARY
        .iter()
        .flat_map(Known::names)
        .find(|known| *known == name)
}

/// The relative tolerance: jiffies round, and timers of a second may be deferred.
const TOLERANCE: f64 = 0.002;

/// The known period of this length.
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
    fn a_tick_at_another_frequency_is_at_most_the_hosts() {
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
            // A thread that sleeps for ten milliseconds has no tick.
            (10, Some(Thread), guest, None),
            (10, Some(Thread), TickOf::default(), None),
            // A timer of this kernel does not have another frequency.
            (10, Some(Timer), guest, None),
            (4, Some(Timer), guest, Some("timer tick at HZ=250")),
            // This kernel recorded nothing.
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
            // The kernel's frequency is unknown.
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
