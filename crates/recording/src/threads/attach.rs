//! Follows the threads of other processes.

use super::episode_rows::INTERVAL;
use super::event_run::{EventRun, JOIN_WITHIN};
use super::follow::Follow;
use super::followed::{self, FollowError, Started};
use super::settings::{AttachSettings, Followed};
use crate::engine::{Context, NEVER, Outcome, Output, Plan, Running, Stage, Target, run};
use crate::error::RecordError;
use crate::kernel_events::EventChoice;
use crate::observer::{Observer, Progress};
use crate::settings::RunSettings;
use crate::stacks::StackChoice;
use jitterscope_analyze::RowsOf;
use jitterscope_attribute::{FollowerSettings, Following, Start};
use jitterscope_model::{
    ClockReading, Comm, CpuSet, CpuUse, EventGrain, EventsInGaps, Nanos, ProbeKind, ProbeSettings,
    RunManifest, ThreadRef, TickRate, Ticks, Warning,
};
use jitterscope_platform::{Machine, Topology};
use jitterscope_source::StackSettings;
use std::sync::atomic::AtomicBool;

/// Limit on followed threads: of a process or a command, which the user chose, and of a name, which any thread may
/// have.
pub(crate) const MOST_THREADS: usize = 1 << 15;
pub(crate) const MOST_OF_NAME: usize = 1 << 10;

/// The buffers of stacks are smaller than those of events by this factor: most events are no sleep.
const STACKS_SHARE: u64 = 2;

/// Follows threads, attributes their stalls and writes a run. Ends when the threads have ended, the time is over, or
/// `stop` becomes true, and keeps what was measured.
///
/// # Errors
/// There is nothing to follow, kernel events are unavailable, nothing can be written, or an output besides the run
/// cannot be opened or refuses.
pub fn attach(
    machine: &Machine,
    settings: &AttachSettings,
    outputs: Vec<Output<'_>>,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Outcome, RecordError> {
    run(
        Attaching { settings },
        Context {
            machine,
            outputs,
            stop,
            observer,
            sections: None,
        },
    )
}

/// Threads about to be followed.
struct Attaching<'a> {
    settings: &'a AttachSettings,
}

impl<'a> Target for Attaching<'a> {
    type Error = RecordError;
    type Running = Attached<'a>;

    fn settings(&self) -> &RunSettings {
        &self.settings.run
    }

    fn plan(&mut self, machine: &Machine, topology: &Topology) -> Result<Plan, RecordError> {
        let settings = self.settings;
        let first = followed::threads(machine, &settings.followed)?;
        if let (Followed::Named { name, .. }, true, false) =
            (&settings.followed, first.is_empty(), settings.wait)
        {
            return Err(FollowError::NoSuchName(name.clone()).into());
        }
        let theirs: CpuSet = first
            .iter()
            .flat_map(|found| found.allowed.iter().collect::<Vec<_>>())
            .collect();
        Ok(Plan {
            // Their CPUs are known only while they run; our threads stay on CPUs where they may not run.
            leave: if theirs.is_empty() {
                topology.online.clone()
            } else {
                theirs
            },
            // Following threads measures no CPU.
            claimed: CpuSet::new(),
            shared: None,
            measured: topology.online.clone(),
            probe: ProbeSettings {
                kind: ProbeKind::Attach.as_str().into(),
                cpus: topology.online.clone(),
                cpus_chosen_because: None,
                duration_ns: settings.duration.unwrap_or_default(),
                warmup_ns: Nanos::ZERO,
                threshold_ns: settings.threshold,
                clock_costs: None,
                interval_ns: INTERVAL,
                fifo_priority: None,
                wakeup: None,
                event_grain: EventGrain::All,
            },
            beside_us: 0,
            events: Some(choice(topology)),
        })
    }

