//! Finishes the runs of killed recorders, and runs that are a part of what a living recorder measures.
//!
//! The rows and the trace say most of what a recorder's memory held: the results of probes follow from stalls and
//! intervals, the accounts of threads and watched CPUs from a replay. What follows from neither is missing, and the run
//! says so.

use crate::replay::{Replayed, replay};
use hdrhistogram::Histogram;
use jitterscope_analyze::{RowSums, SummaryBuilder};
use jitterscope_model::{
    ClockReading, CpuId, IntervalRow, MissingFigure, Nanos, ProbeKind, ProbeResult, RunManifest,
    SavedMoment, Stall, TickRate, Ticks, WakeupResult, Warning,
};
use jitterscope_source::TraceContext;
use jitterscope_store::{
    KilledRun, Partial, Remains, RunReader, StoreError, StoredRow, TracePiece, killed_runs,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The longest stall that the histogram tells apart, as in the probe's own.
const LONGEST: u64 = 1 << 44;

/// What became of a killed recorder's folder.
#[derive(Debug)]
pub enum Ended {
    /// The run in this folder, with all that was written of it.
    Finished(PathBuf),
    /// It had no row that can be read, and is gone.
    Removed,
    /// It is as it was; the next start tries again.
    Left(StoreError),
}

/// Finishes the runs of killed recorders of this user, and removes those without a row. A failure does not stop the
/// others.
///
/// # Errors
/// Another user may change the folder or one of its parents, or it cannot be read.
pub fn finish_killed(runs: &Path) -> Result<Vec<(Partial, Ended)>, StoreError> {
    let (killed, failed) = killed_runs(runs)?;
    let mut ended: Vec<_> = failed
        .into_iter()
        .map(|(partial, error)| (partial, Ended::Left(error)))
        .collect();
    for run in killed {
        let path = run.path().to_path_buf();
        ended.push((
            Partial { path },
            finish(run, None).unwrap_or_else(Ended::Left),
        ));
    }
    Ok(ended)
}

/// Finishes a part of a measurement, around this moment. `None` if it has no row; nothing is left of it then.
///
/// # Errors
/// The disk is full or fails. Nothing is left of the part then.
pub(crate) fn finish_part(
    part: KilledRun,
    moment: &SavedMoment,
) -> Result<Option<PathBuf>, StoreError> {
    match finish(part, Some(moment))? {
        Ended::Finished(run) => Ok(Some(run)),
        Ended::Removed => Ok(None),
        Ended::Left(error) => Err(error),
    }
}

fn finish(killed: KilledRun, moment: Option<&SavedMoment>) -> Result<Ended, StoreError> {
    let path = match killed.rows()? {
        Remains::Nothing => {
            killed.remove()?;
            return Ok(Ended::Removed);
        }
        Remains::Complete => killed.close(None::<(&RunManifest, &RowSums)>)?,
        Remains::Rows(run) => {
            if let Some(context) = context(&run)? {
                killed.keep_context(&context)?;
            }
            let (manifest, sums) = results(*run, moment)?;
            killed.close(Some((&manifest, &sums)))?
        }
    };
    Ok(Ended::Finished(path))
}

/// The context of the trace as an ordinary end writes it: with every name of the turns. `None` without a trace.
fn context(run: &RunReader) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(mut context) = run.trace_context::<TraceContext>()? else {
        return Ok(None);
    };
    for piece in run.trace_pieces()? {
        let TracePiece::Turn(turn) = piece? else {
            continue;
        };
        for (address, name) in turn.functions {
            context
                .symbols
                .entry(address)
                .or_insert_with(|| name.to_string());
        }
        let read = turn.names.into_iter().map(|read| (read.tid, read.name));
        context.tasks.extend(read.chain(turn.asked));
    }
    // It came from JSON.
    Ok(serde_json::to_vec(&context).ok())
}

