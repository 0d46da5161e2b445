//! One run as a comparison uses it: a number for each figure and each culprit.

use super::conditions::Conditions;
use super::figure::{Figure, FigureKind, OVER, figures};
use super::poisson::Count;
use super::raised::raise;
use super::{Basis, Interval, within_run};
use crate::SummaryBuilder;
use crate::gate::{GateReason, Unseen};
use crate::history::HistoryBuilder;
use jitterscope_model::{
    Attribution, CpuId, CpuSet, CulpritSums, Doubt, IntervalRow, KeyLevel, MachineState, Nanos,
    PassiveCpu, ProbeKind, RunManifest, Stall, Subject, Ticks, Verdict, Warning,
};

use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;

const MAX_CULPRITS: usize = 4096;

/// A percentile that a run is too short for: it is next to the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Tail {
    #[serde(flatten)]
    pub kind: FigureKind,
    /// The length of a run above whose percentile ten values would lie.
    pub supported_from_ns: Nanos,
}

/// A run as a comparison uses it.
#[derive(Clone, Debug)]
pub struct ComparedRun {
    pub id: String,
    /// The user's name for the configuration.
    pub label: String,
    pub path: String,
    pub hostname: String,
    /// Start of the measurement, nanoseconds since the epoch.
    pub started_realtime_ns: u64,
    /// From the first clock read to the last.
    pub duration_ns: Nanos,
    /// Seconds in which stalls were looked for, summed over CPUs; for watched CPUs, seconds in which an owner had work.
    pub seconds: f64,
    /// CPUs measured.
    pub cpus: CpuSet,
    /// The CPUs that the user selected; `None` for the whole run.
    pub only: Option<CpuSet>,
    /// The number of lost stalls and kernel events.
    pub lost: u64,
    /// Why its verdicts on culprits do not hold; no culprit is named then.
    pub doubts: Vec<Doubt>,
    /// How a started and followed COMMAND failed, if it did: its time is that of a failure.
    pub failed: Option<String>,
    /// The stolen share of this run with its interval, from its blocks; `None` without a spinning probe, or with too
    /// few blocks.
    pub within_run: Option<Interval>,
    /// Whether the run followed threads on any CPU instead of measuring CPUs.
    pub(super) follows_threads: bool,
    pub(super) conditions: Conditions,
    pub(super) machine: Option<MachineState>,
    pub(super) figures: Vec<Figure>,
    /// The stolen or lost share, or the mean lateness in nanoseconds, of each CPU.
    pub(super) of_cpus: Vec<CpuFigure>,
    /// `None` if no culprit was named.
    pub(super) culprits: Option<Vec<CulpritFigures>>,
    /// What the run could not see.
    pub(super) unseen: Unseen,
}

impl ComparedRun {
    /// The value of the total; the first if there are several.
    #[must_use]
    pub fn total(&self) -> Option<f64> {
        self.figures
            .iter()
            .find(|figure| figure.kind.is_total())
            .and_then(|figure| figure.value)
    }

    /// The kind of the total.
    #[must_use]
    pub fn total_kind(&self) -> Option<FigureKind> {
        self.figures
            .iter()
            .map(|figure| figure.kind)
            .find(|kind| kind.is_total())
    }

    /// The length of a run that a percentile needs, if it is more than this run's.
    pub(super) fn supports_from(&self, kind: FigureKind) -> Option<Nanos> {
        let figure = self.figures.iter().find(|figure| figure.kind == kind)?;
        match figure.basis {
            Basis::Few(times) => Some(Nanos((self.duration_ns.0 as f64 * times) as u64)),
            _ => None,
        }
    }

    /// The percentiles that this run cannot support, each with the length of a run that could.
    #[must_use]
    pub fn unsupported(&self) -> Vec<Tail> {
        let of = |figure: &Figure| {
            let kind = figure.kind;
            let supported_from_ns = self.supports_from(kind)?;
            Some(Tail {
                kind,
                supported_from_ns,
            })
        };
        self.figures.iter().filter_map(of).collect()
    }

    /// The number of events of culprits that satisfy `meant`; `None` if no culprit was named.
    #[must_use]
    pub fn events_of(&self, meant: &dyn Fn(&Subject) -> bool) -> Option<u64> {
        let of = |figures: &&CulpritFigures| figures.subject.as_ref().is_some_and(meant);
        Some(
            self.culprits
                .as_ref()?
                .iter()
                .filter(of)
                .map(|figures| figures.count)
                .sum(),
        )
    }

    /// Whether both are of the same recording and share CPUs.
    pub(super) fn is_part_of(&self, other: &ComparedRun) -> bool {
        // Ids are short, and folders can be copied: everything fixed at the start of a recording must be equal.
        let of = |run: &ComparedRun| {
            (
                run.id.clone(),
                run.started_realtime_ns,
                run.hostname.clone(),
                run.label.clone(),
            )
        };
        let whole = self.cpus.is_empty() || other.cpus.is_empty();
        of(self) == of(other) && (whole || !self.cpus.intersection(&other.cpus).is_empty())
    }

