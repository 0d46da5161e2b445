//! A recording of spinning or sleeping probes.

use crate::counters::CounterWatch;
use crate::drain::{Drain, Found};
use crate::engine::{
    Context, Outcome, Output, Outputs, Plan, Running, Sections, Stage, Target, run,
};
use crate::error::RecordError;
use crate::graph::{GraphChoice, GraphError};
use crate::housekeeping::HousekeepingAffinity;
use crate::kernel_events::{EventChoice, KernelEvents, NoEvents};
use crate::observer::{Observer, Progress};
use crate::probe_events::{ProbeEvents, ProbeEventsSettings};
use crate::probes::{Job, Joined, Probes};
use crate::settings::{RecordSettings, RunSettings, WakeupChoice};
use crate::threshold::{self, Threshold};
use crate::watch::Watch;
use crate::{after, before};
use jitterscope_analyze::RowsOf;
use jitterscope_model::{
    ClockReading, CpuId, CpuSet, Nanos, ProbeKind, ProbeSettings, RunManifest, SinkError,
    SourceReport, TickRate, Ticks, WakeupConditions,
};
use jitterscope_platform::{ClockCheck, ClockChoice, Machine, ShallowIdle, Topology, clock};
use jitterscope_probe::{SpinOutput, SpinSettings, WakeupSettings};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How often a probe checks whether to end.
const POLL: Nanos = Nanos(10_000_000);
/// Capacity of a probe's queue, 16 bytes each: half a second at 130,000 stalls a second.
const QUEUE: usize = 1 << 16;
/// Default threshold of a late wake-up: the timer alone is late by a large part of it.
const LATE: Nanos = Nanos(50_000);
/// Time between setting the start time and the start: every probe must have checked by then.
const START_AHEAD: Nanos = Nanos(POLL.0 / SpinSettings::WARM_UP_LOOKS + 5_000_000);
/// Maximum of the warm-up with kernel events, which only serves to learn what a tick costs at its edges. That needs
/// eight ticks: they come at least every 10 ms, except on a kernel that is told to stop the tick.
const WARM_UP_TRACED: Nanos = Nanos(100_000_000);
/// How often the warm-up is checked for eight ticks.
const WARM_UP_LOOK: Duration = Duration::from_millis(10);

/// The largest threshold, because shorter deltas have a counter per tick.
pub const LARGEST_THRESHOLD: Ticks = SpinSettings::MAX_THRESHOLD;

/// Options of a probe recording besides its settings.
#[derive(Default)]
pub struct Extra<'a> {
    /// Destinations of the rows besides the run.
    pub outputs: Vec<Output<'a>>,
    /// Minimum of the threshold, in ticks.
    pub least: Ticks,
    /// Used without a requested threshold: the shortest one to choose, instead of the usual ones; the costs of the
    /// clock and of storing a stall raise it.
    pub shortest: Option<Nanos>,
    /// Makes the recording endless: a chain of sections.
    pub watch: Option<&'a mut Watch>,
}

/// Measures `settings.cpus`, attributes their stalls and writes a run. Ends early but keeps what was measured when
/// `stop` becomes true. The calling thread is confined to unmeasured CPUs meanwhile.
///
/// # Errors
/// There is no run: nothing could be measured or written, or an output cannot be opened or refuses. An output that
/// fails later does not end the recording unless it is essential.
pub fn record(
    machine: &Machine,
    settings: &RecordSettings,
    extra: Extra<'_>,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, RecordError> {
    let Extra {
        outputs,
        least,
        shortest,
        watch,
    } = extra;
    let probing = Probing {
        settings,
        least,
        shortest,
        threshold: Threshold::default(),
    };
    run(
        probing,
        Context {
            machine,
            outputs,
            stop,
            observer,
            sections: watch.map(|watch| watch as &mut dyn Sections),
        },
    )
}

struct Probing<'a> {
    settings: &'a RecordSettings,
    least: Ticks,
    shortest: Option<Nanos>,
    threshold: Threshold,
}

impl<'a> Target for Probing<'a> {
    type Error = RecordError;
    type Running = Probed<'a>;

    fn settings(&self) -> &RunSettings {
        &self.settings.run
    }

