//! Makes an ordinary run of what lies within a window of a watch's history.
//!
//! Rows, raw trace and context are copied into an unfinished run, which is then finished as that of a killed recorder
//! is: the results follow from the rows, the accounts from a replay. Stalls are numbered anew, from 0.

use crate::killed::finish_part;
use jitterscope_model::{
    ClockReading, CpuId, Nanos, ProbeKind, RunManifest, SavedMoment, Setup, SourceReport, Stall,
    StallId, Ticks, WarmUpTurn, Warning,
};
use jitterscope_source::TraceContext;
use jitterscope_store::{
    RunReader, RunWriter, StoreError, StoredPage, StoredRow, TracePiece, move_run,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The raw trace begins this much earlier than the window: whose a CPU is shows with its next switch.
const LEAD: Nanos = Nanos(1_000_000_000);
/// It ends this much later: a turn of the drain has the records of its time.
const TRAIL: Nanos = Nanos(200_000_000);
/// A probe's first read comes within so many turns of the drain, even where others have its CPU.
const FIRST_READ: usize = 20;
/// The largest raw trace of a saved run, bytes; beyond it the surroundings of the worst stalls are kept.
const TRACE_LIMIT: u64 = 256 << 20;

/// The window of a saved run, on the measuring clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: Ticks,
    pub(super) to: Ticks,
}

impl Window {
    fn has(self, from: Ticks, to: Ticks) -> bool {
        self.from <= from && to <= self.to
    }

    fn meets(self, from: Ticks, to: Ticks) -> bool {
        from <= self.to && self.from <= to
    }
}

/// Why nothing was saved.
#[derive(Debug, thiserror::Error)]
pub(super) enum CutError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The window lies outside of the history.
    #[error("the history has nothing of that time")]
    Nothing,
    /// No stall and no whole interval lies within the window.
    #[error("the history has no row of that time")]
    NoRow,
}

/// Where a saved run goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination<'a> {
    /// The folder in which it is made, so that a killed process leaves half a run nowhere else. On the same file system.
    pub(super) workshop: &'a Path,
    pub(super) runs: &'a Path,
    pub(super) label: &'a str,
}

/// Copies the window out of the sections, oldest first, into a run. Returns its folder.
///
/// # Errors
/// The sections have nothing of the window or cannot be read, or the disk is full or fails. Nothing is left then.
pub(super) fn cut(
    sections: &[PathBuf],
    window: Window,
    destination: Destination<'_>,
    moment: &SavedMoment,
) -> Result<PathBuf, CutError> {
    let label = destination.label;
    let mut readers = Vec::new();
    for path in sections {
        readers.push(RunReader::open(path)?);
    }
    let first = readers.first().ok_or(CutError::Nothing)?;
    let beginning =
        beginning(&readers, first.manifest(), window, label).ok_or(CutError::Nothing)?;
    let window = Window {
        from: beginning.clock_start.ticks,
        to: beginning.clock_end.ticks,
    };
    let context = first.trace_context::<TraceContext>()?;
    let mut writer = RunWriter::create(
        destination.workshop,
        label,
        beginning.clock_start.realtime_ns,
    )?;
    writer.limit_trace(TRACE_LIMIT);
    writer.begin(beginning.clock_start, beginning.rate)?;
    writer.beginning(&beginning)?;
    let mut copy = Copy {
        writer,
        window,
        probe: beginning.probe.kind.clone(),
        kept: Vec::new(),
        begins: begins(&readers[0], &beginning)?,
        ends: window.to,
    };
    for section in &readers {
        copy.rows(section)?;
    }
    if let Some(context) = context {
        // It came from JSON.
        let json = serde_json::to_vec(&measuring(context, copy.measured())).unwrap_or_default();
        copy.writer.trace_context(&json)?;
    }
    let rate = beginning.rate;
    let mut trace = TraceCopy {
        of: Window {
            from: window.from - rate.ticks(LEAD),
            to: window.to + rate.ticks(TRAIL),
        },
        says_begins: matches!(
            beginning.probe.kind(),
            Some(ProbeKind::Spin | ProbeKind::Wakeup)
        ),
        under_way: false,
        pages: Vec::new(),
        missing: false,
    };
    for section in &readers {
        for piece in section.trace_pieces()? {
            trace.piece(piece?, &mut copy)?;
        }
    }
    let part = finish_part(copy.writer.leave()?, moment)?.ok_or(CutError::NoRow)?;
    Ok(move_run(&part, destination.runs)?)
}

