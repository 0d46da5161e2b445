//! Imports what another tool recorded: a `trace.dat`, a `perf.data`, a CTF trace or one of Perfetto becomes an ordinary
//! run.
//!
//! The file's pages are a [`Source`] ([`pages`]): turn by turn, in order of time, in bounded memory. The same stages as
//! in a recording make stalls of them, and the run keeps pages and setup, so that a replay takes the same steps. The
//! victim is named, because a file has no probe ([`victims`]).

mod error;
mod facts;
mod file_facts;
mod folder;
mod foreign;
mod into;
mod opened;
mod pages;
mod settings;
mod shares;
mod switched;
mod victims;

pub use error::ImportError;
pub use into::import_into;
pub use settings::{ImportSettings, Victim};

use crate::engine::FanOut;
use crate::kept_names::ReplayedNames;
use crate::observer::{Observer, Progress};
use crate::threads::{EpisodeRows, InOrder, MakesRows};
use facts::Facts;
use jitterscope_analyze::RowsOf;
use jitterscope_attribute::{NameResolver, PassiveWatch, ThreadFollower};
use jitterscope_model::{Row, RunManifest, SetupStep, Sink, Source, SourceTurn, Ticks};
use jitterscope_source::TraceContext;
use jitterscope_store::{Room, RunWriter, StoreSink};
use opened::Opened;
use pages::{Begun, FilePages};
use shares::described;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use victims::{Plan, Results};

/// An imported run.
#[derive(Debug)]
pub struct Imported {
    pub path: PathBuf,
    /// Everything stored in the run except the rows.
    pub manifest: RunManifest,
}

/// Imports a file: attributes the stalls of the victim and writes a run. Leaves nothing if it fails or `stop` becomes
/// true.
///
/// # Errors
/// The file is not one that we read, or does not have what is asked for; the run cannot be written.
pub fn import(
    settings: &ImportSettings,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Imported, ImportError> {
    let mut opened = foreign::open(settings, stop)?;
    let (mut context, unreadable) = opened.context();
    let plan = victims::plan(&mut opened, &context, settings, stop)?;
    let symbols = opened.take_functions();
    let facts = Facts::of(&opened, settings, &plan, (unreadable, &symbols))?;
    context.setup = setup(&plan, facts.from);
    let writer = RunWriter::create(
        &settings.runs_dir,
        &settings.label,
        facts.clock_start.realtime_ns,
    );
    let mut writer = writer?;
    writer.limit_trace(settings.trace_limit_bytes);
    // An import that is killed is begun again: its rows need no log.
    writer.give_up_log();
    let mut rows = FanOut::of_store(StoreSink::new(writer));
    rows.sum_up(RowsOf::without_probes(opened.clock.rate));
    rows.begin(&facts.run(rows.store.id()))?;
    let names = ReplayedNames::with_symbols(&context, symbols.unwrap_or_default());
    let begun = Begun {
        context: &context,
        names,
        measured: &facts.measured,
        from: facts.from,
        interval: opened.clock.rate.ticks(facts.interval),
        span: facts.span,
        first_turn: 0,
    };
    let source = FilePages::new(&opened, begun).map_err(|error| described(&opened, error))?;
    let mut through = Through {
        source,
        context,
        facts: &facts,
        rows,
        stop,
        observer,
    };
    let results = match &plan {
        Plan::Threads { settings, .. } => {
            let follower = ThreadFollower::new(settings.clone());
            through.all(&opened, follower, |of, end, names| {
                plan.threads(of, end, names)
            })?
        }
        Plan::Cpus { settings, .. } => {
            let watch = PassiveWatch::new(settings.clone());
            through.all(&opened, watch, |of, end, names| plan.cpus(of, end, names))?
        }
    };
    through.close(&opened, &plan, results)
}

/// Why no more rows are taken. Nothing of the run is kept.
fn failed(rows: &mut FanOut<'_>, manifest: RunManifest) -> ImportError {
    match rows.store.room() {
        Room::None { .. } => ImportError::NoRoom,
        Room::Ample | Room::TraceGivenUp => match rows.store.finish(manifest) {
            Err(error) => error.into(),
            Ok(_) => ImportError::NoRoom,
        },
    }
}

/// The setup steps of an import, as a recorder keeps its own.
fn setup(plan: &Plan, from: Ticks) -> Vec<SetupStep> {
    let steps = plan.steps(from).into_iter();
    steps
        .map(|step| SetupStep {
            before_turn: 0,
            step,
        })
        .collect()
}

/// An import on its way through the file.
struct Through<'a, 'f> {
    source: FilePages<'f>,
    context: TraceContext,
    facts: &'a Facts,
    rows: FanOut<'static>,
    stop: &'a AtomicBool,
    observer: &'a mut dyn Observer,
}

impl Through<'_, '_> {
    /// Reads the whole file. `close` ends a follower that has every record.
    fn all<F: MakesRows>(
        &mut self,
        opened: &Opened,
        follower: F,
        close: impl FnOnce(&mut F, Ticks, &dyn NameResolver) -> Results,
    ) -> Result<Results, ImportError> {
        let facts = self.facts;
        let mut records = InOrder::of(follower);
        let mut made =
            EpisodeRows::new(facts.threshold, opened.clock.rate, facts.from).every(facts.interval);
        let mut close = Some(close);
        let mut results = Results::default();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ImportError::Interrupted);
            }
            let turn = self
                .source
                .turn(&mut self.rows, &mut |record| records.take(record))
                .map_err(|error| described(opened, error))?;
            let Some(SourceTurn::Kept(mut turn)) = turn else {
                break;
            };
            records.hand_over(turn.now, &self.source.names);
            if let Some(end) = turn.end
                && let Some(close) = close.take()
            {
                results = close(&mut records.follower, end, &self.source.names);
            }
            let now = turn.end.unwrap_or(turn.now);
            records.follower.make_rows(&mut made, now, &mut self.rows)?;
            turn.stalls = made.next_id;
            self.rows.rows(&[Row::Turn(&turn)])?;
            if let Some(end) = turn.end {
                made.close_interval(end, &mut self.rows)?;
            }
            self.rows.tick()?;
            if self.rows.is_stuck() {
                let manifest = self
                    .facts
                    .manifest(opened, &self.source, Results::default());
                return Err(failed(&mut self.rows, manifest));
            }
            self.observer.progress(&Progress {
                elapsed: opened
                    .clock
                    .rate
                    .nanos(now.min(self.source.last).since(facts.from)),
                total: opened.clock.rate.nanos(facts.span),
                stalls: made.next_id,
                worst: made.worst,
            });
        }
        results.events = records.events_counted();
        Ok(results)
    }

    /// Writes the manifest and closes the run.
    fn close(
        mut self,
        opened: &Opened,
        plan: &Plan,
        mut results: Results,
    ) -> Result<Imported, ImportError> {
        plan.check(opened, &self.context, &results, &self.source, self.stop)?;
        self.source.names.save(&mut self.context);
        crate::kernel_events::keep_context(&mut self.rows, &self.context)?;
        results.warnings.extend(plan.warnings());
        let mut manifest = self.facts.manifest(opened, &self.source, results);
        manifest.id = self.rows.store.id().to_owned();
        if self.stop.load(Ordering::Relaxed) {
            return Err(ImportError::Interrupted);
        }
        manifest
            .warnings
            .extend(crate::warnings::of_room(self.rows.store.room()));
        if let Some(sums) = self.rows.sums(&manifest, None) {
            self.rows.store.summary(&sums);
        }
        let path = self.rows.store.close(&mut manifest)?;
        Ok(Imported { path, manifest })
    }
}
