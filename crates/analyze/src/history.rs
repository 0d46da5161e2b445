//! Stolen time over the run, in few steps.

use crate::summary::{CpuHistory, History};
use jitterscope_model::{CpuId, IntervalRow, Nanos, RunManifest, Ticks};

/// The largest number of steps: what fits into a line of text.
const STEPS: u64 = 60;

/// Sums intervals by their middle.
#[derive(Debug)]
pub(crate) struct HistoryBuilder {
    began: Ticks,
    step: Ticks,
    steps: usize,
    control: Option<CpuId>,
    cpus: Vec<CpuHistory>,
    step_ns: Nanos,
}

impl HistoryBuilder {
    pub(crate) fn new(manifest: &RunManifest) -> HistoryBuilder {
        let (began, ended) = manifest.span().unwrap_or_default();
        let span = ended.since(began);
        // A step is a whole number of intervals; otherwise neighbouring steps would have different numbers of them.
        let interval = manifest.rate.ticks(manifest.probe.interval_ns).0.max(1);
        let intervals = (span.0.saturating_add(interval / 2) / interval).max(1);
        let per_step = intervals.div_ceil(STEPS);
        let step = Ticks(interval.saturating_mul(per_step));
        let mut history = HistoryBuilder {
            began,
            step,
            steps: intervals.div_ceil(per_step) as usize,
            control: manifest.idle_control(),
            cpus: Vec::new(),
            step_ns: manifest.rate.nanos(step),
        };
        for result in &manifest.results {
            history.of(result.cpu);
        }
        history
    }

    /// The series of a CPU, created on first use.
    fn of(&mut self, cpu: CpuId) -> &mut CpuHistory {
        let at = self
            .cpus
            .binary_search_by_key(&cpu, |history| history.cpu)
            .unwrap_or_else(|at| {
                let zero = || vec![Nanos::ZERO; self.steps];
                self.cpus.insert(
                    at,
                    CpuHistory {
                        cpu,
                        stolen_ns: zero(),
                        max_ns: zero(),
                    },
                );
                at
            });
        &mut self.cpus[at]
    }

    pub(crate) fn interval(&mut self, row: &IntervalRow) {
        let middle = Ticks(row.start.0 / 2 + row.end.0 / 2);
        let last = self.steps - 1;
        let at = usize::try_from(middle.since(self.began).0 / self.step.0)
            .unwrap_or(last)
            .min(last);
        let of = self.of(row.cpu);
        of.stolen_ns[at] += row.stolen;
        of.max_ns[at] = of.max_ns[at].max(row.max);
    }

    pub(crate) fn finish(self) -> History {
        let summed = || {
            self.cpus
                .iter()
                .filter(|history| Some(history.cpu) != self.control)
        };
        let steps = 0..self.steps;
        History {
            step_ns: self.step_ns,
            stolen_ns: steps
                .clone()
                .map(|at| summed().map(|of| of.stolen_ns[at]).sum())
                .collect(),
            max_ns: steps
                .map(|at| summed().map(|of| of.max_ns[at]).max().unwrap_or_default())
                .collect(),
            cpus: self.cpus,
        }
    }
}