    fn set_up(self, stage: &mut Stage<'_, '_>) -> Result<Attached<'a>, RecordError> {
        let settings = self.settings;
        let mut followed =
            follower_settings(settings, stage.rate(), stage.host.hypervisor.is_some());
        let mut events = stage
            .kernel_events(choice(&stage.topology))
            .map_err(|why| RecordError::Blind {
                problem: why.problem(),
            })?;
        stage.warn_unless_helped(CpuSet::default(), CpuUse::Followed);
        let virtual_machine = followed.virtual_machine;
        if settings.stacks {
            followed.stacks = events.record_stacks(
                stage.machine,
                &StackChoice {
                    settings: StackSettings {
                        cpus: stage.topology.online.clone(),
                        clock: stage.clock.kind,
                        buffer_kb_per_cpu: u64::from(settings.run.trace_buffer_kib) / STACKS_SHARE,
                        children: followed.new_threads || followed.children,
                    },
                    by_name: !followed.names.is_empty(),
                    rate: stage.rate(),
                },
            );
        } else {
            events.without_stacks();
        }
        let mut follow = Follow::new(events, followed);
        // They show how much of a turn the host had.
        if virtual_machine {
            follow.charge();
        }
        Ok(Attached {
            settings,
            machine: stage.machine.clone(),
            run: EventRun::new(follow, settings.threshold, (stage.clock.kind, stage.rate())),
            command: None,
            awaited: None,
            duration: stage.rate().ticks(settings.duration.unwrap_or(NEVER)),
        })
    }
}

struct Attached<'a> {
    settings: &'a AttachSettings,
    machine: Machine,
    run: EventRun,
    command: Option<Started>,
    /// The name that no thread has had yet: the full time counts from its first thread.
    awaited: Option<&'a str>,
    duration: Ticks,
}

impl Running for Attached<'_> {
    type Error = RecordError;

    fn rows_of(&self, stage: &Stage<'_, '_>) -> Option<RowsOf> {
        Some(RowsOf::without_probes(stage.rate()))
    }

    fn begin(
        &mut self,
        stage: &mut Stage<'_, '_>,
        clocks: ClockReading,
    ) -> Result<(), RecordError> {
        let (settings, rate, start) = (self.settings, stage.rate(), clocks.ticks);
        self.run.begin(start, start + self.duration, INTERVAL);
        // Read again: threads that began since are followed from here, and ended ones are gone.
        for found in followed::threads(&self.machine, &settings.followed)? {
            self.run.follow.follow(found.following, None, start);
        }
        if matches!(settings.followed, Followed::Command { .. }) {
            self.run.follow.record_stacks_of_command();
        }
        self.command = start_command(&settings.followed, &mut self.run.follow, start)?;
        self.run.follow.record_stacks();
        self.awaited = match &settings.followed {
            Followed::Named { name, .. }
                if settings.wait && self.run.follow.follower().is_idle() =>
            {
                Some(name)
            }
            _ => None,
        };
        if self.awaited.is_some() {
            self.run.measure_until(start + rate.ticks(NEVER));
        }
        Ok(())
    }

    fn turn(&mut self, stage: &mut Stage<'_, '_>) -> Result<Option<Progress>, RecordError> {
        let run = &mut self.run;
        run.drain(&mut stage.outputs)?;
        if self.awaited.is_some() && !run.follow.follower().is_idle() {
            self.awaited = None;
            run.measure_until(run.now + self.duration);
        }
        run.end_turn(&mut stage.outputs)?;
        run.over |= is_over(
            &self.machine,
            &self.settings.followed,
            self.command.as_mut(),
            &run.follow,
        );
        if let Some(name) = self.awaited {
            stage.observer.awaiting(name);
            return Ok(None);
        }
        let from = run.end - self.duration;
        Ok(Some(run.progress(
            from,
            self.settings.duration.unwrap_or(Nanos::ZERO),
        )))
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
        // Ctrl-C also reaches the command, whose end may be noticed first.
        stage.interrupted |= stage.stopped();
        let last = ended.ticks.min(self.run.end);
        if let Some(command) = &mut self.command {
            stage.command = command.ended().filter(|_| !stage.interrupted);
            command.end();
            stage.warnings.extend(
                stage
                    .command
                    .filter(|status| !status.success())
                    .map(|status| Warning::CommandFailed {
                        status: status.to_string(),
                    }),
            );
        }
        let threads = self
            .run
            .finish(last, &mut stage.outputs, |follower, names| {
                follower.finish(last, names)
            })?;
        let mut follow = self.run.follow;
        let warnings = &mut stage.warnings;
        let refused = follow.follower().refused();
        if refused > 0 {
            warnings.push(Warning::TooManyThreads {
                refused,
                most: most_threads(self.settings) as u64,
            });
        }
        let (late, missed) = (follow.follower().met_late(), follow.follower().missed());
        if late + missed > 0 {
            warnings.push(Warning::NotFollowed { late, missed });
        }
        warnings.extend(crate::warnings::of_switches(
            &follow.follower().unrecorded_switches(),
        ));
        warnings.extend(crate::warnings::of_folded(
            stage.clock.rate.nanos(follow.follower().folded()),
        ));
        warnings.extend(
            follow
                .follower()
                .throttled()
                .map(crate::warnings::of_throttled),
        );
        if !follow.events.gone.is_empty() {
            warnings.push(Warning::CpuOffline {
                cpus: follow.events.gone.clone(),
            });
        }
        if threads.is_empty() {
            warnings.push(Warning::OwnerNotMet {
                named: None,
                watching: false,
            });
        }
        let events_in_gaps = EventsInGaps {
            events: follow.events_counted(),
            ..EventsInGaps::default()
        };
        let ended = ClockReading {
            ticks: last,
            ..ended
        };
        let senders_dropped = follow.follower().senders_dropped();
        stage.events_ended(follow.events.ended(), follow)?;
        Ok(RunManifest {
            threads,
            attributed: true,
            events_in_gaps,
            senders_dropped,
            ..stage.manifest(ended)
        })
    }
}

