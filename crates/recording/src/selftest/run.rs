//! Injecting, recording and scoring on a live machine.

use super::{Episode, SelftestReport, SelftestRow, Shortfall, SkipCause, SkippedKind, score};
use crate::error::RecordError;
use crate::housekeeping::HousekeepingAffinity;
use crate::observer::{Observer, Progress};
use crate::recording::{Extra, record};
use crate::settings::RecordSettings;
use jitterscope_inject::{
    ChildCommand, ChildError, ChildHandle, DisturbKind, DisturbSettings, Disturbed,
    PlannedDisturbance, SelftestPlan, availability, membarrier, remove_leftover_groups,
};
use jitterscope_model::{Attribution, CpuId, Nanos, SourceProblem, Stall, Ticks, Warning};
use jitterscope_platform::{Machine, choose_clock};
use jitterscope_source::Tracefs;
use jitterscope_store::{RunReader, StoreError};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Timeout for a child to be ready and for the recording to begin.
const PATIENCE: Duration = Duration::from_secs(20);
/// Upper bound; the selftest itself ends the measurement.
const LONGEST: Nanos = Nanos(600_000_000_000);
/// Pause between two kinds, so that one does not end in the next.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
pub struct SelftestSettings {
    /// The recording: one CPU, with kernel events. Its duration is ignored.
    pub record: RecordSettings,
    pub plan: SelftestPlan,
    /// How to start an injecting child.
    pub child: ChildCommand,
    /// A folder on a real disk, for writeback.
    pub work_dir: PathBuf,
}

/// A selftest that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SelftestError {
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The run cannot be read back.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There are no kernel events to name culprits from.
    #[error("there are no kernel events to name culprits from")]
    Blind(Option<SourceProblem>),
    /// The recording did not begin.
    #[error("the recording did not begin within {0} s")]
    NotBegun(u64),
    /// The user ended it.
    #[error("interrupted; nothing was scored")]
    Interrupted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelftestStep {
    /// A kind of disturbance is being injected.
    Injecting { kind: DisturbKind, count: u32 },
    /// The CPU was too busy for some kinds, which are repeated.
    TryingAgain,
    /// The recording is being scored.
    Scoring,
}

/// The run that was recorded, and its score.
#[derive(Debug)]
pub struct Selftested {
    pub report: SelftestReport,
    /// The first run, and one for each repetition.
    pub runs: Vec<PathBuf>,
}

/// Records when the measurement began, and the shortest stall that it records.
#[derive(Default)]
struct Begun {
    begun: AtomicBool,
    threshold: AtomicU64,
}

impl Observer for &Begun {
    fn measuring(&mut self, threshold: Nanos) {
        self.threshold.store(threshold.0, Ordering::Relaxed);
    }

    fn progress(&mut self, progress: &Progress) {
        if progress.elapsed > Nanos::ZERO {
            self.begun.store(true, Ordering::Release);
        }
    }
}

impl Begun {
    fn has(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }
}

/// Our thread that measures a CPU.
fn measuring_thread(machine: &Machine, cpu: CpuId) -> Option<i32> {
    let name = format!("js-spin/{cpu}");
    let tids = machine.list("/proc/self/task").into_iter();
    tids.filter(|tid| {
        machine
            .read_trimmed(format!("/proc/self/task/{tid}/comm"))
            .is_ok_and(|comm| comm == name)
    })
    .find_map(|tid| tid.parse().ok())
}

/// The result of one turn.
enum Turn {
    Done(Box<Disturbed>),
    Skipped(SkippedKind),
    Failed(SelftestRow),
}

/// How often a kind is repeated if other threads kept the CPU too busy. Without a verdict a kind cannot fail, so a
/// shared CPU must not always withhold one.
const TRIED_AGAIN: usize = 2;