    /// Adds the duration of a command, a total of its own: it is what the user waits for.
    #[must_use]
    pub fn with_wall_time(mut self, time: Nanos) -> ComparedRun {
        let kind = FigureKind::WallTime;
        let figure = Figure {
            kind,
            value: Some(time.0 as f64),
            basis: Basis::Lengths,
        };
        self.figures.insert(0, figure);
        self
    }
}

/// One CPU's figure in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuFigure {
    pub(super) cpu: CpuId,
    pub(super) value: f64,
    pub(super) basis: Basis,
}

/// One culprit's figures in a run.
#[derive(Clone, Debug, Default)]
pub(super) struct CulpritFigures {
    pub(super) subject: Option<Subject>,
    pub(super) count: u64,
    pub(super) total: Nanos,
    /// The number of events in `total`, including those too short for a row.
    pub(super) behind: u64,
}

/// Builds a [`ComparedRun`] from a run's rows.
#[derive(Debug)]
pub struct ComparedRunBuilder<'m> {
    manifest: Cow<'m, RunManifest>,
    /// The run's own conditions.
    conditions: Conditions,
    /// The shortest stall that counts.
    least: Ticks,
    machine: Option<MachineState>,
    path: String,
    sums: CulpritSums<(), CulpritFigures>,
    /// The number of stalls of at least each fixed length.
    over: [u64; OVER.len()],
    history: HistoryBuilder,
}

impl<'m> ComparedRunBuilder<'m> {
    /// Begins with the manifest, which must have only the selected CPUs.
    #[must_use]
    pub fn new(
        manifest: &'m RunManifest,
        machine: Option<MachineState>,
        path: &std::path::Path,
    ) -> Self {
        ComparedRunBuilder {
            manifest: Cow::Borrowed(manifest),
            conditions: Conditions::of(manifest, None),
            least: Ticks(0),
            machine,
            path: path.display().to_string(),
            sums: CulpritSums::new(KeyLevel::Program, MAX_CULPRITS),
            over: [0; OVER.len()],
            history: HistoryBuilder::new(manifest),
        }
    }

    /// Counts stalls from this length on, which must be longer than the threshold of the recording. Only runs of a
    /// spinning probe can be counted anew.
    #[must_use]
    pub fn counted_from(mut self, threshold: Nanos) -> Self {
        if self.manifest.probe.kind() == Some(ProbeKind::Spin)
            && threshold > self.manifest.probe.threshold_ns
        {
            self.conditions = Conditions::of(&self.manifest, Some(threshold));
            self.least = self.manifest.rate.ticks(threshold);
            raise(self.manifest.to_mut(), threshold);
        }
        self
    }

    /// Adds a reporting interval. Ignores CPUs that the manifest does not have.
    pub fn interval(&mut self, row: &IntervalRow) {
        if self
            .manifest
            .results
            .iter()
            .any(|result| result.cpu == row.cpu)
        {
            self.history.interval(row);
        }
    }

    /// Adds a stall with its attribution. Ignores CPUs that the manifest does not have.
    pub fn stall(&mut self, stall: &Stall, attribution: &Attribution) {
        let manifest = &*self.manifest;
        let measured = manifest
            .results
            .iter()
            .any(|result| result.cpu == stall.cpu)
            || manifest.passive.iter().any(|of| of.cpu == stall.cpu);
        let somewhere = !manifest.results.is_empty() || !manifest.passive.is_empty();
        let control = self.manifest.idle_control() == Some(stall.cpu);
        // Followed threads have sums of what ran instead, including waits too short for a row.
        let is_short = stall.end.since(stall.start) < self.least;
        if control || is_short || !manifest.threads.is_empty() || (somewhere && !measured) {
            return;
        }
        let length = manifest.rate.nanos(stall.end.since(stall.start));
        for (over, count) in OVER.into_iter().zip(&mut self.over) {
            *count += u64::from(length >= over);
        }
        let mut touched: Vec<usize> = Vec::new();
        for part in &attribution.parts {
            let row = self.sums.position((), &part.culprit.subject);
            let sum = self.sums.at(row);
            sum.total += part.net;
            if !touched.contains(&row) {
                touched.push(row);
                sum.count += 1;
                sum.behind += 1;
            }
        }
    }

    /// Watched CPUs have sums of each culprit's time, including parts too short for a row. Counts stay those of the
    /// rows, as with a probe.
    fn below_the_threshold_too(&mut self) {
        let mut all: CulpritSums<(), (Nanos, u64)> =
            CulpritSums::new(KeyLevel::Program, MAX_CULPRITS);
        for ran in self
            .manifest
            .passive
            .iter()
            .flat_map(|cpu| &cpu.ran_instead)
        {
            let (total, count) = all.of((), &ran.subject);
            *total += ran.total_ns;
            *count = count.saturating_add(ran.count);
        }
        for row in all.into_rows() {
            let sum = self.sums.of((), &row.subject);
            sum.total = sum.total.max(row.value.0);
            sum.behind = sum.behind.max(row.value.1);
        }
    }

