//! From a run's rows to its summary, in bounded memory.

use crate::blame::BlameBuilder;
use crate::cpu::{self, share};
use crate::culprits::CulpritTable;
use crate::history::HistoryBuilder;
use crate::ours::Ours;
use crate::periods::{Effort, FALSE_ALARM, PeriodSearch, PeriodSummary};
use crate::pipeline;
use crate::simultaneous::Grouper;
use crate::summary::{
    AttributionSummary, CpuSummary, CulpritRow, ProbeSummary, RunFacts, RunSummary, SourceSummary,
    SummaryWarning, Trust, Unexplained,
};
use crate::wakeup::PhaseTable;
use crate::worst::Worst;
use jitterscope_model::{
    Attribution, Confidence, Delivery, EventsInGaps, Evidence, IntervalRow, KeyLevel, MachineState, Nanos,
    Part, Row, RunManifest, SCHEMA_VERSION, Sink, SinkError, Stall, StallId, Subject, Verdict, Warning,
};
use std::collections::VecDeque;

/// Culprits told apart unless said otherwise.
const MAX_CULPRITS: usize = 4096;
/// The longest stalls kept unless said otherwise.
const WORST: usize = 10;
/// Stalls that may wait for their attribution. A recording attributes each at once; a stored run is read
/// table by table in step.
const PENDING: usize = 1 << 16;

/// A stall whose attribution is still to come.
#[derive(Debug)]
struct Pending {
    stall: Stall,
    length: Nanos,
    control: bool,
}

/// What the idle control's stalls were, apart from those of the measured CPUs.
#[derive(Debug)]
struct Control {
    stalled: Nanos,
    culprits: CulpritTable,
    phases: PhaseTable,
}

/// Takes in a run's rows, in order of their ids, and gives its summary. An attribution follows its stall;
/// any number of stalls up to [`PENDING`] may lie between.
#[derive(Debug)]
pub struct SummaryBuilder<'m> {
    manifest: &'m RunManifest,
    path: String,
    stalls: u64,
    stalled: Nanos,
    pending: VecDeque<Pending>,
    culprits: CulpritTable,
    phases: PhaseTable,
    control: Control,
    /// The part that stands for what has no verdict.
    nobody: Part,
    inconsistent: u64,
    worst: Worst,
    simultaneous: Grouper,
    history: HistoryBuilder,
    blame: BlameBuilder,
    periods: Option<PeriodSearch>,
    machine: Option<MachineState>,
}

impl<'m> SummaryBuilder<'m> {
    /// Begins the summary of a run.
    #[must_use]
    pub fn new(manifest: &'m RunManifest) -> SummaryBuilder<'m> {
        SummaryBuilder {
            manifest,
            path: String::new(),
            stalls: 0,
            stalled: Nanos::ZERO,
            pending: VecDeque::new(),
            culprits: CulpritTable::new(KeyLevel::Program, MAX_CULPRITS),
            phases: PhaseTable::default(),
            control: Control {
                stalled: Nanos::ZERO,
                culprits: CulpritTable::new(KeyLevel::Program, MAX_CULPRITS),
                phases: PhaseTable::default(),
            },
            nobody: nobody(),
            inconsistent: 0,
            worst: Worst::of(manifest, WORST),
            simultaneous: Grouper::new(manifest, WORST),
            history: HistoryBuilder::new(manifest),
            blame: BlameBuilder::new(manifest, KeyLevel::Program),
            periods: None,
            machine: None,
        }
    }

    /// Where the run is stored.
    #[must_use]
    pub fn path(mut self, path: &std::path::Path) -> SummaryBuilder<'m> {
        self.path = path.display().to_string();
        self
    }

