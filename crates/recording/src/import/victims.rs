//! The victims of an import: threads to follow, or CPUs to watch.

use super::error::ImportError;
use super::opened::Opened;
use super::pages::FilePages;
use super::settings::{ImportSettings, Victim};
use super::shares::{FileShares, offers};
use super::switched::switched;
use crate::passive::{Owners, of_watch};
use crate::threads::{JOIN_WITHIN, MOST_OF_NAME, MOST_THREADS};
use jitterscope_attribute::{
    FollowerSettings, NameResolver, PassiveSettings, PassiveWatch, ThreadFollower,
};
use jitterscope_model::{
    ChosenThread, Comm, CpuId, CpuSet, Nanos, PassiveCpu, Setup, ThreadAccount, ThreadRef, Ticks,
    Warning, visible,
};
use jitterscope_source::TraceContext;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// The record without which nobody is known to have a CPU.
const SWITCH: &str = "sched:sched_switch";

/// What is followed or watched, and how.
pub(super) enum Plan {
    Threads {
        settings: FollowerSettings,
        /// A thread that is followed from the beginning, because of its id.
        first: Option<ThreadRef>,
    },
    Cpus {
        settings: PassiveSettings,
        owners: Owners,
        /// The threads that belong from the beginning, all of them or on one CPU.
        belong: Vec<(ThreadRef, Option<CpuId>)>,
        /// How the owner of a CPU was found.
        chosen: BTreeMap<CpuId, ChosenThread>,
    },
}

/// What came of it.
#[derive(Default)]
pub(super) struct Results {
    pub(super) threads: Vec<ThreadAccount>,
    pub(super) passive: Vec<PassiveCpu>,
    pub(super) warnings: Vec<Warning>,
    pub(super) senders_dropped: u64,
    /// Records of the measured time.
    pub(super) events: u64,
}

/// Checks that the file can show who had a CPU.
pub(super) fn records_switches(opened: &Opened, context: &TraceContext) -> Result<(), ImportError> {
    let is_switch = |format: &jitterscope_source::FormatText| {
        format!("{}:{}", format.system, format.event) == SWITCH
    };
    match context.formats.iter().any(is_switch) {
        true => Ok(()),
        false => Err(ImportError::NoSwitches {
            file: opened.recognised(),
            how: opened.how(),
        }),
    }
}

/// Resolves the victim against the file.
pub(super) fn plan(
    opened: &mut Opened,
    context: &TraceContext,
    settings: &ImportSettings,
    stop: &AtomicBool,
) -> Result<Plan, ImportError> {
    records_switches(opened, context)?;
    match &settings.victim {
        None => {
            let (cpus, names) = offers(opened, context, stop)?;
            Err(ImportError::NoVictim {
                file: opened.recognised(),
                offers: format!(
                    "--comm NAME or --pid PID follows threads, --cpus {cpus} (or some of them, with --for NAME) watches \
                     CPUs. {names}"
                ),
            })
        }
        Some(victim @ (Victim::Process(_) | Victim::Named(_))) => Ok(Plan::Threads {
            settings: FollowerSettings {
                switches: switched(opened, context, stop)?,
                ..following(opened, settings)
            },
            first: match victim {
                Victim::Process(pid) => Some(thread(opened, *pid)),
                _ => None,
            },
        }),
        Some(Victim::Cpus { cpus, owners }) => {
            let there = opened.cpus();
            let missing: CpuSet = cpus.iter().filter(|cpu| !there.contains(*cpu)).collect();
            if !missing.is_empty() || cpus.is_empty() {
                return Err(ImportError::NoCpus {
                    file: opened.recognised(),
                    cpus: missing,
                    there,
                });
            }
            let plan = watching(opened, context, settings, (cpus, owners), stop)?;
            opened.watch(cpus);
            Ok(plan)
        }
    }
}

fn following(opened: &Opened, settings: &ImportSettings) -> FollowerSettings {
    let rate = opened.clock.rate;
    let names = match &settings.victim {
        Some(Victim::Named(name)) => vec![Comm::new(name)],
        _ => Vec::new(),
    };
    FollowerSettings {
        rate,
        join_within: rate.ticks(JOIN_WITHIN),
        remember: Ticks(0),
        new_threads: true,
        children: settings.children,
        most_threads: match names.is_empty() {
            true => MOST_THREADS,
            false => MOST_OF_NAME,
        },
        names,
        user: None,
        virtual_machine: settings.virtual_machine,
        stacks: false,
        switches: None,
    }
}

