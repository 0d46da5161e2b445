//! The folder of runs: what is in it, and which one is meant.

use crate::error::StoreError;
use crate::reader::read_manifest;
use jitterscope_model::RunManifest;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of unfinished runs begin so, then `<pid>-<start time of that process>-<name>`.
pub(crate) const PARTIAL_PREFIX: &str = ".partial-";

/// A whole run.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// Its folder.
    pub path: PathBuf,
    /// Its manifest.
    pub manifest: RunManifest,
}

/// A folder that looks like a run and cannot be read.
#[derive(Debug)]
pub struct Problem {
    /// The folder.
    pub path: PathBuf,
    /// Why.
    pub error: StoreError,
}

/// What a killed recorder left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The folder.
    pub path: PathBuf,
    /// The recorder that made it.
    pub pid: u32,
}

/// All runs in a folder, oldest first, and what could not be read. A folder that is not there has none.
///
/// # Errors
/// The folder cannot be read.
pub fn list(dir: &Path) -> Result<(Vec<RunEntry>, Vec<Problem>), StoreError> {
    let (mut runs, mut problems) = (Vec::new(), Vec::new());
    for path in folders(dir)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || !path.join("manifest.json").exists() {
            continue;
        }
        match read_manifest(&path) {
            Ok(manifest) => runs.push(RunEntry { path, manifest }),
            Err(error) => problems.push(Problem { path, error }),
        }
    }
    runs.sort_by_key(|run| run.manifest.clock_start.realtime_ns);
    Ok((runs, problems))
}

/// The run meant by `latest`, a label (the newest with it), an id, a folder's name or a path.
///
/// # Errors
/// None is; the message lists what there is.
pub fn resolve(dir: &Path, wanted: &str) -> Result<PathBuf, StoreError> {
    let as_path = Path::new(wanted);
    if as_path.join("manifest.json").is_file() {
        return Ok(as_path.to_path_buf());
    }
    let (runs, _) = list(dir)?;
    let named = |run: &&RunEntry| {
        run.manifest.id == wanted
            || run.manifest.label == wanted
            || run.path.file_name().is_some_and(|name| name.to_string_lossy() == wanted)
    };
    let found = if wanted == "latest" { runs.last() } else { runs.iter().rfind(named) };
    found.map(|run| run.path.clone()).ok_or_else(|| StoreError::NoSuchRun {
        wanted: wanted.to_owned(),
        dir: dir.to_path_buf(),
        hint: hint(&runs),
    })
}

fn hint(runs: &[RunEntry]) -> String {
    if runs.is_empty() {
        return "; there are none yet. Record one with: jitterscope record".into();
    }
    let newest: Vec<String> =
        runs.iter().rev().take(5).map(|r| format!("{} ({})", r.manifest.id, r.manifest.label)).collect();
    format!("; the newest are {}", newest.join(", "))
}

fn folders(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::read(dir, error)),
    };
    let mut folders: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

/// Unfinished runs whose recorder is no longer alive.
///
/// # Errors
/// The folder cannot be read.
pub fn partials(dir: &Path) -> Result<Vec<Partial>, StoreError> {
    let dead = |path: PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let mut parts = name.strip_prefix(PARTIAL_PREFIX)?.splitn(3, '-');
        let pid: u32 = parts.next()?.parse().ok()?;
        let started = parts.next()?;
        (process_start(pid).as_deref() != Some(started)).then_some(Partial { path, pid })
    };
    Ok(folders(dir)?.into_iter().filter_map(dead).collect())
}

/// Removes them; returns those removed.
///
/// # Errors
/// The folder cannot be read, or one cannot be removed.
pub fn clean_partials(dir: &Path) -> Result<Vec<Partial>, StoreError> {
    let found = partials(dir)?;
    for partial in &found {
        fs::remove_dir_all(&partial.path).map_err(|e| StoreError::write(&partial.path, e))?;
    }
    Ok(found)
}

/// `<pid>-<start time>` of this process: the pid alone may be used again.
pub(crate) fn own_partial_mark() -> String {
    let pid = std::process::id();
    format!("{pid}-{}", process_start(pid).unwrap_or_else(|| "0".into()))
}

/// Field 22 of `/proc/PID/stat`, ticks from boot to the process's start; `None` when there is no such
/// process. The name in field 2 may hold anything, so fields count from its closing parenthesis.
fn process_start(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19).map(str::to_owned)
}
