//! What can go wrong with a run directory.

use jitterscope_platform::AccessError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a run cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The label does not fit into a folder name.
    #[error(
        "label '{label}' has {bad}: use letters, digits, '_', '-' and '.', up to 64, not '.' or '-' first"
    )]
    Label {
        /// The label.
        label: String,
        /// The offending character.
        bad: String,
    },
    /// The folder of runs cannot be written.
    #[error("runs cannot be kept in {}: {}. Name another folder with --runs", path.display(), why(path, source))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why: the system refused, or another user may change it.
        source: AccessError,
    },
    /// A file or folder of a run is not opened: it is no regular file, too large, or not what it was.
    #[error(transparent)]
    Access(AccessError),
    /// Too little space to begin.
    #[error("{} has {free_mib} MiB free, a run needs at least {needed_mib} MiB. Make room, or name another folder with --runs", path.display())]
    Space {
        /// The folder.
        path: PathBuf,
        /// What is free.
        free_mib: u64,
        /// What is wanted.
        needed_mib: u64,
    },
    /// The disk filled up while recording.
    #[error("{}: the disk is full", path.display())]
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How.
        why: String,
    },
    /// The run was written by a version that this one cannot read.
    #[error("{} has schema version {found}; this jitterscope reads versions up to {known}", path.display())]
    Version {
        /// The manifest.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// Ours.
        known: u32,
    },
    /// No run is meant.
    #[error("no run '{wanted}' in {}{hint}", dir.display())]
    NoSuchRun {
        /// What was asked for.
        wanted: String,
        /// Where.
        dir: PathBuf,
        /// What there is instead.
        hint: String,
    },
    /// The folder is no longer what it was called, so it cannot be given its name.
    #[error("{} was renamed or replaced while the run was written; the run is whole in the folder that had this name", path.display())]
    Moved {
        /// Its name while it was written.
        path: PathBuf,
    },
    /// Rows were lost to an earlier error.
    #[error("{} lost rows to an earlier error and is not kept", path.display())]
    Incomplete {
        /// The unfinished run.
        path: PathBuf,
    },
    /// Rows arrived before the clock was known.
    #[error("rows were written before the run began; this is a bug")]
    NotBegun,
}

impl StoreError {
    pub(crate) fn write(path: &Path, source: io::Error) -> StoreError {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { path },
            _ => StoreError::Write { path, source },
        }
    }

    /// What could not be opened, made or removed in order to write.
    pub(crate) fn writing(error: AccessError) -> StoreError {
        match error {
            AccessError::Io { path, source } => StoreError::write(&path, source),
            other => StoreError::Access(other),
        }
    }

    /// What could not be opened or read.
    pub(crate) fn reading(error: AccessError) -> StoreError {
        match error {
            AccessError::Io { path, source } => StoreError::read(&path, source),
            other => StoreError::Access(other),
        }
    }

    /// Whether there is no room on the disk. What was taken in before stays good.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, StoreError::Full { .. })
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> StoreError {
        StoreError::Read {
            path: path.to_path_buf(),
            source,
        }
    }

    pub(crate) fn damaged(path: &Path, why: impl ToString) -> StoreError {
        StoreError::Damaged {
            path: path.to_path_buf(),
            why: why.to_string(),
        }
    }
}

/// What stands before it already need not be said again.
fn why(folder: &Path, error: &AccessError) -> String {
    match error {
        AccessError::Io { path, source } if path == folder => source.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_told_already_is_not_told_twice_and_another_one_is() {
        let refused = |of: &str| AccessError::Io {
            path: of.into(),
            source: io::ErrorKind::NotFound.into(),
        };
        let told = |of: &str| {
            StoreError::Folder {
                path: "/runs/deep".into(),
                source: refused(of),
            }
            .to_string()
        };
        assert_eq!(told("/runs/deep").matches("/runs").count(), 1);
        assert!(
            told("/runs").contains("in /runs/deep: /runs: "),
            "{}",
            told("/runs")
        );
    }

    #[test]
    fn a_full_disk_and_a_used_up_quota_are_told_apart_from_other_failures() {
        let write = |kind: io::ErrorKind| StoreError::write(Path::new("x"), kind.into());
        for full in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            assert!(write(full).is_full(), "{full}");
        }
        assert!(matches!(
            write(io::ErrorKind::BrokenPipe),
            StoreError::Write { .. }
        ));
        assert!(!write(io::ErrorKind::BrokenPipe).is_full());
    }
}
