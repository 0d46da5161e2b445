//! The kernel's records as they come: two tracing instances, drained, decoded and named.

use crate::feed::PageFeed;
use crate::graph::{FunctionGraph, GraphChoice, GraphError};
use crate::names::LiveNames;
use crate::price::{PriceTally, RecordClock, TimedRecord};
use crate::quotas::QuotaWatch;
use crate::settings::RunSettings;
use jitterscope_model::{
    ClockKind, CpuId, CpuSet, DrainTurn, EventGrain, EventPrice, RawPage, Record, Row, Setup,
    SetupStep, Sink, SinkError, Source, SourceProblem, SourceReport, SourceStatus, SourceTurn,
    TickRate, Ticks,
};
use jitterscope_platform::{KeptFile, Machine, Topology};
use jitterscope_source::{
    ContextError, Recorder, RecorderSettings, Role, Symbols, TraceContext, TraceError, Tracefs,
};
use std::time::{Duration, Instant};

/// How often the kernel's own notes of thread names are read: they also name threads that have ended.
const ASK_KERNEL_EVERY: Duration = Duration::from_secs(1);

/// Why there are no kernel events.
pub(crate) enum NoEvents {
    Trace(TraceError),
    Context(ContextError),
}

impl NoEvents {
    /// How a report of sources calls this.
    pub(crate) fn status(&self) -> SourceStatus {
        match self {
            NoEvents::Trace(error) => error.status(),
            NoEvents::Context(_) => SourceStatus::Absent,
        }
    }

    /// What stands in the way.
    pub(crate) fn problem(&self) -> SourceProblem {
        match self {
            NoEvents::Trace(error) => error.problem(),
            NoEvents::Context(error) => error.problem(),
        }
    }
}

/// Two tracing instances. Dropping it removes them, and the mount if it was made for them.
pub(crate) struct KernelEvents {
    // Before `tracefs`: the instances go before the mount that holds them.
    graph: Option<FunctionGraph>,
    recorder: Recorder,
    /// What the pages of all of them need to be decoded.
    described: TraceContext,
    tracefs: Tracefs,
    feed: PageFeed,
    pub(crate) names: LiveNames,
    pub(crate) quotas: QuotaWatch,
    /// What was counted of quotas in the turn under way.
    counted: DrainTurn,
    /// What was set up, and before which turn.
    setup: Vec<SetupStep>,
    turns: u64,
    price: PriceTally,
    /// What a record takes, where the clock's rate is still to be learnt.
    timed: Option<TimedRecord>,
    symbols_report: SourceReport,
    asked_kernel: Instant,
    online: KeptFile,
    /// Measured CPUs that are offline as of the last look.
    pub(crate) offline: CpuSet,
    /// Measured CPUs that were at any look.
    pub(crate) gone: CpuSet,
    pub(crate) leftovers_removed: usize,
}

/// What recording the kernel's events left, once it has ended.
pub(crate) struct EventsEnded {
    /// The state of the sources, with their losses.
    pub(crate) sources: Vec<SourceReport>,
    /// What it cost.
    pub(crate) price: EventPrice,
    /// What a later reader needs to decode the kept pages.
    pub(crate) context: TraceContext,
}

/// Which kernel events a target wants.
#[derive(Clone)]
pub(crate) struct EventChoice {
    pub(crate) measured: CpuSet,
    pub(crate) follow_threads: bool,
    /// Whether the scheduler's charges to them are recorded only once switches are seen to have left no record.
    pub(crate) charges_later: bool,
    /// Whether it is wanted that threads take other names.
    pub(crate) renames: bool,
    /// Which classes of events.
    pub(crate) grain: EventGrain,
}

/// What is to be recorded, and how.
#[derive(Clone)]
pub(crate) struct EventSettings {
    pub(crate) choice: EventChoice,
    pub(crate) online: CpuSet,
    pub(crate) clock: ClockKind,
    pub(crate) buffer_kib: u32,
}

impl EventSettings {
    /// What a recording that was asked for this wants of them.
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
        }
    }
}