    fn plan(&mut self, _machine: &Machine, _topology: &Topology) -> Result<Plan, RecordError> {
        let settings = self.settings;
        let measured = &settings.cpus.cpus;
        Ok(Plan {
            leave: measured.clone(),
            claimed: measured.clone(),
            shared: settings.idle_control(),
            measured: measured.clone(),
            // The threshold is known only after our own threads have left.
            probe: probe_settings(settings, self.threshold),
            beside_us: 0,
            events: choice(settings),
        })
    }

    fn check(
        &mut self,
        clock: ClockCheck,
        home: &HousekeepingAffinity,
    ) -> Result<ClockChoice, RecordError> {
        let settings = self.settings;
        // A probe that sleeps leaves time for other threads.
        if settings.fifo_priority.is_some() && settings.wakeup.is_none() && home.helpers.is_empty()
        {
            return Err(RecordError::WouldHang);
        }
        let (threshold, clock) = self.threshold(clock)?;
        self.threshold = threshold;
        Ok(clock)
    }

    fn set_up(self, stage: &mut Stage<'_, '_>) -> Result<Probed<'a>, RecordError> {
        let settings = self.settings;
        let (kind, rate) = (stage.clock.kind, stage.rate());
        stage.probe = probe_settings(settings, self.threshold);
        stage
            .warnings
            .extend(before::warnings(stage.machine, settings, &stage.home));
        let shallow = match settings.wakeup {
            Some(WakeupChoice {
                hold_latency: true, ..
            }) => Some(ShallowIdle::hold().map_err(|source| RecordError::Machine {
                what: "/dev/cpu_dma_latency",
                source,
            })?),
            _ => None,
        };
        let job = |cpu| job(settings, cpu, self.threshold, rate);
        let (mut probes, mut gaps) = Probes::start(kind, settings.cpus.cpus.iter().map(job))?;
        probes.wait_until_ready()?;
        let began = Instant::now();
        // Set up while the probes warm up, because it takes a while.
        let events = events(settings, stage)?;
        // Stalls so far have no events to explain them.
        gaps.iter_mut().for_each(SpinOutput::forget);
        let mut drain = Drain::new(&probes, gaps, events, rate)?;
        // The deltas of a sleeping probe do not show what a tick costs.
        let learns = drain.events.is_some() && settings.wakeup.is_none();
        warm_up(stage, &mut drain, (began, learns), settings.warmup)?;
        Ok(Probed {
            settings,
            probes: Some(probes),
            drain,
            end: Ticks(u64::MAX),
            joined: Joined::default(),
            _shallow: shallow,
        })
    }
}

/// Lets the probes, which have run since `began`, run for `least`, and then, with `learns`, until the cost of a tick is
/// known.
fn warm_up(
    stage: &mut Stage<'_, '_>,
    drain: &mut Drain,
    (began, learns): (Instant, bool),
    least: Nanos,
) -> Result<(), SinkError> {
    if least == Nanos::ZERO {
        return Ok(());
    }
    let traced = Instant::now() + Duration::from_nanos(WARM_UP_TRACED.0);
    let least = began + Duration::from_nanos(least.0);
    let most = if learns { least.max(traced) } else { least };
    stage.pass_until(most, WARM_UP_LOOK, |outputs| {
        drain.cycle(outputs)?;
        Ok(Instant::now() >= least && drain.has_learnt())
    })
}

/// Kernel events, if wanted and available; otherwise the reason is noted.
fn events(
    settings: &RecordSettings,
    stage: &mut Stage<'_, '_>,
) -> Result<Option<ProbeEvents>, RecordError> {
    let Some(wanted) = choice(settings) else {
        stage.without_events(None);
        return Ok(None);
    };
    let measured = &settings.cpus.cpus;
    let wakeups = settings.wakeup.is_some();
    match stage.kernel_events(wanted) {
        Ok(events) => {
            let wanted = ProbeEventsSettings {
                measured,
                rate: stage.rate(),
                virtual_machine: stage.host.hypervisor.is_some(),
                helper: stage.home.helpers.first().unwrap_or_default(),
                wakeups,
            };
            let mut events = ProbeEvents::new(stage.machine, events, &wanted);
            if !settings.graph.is_empty() {
                let choice = GraphChoice {
                    measured,
                    clock: stage.clock.kind,
                    rate: stage.rate(),
                    buffer_kib: settings.run.trace_buffer_kib,
                    functions: &settings.graph,
                };
                events.look_into(stage.machine, &choice)?;
            }
            Ok(Some(events))
        }
        // A requested function trace is unavailable: fail rather than record without it.
        Err(NoEvents::Trace(error)) if !settings.graph.is_empty() => {
            Err(GraphError::Trace(error).into())
        }
        Err(why) => {
            stage.without_events(Some(&why));
            Ok(None)
        }
    }
}

