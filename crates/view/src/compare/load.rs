//! Loads a stored run for a comparison.

use crate::load;
use jitterscope_analyze::compare::{ComparedRun, ComparedRunBuilder};
use jitterscope_analyze::{Redactor, RowSums, RunSummary, SummaryBuilder};
use jitterscope_model::{CpuSet, Nanos, RunManifest, Stall, StallId};
use jitterscope_store::{RunReader, StoreError, StoredRow};
use std::path::Path;

/// Why a run cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run has no figures of these CPUs.
    #[error("run {run} did not measure CPU {cpus}: it has {measured}")]
    NotMeasured {
        run: String,
        /// The requested CPUs.
        cpus: CpuSet,
        measured: CpuSet,
    },
    /// The figures are of threads, not of CPUs.
    #[error("run {run} is of probe {probe}, whose figures are not a CPU's own: leave out @{cpus}")]
    NoCpus {
        run: String,
        /// The probe of the run.
        probe: String,
        /// The requested CPUs.
        cpus: CpuSet,
    },
}

/// Opens the run in a folder, for all or some of its CPUs; memory does not grow with the run.
///
/// # Errors
/// The run cannot be read, or has no figures of these CPUs.
pub fn load_compared(path: &Path, cpus: Option<&CpuSet>) -> Result<ComparedRun, CompareError> {
    load_compared_with(path, cpus, None, &mut None)
}

/// As [`load_compared`], with stalls counted from a longer threshold than the run's own on, and with an optional
/// redactor. All compared runs share it, so that a thread has the same pseudonym in each.
///
/// # Errors
/// As [`load_compared`].
pub fn load_compared_with(
    path: &Path,
    cpus: Option<&CpuSet>,
    counted_from: Option<Nanos>,
    redactor: &mut Option<Redactor>,
) -> Result<ComparedRun, CompareError> {
    let reader = RunReader::open(path)?;
    let (mut manifest, machine) = load::facts(&reader, redactor)?;
    if let Some(cpus) = cpus {
        keep_only(&mut manifest, cpus)?;
    }
    let mut builder = ComparedRunBuilder::new(&manifest, machine, path);
    if let Some(threshold) = counted_from {
        builder = builder.counted_from(threshold);
    }
    let mut last: Option<Stall> = None;
    load::rows(&reader, redactor, |row| match row {
        StoredRow::Stall(stall) => last = Some(stall),
        StoredRow::Attribution(attribution) => {
            if let Some(stall) = last.as_ref().filter(|stall| stall.id == attribution.stall) {
                builder.stall(stall, &attribution);
            }
        }
        StoredRow::Interval(interval) => builder.interval(&interval),
    })?;
    let mut run = builder.finish();
    run.only = cpus.cloned();
    Ok(run)
}

/// Reduces a manifest to some CPUs. Lost events stay those of the whole run, because they are not stored by CPU.
///
/// # Errors
/// The run has no figures of these CPUs.
fn keep_only(manifest: &mut RunManifest, cpus: &CpuSet) -> Result<(), CompareError> {
    if manifest.results.is_empty() && manifest.passive.is_empty() {
        let (run, probe) = (manifest.id.clone(), manifest.probe.kind.clone());
        return Err(CompareError::NoCpus {
            run,
            probe,
            cpus: cpus.clone(),
        });
    }
    let probed = manifest.results.iter().map(|result| result.cpu);
    let measured: CpuSet = probed
        .chain(manifest.passive.iter().map(|of| of.cpu))
        .collect();
    let missing = cpus.difference(&measured);
    if !missing.is_empty() {
        return Err(CompareError::NotMeasured {
            run: manifest.id.clone(),
            cpus: missing,
            measured,
        });
    }
    manifest.results.retain(|result| cpus.contains(result.cpu));
    manifest.wakeups.retain(|wakeup| cpus.contains(wakeup.cpu));
    manifest.passive.retain(|of| cpus.contains(of.cpu));
    manifest.probe.cpus = cpus.clone();
    Ok(())
}

/// Sums up the run in a folder for some of its CPUs; memory does not grow with the run.
///
/// # Errors
/// As [`load_compared`].
pub fn load_of_cpus(path: &Path, cpus: &CpuSet) -> Result<RunSummary, CompareError> {
    let reader = RunReader::open(path)?;
    let (mut manifest, machine) = load::facts(&reader, &mut None)?;
    keep_only(&mut manifest, cpus)?;
    // Threads and messages move between CPUs: their data do not belong to these.
    manifest.threads.clear();
    manifest.pipeline = None;
    let (level, worst) = (RowSums::STORED.0, RowSums::STORED.1);
    let mut builder = SummaryBuilder::new(&manifest)
        .machine(machine)
        .path(path)
        .worst(worst)
        .level(level);
    let mut last: Option<StallId> = None;
    load::rows(&reader, &mut None, |row| match row {
        StoredRow::Stall(stall) if cpus.contains(stall.cpu) => {
            last = Some(stall.id);
            builder.stall(&stall);
        }
        StoredRow::Attribution(attribution) if last == Some(attribution.stall) => {
            builder.attribution(&attribution);
        }
        StoredRow::Interval(interval) if cpus.contains(interval.cpu) => builder.interval(&interval),
        StoredRow::Stall(_) | StoredRow::Attribution(_) | StoredRow::Interval(_) => {}
    })?;
    Ok(builder.finish())
}
