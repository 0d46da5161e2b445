//! Frequency changes of the CPUs during the measurement: they change how long the same work takes.

use jitterscope_model::{CpuId, Ticks};
use std::collections::BTreeMap;

/// The frequency changes of one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyChanges {
    /// The number of changes.
    pub times: u64,
    /// The lowest frequency that was set, kHz.
    pub lowest_khz: u32,
    /// The highest frequency that was set, kHz.
    pub highest_khz: u32,
}

/// Counts changes within the measurement.
#[derive(Debug, Default)]
pub(crate) struct Frequencies {
    measured: Option<(Ticks, Ticks)>,
    cpus: BTreeMap<CpuId, FrequencyChanges>,
}

impl Frequencies {
    /// Sets the time span in which changes count.
    pub(crate) fn measure(&mut self, from: Ticks, until: Ticks) {
        self.measured = Some((from, until));
    }

    /// The frequency of a CPU was set.
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

    /// CPUs with changes, in order.
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