/// The kernel events to record, if any.
fn choice(settings: &RecordSettings) -> Option<EventChoice> {
    let grain = settings.events.clone()?;
    // A sleeping probe is followed as a thread: the scheduler's charges show which thread had the CPU without a record.
    let follow_threads = settings.wakeup.is_some();
    let measured = settings.cpus.cpus.clone();
    Some(EventChoice {
        measured,
        follow_threads,
        charges_later: false,
        grain,
    })
}

struct Probed<'a> {
    settings: &'a RecordSettings,
    /// `None` once they are joined.
    probes: Option<Probes>,
    drain: Drain,
    /// End of the measurement.
    end: Ticks,
    joined: Joined,
    _shallow: Option<ShallowIdle>,
}

impl Running for Probed<'_> {
    type Error = RecordError;

    fn rows_of(&self, stage: &Stage<'_, '_>) -> Option<RowsOf> {
        Some(RowsOf {
            rate: stage.rate(),
            attributed: self.drain.events.is_some(),
            probed: self.settings.cpus.cpus.len(),
            control: self.settings.idle_control(),
            sleeps: self.settings.wakeup.is_some(),
            messages: false,
        })
    }

    fn idle(&mut self, outputs: &mut Outputs<'_>) -> Result<(), SinkError> {
        self.drain.cycle(outputs)
    }

    fn next_section(&mut self, manifest: &mut RunManifest, at: Ticks) {
        if let Some(events) = &mut self.drain.events {
            events.next_section(manifest, at);
        }
    }

    fn events(&mut self) -> Option<&mut KernelEvents> {
        self.drain.events.as_mut().map(|events| &mut events.events)
    }

    fn sources(&self) -> Vec<SourceReport> {
        self.drain
            .events
            .as_ref()
            .map_or_else(Vec::new, |events| events.events.sources())
    }

    fn begin(
        &mut self,
        stage: &mut Stage<'_, '_>,
        _clocks: ClockReading,
    ) -> Result<(), RecordError> {
        let (settings, rate) = (self.settings, stage.rate());
        // Before the start is set, because it takes a while on a machine with many CPUs.
        let every = Duration::from_nanos(settings.interval.0);
        self.drain.counters = Some(CounterWatch::start(
            stage.machine,
            &settings.cpus.cpus,
            every,
        ));
        // Counted from now: an output may have waited since the clocks were read.
        let start = clock::now(stage.clock.kind) + rate.ticks(START_AHEAD);
        let end = start + rate.ticks(settings.duration);
        self.drain
            .begin(start, end, rate.ticks(stage.probe.threshold_ns));
        self.end = end;
        if let Some(probes) = &mut self.probes {
            probes.measure(start, end);
        }
        Ok(())
    }

    fn turn(&mut self, stage: &mut Stage<'_, '_>) -> Result<Option<Progress>, RecordError> {
        self.drain.cycle(&mut stage.outputs)?;
        self.drain.read_counters();
        Ok(Some(self.drain.progress(
            clock::now(stage.clock.kind),
            self.settings.duration,
        )))
    }

    fn is_over(&mut self) -> bool {
        self.probes.as_ref().is_none_or(Probes::all_finished)
    }

    fn left(&self, stage: &Stage<'_, '_>) -> Option<Duration> {
        let left = self.end.since(clock::now(stage.clock.kind));
        Some(Duration::from_nanos(stage.rate().nanos(left).0))
    }

    fn stop(&mut self) {
        if let Some(probes) = &self.probes {
            probes.stop();
        }
    }

    fn join(&mut self) -> Result<(), RecordError> {
        if let Some(probes) = self.probes.take() {
            self.joined = probes.join()?;
        }
        if self.joined.results.iter().all(|result| result.samples == 0) {
            return Err(RecordError::InterruptedEarly);
        }
        Ok(())
    }

    fn busy(&self) -> CpuSet {
        self.settings.cpus.cpus.clone()
    }

    fn finish(
        self,
        stage: &mut Stage<'_, '_>,
        ended: ClockReading,
    ) -> Result<RunManifest, RecordError> {
        let Joined {
            mut results,
            wakeups,
        } = self.joined;
        let mut found: Found = self.drain.finish(&mut stage.outputs, &results)?;
        found.movers.explain(stage.machine, &mut results);
        stage.warnings.extend(
            results
                .iter()
                .flat_map(|result| after::warnings(result, &stage.probe)),
        );
        let attributed = found.events.is_some();
        if let Some((ended, events)) = found.events.take() {
            stage.events_ended(ended, events)?;
        }
        let warnings = &mut stage.warnings;
        warnings.extend(crate::warnings::of_switches(&found.unrecorded_switches));
        warnings.extend(crate::warnings::of_folded(found.folded));
        warnings.extend(found.throttled.iter().map(crate::warnings::of_throttled));
        warnings.extend(crate::warnings::of_frequencies(&found.frequencies));
        let mut manifest = RunManifest {
            results,
            wakeups,
            attributed,
            counters: found.counters,
            edge_costs: found.edge_costs,
            sleeping_works: found.sleeping_works,
            senders_dropped: found.senders_dropped,
            events_in_gaps: found.events_in_gaps,
            ..stage.manifest(ended)
        };
        let costs = found.costs;
        manifest.self_noise.entry_cost_ns = costs.entry_cost_ns;
        manifest.self_noise.exit_cost_ns = costs.exit_cost_ns;
        manifest.self_noise.cost_samples = costs.cost_samples;
        Ok(manifest)
    }
}

