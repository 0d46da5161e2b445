//! Counters read at every drain, as evidence for stalls without kernel events.

use crate::steal::StealWatch;
use jitterscope_attribute::OutsideHints;
use jitterscope_model::{CpuId, CpuSet, SourceReport};
use jitterscope_platform::{KeptFile, Machine};
use jitterscope_source::counters::parse_rows;
use jitterscope_source::smi::{SmiCounter, SmiError};
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// Rows of `/proc/interrupts` whose vectors have no tracepoints: Hyper-V's and the hypervisors'
/// callbacks, and posted interrupts.
const UNTRACED: [&str; 7] = ["HYP", "HRE", "HVS", "PIN", "NPI", "PIW", "PMN"];

/// Reads them.
pub(crate) struct HintReader {
    interrupts: KeptFile,
    measured: CpuSet,
    smi: Result<SmiCounter, SmiError>,
    last_smi: u32,
    /// Values of the untraced rows at the last read; `None` when the machine has no such row.
    untraced: Option<HashMap<(CpuId, String), u64>>,
    /// `None` where there is no host.
    steal: Option<StealWatch>,
}

impl HintReader {
    /// SMIs are counted on `helper`, a CPU that is not measured if there is one: firmware stops all CPUs at once, and asking a measured CPU for its
    /// count would interrupt it.
    pub(crate) fn new(
        machine: &Machine,
        measured: &CpuSet,
        helper: CpuId,
        virtual_machine: bool,
    ) -> HintReader {
        let smi = SmiCounter::open(machine, helper);
        let steal = virtual_machine.then(|| StealWatch::new(machine, measured));
        let last_smi = smi.as_ref().ok().and_then(|counter| counter.read().ok()).unwrap_or(0);
        let (measured, untraced) = (measured.clone(), Some(HashMap::new()));
        let interrupts = KeptFile::of(machine, "/proc/interrupts");
        let mut reader = HintReader { interrupts, measured, smi, last_smi, untraced, steal };
        let rows = reader.untraced_values();
        reader.untraced = (!rows.is_empty()).then_some(rows);
        reader
    }

    fn untraced_values(&mut self) -> HashMap<(CpuId, String), u64> {
        let text = self.interrupts.read().unwrap_or_default();
        let mut values = HashMap::new();
        for row in parse_rows(&text, |name| UNTRACED.contains(&name)) {
            for (cpu, value) in row.values.iter().filter(|(cpu, _)| self.measured.contains(*cpu)) {
                values.insert((*cpu, row.name.to_string()), *value);
            }
        }
        values
    }

    /// What rose since the last call, by CPU.
    pub(crate) fn read(&mut self) -> FxHashMap<CpuId, OutsideHints> {
        let smi = self.smi.as_ref().ok().and_then(|counter| counter.read().ok()).map(|now| {
            let rose = now.wrapping_sub(self.last_smi);
            self.last_smi = now;
            u64::from(rose)
        });
        let mut hints: FxHashMap<CpuId, OutsideHints> =
            self.measured.iter().map(|cpu| (cpu, OutsideHints { smi, ..OutsideHints::default() })).collect();
        for (cpu, stolen) in self.steal.as_mut().map(StealWatch::read).unwrap_or_default() {
            hints.entry(cpu).or_default().stolen = stolen;
        }
        if let Some(before) = self.untraced.take() {
            let now = self.untraced_values();
            for ((cpu, name), value) in &now {
                let rose = value.saturating_sub(before.get(&(*cpu, name.clone())).copied().unwrap_or(0));
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
