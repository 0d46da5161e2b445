//! Why something is not opened.

use std::io;
use std::path::{Path, PathBuf};

/// A file or folder that is not opened, made, renamed or removed, and why.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A regular file was wanted.
    #[error("{} is {found}, not a regular file", path.display())]
    NotRegular {
        /// What was to be opened.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// More than any file of its kind has.
    #[error("{} is larger than {}, more than any file of its kind", path.display(), size(*limit))]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound, bytes.
        limit: u64,
    },
    /// Another user may change a folder on the way.
    #[error(
        "{} {why}, who could replace what is written below it. Choose a folder whose whole path belongs to root or to the user who runs this, and to which nobody else can write",
        component.display()
    )]
    Changeable {
        /// The folder, on the way to the wanted one or that one itself.
        component: PathBuf,
        /// Who may change it.
        why: String,
    },
    /// It belongs to another user, and is not used where that user could have put it to lead us astray.
    #[error("{} is {what} of user {owner}, who could have put it there to mislead: it is neither followed nor written to. Remove it, or name another place", path.display())]
    Foreign {
        /// What it is called.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// The number of the user to whom it belongs.
        owner: u32,
    },
    /// The name no longer means what is held open.
    #[error("{} was replaced by somebody else in the meantime", path.display())]
    Replaced {
        /// The name.
        path: PathBuf,
    },
}

impl AccessError {
    pub(crate) fn io(path: &Path, source: impl Into<io::Error>) -> AccessError {
        AccessError::Io {
            path: path.to_path_buf(),
            source: source.into(),
        }
    }

    /// What the system said, where it said something.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            AccessError::Io { source, .. } => Some(source.kind()),
            _ => None,
        }
    }

    /// Whether there is no such file or folder.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::NotFound)
    }

    /// As an error of the system, for those who name the file themselves.
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
