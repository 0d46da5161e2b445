//! Attributes the stalls of a probe's run by another tool's records: a new run with the stalls of one and the records of
//! the other, on the probe's clock.
//!
//! [`times`] aligns the clocks. The file's records then go through the stages of a replay, so that a replay of the new
//! run takes the same steps.

mod times;

use super::error::ImportError;
use super::file_facts::FileFacts;
use super::foreign::open;
use super::opened::{Added, FileClock, Opened};
use super::pages::{Begun, FilePages};
use super::settings::ImportSettings;
use super::shares::described;
use super::victims::records_switches;
use super::{Imported, failed};
use crate::engine::FanOut;
use crate::kept_names::ReplayedNames;
use crate::observer::{Observer, Progress};
use crate::replay::ProbeTurns;
use jitterscope_analyze::{RowsOf, timer_frequency};
use jitterscope_attribute::{Alignment, Edge};
use jitterscope_model::{
    AddedRecords, CpuSet, EdgeCostRow, Gap, Nanos, ProbeKind, RUN_SCHEMA_VERSION, Row, RunFacts,
    RunManifest, SelfNoise, Setup, SetupStep, Sink, Source, SourceTurn, Stall, StoredTrace, Ticks,
    WarmUpTurn, Warning,
};
use jitterscope_source::TraceContext;
use jitterscope_source::tracedat::Measured;
use jitterscope_store::{RunReader, RunWriter, StoreError, StoreSink};
use std::sync::atomic::{AtomicBool, Ordering};
use times::Aligned;

/// Records so much before and after the measurement are kept: what runs at its ends shows in earlier switches.
const AROUND: Nanos = Nanos(1_000_000_000);
/// Stalls from which the costs of edges are learned, before any is attributed.
const LEARNED: usize = 512;
/// A replay takes the stored costs of a run whose first turn is not number 0.
const FIRST_TURN: u64 = 1;

/// Attributes the stalls of `run` by the records of a file, and writes them as a new run. Leaves nothing if it fails or
/// `stop` becomes true. `run` stays as it is.
///
/// # Errors
/// The run has no spinning probe, the file is not one that we read, their clocks cannot be aligned, or the run cannot be
/// written.
pub fn import_into(
    settings: &ImportSettings,
    run: &RunReader,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Imported, ImportError> {
    let probed = run.manifest();
    let Some((from, until)) = probed.span().filter(|_| is_spinning(probed)) else {
        return Err(ImportError::NoSpinningProbe {
            run: probed.id.clone(),
        });
    };
    let mut opened = open(settings, stop)?;
    let (context, unreadable) = opened.context();
    records_switches(&opened, &context)?;
    let cpus = &probed.probe.cpus;
    let there = opened.cpus();
    if cpus.iter().all(|cpu| !there.contains(cpu)) {
        return Err(ImportError::NoCpus {
            file: opened.recognised(),
            cpus: cpus.clone(),
            there,
        });
    }
    opened.watch(cpus);
    let aligned = times::align(&opened, run, stop)?;
    let symbols = opened.take_functions();
    let file = FileFacts::of(&opened, (unreadable, CpuSet::new()), &symbols);
    let measured = Measured {
        cpus: cpus.clone(),
        from,
        until,
        around: probed.rate.ticks(AROUND),
        without: aligned.unfit(),
    };
    let clock = FileClock {
        name: times::kernel_clock(probed.clock).to_owned(),
        kind: probed.clock,
        rate: probed.rate,
    };
    let map = &aligned.alignment.map;
    let (opened, added) = opened.retimed(clock, (&measured, map), settings, stop)?;
    let (mut context, _) = opened.context();
    context.setup = vec![SetupStep {
        before_turn: 0,
        step: Setup::Measure { from, until },
    }];
    let mut joined = Joined {
        run,
        opened: &opened,
        names: ReplayedNames::with_symbols(&context, symbols.unwrap_or_default()),
        context,
        manifest: RunManifest {
            schema_version: RUN_SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").into(),
            label: settings.label.clone(),
            command_line: settings.command_line.clone(),
            attributed: true,
            asked: Vec::new(),
            sleeping_works: Vec::new(),
            trace: StoredTrace {
                limit_bytes: settings.trace_limit_bytes,
                ..StoredTrace::default()
            },
            ..probed.clone()
        },
        stop,
    };
    let first = map.probe_time(aligned.first_record);
    joined.manifest.edge_costs = joined.learned(first)?;
    joined.write(settings, (&file, added, &aligned), observer)
}

fn is_spinning(run: &RunManifest) -> bool {
    run.probe.kind() == Some(ProbeKind::Spin) && !run.results.is_empty()
}

/// A run and a file with one clock.
struct Joined<'a> {
    run: &'a RunReader,
    opened: &'a Opened,
    names: ReplayedNames,
    context: TraceContext,
    /// Of the new run.
    manifest: RunManifest,
    stop: &'a AtomicBool,
}