impl KernelEvents {
    /// Sets everything up; nothing is to be drained before [`KernelEvents::ready`].
    pub(crate) fn start(
        machine: &Machine,
        settings: &EventSettings,
    ) -> Result<KernelEvents, NoEvents> {
        let EventSettings {
            choice,
            online,
            clock,
            buffer_kib,
        } = settings.clone();
        let EventChoice {
            measured,
            follow_threads,
            charges_later,
            renames,
            grain,
        } = choice;
        let tracefs = Tracefs::open(machine).map_err(NoEvents::Trace)?;
        let (removed, _) = tracefs.clean_leftovers();
        let unrecorded = RecordClock::before(machine, clock);
        let wanted = RecorderSettings {
            measured: measured.clone(),
            online,
            clock,
            buffer_kb_per_cpu: u64::from(buffer_kib),
            follow_threads,
            charges_later,
            renames,
            grain,
        };
        // The kernel lets its events be set up only one after the other, and makes the caller wait for each: a
        // hundred thousand symbols can be read meanwhile. They are there before anything is timed again.
        let (recorder, (symbols, symbols_report)) = std::thread::scope(|scope| {
            let named = std::thread::Builder::new().name("js-symbols".into());
            let symbols = named.spawn_scoped(scope, || load_symbols(machine));
            let recorder = Recorder::start(&tracefs, &wanted);
            let symbols = symbols.ok().and_then(|thread| thread.join().ok());
            (recorder, symbols.unwrap_or_else(|| load_symbols(machine)))
        });
        let recorder = recorder.map_err(NoEvents::Trace)?;
        let timed = unrecorded.and_then(|clock| clock.after(recorder.is_priced()));
        let feed = PageFeed::new(recorder.context(), &recorder.cpus(Role::Local))
            .map_err(NoEvents::Context)?;
        Ok(KernelEvents {
            graph: None,
            described: recorder.context().clone(),
            recorder,
            tracefs,
            feed,
            names: LiveNames::new(machine.clone(), symbols),
            quotas: QuotaWatch::new(machine, clock),
            counted: DrainTurn::default(),
            setup: Vec::new(),
            turns: 0,
            price: PriceTally::new(measured),
            timed,
            symbols_report,
            asked_kernel: Instant::now(),
            online: KeptFile::of(machine, "/sys/devices/system/cpu/online"),
            offline: CpuSet::new(),
            gone: CpuSet::new(),
            leftovers_removed: removed.len(),
        })
    }

    /// Forgets what was recorded until now, when nobody drained, with what was lost of it: from here on the buffers are
    /// drained. `rate`: that of the clock that the records are stamped with.
    pub(crate) fn ready(&mut self, rate: TickRate) -> Result<(), NoEvents> {
        self.price
            .record_takes(self.timed.and_then(|timed| timed.cost(rate)));
        self.recorder.end_pricing().map_err(NoEvents::Trace)
    }

    /// Looks into kernel functions, too. Before anything is measured, for it changes code everywhere in the kernel.
    pub(crate) fn look_into(
        &mut self,
        machine: &Machine,
        choice: &GraphChoice<'_>,
    ) -> Result<(), GraphError> {
        let graph = FunctionGraph::start(machine, &self.tracefs, &mut self.described, choice)?;
        self.graph = Some(graph);
        Ok(())
    }

    /// Reads what was counted of CPU quotas: after the records of a turn, before anything is made of them, for
    /// a wait is over when its throttling is counted.
    pub(crate) fn count_quotas(&mut self) -> &DrainTurn {
        self.quotas.read(&mut self.counted);
        &self.counted
    }

    /// Notes what is set up from here on.
    pub(crate) fn set(&mut self, step: Setup) {
        if let Setup::Measure { from, until } = step {
            self.price.measure(from, until);
            self.graph
                .iter_mut()
                .for_each(|graph| graph.measure(from, until));
        }
        self.setup.push(SetupStep {
            before_turn: self.turns,
            step,
        });
    }

