//! The folder of runs: what is in it, and which one is meant.

use crate::error::StoreError;
use crate::head::{MANIFEST, read_head};
use jitterscope_model::RunHead;
use jitterscope_platform::HeldDir;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Folders of unfinished runs begin so, then `<pid>-<start time of that process>-<name>`.
pub(crate) const PARTIAL_PREFIX: &str = ".partial-";

/// A whole run.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// Its folder.
    pub path: PathBuf,
    /// Its head.
    pub head: RunHead,
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
        // A link to a run elsewhere is one, too; what is in it is opened without links.
        let Ok(folder) = HeldDir::open(&path) else { continue };
        if !folder.has(MANIFEST) {
            continue;
        }
        match read_head(&folder) {
            Ok(head) => runs.push(RunEntry { path, head }),
            Err(error) => problems.push(Problem { path, error }),
        }
    }
    runs.sort_by_key(|run| run.head.started_realtime_ns);
    Ok((runs, problems))
}

/// The run meant by `latest`, a label (the newest with it), an id, a folder's name or a path.
///
/// # Errors
/// None is; the message lists what there is.
pub fn resolve(dir: &Path, wanted: &str) -> Result<PathBuf, StoreError> {
    let as_path = Path::new(wanted);
    if as_path.join(MANIFEST).is_file() {
        return Ok(as_path.to_path_buf());
    }
    let (runs, _) = list(dir)?;
    let named = |run: &&RunEntry| {
        run.head.id == wanted
            || run.head.label == wanted
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
        runs.iter().rev().take(5).map(|r| format!("{} ({})", r.head.id, r.head.label)).collect();
    format!("; the newest are {}", newest.join(", "))
}

/// Folders, and links to folders, whose names are not hidden, in order of names.
fn folders(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::read(dir, error)),
    };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| !name.as_bytes().starts_with(b".")))
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    Ok(folders)
}

/// Unfinished runs of this user whose recorder is no longer alive.
///
/// # Errors
/// The folder cannot be read.
pub fn partials(dir: &Path) -> Result<Vec<Partial>, StoreError> {
    match HeldDir::open(dir) {
        Err(error) if error.is_absent() => Ok(Vec::new()),
        other => dead_partials(&other.map_err(StoreError::reading)?),
    }
}

fn dead_partials(dir: &HeldDir) -> Result<Vec<Partial>, StoreError> {
    // Anybody may make a folder of such a name where all may write; it is for its owner to remove.
    let user = rustix::process::geteuid().as_raw();
    let dead = |name: &OsStr| {
        let mut parts = name.to_str()?.strip_prefix(PARTIAL_PREFIX)?.splitn(3, '-');
        let pid: u32 = parts.next()?.parse().ok()?;
        let started = parts.next()?;
        let gone = process_start(pid).as_deref() != Some(started);
        gone.then(|| Partial { path: dir.path().join(name), pid })
    };
    let entries = dir.entries().map_err(StoreError::reading)?;
    let ours = entries.iter().filter(|entry| entry.is_dir && entry.owner == user);
    Ok(ours.filter_map(|entry| dead(&entry.name)).collect())
}

/// Removes them; returns those removed.
///
/// # Errors
/// Another user may change the folder or one on its way, it cannot be read, or one cannot be removed.
pub fn clean_partials(dir: &Path) -> Result<Vec<Partial>, StoreError> {
    let folder = match HeldDir::trusted(dir) {
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        other => other.map_err(StoreError::writing)?,
    };
    let found = dead_partials(&folder)?;
    for partial in &found {
        folder.remove_tree(partial.path.file_name().unwrap_or_default()).map_err(StoreError::writing)?;
    }
    Ok(found)
}

/// Removes a run with all that is in its folder.
///
/// # Errors
/// Another user may change the folder that it is in or one on its way, or it cannot be removed.
pub fn remove(run: &Path) -> Result<(), StoreError> {
    let folder = match run.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let folder = HeldDir::trusted(folder).map_err(StoreError::writing)?;
    folder.remove_tree(run.file_name().unwrap_or_default()).map_err(StoreError::writing)
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
