//! Exports a stored run, row by row.

use crate::destination::{Destination, Opened};
use crate::error::ExportError;
use crate::trace_rows::{TraceRow, TraceRows};
use hdrhistogram::Histogram;
use jitterscope_analyze::Redactor;
use jitterscope_model::{
    Attribution, CpuId, Delivery, IntervalRow, RawPage, Row, RunFacts, RunManifest, Sink,
    SinkError, Stall, StallId, Ticks, TraceRole, begin_all,
};
use jitterscope_store::{RunReader, StoreError, StoredHistogram};

/// Writes a stored run to all `targets`. Opens all targets before it writes to any. Returns the outcomes in the order
/// of the targets.
///
/// # Errors
/// The run cannot be read, or a target cannot be opened or written.
pub fn export_run(run: &RunReader, targets: &[Destination]) -> Result<Vec<Delivery>, SinkError> {
    export(run, targets, &mut Passed(None))
}

/// As [`export_run`], without the names of the machine's owner, of the machine and of what runs on it. A copy of the
/// run's own tables or of its trace cannot be redacted, so it cannot be a target.
///
/// # Errors
/// As [`export_run`], and if a target is a copy.
pub fn export_redacted(
    run: &RunReader,
    targets: &[Destination],
) -> Result<Vec<Delivery>, SinkError> {
    if let Some(copy) = targets.iter().find(|target| target.is_copy()) {
        return Err(ExportError::NamesInCopy(copy.scheme()).into());
    }
    export(run, targets, &mut Passed(Some(Redactor::new())))
}

/// The exported data: unchanged, or redacted.
struct Passed(Option<Redactor>);

impl Passed {
    fn manifest(&mut self, manifest: &RunManifest) -> RunManifest {
        self.0
            .as_mut()
            .map_or_else(|| manifest.clone(), |redactor| redactor.manifest(manifest))
    }

    fn row(&mut self, row: Stored) -> Stored {
        let Some(redactor) = &mut self.0 else {
            return row;
        };
        match row {
            Stored::Stall(stall, attribution) => Stored::Stall(
                redactor.stall(&stall),
                attribution.map(|own| redactor.attribution(&own)),
            ),
            Stored::Whole(stored, span) => Stored::Whole(
                StoredHistogram {
                    tag: redactor.tag(&stored.tag),
                    ..stored
                },
                span,
            ),
            // An interval has only numbers. The trace, which is full of names, is not read.
            Stored::Interval(..) | Stored::Trace(_) => row,
        }
    }
}

fn export(
    run: &RunReader,
    targets: &[Destination],
    passed: &mut Passed,
) -> Result<Vec<Delivery>, SinkError> {
    let manifest = passed.manifest(run.manifest());
    let facts = RunFacts::of(&manifest);
    let mut outputs = targets
        .iter()
        .map(Destination::open_stored)
        .collect::<Result<Vec<_>, _>>()?;
    let mut sinks: Vec<&mut dyn Sink> = Vec::new();
    for output in &mut outputs {
        if let Opened::Rows(sink) = output {
            sinks.push(sink.as_mut());
        }
    }
    let trace = match &passed.0 {
        None if sinks.iter().any(|sink| sink.takes(&ANY_PAGE)) => TraceRows::of(run)?,
        _ => None,
    };
    begin_all(&mut sinks, &facts)?;
    let mut batch: Vec<Stored> = Vec::with_capacity(BATCH);
    each(run, trace, |row| {
        let row = passed.row(row);
        // An interval's histogram and a page are large: a batch ends with it.
        let full = batch.len() + 1 >= BATCH || !matches!(row, Stored::Stall(..));
        batch.push(row);
        if full {
            hand_over(&mut batch, &mut sinks)
        } else {
            Ok(())
        }
    })?;
    hand_over(&mut batch, &mut sinks)?;
    let end = |output| match output {
        Opened::Rows(mut sink) => sink.end(&manifest),
        Opened::Copy(copy) => Ok(copy.copy(run)?),
    };
    outputs.into_iter().map(end).collect()
}

/// The number of stalls in a batch.
const BATCH: usize = 512;