/// Where the measurement of each CPU begins: at the beginning of the part, or at the probe's first read if the part
/// begins with the watch. Kernel events before that are in no stall.
fn begins(
    first: &RunReader,
    beginning: &RunManifest,
) -> Result<BTreeMap<CpuId, Ticks>, StoreError> {
    let from = beginning.clock_start.ticks;
    let cpus = beginning.probe.cpus.iter();
    let mut begins: BTreeMap<CpuId, Ticks> = cpus.map(|cpu| (cpu, from)).collect();
    if from > first.manifest().clock_start.ticks {
        return Ok(begins);
    }
    let mut turns = 0;
    for piece in first.trace_pieces()? {
        let TracePiece::Turn(turn) = piece? else {
            continue;
        };
        for of in &turn.warm_up {
            if let (Some(at), Some(begins)) = (of.begins, begins.get_mut(&of.cpu)) {
                *begins = at.max(from);
            }
        }
        turns += usize::from(turn.measuring);
        if turns >= FIRST_READ {
            break;
        }
    }
    Ok(begins)
}

/// What is known of the part before its first row; `None` if the sections have nothing of it.
fn beginning(
    sections: &[RunReader],
    first: &RunManifest,
    window: Window,
    label: &str,
) -> Option<RunManifest> {
    let last = sections.last()?.manifest();
    let from = window.from.max(first.clock_start.ticks);
    let to = window.to.min(last.clock_end.ticks);
    if to <= from {
        return None;
    }
    let rate = first.rate;
    let at = |ticks| ClockReading {
        ticks,
        monotonic_raw_ns: first
            .clock_start
            .moved(first.clock_start.monotonic_raw_ns, ticks, rate),
        realtime_ns: first.clock_start.realtime_of(ticks, rate),
        boottime_ns: first
            .clock_start
            .boottime_ns
            .map(|boottime| first.clock_start.moved(boottime, ticks, rate)),
        width_ticks: first.clock_start.width_ticks,
    };
    let mut part = RunManifest {
        label: label.to_owned(),
        clock_start: at(from),
        clock_end: at(to),
        sources: lost(sections),
        interrupted: false,
        killed: false,
        warnings: last.warnings.clone(),
        ..first.clone()
    };
    part.probe.duration_ns = rate.nanos(to.since(from));
    // Those of a section that was its watch's last, or whose watch was killed.
    (part.results, part.threads) = (Vec::new(), Vec::new());
    part.warnings
        .retain(|warning| !matches!(warning, Warning::Killed { .. } | Warning::Interrupted));
    Some(part)
}

/// The sources with what all sections lost.
fn lost(sections: &[RunReader]) -> Vec<SourceReport> {
    let mut sources: Vec<SourceReport> = Vec::new();
    for source in sections.iter().flat_map(|of| &of.manifest().sources) {
        match sources.iter_mut().find(|known| known.name == source.name) {
            Some(known) => known.lost = known.lost.saturating_add(source.lost),
            None => sources.push(source.clone()),
        }
    }
    sources
}

/// The context of a recorder that measured within the window.
fn measuring(mut context: TraceContext, window: Window) -> TraceContext {
    for set in &mut context.setup {
        if let Setup::Measure { from, until } = &mut set.step {
            (*from, *until) = (window.from, window.to);
        }
    }
    context
}

struct Copy {
    writer: RunWriter,
    window: Window,
    probe: String,
    /// The numbers that the copied stalls had.
    kept: Vec<StallId>,
    /// Where each CPU's measurement begins, and where the last one ends: a stall that reaches over an end of the window
    /// is copied whole, because events of a part of it would lie in no stall.
    begins: BTreeMap<CpuId, Ticks>,
    ends: Ticks,
}

