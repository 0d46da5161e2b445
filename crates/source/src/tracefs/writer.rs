//! All changes to the machine for tracing go through this trait, so that a test can check the order of the steps and
//! refuse any of them.

use jitterscope_platform::{FileError, Machine};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::fmt::Debug;
use std::{fs, io};

/// Operations that change a machine with an open tracefs. Paths are absolute, as on the host.
pub(super) trait TracefsWriter: Debug + Send + Sync {
    /// Makes a folder; in tracefs the kernel fills it.
    fn make_dir(&self, machine: &Machine, path: &str) -> io::Result<()>;
    /// Removes a folder; in tracefs the kernel empties it.
    fn remove_dir(&self, machine: &Machine, path: &str) -> io::Result<()>;
    /// Writes a control file.
    fn write(&self, machine: &Machine, path: &str, value: &str) -> Result<(), FileError>;
    /// Opens a control file with truncation, which empties it.
    fn empty(&self, machine: &Machine, path: &str) -> Result<(), FileError>;
    /// Mounts a file system of the kernel, under a name that mountinfo shows.
    fn mount(&self, kind: &str, name: &str, at: &str) -> io::Result<()>;
    fn unmount(&self, at: &str) -> io::Result<()>;
}

/// The real machine, if `is_host`.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) is_host: bool,
}

impl TracefsWriter for Live {
    fn make_dir(&self, machine: &Machine, path: &str) -> io::Result<()> {
        fs::create_dir(machine.path(path))
    }

    fn remove_dir(&self, machine: &Machine, path: &str) -> io::Result<()> {
        fs::remove_dir(machine.path(path))
    }

    fn write(&self, machine: &Machine, path: &str, value: &str) -> Result<(), FileError> {
        machine.write(path, value)
    }

    fn empty(&self, machine: &Machine, path: &str) -> Result<(), FileError> {
        let opened = fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(machine.path(path));
        opened.map(drop).map_err(|source| FileError {
            path: machine.shown(path),
            source,
        })
    }

    fn mount(&self, kind: &str, name: &str, at: &str) -> io::Result<()> {
        if !self.is_host {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let flags =
            MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RELATIME;
        Ok(mount(name, at, kind, flags, None)?)
    }

    fn unmount(&self, at: &str) -> io::Result<()> {
        if !self.is_host {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(unmount(at, UnmountFlags::empty())?)
    }
}
