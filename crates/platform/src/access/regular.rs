//! Regular files that a user names for reading.

use super::error::{AccessError, in_words};
use rustix::fs::{FileType, Mode, OFlags, fstat};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Opens a regular file for reading. Refuses a pipe or a device at once, without waiting for its other end.
///
/// # Errors
/// It is not a regular file, or cannot be opened.
pub fn open_regular(path: &Path) -> Result<File, AccessError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| AccessError::io(path, e))?;
    let stat = fstat(&fd).map_err(|e| AccessError::io(path, e))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(File::from(fd)),
        other => Err(AccessError::NotRegular {
            path: path.to_path_buf(),
            found: in_words(other),
        }),
    }
}

/// Reads a whole regular file of at most `limit` bytes.
///
/// # Errors
/// As [`open_regular`]; or it is larger, or cannot be read.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, AccessError> {
    read_bounded_from(&open_regular(path)?, path, limit)
}

/// Reads the rest of an open file, at most `limit` bytes; `path` is its name for messages.
///
/// # Errors
/// It is larger, or cannot be read.
pub fn read_bounded_from(file: &File, path: &Path, limit: u64) -> Result<Vec<u8>, AccessError> {
    let error = |e: std::io::Error| AccessError::io(path, e);
    let too_large = || AccessError::TooLarge {
        path: path.to_path_buf(),
        limit,
    };
    let length = file.metadata().map_err(error)?.len();
    if length > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // The file may grow during the read, and some kernel files report a length of zero.
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(error)?;
    if bytes.len() as u64 > limit {
        Err(too_large())
    } else {
        Ok(bytes)
    }
}
