//! The folder of a run while it is built.

use crate::error::StoreError;
use jitterscope_platform::{AccessError, HeldDir, OwnerLock};
use std::io;

/// How often a folder is made again that another's clean-up has removed.
const TRIES: u32 = 5;

/// Whether another process, rather than the file system, is in the way of a lock.
fn error_is_others(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotFound)
}

/// The folder under its hidden name, held open; removed with all that is in it unless it was renamed.
pub(crate) struct PartialFolder {
    runs: HeldDir,
    pub(crate) held: HeldDir,
    name: String,
    renamed: bool,
    /// Tells others that it is being written to; `None` where the file system has no locks, and then
    /// nobody removes it either.
    _owner: Option<OwnerLock>,
}

impl PartialFolder {
    pub(crate) fn make(runs: HeldDir, name: String) -> Result<PartialFolder, AccessError> {
        let path = runs.path().join(&name);
        let mut tries = 0;
        loop {
            let held = runs.make_dir(&name)?;
            let owner = match OwnerLock::take(&path) {
                Ok(lock) => Some(lock),
                // Somebody took it for a leftover in the moment in which it had no lock yet.
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => {
                    tries += 1;
                    continue;
                }
                Err(source) if error_is_others(&source) => {
                    let _ = runs.remove_held(&held, &name);
                    return Err(AccessError::Io { path, source });
                }
                Err(_) => None,
            };
            return Ok(PartialFolder { runs, held, name, renamed: false, _owner: owner });
        }
    }

    pub(crate) fn rename(&mut self, to: &str) -> Result<(), StoreError> {
        let result = self.runs.rename_held(&self.held, &self.name, to);
        // Wherever it is now, what was measured is whole in it.
        self.renamed = matches!(result, Ok(()) | Err(AccessError::Replaced { .. }));
        match result {
            Err(AccessError::Replaced { .. }) => {
                Err(StoreError::Moved { path: self.runs.path().join(&self.name) })
            }
            other => other.and_then(|()| self.runs.sync()).map_err(StoreError::writing),
        }
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        if !self.renamed {
            // What cannot be removed now is swept up by `clean_partials`.
            let _ = self.runs.remove_held(&self.held, &self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_is_in_the_way_of_a_lock_or_the_file_system_is() {
        for (kind, others) in [
            (io::ErrorKind::WouldBlock, true),
            (io::ErrorKind::NotFound, true),
            (io::ErrorKind::Unsupported, false),
            (io::ErrorKind::PermissionDenied, false),
        ] {
            assert_eq!(error_is_others(&kind.into()), others, "{kind}");
        }
    }
}