/// The manifest of a run and the sums of its rows, from what was written.
fn results(
    run: RunReader,
    moment: Option<&SavedMoment>,
) -> Result<(RunManifest, RowSums), StoreError> {
    let beginning = run.manifest();
    let mut cpus: BTreeMap<CpuId, OfCpu> = BTreeMap::new();
    // A part ends when it was cut off.
    let mut last = beginning.clock_end.ticks;
    let mut attributed = run.trace_context::<serde::de::IgnoredAny>()?.is_some();
    for row in run.intervals()? {
        let row = row?;
        last = last.max(row.end);
        cpus.entry(row.cpu).or_default().interval(&row);
    }
    run.rows(|row| match row {
        StoredRow::Stall(stall) => {
            last = last.max(stall.end);
            cpus.entry(stall.cpu).or_default().stall(&stall);
        }
        StoredRow::Attribution(_) => attributed = true,
        StoredRow::Interval(_) => {}
    })?;
    let mut manifest = beginning.clone();
    let (rate, start) = (manifest.rate, manifest.clock_start);
    manifest.killed = moment.is_none();
    manifest.moment = moment.cloned();
    manifest.attributed = attributed;
    manifest.clock_end = ClockReading {
        ticks: last,
        monotonic_raw_ns: start
            .monotonic_raw_ns
            .saturating_add(rate.nanos(last.since(start.ticks)).0),
        realtime_ns: start.realtime_of(last, rate),
        boottime_ns: None,
        width_ticks: start.width_ticks,
    };
    let kind = manifest.probe.kind();
    if matches!(kind, Some(ProbeKind::Spin | ProbeKind::Wakeup)) {
        // A part has stalls whole that reach over one of its ends.
        let whole = moment.map(|_| (start.ticks, beginning.clock_end.ticks));
        let result = |cpu| cpus.entry(cpu).or_default().result(cpu, beginning, whole);
        manifest.results = beginning.probe.cpus.iter().map(result).collect();
        if kind == Some(ProbeKind::Wakeup) {
            manifest.wakeups = manifest
                .results
                .iter()
                .map(|result| wakeup(result, rate))
                .collect();
        }
    }
    let run = run.of_manifest(manifest);
    // Without the trace, or where it cannot be read, the accounts are missing.
    let replayed = replay(&run, &mut |_, _| {}).unwrap_or_default();
    let machine = run.machine()?;
    let mut manifest = run.manifest().clone();
    add_replayed(&mut manifest, replayed);
    // First: a short report shows only some.
    let missing = missing(&manifest, machine.is_some());
    let warning = match moment {
        Some(_) => Warning::SavedPart { missing },
        None => Warning::Killed { missing },
    };
    manifest.warnings.insert(0, warning);
    let mut builder = SummaryBuilder::new(&manifest).machine(machine).stored();
    run.rows(|row| match row {
        StoredRow::Stall(stall) => builder.stall(&stall),
        StoredRow::Attribution(attribution) => builder.attribution(&attribution),
        StoredRow::Interval(interval) => builder.interval(&interval),
    })?;
    let sums = builder.into_sums();
    Ok((manifest, sums))
}

fn add_replayed(manifest: &mut RunManifest, replayed: Replayed) {
    manifest.threads = replayed.threads.unwrap_or_default();
    manifest.passive = replayed.passive.unwrap_or_default();
    manifest.events_in_gaps = replayed.events_in_gaps.unwrap_or_default();
}

/// What of a run only the memory of its recorder held.
fn missing(manifest: &RunManifest, has_machine: bool) -> Vec<MissingFigure> {
    let of_kind = match manifest.probe.kind() {
        Some(ProbeKind::Spin | ProbeKind::Wakeup) => Some(MissingFigure::Samples),
        Some(ProbeKind::Pipeline) => Some(MissingFigure::Messages),
        Some(ProbeKind::Attach | ProbeKind::Passive) | None => (manifest.threads.is_empty()
            && manifest.passive.is_empty())
        .then_some(MissingFigure::Accounts),
    };
    of_kind
        .into_iter()
        .chain((manifest.attributed && manifest.killed).then_some(MissingFigure::Losses))
        .chain((!has_machine).then_some(MissingFigure::Machine))
        .chain([MissingFigure::Cost])
        .collect()
}