impl Copy {
    /// What the copied rows cover.
    fn measured(&self) -> Window {
        Window {
            from: self.begins.values().min().copied().unwrap_or_default(),
            to: self.ends,
        }
    }

    /// The marks that the probes begin.
    fn begin_marks(&self) -> Vec<WarmUpTurn> {
        let mark = |(cpu, at): (&CpuId, &Ticks)| WarmUpTurn {
            cpu: *cpu,
            gaps: Vec::new(),
            begins: Some(*at),
        };
        self.begins.iter().map(mark).collect()
    }

    fn rows(&mut self, section: &RunReader) -> Result<(), StoreError> {
        let mut taken = Ok(());
        section.rows(|row| {
            if taken.is_ok() {
                taken = self.row(row);
            }
        })?;
        taken?;
        // Each interval has its histogram, in the same order.
        for (row, lengths) in section.intervals()?.zip(section.interval_histograms()?) {
            let (row, lengths) = (row?, lengths?);
            if self.window.has(row.start, row.end) {
                self.writer.interval(&row)?;
                self.writer.interval_histogram(
                    &self.probe,
                    row.cpu,
                    row.start,
                    row.end,
                    &lengths.histogram,
                )?;
            }
        }
        Ok(())
    }

    fn row(&mut self, row: StoredRow) -> Result<(), StoreError> {
        match row {
            StoredRow::Stall(stall) if self.window.meets(stall.start, stall.end) => {
                let begins = self.begins.entry(stall.cpu).or_insert(stall.start);
                *begins = (*begins).min(stall.start);
                self.ends = self.ends.max(stall.end);
                let id = StallId(self.kept.len() as u64);
                self.kept.push(stall.id);
                self.writer.stall(&Stall { id, ..stall })
            }
            StoredRow::Attribution(mut attribution)
                if self.kept.last() == Some(&attribution.stall) =>
            {
                attribution.stall = StallId(self.kept.len() as u64 - 1);
                self.writer.attribution(&attribution)
            }
            StoredRow::Stall(_) | StoredRow::Attribution(_) | StoredRow::Interval(_) => Ok(()),
        }
    }
}

/// Copies whole turns of the trace.
struct TraceCopy {
    of: Window,
    /// Whether the next turn states where the probes begin.
    says_begins: bool,
    /// Whether the last turn was copied.
    under_way: bool,
    pages: Vec<StoredPage>,
    /// Whether a part is missing behind the last copied turn.
    missing: bool,
}

impl TraceCopy {
    fn piece(&mut self, piece: TracePiece, copy: &mut Copy) -> Result<(), StoreError> {
        match piece {
            TracePiece::Page(page) => {
                self.pages.push(page);
                Ok(())
            }
            TracePiece::Missing => {
                self.missing = true;
                self.pages.clear();
                Ok(())
            }
            TracePiece::Turn(mut turn) => {
                let pages = std::mem::take(&mut self.pages);
                // A turn without pages belongs to the one before it.
                if !pages.is_empty() {
                    let of = self.of;
                    self.under_way = pages.iter().any(|page| of.meets(page.first, page.last));
                }
                if !self.under_way {
                    return Ok(());
                }
                if std::mem::take(&mut self.missing) {
                    copy.writer.trace_missing()?;
                }
                for page in &pages {
                    copy.writer.trace_page(
                        page.role,
                        page.cpu,
                        page.first,
                        page.last,
                        &page.bytes,
                    )?;
                }
                let kept = &copy.kept;
                turn.stalls = kept.partition_point(|id| id.0 < turn.stalls) as u64;
                turn.end = None;
                turn.warm_up = match std::mem::take(&mut self.says_begins) {
                    true => copy.begin_marks(),
                    false => Vec::new(),
                };
                copy.writer.drain_turn(&turn)
            }
        }
    }
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
