//! Why a file or folder cannot be used safely.

use std::io;
use std::path::{Path, PathBuf};

/// A file or folder that cannot be opened, made, renamed or removed, and why.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The path is not a regular file.
    #[error("{} is {found}, not a regular file", path.display())]
    NotRegular { path: PathBuf, found: &'static str },
    /// It is larger than any file of its kind.
    #[error("{} is larger than {}, more than any file of its kind", path.display(), size(*limit))]
    TooLarge {
        path: PathBuf,
        /// The bound, in bytes.
        limit: u64,
    },
    /// Another user can change a folder on the path.
    #[error(
        "{} {why}, who could replace what is written below it. Choose a folder whose whole path belongs to root or to the user who runs this, and to which nobody else can write",
        component.display()
    )]
    Changeable {
        /// The folder that others can change: one on the path, or the target itself.
        component: PathBuf,
        /// Who can change it.
        why: String,
    },
    /// It belongs to another user, who could have put it there to mislead us.
    #[error("{} is {what} of user {owner}, who could have put it there to mislead: it is neither followed nor written to. Remove it, or name another place", path.display())]
    Foreign {
        path: PathBuf,
        what: &'static str,
        /// The user id of its owner.
        owner: u32,
    },
    /// The name no longer means the file that is held open.
    #[error("{} was replaced by somebody else in the meantime", path.display())]
    Replaced { path: PathBuf },
}

impl AccessError {
    pub(crate) fn io(path: &Path, source: impl Into<io::Error>) -> AccessError {
        AccessError::Io {
            path: path.to_path_buf(),
            source: source.into(),
        }
    }

    /// The kind of the system's error, if the system reported one.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            AccessError::Io { source, .. } => Some(source.kind()),
            _ => None,
        }
    }

    /// Whether the file or folder does not exist.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::NotFound)
    }

    /// As an I/O error, for callers that name the file themselves.
    #[must_use]
    pub fn into_io(self) -> io::Error {
        let text = match self {
            AccessError::Io { source, .. } => return source,
            AccessError::NotRegular { found, .. } => format!("it is {found}, not a regular file"),
            AccessError::TooLarge { limit, .. } => {
                format!(
                    "it is larger than {}, more than any file of its kind",
                    size(limit)
                )
            }
            other => other.to_string(),
        };
        io::Error::new(io::ErrorKind::InvalidInput, text)
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// A file type in words.
pub(super) fn in_words(kind: rustix::fs::FileType) -> &'static str {
    use rustix::fs::FileType;
    match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice => "a character device",
        FileType::BlockDevice => "a block device",
        FileType::Unknown => "of an unknown kind",
    }
}