    #[must_use]
    pub fn finish(mut self) -> ComparedRun {
        let manifest = self.manifest.clone();
        let manifest = &*manifest;
        let summary = SummaryBuilder::new(manifest).finish();
        let followed = !manifest.threads.is_empty();
        for ran in manifest
            .threads
            .iter()
            .flat_map(|thread| &thread.ran_instead)
        {
            let sum = self.sums.of((), &ran.subject);
            sum.total += ran.total_ns;
            sum.count += ran.count;
            sum.behind += ran.count;
        }
        self.below_the_threshold_too();
        let rows = self.sums.into_rows().into_iter();
        let culprits: Vec<CulpritFigures> = rows
            .map(|row| CulpritFigures {
                subject: Some(row.subject),
                ..row.value
            })
            .collect();
        let mut unseen = Unseen::of(&summary);
        let verdicts = culprits
            .iter()
            .filter_map(|culprit| culprit.subject.as_ref()?.as_verdict());
        if verdicts
            .into_iter()
            .any(|verdict| verdict == Verdict::TraceDataLost)
        {
            unseen.lost.get_or_insert(GateReason::LostWithinStalls);
        }
        let control = manifest.idle_control();
        let lengths = |cpu: CpuId, value: f64| CpuFigure {
            cpu,
            value,
            basis: Basis::Lengths,
        };
        let of_cpus = match &summary.wakeup {
            Some(wakeup) => wakeup
                .cpus
                .iter()
                .filter(|cpu| !cpu.idle_control)
                .filter_map(|cpu| Some(lengths(cpu.cpu, cpu.lateness.corrected_mean_ns?.0)))
                .collect(),
            None if !manifest.passive.is_empty() => manifest
                .passive
                .iter()
                .filter(|cpu| cpu.wanted_ns() > Nanos::ZERO)
                .map(|cpu| lengths(cpu.cpu, cpu.stolen_ns().0 as f64 / cpu.wanted_ns().0 as f64))
                .collect(),
            None => {
                let spun = |cpu: &crate::CpuSummary| {
                    let stalls = Count {
                        events: cpu.stalls,
                        seconds: cpu.measured_ns.as_secs_f64(),
                    };
                    CpuFigure {
                        cpu: cpu.cpu,
                        value: cpu.stolen_fraction,
                        basis: Basis::Events(stalls),
                    }
                };
                summary.probe.cpus.iter().map(spun).collect()
            }
        };
        let seconds = measured(manifest);
        let history = self.history.finish();
        let cpus = history
            .cpus
            .iter()
            .filter(|of| Some(of.cpu) != control)
            .count();
        let block = history.step_ns.0 as f64 * cpus as f64;
        // The last step may be shorter.
        let whole = history.stolen_ns.len().saturating_sub(1);
        let blocks: Vec<f64> = history
            .stolen_ns
            .iter()
            .take(whole)
            .map(|stolen| stolen.0 as f64 / block.max(1.0))
            .collect();
        let spun = manifest.wakeups.is_empty() && !manifest.results.is_empty();
        // A share is at most one.
        let share = |interval: Interval| Interval {
            high: interval.high.min(1.0),
            ..interval
        };
        // Intervals are sums of all stalls of the recording.
        let within = (spun && self.least == Ticks(0))
            .then(|| within_run(&blocks, 0.95).ok())
            .flatten()
            .map(share);
        let failed = manifest.warnings.iter().find_map(|warning| match warning {
            Warning::CommandFailed { status } => Some(status.clone()),
            _ => None,
        });
        ComparedRun {
            within_run: within,
            failed,
            id: manifest.id.clone(),
            label: manifest.label.clone(),
            path: self.path,
            hostname: manifest.host.hostname.clone(),
            started_realtime_ns: manifest.started_realtime_ns(),
            duration_ns: manifest.duration(),
            seconds: seconds.as_secs_f64(),
            cpus: jitterscope_model::RunHead::of(manifest).figures.cpus,
            only: None,
            lost: summary
                .trust
                .dropped_records
                .saturating_add(summary.trust.lost_records.unwrap_or_default()),
            doubts: summary.trust.doubts.clone(),
            follows_threads: manifest.probe.kind() == Some(ProbeKind::Attach),
            conditions: self.conditions,
            machine: self.machine,
            figures: figures(manifest, &summary, self.over),
            of_cpus,
            culprits: ((manifest.attributed || followed) && summary.trust.doubts.is_empty())
                .then_some(culprits),
            unseen,
        }
    }
}

/// The time that culprits' shares refer to: that of all measured CPUs without an idle control; for watched CPUs, the
/// time in which an owner had work; else the whole run.
pub(crate) fn measured(manifest: &RunManifest) -> Nanos {
    let control = manifest.idle_control();
    let measured = manifest
        .results
        .iter()
        .filter(|result| Some(result.cpu) != control);
    let ticks = measured
        .map(|r| r.end.since(r.start).0)
        .fold(0, u64::saturating_add);
    match manifest.passive.iter().map(PassiveCpu::wanted_ns).sum() {
        _ if ticks > 0 => manifest.rate.nanos(Ticks(ticks)),
        Nanos::ZERO => manifest.duration(),
        wanted => wanted,
    }
}
