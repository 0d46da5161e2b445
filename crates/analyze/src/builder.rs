//! Builds the summary of a run from its rows, in bounded memory.

use crate::blame::BlameBuilder;
use crate::cpu::{self, share};
use crate::cpu_summary::CpuSummary;
use crate::culprit_row::CulpritRow;
use crate::gate;
use crate::history::HistoryBuilder;
use crate::marks::MarkFold;
use crate::owners::OwnerRow;
use crate::periods::Effort;
use crate::pipeline;
use crate::price;
use crate::profile::{self, ProfileFold};
use crate::rows::{RowSummer, RowSums};
use crate::rows_of::RowsOf;
use crate::summary::{
    AttributionSummary, ProbeSummary, RunHeader, RunSummary, SourceSummary, SummaryWarning, Trust,
    Unexplained,
};
use crate::worst_case;
use jitterscope_model::{
    Attribution, Delivery, Doubt, EventsInGaps, IntervalRow, KeyLevel, MachineState, MarkLog,
    Nanos, Row, RunManifest, SCHEMA_VERSION, Sink, SinkError, Stall, StallId, Warning,
};

/// Takes a run's rows in order of their ids and builds its summary: see [`RowSummer`] for the order. If the sums of the
/// stalls are [known](SummaryBuilder::known), it needs only the intervals.
#[derive(Debug)]
pub struct SummaryBuilder<'m> {
    manifest: &'m RunManifest,
    path: String,
    rows: RowSummer,
    known: Option<RowSums>,
    history: HistoryBuilder,
    blame: BlameBuilder,
    machine: Option<MachineState>,
    marks: Option<MarkFold<'m>>,
    profile: Option<ProfileFold<'m>>,
}

impl<'m> SummaryBuilder<'m> {
    /// Begins the summary of a run.
    #[must_use]
    pub fn new(manifest: &'m RunManifest) -> SummaryBuilder<'m> {
        SummaryBuilder {
            manifest,
            path: String::new(),
            rows: RowSummer::new(RowsOf::run(manifest)),
            known: None,
            history: HistoryBuilder::new(manifest),
            blame: BlameBuilder::new(manifest, KeyLevel::Program),
            machine: None,
            marks: None,
            profile: ProfileFold::new(manifest),
        }
    }

    /// Whether the verdict of the run's profile needs its stalls, beyond known sums.
    #[must_use]
    pub fn needs_stalls(manifest: &RunManifest) -> bool {
        ProfileFold::new(manifest).is_some()
    }

    /// Sets the run's folder.
    #[must_use]
    pub fn path(mut self, path: &std::path::Path) -> SummaryBuilder<'m> {
        self.path = path.display().to_string();
        self
    }

