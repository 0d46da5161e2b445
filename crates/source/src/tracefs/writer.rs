//! Everything that changes the machine on behalf of tracing goes through here, so that a test can
//! watch the order of the steps and refuse any of them.

use jitterscope_platform::{FileError, Machine};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::fmt::Debug;
use std::{fs, io};

/// The changing operations. Paths are absolute, as on the host.
pub(super) trait TracefsWriter: Debug + Send + Sync {
    /// Makes a folder; in tracefs the kernel fills it.
    fn make_dir(&self, path: &str) -> io::Result<()>;
    /// Removes a folder; in tracefs the kernel empties it.
    fn remove_dir(&self, path: &str) -> io::Result<()>;
    /// Writes a control file.
    fn write(&self, path: &str, value: &str) -> Result<(), FileError>;
    /// Opens a control file so that what it held is thrown away.
    fn empty(&self, path: &str) -> Result<(), FileError>;
    /// Mounts a file system of the kernel, under a name that mountinfo shows.
    fn mount(&self, kind: &str, name: &str, at: &str) -> io::Result<()>;
    /// Unmounts it.
    fn unmount(&self, at: &str) -> io::Result<()>;
}

/// The machine itself.
#[derive(Debug)]
pub(super) struct Live(pub(super) Machine);

impl TracefsWriter for Live {
    fn make_dir(&self, path: &str) -> io::Result<()> {
        fs::create_dir(self.0.path(path))
    }

    fn remove_dir(&self, path: &str) -> io::Result<()> {
        fs::remove_dir(self.0.path(path))
    }

    fn write(&self, path: &str, value: &str) -> Result<(), FileError> {
        self.0.write(path, value)
    }

    fn empty(&self, path: &str) -> Result<(), FileError> {
        let path = self.0.path(path);
        let opened = fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path);
        opened
            .map(drop)
            .map_err(|source| FileError { path, source })
    }

    fn mount(&self, kind: &str, name: &str, at: &str) -> io::Result<()> {
        if !self.0.is_host() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let flags =
            MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RELATIME;
        Ok(mount(name, at, kind, flags, None)?)
    }

    fn unmount(&self, at: &str) -> io::Result<()> {
        if !self.0.is_host() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(unmount(at, UnmountFlags::empty())?)
    }
}
