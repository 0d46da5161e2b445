//! The folder of runs: lists its runs and resolves names to runs.

use crate::error::StoreError;
use crate::head::{MANIFEST, read_head};
use crate::killed::KilledRun;
use crate::partial::PartialFolder;
use jitterscope_model::{PutInOrder, RunHead};
use jitterscope_platform::{HeldDir, Owner, OwnerLock, owner_of};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The name prefix of unfinished runs, followed by the run's final name. The process that holds the folder's lock is
/// writing the run.
pub(crate) const PARTIAL_PREFIX: &str = ".partial-";

/// The name that stands for the newest run. No run may have it as its label.
pub(crate) const LATEST: &str = "latest";

#[derive(Clone, Debug)]
pub struct RunEntry {
    pub path: PathBuf,
    pub head: RunHead,
    /// The user that owns the folder. For a link: another user, if that user owns the link or its target.
    pub owner: u32,
    /// Whether this entry is a link to a folder elsewhere.
    pub linked: bool,
}

impl RunEntry {
    /// Whether the run belongs to the user of this process. In a folder that many users may write to, any user can add
    /// a run of any name, label and date, so another user's run is only used by its name.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.owner == rustix::process::geteuid().as_raw()
    }
}

/// A folder that looks like a run and cannot be read.
#[derive(Debug)]
pub struct Problem {
    pub path: PathBuf,
    pub error: StoreError,
}

/// The folder of a killed recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    pub path: PathBuf,
}

/// The runs of killed recorders, and their folders that cannot be opened, each with the error.
pub type KilledRuns = (Vec<KilledRun>, Vec<(Partial, StoreError)>);

/// All runs in a folder, oldest first, and the folders that cannot be read. A missing folder has no runs.
///
/// # Errors
/// The folder cannot be read.
pub fn list(dir: &Path) -> Result<(Vec<RunEntry>, Vec<Problem>), StoreError> {
    let (mut runs, mut problems) = (Vec::new(), Vec::new());
    for path in folders(dir)? {
        // A link to a run elsewhere counts as a run; reads inside it follow no links.
        let Ok(folder) = HeldDir::open(&path) else {
            continue;
        };
        if !folder.has(MANIFEST) {
            continue;
        }
        let (owner, linked) = match owner(&path) {
            Ok(found) => found,
            Err(source) => {
                let error = StoreError::read(&path, source);
                problems.push(Problem { path, error });
                continue;
            }
        };
        match read_head(&folder) {
            Ok(head) => runs.push(RunEntry {
                path,
                head,
                owner,
                linked,
            }),
            Err(error) => problems.push(Problem { path, error }),
        }
    }
    runs.order_by_key(|run| run.head.started_realtime_ns);
    Ok((runs, problems))
}

/// The runs of this user in a folder, oldest first.
///
/// # Errors
/// As [`list`].
pub fn list_own(dir: &Path) -> Result<Vec<RunEntry>, StoreError> {
    let (mut runs, _) = list(dir)?;
    runs.retain(RunEntry::is_own);
    Ok(runs)
}

/// The owner of a run's folder, and whether the path is a link.
fn owner(path: &Path) -> std::io::Result<(u32, bool)> {
    let (own, folder) = (fs::symlink_metadata(path)?, fs::metadata(path)?);
    let user = rustix::process::geteuid().as_raw();
    let owner = if own.uid() == user {
        folder.uid()
    } else {
        own.uid()
    };
    Ok((owner, own.is_symlink()))
}

/// Resolves a path, `latest`, an id, a folder's name or a label (its newest run) to a run. The first match in this
/// order counts: any user may choose a label that looks like the id of another run. A run of another user matches only
/// by its path, id or folder name, and only if no run of this user does.
///
/// # Errors
/// No run matches; the message lists those that exist.
pub fn resolve(dir: &Path, wanted: &str) -> Result<PathBuf, StoreError> {
    let as_path = Path::new(wanted);
    if as_path.join(MANIFEST).is_file() {
        return Ok(as_path.to_path_buf());
    }
    resolve_in(dir, wanted)
}