impl<'a> Joined<'a> {
    /// The file's pages from the beginning.
    fn pages(&self, names: ReplayedNames) -> Result<FilePages<'a>, ImportError> {
        let (from, until) = self.manifest.span().unwrap_or_default();
        let begun = Begun {
            context: &self.context,
            names,
            measured: &self.manifest.probe.cpus,
            from,
            interval: self.manifest.rate.ticks(self.manifest.probe.interval_ns),
            span: until.since(from),
            first_turn: FIRST_TURN,
        };
        FilePages::new(self.opened, begun).map_err(|error| described(self.opened, error))
    }

    fn is_stopped(&self) -> Result<(), ImportError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(ImportError::Interrupted),
            false => Ok(()),
        }
    }

    /// Where each probe begins.
    fn begins(&self) -> Vec<WarmUpTurn> {
        let results = self.manifest.results.iter();
        results
            .map(|result| WarmUpTurn {
                cpu: result.cpu,
                gaps: Vec::new(),
                begins: Some(result.start),
            })
            .collect()
    }

    /// What edges cost, from the first stalls with records: a recorder learns it from its warm-up.
    fn learned(&self, first_record: Ticks) -> Result<Vec<EdgeCostRow>, ImportError> {
        let names = ReplayedNames::with_symbols(&self.context, Default::default());
        let mut source = self.pages(names)?;
        let mut turns = ProbeTurns::new(&self.manifest);
        let has_records = |stall: &Result<Stall, StoreError>| {
            stall
                .as_ref()
                .map_or(true, |stall| stall.start >= first_record)
        };
        let stalls = self.run.stalls()?.filter(has_records);
        let (mut left, mut waiting) = (stalls.take(LEARNED), Vec::new());
        loop {
            self.is_stopped()?;
            let turn = source.turn(&mut (), &mut |record| turns.take(record));
            let turn = turn.map_err(|error| described(self.opened, error))?;
            let Some(SourceTurn::Kept(turn)) = turn else {
                break;
            };
            if waiting.is_empty() {
                for stall in left.by_ref() {
                    let stall = stall?;
                    let gap = Gap {
                        start: stall.start,
                        length: stall.length(),
                    };
                    turns.gaps.attributor.announce(stall.cpu, gap);
                    waiting.push(stall);
                }
                waiting.reverse();
            }
            turns.gaps.attributor.forget_names();
            while let Some(stall) = waiting.pop_if(|stall| stall.end <= turn.now) {
                turns.gaps.attributor.learn(&stall, &source.names);
            }
            if waiting.is_empty() {
                break;
            }
        }
        Ok(turns.gaps.attributor.costs().to_rows())
    }

    fn write(
        mut self,
        settings: &ImportSettings,
        (file, added, aligned): (&FileFacts, Added, &Aligned),
        observer: &mut dyn Observer,
    ) -> Result<Imported, ImportError> {
        let run = self.run;
        let writer = RunWriter::create(
            &settings.runs_dir,
            &settings.label,
            self.manifest.clock_start.realtime_ns,
        );
        let mut writer = writer?;
        writer.limit_trace(settings.trace_limit_bytes);
        // An import that is killed is begun again: its rows need no log.
        writer.give_up_log();
        let mut rows = FanOut::of_store(StoreSink::new(writer));
        self.manifest.id = rows.store.id().to_owned();
        rows.sum_up(RowsOf::run(&self.manifest));
        rows.begin(&RunFacts::of(&self.manifest))?;
        let machine = run.machine()?;
        if let Some(machine) = &machine {
            rows.store.machine(machine);
        }
        let names = std::mem::replace(&mut self.names, ReplayedNames::new(&self.context));
        let mut source = self.pages(names)?;
        let manifest = self.manifest.clone();
        let mut turns = ProbeTurns::new(&manifest);
        self.stalls(&mut source, &mut turns, &mut rows, observer)?;
        if rows.is_stuck() {
            return Err(failed(&mut rows, manifest.clone()));
        }
        for (row, lengths) in run.intervals()?.zip(run.interval_histograms()?) {
            let (row, lengths) = (row?, lengths?);
            rows.rows(&[Row::Interval(&row, &lengths.histogram)])?;
        }
        source.names.save(&mut self.context);
        crate::kernel_events::keep_context(&mut rows, &self.context)?;
        let sources = file.sources(self.opened, &source, added);
        let mut warnings = kept_warnings(run.manifest());
        warnings.extend(file.warnings(self.opened, &source, (&sources, added)));
        warnings.extend(crate::warnings::of_room(rows.store.room()));
        let of_file = |name: &str| sources.iter().any(|of| of.name == name);
        let own = &run.manifest().sources;
        let mut all: Vec<_> = own
            .iter()
            .filter(|of| !of_file(&of.name))
            .cloned()
            .collect();
        // What the recorder could not see, the file shows.
        all.retain(|of| !matches!(of.name.as_str(), "tracefs" | "senders"));
        all.extend(sources);
        let attributor = &turns.gaps.attributor;
        let entry = attributor.costs().get(Edge::LeadInterrupt);
        let exit = attributor.costs().get(Edge::TrailInterrupt);
        let rate = self.manifest.rate;
        let mut manifest = RunManifest {
            sources: all,
            warnings,
            events_in_gaps: attributor.events_in_gaps(),
            senders_dropped: attributor.senders_dropped(),
            self_noise: SelfNoise {
                entry_cost_ns: rate.nanos(entry.smallest),
                exit_cost_ns: rate.nanos(exit.smallest),
                cost_samples: entry.samples,
                events: Some(source.price()),
                ..self.manifest.self_noise.clone()
            },
            added: Some(AddedRecords {
                covered: self.covered(added),
                ..self.added(file.imported(self.opened, &source, added), aligned)
            }),
            ..self.manifest.clone()
        };
        self.is_stopped()?;
        let kernel_hz = machine.as_ref().and_then(timer_frequency);
        if let Some(sums) = rows.sums(&manifest, kernel_hz) {
            rows.store.summary(&sums);
        }
        let path = rows.store.close(&mut manifest)?;
        Ok(Imported { path, manifest })
    }

    /// Attributes every stall.
    fn stalls(
        &self,
        source: &mut FilePages<'_>,
        turns: &mut ProbeTurns<'_>,
        rows: &mut FanOut<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), ImportError> {
        let rate = self.manifest.rate;
        let (from, until) = self.manifest.span().unwrap_or_default();
        let mut begins = self.begins();
        let mut stalls = self.run.stalls()?.peekable();
        let (mut next, mut worst) = (0, Nanos::ZERO);
        loop {
            self.is_stopped()?;
            let turn = source.turn(rows, &mut |record| turns.take(record));
            let turn = turn.map_err(|error| described(self.opened, error))?;
            let Some(SourceTurn::Kept(mut turn)) = turn else {
                break;
            };
            let now = turn.now;
            let mut own = Vec::new();
            while let Some(stall) =
                stalls.next_if(|row| row.as_ref().map_or(true, |stall| stall.end <= now))
            {
                let stall = stall?;
                next = stall.id.0 + 1;
                worst = worst.max(rate.nanos(stall.length()));
                own.push(stall);
            }
            turn.stalls = next;
            turn.warm_up = std::mem::take(&mut begins);
            rows.rows(&[Row::Turn(&turn)])?;
            let of_turn = (*turn, source.seen_until());
            for (stall, attribution) in turns.turn(of_turn, own, &source.names, &|_| false) {
                rows.rows(&[Row::Stall(&stall, attribution.as_ref())])?;
            }
            rows.tick()?;
            if rows.is_stuck() {
                break;
            }
            observer.progress(&Progress {
                elapsed: rate.nanos(now.min(until).since(from)),
                total: rate.nanos(until.since(from)),
                stalls: next,
                worst,
            });
        }
        turns.finish();
        Ok(())
    }

    /// The part of the measured time that has records.
    fn covered(&self, added: Added) -> f64 {
        let measured = self.manifest.results.iter();
        let measured = measured.fold(0u64, |sum, of| sum + of.end.since(of.start).0);
        (added.covered.0 as f64 / measured.max(1) as f64).min(1.0)
    }

    /// What the new run states of the alignment.
    fn added(&self, file: jitterscope_model::Imported, aligned: &Aligned) -> AddedRecords {
        let Alignment {
            map,
            error,
            drift_ppb,
            records,
            inside,
            by_chance,
            first,
            unfit: _,
        } = &aligned.alignment;
        let (rate, record) = (self.manifest.rate, aligned.first_record);
        let at = map.probe_time(record);
        let signed = |ticks: Ticks| i64::try_from(rate.nanos(ticks).0).unwrap_or(i64::MAX);
        let begin = aligned.first_stall;
        AddedRecords {
            file,
            run: self.run.manifest().id.clone(),
            start: aligned.start,
            file_ns: aligned.file_rate.nanos(record).0,
            run_ns: signed(at.since(begin)) - signed(begin.since(at)),
            drift_ppb: *drift_ppb,
            error_ns: *error,
            compared: *records,
            inside: *inside,
            by_chance: *by_chance,
            first: *first,
            covered: 0.0,
        }
    }
}

/// The warnings of a run that its new records do not settle.
fn kept_warnings(run: &RunManifest) -> Vec<Warning> {
    let of_records = |warning: &&Warning| {
        matches!(
            warning,
            Warning::NoKernelEvents(_)
                | Warning::UnrecordedSwitches { .. }
                | Warning::Folded { .. }
                | Warning::TraceLost { .. }
                | Warning::TraceDisturbed { .. }
                | Warning::EventsMissing { .. }
                | Warning::WriterBehind { .. }
                | Warning::TraceDiscarded { .. }
                | Warning::ImportCut { .. }
                | Warning::ImportDisordered { .. }
                | Warning::ImportMoved { .. }
                | Warning::ImportLocalClock
        )
    };
    run.warnings
        .iter()
        .filter(|of| !of_records(of))
        .cloned()
        .collect()
}