    /// Sets the machine of the recording.
    #[must_use]
    pub fn machine(mut self, machine: Option<MachineState>) -> SummaryBuilder<'m> {
        self.machine = machine;
        self
    }

    /// Sets the application's logs. They need the stalls' rows, and are not part of known sums.
    #[must_use]
    pub fn marks(mut self, logs: Vec<MarkLog>) -> SummaryBuilder<'m> {
        self.marks = (!logs.is_empty()).then(|| MarkFold::new(logs, self.manifest));
        self
    }

    /// Uses the settings of stored sums: a report that has the result of [`SummaryBuilder::into_sums`] needs no rows.
    #[must_use]
    pub fn stored(self) -> SummaryBuilder<'m> {
        let (level, worst, effort) = RowSums::STORED;
        self.level(level).worst(worst).periods(effort)
    }

    /// Keeps this many of the longest stalls.
    #[must_use]
    pub fn worst(mut self, limit: usize) -> SummaryBuilder<'m> {
        self.rows.worst(limit);
        self
    }

    /// Keeps only the stall of this id instead of the worst ones.
    #[must_use]
    pub fn only(mut self, stall: StallId) -> SummaryBuilder<'m> {
        self.rows.only(stall);
        self
    }

    /// Keeps at most this many separate culprits.
    #[must_use]
    pub fn max_culprits(mut self, cap: usize) -> SummaryBuilder<'m> {
        self.rows.max_culprits(cap);
        self
    }

    /// Sets the level at which culprits are separate; the default is by program.
    #[must_use]
    pub fn level(mut self, level: KeyLevel) -> SummaryBuilder<'m> {
        self.rows.level(level);
        self.blame = BlameBuilder::new(self.manifest, level);
        self
    }

    /// Searches for periods in the stalls of a spinning probe, with this effort. Wake-ups and messages begin at
    /// deadlines, which are periodic themselves.
    #[must_use]
    pub fn periods(mut self, effort: Effort) -> SummaryBuilder<'m> {
        self.rows.periods(effort);
        self
    }

    /// Uses known sums instead of stall rows.
    #[must_use]
    pub fn known(mut self, sums: RowSums) -> SummaryBuilder<'m> {
        self.known = Some(sums);
        self
    }

    pub fn stall(&mut self, stall: &Stall) {
        if self.manifest.idle_control() != Some(stall.cpu) {
            self.blame
                .stall(stall, self.manifest.rate.nanos(stall.length()));
        }
        if let Some(marks) = &mut self.marks {
            marks.stall(stall);
        }
        if let Some(profile) = &mut self.profile {
            profile.stall(stall);
        }
        self.rows.stall(stall);
    }

    /// Adds the attribution of an earlier stall.
    pub fn attribution(&mut self, attribution: &Attribution) {
        self.blame.attribution(attribution);
        if let Some(marks) = &mut self.marks {
            marks.attribution(attribution);
        }
        if let Some(profile) = &mut self.profile {
            profile.attribution(attribution);
        }
        self.rows.attribution(attribution);
    }

    /// Adds one interval of one CPU.
    pub fn interval(&mut self, row: &IntervalRow) {
        self.history.interval(row);
    }

    /// The sums of the stalls, to store with the run.
    #[must_use]
    pub fn into_sums(self) -> RowSums {
        let kernel_hz = self.machine.as_ref().and_then(timer_frequency);
        sums(self.known, self.rows, self.blame, self.manifest, kernel_hz)
    }

    #[must_use]
    pub fn finish(self) -> RunSummary {
        let manifest = self.manifest;
        let kernel_hz = self.machine.as_ref().and_then(timer_frequency);
        let sums = sums(self.known, self.rows, self.blame, manifest, kernel_hz);
        let wakeup = |cpu| manifest.wakeups.iter().find(|wakeup| wakeup.cpu == cpu);
        let cpus: Vec<CpuSummary> = manifest
            .results
            .iter()
            .map(|r| cpu::summarize(r, wakeup(r.cpu), manifest))
            .collect();
        let run = run_facts(manifest, self.path);
        let trust = trust(manifest, &cpus, sums.inconsistent);
        let mut warnings: Vec<SummaryWarning> = manifest
            .warnings
            .iter()
            .cloned()
            .map(SummaryWarning::from)
            .collect();
        if sums.inconsistent > 0 {
            warnings.push(
                Warning::InconsistentRows {
                    rows: sums.inconsistent,
                }
                .into(),
            );
        }
        let total = cpu::total(manifest);
        let pipeline = pipeline::summarize(manifest, sums.blame);
        let mut summary = RunSummary {
            schema_version: SCHEMA_VERSION,
            profile: None,
            worst_case: worst_case::of_run(manifest, &cpus, &total, pipeline.as_ref()),
            probe: ProbeSummary {
                kind: manifest.probe.kind.clone(),
                threshold_ns: manifest.probe.threshold_ns,
                clock_costs: manifest.probe.clock_costs,
                tsc_hz: manifest.rate.hz,
                clock: manifest.clock,
                fifo_priority: manifest.probe.fifo_priority,
                event_grain: manifest
                    .attributed
                    .then(|| manifest.probe.event_grain.clone()),
                cpus_chosen_because: manifest.probe.cpus_chosen_because.clone(),
                cpus,
                total,
            },
            wakeup: crate::wakeup::summarize(manifest, sums.phases, sums.control_culprits),
            attribution: manifest.attributed.then(|| {
                attribution(
                    manifest,
                    (sums.stalls, sums.stalled),
                    sums.culprits,
                    sums.owners,
                )
            }),
            worst: sums.worst,
            threads: manifest.threads.clone(),
            passive: manifest.passive.clone(),
            machine: self.machine.map(Box::new),
            simultaneous: sums.simultaneous,
            history: self.history.finish(),
            pipeline,
            periods: sums.periods,
            marks: self.marks.map(MarkFold::finish),
            counters: manifest.counters.clone(),
            sources: sources(manifest),
            trust,
            warnings,
            run,
        };
        if gate::hides_longer(&summary)
            && let Some(worst) = &mut summary.worst_case
        {
            worst.withdraw_bounds();
        }
        let limit = manifest.profile.as_ref();
        summary.profile = limit.map(|limit| profile::judge(limit, self.profile, &summary));
        summary
    }
}

