//! Counters read at every drain, as evidence for stalls without kernel events.

use crate::steal::StealWatch;
use jitterscope_attribute::OutsideHints;
use jitterscope_model::{CpuId, CpuSet, SourceReport};
use jitterscope_platform::{KeptFile, Machine};
use jitterscope_source::counters::parse_rows;
use jitterscope_source::smi::{SmiCounter, SmiError};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Rows of `/proc/interrupts` without tracepoints: callbacks of Hyper-V and other hypervisors, and posted interrupts.
const UNTRACED: [&str; 7] = ["HYP", "HRE", "HVS", "PIN", "NPI", "PIW", "PMN"];

/// How often rows are read that never rose on a measured CPU. Posted interrupts rise only where virtual machines run,
/// and on machines with many CPUs the kernel takes milliseconds for the file. Stalls in between have no such hint.
const READ_UNUSED_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct HintReader {
    interrupts: KeptFile,
    measured: CpuSet,
    smi: Result<SmiCounter, SmiError>,
    last_smi: u32,
    /// Values of the untraced rows at the last read; `None` if the machine has no such row.
    untraced: Option<HashMap<(CpuId, String), u64>>,
    untraced_read: Instant,
    /// `None` without a hypervisor.
    steal: Option<StealWatch>,
}

impl HintReader {
    /// SMIs are counted on `helper`, an unmeasured CPU if there is one: firmware stops all CPUs at once, and reading a
    /// measured CPU's count would interrupt it.
    pub(crate) fn new(
        machine: &Machine,
        measured: &CpuSet,
        helper: CpuId,
        virtual_machine: bool,
    ) -> HintReader {
        let smi = SmiCounter::open(machine, helper);
        let steal = virtual_machine.then(|| StealWatch::new(machine, measured));
        let last_smi = smi
            .as_ref()
            .ok()
            .and_then(|counter| counter.read().ok())
            .unwrap_or(0);
        let (measured, untraced) = (measured.clone(), Some(HashMap::new()));
        let interrupts = KeptFile::of(machine, "/proc/interrupts");
        let untraced_read = Instant::now();
        let mut reader = HintReader {
            interrupts,
            measured,
            smi,
            last_smi,
            untraced,
            untraced_read,
            steal,
        };
        let rows = reader.untraced_values();
        reader.untraced = (!rows.is_empty()).then_some(rows);
        reader
    }

    /// Whether the untraced rows are due: `Some(true)` if they are read every turn.
    fn untraced_are_due(&self) -> Option<bool> {
        let are_used = |rows: &HashMap<_, u64>| rows.values().any(|value| *value > 0);
        let used = self.untraced.as_ref().is_some_and(are_used);
        (used || self.untraced_read.elapsed() >= READ_UNUSED_EVERY).then_some(used)
    }

    fn untraced_values(&mut self) -> HashMap<(CpuId, String), u64> {
        self.untraced_read = Instant::now();
        let text = self.interrupts.read().unwrap_or_default();
        let mut values = HashMap::new();
        for row in parse_rows(&text, |name| UNTRACED.contains(&name)) {
            for (cpu, value) in row
                .values
                .iter()
                .filter(|(cpu, _)| self.measured.contains(*cpu))
            {
                values.insert((*cpu, row.name.to_string()), *value);
            }
        }
        values
    }

    /// The rises since the last call, per CPU.
    pub(crate) fn read(&mut self) -> FxHashMap<CpuId, OutsideHints> {
        let smi = self
            .smi
            .as_ref()
            .ok()
            .and_then(|counter| counter.read().ok())
            .map(|now| {
                let rose = now.wrapping_sub(self.last_smi);
                self.last_smi = now;
                u64::from(rose)
            });
        let mut hints: FxHashMap<CpuId, OutsideHints> = self
            .measured
            .iter()
            .map(|cpu| {
                (
                    cpu,
                    OutsideHints {
                        smi,
                        ..OutsideHints::default()
                    },
                )
            })
            .collect();
        for (cpu, stolen) in self
            .steal
            .as_mut()
            .map(StealWatch::read)
            .unwrap_or_default()
        {
            hints.entry(cpu).or_default().stolen = stolen;
        }
        if let Some(every_turn) = self.untraced_are_due()
            && let Some(before) = self.untraced.take()
        {
            let now = self.untraced_values();
            // A rise since a much earlier turn says nothing about this one.
            for ((cpu, name), value) in now.iter().filter(|_| every_turn) {
                let rose =
                    value.saturating_sub(before.get(&(*cpu, name.clone())).copied().unwrap_or(0));
                if rose > 0 {
                    hints.entry(*cpu).or_default().untraced.push(name.clone());
                }
            }
            self.untraced = Some(now);
        }
        hints
    }

    pub(crate) fn report(&self) -> SourceReport {
        match &self.smi {
            Ok(_) => SourceReport::available("smi"),
            Err(error) => error.report(self.steal.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_rows_are_read_once_a_second_and_others_each_time() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc")).unwrap();
        let counted = |zero: u64, one: u64| {
            let text = format!(
                "           CPU0       CPU1\n PIN: {zero:>10} {one:>10}   Posted-interrupt notification event\n"
            );
            std::fs::write(dir.path().join("proc/interrupts"), text).unwrap();
        };
        counted(7, 0);
        let machine = Machine::at(dir.path());
        let mut reader =
            HintReader::new(&machine, &[CpuId(1)].into_iter().collect(), CpuId(0), false);
        let seen =
            |reader: &mut HintReader| reader.read().remove(&CpuId(1)).unwrap_or_default().untraced;
        counted(8, 1);
        assert!(
            seen(&mut reader).is_empty(),
            "that of a CPU that is not measured makes no row used"
        );
        reader.untraced_read -= READ_UNUSED_EVERY;
        assert!(
            seen(&mut reader).is_empty(),
            "it may have come at any time of that second"
        );
        assert!(seen(&mut reader).is_empty());
        counted(8, 2);
        assert_eq!(seen(&mut reader), ["PIN"], "from then on at every turn");
    }
}
