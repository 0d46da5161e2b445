//! The figures that comparisons use: one number for each run.

use super::poisson::Count;
use super::{Basis, Margin};
use crate::RunSummary;
use crate::counts::{Counts, Ppm};
use crate::cpu::{OF_TIME, SUPPORT};
use jitterscope_model::{
    BlockReason, Nanos, PassiveCpu, PipelineRole, RunManifest, ThreadAccount, Ticks,
};
use schemars::JsonSchema;
use serde::Serialize;

/// The fixed lengths over which stalls and late wake-ups are counted, so that all runs count alike.
pub(super) const OVER: [Nanos; 5] = [
    Nanos(1_000),
    Nanos(10_000),
    Nanos(100_000),
    Nanos(1_000_000),
    Nanos(10_000_000),
];

/// The width of a bucket of a three-digit histogram, as a share of its value.
const BUCKET: f64 = 1e-3;

/// The kinds of figures. Lower is better for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "figure")]
pub enum FigureKind {
    /// Share of the measured time that was stolen.
    Stolen,
    /// Stalls of this length and above, per second of one CPU; on CPUs watched without a probe, per second in which an
    /// owner had work.
    StallsOver { over_ns: Nanos },
    /// The wait of a random instant until the next clock read, in nanoseconds.
    Wait {
        /// The percentile.
        percentile: &'static str,
    },
    /// A percentile of the stalls alone, in nanoseconds: shown but not judged, because removing short stalls raises it.
    Stall {
        /// The percentile.
        percentile: &'static str,
    },
    /// The mean lateness of wake-ups with missed deadlines filled in, in nanoseconds.
    MeanLateness,
    /// A percentile of that lateness.
    Lateness {
        /// The percentile.
        percentile: &'static str,
    },
    /// Wake-ups that are late by this and more, per second of one CPU.
    LateOver { over_ns: Nanos },
    /// The mean time of a message from its intended publication to its reception, in nanoseconds.
    MeanMessage { role: PipelineRole },
    /// A percentile of that time.
    Message {
        role: PipelineRole,
        /// The percentile.
        percentile: &'static str,
    },
    /// Slow messages per second.
    SlowMessages { role: PipelineRole },
    /// The duration of a command, in nanoseconds.
    WallTime,
    /// The time in which followed threads, or the owners of watched CPUs, waited for a CPU or were interrupted, as a
    /// share of the time in which they had work.
    Lost,
    /// The part of [`FigureKind::Lost`] after a wake-up or a preemption.
    Waiting,
    /// The part of [`FigureKind::Lost`] under interrupts.
    Interrupted,
    /// The time in which followed threads slept for a reason, as a share of their followed time.
    Blocked { reason: &'static str },
    /// Preemptions of followed threads, per second.
    Preemptions,
    /// Migrations of followed threads to another CPU, per second.
    Migrations,
    /// The longest of all, in nanoseconds: shown with the time of observation, and never judged.
    Worst,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    /// A share of a time.
    Fraction,
    /// Times a second.
    PerSec,
    /// Nanoseconds.
    Ns,
}

impl FigureKind {
    #[must_use]
    pub fn unit(self) -> FigureUnit {
        match self {
            FigureKind::Stolen
            | FigureKind::Lost
            | FigureKind::Waiting
            | FigureKind::Interrupted
            | FigureKind::Blocked { .. } => FigureUnit::Fraction,
            FigureKind::StallsOver { .. }
            | FigureKind::LateOver { .. }
            | FigureKind::SlowMessages { .. }
            | FigureKind::Preemptions
            | FigureKind::Migrations => FigureUnit::PerSec,
            _ => FigureUnit::Ns,
        }
    }

    /// Whether the figure gets a verdict.
    #[must_use]
    pub fn is_judged(self) -> bool {
        !matches!(self, FigureKind::Stall { .. } | FigureKind::Worst)
    }

    /// Whether the figure is the total loss in runs of its probe.
    #[must_use]
    pub fn is_total(self) -> bool {
        self.total_name().is_some()
    }