/// Runs the plan, and repeats undecided kinds.
///
/// # Errors
/// The first recording failed. If a later one fails, its kinds stay undecided.
pub fn run(
    machine: &Machine,
    settings: &SelftestSettings,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(SelftestStep),
) -> Result<Selftested, SelftestError> {
    let Once {
        mut rows,
        mut skipped,
        run,
    } = once(machine, settings, stop, tell)?;
    let mut runs = vec![run];
    for _ in 0..TRIED_AGAIN {
        let mut again = settings.clone();
        again.plan.turns.retain(|turn| {
            rows.iter()
                .any(|row| row.kind == turn.kind && row.is_undecided())
        });
        if again.plan.turns.is_empty() || stop.load(Ordering::Relaxed) {
            break;
        }
        tell(SelftestStep::TryingAgain);
        let Ok(later) = once(machine, &again, stop, tell) else {
            break;
        };
        runs.push(later.run);
        for row in later.rows {
            rows.iter_mut()
                .filter(|old| old.kind == row.kind)
                .for_each(|old| *old = row.clone());
        }
    }
    // Nothing was shown either way, as for a kind that cannot be injected.
    rows.retain(|row| match row.shortfall {
        Some(Shortfall::TooBusy { out_of_reach, of }) => {
            skipped.push(SkippedKind {
                kind: row.kind,
                cause: SkipCause::TooBusy { out_of_reach, of },
            });
            false
        }
        _ => true,
    });
    Ok(Selftested {
        report: SelftestReport::new(rows, skipped),
        runs,
    })
}

/// The result of one recording.
struct Once {
    rows: Vec<SelftestRow>,
    skipped: Vec<SkippedKind>,
    run: PathBuf,
}

/// Records the victim CPU while children disturb it, one kind after the other, and scores the recording. Reports its
/// steps to `tell`.
///
/// # Errors
/// Nothing could be recorded or scored. The report lists kinds that cannot be injected here as skipped.
fn once(
    machine: &Machine,
    settings: &SelftestSettings,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(SelftestStep),
) -> Result<Once, SelftestError> {
    let cpus = &settings.record.cpus.cpus;
    let victim = cpus.first().unwrap_or_default();
    // Children inherit the affinity, so they start off the victim's CPU.
    let home = HousekeepingAffinity::leave(cpus, None)?;
    let clock = choose_clock(
        machine,
        settings.record.run.clock,
        Duration::from_millis(50),
    )
    .map_err(RecordError::Clock)?;
    // The expedited command reaches only CPUs that run a registered process.
    let _ = membarrier::register();
    let common = DisturbSettings {
        cpu: victim,
        helper_cpu: home.helpers.first(),
        period: Nanos::ZERO,
        length: Nanos::ZERO,
        count: 0,
        clock: clock.kind,
        rate: clock.rate,
        threshold: Nanos::ZERO,
        victim_tid: None,
        parent_pid: 0,
        work_dir: settings.work_dir.clone(),
    };
    let record_settings = RecordSettings {
        duration: LONGEST,
        ..settings.record.clone()
    };
    let (begun, end) = (Begun::default(), AtomicBool::new(false));
    let (turns, outcome) = std::thread::scope(|scope| {
        let recorder = scope.spawn(|| {
            record(
                machine,
                &record_settings,
                Extra::default(),
                &end,
                &mut &begun,
            )
        });
        let waited = Instant::now();
        while !begun.has() && !recorder.is_finished() && waited.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut turns = Vec::new();
        if begun.has() {
            let common = DisturbSettings {
                threshold: Nanos(begun.threshold.load(Ordering::Relaxed)),
                victim_tid: measuring_thread(machine, victim),
                ..common
            };
            for planned in &settings.plan.turns {
                if stop.load(Ordering::Relaxed) || recorder.is_finished() {
                    break;
                }
                tell(SelftestStep::Injecting {
                    kind: planned.kind,
                    count: planned.count,
                });
                turns.push(turn(machine, settings, planned, &common));
                // A killed child may have left our thread in its control group.
                remove_leftover_groups(machine);
                std::thread::sleep(PAUSE);
            }
        }
        // The stalls of the last injection must be recorded, too.
        std::thread::sleep(PAUSE);
        end.store(true, Ordering::Release);
        (turns, recorder.join())
    });
    let outcome = outcome.map_err(|_| RecordError::ProbePanicked(victim))??;
    if stop.load(Ordering::Relaxed) {
        return Err(SelftestError::Interrupted);
    }
    if !begun.has() {
        return Err(SelftestError::NotBegun(PATIENCE.as_secs()));
    }
    tell(SelftestStep::Scoring);
    let run = RunReader::open(&outcome.path)?;
    if !run.manifest().attributed {
        let why = run
            .manifest()
            .warnings
            .iter()
            .find_map(|warning| match warning {
                Warning::NoKernelEvents(why) => why.problem.clone(),
                _ => None,
            });
        // A run that shows nothing is not kept.
        let _ = jitterscope_store::remove(&outcome.path);
        return Err(SelftestError::Blind(why));
    }
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for turn in turns {
        match turn {
            Turn::Done(disturbed) => rows.push(score_turn(&run, &disturbed, victim)?),
            Turn::Skipped(kind) => skipped.push(kind),
            Turn::Failed(row) => rows.push(row),
        }
    }
    Ok(Once {
        rows,
        skipped,
        run: outcome.path,
    })
}

