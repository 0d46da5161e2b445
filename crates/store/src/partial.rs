//! The folder of a run while it is written.

use crate::error::StoreError;
use jitterscope_platform::{AccessError, HeldDir, OwnerLock};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

/// The number of attempts to make a folder that another process's clean-up keeps removing.
const TRIES: u32 = 5;

/// Whether another process holds the lock, as opposed to the file system having none.
fn error_is_others(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::NotFound
    )
}

/// The folder under its hidden name, held open. Dropping it removes it with its content unless it
/// was renamed or is to be kept.
pub(crate) struct PartialFolder {
    runs: HeldDir,
    pub(crate) held: HeldDir,
    name: OsString,
    /// Whether it stays when this is dropped.
    kept: bool,
    /// The lock shows other processes that the folder is in use. `None` where the file system has no locks; then no
    /// process removes the folder.
    _owner: Option<OwnerLock>,
}

impl PartialFolder {
    pub(crate) fn make(runs: HeldDir, name: String) -> Result<PartialFolder, AccessError> {
        PartialFolder::make_and_lock(runs, name, OwnerLock::take)
    }

    /// Makes the folder and locks it with `lock`.
    fn make_and_lock(
        runs: HeldDir,
        name: String,
        mut lock: impl FnMut(&Path) -> io::Result<OwnerLock>,
    ) -> Result<PartialFolder, AccessError> {
        let path = runs.path().join(&name);
        let mut tries = 0;
        loop {
            let held = runs.make_dir(&name)?;
            let owner = match lock(&path) {
                Ok(lock) => Some(lock),
                // Another process took the folder for a leftover before it was locked.
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => {
                    tries += 1;
                    continue;
                }
                Err(source) if error_is_others(&source) => {
                    let _ = runs.remove_held(&held, &name);
                    return Err(AccessError::Io { path, source });
                }
                Err(_) => None,
            };
            return Ok(PartialFolder {
                runs,
                held,
                name: name.into(),
                kept: false,
                _owner: owner,
            });
        }
    }

    /// The folder `name` of a process that ended without removing it. It stays when this is dropped.
    pub(crate) fn of_the_dead(
        runs: HeldDir,
        name: OsString,
        owner: OwnerLock,
    ) -> Result<PartialFolder, AccessError> {
        Ok(PartialFolder {
            held: runs.open_dir(&name)?,
            runs,
            name,
            kept: true,
            _owner: Some(owner),
        })
    }

    /// It stays when this is dropped, for the next start.
    pub(crate) fn keep(mut self) -> PartialFolder {
        self.kept = true;
        self
    }

    /// Removes the folder with its content.
    pub(crate) fn remove(mut self) -> Result<(), StoreError> {
        self.kept = true;
        self.runs
            .remove_held(&self.held, &self.name)
            .map_err(StoreError::writing)
    }

    pub(crate) fn rename(&mut self, to: impl AsRef<OsStr>) -> Result<(), StoreError> {
        let result = self.runs.rename_held(&self.held, &self.name, to);
        // Wherever the folder is now, it holds the complete measurement.
        self.kept |= matches!(result, Ok(()) | Err(AccessError::Replaced { .. }));
        match result {
            Err(AccessError::Replaced { .. }) => Err(StoreError::Moved {
                path: self.runs.path().join(&self.name),
            }),
            other => other
                .and_then(|()| self.runs.sync())
                .map_err(StoreError::writing),
        }
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        if !self.kept {
            // The next start removes the rest.
            let _ = self.runs.remove_held(&self.held, &self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_is_in_the_way_of_a_lock_or_the_file_system_is() {
        for (kind, others) in [
            (io::ErrorKind::WouldBlock, true),
            (io::ErrorKind::NotFound, true),
            (io::ErrorKind::Unsupported, false),
            (io::ErrorKind::PermissionDenied, false),
        ] {
            assert_eq!(error_is_others(&kind.into()), others, "{kind}");
        }
    }

    /// Makes a partial folder whose lock is taken by `lock`. Returns the outcome and the folders left afterwards.
    fn made(
        lock: impl FnMut(&Path) -> io::Result<OwnerLock>,
    ) -> (Result<PartialFolder, AccessError>, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let runs = HeldDir::trusted(dir.path()).unwrap();
        (
            PartialFolder::make_and_lock(runs, ".partial-x".into(), lock),
            dir,
        )
    }

    #[test]
    fn a_folder_that_a_clean_up_takes_away_is_made_again_a_few_times() {
        for (taken_away, tries) in [
            (0, Some(1)),
            (1, Some(2)),
            (TRIES, Some(TRIES + 1)),
            (TRIES + 1, None),
        ] {
            let mut calls = 0;
            let (folder, dir) = made(|path| {
                calls += 1;
                if calls <= taken_away {
                    std::fs::remove_dir(path).unwrap();
                }
                OwnerLock::take(path)
            });
            assert_eq!(folder.is_ok(), tries.is_some(), "{taken_away} times");
            assert_eq!(calls, tries.unwrap_or(TRIES + 1), "{taken_away} times");
            drop(folder);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_lock_that_another_holds_is_reported_and_leaves_no_folder() {
        let (folder, dir) = made(|_| Err(io::ErrorKind::WouldBlock.into()));
        let Err(AccessError::Io { path, source }) = folder else {
            panic!("nobody else holds it")
        };
        assert_eq!(
            (path, source.kind()),
            (dir.path().join(".partial-x"), io::ErrorKind::WouldBlock)
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn where_there_are_no_locks_the_folder_is_made_without() {
        let (folder, dir) = made(|_| Err(io::ErrorKind::Unsupported.into()));
        let folder = folder.ok().unwrap();
        assert!(folder._owner.is_none() && dir.path().join(".partial-x").is_dir());
    }
}
