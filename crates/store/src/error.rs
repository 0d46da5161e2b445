//! Errors of a run directory.

use jitterscope_platform::AccessError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a run cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The label cannot be part of a folder name.
    #[error(
        "label '{label}' has {bad}: use letters, digits, '_', '-' and '.', up to 64, not '.' or '-' first"
    )]
    Label { label: String, bad: String },
    /// The folder of runs is not writable.
    #[error("runs cannot be kept in {}: {}. Name another folder with --runs", path.display(), why(path, source))]
    Folder {
        path: PathBuf,
        /// The system refused, or another user may change the folder.
        source: AccessError,
    },
    /// A file or folder of a run does not open: it is not a regular file, is too large, or was replaced.
    #[error(transparent)]
    Access(AccessError),
    /// Too little free space to begin.
    #[error("{} has {free_mib} MiB free, a run needs at least {needed_mib} MiB. Make room, or name another folder with --runs", path.display())]
    Space {
        path: PathBuf,
        free_mib: u64,
        needed_mib: u64,
    },
    /// The disk filled up while recording.
    #[error("{}: the disk is full, or the file has reached its limit (ulimit -f)", path.display())]
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A file is not what it should be.
    #[error("{} is damaged: {why}", path.display())]
    Damaged { path: PathBuf, why: String },
    /// A file claims more than any run of this program has.
    #[error(
        "{} is not read: it has {found} {what}, and {most} are the most. No recording makes such a file: it is damaged, or made to fill the memory of whoever reads it",
        path.display()
    )]
    Cap {
        path: PathBuf,
        /// What there is too much of.
        what: &'static str,
        found: u64,
        /// The largest accepted amount.
        most: u64,
    },
    /// Reading a file takes more memory than the bound allows.
    #[error(
        "{} needs more than {mib} MiB of memory, so it is not read: a run may come from anybody. If you trust it, allow more, in MiB: JITTERSCOPE_READ_MEMORY=1024",
        path.display()
    )]
    Memory { path: PathBuf, mib: usize },
    /// More logs of an application than a run keeps.
    #[error(
        "{} has {most} logs already: remove them with annotate --remove",
        path.display()
    )]
    Logs { path: PathBuf, most: usize },
    /// A version wrote the run that this one cannot read.
    #[error("{} has schema version {found}; this jitterscope reads version {known}", path.display())]
    Version {
        path: PathBuf,
        found: u64,
        known: u32,
    },
    #[error("no run '{wanted}' in {}{hint}", dir.display())]
    NoSuchRun {
        /// The name asked for.
        wanted: String,
        dir: PathBuf,
        /// The runs that exist instead.
        hint: String,
    },
    /// Something moved or replaced the folder, so it cannot get its name.
    #[error("{} was renamed or replaced while the run was written; the run is whole in the folder that had this name", path.display())]
    Moved {
        /// The name while the run was written.
        path: PathBuf,
    },
    /// An earlier error lost rows.
    #[error("{} lost rows to an earlier error and is not kept", path.display())]
    Incomplete { path: PathBuf },
    /// Rows arrived before the clock did.
    #[error("rows were written before the run began; this is a bug")]
    NotBegun,
}

impl StoreError {
    pub(crate) fn write(path: &Path, source: io::Error) -> StoreError {
        let path = path.to_path_buf();
        match source.kind() {
            kind if jitterscope_platform::is_full(kind) => StoreError::Full { path },
            _ => StoreError::Write { path, source },
        }
    }

    /// The error of a path that cannot be opened, made or removed for writing.
    pub(crate) fn writing(error: AccessError) -> StoreError {
        match error {
            AccessError::Io { path, source } => StoreError::write(&path, source),
            other => StoreError::Access(other),
        }
    }

    /// The error of a path that cannot be opened or read.
    pub(crate) fn reading(error: AccessError) -> StoreError {
        match error {
            AccessError::Io { path, source } => StoreError::read(&path, source),
            other => StoreError::Access(other),
        }
    }