    /// Its name among several totals, if it is one.
    pub(super) fn total_name(self) -> Option<&'static str> {
        match self {
            FigureKind::Stolen => Some("stolen"),
            FigureKind::Lost => Some("lost"),
            FigureKind::MeanLateness => Some("lateness"),
            FigureKind::WallTime => Some("wall time"),
            FigureKind::MeanMessage {
                role: PipelineRole::Accumulator,
            } => Some("messages"),
            _ => None,
        }
    }

    /// The largest difference that does not matter; `relative` is the requested share.
    #[must_use]
    pub fn margin(self, relative: f64) -> Margin {
        let absolute = if self.unit() == FigureUnit::Fraction {
            Margin::STOLEN
        } else {
            0.0
        };
        Margin { relative, absolute }
    }
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub kind: FigureKind,
    /// `None` if the run cannot show it.
    pub value: Option<f64>,
    /// The basis of the value.
    pub basis: Basis,
}

/// All figures of a run, in the order of display. `over`: the number of its stored stalls of at least each length in
/// [`OVER`].
pub(super) fn figures(
    manifest: &RunManifest,
    summary: &RunSummary,
    over: [u64; OVER.len()],
) -> Vec<Figure> {
    let mut found = Figures(Vec::new());
    if let Some(pipeline) = &summary.pipeline {
        of_pipeline(&mut found, pipeline);
    } else if let Some(wakeup) = &summary.wakeup {
        of_wakeups(&mut found, manifest, &wakeup.total);
    } else if !manifest.results.is_empty() {
        of_spinning(&mut found, manifest, summary);
    } else if !manifest.threads.is_empty() {
        of_threads(&mut found, manifest);
    } else if !manifest.passive.is_empty() {
        of_watched(&mut found, manifest, over);
    }
    found.0
}

struct Figures(Vec<Figure>);

impl Figures {
    /// Adds a figure of so many lengths that no single one matters, or one without a verdict.
    fn add(&mut self, kind: FigureKind, value: Option<f64>) {
        self.0.push(Figure {
            kind,
            value,
            basis: Basis::Lengths,
        });
    }

    /// Adds a rate, in events per second.
    fn rate(&mut self, kind: FigureKind, events: u64, seconds: f64) {
        let count = Count { events, seconds };
        let value = (seconds > 0.0).then(|| count.rate());
        self.0.push(Figure {
            kind,
            value,
            basis: Basis::Events(count),
        });
    }

    /// Adds a percentile above which `above` values lie, as [`Figures::percentile`]; fewer than ten leave it next to the
    /// maximum.
    fn supported(&mut self, kind: FigureKind, value: Option<f64>, unit: f64, above: f64) {
        let needed = SUPPORT as f64;
        // Rounding must not cost a round number of values its percentile.
        if value.is_some() && above * (1.0 + 1e-9) < needed {
            let basis = Basis::Few(needed / above.max(f64::MIN_POSITIVE));
            self.0.push(Figure { kind, value, basis });
        } else {
            self.percentile(kind, value, unit);
        }
    }

    /// Adds a percentile, in nanoseconds, of a histogram whose smallest bucket is `unit` nanoseconds wide and which has
    /// three digits.
    fn percentile(&mut self, kind: FigureKind, value: Option<f64>, unit: f64) {
        let share = value.map_or(0.0, |value| {
            if value > 0.0 {
                (unit / value).max(BUCKET)
            } else {
                0.0
            }
        });
        self.0.push(Figure {
            kind,
            value,
            basis: Basis::Bucket(share),
        });
    }
}

fn ppm_of(percentile: &str) -> Ppm {
    OF_TIME
        .into_iter()
        .find(|(name, _)| *name == percentile)
        .map_or(Ppm(0), |(_, share)| share)
}

fn share_of(percentile: &str) -> f64 {
    f64::from(ppm_of(percentile).0) / 1e6
}