    /// The machine that it was made on.
    #[must_use]
    pub fn machine(mut self, machine: Option<MachineState>) -> SummaryBuilder<'m> {
        self.machine = machine;
        self
    }

    /// Keeps this many of the longest stalls.
    #[must_use]
    pub fn worst(mut self, limit: usize) -> SummaryBuilder<'m> {
        self.worst = Worst::of(self.manifest, limit);
        self.simultaneous = Grouper::new(self.manifest, limit);
        self
    }

    /// In place of the worst stalls only the one of this number.
    #[must_use]
    pub fn only(mut self, stall: StallId) -> SummaryBuilder<'m> {
        self.worst = Worst::only(stall);
        self
    }

    /// Tells this many culprits apart.
    #[must_use]
    pub fn max_culprits(mut self, cap: usize) -> SummaryBuilder<'m> {
        self.culprits = CulpritTable::new(KeyLevel::Program, cap);
        self
    }

    /// Tells culprits apart so finely; programs unless said otherwise.
    #[must_use]
    pub fn level(mut self, level: KeyLevel) -> SummaryBuilder<'m> {
        self.culprits = CulpritTable::new(level, MAX_CULPRITS);
        self.control.culprits = CulpritTable::new(level, MAX_CULPRITS);
        self.blame = BlameBuilder::new(self.manifest, level);
        self
    }

    /// Looks for periods, with so much effort: in the stalls of a spinning probe. Wake-ups and messages
    /// begin at deadlines, which are periodic themselves.
    #[must_use]
    pub fn periods(mut self, effort: Effort) -> SummaryBuilder<'m> {
        let spun = self.manifest.wakeups.is_empty() && !self.manifest.results.is_empty();
        self.periods = spun.then(|| PeriodSearch::new(effort));
        self
    }

    /// One stall.
    pub fn stall(&mut self, stall: &Stall) {
        let length = self.manifest.rate.nanos(stall.length());
        let control = self.manifest.idle_control() == Some(stall.cpu);
        if control {
            self.control.stalled += length;
        } else {
            self.stalls += 1;
            self.stalled += length;
            self.worst.stall(stall);
            self.blame.stall(stall, length);
            self.simultaneous.stall(stall);
        }
        if self.manifest.attributed {
            self.pending.push_back(Pending { stall: *stall, length, control });
            if self.pending.len() > PENDING {
                self.give_up_first();
            }
        } else if let Some(periods) = &mut self.periods {
            periods.add(stall, None);
        }
    }

    /// The attribution of a stall taken in before.
    pub fn attribution(&mut self, attribution: &Attribution) {
        // Whether it is there is asked first: a row of no stall must not cost others their verdict.
        let at = self.pending.binary_search_by_key(&attribution.stall, |pending| pending.stall.id);
        let Ok(at) = at else {
            self.inconsistent += 1;
            return;
        };
        for _ in 0..at {
            self.give_up_first();
        }
        let Some(Pending { stall, length, control }) = self.pending.pop_front() else { return };
        if let Some(periods) = &mut self.periods {
            periods.add(&stall, Some(attribution));
        }
        self.worst.attribution(attribution);
        self.blame.attribution(attribution);
        let mut left = length;
        let nets: Vec<(&Part, Nanos)> = attribution
            .parts
            .iter()
            .map(|part| {
                // Parts sum to their stall; where damaged rows do not, the stall's length holds.
                let net = part.net.min(left);
                left = left.saturating_sub(net);
                (part, net)
            })
            .collect();
        let consistent = left == Nanos::ZERO && nets.iter().all(|(part, net)| part.net == *net);
        self.inconsistent += u64::from(!consistent);
        let rest = (left > Nanos::ZERO).then_some((&self.nobody, left));
        let (culprits, phases) = match control {
            true => (&mut self.control.culprits, &mut self.control.phases),
            false => (&mut self.culprits, &mut self.phases),
        };
        if !self.manifest.wakeups.is_empty() {
            phases.add(nets.iter().copied().chain(rest));
        }
        culprits.add(nets.into_iter().chain(rest));
    }

    fn give_up_first(&mut self) {
        if let Some(Pending { stall, length, control }) = self.pending.pop_front() {
            if let Some(periods) = &mut self.periods {
                periods.add(&stall, None);
            }
            self.inconsistent += 1;
            let culprits = if control { &mut self.control.culprits } else { &mut self.culprits };
            let phases = if control { &mut self.control.phases } else { &mut self.phases };
            culprits.add([(&self.nobody, length)]);
            phases.add([(&self.nobody, length)]);
        }
    }

    /// One interval of one CPU.
    pub fn interval(&mut self, row: &IntervalRow) {
        self.history.interval(row);
    }

    /// The summary.
    #[must_use]
    pub fn finish(mut self) -> RunSummary {
        while !self.pending.is_empty() {
            self.give_up_first();
        }
        let manifest = self.manifest;
        let wakeup = |cpu| manifest.wakeups.iter().find(|wakeup| wakeup.cpu == cpu);
        let cpus: Vec<CpuSummary> =
            manifest.results.iter().map(|r| cpu::summarize(r, wakeup(r.cpu), manifest.rate)).collect();
        let run = run_facts(manifest, self.path);
        let trust = trust(manifest, &cpus, self.inconsistent);
        let mut warnings: Vec<SummaryWarning> =
            manifest.warnings.iter().cloned().map(SummaryWarning::from).collect();
        if self.inconsistent > 0 {
            warnings.push(Warning::InconsistentRows { rows: self.inconsistent }.into());
        }
        let (simultaneous, groups) = self.simultaneous.finish(manifest);
        let (stalls, stalled, culprits) = (self.stalls, self.stalled, self.culprits);
        let seconds = run.duration_ns.as_secs_f64();
        let ours = Ours::of(manifest);
        let kernel_hz = self.machine.as_ref().and_then(timer_frequency);
        let per_sec = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        RunSummary {
            schema_version: SCHEMA_VERSION,
            probe: ProbeSummary {
                kind: manifest.probe.kind.clone(),
                threshold_ns: manifest.probe.threshold_ns,
                clock_costs: manifest.probe.clock_costs,
                tsc_hz: manifest.rate.hz,
                clock: manifest.clock,
                fifo_priority: manifest.probe.fifo_priority,
                cpus_chosen_because: manifest.probe.cpus_chosen_because.clone(),
                cpus,
                total: cpu::total(manifest),
            },
            wakeup: crate::wakeup::summarize(
                manifest,
                [self.phases.finish(stalled), self.control.phases.finish(self.control.stalled)],
                self.control.culprits.finish(self.control.stalled, per_sec, &ours).concat(),
            ),
            attribution: manifest
                .attributed
                .then(|| attribution(manifest, stalls, stalled, culprits.finish(stalled, per_sec, &ours))),
            worst: self.worst.finish(manifest, &groups),
            threads: manifest.threads.clone(),
            passive: manifest.passive.clone(),
            machine: self.machine.map(Box::new),
            simultaneous,
            history: self.history.finish(),
            pipeline: pipeline::summarize(manifest, self.blame.finish()),
            periods: self.periods.map(|search| {
                let start = manifest.results.iter().map(|r| r.start).min().unwrap_or_default();
                let end = manifest.results.iter().map(|r| r.end).max().unwrap_or_default();
                PeriodSummary::new(search.finish(start, end, manifest.rate, FALSE_ALARM), kernel_hz)
            }),
            counters: manifest.counters.clone(),
            sources: sources(manifest),
            trust,
            warnings,
            run,
        }
    }
}

