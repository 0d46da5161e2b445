//! The folder that remembers what is in force, and the lock that lets one change the machine at a time.

use crate::journal::{Journal, JournalError, State};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Where the state of the whole machine lies.
pub const DEFAULT_STATE_DIR: &str = "/var/lib/jitterscope";

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

/// The folder while it is ours alone; the lock goes with it, also when we are killed.
#[derive(Debug)]
pub struct Locked {
    dir: PathBuf,
    _lock: File,
}

impl StateDir {
    /// The folder at `path`; it need not exist yet.
    #[must_use]
    pub fn at(path: &Path) -> StateDir {
        StateDir { path: path.to_owned() }
    }

    /// The journal's file.
    #[must_use]
    pub fn journal_path(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// What is in force, without locking: for looking only.
    ///
    /// # Errors
    /// The journal cannot be read or is damaged.
    pub fn look(&self) -> Result<State, StateError> {
        Ok(Journal::load(&self.journal_path())?)
    }

    /// Makes the folder if need be and locks it.
    ///
    /// # Errors
    /// The folder cannot be made, or somebody else has it locked.
    pub fn lock(&self) -> Result<Locked, StateError> {
        let io_error = |path: &Path, source| StateError::Io { path: path.to_owned(), source };
        fs::create_dir_all(&self.path).map_err(|e| io_error(&self.path, e))?;
        let path = self.path.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|e| io_error(&path, e))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Locked { dir: self.path.clone(), _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StateError::Locked { path }),
            Err(e) => Err(io_error(&path, e.into())),
        }
    }
}

impl Locked {
    /// What is in force.
    ///
    /// # Errors
    /// The journal cannot be read or is damaged.
    pub fn load(&self) -> Result<State, StateError> {
        Ok(Journal::load(&self.dir.join("journal.jsonl"))?)
    }

    /// Opens the journal to append.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn journal(&self) -> Result<Journal, StateError> {
        Ok(Journal::open(&self.dir.join("journal.jsonl"))?)
    }

    /// Puts the finished journal away: nothing is in force any more. The last one is kept beside it.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn put_away(&self) -> Result<(), StateError> {
        let (from, to) = (self.dir.join("journal.jsonl"), self.dir.join("journal.last.jsonl"));
        match fs::rename(&from, &to) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(StateError::Io { path: from, source }),
        }
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
