use super::owners;
use super::settings::{Owners, PassiveRecordSettings};
use crate::engine::{
    Context, NEVER, Outcome, Output, Outputs, Plan, Running, Sections, Stage, Target, run,
};
use crate::error::RecordError;
use crate::kernel_events::{EventChoice, KernelEvents};
use crate::observer::{Observer, Progress};
use crate::settings::RunSettings;
use crate::threads::{EpisodeRows, EventRun, Follow, JOIN_WITHIN, MakesRows, TakesRecords};
use crate::watch::Watch as Endless;
use jitterscope_analyze::RowsOf;
use jitterscope_attribute::{Belonging, NameResolver, PassiveSettings, PassiveWatch, Shares};
use jitterscope_model::{
    ChosenThread, ClockKind, ClockReading, Comm, CpuId, CpuSet, CpuUse, DrainTurn, EventsInGaps,
    KernelEvent, Nanos, PassiveCpu, ProbeKind, ProbeSettings, RunManifest, Setup, Sink, SinkError,
    SourceReport, TickRate, Ticks, Verdict, Warning,
};
use jitterscope_platform::{Machine, Topology, clock};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// The CPUs being watched, and what the look before needs.
struct Watched {
    watch: PassiveWatch,
    look: Option<Shares>,
    cpus: CpuSet,
    /// Kernel events of the measured time on watched CPUs.
    events: u64,
    measured: (Ticks, Ticks),
}

impl TakesRecords for Watched {
    fn measure(&mut self, from: Ticks, until: Ticks) {
        self.measured = (from, until);
        self.watch.measure(from, until);
    }

    fn event(&mut self, event: &KernelEvent, names: &dyn NameResolver) {
        if self.cpus.contains(event.cpu) {
            self.events +=
                u64::from(self.measured.0 <= event.time && event.time <= self.measured.1);
            if let Some(look) = &mut self.look {
                look.event(event);
            }
        }
        self.watch.event(event, names);
    }

    fn lost(&mut self, cpu: CpuId, of: (Ticks, Ticks), why: Verdict, names: &dyn NameResolver) {
        self.watch.lost(cpu, of, why, names);
    }

    fn senders_lost(&mut self, from: Ticks, to: Ticks) {
        self.watch.senders_lost(from, to);
    }

    fn quotas(&mut self, turn: &DrainTurn) {
        self.watch.quotas(turn);
    }

    fn take_newly_followed(&mut self) -> Vec<i32> {
        self.watch.take_newly_followed()
    }

    fn set(&mut self, step: &Setup) {
        self.watch.set(step);
    }
}

impl MakesRows for Watched {
    fn make_rows(
        &mut self,
        rows: &mut EpisodeRows,
        now: Ticks,
        sink: &mut dyn Sink,
    ) -> Result<(), SinkError> {
        take_in(rows, &mut self.watch, now, sink)
    }
}

/// The settings as the run stores them.
pub(crate) fn kept(settings: &PassiveSettings) -> Setup {
    Setup::Watching {
        cpus: settings.cpus.clone(),
        join_within: settings.join_within,
        new_threads: settings.new_threads,
        children: settings.children,
        names: settings.names.iter().map(ToString::to_string).collect(),
    }
}

/// The settings from their stored form.
pub(crate) fn watching(setup: &Setup, threshold: Nanos, rate: TickRate) -> Option<PassiveSettings> {
    let Setup::Watching {
        cpus,
        join_within,
        new_threads,
        children,
        names,
    } = setup
    else {
        return None;
    };
    Some(PassiveSettings {
        rate,
        cpus: cpus.clone(),
        join_within: *join_within,
        threshold: rate.ticks(threshold),
        new_threads: *new_threads,
        children: *children,
        names: names.iter().map(|name| Comm::new(name)).collect(),
    })
}

