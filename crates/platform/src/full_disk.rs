//! Errors that mean a file cannot grow.

use std::io::ErrorKind;

/// Whether an error means that there is no room left: on the disk, in this user's quota, or below the file size limit
/// (`ulimit -f`). A process that reaches that limit also gets SIGXFSZ, and ends unless it handles it.
#[must_use]
pub fn is_full(error: ErrorKind) -> bool {
    matches!(
        error,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}
