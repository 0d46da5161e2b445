//! Tracing instances of our own, and those that a killed process of ours left behind.

use super::owner::{self, Owner};
use super::{TraceError, Tracefs};
use jitterscope_platform::Machine;
use std::io;
use std::time::Duration;

/// How often removal is tried while the kernel still calls the instance busy.
const REMOVAL_TRIES: u32 = 20;
/// Instances of the same role that one process may have.
const SAME_ROLE: u32 = 64;

/// A tracing instance, `instances/jitterscope-PID-START-ROLE`; removed when dropped. START is when
/// the process started, in the kernel's clock ticks, so that a reused process id is told apart.
#[derive(Debug)]
pub(super) struct Instance {
    tracefs: Tracefs,
    path: String,
}

impl Instance {
    /// Makes an instance for this process.
    pub(super) fn create(tracefs: &Tracefs, role: &str) -> Result<Instance, TraceError> {
        let stem = format!("{}/instances/{}", tracefs.root(), owner::name(tracefs.machine(), role)?);
        let mut path = stem.clone();
        for number in 2..=SAME_ROLE {
            match tracefs.control().make_dir(&path) {
                Ok(()) => return Ok(Instance { tracefs: tracefs.clone(), path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    path = format!("{stem}.{number}")
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(TraceError::NoPermission { path: tracefs.machine().path(&path) });
                }
                Err(source) => {
                    return Err(TraceError::Instance { path: tracefs.machine().path(&path), source });
                }
            }
        }
        let source = io::ErrorKind::AlreadyExists.into();
        Err(TraceError::Instance { path: tracefs.machine().path(&path), source })
    }

    /// The path of one of its files.
    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    pub(super) fn machine(&self) -> &Machine {
        self.tracefs.machine()
    }

    pub(super) fn read(&self, name: &str) -> Result<String, TraceError> {
        Ok(self.machine().read(self.file(name))?)
    }

    pub(super) fn write(&self, name: &str, value: &str) -> Result<(), TraceError> {
        let refused = |file| TraceError::Refused { value: value.into(), file };
        self.tracefs.control().write(&self.file(name), value).map_err(refused)
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.machine().exists(self.file(name))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.write("tracing_on", "0");
        // Nothing can be reported from here; what stays behind, the next start finds and removes.
        let _ = remove(&self.tracefs, &self.path);
    }
}

/// Removes an instance's folder; waits a little while the kernel still calls it busy.
fn remove(tracefs: &Tracefs, path: &str) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match tracefs.control().remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < REMOVAL_TRIES => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

/// An instance of ours whose process is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Its folder's name.
    pub name: String,
    /// The process that made it.
    pub pid: u32,
}

impl Tracefs {
    /// Instances that a process of ours left behind when it was killed.
    #[must_use]
    pub fn leftovers(&self) -> Vec<Leftover> {
        let names = self.machine().list(format!("{}/instances", self.root()));
        names
            .into_iter()
            .filter_map(|name| {
                let owner = Owner::of(&name)?;
                owner.is_dead(self.machine()).then_some(Leftover { name, pid: owner.pid })
            })
            .collect()
    }

    /// Removes what [`Tracefs::leftovers`] finds. An instance that the kernel calls busy has a reader
    /// (a process that this one cannot see, in another PID namespace) and is left alone, still tracing.
    ///
    /// Returns what was removed, and what was not with the reason.
    #[must_use]
    pub fn clean_leftovers(&self) -> (Vec<Leftover>, Vec<(Leftover, io::Error)>) {
        let (mut removed, mut kept) = (Vec::new(), Vec::new());
        for leftover in self.leftovers() {
            let path = format!("{}/instances/{}", self.root(), leftover.name);
            match remove(self, &path) {
                Ok(()) => removed.push(leftover),
                Err(error) => kept.push((leftover, error)),
            }
        }
        (removed, kept)
    }
}
