//! All counters at one moment, and their increases between two.

use super::{CounterRow, CounterSource, parse_schedstat, parse_stat, parse_table};
use jitterscope_model::{CpuId, CpuSet, Name, PutInOrder};
use jitterscope_platform::Machine;
use std::collections::BTreeMap;

/// A counter that rose on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterDelta {
    pub cpu: CpuId,
    pub source: CounterSource,
    pub name: Name,
    pub description: Name,
    /// The increase.
    pub count: u64,
}

impl CounterDelta {
    /// One line for a table or a manifest: `interrupt LOC (Local timer interrupts)`.
    #[must_use]
    pub fn label(&self) -> String {
        if self.description.is_empty() {
            format!("{} {}", self.source, self.name)
        } else {
            format!("{} {} ({})", self.source, self.name, self.description)
        }
    }
}

/// The counters of some CPUs at one moment. Missing sources are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    rows: BTreeMap<(CounterSource, Name), (Name, BTreeMap<CpuId, u64>)>,
}

impl Snapshot {
    /// Reads the counters of `cpus`.
    #[must_use]
    pub fn take(machine: &Machine, cpus: &CpuSet) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for source in CounterSource::ALL {
            let Ok(text) = machine.read(source.path()) else {
                continue;
            };
            let rows = match source {
                CounterSource::Interrupts | CounterSource::Softirqs => parse_table(&text),
                CounterSource::Stat => parse_stat(&text),
                CounterSource::Schedstat => parse_schedstat(&text).unwrap_or_default(),
            };
            snapshot.add(source, rows, cpus);
        }
        snapshot
    }

    fn add(&mut self, source: CounterSource, rows: Vec<CounterRow>, cpus: &CpuSet) {
        for row in rows {
            let values = row
                .values
                .into_iter()
                .filter(|(cpu, _)| cpus.contains(*cpu))
                .collect();
            self.rows
                .insert((source, row.name), (row.description, values));
        }
    }

    /// The value of one counter.
    #[must_use]
    pub fn get(&self, source: CounterSource, name: &str, cpu: CpuId) -> Option<u64> {
        self.rows.get(&(source, name.into()))?.1.get(&cpu).copied()
    }

    /// The increases from this moment to `later`, by CPU, then file and name. A counter that appeared meanwhile counts
    /// from zero; counters of a CPU that went offline are left out.
    #[must_use]
    pub fn deltas(&self, later: &Snapshot) -> Vec<CounterDelta> {
        let mut deltas = Vec::new();
        for (key, (description, values)) in &later.rows {
            let before = self.rows.get(key).map(|(_, values)| values);
            for (cpu, now) in values {
                let before = before
                    .and_then(|values| values.get(cpu))
                    .copied()
                    .unwrap_or(0);
                let count = rise(key.0, before, *now);
                if count > 0 {
                    deltas.push(CounterDelta {
                        cpu: *cpu,
                        source: key.0,
                        name: key.1.clone(),
                        description: description.clone(),
                        count,
                    });
                }
            }
        }
        // A stable sort: within a CPU the order of the map remains.
        deltas.order_by_key(|delta| delta.cpu);
        deltas
    }
}

/// The increase of a counter from `before` to `now`.
fn rise(source: CounterSource, before: u64, now: u64) -> u64 {
    if now >= before {
        return now - before;
    }
    let is_32_bit = matches!(source, CounterSource::Interrupts | CounterSource::Softirqs);
    match (u32::try_from(before), u32::try_from(now)) {
        // It wrapped at 2^32 (a timer of 1000 Hz does that in 50 days).
        (Ok(before), Ok(now)) if is_32_bit && now.wrapping_sub(before) < 1 << 31 => {
            now.wrapping_sub(before).into()
        }
        // The interrupt was freed and requested again, and counts from zero. Idle and iowait ticks can really decrease
        // a little.
        _ if is_32_bit => now,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(interrupts: &str) -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("proc")).unwrap();
        fs::write(dir.path().join("proc/interrupts"), interrupts).unwrap();
        fs::write(
            dir.path().join("proc/stat"),
            "cpu0 1 0 0 0 0 0 0 4\ncpu1 1 0 0 0 0 0 0 9\n",
        )
        .unwrap();
        let machine = Machine::at(dir.path());
        (dir, machine)
    }

    #[test]
    fn only_what_rose_on_the_wanted_cpus_is_reported() {
        let cpus: CpuSet = "1".parse().unwrap();
        let (_a, before) =
            machine("CPU0 CPU1\nLOC: 10 20 Local timer interrupts\nRES: 1 1 Rescheduling\n");
        let (_b, after) =
            machine("CPU0 CPU1\nLOC: 90 25 Local timer interrupts\nRES: 9 1 Rescheduling\n");
        let before = Snapshot::take(&before, &cpus);
        assert_eq!(before.get(CounterSource::Stat, "steal", CpuId(1)), Some(9));
        assert_eq!(before.get(CounterSource::Stat, "steal", CpuId(0)), None);
        let deltas = before.deltas(&Snapshot::take(&after, &cpus));
        assert_eq!(deltas.len(), 1);
        assert_eq!((deltas[0].cpu, deltas[0].count), (CpuId(1), 5));
        assert_eq!(deltas[0].label(), "interrupt LOC (Local timer interrupts)");
    }

    #[test]
    fn counters_that_wrap_restart_or_step_back() {
        let irq = CounterSource::Interrupts;
        assert_eq!(rise(irq, 5, 9), 4);
        assert_eq!(rise(irq, u64::from(u32::MAX) - 1, 3), 5);
        assert_eq!(rise(irq, 1000, 7), 7);
        assert_eq!(rise(CounterSource::Stat, 1000, 999), 0);
    }
}
