//! Correlates the kernel's own counters with the stolen time, for recordings without kernel events.

use jitterscope_model::{CounterTotal, CpuId, CpuSet, Nanos};
use jitterscope_platform::Machine;
use jitterscope_source::counters::{CounterDelta, Snapshot};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Minimum number of intervals for a correlation.
const ENOUGH: u64 = 5;

/// Running sums per interval: a counter's rise (x) and the stolen time (y).
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    total: u64,
    x: f64,
    xx: f64,
    xy: f64,
}

/// Watches the counters of the measured CPUs.
pub(crate) struct CounterWatch {
    machine: Machine,
    cpus: CpuSet,
    every: Duration,
    last: Snapshot,
    last_at: Instant,
    stolen: FxHashMap<CpuId, Nanos>,
    intervals: u64,
    /// Per CPU: sums of y and of y squared.
    time: HashMap<CpuId, (f64, f64)>,
    counters: BTreeMap<(CpuId, String), Sums>,
}

impl CounterWatch {
    /// Starts counting, in intervals of `every`.
    pub(crate) fn start(machine: &Machine, cpus: &CpuSet, every: Duration) -> CounterWatch {
        CounterWatch {
            machine: machine.clone(),
            cpus: cpus.clone(),
            every: every.max(Duration::from_millis(100)),
            last: Snapshot::take(machine, cpus),
            last_at: Instant::now(),
            stolen: FxHashMap::default(),
            intervals: 0,
            time: HashMap::new(),
            counters: BTreeMap::new(),
        }
    }

    pub(crate) fn stolen(&mut self, cpu: CpuId, length: Nanos) {
        *self.stolen.entry(cpu).or_default() += length;
    }

    /// Closes the interval if it is over.
    pub(crate) fn tick(&mut self) {
        if self.last_at.elapsed() >= self.every {
            self.close();
        }
    }

    fn close(&mut self) {
        let now = Snapshot::take(&self.machine, &self.cpus);
        let deltas = self.last.deltas(&now);
        self.last = now;
        self.last_at = Instant::now();
        self.add(deltas);
    }

    fn add(&mut self, deltas: Vec<CounterDelta>) {
        self.intervals += 1;
        for cpu in self.cpus.iter() {
            let y = self
                .stolen
                .get(&cpu)
                .copied()
                .unwrap_or_default()
                .as_secs_f64();
            let (sum, squares) = self.time.entry(cpu).or_default();
            *sum += y;
            *squares += y * y;
        }
        for delta in deltas {
            let y = self
                .stolen
                .get(&delta.cpu)
                .copied()
                .unwrap_or_default()
                .as_secs_f64();
            let sums = self.counters.entry((delta.cpu, delta.label())).or_default();
            let x = delta.count as f64;
            sums.total = sums.total.saturating_add(delta.count);
            sums.x += x;
            sums.xx += x * x;
            sums.xy += x * y;
        }
        self.stolen.clear();
    }

    /// Closes the last interval and sums up. A counter that did not rise in an interval contributes zero to the sums.
    pub(crate) fn finish(mut self) -> Vec<CounterTotal> {
        self.close();
        let n = self.intervals as f64;
        self.counters
            .iter()
            .map(|((cpu, name), sums)| {
                let (y, yy) = self.time.get(cpu).copied().unwrap_or_default();
                let (vx, vy) = (n * sums.xx - sums.x * sums.x, n * yy - y * y);
                let correlation = (self.intervals >= ENOUGH && vx > 0.0 && vy > 0.0)
                    .then(|| ((n * sums.xy - sums.x * y) / (vx * vy).sqrt()).clamp(-1.0, 1.0));
                CounterTotal {
                    cpu: *cpu,
                    name: name.clone(),
                    total: sums.total,
                    correlation,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_source::counters::CounterSource;

    fn delta(name: &str, count: u64) -> CounterDelta {
        CounterDelta {
            cpu: CpuId(1),
            source: CounterSource::Softirqs,
            name: name.into(),
            description: "".into(),
            count,
        }
    }

    #[test]
    fn what_rises_with_the_stolen_time_correlates_and_what_does_not_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let cpus: CpuSet = "1".parse().unwrap();
        let mut watch =
            CounterWatch::start(&Machine::at(dir.path()), &cpus, Duration::from_secs(1000));
        for n in 0..10u64 {
            watch.stolen(CpuId(1), Nanos(n * 1_000_000));
            // TIMER rises with the stolen time, RCU against it, SCHED by the same each time.
            watch.add(vec![
                delta("TIMER", 100 * n),
                delta("RCU", 1000 - 100 * n),
                delta("SCHED", 7),
            ]);
        }
        let totals = watch.finish();
        let of = |name: &str| totals.iter().find(|t| t.name.contains(name)).unwrap();
        assert_eq!(of("SCHED").total, 70);
        assert!(of("TIMER").correlation.unwrap() > 0.9);
        assert!(of("RCU").correlation.unwrap() < -0.5);
    }
}
