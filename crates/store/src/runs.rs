//! The folder of runs: what is in it, and which one is meant.

use crate::error::StoreError;
use crate::head::{MANIFEST, read_head};
use jitterscope_model::RunHead;
use jitterscope_platform::{HeldDir, Machine, Owner, OwnerLock, TaskStat, owner_of};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Folders of unfinished runs begin so; then comes the name that the run will have. Whoever holds the lock
/// of such a folder is making that run. Earlier versions held none: theirs go on with
/// `<pid>-<start time of that process>-<name>`.
pub(crate) const PARTIAL_PREFIX: &str = ".partial-";

/// Stands for the newest run wherever one is named, so that no run may be labelled so.
pub(crate) const LATEST: &str = "latest";

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
}

/// [`Partial`]s that were removed, and those that could not be, each with the reason.
pub type CleanedPartials = (Vec<Partial>, Vec<(Partial, StoreError)>);

/// All runs in a folder, oldest first, and what could not be read. A folder that is not there has none.
///
/// # Errors
/// The folder cannot be read.
pub fn list(dir: &Path) -> Result<(Vec<RunEntry>, Vec<Problem>), StoreError> {
    let (mut runs, mut problems) = (Vec::new(), Vec::new());
    for path in folders(dir)? {
        // A link to a run elsewhere is one, too; what is in it is opened without links.
        let Ok(folder) = HeldDir::open(&path) else {
            continue;
        };
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

/// The run meant by a path, `latest`, an id, a folder's name or a label (the newest with it). Of these the first
/// counts: a label may read like the id of another run, whoever gave it.
///
/// # Errors
/// None is; the message lists what there is.
pub fn resolve(dir: &Path, wanted: &str) -> Result<PathBuf, StoreError> {
    let as_path = Path::new(wanted);
    if as_path.join(MANIFEST).is_file() {
        return Ok(as_path.to_path_buf());
    }
    let (runs, _) = list(dir)?;
    let by_id = |run: &&RunEntry| run.head.id == wanted;
    let by_folder = |run: &&RunEntry| is_folder(run, wanted);
    let by_label = |run: &&RunEntry| run.head.label == wanted;
    let newest = || runs.iter().rev();
    let found = if wanted == LATEST {
        runs.last()
    } else {
        newest()
            .find(by_id)
            .or_else(|| newest().find(by_folder))
            .or_else(|| newest().find(by_label))
    };
    found
        .map(|run| run.path.clone())
        .ok_or_else(|| StoreError::NoSuchRun {
            wanted: wanted.to_owned(),
            dir: dir.to_path_buf(),
            hint: hint(&runs),
        })
}

/// All runs meant: as [`resolve`], but a label means every run that has it, oldest first.
///
/// # Errors
/// None is; the message lists what there is.
pub fn resolve_all(dir: &Path, wanted: &str) -> Result<Vec<PathBuf>, StoreError> {
    let (runs, _) = list(dir)?;
    let one = runs
        .iter()
        .any(|run| run.head.id == wanted || is_folder(run, wanted));
    if one || wanted == LATEST || Path::new(wanted).join(MANIFEST).is_file() {
        return Ok(vec![resolve(dir, wanted)?]);
    }
    let labelled: Vec<PathBuf> = runs
        .into_iter()
        .filter(|run| run.head.label == wanted)
        .map(|run| run.path)
        .collect();
    if labelled.is_empty() {
        Ok(vec![resolve(dir, wanted)?])
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
    let newest: Vec<String> = runs
        .iter()
        .rev()
        .take(5)
        .map(|r| format!("{} ({})", r.head.id, r.head.label))
        .collect();
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
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| !name.as_bytes().starts_with(b"."))
        })
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
        other => {
            let dead = dead_partials(&other.map_err(StoreError::reading)?)?;
            Ok(dead.into_iter().map(|(partial, _)| partial).collect())
        }
    }
}

