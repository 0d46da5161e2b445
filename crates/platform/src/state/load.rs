//! The load of CPUs between two moments, from `/proc/stat`.

use super::missing;
use crate::machine::Machine;
use jitterscope_model::{CpuId, CpuSet, MachineEntry, MachineSettings, Reading, Scalar};
use std::collections::BTreeMap;

/// The kernel's time counters of every CPU at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// In `/proc/stat`'s order: user, nice, system, idle, iowait, irq, softirq, steal.
    cpus: BTreeMap<CpuId, [u64; 8]>,
}

const IDLE: usize = 3;
const IOWAIT: usize = 4;
const IRQ: usize = 5;
const SOFTIRQ: usize = 6;
const STEAL: usize = 7;

impl CpuTimes {
    #[must_use]
    pub fn read(machine: &Machine) -> Reading<CpuTimes> {
        match machine.read("/proc/stat") {
            Ok(text) => Reading::Value(CpuTimes {
                cpus: text.lines().filter_map(line).collect(),
            }),
            Err(error) => missing(&error),
        }
    }

    /// Stores the shares of the time from here until `end`, for every CPU that is in both and not in `without`. Leaves
    /// out a CPU whose counters did not rise: it was offline, or the time was too short.
    pub fn put_shares_until(
        &self,
        end: &CpuTimes,
        without: &CpuSet,
        settings: &mut MachineSettings,
    ) {
        let mut shares = [const { Vec::new() }; 3];
        for (cpu, before) in &self.cpus {
            let after = end.cpus.get(cpu).filter(|_| !without.contains(*cpu));
            let Some(of) = after.and_then(|after| shares_between(before, after)) else {
                continue;
            };
            for (shares, of) in shares.iter_mut().zip(of) {
                shares.push((*cpu, MachineEntry::new(Scalar::Share(of))));
            }
        }
        for (name, shares) in ["load.busy", "load.interrupts", "load.steal"]
            .into_iter()
            .zip(shares)
        {
            settings.put_each(name, shares);
        }
    }

    /// The CPU of these with the least idle time from here until `end`, and the share of that time in which it was not
    /// idle, taken by the hypervisor included. `None` if the counters of none of them rose.
    #[must_use]
    pub fn busiest_until(&self, end: &CpuTimes, among: &CpuSet) -> Option<(CpuId, f64)> {
        let shares = among.iter().filter_map(|cpu| {
            let [busy, _, steal] = shares_between(self.cpus.get(&cpu)?, end.cpus.get(&cpu)?)?;
            Some((cpu, busy + steal))
        });
        shares.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// The shares of time that was busy (neither idle, nor waiting for a disk, nor taken by the hypervisor), in interrupts
/// and softirqs, and taken by the hypervisor.
fn shares_between(before: &[u64; 8], after: &[u64; 8]) -> Option<[f64; 3]> {
    // User time already includes guest time. iowait may fall, as the kernel's documentation says.
    let mut rose = [0u64; 8];
    for (rose, (before, after)) in rose.iter_mut().zip(before.iter().zip(after)) {
        *rose = after.saturating_sub(*before);
    }
    let total: u64 = rose.iter().fold(0, |sum, part| sum.saturating_add(*part));
    let of_total = |part: u64| {
        // The resolution of the kernel's ticks is below four digits.
        (part as f64 / total as f64 * 10_000.0).round() / 10_000.0
    };
    let resting = rose[IDLE]
        .saturating_add(rose[IOWAIT])
        .saturating_add(rose[STEAL]);
    let interrupts = rose[IRQ].saturating_add(rose[SOFTIRQ]);
    (total > 0).then(|| [total.saturating_sub(resting), interrupts, rose[STEAL]].map(of_total))
}

/// `cpu3 1 2 3 ...`; skips the line that sums all CPUs.
fn line(line: &str) -> Option<(CpuId, [u64; 8])> {
    let mut fields = line.strip_prefix("cpu")?.split(' ');
    let cpu = CpuId(fields.next()?.parse().ok()?);
    let mut times = [0; 8];
    for (time, field) in times.iter_mut().zip(fields) {
        *time = field.parse().ok()?;
    }
    Some((cpu, times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fake;

    fn times(text: &str) -> CpuTimes {
        let (_dir, machine) = fake::machine(&[("/proc/stat", text)]);
        CpuTimes::read(&machine).value().cloned().unwrap()
    }

    fn shares(before: &CpuTimes, after: &CpuTimes, without: &CpuSet) -> MachineSettings {
        let mut settings = MachineSettings::default();
        before.put_shares_until(after, without, &mut settings);
        settings
    }

    #[test]
    fn shares_are_of_the_time_between() {
        let before = times(
            "cpu  9 9 9 9\ncpu0 100 0 0 1000 50 0 0 0 0 0\ncpu1 5 0 0 5 0 0 0 0\ncpu2 1 0 0 1\nintr 5\n",
        );
        let after = times("cpu0 125 0 15 1030 40 5 5 20 0 0\ncpu1 5 0 0 5 0 0 0 0\ncpu2 9 0 0 9\n");
        let measured = [CpuId(2)].into_iter().collect();
        let found = shares(&before, &after, &measured);
        // 25 user, 15 system, 30 idle, 5 irq, 5 softirq, 20 steal of 100.
        for (name, share) in [
            ("load.busy", 0.5),
            ("load.interrupts", 0.1),
            ("load.steal", 0.2),
        ] {
            let cpu = [CpuId(0)].into_iter().collect();
            let expected = MachineEntry::new(Scalar::Share(share)).on(cpu);
            assert_eq!(found.get(name), [expected], "{name}");
        }
    }

    #[test]
    fn the_busiest_of_some_cpus_is_found_with_what_the_hypervisor_took() {
        let before = times("cpu0 0 0 0 0\ncpu1 0 0 0 0\ncpu2 0 0 0 0\ncpu3 5 0 0 5\n");
        let after = times(
            "cpu0 10 0 0 80 10 0 0 0\ncpu1 0 0 0 75 0 0 0 25\ncpu2 100 0 0 0\ncpu3 5 0 0 5\n",
        );
        let among = |cpus: &str| before.busiest_until(&after, &cpus.parse().unwrap());
        assert_eq!(among("0-1"), Some((CpuId(1), 0.25)));
        assert_eq!(among("0"), Some((CpuId(0), 0.1)));
        assert_eq!(among("0-3"), Some((CpuId(2), 1.0)));
        assert_eq!((among("3"), among("7")), (None, None));
    }

    #[test]
    fn hostile_lines_are_left_out() {
        let found = times(
            "cpu0 x\ncpu99999999999 1 2\ncpu\ncpu1 18446744073709551615 18446744073709551615\n",
        );
        assert_eq!(found.cpus.len(), 1);
        let none = shares(&times(""), &found, &CpuSet::new());
        assert_eq!(none, MachineSettings::default());
        let zero = shares(&times("cpu1 0 0\n"), &found, &CpuSet::new());
        let busy = zero.value("load.busy").unwrap();
        assert!(
            matches!(busy, Scalar::Share(share) if *share <= 1.0),
            "{busy:?}"
        );
    }
}
