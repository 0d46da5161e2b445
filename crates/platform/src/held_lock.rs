use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

/// Between two tries at a lock that is waited for.
const PAUSE: Duration = Duration::from_millis(5);

/// A file or folder that is locked (`flock`) until this is dropped, or the process ends.
///
/// The lock belongs to the open file, not to the descriptor: a child that another thread is just starting shares it
/// until it runs its program. Closing alone would keep it locked for that moment, so dropping unlocks.
#[derive(Debug)]
pub struct HeldLock(File);

impl HeldLock {
    /// Locks it exclusively; a lock that somebody else holds is tried for so long.
    ///
    /// # Errors
    /// The file comes back with the reason: [`TryLockError::WouldBlock`] where somebody else still holds it, or that
    /// its file system has no locks.
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

    /// What is locked.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        // Closing follows at once, and unlocks where this could not.
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
        // What a child has between fork and exec: another descriptor of the same open file.
        let inherited = lock.file().try_clone().unwrap();
        let (_, refused) = HeldLock::take(File::open(&path).unwrap(), Duration::ZERO).unwrap_err();
        assert!(matches!(refused, TryLockError::WouldBlock), "{refused:?}");
        drop(lock);
        HeldLock::take(File::open(&path).unwrap(), Duration::ZERO).unwrap();
        drop(inherited);
    }
}
