//! Saved runs: their files as they are, the manifest last.

use super::day;
use super::hosts::HostRecord;
use crate::location::Location;
use crate::problem::Problem;
use jitterscope_platform::HeldDir;
use jitterscope_store::{RunReader, list_own, rollup::run_folder};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a reader looks for: a run without it is not complete.
const MANIFEST: &str = "manifest.json";
/// The largest sent file, bytes: it is in memory once.
const LARGEST: u64 = 256 << 20;
/// How deep a run's folders go.
const DEEPEST: usize = 4;

/// The saved runs of a watch.
#[derive(Debug)]
pub(super) struct SavedRuns {
    folder: PathBuf,
    /// Runs that the store has, and those that no watch saved.
    known: BTreeSet<PathBuf>,
}

/// What one turn has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentRuns {
    pub(super) runs: u64,
    pub(super) bytes: u64,
}

impl SavedRuns {
    pub(super) fn new(folder: &Path) -> SavedRuns {
        SavedRuns {
            folder: folder.to_path_buf(),
            known: BTreeSet::new(),
        }
    }

    /// Sends runs that a watch saved and the store does not have.
    ///
    /// # Errors
    /// The store fails; the rest is sent in the next turn.
    pub(super) fn send(
        &mut self,
        location: &Location,
        cluster: &str,
        host: &HostRecord,
    ) -> Result<SentRuns, Problem> {
        let mut sent = SentRuns::default();
        // Before the first hour is sent, nothing says which host this is.
        let Some(host) = host.id() else {
            return Ok(sent);
        };
        let runs = list_own(&self.folder);
        let runs = runs.map_err(Problem::local)?;
        let there: BTreeSet<&PathBuf> = runs.iter().map(|run| &run.path).collect();
        self.known.retain(|path| there.contains(path));
        let new = runs
            .into_iter()
            .filter(|run| !self.known.contains(&run.path));
        for run in new.collect::<Vec<_>>() {
            let name = run.path.file_name().map(|name| name.to_string_lossy());
            if let (Some(name), Some(at_s)) = (name, saved_at_s(&run.path)) {
                let to = run_folder(cluster, &day(at_s), host, &name);
                if location.get(&format!("{to}/{MANIFEST}"))?.is_none() {
                    sent.bytes += send_run(location, &run.path, &to)?;
                    sent.runs += 1;
                }
            }
            self.known.insert(run.path);
        }
        Ok(sent)
    }
}

/// The moment that a watch saved the run for, seconds since the epoch; `None` for another run.
fn saved_at_s(run: &Path) -> Option<u64> {
    let run = RunReader::open(run).ok()?;
    let moment = run.manifest().moment.as_ref()?;
    Some(moment.realtime_ns / 1_000_000_000)
}

fn send_run(location: &Location, run: &Path, to: &str) -> Result<u64, Problem> {
    let folder = HeldDir::open(run).map_err(Problem::local)?;
    let mut files = Vec::new();
    files_below(&folder, "", DEEPEST, &mut files)?;
    files.sort_by_key(|(path, _)| path == MANIFEST);
    let mut bytes = 0;
    for (path, folder) in files {
        let name = path.rsplit('/').next().unwrap_or(&path);
        let text = folder.read(name, LARGEST).map_err(Problem::local)?;
        bytes += text.len() as u64;
        location.put(&format!("{to}/{path}"), text)?;
    }
    Ok(bytes)
}

/// The files below a folder with their paths, and the folders that hold them.
fn files_below(
    folder: &HeldDir,
    above: &str,
    deep: usize,
    found: &mut Vec<(String, HeldDir)>,
) -> Result<(), Problem> {
    for entry in folder.entries().map_err(Problem::local)? {
        let name: OsString = entry.name;
        let path = format!("{above}{}", name.to_string_lossy());
        if entry.is_dir && deep > 0 {
            let inner = folder.open_dir(&name).map_err(Problem::local)?;
            files_below(&inner, &format!("{path}/"), deep - 1, found)?;
        } else if !entry.is_dir {
            found.push((path, folder.reopen().map_err(Problem::local)?));
        }
    }
    Ok(())
}
