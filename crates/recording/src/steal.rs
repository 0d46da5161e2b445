//! Stolen time as this kernel counts it: the host ran other guests.

use jitterscope_model::{CpuId, CpuSet, Nanos};
use jitterscope_platform::{KeptFile, Machine};
use jitterscope_source::counters::parse_stat;
use std::collections::BTreeMap;

/// `/proc/stat` counts in hundredths of a second (`USER_HZ`).
const TICK: Nanos = Nanos(10_000_000);

/// Reads stolen time, on virtual machines only: the file is long on large machines.
pub(crate) struct StealWatch {
    file: KeptFile,
    measured: CpuSet,
    counted: BTreeMap<CpuId, u64>,
}

impl StealWatch {
    pub(crate) fn new(machine: &Machine, measured: &CpuSet) -> StealWatch {
        let (file, measured) = (KeptFile::of(machine, "/proc/stat"), measured.clone());
        let mut watch = StealWatch {
            file,
            measured,
            counted: BTreeMap::new(),
        };
        watch.counted = watch.count();
        watch
    }

    fn count(&mut self) -> BTreeMap<CpuId, u64> {
        let text = self.file.read().unwrap_or_default();
        let rows = parse_stat(&text)
            .into_iter()
            .filter(|row| &*row.name == "steal");
        rows.flat_map(|row| row.values)
            .filter(|(cpu, _)| self.measured.contains(*cpu))
            .collect()
    }

    /// Time stolen since the last call, for CPUs with any.
    pub(crate) fn read(&mut self) -> Vec<(CpuId, Nanos)> {
        let now = self.count();
        let rose = |(cpu, count): (&CpuId, &u64)| {
            let before = self.counted.get(cpu).copied().unwrap_or(*count);
            let stolen = Nanos(count.saturating_sub(before).saturating_mul(TICK.0));
            (stolen > Nanos::ZERO).then_some((*cpu, stolen))
        };
        let stolen = now.iter().filter_map(rose).collect();
        self.counted = now;
        stolen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_rose_is_reported_and_only_of_measured_cpus() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc")).unwrap();
        let write = |one: u64, two: u64, three: u64| {
            let line = |cpu, steal| format!("cpu{cpu} 1 2 3 4 5 6 7 {steal} 0 0\n");
            let text = format!(
                "cpu 1 1\n{}{}{}intr 1\n",
                line(1, one),
                line(2, two),
                line(3, three)
            );
            std::fs::write(dir.path().join("proc/stat"), text).unwrap();
        };
        write(5, 5, 5);
        let mut watch = StealWatch::new(&Machine::at(dir.path()), &"1-2".parse().unwrap());
        write(5, 8, 9);
        assert_eq!(watch.read(), [(CpuId(2), Nanos(30_000_000))]);
        assert_eq!(watch.read(), []);
    }
}
