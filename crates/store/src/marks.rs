//! The marks of an application's logs, added to a complete run.

use crate::error::StoreError;
use crate::reader::RunReader;
use crate::writer::write_beside;
use jitterscope_model::MarkLog;
use jitterscope_platform::HeldDir;
use std::path::Path;

pub(crate) const MARKS: &str = "marks.json";
/// The largest accepted file, bytes: all logs with long names.
pub(crate) const LARGEST_MARKS: u64 = 32 << 20;
/// Logs of one run.
const LOGS: usize = 4;

/// Adds the marks of a log to a run, in place of those of an earlier log of the same name.
///
/// # Errors
/// Another user may change the folder, the run has too many logs, reading them again would take more memory than is
/// allowed, or the disk is full or fails. The run stays as it was.
pub fn add_marks(run: &RunReader, log: MarkLog) -> Result<(), StoreError> {
    let before = run.marks()?;
    let mut logs = before.clone();
    logs.retain(|known| known.file != log.file);
    if logs.len() >= LOGS {
        return Err(StoreError::Logs {
            path: run.path().join(MARKS),
            most: LOGS,
        });
    }
    logs.push(log);
    put(run.path(), &logs)?;
    drop(logs);
    // A report that cannot read them would not be a report any more.
    let read = run.marks().map(drop);
    if read.is_err() {
        put(run.path(), &before)?;
    }
    read
}

/// Removes all marks from a run. Returns whether it had any.
///
/// # Errors
/// As [`add_marks`].
pub fn remove_marks(run: &RunReader) -> Result<bool, StoreError> {
    let folder = HeldDir::trusted(run.path()).map_err(StoreError::writing)?;
    match folder.remove_file(MARKS) {
        Ok(()) => Ok(true),
        Err(error) if error.is_absent() => Ok(false),
        Err(error) => Err(StoreError::writing(error)),
    }
}

fn put(run: &Path, logs: &[MarkLog]) -> Result<(), StoreError> {
    let folder = HeldDir::trusted(run).map_err(StoreError::writing)?;
    write_beside(&folder, MARKS, ".marks.json", &logs)
}