/// The kernel's timer frequency (`CONFIG_HZ`), where its configuration could be read.
fn timer_frequency(machine: &MachineState) -> Option<u32> {
    machine.kernel.config.value()?.get("HZ")?.parse().ok()
}

/// What stands for time that no row accounts for.
fn nobody() -> Part {
    let verdict = Subject::verdict(Verdict::NoVerdict);
    Part::whole(verdict, Nanos::ZERO, Confidence::Low, Evidence::Nothing)
}

fn attribution(
    manifest: &RunManifest,
    stalls: u64,
    stalled: Nanos,
    [culprits, classes]: [Vec<CulpritRow>; 2],
) -> AttributionSummary {
    let sum = |rows: &[CulpritRow]| rows.iter().map(|row| row.total_ns).sum::<Nanos>();
    let (explained, rest) = (sum(&culprits), sum(&classes));
    let mut by_class = std::collections::BTreeMap::new();
    for row in &classes {
        *by_class
            .entry(format!("{}: {}", row.subject.kind_word(), row.subject.name()))
            .or_insert(Nanos::ZERO) += row.total_ns;
    }
    let EventsInGaps { events, inside, control_events, control_inside } = manifest.events_in_gaps;
    let fraction = |part: u64, whole: u64| (whole > 0).then(|| share(part, whole));
    AttributionSummary {
        proven: manifest.doubts().is_empty(),
        explained_fraction: share(explained.0, stalled.0),
        stalls,
        stalled_ns: stalled,
        events_in_gaps_fraction: fraction(inside, events),
        events_in_gaps_control: fraction(control_inside, control_events),
        events,
        culprits,
        unexplained: Unexplained { total_ns: rest, share: share(rest.0, stalled.0), by_class, classes },
    }
}