fn seconds_measured(manifest: &RunManifest) -> f64 {
    let control = manifest.idle_control();
    let measured = manifest
        .results
        .iter()
        .filter(|result| Some(result.cpu) != control);
    let ticks: u64 = measured
        .map(|r| r.end.since(r.start).0)
        .fold(0, u64::saturating_add);
    manifest.rate.nanos(Ticks(ticks)).as_secs_f64()
}

fn of_spinning(found: &mut Figures, manifest: &RunManifest, summary: &RunSummary) {
    let total = &summary.probe.total;
    let seconds = seconds_measured(manifest);
    let stalls = Count {
        events: total.stalls,
        seconds,
    };
    found.0.push(Figure {
        kind: FigureKind::Stolen,
        value: (seconds > 0.0).then_some(total.stolen_fraction),
        basis: Basis::Events(stalls),
    });
    for over_ns in OVER
        .into_iter()
        .filter(|over| *over >= manifest.probe.threshold_ns)
    {
        let least = manifest.rate.ticks(over_ns).0;
        let of = |r: &jitterscope_model::ProbeResult| -> u64 {
            r.above
                .iter()
                .filter(|(ticks, _)| *ticks >= least)
                .map(|(_, count)| *count)
                .sum()
        };
        let count: u64 = manifest.results.iter().map(of).sum();
        found.rate(FigureKind::StallsOver { over_ns }, count, seconds);
    }
    let tick = 1e9 / manifest.rate.hz.max(1) as f64;
    for percentile in ["99", "99.9", "99.99", "99.999"] {
        let value = total
            .instant_percentiles_ns
            .get(percentile)
            .copied()
            .flatten()
            .map(|ns| ns.0);
        let kind = FigureKind::Wait { percentile };
        let above = total.waits_above(1.0 - share_of(percentile), value.unwrap_or(0.0));
        found.supported(kind, value, tick, above);
    }
    for percentile in ["50", "99", "99.9"] {
        let value = total
            .stall_percentiles_ns
            .get(percentile)
            .copied()
            .flatten();
        found.add(FigureKind::Stall { percentile }, value.map(|ns| ns.0));
    }
    found.add(FigureKind::Worst, total.max_ns.map(|ns| ns.0 as f64));
}

fn of_wakeups(found: &mut Figures, manifest: &RunManifest, total: &crate::Lateness) {
    let seconds = seconds_measured(manifest);
    found.add(
        FigureKind::MeanLateness,
        total.corrected_mean_ns.map(|ns| ns.0),
    );
    let control = manifest.idle_control();
    let measured = || manifest.wakeups.iter().filter(|w| Some(w.cpu) != control);
    let corrected = measured().fold(Counts::default(), |all, of| {
        all.merged(&Counts::of(&of.corrected))
    });
    for percentile in ["50", "99", "99.9", "99.99"] {
        let (share, ppm) = (share_of(percentile), ppm_of(percentile));
        let value = corrected.quantile(ppm).map(|ns| ns as f64);
        let above = corrected.len() as f64 * (1.0 - share);
        found.supported(FigureKind::Lateness { percentile }, value, 1.0, above);
    }
    for over_ns in OVER {
        let of = |w: &jitterscope_model::WakeupResult| -> u64 {
            w.plain
                .iter()
                .filter(|(late, _)| *late >= over_ns.0)
                .map(|(_, count)| *count)
                .sum()
        };
        let count: u64 = measured().map(of).sum();
        let kind = FigureKind::LateOver { over_ns };
        match total.wakeups {
            Some(_) => found.rate(kind, count, seconds),
            // A killed recorder took the counts with it.
            None => found.add(kind, None),
        }
    }
    found.add(FigureKind::Worst, total.max_ns.map(|ns| ns.0 as f64));
}

