//! Changes of the CPUs' frequency while it is measured: the same work takes another time then.

use jitterscope_model::{CpuId, Ticks};
use std::collections::BTreeMap;

/// What became of one CPU's frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyChanges {
    /// How often it was set.
    pub times: u64,
    /// The lowest that it was set to, kHz.
    pub lowest_khz: u32,
    /// The highest, kHz.
    pub highest_khz: u32,
}

/// Counts changes within the measurement.
#[derive(Debug, Default)]
pub(crate) struct Frequencies {
    measured: Option<(Ticks, Ticks)>,
    cpus: BTreeMap<CpuId, FrequencyChanges>,
}

impl Frequencies {
    /// From when to when changes count.
    pub(crate) fn measure(&mut self, from: Ticks, until: Ticks) {
        self.measured = Some((from, until));
    }

    /// A CPU was set to a frequency.
    pub(crate) fn note(&mut self, cpu: CpuId, at: Ticks, khz: u32) {
        if self
            .measured
            .is_some_and(|(from, until)| from <= at && at <= until)
        {
            let new = FrequencyChanges {
                times: 0,
                lowest_khz: khz,
                highest_khz: khz,
            };
            let changes = self.cpus.entry(cpu).or_insert(new);
            changes.times += 1;
            changes.lowest_khz = changes.lowest_khz.min(khz);
            changes.highest_khz = changes.highest_khz.max(khz);
        }
    }

    /// Those that changed, in order.
    pub(crate) fn of_cpus(&self) -> &BTreeMap<CpuId, FrequencyChanges> {
        &self.cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_within_the_measurement_are_counted_for_each_cpu() {
        let mut frequencies = Frequencies::default();
        frequencies.note(CpuId(1), Ticks(5), 800_000);
        frequencies.measure(Ticks(10), Ticks(20));
        for (cpu, at, khz) in [
            (1, 9, 1),
            (1, 10, 2_000_000),
            (1, 15, 1_200_000),
            (3, 20, 5),
            (1, 21, 9_000_000),
        ] {
            frequencies.note(CpuId(cpu), Ticks(at), khz);
        }
        let counted: Vec<_> = frequencies
            .of_cpus()
            .iter()
            .map(|(cpu, changes)| (cpu.0, *changes))
            .collect();
        let changed = |times, lowest_khz, highest_khz| FrequencyChanges {
            times,
            lowest_khz,
            highest_khz,
        };
        assert_eq!(
            counted,
            [(1, changed(2, 1_200_000, 2_000_000)), (3, changed(1, 5, 5))]
        );
    }
}