    /// Whether the disk is full. Rows accepted earlier are safe.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, StoreError::Full { .. })
    }

    /// The error without the names that users gave to runs and folders. Files of a run keep their names: the program
    /// chose them.
    #[must_use]
    pub fn without_names(self) -> StoreError {
        match self {
            StoreError::NoSuchRun { wanted, .. } => StoreError::NoSuchRun {
                wanted,
                dir: "the folder of runs".into(),
                hint: String::new(),
            },
            StoreError::Access(error) => {
                let why = match error {
                    AccessError::NotRegular { .. } | AccessError::TooLarge { .. } => {
                        error.into_io().to_string()
                    }
                    _ => "it cannot be opened".into(),
                };
                StoreError::Damaged {
                    path: "a file of the run".into(),
                    why,
                }
            }
            StoreError::Folder { .. } | StoreError::Moved { .. } => StoreError::Damaged {
                path: "the folder of runs".into(),
                why: "it cannot be used".into(),
            },
            StoreError::Space {
                free_mib,
                needed_mib,
                ..
            } => StoreError::Space {
                path: "the folder of runs".into(),
                free_mib,
                needed_mib,
            },
            StoreError::Full { path } => StoreError::Full { path: alone(&path) },
            StoreError::Write { path, source } => StoreError::Write {
                path: alone(&path),
                source,
            },
            StoreError::Read { path, source } => StoreError::Read {
                path: alone(&path),
                source,
            },
            StoreError::Damaged { path, why } => StoreError::Damaged {
                path: alone(&path),
                why,
            },
            StoreError::Logs { path, most } => StoreError::Logs {
                path: alone(&path),
                most,
            },
            StoreError::Version { path, found, known } => StoreError::Version {
                path: alone(&path),
                found,
                known,
            },
            StoreError::Cap {
                path,
                what,
                found,
                most,
            } => StoreError::Cap {
                path: alone(&path),
                what,
                found,
                most,
            },
            StoreError::Memory { path, mib } => StoreError::Memory {
                path: alone(&path),
                mib,
            },
            StoreError::Incomplete { .. } => StoreError::Incomplete {
                path: "the run".into(),
            },
            StoreError::Label { .. } | StoreError::NotBegun => self,
        }
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

/// The file name of a path in a run, which the program chose; "a run" for any other path.
fn alone(path: &Path) -> PathBuf {
    let known = path.extension().is_some_and(|end| {
        ["json", "parquet", "hlog", "seg"]
            .iter()
            .any(|of| end == *of)
    });
    let name = path.file_name().filter(|_| known);
    name.map_or_else(|| "a run".into(), PathBuf::from)
}

/// The reason without the path, where the message already begins with the path.
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
    fn a_folder_is_reported_once() {
        let refused = |of: &str| AccessError::Io {
            path: of.into(),
            source: io::ErrorKind::NotFound.into(),
        };
        let reported = |of: &str| {
            StoreError::Folder {
                path: "/runs/deep".into(),
                source: refused(of),
            }
            .to_string()
        };
        assert_eq!(reported("/runs/deep").matches("/runs").count(), 1);
        assert!(
            reported("/runs").contains("in /runs/deep: /runs: "),
            "{}",
            reported("/runs")
        );
    }

    #[test]
    fn what_people_called_things_is_left_out() {
        let path = || PathBuf::from("/home/zoe/runs/20261122-SECRET-abc/stalls.parquet");
        let of = |error: StoreError| error.without_names().to_string();
        for reported in [
            of(StoreError::NoSuchRun {
                wanted: "x".into(),
                dir: "/home/zoe".into(),
                hint: "; the newest are abc (SECRET)".into(),
            }),
            of(StoreError::damaged(&path(), "half")),
            of(StoreError::read(&path(), io::ErrorKind::NotFound.into())),
            of(StoreError::read(
                path().parent().unwrap(),
                io::ErrorKind::NotFound.into(),
            )),
            of(StoreError::Access(AccessError::Replaced { path: path() })),
            of(StoreError::Access(AccessError::TooLarge {
                path: path(),
                limit: 1,
            })),
        ] {
            assert!(
                !reported.contains("SECRET") && !reported.contains("zoe"),
                "{reported}"
            );
        }
        assert_eq!(
            of(StoreError::damaged(&path(), "half")),
            "stalls.parquet is damaged: half"
        );
    }

    #[test]
    fn a_full_disk_and_a_used_up_quota_are_told_apart_from_other_failures() {
        let write = |kind: io::ErrorKind| StoreError::write(Path::new("x"), kind.into());
        for full in [
            io::ErrorKind::StorageFull,
            io::ErrorKind::QuotaExceeded,
            io::ErrorKind::FileTooLarge,
        ] {
            assert!(write(full).is_full(), "{full}");
        }
        assert!(matches!(
            write(io::ErrorKind::BrokenPipe),
            StoreError::Write { .. }
        ));
        assert!(!write(io::ErrorKind::BrokenPipe).is_full());
    }
}