fn probe_kind(settings: &RecordSettings) -> &'static str {
    let kind = if settings.wakeup.is_some() {
        ProbeKind::Wakeup
    } else {
        ProbeKind::Spin
    };
    kind.as_str()
}

fn job(settings: &RecordSettings, cpu: CpuId, threshold: Threshold, rate: TickRate) -> Job {
    let (interval, fifo_priority) = (rate.ticks(settings.interval), settings.fifo_priority);
    match settings.wakeup {
        Some(choice) => Job::Wakeup(WakeupSettings {
            cpu,
            period: choice.period,
            threshold: threshold.nanos,
            interval,
            rate,
            fifo_priority,
            queue: QUEUE,
        }),
        None => Job::Spin(SpinSettings {
            cpu,
            threshold: threshold.ticks,
            interval,
            poll: rate.ticks(POLL),
            fifo_priority,
            queue: QUEUE,
            own: threshold.own(rate),
        }),
    }
}

impl Probing<'_> {
    /// The threshold. The clock's minimum is learned on the measured CPUs while the clock's rate is checked.
    fn threshold(&self, clock: ClockCheck) -> Result<(Threshold, ClockChoice), RecordError> {
        let asked = self.settings.threshold;
        // Only a spinning probe counts short deltas per tick and has its own work in its deltas.
        if self.settings.wakeup.is_some() {
            let clock = clock.finish()?;
            return Ok((
                Threshold::of_sleeper(asked.unwrap_or(LATE), clock.rate),
                clock,
            ));
        }
        let costs = threshold::costs(clock.kind(), clock.rough_rate()?, &self.settings.cpus.cpus)?;
        let clock = clock.finish()?;
        let costs = threshold::in_nanos(costs, clock.rate);
        let threshold = Threshold::choose(asked, self.shortest, costs, clock.rate)?;
        Ok((threshold.at_least(self.least, clock.rate), clock))
    }
}

fn probe_settings(settings: &RecordSettings, threshold: Threshold) -> ProbeSettings {
    ProbeSettings {
        kind: probe_kind(settings).into(),
        cpus: settings.cpus.cpus.clone(),
        cpus_chosen_because: settings.cpus.because.clone().map(Into::into),
        duration_ns: settings.duration,
        warmup_ns: settings.warmup,
        threshold_ns: threshold.nanos,
        clock_costs: settings.wakeup.is_none().then_some(threshold.costs),
        interval_ns: settings.interval,
        fifo_priority: settings.fifo_priority,
        wakeup: settings.wakeup.map(|choice| WakeupConditions {
            period_ns: choice.period,
            hold_latency: choice.hold_latency,
            idle_control: choice.idle_control,
        }),
        event_grain: settings.events.clone().unwrap_or_default(),
    }
}
