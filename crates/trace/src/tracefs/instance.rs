//! Tracing instances of our own, and those that a killed process of ours left behind.

use super::{TraceError, Tracefs};
use jitterscope_platform::Machine;
use std::io;
use std::time::Duration;

const PREFIX: &str = "jitterscope-";
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
        let stat = tracefs.machine().read("/proc/self/stat")?;
        let start = start_time(&stat).ok_or_else(|| TraceError::NotSupported {
            what: "/proc/self/stat does not tell when this process started".into(),
        })?;
        let stem = format!("{}/instances/{PREFIX}{}-{start}-{role}", tracefs.root(), std::process::id());
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

/// Field 22 of `/proc/PID/stat`: when the process started, in clock ticks since boot.
fn start_time(stat: &str) -> Option<u64> {
    // The second field is the name, which may itself hold blanks and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// The process that an instance's name speaks of: its id and when it started.
fn owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.splitn(3, '-');
    let owner = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_some_and(|role| !role.is_empty()).then_some(owner)
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
        let is_dead = |pid: u32, start: u64| match self.machine().read(format!("/proc/{pid}/stat")) {
            Ok(stat) => start_time(&stat).is_some_and(|now| now != start),
            Err(error) => error.is_absent(),
        };
        let names = self.machine().list(format!("{}/instances", self.root()));
        names
            .into_iter()
            .filter_map(|name| {
                let (pid, start) = owner(&name)?;
                is_dead(pid, start).then_some(Leftover { name, pid })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_id_and_start() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 10";
        assert_eq!(start_time(stat), Some(98_765));
        assert_eq!(start_time("42 (x) S 1"), None);
        assert_eq!(start_time(""), None);
    }

    #[test]
    fn only_our_own_names_have_owners() {
        assert_eq!(owner("jitterscope-12-345-local"), Some((12, 345)));
        assert_eq!(owner("jitterscope-12-345-local.2"), Some((12, 345)));
        for name in ["jitterscope-12-345", "jitterscope-12-345-", "jitterscope-x-1-y", "trace-12-3-local", ""]
        {
            assert_eq!(owner(name), None, "{name}");
        }
    }
}