/// What the rows say of one CPU with a probe.
#[derive(Default)]
struct OfCpu {
    tid: i32,
    start: Option<Ticks>,
    end: Ticks,
    /// The start of the first stall.
    first: Option<Ticks>,
    /// The number of stalls in the intervals, and their time.
    counted: u64,
    stolen: Nanos,
    longest: Nanos,
    /// The end of the last interval.
    closed: Ticks,
    /// Stalls with a row: how many in the intervals, and in all; and their time.
    within: u64,
    stalls: u64,
    stalled_within: Ticks,
    stalled: Ticks,
    lengths: Option<Histogram<u64>>,
}

impl OfCpu {
    /// All intervals come before the first stall.
    fn interval(&mut self, row: &IntervalRow) {
        self.start = Some(self.start.map_or(row.start, |start| start.min(row.start)));
        self.closed = self.closed.max(row.end);
        self.end = self.end.max(row.end);
        self.counted = self.counted.saturating_add(row.count);
        self.stolen += row.stolen;
        self.longest = self.longest.max(row.max);
    }

    fn stall(&mut self, stall: &Stall) {
        let length = stall.length();
        self.tid = stall.victim.tid;
        self.first = self.first.or(Some(stall.start));
        self.end = self.end.max(stall.end);
        self.stalls += 1;
        self.stalled = self.stalled + length;
        if stall.end <= self.closed && self.start.is_some_and(|start| start < stall.end) {
            self.within += 1;
            self.stalled_within = self.stalled_within + length;
        }
        if self.lengths.is_none() {
            self.lengths = Histogram::new_with_bounds(1, LONGEST, 3).ok();
        }
        if let Some(lengths) = &mut self.lengths {
            lengths.saturating_record(length.0);
        }
    }

    /// The result of its probe. What is not known is zero. `whole`: what was measured, if the intervals do not say it.
    fn result(
        &self,
        cpu: CpuId,
        manifest: &RunManifest,
        whole: Option<(Ticks, Ticks)>,
    ) -> ProbeResult {
        let rate = manifest.rate;
        let start = self.start.unwrap_or(manifest.clock_start.ticks);
        let (start, end) = match whole {
            Some((from, to)) => (
                self.first.map_or(from, |first| first.min(from)),
                self.end.max(to),
            ),
            None => (start, self.end.max(start)),
        };
        let unrecorded = self.counted.saturating_sub(self.within);
        let stolen = self.stolen.saturating_sub(rate.nanos(self.stalled_within));
        let of_unrecorded = match unrecorded {
            0 => Ticks(0),
            _ => rate.ticks(stolen),
        };
        let lengths = self.lengths.as_ref();
        let above = lengths.map_or_else(Vec::new, |lengths| {
            lengths
                .iter_recorded()
                .map(|value| {
                    (
                        value.value_iterated_to(),
                        value.count_since_last_iteration(),
                    )
                })
                .collect()
        });
        let longest = lengths.map_or(0, Histogram::max);
        // An interval states its longest stall in nanoseconds.
        let max_ticks = match rate.nanos(Ticks(longest)) < self.longest {
            true => rate.ticks(self.longest).0,
            false => longest,
        };
        ProbeResult {
            cpu,
            tid: self.tid,
            start,
            end,
            planned_end: start + rate.ticks(manifest.probe.duration_ns),
            samples: 0,
            sum_ticks: 0,
            sum_squares: 0,
            min_ticks: 0,
            max_ticks,
            threshold_ticks: rate.ticks(manifest.probe.threshold_ns).0,
            below: Vec::new(),
            above,
            stalls: self.stalls.saturating_add(unrecorded),
            stalled_ticks: (self.stalled + of_unrecorded).0,
            dropped_records: unrecorded,
            own_bookkeeping: 0,
            page_faults: 0,
            involuntary_switches: 0,
            ended_early: None,
        }
    }
}

/// The same for a probe that sleeps.
fn wakeup(result: &ProbeResult, rate: TickRate) -> WakeupResult {
    WakeupResult {
        cpu: result.cpu,
        tid: result.tid,
        start: result.start,
        end: result.end,
        max: rate.nanos(Ticks(result.max_ticks)),
        stalls: result.stalls,
        dropped_records: result.dropped_records,
        ..WakeupResult::default()
    }
}