/// Resolves like [`resolve`], but never to a path outside of `dir`: for names of somebody who may read no other folder.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_in(dir: &Path, wanted: &str) -> Result<PathBuf, StoreError> {
    let (runs, _) = list(dir)?;
    let by_id = |run: &&RunEntry| run.head.id == wanted;
    let by_folder = |run: &&RunEntry| is_folder(run, wanted);
    let by_label = |run: &&RunEntry| run.head.label == wanted;
    let newest = || runs.iter().rev();
    let own = || newest().filter(|run| run.is_own());
    let found = if wanted == LATEST {
        own().next()
    } else {
        own()
            .find(by_id)
            .or_else(|| own().find(by_folder))
            .or_else(|| own().find(by_label))
            .or_else(|| newest().find(by_id))
            .or_else(|| newest().find(by_folder))
    };
    found
        .map(|run| run.path.clone())
        .ok_or_else(|| StoreError::NoSuchRun {
            wanted: wanted.to_owned(),
            dir: dir.to_path_buf(),
            hint: hint(&runs),
        })
}

/// Resolves like [`resolve`], but a label matches all its runs of this user, oldest first.
///
/// # Errors
/// No run matches; the message lists those that exist.
pub fn resolve_all(dir: &Path, wanted: &str) -> Result<Vec<PathBuf>, StoreError> {
    if Path::new(wanted).join(MANIFEST).is_file() {
        return Ok(vec![PathBuf::from(wanted)]);
    }
    resolve_all_in(dir, wanted)
}

/// Resolves like [`resolve_all`], but never to a path outside of `dir`.
///
/// # Errors
/// As [`resolve_all`].
pub fn resolve_all_in(dir: &Path, wanted: &str) -> Result<Vec<PathBuf>, StoreError> {
    let (runs, _) = list(dir)?;
    let one = runs
        .iter()
        .any(|run| run.head.id == wanted || is_folder(run, wanted));
    if one || wanted == LATEST {
        return Ok(vec![resolve_in(dir, wanted)?]);
    }
    let labelled: Vec<PathBuf> = runs
        .into_iter()
        .filter(|run| run.head.label == wanted && run.is_own())
        .map(|run| run.path)
        .collect();
    if labelled.is_empty() {
        Ok(vec![resolve_in(dir, wanted)?])
    } else {
        Ok(labelled)
    }
}

fn is_folder(run: &RunEntry, wanted: &str) -> bool {
    run.path
        .file_name()
        .is_some_and(|name| name.to_string_lossy() == wanted)
}

fn hint(runs: &[RunEntry]) -> String {
    if runs.is_empty() {
        return "; there are none yet. Record one with: jitterscope record".into();
    }
    let reported = |run: &RunEntry| {
        let of = match run.is_own() {
            true => String::new(),
            false => format!(" of user {}: name it by its id", run.owner),
        };
        format!("{} ({}{of})", run.head.id, run.head.label)
    };
    let newest: Vec<String> = runs.iter().rev().take(5).map(reported).collect();
    format!("; the newest are {}", newest.join(", "))
}

/// Folders and links to folders whose names are not hidden, sorted by name.
fn folders(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::read(dir, error)),
    };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| !name.as_bytes().starts_with(b"."))
        })
        .filter(|path| path.is_dir())
        .collect();
    folders.put_in_order();
    Ok(folders)
}

/// Unfinished runs of this user whose recorder is no longer alive.
///
/// # Errors
/// The folder cannot be read.
pub fn partials(dir: &Path) -> Result<Vec<Partial>, StoreError> {
    match HeldDir::open(dir) {
        Err(error) if error.is_absent() => Ok(Vec::new()),
        other => {
            let dead = dead_partials(&other.map_err(StoreError::reading)?)?;
            Ok(dead.into_iter().map(|(partial, _)| partial).collect())
        }
    }
}