/// The kernel events to record.
fn choice(topology: &Topology) -> EventChoice {
    // Followed threads execute programs and rename themselves, and some are followed because of a name.
    EventChoice {
        measured: topology.online.clone(),
        follow_threads: true,
        charges_later: true,
        grain: EventGrain::All,
    }
}

fn follower_settings(
    settings: &AttachSettings,
    rate: TickRate,
    virtual_machine: bool,
) -> FollowerSettings {
    FollowerSettings {
        rate,
        join_within: rate.ticks(JOIN_WITHIN),
        remember: Ticks(0),
        new_threads: !matches!(settings.followed, Followed::Thread(_)),
        children: settings.children,
        names: match &settings.followed {
            Followed::Named { name, .. } => vec![Comm::new(name)],
            _ => Vec::new(),
        },
        user: match settings.followed {
            Followed::Named { user, .. } => user,
            _ => None,
        },
        most_threads: most_threads(settings),
        virtual_machine,
        stacks: false,
        switches: None,
    }
}

fn most_threads(settings: &AttachSettings) -> usize {
    settings.most_threads.unwrap_or(match settings.followed {
        Followed::Named { .. } => MOST_OF_NAME,
        _ => MOST_THREADS,
    })
}

/// Starts the command, if that is the target. It is followed from before its creation, so its first record is its
/// creation.
fn start_command(
    target: &Followed,
    follow: &mut Follow,
    start: Ticks,
) -> Result<Option<Started>, RecordError> {
    let Followed::Command {
        line,
        env,
        to_stderr,
    } = target
    else {
        return Ok(None);
    };
    let started = Started::start(line, env, *to_stderr)?;
    let name = line
        .first()
        .map(|program| program.rsplit('/').next().unwrap_or(program));
    let thread = ThreadRef {
        tid: started.pid(),
        comm: Comm::new(name.unwrap_or_default()),
    };
    follow.follow(
        Following {
            thread,
            role: None,
            start: Start::Unknown,
        },
        None,
        start,
    );
    Ok(Some(started))
}

/// Whether no thread is left to follow.
fn is_over(
    machine: &Machine,
    target: &Followed,
    command: Option<&mut Started>,
    follow: &Follow,
) -> bool {
    match (target, command) {
        // Processes that it leaves behind are followed until they end.
        (Followed::Command { .. }, Some(command)) => {
            command.ended().is_some() && follow.follower().is_idle()
        }
        (Followed::Process(pid), _) => {
            follow.follower().is_idle() && !followed::is_alive(machine, *pid)
        }
        (Followed::Thread(_), _) => follow.follower().is_idle(),
        // A thread with the name may begin at any time.
        _ => false,
    }
}