/// Watches CPUs, attributes the time stolen from their owners, and writes a run. Ends early but keeps what was recorded
/// when `stop` becomes true. The calling thread is confined to other CPUs meanwhile.
///
/// # Errors
/// Kernel events are unavailable, no owner is found, nothing can be written, or an output besides the run cannot be
/// opened or refuses.
pub fn record_passive(
    machine: &Machine,
    settings: &PassiveRecordSettings,
    outputs: Vec<Output<'_>>,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, RecordError> {
    watch_passive(machine, settings, (outputs, None), stop, observer)
}

/// As [`record_passive`], but an endless chain of sections if there is a watch.
///
/// # Errors
/// As [`record_passive`].
pub fn watch_passive(
    machine: &Machine,
    settings: &PassiveRecordSettings,
    (outputs, watch): (Vec<Output<'_>>, Option<&mut Endless>),
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, RecordError> {
    run(
        Watching {
            settings,
            first: Vec::new(),
        },
        Context {
            machine,
            outputs,
            stop,
            observer,
            sections: watch.map(|watch| watch as &mut dyn Sections),
        },
    )
}

/// CPUs about to be watched.
struct Watching<'a> {
    settings: &'a PassiveRecordSettings,
    /// The current owners, if the user named them.
    first: Vec<Belonging>,
}

impl<'a> Target for Watching<'a> {
    type Error = RecordError;
    type Running = Watch<'a>;

    fn settings(&self) -> &RunSettings {
        &self.settings.run
    }

    fn plan(&mut self, machine: &Machine, _topology: &Topology) -> Result<Plan, RecordError> {
        let settings = self.settings;
        self.first = owners::named(machine, &settings.owners)?;
        Ok(Plan {
            leave: settings.cpus.cpus.clone(),
            // It takes no CPU from other processes, including a probe.
            claimed: CpuSet::new(),
            shared: None,
            measured: settings.cpus.cpus.clone(),
            probe: ProbeSettings {
                kind: ProbeKind::Passive.as_str().into(),
                cpus: settings.cpus.cpus.clone(),
                cpus_chosen_because: settings.cpus.because.clone().map(Into::into),
                duration_ns: settings.duration,
                warmup_ns: settings.look,
                threshold_ns: settings.threshold,
                clock_costs: None,
                interval_ns: settings.interval,
                fifo_priority: None,
                wakeup: None,
                event_grain: settings.events.clone(),
            },
            beside_us: 0,
            events: Some(choice(settings)),
        })
    }

    fn set_up(self, stage: &mut Stage<'_, '_>) -> Result<Watch<'a>, RecordError> {
        let settings = self.settings;
        let (cpus, kind, rate) = (&settings.cpus.cpus, stage.clock.kind, stage.rate());
        let events =
            stage
                .kernel_events(choice(settings))
                .map_err(|why| RecordError::NothingToWatch {
                    problem: why.problem(),
                })?;
        stage.warn_unless_helped(cpus.clone(), CpuUse::Watched);
        let watching = PassiveSettings {
            rate,
            cpus: cpus.clone(),
            join_within: rate.ticks(JOIN_WITHIN),
            threshold: rate.ticks(settings.threshold),
            new_threads: matches!(settings.owners, Owners::Process(_) | Owners::Group(_)),
            children: matches!(settings.owners, Owners::Group(_)),
            names: match &settings.owners {
                Owners::Named(name) => vec![Comm::new(name)],
                _ => Vec::new(),
            },
        };
        let setup = kept(&watching);
        let from = clock::now(kind);
        let watched = Watched {
            watch: PassiveWatch::new(watching),
            look: (settings.owners == Owners::Largest).then(|| Shares::new(from)),
            cpus: cpus.clone(),
            events: 0,
            measured: (Ticks(u64::MAX), Ticks(u64::MAX)),
        };
        let mut watch = Watch {
            settings,
            machine: stage.machine.clone(),
            kind,
            run: EventRun::new(
                Follow::of(events, setup, watched),
                settings.threshold,
                (kind, rate),
            ),
            chosen: BTreeMap::new(),
        };
        // Read again: threads that began since then are found now, and later ones are in the records.
        let again = owners::named(stage.machine, &settings.owners).unwrap_or_default();
        self.first
            .into_iter()
            .chain(again)
            .for_each(|who| belongs(&mut watch.run.follow, who));
        watch.look(from, stage)?;
        Ok(watch)
    }
}