fn of_pipeline(found: &mut Figures, pipeline: &crate::PipelineSummary) {
    let seconds = pipeline.duration_ns.as_secs_f64();
    let mut worst = None;
    for consumer in &pipeline.consumers {
        let (role, times) = (consumer.role, &consumer.from_intended);
        let any = times.count > 0;
        found.add(
            FigureKind::MeanMessage { role },
            any.then_some(times.mean_ns.0 as f64),
        );
        for percentile in ["50", "99", "99.9", "99.99"] {
            let value = times.percentiles_ns.get(percentile).filter(|_| any);
            let above = times.count as f64 * (1.0 - share_of(percentile));
            let kind = FigureKind::Message { role, percentile };
            found.supported(kind, value.map(|ns| ns.0 as f64), 1.0, above);
        }
        found.rate(FigureKind::SlowMessages { role }, consumer.slow, seconds);
        worst = worst.max(any.then_some(times.max_ns));
    }
    found.add(FigureKind::Worst, worst.map(|ns| ns.0 as f64));
}

fn of_threads(found: &mut Figures, manifest: &RunManifest) {
    let threads = &manifest.threads;
    let sum = |of: fn(&jitterscope_model::ThreadAccount) -> u64| -> u64 {
        threads.iter().map(of).fold(0, u64::saturating_add)
    };
    let (waiting, interrupted) = (
        sum(|t| t.waiting_ns.0) as f64,
        sum(|t| t.interrupted_ns.0) as f64,
    );
    let active = sum(|t| t.running_ns.0) as f64 + waiting;
    let share = |part: f64| (active > 0.0).then(|| part / active);
    found.add(FigureKind::Lost, share(waiting + interrupted));
    found.add(FigureKind::Waiting, share(waiting));
    found.add(FigureKind::Interrupted, share(interrupted));
    // Per second of work: a thread that sleeps more is not preempted less.
    found.rate(
        FigureKind::Preemptions,
        sum(|t| t.involuntary_switches),
        active / 1e9,
    );
    found.rate(FigureKind::Migrations, sum(|t| t.migrations), active / 1e9);
    of_sleeps(found, threads);
    found.add(
        FigureKind::Worst,
        threads
            .iter()
            .map(|t| t.longest_wait_ns.0 as f64)
            .reduce(f64::max),
    );
}

/// One figure for each reason, zero if no thread slept for it. A run without stacks has no such figure.
fn of_sleeps(found: &mut Figures, threads: &[ThreadAccount]) {
    let followed: Nanos = threads.iter().map(ThreadAccount::followed_ns).sum();
    let rows = || threads.iter().flat_map(|thread| &thread.blocked_on);
    if !rows().any(|row| row.reason != BlockReason::NotRecorded) {
        return;
    }
    for reason in BlockReason::KNOWN {
        let of_reason = rows().filter(|row| row.reason == *reason);
        let slept: Nanos = of_reason.map(|row| row.blocked_ns).sum();
        let share = slept.0 as f64 / followed.0.max(1) as f64;
        let kind = FigureKind::Blocked {
            reason: reason.as_str(),
        };
        found.add(kind, Some(share));
    }
}

/// The figures of watched CPUs. All are relative to the time in which an owner had work: an owner that sleeps more does
/// not lose less.
fn of_watched(found: &mut Figures, manifest: &RunManifest, over: [u64; OVER.len()]) {
    let cpus = &manifest.passive;
    let sum = |of: fn(&PassiveCpu) -> Nanos| -> f64 { cpus.iter().map(of).sum::<Nanos>().0 as f64 };
    let wanted = sum(PassiveCpu::wanted_ns);
    let share = |part: f64| (wanted > 0.0).then(|| part / wanted);
    found.add(FigureKind::Lost, share(sum(PassiveCpu::stolen_ns)));
    found.add(FigureKind::Waiting, share(sum(|cpu| cpu.waiting_ns)));
    found.add(
        FigureKind::Interrupted,
        share(sum(|cpu| cpu.interrupted_ns)),
    );
    for (over_ns, count) in OVER.into_iter().zip(over) {
        if over_ns >= manifest.probe.threshold_ns {
            found.rate(FigureKind::StallsOver { over_ns }, count, wanted / 1e9);
        }
    }
    found.add(
        FigureKind::Worst,
        cpus.iter()
            .map(|cpu| cpu.longest_ns.0 as f64)
            .reduce(f64::max),
    );
}
