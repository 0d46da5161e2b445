//! Who owns a folder or a file: the process that holds its lock.
//!
//! The lock is `flock` on the file or folder itself. The kernel releases it when its holder ends for any reason; a
//! zombie holds none. It is a property of the inode, so it is visible from every PID and mount namespace, where process
//! ids mean nothing.

use crate::held_lock::HeldLock;
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// How long to try to lock a new file or folder; a mere check holds the lock for microseconds.
const TAKING: Duration = Duration::from_millis(500);
/// How long a check tries, which may fail once.
const LOOKING: Duration = Duration::from_millis(6);

/// The held lock of a folder or file. Child programs do not inherit it. It is released when this is dropped or the
/// process ends.
#[derive(Debug)]
pub struct OwnerLock {
    _held: HeldLock,
}

/// The state of an owner.
#[derive(Debug)]
pub enum Owner {
    /// A process holds the lock.
    Living,
    /// No process holds the lock, and none can take it while this is held: the leftovers can be removed.
    Gone(OwnerLock),
    /// Unknown: it cannot be opened, or its file system has no locks. Leave it alone.
    Unknown(io::Error),
}

impl OwnerLock {
    /// Makes this process the owner of the new file or folder at `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`]: another process took it for a leftover and removed it before we held the lock; make
    /// it again. [`io::ErrorKind::WouldBlock`]: another process holds the lock. Others: the file system has no locks,
    /// or the path cannot be opened.
    pub fn take(path: &Path) -> io::Result<OwnerLock> {
        lock(path, TAKING)
    }
}

/// Checks whether the owner of the file or folder at `path` is alive.
#[must_use]
pub fn owner_of(path: &Path) -> Owner {
    match lock(path, LOOKING) {
        Ok(lock) => Owner::Gone(lock),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Owner::Living,
        Err(error) => Owner::Unknown(error),
    }
}

fn lock(path: &Path, patience: Duration) -> io::Result<OwnerLock> {
    // Does not follow links, and does not wait for the other end of a pipe.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let held = HeldLock::take(file, patience).map_err(|(_, error)| match error {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(error) => error,
    })?;
    // The previous holder may have removed the file: then this lock has no effect.
    let (ours, there) = (held.file().metadata()?, fs::symlink_metadata(path)?);
    if (ours.dev(), ours.ino()) != (there.dev(), there.ino()) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(OwnerLock { _held: held })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::Instant;

    #[test]
    fn the_holder_lives_until_it_lets_go() {
        let dir = tempfile::tempdir().unwrap();
        let lock = OwnerLock::take(dir.path()).unwrap();
        assert!(matches!(owner_of(dir.path()), Owner::Living));
        drop(lock);
        assert!(matches!(owner_of(dir.path()), Owner::Gone(_)));
    }

    #[test]
    fn what_is_being_removed_cannot_be_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::create_dir(&path).unwrap();
        let Owner::Gone(cleaner) = owner_of(&path) else {
            panic!("nobody owns it")
        };
        std::thread::scope(|scope| {
            let taking = scope.spawn(|| OwnerLock::take(&path));
            sleep(Duration::from_millis(50));
            fs::remove_dir(&path).unwrap();
            fs::create_dir(&path).unwrap();
            drop(cleaner);
            let error = taking.join().unwrap().unwrap_err();
            assert_eq!(
                error.kind(),
                io::ErrorKind::NotFound,
                "the lock of the one that was removed"
            );
        });
    }

    #[test]
    fn links_and_what_cannot_be_opened_have_no_known_owner() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("link")).unwrap();
        for name in ["link", "absent"] {
            assert!(
                matches!(owner_of(&dir.path().join(name)), Owner::Unknown(_)),
                "{name}"
            );
        }
    }

    /// A program that we start does not hold our locks.
    #[test]
    fn a_started_program_does_not_inherit_it() {
        let dir = tempfile::tempdir().unwrap();
        let lock = OwnerLock::take(dir.path()).unwrap();
        let mut child = Command::new("sleep")
            .arg("60")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        drop(lock);
        let gone = matches!(owner_of(dir.path()), Owner::Gone(_));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(gone);
    }

    /// A zombie still has an id and a start time, but no lock.
    #[test]
    fn a_zombie_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new("flock")
            .arg(dir.path())
            .args(["sleep", "60"])
            .process_group(0)
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while !matches!(owner_of(dir.path()), Owner::Living) {
            assert!(Instant::now() < until, "flock(1) never took the lock");
            sleep(Duration::from_millis(5));
        }
        // Kills the whole group: flock(1) shares its lock with the program it runs.
        let group = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
            assert!(Instant::now() < until, "it does not become a zombie");
            sleep(Duration::from_millis(5));
        }
        while !matches!(owner_of(dir.path()), Owner::Gone(_)) {
            assert!(Instant::now() < until, "a zombie still owns it");
            sleep(Duration::from_millis(5));
        }
        child.wait().unwrap();
    }
}
