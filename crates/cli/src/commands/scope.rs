//! Common parts of audit and tune: the CPUs, and the run.

use crate::completion;
use crate::exit::{UnavailableError, UsageError};
use crate::places::Places;
use anyhow::Context;
use clap::Args;
use jitterscope_analyze::RowSums;
use jitterscope_model::{Attribution, CpuList, CpuSet, RunManifest, StallId};
use jitterscope_platform::Machine;
use jitterscope_store::{RunReader, StoreError, resolve};
use jitterscope_tune::{Goal, RunCulprits, online_cpus};
use jitterscope_view::{doubts_text, tuning};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Which CPUs and which run.
#[derive(Args, Debug)]
pub struct Scope {
    /// CPUs to be left undisturbed: 1-3,5 or all or isolated [default: those of the run, else the
    /// isolated ones, else the highest]
    #[arg(long, value_name = "LIST", add = completion::cpus())]
    pub cpus: Option<CpuList>,
    /// Rank by what this run measured: its id, its label or latest
    #[arg(long = "run", value_name = "RUN", add = completion::runs())]
    pub run: Option<String>,
    /// Look at a tree of files that resembles a machine, instead of this one
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
}

/// The measurements of a run.
pub struct Measured {
    pub run: String,
    /// The time by culprit.
    pub culprits: RunCulprits,
    /// The measured CPUs.
    pub cpus: CpuSet,
}

impl Scope {
    /// These CPUs of this machine.
    pub fn of(cpus: Option<CpuList>) -> Scope {
        Scope {
            cpus,
            run: None,
            root: None,
        }
    }

    /// The machine to look at.
    pub fn machine(&self) -> Machine {
        self.root.as_deref().map_or_else(Machine::host, Machine::at)
    }

    /// The measurements of the named run, and its CPUs.
    ///
    /// # Errors
    /// The run does not exist, cannot be read, or its verdicts on culprits do not hold.
    pub fn measured(&self, places: &Places) -> anyhow::Result<Option<Measured>> {
        match &self.run {
            None => Ok(None),
            Some(run) => measured_by(&resolve(&places.runs()?, run)?).map(Some),
        }
    }

    /// The CPUs, and the reason if the user did not name them.
    ///
    /// # Errors
    /// The machine does not list its CPUs, or none is isolated although that was requested.
    pub fn cpus(
        &self,
        machine: &Machine,
        of_run: Option<&CpuSet>,
    ) -> anyhow::Result<(CpuSet, Option<String>)> {
        match (&self.cpus, of_run) {
            (Some(CpuList::Set(set)), _) => Ok((set.clone(), None)),
            (Some(CpuList::All), _) => Ok((online_cpus(machine)?, None)),
            (Some(CpuList::Isolated), _) => {
                let text = machine
                    .read_trimmed("/sys/devices/system/cpu/isolated")
                    .unwrap_or_default();
                let set: CpuSet = text.parse().context("the kernel's list of isolated CPUs")?;
                if set.is_empty() {
                    return Err(
                        UsageError("--cpus isolated: the kernel isolates no CPU".into()).into(),
                    );
                }
                Ok((set, None))
            }
            (None, Some(set)) => Ok((set.clone(), Some("as the run measured".into()))),
            (None, None) => {
                let (set, why) = Goal::default_cpus(machine)?;
                Ok((set, Some(tuning::default_cpus(why).to_owned())))
            }
        }
    }
}

/// The measurements of the run in a folder, and its CPUs.
///
/// # Errors
/// The run cannot be read, or its verdicts on culprits do not hold.
pub fn measured_by(path: &Path) -> anyhow::Result<Measured> {
    let reader = RunReader::open(path)?;
    let manifest = reader.manifest();
    let doubts = manifest.doubts();
    if !doubts.is_empty() {
        let text = format!(
            "run {} names no culprits to act upon: {}; record again",
            manifest.id,
            doubts_text(&doubts)
        );
        return Err(UnavailableError(text).into());
    }
    let (run, cpus) = (manifest.id.to_string(), of_interest(manifest));
    Ok(Measured {
        run,
        culprits: culprits_of(&reader)?,
        cpus,
    })
}

/// The CPUs that a run was for, without an idle control.
pub fn of_interest(manifest: &RunManifest) -> CpuSet {
    manifest
        .probe
        .cpus
        .difference(&manifest.idle_control().into_iter().collect())
}

/// The time by culprit in a run, without an idle control.
///
/// # Errors
/// The run cannot be read.
pub fn culprits_of(reader: &RunReader) -> anyhow::Result<RunCulprits> {
    if let Some(sums) = reader.summary::<RowSums>()?.filter(RowSums::is_current) {
        return Ok(RunCulprits::of(reader.manifest(), sums.into_totals()));
    }
    let mut of_control: HashSet<StallId> = HashSet::new();
    if let Some(control) = reader.manifest().idle_control() {
        for stall in reader.stalls()? {
            let stall = stall?;
            of_control.extend(Some(stall.id).filter(|_| stall.cpu == control));
        }
    }
    Ok(RunCulprits::gather(reader.manifest(), || {
        let counts = move |row: &Attribution| !of_control.contains(&row.stall);
        Ok::<_, StoreError>(
            reader
                .attributions()?
                .filter(move |row| row.as_ref().map_or(true, &counts)),
        )
    })?)
}
