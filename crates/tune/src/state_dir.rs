//! The folder that stores what is in force, and the lock that lets one process change the machine at a time.

use crate::journal::{JOURNAL, Journal, JournalError, LAST_JOURNAL, State};
use jitterscope_platform::{HeldLock, TrustError, TrustedFolder};
use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder of the machine's state.
pub const DEFAULT_STATE_DIR: &str = "/var/lib/jitterscope";

/// Held while the machine is changed.
const LOCK: &str = "lock";

/// The folder of the journal.
#[derive(Clone, Debug)]
pub struct StateDir {
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be created or opened.
    #[error("the state folder {}: {source} (changing the machine needs root, or another folder by --state-dir)", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Another user could have written its contents.
    #[error("the state folder determines what is written back to the machine: {0}")]
    Trust(TrustError),
    /// Another process holds the lock.
    #[error("another jitterscope is changing this machine right now (it holds {}): wait for it", path.display())]
    Locked { path: PathBuf },
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl From<TrustError> for StateError {
    fn from(error: TrustError) -> StateError {
        match error {
            TrustError::Io { path, source } => StateError::Io { path, source },
            other => StateError::Trust(other),
        }
    }
}

/// The folder while it is locked; the lock ends with this, even if we are killed.
#[derive(Debug)]
pub struct Locked {
    folder: TrustedFolder,
    _lock: HeldLock,
}

impl StateDir {
    /// The folder at `path`; it need not exist yet.
    #[must_use]
    pub fn at(path: &Path) -> StateDir {
        StateDir {
            path: path.to_owned(),
        }
    }

    /// The state, read without locking.
    ///
    /// # Errors
    /// The journal cannot be read, is damaged, or another user could have written it.
    pub fn look(&self) -> Result<State, StateError> {
        match TrustedFolder::open(&self.path)? {
            Some(folder) => Ok(Journal::load(&folder)?),
            None => Ok(State::default()),
        }
    }

    /// The previous journal, read without locking.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or another user could have written it.
    pub fn look_at_last(&self) -> Result<State, StateError> {
        match TrustedFolder::open(&self.path)? {
            Some(folder) => Ok(Journal::load_last(&folder)?),
            None => Ok(State::default()),
        }
    }

    /// Creates the folder if necessary and locks it.
    ///
    /// # Errors
    /// The folder cannot be created, could be written to by other users, or is locked by another process.
    pub fn lock(&self) -> Result<Locked, StateError> {
        let folder = TrustedFolder::make(&self.path)?;
        let lock = folder.lock_file(LOCK)?;
        let path = self.path.join(LOCK);
        match HeldLock::take(lock, Duration::ZERO) {
            Ok(lock) => Ok(Locked {
                folder,
                _lock: lock,
            }),
            Err((_, TryLockError::WouldBlock)) => Err(StateError::Locked { path }),
            Err((_, TryLockError::Error(source))) => Err(StateError::Io { path, source }),
        }
    }
}

impl Locked {
    /// The state in the journal.
    ///
    /// # Errors
    /// The journal cannot be read, is damaged, or another user could have written it.
    pub fn load(&self) -> Result<State, StateError> {
        Ok(Journal::load(&self.folder)?)
    }

    /// Opens the journal for appending.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn journal(&self) -> Result<Journal, StateError> {
        Ok(Journal::open(&self.folder)?)
    }

    /// Renames the finished journal: nothing is in force any more. The previous one is kept in the same folder.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn put_away(&self) -> Result<(), StateError> {
        self.folder.rename(JOURNAL, LAST_JOURNAL)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_at_once_exclude_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(&dir.path().join("deep/state"));
        let first = state.lock().unwrap();
        assert!(matches!(state.lock(), Err(StateError::Locked { .. })));
        drop(first);
        assert!(state.lock().is_ok());
    }
}