/// Tells whether a sink takes pages of the trace.
const ANY_PAGE: Row<'_> = Row::Page(RawPage {
    role: TraceRole::Local,
    cpu: CpuId(0),
    first: Ticks(0),
    last: Ticks(0),
    bytes: &[],
});

/// A row as it was read.
enum Stored {
    Trace(TraceRow),
    Stall(Stall, Option<Attribution>),
    Interval(IntervalRow, Histogram<u64>),
    Whole(StoredHistogram, (Ticks, Ticks)),
}

impl Stored {
    fn row(&self) -> Row<'_> {
        match self {
            Stored::Trace(TraceRow::Context(json)) => Row::Context(json),
            Stored::Trace(TraceRow::Page(page)) => Row::Page(RawPage {
                role: page.role,
                cpu: page.cpu,
                first: page.first,
                last: page.last,
                bytes: &page.bytes,
            }),
            Stored::Trace(TraceRow::Turn(turn)) => Row::Turn(turn),
            Stored::Stall(stall, attribution) => Row::Stall(stall, attribution.as_ref()),
            Stored::Interval(row, lengths) => Row::Interval(row, lengths),
            Stored::Whole(stored, span) => Row::Whole(&stored.tag, *span, &stored.histogram),
        }
    }
}

fn hand_over(batch: &mut Vec<Stored>, sinks: &mut [&mut dyn Sink]) -> Result<(), SinkError> {
    let rows: Vec<Row<'_>> = batch.iter().map(Stored::row).collect();
    sinks.iter_mut().try_for_each(|sink| sink.rows(&rows))?;
    batch.clear();
    Ok(())
}

/// Passes stalls before the interval in which they ended, and after the pages that they were attributed from.
fn each(
    run: &RunReader,
    mut trace: Option<TraceRows>,
    mut take: impl FnMut(Stored) -> Result<(), SinkError>,
) -> Result<(), SinkError> {
    let read = |error: StoreError| SinkError::from(ExportError::Store(error));
    let mut stalls = run.stalls().map_err(read)?.peekable();
    let mut attributions = run.attributions().map_err(read)?.peekable();
    let mut histograms = run.interval_histograms().map_err(read)?;
    let mut own = |stall: &Stall| -> Result<Option<Attribution>, SinkError> {
        let mut own = None;
        // Both are sorted by stall id.
        while let Some(next) =
            attributions.next_if(|a| a.as_ref().map_or(true, |a| a.stall <= stall.id))
        {
            let next = next.map_err(read)?;
            own = (next.stall == stall.id).then_some(next);
        }
        Ok(own)
    };
    let mut pages = |until: Option<StallId>,
                     take: &mut dyn FnMut(Stored) -> Result<(), SinkError>| {
        match &mut trace {
            Some(trace) => trace.until(until, |row| take(Stored::Trace(row))),
            None => Ok(()),
        }
    };
    for interval in run.intervals().map_err(read)? {
        let interval = interval.map_err(read)?;
        let before = |stall: &Result<Stall, StoreError>| {
            stall.as_ref().map_or(true, |s| s.end <= interval.end)
        };
        while let Some(stall) = stalls.next_if(before) {
            let stall = stall.map_err(read)?;
            pages(Some(stall.id), &mut take)?;
            take(Stored::Stall(stall, own(&stall)?))?;
        }
        let missing = || StoreError::Damaged {
            path: run.path().join("histograms.hlog"),
            why: "it has fewer lines than there are intervals".into(),
        };
        let lengths = histograms
            .next()
            .transpose()
            .map_err(read)?
            .ok_or_else(missing)
            .map_err(read)?;
        take(Stored::Interval(interval, lengths.histogram))?;
    }
    for stall in stalls {
        let stall = stall.map_err(read)?;
        pages(Some(stall.id), &mut take)?;
        take(Stored::Stall(stall, own(&stall)?))?;
    }
    pages(None, &mut take)?;
    let span = run.manifest().span().unwrap_or_default();
    for whole in histograms {
        take(Stored::Whole(whole.map_err(read)?, span))?;
    }
    Ok(())
}
