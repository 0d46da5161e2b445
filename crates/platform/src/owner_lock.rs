//! Who owns a folder or a file: the process that holds its lock.
//!
//! The lock is `flock` on the thing itself. The kernel releases it when its holder ends, however that
//! ends, and a process that is dead but not yet waited for holds none. It is a property of the inode, so
//! it is seen from every PID and mount namespace, where process ids say nothing.

use crate::held_lock::HeldLock;
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

/// Who only looks holds the lock for microseconds: what has just been made is tried for this long.
const TAKING: Duration = Duration::from_millis(500);
/// The same for a look, which may be wrong about a thing once.
const LOOKING: Duration = Duration::from_millis(6);

/// The lock of a folder or file, held. It is not inherited by programs that this one starts, and goes when
/// this is dropped or the process ends.
#[derive(Debug)]
pub struct OwnerLock {
    _held: HeldLock,
}

/// What is known of a thing's owner.
#[derive(Debug)]
pub enum Owner {
    /// A process holds the lock.
    Living,
    /// Nobody does, and nobody can take it as long as this is held: what its owner left can be removed.
    Gone(OwnerLock),
    /// Not known: it cannot be opened, or its file system has no locks. Leave it alone.
    Unknown(io::Error),
}

impl OwnerLock {
    /// Makes this process the owner of what it has just made at `path`.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`]: somebody took it for a leftover and removed it before the lock was
    /// held; make it again. [`io::ErrorKind::WouldBlock`]: somebody else holds the lock. Others: the file
    /// system has no locks, or the path cannot be opened.
    pub fn take(path: &Path) -> io::Result<OwnerLock> {
        lock(path, TAKING)
    }
}

/// Looks whether the owner of what is at `path` lives.
#[must_use]
pub fn owner_of(path: &Path) -> Owner {
    match lock(path, LOOKING) {
        Ok(lock) => Owner::Gone(lock),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Owner::Living,
        Err(error) => Owner::Unknown(error),
    }
}

fn lock(path: &Path, patience: Duration) -> io::Result<OwnerLock> {
    // Links are not followed, and opening does not wait for the other end of a pipe.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let held = HeldLock::take(file, patience).map_err(|(_, error)| match error {
        TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
        TryLockError::Error(error) => error,
    })?;
    // Whoever held the lock until now may have removed the thing: then this is the lock of nothing.
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

    /// A program that this one starts does not hold what this one owns.
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

    /// A process that was killed and not waited for still has an id and a start time, but no lock.
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
        // The whole group: flock(1) shares its lock with the program it runs.
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
