//! Stolen time over the run, in few steps.

use crate::builder::span;
use crate::summary::History;
use jitterscope_model::{IntervalRow, Nanos, RunManifest, Ticks};

/// Steps at most: what fits into a line of text.
const STEPS: u64 = 60;

/// Adds up intervals by the time of their middle.
#[derive(Debug)]
pub(crate) struct HistoryBuilder {
    began: Ticks,
    step: Ticks,
    history: History,
}

impl HistoryBuilder {
    pub(crate) fn new(manifest: &RunManifest) -> HistoryBuilder {
        let (began, ended) = span(manifest).unwrap_or_default();
        let span = ended.since(began);
        // A step is some whole intervals, or neighbours would differ by how many fell into each.
        let interval = manifest.rate.ticks(manifest.probe.interval_ns).0.max(1);
        let intervals = (span.0.saturating_add(interval / 2) / interval).max(1);
        let per_step = intervals.div_ceil(STEPS);
        let steps = intervals.div_ceil(per_step);
        let step = Ticks(interval.saturating_mul(per_step));
        let empty = || vec![Nanos::ZERO; steps as usize];
        let history = History { step_ns: manifest.rate.nanos(step), stolen_ns: empty(), max_ns: empty() };
        HistoryBuilder { began, step, history }
    }

    pub(crate) fn interval(&mut self, row: &IntervalRow) {
        let middle = Ticks(row.start.0 / 2 + row.end.0 / 2);
        let last = self.history.stolen_ns.len() - 1;
        let at = usize::try_from(middle.since(self.began).0 / self.step.0).unwrap_or(last).min(last);
        self.history.stolen_ns[at] += row.stolen;
        self.history.max_ns[at] = self.history.max_ns[at].max(row.max);
    }

    pub(crate) fn finish(self) -> History {
        self.history
    }
}