/// With the lock of each, where there are locks: nobody takes for his what is about to be removed.
fn dead_partials(dir: &HeldDir) -> Result<Vec<(Partial, Option<OwnerLock>)>, StoreError> {
    // Anybody may make a folder of such a name where all may write; it is for its owner to remove.
    let user = rustix::process::geteuid().as_raw();
    let dead = |name: &OsStr| {
        // A label need not be text; only what stands before it counts.
        let name_text = name.to_string_lossy();
        let rest = name_text.strip_prefix(PARTIAL_PREFIX)?;
        let path = dir.path().join(name);
        let owner = owner_of(&path);
        let is_left = is_left(&owner, made_by(rest));
        let lock = if let Owner::Gone(lock) = owner {
            Some(lock)
        } else {
            None
        };
        is_left.then_some((Partial { path }, lock))
    };
    let entries = dir.entries().map_err(StoreError::reading)?;
    let ours = entries
        .iter()
        .filter(|entry| entry.is_dir && entry.owner == user);
    Ok(ours.filter_map(|entry| dead(&entry.name)).collect())
}

/// Whether nobody writes to a partial folder any more, by its lock and by the process that its name tells.
fn is_left(owner: &Owner, maker: Option<(u32, u64)>) -> bool {
    match owner {
        Owner::Living => false,
        Owner::Gone(_) => maker.is_none_or(|process| !is_alive(process)),
        // Without locks its owner is unknown, unless its name says it.
        Owner::Unknown(_) => maker.is_some_and(|process| !is_alive(process)),
    }
}

/// Removes them. One that cannot be removed does not keep the others.
///
/// # Errors
/// Another user may change the folder or one on its way, or it cannot be read.
pub fn clean_partials(dir: &Path) -> Result<CleanedPartials, StoreError> {
    let folder = match HeldDir::trusted(dir) {
        Err(error) if error.is_absent() => return Ok((Vec::new(), Vec::new())),
        other => other.map_err(StoreError::writing)?,
    };
    let (mut removed, mut kept) = (Vec::new(), Vec::new());
    for (partial, _lock) in dead_partials(&folder)? {
        match folder.remove_tree(partial.path.file_name().unwrap_or_default()) {
            Ok(()) => removed.push(partial),
            Err(error) => kept.push((partial, StoreError::writing(error))),
        }
    }
    Ok((removed, kept))
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
    folder
        .remove_tree(run.file_name().unwrap_or_default())
        .map_err(StoreError::writing)
}

/// Bytes of a run's files; links and what cannot be read count nothing.
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

/// The process id and start time in what an earlier version wrote behind the prefix.
fn made_by(rest: &str) -> Option<(u32, u64)> {
    let mut parts = rest.splitn(3, '-');
    let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?);
    // Nothing has started at a number that is none.
    started
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| (pid, started.parse().unwrap_or(u64::MAX)))
}

fn is_alive((pid, started): (u32, u64)) -> bool {
    TaskStat::of(&Machine::host(), pid).and_then(|stat| stat.start_time()) == Some(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_folder_is_left_when_neither_its_lock_nor_its_maker_says_that_somebody_writes() {
        let me = std::process::id();
        let started = TaskStat::of(&Machine::host(), me)
            .unwrap()
            .start_time()
            .unwrap();
        let (living, dead) = ((me, started), (me, started + 1));
        let dir = tempfile::tempdir().unwrap();
        let gone = || Owner::Gone(OwnerLock::take(dir.path()).unwrap());
        let unknown = || Owner::Unknown(std::io::ErrorKind::Unsupported.into());
        for (owner, maker, left) in [
            (Owner::Living, None, false),
            (Owner::Living, Some(dead), false),
            (gone(), None, true),
            (unknown(), None, false),
            (unknown(), Some(living), false),
            (unknown(), Some(dead), true),
        ] {
            assert_eq!(is_left(&owner, maker), left, "{maker:?}");
        }
        assert!(!is_left(&gone(), Some(living)));
        assert!(is_left(&gone(), Some(dead)));
    }

    #[test]
    fn a_maker_is_a_process_and_when_it_started() {
        for (rest, maker) in [
            ("12-34-20261121T000000Z-L-abcdef", Some((12, 34))),
            ("12-34", Some((12, 34))),
            // Nothing has started then.
            ("12-99999999999999999999-x", Some((12, u64::MAX))),
            ("20261121T000000Z-L-abcdef", None),
            ("12-x4-L", None),
            ("12", None),
            ("", None),
        ] {
            assert_eq!(made_by(rest), maker, "{rest}");
        }
    }
}
