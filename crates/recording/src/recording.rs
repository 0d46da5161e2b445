//! A recording of probes that spin, or that sleep and wake.

use crate::counters::CounterWatch;
use crate::drain::{Drain, Found};
use crate::engine::{Context, Outcome, Output, Outputs, Plan, Running, Stage, Target, run};
use crate::error::RecordError;
use crate::graph::{GraphChoice, GraphError};
use crate::home::Home;
use crate::kernel_events::{EventChoice, NoEvents};
use crate::observer::{Observer, Progress};
use crate::probe_events::{ProbeEvents, ProbeEventsSettings};
use crate::probes::{Job, Joined, Probes};
use crate::settings::{RecordSettings, RunSettings, WakeupChoice};
use crate::threshold::{self, Threshold};
use crate::{after, before};
use jitterscope_analyze::RowsOf;
use jitterscope_model::{
    ClockReading, CpuId, CpuSet, Nanos, ProbeKind, ProbeSettings, RunManifest, SinkError, TickRate,
    Ticks, WakeupConditions,
};
use jitterscope_platform::{ClockCheck, ClockChoice, Machine, ShallowIdle, Topology, clock};
use jitterscope_probe::{SpinOutput, SpinSettings, WakeupSettings};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// How often a probe looks whether it should end.
const POLL: Nanos = Nanos(10_000_000);
/// Stalls that fit in a probe's queue, of 16 bytes each: half a second at 130,000 stalls a second.
const QUEUE: usize = 1 << 16;
/// A wake-up this late is a stall, unless said otherwise: timers alone are late by a good part of it.
const LATE: Nanos = Nanos(50_000);
/// Time between setting the start and the start: every probe must have looked by then.
const START_AHEAD: Nanos = Nanos(POLL.0 / SpinSettings::WARM_UP_LOOKS + 5_000_000);
/// So much of the warm-up at most is measured with kernel events only to learn what a tick costs at its edges, which
/// eight of them show: one comes every 10 ms at most, and none where a kernel is told to stop it.
const WARM_UP_TRACED: Nanos = Nanos(100_000_000);
/// How often is looked meanwhile whether there were eight of them.
const WARM_UP_LOOK: Duration = Duration::from_millis(10);

/// Deltas below a threshold are counted a tick each, so it cannot be larger than this.
pub const LARGEST_THRESHOLD: Ticks = SpinSettings::MAX_THRESHOLD;

/// What a recording of probes may have beside its settings.
#[derive(Default)]
pub struct Extra<'a> {
    /// Where the rows go beside the run.
    pub outputs: Vec<Output<'a>>,
    /// Stalls have at least so many ticks, whatever the threshold comes to.
    pub least: Ticks,
    /// Where no threshold was asked for: the shortest that there is where the clock allows it, in place of 300 ns.
    pub shortest: Option<Nanos>,
}

/// Records: measures `settings.cpus`, attributes their stalls, writes a run. Ends early, keeping what was
/// measured, when `stop` becomes true. The calling thread is confined to unmeasured CPUs meanwhile.
///
/// # Errors
/// There is no run to show: nothing could be measured, or nothing could be written; or an output cannot be opened or
/// refuses. One that fails later does not end it unless it is essential.
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
        },
    )
}

/// Probes that were asked for.
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
            // The threshold is only known when our own threads have left.
            probe: probe_settings(settings, self.threshold),
            beside_us: 0,
            events: choice(settings),
        })
    }

    fn check(&mut self, clock: ClockCheck, home: &Home) -> Result<ClockChoice, RecordError> {
        let settings = self.settings;
        // A probe that sleeps leaves time for everybody.
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
        // While they warm up, for it takes a while.
        let events = events(settings, stage)?;
        // What they saw until now nothing can explain.
        gaps.iter_mut().for_each(SpinOutput::forget);
        let mut drain = Drain::new(&probes, gaps, events, rate)?;
        // A probe that sleeps has nothing in its deltas that would tell what a tick costs.
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

/// Lets the probes, which began to run at `began`, run for `least`, and then until it was learnt what a tick costs,
/// where it is.
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

/// Kernel events where they are wanted and can be had; why not is noted.
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
        // What was asked for cannot be had: no recording is better than one that cannot see it.
        Err(NoEvents::Trace(error)) if !settings.graph.is_empty() => {
            Err(GraphError::Trace(error).into())
        }
        Err(why) => {
            stage.without_events(Some(&why));
            Ok(None)
        }
    }
}

/// Which kernel events there should be, if any.
fn choice(settings: &RecordSettings) -> Option<EventChoice> {
    let grain = settings.events.clone()?;
    // Who wakes up is followed: the scheduler's charges tell who had the CPU unrecorded.
    let follow_threads = settings.wakeup.is_some();
    let measured = settings.cpus.cpus.clone();
    Some(EventChoice {
        measured,
        follow_threads,
        charges_later: false,
        renames: false,
        grain,
    })
}

/// Probes that run.
struct Probed<'a> {
    settings: &'a RecordSettings,
    /// `None` once they are joined.
    probes: Option<Probes>,
    drain: Drain,
    /// When the measurement is over.
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

    fn begin(
        &mut self,
        stage: &mut Stage<'_, '_>,
        _clocks: ClockReading,
    ) -> Result<(), RecordError> {
        let (settings, rate) = (self.settings, stage.rate());
        // Before the start is set: it takes a while on a machine of many CPUs.
        let every = Duration::from_nanos(settings.interval.0);
        self.drain.counters = Some(CounterWatch::start(
            stage.machine,
            &settings.cpus.cpus,
            every,
        ));
        // From now: an output may have waited since the clocks were read.
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
    /// The threshold; what the clock allows is learnt on the measured CPUs, while the clock's rate is checked.
    fn threshold(&self, clock: ClockCheck) -> Result<(Threshold, ClockChoice), RecordError> {
        let asked = self.settings.threshold;
        // Only a spinning probe counts what is below it a tick each, and has its own doing in its deltas.
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