fn watching(
    opened: &Opened,
    context: &TraceContext,
    settings: &ImportSettings,
    (cpus, owners): (&CpuSet, &Owners),
    stop: &AtomicBool,
) -> Result<Plan, ImportError> {
    let rate = opened.clock.rate;
    let (mut belong, mut chosen) = (Vec::new(), BTreeMap::new());
    match owners {
        // A trace of another tool says nothing of control groups, and the import does not offer them.
        Owners::Named(_) | Owners::Group(_) => {}
        Owners::Process(pid) => belong.push((thread(opened, *pid), None)),
        Owners::Largest => {
            let shares = FileShares::read(opened, context, cpus, usize::MAX, stop)?;
            for cpu in cpus.iter() {
                if let Some((thread, how)) = shares.owner(cpu) {
                    belong.push((thread, Some(cpu)));
                    chosen.insert(cpu, how);
                }
            }
            if chosen.is_empty() {
                return Err(ImportError::NoOwner {
                    file: opened.recognised(),
                    cpus: cpus.clone(),
                });
            }
        }
    }
    let watched = PassiveSettings {
        rate,
        cpus: cpus.clone(),
        join_within: rate.ticks(JOIN_WITHIN),
        threshold: rate.ticks(threshold(settings)),
        new_threads: matches!(owners, Owners::Process(_)),
        children: false,
        names: match owners {
            Owners::Named(name) => vec![Comm::new(name)],
            _ => Vec::new(),
        },
    };
    Ok(Plan::Cpus {
        settings: watched,
        owners: owners.clone(),
        belong,
        chosen,
    })
}

/// A thread by its id, with the name that the file states.
fn thread(opened: &Opened, tid: i32) -> ThreadRef {
    let named = opened.dat.threads.iter().find(|(of, _)| *of == tid);
    ThreadRef {
        tid,
        comm: named.map_or_else(Comm::default, |(_, comm)| *comm),
    }
}

/// Shorter stalls have no row.
pub(super) fn threshold(settings: &ImportSettings) -> Nanos {
    /// As `attach` and `record --probe none` have it.
    const OF_THREADS: Nanos = Nanos(50_000);
    const OF_CPUS: Nanos = Nanos(300);
    settings.threshold.unwrap_or(match settings.victim {
        Some(Victim::Cpus { .. }) => OF_CPUS,
        _ => OF_THREADS,
    })
}

impl Plan {
    /// The steps that make it, for the run to keep.
    pub(super) fn steps(&self, from: Ticks) -> Vec<Setup> {
        // In the order of a recorder.
        let measure = Setup::Measure {
            from,
            until: Ticks(u64::MAX),
        };
        match self {
            Plan::Threads { settings, first } => {
                let follow = |thread: &ThreadRef| Setup::Follow {
                    at: from,
                    tid: thread.tid,
                    comm: thread.comm.to_string(),
                    role: None,
                    asleep: false,
                    stopped_by: None,
                };
                let kept = crate::threads::kept(settings);
                let first = first.iter().map(follow);
                [kept, measure].into_iter().chain(first).collect()
            }
            Plan::Cpus {
                settings, belong, ..
            } => {
                let belongs = |(thread, on): &(ThreadRef, Option<CpuId>)| Setup::Belongs {
                    tid: thread.tid,
                    comm: thread.comm.to_string(),
                    on: *on,
                    asleep: false,
                };
                let kept = crate::passive::kept(settings);
                let belong = belong.iter().map(belongs);
                [kept].into_iter().chain(belong).chain([measure]).collect()
            }
        }
    }

    /// The CPUs that it watches; `None` if it follows threads.
    pub(super) fn watched(&self) -> Option<&CpuSet> {
        match self {
            Plan::Threads { .. } => None,
            Plan::Cpus { settings, .. } => Some(&settings.cpus),
        }
    }

    /// CPUs of which the file has other records, but no switches: where followed threads cannot be observed.
    pub(super) fn unswitched(&self, opened: &Opened) -> CpuSet {
        let Plan::Threads { settings, .. } = self else {
            return CpuSet::new();
        };
        let all: CpuSet = opened.streams.iter().map(|stream| stream.cpu).collect();
        let switched = settings.switches.as_ref();
        switched.map_or_else(CpuSet::new, |switched| all.difference(switched))
    }

