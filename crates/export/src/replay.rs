//! A stored run, row by row, to its targets.

use crate::error::ExportError;
use crate::facts::RunFacts;
use crate::parquet::Tables;
use crate::target::{Pace, Target};
use crate::together::begin_all;
use crate::{Delivery, Exporter};
use hdrhistogram::Histogram;
use jitterscope_analyze::Redactor;
use jitterscope_model::{Attribution, RunManifest, Ticks};
use jitterscope_store::{RunReader, StoreError, StoredHistogram};

/// Writes a stored run to all `targets`. All are opened before any is written. What became of each is in
/// their order.
///
/// # Errors
/// The run cannot be read, or a target cannot be opened or written.
pub fn export_run(run: &RunReader, targets: &[Target]) -> Result<Vec<Delivery>, ExportError> {
    export(run, targets, &mut Passed(None))
}

/// As [`export_run`], without who owns the machine, what it is called and what runs on it. A run's own tables
/// are copied as they are, so that they cannot be a target.
///
/// # Errors
/// As [`export_run`], and when a target is the run's tables.
pub fn export_redacted(run: &RunReader, targets: &[Target]) -> Result<Vec<Delivery>, ExportError> {
    if targets.iter().any(|target| matches!(target, Target::Parquet { .. })) {
        return Err(ExportError::NamesInTables);
    }
    export(run, targets, &mut Passed(Some(Redactor::new())))
}

/// What goes out: the data as it is, or without names.
struct Passed(Option<Redactor>);

impl Passed {
    fn manifest(&mut self, manifest: &RunManifest) -> RunManifest {
        self.0.as_mut().map_or_else(|| manifest.clone(), |redactor| redactor.manifest(manifest))
    }

    fn row(&mut self, row: Row) -> Row {
        let Some(redactor) = &mut self.0 else { return row };
        match row {
            Row::Stall(stall, attribution) => {
                Row::Stall(redactor.stall(&stall), attribution.map(|own| redactor.attribution(&own)))
            }
            Row::Whole(stored, span) => {
                Row::Whole(StoredHistogram { tag: redactor.tag(&stored.tag), ..stored }, span)
            }
            // Numbers alone.
            Row::Interval(..) => row,
        }
    }
}

fn export(run: &RunReader, targets: &[Target], passed: &mut Passed) -> Result<Vec<Delivery>, ExportError> {
    let manifest = passed.manifest(run.manifest());
    let facts = RunFacts::of(&manifest);
    let mut sinks = Vec::new();
    for target in targets {
        sinks.push(match target {
            Target::Parquet { folder } => Sink::Tables(Tables::open(folder)?),
            other => Sink::Rows(other.open(Pace::Stored)?),
        });
    }
    let rows = || Rows(run);
    let mut beginning: Vec<&mut dyn Exporter> = Vec::new();
    for sink in &mut sinks {
        if let Sink::Rows(exporter) = sink {
            beginning.push(exporter.as_mut());
        }
    }
    begin_all(&mut beginning, &facts)?;
    rows().each(|row| {
        let row = passed.row(row);
        for sink in &mut sinks {
            let Sink::Rows(exporter) = sink else { continue };
            match &row {
                Row::Stall(stall, attribution) => exporter.stall(stall, attribution.as_ref())?,
                Row::Interval(interval, lengths) => exporter.interval(interval, lengths)?,
                Row::Whole(stored, span) => exporter.whole(&stored.tag, *span, &stored.histogram)?,
            }
        }
        Ok(())
    })?;
    let end = |sink| match sink {
        Sink::Rows(exporter) => exporter.finish(&manifest.results),
        Sink::Tables(tables) => tables.copy(run).map(Delivery::of),
    };
    sinks.into_iter().map(end).collect()
}

enum Sink {
    Rows(Box<dyn Exporter>),
    Tables(Tables),
}

enum Row {
    Stall(jitterscope_model::Stall, Option<Attribution>),
    Interval(jitterscope_model::IntervalRow, Histogram<u64>),
    Whole(StoredHistogram, (Ticks, Ticks)),
}

struct Rows<'a>(&'a RunReader);

impl Rows<'_> {
    /// Stalls before the interval in which they ended.
    fn each(&self, mut take: impl FnMut(Row) -> Result<(), ExportError>) -> Result<(), ExportError> {
        let run = self.0;
        let mut stalls = run.stalls()?.peekable();
        let mut attributions = run.attributions()?.peekable();
        let mut histograms = run.interval_histograms()?;
        let mut send_stall = |stall: jitterscope_model::Stall,
                              take: &mut dyn FnMut(Row) -> Result<(), ExportError>|
         -> Result<(), ExportError> {
            let mut own = None;
            // Both are in order of the stalls' ids.
            while let Some(next) = attributions.next_if(|a| a.as_ref().map_or(true, |a| a.stall <= stall.id))
            {
                let next = next?;
                own = (next.stall == stall.id).then_some(next);
            }
            take(Row::Stall(stall, own))
        };
        for interval in run.intervals()? {
            let interval = interval?;
            while let Some(stall) =
                stalls.next_if(|stall| stall.as_ref().map_or(true, |stall| stall.end <= interval.end))
            {
                send_stall(stall?, &mut take)?;
            }
            let lengths = histograms.next().transpose()?.ok_or_else(|| StoreError::Damaged {
                path: run.path().join("histograms.hlog"),
                why: "it has fewer lines than there are intervals".into(),
            })?;
            take(Row::Interval(interval, lengths.histogram))?;
        }
        for stall in stalls {
            send_stall(stall?, &mut take)?;
        }
        let span = run.manifest().span().unwrap_or_default();
        for whole in histograms {
            take(Row::Whole(whole?, span))?;
        }
        Ok(())
    }
}
