//! A spin measurement whose rows go to whoever watches, and nowhere else: for the fronts that keep no run.

use crate::drain::Drain;
use crate::error::RecordError;
use crate::evidence::{Evidence, EvidenceSettings};
use crate::home::Home;
use crate::kernel_events::{NoEvents, PageKeeper};
use crate::probes::{Job, Probes};
use crate::sink::Rows;
use hdrhistogram::Histogram;
use jitterscope_model::{
    Attribution, ClockReading, CpuId, CpuSet, IntervalRow, Nanos, ProbeResult, Stall, TickRate, Ticks,
};
use jitterscope_platform::{self as platform, ClockChoice, Machine, Topology, clock};
use jitterscope_probe::SpinSettings;
use jitterscope_store::StoreError;
use jitterscope_trace::Role;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the queues are emptied.
const DRAIN_EVERY: Duration = Duration::from_millis(20);
/// Calibration of the clock: short, for whoever waits for a result of one second.
const CALIBRATION: Duration = Duration::from_millis(20);
/// Spinning before it counts, so that frequency and caches have settled.
const WARM_UP: Nanos = Nanos(20_000_000);
/// With kernel events: until there are enough stalls to learn the cost of an entry from.
const WARM_UP_TRACED: Nanos = Nanos(300_000_000);
/// Time between setting the start and the start: every probe must have looked by then.
const START_AHEAD: Nanos = Nanos(15_000_000);
const POLL: Nanos = Nanos(5_000_000);
/// Stalls that fit in a probe's queue; it is emptied fifty times a second.
const QUEUE: usize = 1 << 16;
/// Trace buffer of each measured CPU.
const TRACE_KIB: u32 = 8192;

/// What is measured.
#[derive(Clone, Debug)]
pub struct LiveSettings {
    /// CPUs to measure.
    pub cpus: CpuSet,
    /// Length of the measurement.
    pub duration: Nanos,
    /// Length of a reporting interval.
    pub interval: Nanos,
    /// Whether stalls are attributed, where the machine lets us.
    pub attribute: bool,
}

/// Watches. Called on a thread that keeps off the measured CPUs, and that drains the probes: no call may
/// block for longer than their queues last.
pub trait Receiver {
    /// The measurement begins now.
    fn begin(&mut self, _clock: ClockReading) {}
    /// One stall, in about the order of time.
    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>);
    /// One interval of one CPU, after its stalls; their lengths are in nanoseconds.
    fn interval(&mut self, _row: &IntervalRow, _lengths: &Histogram<u64>) {}
    /// Some time has passed.
    fn tick(&mut self) {}
    /// Whether there is no sense in going on.
    fn gave_up(&self) -> bool {
        false
    }
}

/// What was measured.
#[derive(Debug)]
pub struct Measured {
    /// Results, by CPU.
    pub results: Vec<ProbeResult>,
    /// Clocks at the start.
    pub clock: ClockReading,
    /// Whether it was ended early.
    pub interrupted: bool,
    /// Why stalls were not attributed, if that was asked for.
    pub blind: Option<String>,
}

/// A measurement that is about to begin. The thread that prepared it is off the measured CPUs, and so
/// are the threads that it starts from now on.
pub struct Live {
    machine: Machine,
    settings: LiveSettings,
    clock: ClockChoice,
    home: Home,
}

impl Live {
    /// Deltas below a threshold are counted a tick each, so it cannot be larger than this.
    pub const LARGEST_THRESHOLD: Ticks = SpinSettings::MAX_THRESHOLD;

    /// Leaves the measured CPUs and chooses the clock.
    ///
    /// # Errors
    /// No clock can be had.
    pub fn prepare(machine: &Machine, settings: LiveSettings) -> Result<Live, RecordError> {
        let home = Home::leave(&settings.cpus, None)?;
        let clock = platform::choose_clock(machine, None, CALIBRATION)?;
        Ok(Live { machine: machine.clone(), settings, clock, home })
    }

    /// Rate of the clock that will be read.
    #[must_use]
    pub fn rate(&self) -> TickRate {
        self.clock.rate
    }

    /// Why this clock is not the TSC, when it is not.
    #[must_use]
    pub fn clock_fallback(&self) -> Option<&str> {
        self.clock.fallback_reason.as_deref()
    }

    /// CPUs that are left for everything but the probes; none when all are measured.
    #[must_use]
    pub fn helpers(&self) -> &CpuSet {
        &self.home.helpers
    }