/// The kernel events to record.
fn choice(settings: &PassiveRecordSettings) -> EventChoice {
    // An owner given by name is recognised by its name at the time it takes the CPU.
    EventChoice {
        measured: settings.cpus.cpus.clone(),
        follow_threads: true,
        charges_later: false,
        grain: settings.events.clone(),
    }
}

struct Watch<'a> {
    settings: &'a PassiveRecordSettings,
    machine: Machine,
    kind: ClockKind,
    run: EventRun<Watched>,
    chosen: BTreeMap<CpuId, ChosenThread>,
}

impl Watch<'_> {
    /// Watches for a while; the thread with most of each CPU becomes its owner, unless the user named owners.
    fn look(&mut self, from: Ticks, stage: &mut Stage<'_, '_>) -> Result<(), RecordError> {
        let rate = stage.rate();
        stage.pass(self.settings.look, |outputs| self.take_turn(outputs))?;
        if stage.stopped() {
            return Err(RecordError::InterruptedEarly);
        }
        let Some(look) = self.run.follow.follower_mut().look.take() else {
            return Ok(());
        };
        let until = self.run.now.max(from);
        let cpus = &self.settings.cpus.cpus;
        for cpu in cpus.iter() {
            if let Some((who, how)) =
                owners::largest(stage.machine, &look, cpu, (from, until), rate)
            {
                belongs(&mut self.run.follow, who);
                self.chosen.insert(cpu, how);
            }
        }
        let look = self.settings.look;
        if self.chosen.is_empty() {
            return Err(RecordError::NoOwner {
                cpus: cpus.clone(),
                look,
            });
        }
        let strangers: CpuSet = cpus
            .iter()
            .filter(|cpu| !self.chosen.contains_key(cpu))
            .collect();
        if !strangers.is_empty() {
            stage.warnings.push(Warning::NoOwner {
                cpus: strangers,
                look_ns: look,
            });
        }
        Ok(())
    }

    fn take_turn(&mut self, outputs: &mut Outputs<'_>) -> Result<(), SinkError> {
        self.run.drain(outputs)?;
        self.run.end_turn(outputs)?;
        let follow = &mut self.run.follow;
        let moved = follow.follower_mut().watch.take_moved();
        for who in owners::entered(&self.machine, &self.settings.owners, &moved) {
            belongs(follow, who);
        }
        // CPUs found offline are marked before the next turn. A CPU that still wrote a record after that, on its way
        // offline, is marked again.
        for cpu in follow.events.offline.clone().iter() {
            if follow.follower().watch.is_gone(cpu) {
                continue;
            }
            let gone = Setup::Gone {
                cpu,
                at: clock::now(self.kind),
            };
            follow.follower_mut().set(&gone);
            follow.events.set(gone);
        }
        Ok(())
    }
}