fn turn(
    machine: &Machine,
    settings: &SelftestSettings,
    planned: &PlannedDisturbance,
    common: &DisturbSettings,
) -> Turn {
    let kind = planned.kind;
    let wanted = planned.settings(common);
    let skipped = |cause| Turn::Skipped(SkippedKind { kind, cause });
    if let Err(cause) = availability(kind, machine, &wanted) {
        return skipped(SkipCause::Unavailable { cause });
    }
    // The recording has mounted it.
    if let Ok(tracefs) = Tracefs::open(machine)
        && let Some(cause) = kind.cannot_be_named(|event| tracefs.has_event(event))
    {
        return skipped(SkipCause::Unavailable { cause });
    }
    let child = match ChildHandle::spawn(&settings.child, kind, &wanted, PATIENCE) {
        Ok(child) => child,
        Err(ChildError::NotReady { reason, .. }) => {
            return skipped(SkipCause::NotReady { error: reason });
        }
        Err(error) => return Turn::Failed(SelftestRow::broken(kind, &error)),
    };
    let mut child = child;
    let done = child.go().and_then(|()| child.finish(planned.patience()));
    match done {
        Ok(disturbed) => Turn::Done(Box::new(disturbed)),
        Err(error) => Turn::Failed(SelftestRow::broken(kind, &error)),
    }
}

/// Reads the stalls around a turn's injections and scores them.
fn score_turn(
    run: &RunReader,
    disturbed: &Disturbed,
    victim: CpuId,
) -> Result<SelftestRow, StoreError> {
    let rate = run.manifest().rate;
    // Half a period on either side, for the control column.
    let margin = rate.ticks(disturbed.header.settings.period);
    let first = disturbed
        .injections
        .first()
        .map_or(Ticks(0), |i| i.start_ticks - margin);
    let last = disturbed
        .injections
        .last()
        .map_or(Ticks(0), |i| i.end_ticks + margin);
    let (mut stalls, mut attributions): (Vec<Stall>, Vec<Attribution>) = (Vec::new(), Vec::new());
    for stall in run.stalls()? {
        let stall = stall?;
        if stall.cpu == victim && stall.start <= last && first <= stall.end {
            stalls.push(stall);
        }
    }
    let wanted: std::collections::BTreeSet<_> = stalls.iter().map(|stall| stall.id).collect();
    for attribution in run.attributions()? {
        let attribution = attribution?;
        if wanted.contains(&attribution.stall) {
            attributions.push(attribution);
        }
    }
    Ok(score(&Episode {
        header: &disturbed.header,
        injections: &disturbed.injections,
        stalls: &stalls,
        attributions: &attributions,
        rate,
    }))
}