    /// Clocks as they are now.
    #[must_use]
    pub fn read_clocks(&self) -> ClockReading {
        clock::read_all(self.clock.kind)
    }

    /// Whether deltas of at least `threshold` can be told from shorter ones: for whoever would rather know
    /// before anything is opened or waited for.
    ///
    /// # Errors
    /// The threshold does not fit the counters.
    pub fn check_threshold(&self, threshold: Ticks) -> Result<(), RecordError> {
        if (Ticks(1)..=Live::LARGEST_THRESHOLD).contains(&threshold) {
            return Ok(());
        }
        let rate = self.clock.rate;
        Err(RecordError::Threshold {
            threshold: rate.nanos(threshold),
            ticks: threshold.0,
            most: rate.nanos(Live::LARGEST_THRESHOLD),
        })
    }

    /// Measures. Deltas of at least `threshold` are stalls. Ends early when `stop` becomes true.
    ///
    /// # Errors
    /// A probe cannot be set up, or was stopped before it began.
    pub fn measure(
        self,
        threshold: Ticks,
        stop: &AtomicBool,
        receiver: &mut dyn Receiver,
    ) -> Result<Measured, RecordError> {
        let (kind, rate) = (self.clock.kind, self.clock.rate);
        let stopped = || stop.load(Ordering::Relaxed);
        self.check_threshold(threshold)?;
        let (evidence, blind) = self.evidence();
        let warm_up = if evidence.is_some() { WARM_UP_TRACED } else { WARM_UP };
        let spin = |cpu| {
            Job::Spin(SpinSettings {
                cpu,
                threshold,
                interval: rate.ticks(self.settings.interval),
                poll: rate.ticks(POLL),
                fifo_priority: None,
                queue: QUEUE,
            })
        };
        let (mut probes, outputs) = Probes::start(kind, self.settings.cpus.iter().map(spin))?;
        probes.wait_until_ready()?;
        let mut drain = Drain::new(&probes, outputs, evidence, Feed(receiver), rate)?;
        drain.run_for(DRAIN_EVERY, warm_up, stopped);
        if stopped() {
            return Err(RecordError::InterruptedEarly);
        }
        let started = clock::read_all(kind);
        let start = started.ticks + rate.ticks(START_AHEAD);
        let end = start + rate.ticks(self.settings.duration);
        drain.begin(started, start, end)?;
        probes.measure(start, end);
        let mut interrupted = false;
        while !probes.all_finished() {
            std::thread::sleep(DRAIN_EVERY);
            drain.cycle();
            drain.sink.0.tick();
            if !interrupted && (stopped() || drain.sink.0.gave_up()) {
                interrupted = true;
                probes.stop();
            }
        }
        let results = probes.join()?.results;
        drain.finish(&results);
        Ok(Measured { results, clock: started, interrupted, blind })
    }

    /// Kernel events if they are wanted and can be had, else why not.
    fn evidence(&self) -> (Option<Evidence>, Option<String>) {
        if !self.settings.attribute {
            return (None, None);
        }
        let topology = Topology::read(&self.machine);
        let wanted = EvidenceSettings {
            measured: self.settings.cpus.clone(),
            online: topology.online.clone(),
            clock: self.clock.kind,
            rate: self.clock.rate,
            virtual_machine: platform::host_facts(&self.machine, &topology).hypervisor.is_some(),
            helper: self.home.helpers.first().unwrap_or_default(),
            buffer_kib: TRACE_KIB,
            wakeups: false,
        };
        match Evidence::start(&self.machine, &wanted) {
            Ok(evidence) => (Some(evidence), None),
            Err(NoEvents::Trace(error)) => (None, Some(format!("{error}. {}", error.fix()))),
            Err(NoEvents::Context(error)) => (None, Some(error.to_string())),
        }
    }
}

/// Hands rows to the receiver.
struct Feed<'a>(&'a mut dyn Receiver);

impl Rows for Feed<'_> {
    fn begin(&mut self, clock: ClockReading, _rate: TickRate) -> Result<(), StoreError> {
        self.0.begin(clock);
        Ok(())
    }

    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>) {
        self.0.stall(stall, attribution);
    }

    fn interval(&mut self, row: &IntervalRow, lengths: &Histogram<u64>) {
        self.0.interval(row, lengths);
    }
}

impl PageKeeper for Feed<'_> {
    /// Nothing is kept: it is attributed at once.
    fn keep(&mut self, _role: Role, _cpu: CpuId, _first: Ticks, _last: Ticks, _page: &[u8]) {}
}