impl Running for Watch<'_> {
    type Error = RecordError;

    fn idle(&mut self, outputs: &mut Outputs<'_>) -> Result<(), SinkError> {
        self.take_turn(outputs)
    }

    fn beginning(&self, manifest: &mut RunManifest) {
        let chosen = |cpu| PassiveCpu {
            cpu,
            chosen: self.chosen.get(&cpu).cloned(),
            ..PassiveCpu::default()
        };
        manifest.passive = self.settings.cpus.cpus.iter().map(chosen).collect();
    }

    fn next_section(&mut self, manifest: &mut RunManifest, _at: Ticks) {
        self.run.follow.events.describe_again();
        manifest.attributed = true;
    }

    fn events(&mut self) -> Option<&mut KernelEvents> {
        Some(&mut self.run.follow.events)
    }

    fn sources(&self) -> Vec<SourceReport> {
        self.run.follow.events.sources()
    }

    fn rows_of(&self, stage: &Stage<'_, '_>) -> Option<RowsOf> {
        Some(RowsOf::without_probes(stage.rate()))
    }

    fn begin(
        &mut self,
        stage: &mut Stage<'_, '_>,
        clocks: ClockReading,
    ) -> Result<(), RecordError> {
        let (rate, start) = (stage.rate(), clocks.ticks);
        let end = start + rate.ticks(self.settings.duration.min(NEVER));
        self.run.begin(start, end, self.settings.interval);
        Ok(())
    }

    fn turn(&mut self, stage: &mut Stage<'_, '_>) -> Result<Option<Progress>, RecordError> {
        self.take_turn(&mut stage.outputs)?;
        // With all of its CPUs offline, no more records arrive.
        self.run.over |= self.run.follow.events.offline == self.settings.cpus.cpus;
        let total = self.settings.duration;
        let progress = self.run.progress(self.run.start, total);
        Ok(Some(Progress {
            elapsed: progress.elapsed.min(total),
            ..progress
        }))
    }

    fn is_over(&mut self) -> bool {
        self.run.is_over()
    }

    fn stop(&mut self) {
        self.run.over = true;
    }

    fn finish(
        mut self,
        stage: &mut Stage<'_, '_>,
        ended: ClockReading,
    ) -> Result<RunManifest, RecordError> {
        let last = ended.ticks.min(self.run.end);
        let close =
            |watched: &mut Watched, names: &dyn NameResolver| watched.watch.finish(last, names);
        let mut passive = self.run.finish(last, &mut stage.outputs, close)?;
        let mut follow = self.run.follow;
        for cpu in &mut passive {
            cpu.chosen = self.chosen.get(&cpu.cpu).cloned();
        }
        let warnings = &mut stage.warnings;
        warnings.extend(of_watch(
            &follow.follower().watch,
            &self.settings.owners,
            stage.clock.rate,
        ));
        warnings.extend(
            follow
                .follower()
                .watch
                .throttled()
                .map(crate::warnings::of_throttled),
        );
        if !follow.events.gone.is_empty() {
            warnings.push(Warning::CpuOffline {
                cpus: follow.events.gone.clone(),
            });
        }
        let events_in_gaps = EventsInGaps {
            events: follow.follower().events,
            ..EventsInGaps::default()
        };
        let ended = ClockReading {
            ticks: last,
            ..ended
        };
        let senders_dropped = follow.follower().watch.senders_dropped();
        stage.events_ended(follow.events.ended(), follow)?;
        Ok(RunManifest {
            passive,
            attributed: true,
            events_in_gaps,
            senders_dropped,
            ..stage.manifest(ended)
        })
    }
}

fn belongs(follow: &mut Follow<Watched>, who: Belonging) {
    follow.events.set(Setup::Belongs {
        tid: who.thread.tid,
        comm: who.thread.comm.to_string(),
        on: who.on,
        asleep: who.asleep,
    });
    follow.follower_mut().watch.belongs(who);
}

/// Turns stalls into rows.
pub(crate) fn take_in(
    rows: &mut EpisodeRows,
    watch: &mut PassiveWatch,
    now: Ticks,
    sink: &mut dyn Sink,
) -> Result<(), SinkError> {
    for stall in watch.take_stalls() {
        rows.stall(|id, rate| stall.into_stall(id, rate), sink)?;
    }
    rows.until(now, sink)
}

/// The warnings of a watch.
pub(crate) fn of_watch(watch: &PassiveWatch, owners: &Owners, rate: TickRate) -> Vec<Warning> {
    let mut found = Vec::new();
    if watch.refused() > 0 {
        found.push(Warning::TooManyThreads {
            refused: watch.refused(),
            most: PassiveWatch::MOST_THREADS as u64,
        });
    }
    found.extend(crate::warnings::of_switches(&watch.unrecorded_switches()));
    found.extend(crate::warnings::of_folded(rate.nanos(watch.folded())));
    let named = owners.named().map(Into::into);
    if named.is_some() && !watch.met_owner() {
        found.push(Warning::OwnerNotMet {
            named,
            watching: true,
        });
    }
    found
}
