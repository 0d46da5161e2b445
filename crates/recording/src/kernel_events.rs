//! Live kernel records: two tracing instances, drained, decoded and named.

use crate::cross_check::CrossCheck;
use crate::disturbances::Disturbances;
use crate::feed::PageFeed;
use crate::graph::{FunctionGraph, GraphChoice, GraphError};
use crate::names::LiveNames;
use crate::price::{PriceTally, RecordClock, TimedRecord};
use crate::quotas::QuotaWatch;
use crate::renames::RenameLimit;
use crate::settings::RunSettings;
use crate::stacks::{FollowedStacks, StackChoice};
use jitterscope_model::{
    AskedEvent, ClockKind, CpuId, CpuSet, DrainTurn, EventGrain, EventPrice, RawPage, Record, Row,
    Setup, SetupStep, Sink, SinkError, Source, SourceProblem, SourceReport, SourceStatus,
    SourceTurn, TickRate, Ticks, Warning,
};
use jitterscope_platform::{KeptFile, Machine, Topology, clock};
use jitterscope_source::{
    ContextError, Mark, Recorder, RecorderSettings, Role, SleepStacks, Symbols, Tampering,
    TraceContext, TraceError, Tracefs,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How often the kernel's saved thread names are read: they include threads that have ended.
const ASK_KERNEL_EVERY: Duration = Duration::from_secs(1);

/// How far in the future a record's time may be: the clocks of CPUs differ by less.
pub(crate) const AHEAD: Ticks = Ticks(1_000_000);

pub(crate) enum NoEvents {
    Trace(TraceError),
    Context(ContextError),
}

impl NoEvents {
    /// The status for a source report.
    pub(crate) fn status(&self) -> SourceStatus {
        match self {
            NoEvents::Trace(error) => error.status(),
            NoEvents::Context(_) => SourceStatus::Absent,
        }
    }

    pub(crate) fn problem(&self) -> SourceProblem {
        match self {
            NoEvents::Trace(error) => error.problem(),
            NoEvents::Context(error) => error.problem(),
        }
    }
}

/// Two tracing instances. Dropping it removes them, and unmounts tracefs if it was mounted for them.
pub(crate) struct KernelEvents {
    // Must precede `tracefs`: the instances are removed before the mount that contains them.
    graph: Option<FunctionGraph>,
    stacks: Option<FollowedStacks>,
    /// Why no stacks are recorded.
    no_stacks: Option<SourceReport>,
    recorder: Recorder,
    /// What decoding the pages of all instances needs.
    described: TraceContext,
    tracefs: Tracefs,
    feed: PageFeed,
    pub(crate) names: LiveNames,
    pub(crate) quotas: QuotaWatch,
    renames: RenameLimit,
    pub(crate) cross_check: CrossCheck,
    disturbances: Disturbances,
    /// Set by [`KernelEvents::ready`].
    rate: Option<TickRate>,
    /// The trace is trusted up to here, as of the last check of its controls.
    sound_until: Ticks,
    /// The untrusted part of the current turn.
    disturbed: Option<(Ticks, Ticks)>,
    stopped: bool,
    /// The quota counts of the current turn.
    counted: DrainTurn,
    /// The setup steps, and the turn that each precedes.
    setup: Vec<SetupStep>,
    /// Whether a measurement has begun, and how many setup steps the run's context has since.
    measuring: bool,
    kept_setup: Option<usize>,
    turns: u64,
    price: PriceTally,
    /// The cost of a record, until the clock's rate is known.
    timed: Option<TimedRecord>,
    symbols_report: SourceReport,
    asked_kernel: Instant,
    online: KeptFile,
    /// The CPUs online at the start, and whether the last check found the same ones.
    begun_online: CpuSet,
    online_as_begun: bool,
    /// Measured CPUs that were offline at the last check.
    pub(crate) offline: CpuSet,
    /// Measured CPUs that were offline at any check.
    pub(crate) gone: CpuSet,
    /// What killed recorders had left behind.
    pub(crate) leftovers: Option<Warning>,
}

/// The results of kernel event recording, once it has ended.
pub(crate) struct EventsEnded {
    /// The state of the sources, with their losses.
    pub(crate) sources: Vec<SourceReport>,
    pub(crate) price: EventPrice,
    /// What a later reader needs to decode the kept pages.
    pub(crate) context: TraceContext,
    /// Threads that renamed themselves too often to record it.
    pub(crate) renamed_often: u64,
    /// Warnings that the trace was disturbed, or lacks what the kernel counted.
    pub(crate) warnings: Vec<Warning>,
    /// The number of records by event, as `SYSTEM:EVENT`.
    pub(crate) seen: BTreeMap<String, u64>,
    /// Contains the instances; their removal is noted in it.
    pub(crate) tracefs: Tracefs,
}

#[derive(Clone)]
pub(crate) struct EventChoice {
    pub(crate) measured: CpuSet,
    pub(crate) follow_threads: bool,
    /// Whether the scheduler's charges are recorded only after switches without a record were seen.
    pub(crate) charges_later: bool,
    pub(crate) grain: EventGrain,
}

/// What to record, and how.
#[derive(Clone)]
pub(crate) struct EventSettings {
    pub(crate) choice: EventChoice,
    pub(crate) online: CpuSet,
    pub(crate) clock: ClockKind,
    pub(crate) buffer_kib: u32,
    pub(crate) asked: Vec<AskedEvent>,
}

impl EventSettings {
    /// The settings for a recording with this choice.
    pub(crate) fn of(
        run: &RunSettings,
        choice: EventChoice,
        topology: &Topology,
        clock: ClockKind,
    ) -> EventSettings {
        EventSettings {
            choice,
            online: topology.online.clone(),
            clock,
            buffer_kib: run.trace_buffer_kib,
            asked: run.asked.clone(),
        }
    }
}

impl KernelEvents {
    /// Sets everything up; nothing may be drained before [`KernelEvents::ready`].
    pub(crate) fn start(
        machine: &Machine,
        settings: &EventSettings,
    ) -> Result<KernelEvents, NoEvents> {
        let EventSettings {
            choice,
            online,
            clock,
            buffer_kib,
            asked,
        } = settings.clone();
        let everywhere = choice.measured == online;
        let EventChoice {
            measured,
            follow_threads,
            charges_later,
            grain,
        } = choice;
        let tracefs = Tracefs::open(machine).map_err(NoEvents::Trace)?;
        let (removed, kept) = tracefs.clean_leftovers();
        let (count, kept) = (removed.len() as u64, kept.len() as u64);
        let leftovers = (count + kept > 0).then_some(Warning::LeftoversRemoved { count, kept });
        let unrecorded = RecordClock::before(machine, clock);
        let wanted = RecorderSettings {
            measured: measured.clone(),
            online,
            clock,
            buffer_kb_per_cpu: u64::from(buffer_kib),
            follow_threads,
            charges_later,
            grain,
            asked,
        };
        // The kernel sets its events up one at a time and makes the caller wait for each. Meanwhile another thread
        // reads the 100,000 or so symbols, which are complete before anything is timed again.
        let (recorder, (symbols, symbols_report)) = std::thread::scope(|scope| {
            let named = std::thread::Builder::new().name("js-symbols".into());
            let symbols = named.spawn_scoped(scope, || load_symbols(machine));
            let recorder = Recorder::start(&tracefs, &wanted);
            let symbols = symbols.ok().and_then(|thread| thread.join().ok());
            (recorder, symbols.unwrap_or_else(|| load_symbols(machine)))
        });
        let recorder = recorder.map_err(NoEvents::Trace)?;
        let timed = unrecorded.and_then(|clock| clock.after(recorder.is_priced()));
        let recorded = recorder.cpus(Role::Local);
        let feed = PageFeed::new(recorder.context(), &recorded).map_err(NoEvents::Context)?;
        let has = |event: &str| {
            let formats = &recorder.context().formats;
            let name = |system: &str, of: &str| format!("{system}:{of}") == event;
            formats.iter().any(|of| name(&of.system, &of.event))
        };
        let cross_check = CrossCheck::new(machine, &recorded, everywhere, has);
        Ok(KernelEvents {
            graph: None,
            stacks: None,
            no_stacks: None,
            described: recorder.context().clone(),
            recorder,
            tracefs,
            feed,
            names: LiveNames::new(machine.clone(), symbols),
            quotas: QuotaWatch::new(machine, clock),
            renames: RenameLimit::new(),
            cross_check,
            disturbances: Disturbances::default(),
            rate: None,
            sound_until: clock::now(clock),
            disturbed: None,
            stopped: false,
            counted: DrainTurn::default(),
            setup: Vec::new(),
            measuring: false,
            kept_setup: None,
            turns: 0,
            price: PriceTally::new(measured),
            timed,
            symbols_report,
            asked_kernel: Instant::now(),
            begun_online: settings.online.clone(),
            online_as_begun: true,
            online: KeptFile::of_one_record(machine, "/sys/devices/system/cpu/online"),
            offline: CpuSet::new(),
            gone: CpuSet::new(),
            leftovers,
        })
    }

    /// Discards what was recorded and lost until now, before draining starts. `rate`: the rate of the clock that stamps
    /// the records.
    pub(crate) fn ready(&mut self, rate: TickRate) -> Result<(), NoEvents> {
        self.price
            .record_takes(self.timed.and_then(|timed| timed.cost(rate)));
        self.rate = Some(rate);
        self.recorder.end_pricing().map_err(NoEvents::Trace)?;
        self.sound_until = clock::now(self.recorder.clock());
        Ok(())
    }

    /// Also traces kernel functions. Called before anything is measured, because it changes code all over the kernel.
    pub(crate) fn look_into(
        &mut self,
        machine: &Machine,
        choice: &GraphChoice<'_>,
    ) -> Result<(), GraphError> {
        let graph = FunctionGraph::start(machine, &self.tracefs, &mut self.described, choice)?;
        self.graph = Some(graph);
        Ok(())
    }

    /// Also records the stacks of followed threads that go to sleep. Returns whether it does; if not, the sources say
    /// why.
    pub(crate) fn record_stacks(&mut self, machine: &Machine, choice: &StackChoice) -> bool {
        let started = FollowedStacks::start(machine, &self.tracefs, &mut self.described, choice);
        let started = started.and_then(|stacks| {
            let decoded = self.feed.decode_stacks(&self.described);
            decoded.map(|()| stacks).map_err(|error| match error {
                ContextError::Layout(error) => TraceError::Layout(error),
                ContextError::Format(error) => TraceError::Format(error),
            })
        });
        self.no_stacks = started.as_ref().err().map(SleepStacks::refused);
        self.stacks = started.ok();
        self.stacks.is_some()
    }

    /// Nobody asked for stacks.
    pub(crate) fn without_stacks(&mut self) {
        self.no_stacks = Some(SleepStacks::not_asked());
    }

    /// The stacks of followed threads, if they are recorded.
    pub(crate) fn stacks(&mut self) -> Option<&mut FollowedStacks> {
        self.stacks.as_mut()
    }

    /// Reads the CPU quota counters. Called after a turn's records were read and before they are used: a wait ends when
    /// its throttling is counted.
    pub(crate) fn count_quotas(&mut self) -> &DrainTurn {
        self.quotas.read_between_turns();
        self.quotas.read(&mut self.counted);
        &self.counted
    }

    /// Notes a setup step at this point.
    pub(crate) fn set(&mut self, step: Setup) {
        if let Setup::Measure { from, until } = step {
            self.price.measure(from, until);
            self.disturbances.measure(from);
            self.measuring = true;
            self.graph
                .iter_mut()
                .for_each(|graph| graph.measure(from, until));
            self.stacks
                .iter_mut()
                .for_each(|stacks| stacks.measure(from, until));
        }
        self.setup.push(SetupStep {
            before_turn: self.turns,
            step,
        });
    }

    /// Everything of the turn was attributed; `turn` holds what its maker knows about it.
    pub(crate) fn end_turn(
        &mut self,
        keep: &mut dyn Sink,
        mut turn: DrainTurn,
    ) -> Result<(), SinkError> {
        turn.number = self.turns;
        turn.disturbed = self.disturbed.take();
        (turn.names, turn.asked, turn.identities) = self.names.take_reads();
        turn.functions = self.names.take_functions();
        let DrainTurn {
            quota_reads,
            quotas_read,
            throttled,
            members,
            frozen,
            held,
            ..
        } = std::mem::take(&mut self.counted);
        turn.quota_reads = quota_reads;
        (turn.quotas_read, turn.throttled) = (quotas_read, throttled);
        (turn.members, turn.frozen, turn.held) = (members, frozen, held);
        self.turns += 1;
        keep.rows(&[Row::Turn(&turn)])?;
        // The next start needs it if this process is killed. Functions that are named later are in their turns.
        if self.measuring && self.kept_setup != Some(self.setup.len()) {
            self.kept_setup = Some(self.setup.len());
            keep_context(keep, &self.context())?;
        }
        Ok(())
    }

    /// Hands over the context again with the next turn: another run takes the pages from here on.
    pub(crate) fn describe_again(&mut self) {
        self.kept_setup = None;
    }

    /// Keeps what is written to `trace_marker` of the instances from now on.
    pub(crate) fn keep_marks(&mut self) {
        self.feed.keep_marks();
    }

    /// What was written there since the last call.
    pub(crate) fn take_marks(&mut self) -> Vec<Mark> {
        self.feed.take_marks()
    }

    /// The sources of records, with what they lost so far.
    pub(crate) fn sources(&self) -> Vec<SourceReport> {
        let mut sources = self.recorder.reports();
        sources.push(self.symbols_report.clone());
        sources.extend(self.stacks.as_ref().map(FollowedStacks::report));
        sources.extend(self.no_stacks.clone());
        sources
    }

    /// What a reader needs to decode the pages so far.
    fn context(&self) -> TraceContext {
        let mut context = self.described.clone();
        self.names.save(&mut context);
        context.setup.clone_from(&self.setup);
        context
    }

    /// Checks which CPUs are online. The kernel keeps the buffer of an offline CPU and reads it as empty, so the online
    /// state is queried separately.
    fn look_for_offline(&mut self, unreadable: &CpuSet) {
        let text = self.online.read();
        // An unreadable list changes nothing.
        let online = text
            .ok()
            .and_then(|text| text.trim().parse::<CpuSet>().ok());
        self.online_as_begun = online.as_ref() == Some(&self.begun_online);
        let away = |cpu: &CpuId| online.as_ref().is_some_and(|online| !online.contains(*cpu));
        let measured = self.recorder.cpus(Role::Local);
        self.offline = measured
            .iter()
            .filter(|cpu| away(cpu) || unreadable.contains(*cpu))
            .collect();
        self.gone = self.gone.iter().chain(self.offline.iter()).collect();
    }

    /// Starts recording the scheduler's charges, if they were postponed.
    pub(crate) fn record_charges(&mut self) {
        // If the kernel refuses, nothing changes: a switch without a record is reported.
        let _ = self.recorder.record_charges();
    }

    /// Checks, after a turn's records were read, whether they can be trusted, and passes on what cannot.
    fn look(&mut self, all: bool) {
        let now = clock::now(self.recorder.clock());
        let foreign = self.feed.take_foreign() > 0;
        let found = self.recorder.look(all || foreign);
        let Some(tampering) = found.or_else(|| {
            foreign.then(|| Tampering {
                files: BTreeSet::new(),
                repaired: true,
            })
        }) else {
            self.sound_until = now;
            return;
        };
        let to = clock::now(self.recorder.clock());
        let from = self.sound_until;
        self.disturbances.note((from, to), tampering);
        self.cross_check.interrupt();
        self.feed.deafen(to);
        self.sound_until = to;
        let begun = self.disturbed.map_or(from, |(begun, _)| begun);
        self.disturbed = Some((begun, to));
    }

    /// Stops recording, so that no more pages arrive; the buffers can still be drained.
    pub(crate) fn stop(&mut self) {
        if !self.stopped {
            self.stopped = true;
            self.look(true);
            self.cross_check.read(self.online_as_begun, true);
        }
        // If the kernel refuses to stop it, removing the instances ends it.
        let _ = self.recorder.stop();
        self.graph.iter_mut().for_each(FunctionGraph::stop);
        if let Some(stacks) = &mut self.stacks {
            let _ = stacks.stacks.stop();
        }
    }

    /// The results of the recording. Called after the last drain: no more functions are named.
    pub(crate) fn ended(&mut self) -> EventsEnded {
        let mut sources = self.sources();
        sources.extend(self.graph.as_ref().map(FunctionGraph::report));
        let context = self.context();
        self.names.free_symbols();
        let graph = self.graph.as_ref().map(FunctionGraph::price);
        let lost = sources
            .iter()
            .fold(0u64, |sum, source| sum.saturating_add(source.lost));
        let mut warnings = self.cross_check.missing(lost);
        warnings.extend(self.rate.and_then(|rate| self.disturbances.warning(rate)));
        EventsEnded {
            sources,
            price: EventPrice {
                graph,
                stacks: self.stacks.as_ref().map(FollowedStacks::price),
                ..self.price.so_far()
            },
            context,
            renamed_often: self.renames.left_out().len() as u64,
            warnings,
            seen: self.feed.seen(),
            tracefs: self.tracefs.clone(),
        }
    }
}

/// Hands over what a reader needs to decode the pages.
pub(crate) fn keep_context(keep: &mut dyn Sink, context: &TraceContext) -> Result<(), SinkError> {
    let json = serde_json::to_vec(context).map_err(SinkError::new)?;
    keep.rows(&[Row::Context(&json)])
}

/// The live kernel: a turn is everything recorded so far.
impl Source for KernelEvents {
    type Error = SinkError;

    fn turn(
        &mut self,
        keep: &mut dyn Sink,
        take: &mut dyn FnMut(Record<'_>),
    ) -> Result<Option<SourceTurn>, SinkError> {
        if !self.stopped {
            self.cross_check.read(self.online_as_begun, false);
        }
        let (mut kept, mut unreadable) = (Ok(()), CpuSet::new());
        let clock = self.recorder.clock();
        for role in [Role::Senders, Role::Local] {
            for cpu in self.recorder.cpus(role).iter() {
                let (feed, names) = (&mut self.feed, &self.names);
                let (price, quotas) = (&mut self.price, &mut self.quotas);
                let renames = &mut self.renames;
                let cross_check = &mut self.cross_check;
                let mut page = |bytes: &[u8]| {
                    let now = clock::now(clock) + AHEAD;
                    let info = feed.page((role, cpu), bytes, now, |record| {
                        match record {
                            Record::Sender(event) => {
                                price.event(event);
                                names.learn(event, true);
                                quotas.event(event);
                                renames.event(event);
                            }
                            Record::Local(event) => {
                                price.event(event);
                                cross_check.event(event);
                                names.learn(event, false);
                                quotas.event(event);
                            }
                            Record::Lost(..)
                            | Record::SendersLost(..)
                            | Record::Disturbed(..)
                            | Record::Stack(_)
                            | Record::Setup(_) => {}
                        }
                        take(record);
                    });
                    if let (Some((first, last)), Ok(())) = (info.and_then(|info| info.range), &kept)
                    {
                        kept = keep.rows(&[Row::Page(RawPage {
                            role,
                            cpu,
                            first,
                            last,
                            bytes,
                        })]);
                    }
                };
                // Skips a CPU whose buffer cannot be read; the local role reports the error.
                if self.recorder.drain(role, cpu, &mut page).is_err() && role == Role::Local {
                    unreadable.insert(cpu);
                }
            }
        }
        // After the switches that they belong to.
        if let (Some(stacks), Ok(())) = (&mut self.stacks, &kept) {
            kept = stacks.turn(&mut self.feed, keep, take);
        }
        if self.renames.turn(Instant::now()) {
            self.recorder.leave_out_renames(self.renames.left_out());
        }
        self.look(false);
        match self.disturbed {
            Some((from, to)) => {
                take(Record::Disturbed(
                    &self.recorder.cpus(Role::Local),
                    from,
                    to,
                ));
            }
            None => self.cross_check.settle(),
        }
        if let (Some(graph), Ok(())) = (&mut self.graph, &kept) {
            kept = graph.turn(keep, &self.names);
        }
        self.look_for_offline(&unreadable);
        if self.asked_kernel.elapsed() > ASK_KERNEL_EVERY {
            self.asked_kernel = Instant::now();
            self.names.learn_all(self.tracefs.saved_comms());
        }
        kept.map(|()| Some(SourceTurn::Open))
    }

    fn seen_until(&self) -> Option<Ticks> {
        self.feed.seen_until()
    }
}

fn load_symbols(machine: &Machine) -> (Symbols, SourceReport) {
    match Symbols::load(machine) {
        Ok(symbols) => (symbols, SourceReport::available("symbols")),
        Err(error) => (Symbols::default(), error.report()),
    }
}
