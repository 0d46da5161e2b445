//! Injecting, recording and scoring on a live machine.

use super::{Episode, SelftestReport, SelftestRow, Shortfall, SkipCause, SkippedKind, score};
use crate::error::RecordError;
use crate::home::Home;
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
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest time to wait until a child is ready, and until the recording has begun.
const PATIENCE: Duration = Duration::from_secs(20);
/// The measurement is ended by us; this only bounds it.
const LONGEST: Nanos = Nanos(600_000_000_000);
/// Pause between two kinds, so that the end of one is not in the beginning of the next.
const PAUSE: Duration = Duration::from_millis(50);

/// What to test.
#[derive(Clone, Debug)]
pub struct SelftestSettings {
    /// The recording: one CPU, kernel events on. Its duration is ignored.
    pub record: RecordSettings,
    /// What is injected.
    pub plan: SelftestPlan,
    /// How a child that disturbs is started.
    pub child: ChildCommand,
    /// A folder on a real disk, for writeback.
    pub work_dir: PathBuf,
}

/// A selftest that could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SelftestError {
    /// The recording failed.
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

/// What a selftest is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelftestStep {
    /// A kind of disturbance is injected.
    Injecting {
        /// Which.
        kind: DisturbKind,
        /// How often.
        count: u32,
    },
    /// The CPU was too busy for some kinds, which are tried again.
    TryingAgain,
    /// What was recorded is scored.
    Scoring,
}

/// The run that was recorded, and its score.
#[derive(Debug)]
pub struct Selftested {
    /// The score.
    pub report: SelftestReport,
    /// The runs: the first, and one for each time that kinds were tried again.
    pub runs: Vec<PathBuf>,
}

/// Tells when the measurement has begun.
struct Begun<'a>(&'a AtomicBool);

impl Observer for Begun<'_> {
    fn progress(&mut self, progress: &Progress) {
        if progress.elapsed > Nanos::ZERO {
            self.0.store(true, Ordering::Release);
        }
    }
}

/// The thread of ours that measures a CPU.
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

/// What became of one turn.
enum Turn {
    Done(Box<Disturbed>),
    Skipped(SkippedKind),
    Failed(SelftestRow),
}

/// How often a kind is tried again for which others kept the CPU too busy: a verdict that is only withheld where
/// the CPU is shared could otherwise never fail.
const TRIED_AGAIN: usize = 2;

/// Runs the plan, and kinds that were left undecided again.
///
/// # Errors
/// As of the first recording. One that fails later leaves its kinds undecided.
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
    // Nothing was proven either way, as where a kind cannot be injected at all.
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

/// What one recording came to.
struct Once {
    rows: Vec<SelftestRow>,
    skipped: Vec<SkippedKind>,
    run: PathBuf,
}

/// Records the victim CPU while children disturb it, one kind after the other, and scores what the
/// recording says. `tell` hears what is going on.
///
/// # Errors
/// Nothing could be recorded or scored. A kind that cannot be injected here is skipped in the report.
fn once(
    machine: &Machine,
    settings: &SelftestSettings,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(SelftestStep),
) -> Result<Once, SelftestError> {
    let cpus = &settings.record.cpus.cpus;
    let victim = cpus.first().unwrap_or_default();
    // Children inherit it: they start where they disturb nobody.
    let home = Home::leave(cpus, None)?;
    let clock = choose_clock(
        machine,
        settings.record.run.clock,
        Duration::from_millis(50),
    )
    .map_err(RecordError::Clock)?;
    // Only CPUs that run a registered process are reached by the expedited command.
    let _ = membarrier::register();
    let common = DisturbSettings {
        cpu: victim,
        helper_cpu: home.helpers.first(),
        period: Nanos::ZERO,
        length: Nanos::ZERO,
        count: 0,
        clock: clock.kind,
        rate: clock.rate,
        victim_tid: None,
        parent_pid: 0,
        work_dir: settings.work_dir.clone(),
    };
    let record_settings = RecordSettings {
        duration: LONGEST,
        ..settings.record.clone()
    };
    let (begun, end) = (AtomicBool::new(false), AtomicBool::new(false));
    let (turns, outcome) = std::thread::scope(|scope| {
        let recorder = scope.spawn(|| {
            record(
                machine,
                &record_settings,
                Extra::default(),
                &end,
                &mut Begun(&begun),
            )
        });
        let waited = Instant::now();
        while !begun.load(Ordering::Acquire)
            && !recorder.is_finished()
            && waited.elapsed() < PATIENCE
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut turns = Vec::new();
        if begun.load(Ordering::Acquire) {
            let common = DisturbSettings {
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
                // A child that was killed took its hand off our thread in the middle.
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
    if !begun.load(Ordering::Acquire) {
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
        // Nobody asked for a run that shows nothing.
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
    // The recording has it mounted.
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
    // Half a period on either side: the control column looks there.
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