/// Dead partial folders with their locks, so that no other process takes one over before it is finished or removed.
fn dead_partials(dir: &HeldDir) -> Result<Vec<(Partial, OwnerLock)>, StoreError> {
    // In a shared folder any user may make a folder of such a name; only its owner removes it.
    let user = rustix::process::geteuid().as_raw();
    let dead = |name: &OsStr| {
        // A label may be invalid UTF-8. Only the prefix counts.
        if !name.to_string_lossy().starts_with(PARTIAL_PREFIX) {
            return None;
        }
        let path = dir.path().join(name);
        // Without folder locks it is unknown whether the owner is alive.
        match owner_of(&path) {
            Owner::Gone(lock) => Some((Partial { path }, lock)),
            Owner::Living | Owner::Unknown(_) => None,
        }
    };
    let entries = dir.entries().map_err(StoreError::reading)?;
    let ours = entries
        .iter()
        .filter(|entry| entry.is_dir && entry.owner == user);
    Ok(ours.filter_map(|entry| dead(&entry.name)).collect())
}

/// The dead partial folders of this user, each to be finished or removed, and those that cannot be opened.
///
/// # Errors
/// Another user may change the folder or one of its parents, or it cannot be read.
pub fn killed_runs(dir: &Path) -> Result<KilledRuns, StoreError> {
    let (mut killed, mut failed) = (Vec::new(), Vec::new());
    let folder = match HeldDir::trusted(dir) {
        Err(error) if error.is_absent() => return Ok((killed, failed)),
        other => other.map_err(StoreError::writing)?,
    };
    for (partial, lock) in dead_partials(&folder)? {
        let name = partial.path.file_name().unwrap_or_default();
        let opened = folder
            .reopen()
            .and_then(|runs| PartialFolder::of_the_dead(runs, name.to_os_string(), lock));
        match opened {
            Ok(held) => killed.push(KilledRun::new(held, dir, final_name(name))),
            Err(error) => failed.push((partial, StoreError::writing(error))),
        }
    }
    Ok((killed, failed))
}

/// The name of a run that has this name while it is written.
fn final_name(partial: &OsStr) -> OsString {
    let name = partial.as_bytes();
    let prefix = PARTIAL_PREFIX.as_bytes();
    OsString::from_vec(name.strip_prefix(prefix).unwrap_or(name).to_vec())
}

/// Moves a complete run to another folder of runs of the same file system. Returns its folder there.
///
/// # Errors
/// Another user may change one of the folders, or the run cannot be moved.
pub fn move_run(run: &Path, to: &Path) -> Result<PathBuf, StoreError> {
    let from =
        HeldDir::trusted(run.parent().unwrap_or(Path::new("."))).map_err(StoreError::writing)?;
    let runs = HeldDir::trusted_or_made(to).map_err(StoreError::writing)?;
    let name = run.file_name().unwrap_or_default();
    from.move_to(name, &runs)
        .and_then(|()| runs.sync())
        .map_err(StoreError::writing)?;
    Ok(to.join(name))
}

/// Removes a run with everything in its folder. If the path is a link, removes only the link.
///
/// # Errors
/// Another user may change the parent folder or one above it, or the run cannot be removed.
pub fn remove(run: &Path) -> Result<(), StoreError> {
    let folder = match run.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let folder = HeldDir::trusted(folder).map_err(StoreError::writing)?;
    let name = run.file_name().unwrap_or_default();
    let is_link = fs::symlink_metadata(run).is_ok_and(|of| of.is_symlink());
    let removed = match is_link {
        true => folder.remove_file(name),
        false => folder.remove_tree(name),
    };
    removed.map_err(StoreError::writing)
}

/// The size of a run's files, bytes. Links and unreadable files count as 0.
#[must_use]
pub fn size_on_disk(run: &Path) -> u64 {
    let entries = fs::read_dir(run).into_iter().flatten().flatten();
    let size = |path: PathBuf| match fs::symlink_metadata(&path) {
        Ok(of) if of.is_dir() => size_on_disk(&path),
        Ok(of) if of.is_file() => of.len(),
        _ => 0,
    };
    entries
        .map(|entry| size(entry.path()))
        .fold(0, u64::saturating_add)
}