    /// The id by which threads were chosen.
    fn process(&self) -> Option<i32> {
        match self {
            Plan::Threads { first, .. } => first.map(|thread| thread.tid),
            Plan::Cpus {
                owners: Owners::Process(pid),
                ..
            } => Some(*pid),
            Plan::Cpus { .. } => None,
        }
    }

    /// Whose records must be in the file, in words; `None` if nobody was named.
    fn named(&self) -> Option<String> {
        let called = |name: &str| format!("a thread called '{}'", visible(name));
        match (self, self.process()) {
            (_, Some(pid)) => Some(format!("thread {pid}")),
            (Plan::Threads { settings, .. }, None) => {
                let name = settings.names.first()?;
                Some(called(&name.to_string()))
            }
            (
                Plan::Cpus {
                    owners: Owners::Named(name),
                    settings,
                    ..
                },
                None,
            ) => Some(format!("{}, on CPU {}", called(name), settings.cpus)),
            (Plan::Cpus { .. }, None) => None,
        }
    }

    /// The warnings that it deserves, whatever comes of it.
    pub(super) fn warnings(&self) -> Option<Warning> {
        self.process().map(|pid| Warning::ImportProcess { pid })
    }

    /// Ends followed threads.
    pub(super) fn threads(
        &self,
        follower: &mut ThreadFollower,
        last: Ticks,
        names: &dyn NameResolver,
    ) -> Results {
        let threads = follower.finish(last, names);
        let mut warnings = Vec::new();
        let refused = follower.refused();
        if let (true, Plan::Threads { settings, .. }) = (refused > 0, self) {
            warnings.push(Warning::TooManyThreads {
                refused,
                most: settings.most_threads as u64,
            });
        }
        let (late, missed) = (follower.met_late(), follower.missed());
        if late + missed > 0 {
            warnings.push(Warning::NotFollowed { late, missed });
        }
        warnings.extend(crate::warnings::of_switches(
            &follower.unrecorded_switches(),
        ));
        if let Plan::Threads { settings, .. } = self {
            let folded = settings.rate.nanos(follower.folded());
            warnings.extend(crate::warnings::of_folded(folded));
        }
        Results {
            threads,
            warnings,
            senders_dropped: follower.senders_dropped(),
            ..Results::default()
        }
    }

    /// Ends watched CPUs.
    pub(super) fn cpus(
        &self,
        watch: &mut PassiveWatch,
        last: Ticks,
        names: &dyn NameResolver,
    ) -> Results {
        let mut results = Results {
            passive: watch.finish(last, names),
            senders_dropped: watch.senders_dropped(),
            ..Results::default()
        };
        if let Plan::Cpus {
            settings,
            owners,
            chosen,
            ..
        } = self
        {
            for cpu in &mut results.passive {
                cpu.chosen = chosen.get(&cpu.cpu).cloned();
            }
            results.warnings = of_watch(watch, owners, settings.rate);
        }
        results
    }

    /// Checks that the file had what was asked for.
    pub(super) fn check(
        &self,
        opened: &Opened,
        context: &TraceContext,
        results: &Results,
        source: &FilePages<'_>,
        stop: &AtomicBool,
    ) -> Result<(), ImportError> {
        let file = opened.recognised();
        if source.seen().get(SWITCH).is_none_or(|count| *count == 0) {
            let how = opened.how();
            return Err(ImportError::NoSwitches { file, how });
        }
        let seen = |of: &ThreadAccount| of.running_ns + of.waiting_ns + of.blocked_ns > Nanos::ZERO;
        let there = match self {
            // A thread that only CPUs without switches had is in the file, but all its time is unknown.
            Plan::Threads { settings, .. } if settings.switches.is_some() => {
                let named = |of: &ThreadAccount| !of.comm.is_empty();
                results.threads.iter().any(|of| seen(of) || named(of))
            }
            Plan::Threads { .. } => results.threads.iter().any(seen),
            Plan::Cpus { .. } => results.passive.iter().any(|cpu| cpu.thread_count > 0),
        };
        match self.named() {
            Some(who) if !there => Err(ImportError::NotThere {
                file,
                who,
                offers: offers(opened, context, stop)?.1,
            }),
            _ => Ok(()),
        }
    }
}
