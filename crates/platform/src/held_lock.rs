use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

/// Between two tries at a lock.
const PAUSE: Duration = Duration::from_millis(5);

/// A file or folder that is locked (`flock`) until this is dropped, or the process ends.
///
/// The lock belongs to the open file, not to the descriptor: a child that another thread is just starting shares it
/// until it executes its program. Closing alone would leave the file locked for that moment, so dropping also unlocks.
#[derive(Debug)]
pub struct HeldLock(File);

impl HeldLock {
    /// Locks it exclusively. Retries for `patience` if another process holds the lock.
    ///
    /// # Errors
    /// Returns the file with the reason: [`TryLockError::WouldBlock`] if another process still holds the lock, else the
    /// file system has no locks.
    pub fn take(file: File, patience: Duration) -> Result<HeldLock, (File, TryLockError)> {
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(HeldLock(file)),
                Err(TryLockError::WouldBlock) if begun.elapsed() < patience => {
                    std::thread::sleep(PAUSE)
                }
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((file, error)),
            }
        }
    }

    #[must_use]
    pub fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // The file is closed right after this, which also unlocks it if this fails.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_free_when_dropped_although_a_child_still_shares_the_open_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = HeldLock::take(File::create(&path).unwrap(), Duration::ZERO).unwrap();
        // As a child between fork and exec has it: another descriptor of the same open file.
        let inherited = lock.file().try_clone().unwrap();
        let (_, refused) = HeldLock::take(File::open(&path).unwrap(), Duration::ZERO).unwrap_err();
        assert!(matches!(refused, TryLockError::WouldBlock), "{refused:?}");
        drop(lock);
        HeldLock::take(File::open(&path).unwrap(), Duration::ZERO).unwrap();
        drop(inherited);
    }
}
