//! The folder that remembers what is in force, and the lock that lets one change the machine at a time.

use crate::journal::{JOURNAL, Journal, JournalError, LAST_JOURNAL, State};
use jitterscope_platform::{HeldLock, TrustError, TrustedFolder};
use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the state of the whole machine lies.
pub const DEFAULT_STATE_DIR: &str = "/var/lib/jitterscope";

/// Held while the machine is changed.
const LOCK: &str = "lock";

/// The folder of the journal.
#[derive(Clone, Debug)]
pub struct StateDir {
    path: PathBuf,
}

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be made or opened.
    #[error("the state folder {}: {source} (changing the machine needs root, or another folder by --state-dir)", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Somebody else could have written what is in it.
    #[error("the state folder says what is written back to the machine: {0}")]
    Trust(TrustError),
    /// Somebody else is at it.
    #[error("another jitterscope is changing this machine right now (it holds {}): wait for it", path.display())]
    Locked {
        /// The lock.
        path: PathBuf,
    },
    /// The journal.
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

/// The folder while it is ours alone; the lock goes with it, also when we are killed.
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

    /// What is in force, without locking: for looking only.
    ///
    /// # Errors
    /// The journal cannot be read, is damaged, or somebody else could have written it.
    pub fn look(&self) -> Result<State, StateError> {
        match TrustedFolder::open(&self.path)? {
            Some(folder) => Ok(Journal::load(&folder)?),
            None => Ok(State::default()),
        }
    }

    /// The journal that was put away last, without locking: for looking only.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or somebody else could have written it.
    pub fn look_at_last(&self) -> Result<State, StateError> {
        match TrustedFolder::open(&self.path)? {
            Some(folder) => Ok(Journal::load_last(&folder)?),
            None => Ok(State::default()),
        }
    }

    /// Makes the folder if need be and locks it.
    ///
    /// # Errors
    /// The folder cannot be made, could be written to by others, or somebody else has it locked.
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
    /// What is in force.
    ///
    /// # Errors
    /// The journal cannot be read, is damaged, or somebody else could have written it.
    pub fn load(&self) -> Result<State, StateError> {
        Ok(Journal::load(&self.folder)?)
    }

    /// Opens the journal to append.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn journal(&self) -> Result<Journal, StateError> {
        Ok(Journal::open(&self.folder)?)
    }

    /// Puts the finished journal away: nothing is in force any more. The last one is kept beside it.
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