/// The known sums, or those of the rows.
fn sums(
    known: Option<RowSums>,
    rows: RowSummer,
    blame: BlameBuilder,
    manifest: &RunManifest,
    kernel_hz: Option<u32>,
) -> RowSums {
    known.unwrap_or_else(|| rows.finish(manifest, kernel_hz).with_blame(blame.finish()))
}

/// The kernel's timer frequency (`CONFIG_HZ`), if its configuration was readable.
#[must_use]
pub fn timer_frequency(machine: &MachineState) -> Option<u32> {
    let options = machine.settings.get("kernel.config");
    let hz = options.iter().find(|o| o.of.as_deref() == Some("HZ"))?;
    hz.text()?.parse().ok()
}

fn attribution(
    manifest: &RunManifest,
    (stalls, stalled): (u64, Nanos),
    [culprits, classes]: [Vec<CulpritRow>; 2],
    owners: Vec<OwnerRow>,
) -> AttributionSummary {
    let sum = |rows: &[CulpritRow]| rows.iter().map(|row| row.total_ns).sum::<Nanos>();
    let (explained, rest) = (sum(&culprits), sum(&classes));
    let mut by_class = std::collections::BTreeMap::new();
    for row in &classes {
        *by_class
            .entry(format!(
                "{}: {}",
                row.subject.kind_word(),
                row.subject.name()
            ))
            .or_insert(Nanos::ZERO) += row.total_ns;
    }
    let EventsInGaps {
        inside,
        too_short,
        control_events,
        control_inside,
        ..
    } = manifest.events_in_gaps;
    let events = manifest.events_in_gaps.due();
    let fraction = |part: u64, whole: u64| (whole > 0).then(|| share(part, whole));
    AttributionSummary {
        proven: !manifest.doubts().iter().any(Doubt::is_of_all),
        explained_fraction: share(explained.0, stalled.0),
        stalls,
        stalled_ns: stalled,
        events_in_gaps_fraction: fraction(inside, events),
        events_in_gaps_control: fraction(control_inside, control_events),
        events,
        events_too_short: too_short,
        culprits,
        owners,
        unexplained: Unexplained {
            total_ns: rest,
            share: share(rest.0, stalled.0),
            by_class,
            classes,
        },
    }
}

impl Sink for SummaryBuilder<'_> {
    /// The builder has the manifest already.
    fn begin(&mut self, _facts: &jitterscope_model::RunFacts) -> Result<(), SinkError> {
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        for row in batch {
            match row {
                Row::Stall(stall, attribution) => {
                    self.stall(stall);
                    if let Some(attribution) = attribution {
                        self.attribution(attribution);
                    }
                }
                Row::Interval(row, _) => self.interval(row),
                _ => {}
            }
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..) | Row::Interval(..))
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::of(self.rows.taken()))
    }
}