    /// All of a turn has been attributed; `turn` has what its maker knows of it.
    pub(crate) fn end_turn(
        &mut self,
        keep: &mut dyn Sink,
        mut turn: DrainTurn,
    ) -> Result<(), SinkError> {
        turn.number = self.turns;
        (turn.names, turn.asked, turn.identities) = self.names.take_reads();
        let DrainTurn {
            quotas_read,
            throttled,
            members,
            ..
        } = std::mem::take(&mut self.counted);
        (turn.quotas_read, turn.throttled, turn.members) = (quotas_read, throttled, members);
        self.turns += 1;
        keep.rows(&[Row::Turn(&turn)])
    }

    /// The kernel keeps the buffer of a CPU that goes offline, and reads it as one without records: whether
    /// the CPU is there is asked for itself.
    fn look_for_offline(&mut self, unreadable: &CpuSet) {
        let text = self.online.read();
        // What cannot be read tells nothing.
        let online = text
            .ok()
            .and_then(|text| text.trim().parse::<CpuSet>().ok());
        let away = |cpu: &CpuId| online.as_ref().is_some_and(|online| !online.contains(*cpu));
        let measured = self.recorder.cpus(Role::Local);
        self.offline = measured
            .iter()
            .filter(|cpu| away(cpu) || unreadable.contains(*cpu))
            .collect();
        self.gone = self.gone.iter().chain(self.offline.iter()).collect();
    }

    /// From now on the scheduler's charges are recorded, if they were left for later.
    pub(crate) fn record_charges(&mut self) {
        // A kernel that refuses leaves what it was: a switch without a record is reported as one.
        let _ = self.recorder.record_charges();
    }

    /// Ends recording, so that no more pages come; what the buffers hold can still be drained.
    pub(crate) fn stop(&mut self) {
        // A kernel that refuses to stop is ended by removing the instances.
        let _ = self.recorder.stop();
        self.graph.iter_mut().for_each(FunctionGraph::stop);
    }

    /// What recording left. After the last drain: no function is named any more.
    pub(crate) fn ended(&mut self) -> EventsEnded {
        let mut sources = self.recorder.reports();
        sources.push(self.symbols_report.clone());
        sources.extend(self.graph.as_ref().map(FunctionGraph::report));
        let mut context = self.described.clone();
        self.names.save(&mut context);
        self.names.free_symbols();
        context.setup.clone_from(&self.setup);
        let graph = self.graph.as_ref().map(FunctionGraph::price);
        EventsEnded {
            sources,
            price: EventPrice {
                graph,
                ..self.price.so_far()
            },
            context,
        }
    }
}

/// The kernel as it runs: a turn is everything that it has recorded so far.
impl Source for KernelEvents {
    type Error = SinkError;

    fn turn(
        &mut self,
        keep: &mut dyn Sink,
        take: &mut dyn FnMut(Record<'_>),
    ) -> Result<Option<SourceTurn>, SinkError> {
        let (mut kept, mut unreadable) = (Ok(()), CpuSet::new());
        for role in [Role::Senders, Role::Local] {
            for cpu in self.recorder.cpus(role).iter() {
                let (feed, names) = (&mut self.feed, &self.names);
                let (price, quotas) = (&mut self.price, &mut self.quotas);
                let mut page = |bytes: &[u8]| {
                    let info = feed.page(role, cpu, bytes, |record| {
                        match record {
                            Record::Sender(event) => {
                                price.event(event);
                                names.learn(event, true);
                                quotas.event(event);
                            }
                            Record::Local(event) => {
                                price.event(event);
                                names.learn(event, false);
                                quotas.event(event);
                            }
                            Record::Lost(..) | Record::SendersLost(..) | Record::Setup(_) => {}
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
                // A CPU whose buffer cannot be read sends nothing; the local side reports it.
                if self.recorder.drain(role, cpu, &mut page).is_err() && role == Role::Local {
                    unreadable.insert(cpu);
                }
            }
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