impl Sink for SummaryBuilder<'_> {
    /// It has the manifest already.
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
        Ok(Delivery::of(self.stalls))
    }
}

fn run_facts(manifest: &RunManifest, path: String) -> RunFacts {
    RunFacts {
        id: manifest.id.clone(),
        label: manifest.label.clone(),
        path,
        started_realtime_ns: manifest.started_realtime_ns(),
        duration_ns: manifest.duration(),
        planned_ns: manifest.probe.duration_ns,
        interrupted: manifest.interrupted,
        tool_version: manifest.tool_version.clone(),
        hostname: manifest.host.hostname.clone(),
        kernel_release: manifest.host.kernel_release.clone(),
        cpu_model: manifest.host.cpu_model.clone(),
        hypervisor: manifest.host.hypervisor.clone(),
    }
}

fn sources(manifest: &RunManifest) -> Vec<SourceSummary> {
    let summary = |source: &jitterscope_model::SourceReport| SourceSummary {
        name: source.name.clone(),
        status: source.status.clone(),
        reason: source.reason.clone(),
        loses: source.loses.clone(),
        fix: source.fix.clone(),
        lost: source.lost,
    };
    manifest.sources.iter().map(summary).collect()
}

fn trust(manifest: &RunManifest, cpus: &[CpuSummary], inconsistent_rows: u64) -> Trust {
    let lowest = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::min).unwrap_or(0.0);
    let floor = cpus.iter().filter_map(|c| Some((c.floor_ticks?, c.floor_ns?))).max_by_key(|(t, _)| *t);
    let noise = &manifest.self_noise;
    let consumers = manifest.pipeline.iter().flat_map(|pipeline| &pipeline.consumers);
    let threads = manifest.pipeline.iter().flat_map(|pipeline| &pipeline.threads);
    let shared = !noise.helper_cpus.intersection(&manifest.probe.cpus).is_empty();
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
        lost_records: manifest.sources.iter().map(|s| s.lost).fold(0, u64::saturating_add),
        senders_dropped: manifest.senders_dropped,
        page_faults: cpus.iter().map(|c| c.page_faults).sum::<u64>()
            + threads.clone().map(|t| t.page_faults).sum::<u64>(),
        involuntary_switches: cpus.iter().map(|c| c.involuntary_switches).sum::<u64>()
            + threads.map(|t| t.involuntary_switches).sum::<u64>(),
        helper_cpus: noise.helper_cpus.clone(),
        helpers_on_measured: shared || noise.helper_cpus.is_empty(),
        helper_cpu_ns: noise.helper_cpu_ns,
        peak_rss_bytes: noise.peak_rss_bytes,
        entry_cost_ns: noise.entry_cost_ns,
        exit_cost_ns: noise.exit_cost_ns,
        cost_samples: noise.cost_samples,
        raw_trace_bytes: manifest.trace.bytes,
        raw_trace_complete: manifest.trace.complete,
    }
}