fn run_facts(manifest: &RunManifest, path: String) -> RunHeader {
    RunHeader {
        id: manifest.id.clone(),
        label: manifest.label.clone(),
        path,
        started_realtime_ns: manifest.started_realtime_ns(),
        duration_ns: manifest.duration(),
        planned_ns: manifest.probe.duration_ns,
        interrupted: manifest.interrupted,
        killed: manifest.killed,
        moment: manifest.moment.clone(),
        imported: manifest.imported.clone(),
        added: manifest.added.clone(),
        asked_events: manifest.asked.clone(),
        tool_version: manifest.tool_version.clone(),
        hostname: manifest.host.hostname.clone(),
        kernel_release: manifest.host.kernel_release.clone(),
        cpu_model: manifest.host.cpu_model.clone(),
        hypervisor: manifest.host.hypervisor.clone(),
    }
}

fn sources(manifest: &RunManifest) -> Vec<SourceSummary> {
    manifest.sources.iter().map(SourceSummary::from).collect()
}

fn trust(manifest: &RunManifest, cpus: &[CpuSummary], inconsistent_rows: u64) -> Trust {
    // Only the recorder's memory held these.
    fn if_known<T>(manifest: &RunManifest, value: T) -> Option<T> {
        (!manifest.is_from_rows()).then_some(value)
    }
    let lowest = |values: &mut dyn Iterator<Item = Option<f64>>| {
        if_known(manifest, values.flatten().reduce(f64::min).unwrap_or(0.0))
    };
    let floor = cpus
        .iter()
        .filter_map(|c| Some((c.floor_ticks?, c.floor_ns?)))
        .max_by_key(|(t, _)| *t);
    let noise = &manifest.self_noise;
    let consumers = manifest
        .pipeline
        .iter()
        .flat_map(|pipeline| &pipeline.consumers);
    let threads = manifest
        .pipeline
        .iter()
        .flat_map(|pipeline| &pipeline.threads);
    let shared = !noise
        .helper_cpus
        .intersection(&manifest.probe.cpus)
        .is_empty();
    Trust {
        floor_ns: floor.map(|(_, ns)| ns),
        floor_ticks: floor.map(|(ticks, _)| ticks),
        samples_per_sec: lowest(&mut cpus.iter().map(|c| c.samples_per_sec)),
        coverage: lowest(&mut cpus.iter().map(|c| c.coverage)),
        rate_error_ppb: manifest.rate.error_ppb,
        rate_source: manifest.rate.source,
        dropped_records: cpus.iter().map(|c| c.dropped_records).sum::<u64>()
            + consumers.clone().map(|c| c.slow_dropped).sum::<u64>(),
        inconsistent_rows,
        doubts: manifest.doubts(),
        // A saved part has the losses of its time.
        lost_records: (!manifest.killed).then(|| {
            manifest
                .sources
                .iter()
                .map(|s| s.lost)
                .fold(0, u64::saturating_add)
        }),
        senders_dropped: manifest.senders_dropped,
        page_faults: if_known(
            manifest,
            cpus.iter().filter_map(|c| c.page_faults).sum::<u64>()
                + threads.clone().map(|t| t.page_faults).sum::<u64>(),
        ),
        involuntary_switches: if_known(
            manifest,
            cpus.iter()
                .filter_map(|c| c.involuntary_switches)
                .sum::<u64>()
                + threads.map(|t| t.involuntary_switches).sum::<u64>(),
        ),
        helper_cpus: noise.helper_cpus.clone(),
        helpers_on_measured: shared
            || (noise.helper_cpus.is_empty() && manifest.imported.is_none()),
        helper_cpu_ns: if_known(manifest, noise.helper_cpu_ns),
        price: noise
            .events
            .as_ref()
            .map(|price| price::of(price, manifest, cpus.iter().map(|cpu| cpu.stolen_ns).sum())),
        peak_rss_bytes: if_known(manifest, noise.peak_rss_bytes),
        entry_cost_ns: noise.entry_cost_ns,
        exit_cost_ns: noise.exit_cost_ns,
        cost_samples: noise.cost_samples,
        raw_trace_bytes: manifest.trace.bytes,
        raw_trace_complete: manifest.trace.complete,
    }
}
