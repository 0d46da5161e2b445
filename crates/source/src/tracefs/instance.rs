//! Our tracing instances, and those that a killed process of ours left behind.

use super::{TraceError, Tracefs, graph_functions, owner};
use jitterscope_platform::{FileError, Machine, Owner, OwnerLock, owner_of};
use std::io;
use std::time::Duration;

/// How often to retry the removal while the kernel reports the instance as busy.
const REMOVAL_TRIES: u32 = 20;
/// Maximum of instances with the same role in one process.
const SAME_ROLE: u32 = 64;

/// A tracing instance, `instances/jitterscope-PID-START-ROLE`; dropping this removes it. START is the start time of the
/// process, in the kernel's clock ticks, which distinguishes processes with a reused id. The folder is locked while its
/// owner lives.
#[derive(Debug)]
pub(super) struct Instance {
    tracefs: Tracefs,
    path: String,
    /// Released after the folder is removed.
    _lock: OwnerLock,
}

impl Instance {
    /// Makes an instance for this process.
    pub(super) fn create(tracefs: &Tracefs, role: &str) -> Result<Instance, TraceError> {
        let stem = format!(
            "{}/instances/{}",
            tracefs.root(),
            owner::name(tracefs.machine(), role)?
        );
        // Making it would succeed, and each of its settings would then be refused.
        if let Err(error @ TraceError::InstancesOfOwner { .. }) = tracefs.may_use_instances() {
            return Err(error);
        }
        let mut path = stem.clone();
        for number in 2..=SAME_ROLE {
            match make(tracefs, &path) {
                Ok(lock) => {
                    return Ok(Instance {
                        tracefs: tracefs.clone(),
                        path,
                        _lock: lock,
                    });
                }
                // Not found: another process removed it before it was locked.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
                    ) =>
                {
                    path = format!("{stem}.{number}")
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(TraceError::NoPermission {
                        path: tracefs.machine().shown(&path),
                    });
                }
                Err(source) => {
                    return Err(TraceError::Instance {
                        path: tracefs.machine().shown(&path),
                        source,
                    });
                }
            }
        }
        let source = io::ErrorKind::AlreadyExists.into();
        Err(TraceError::Instance {
            path: tracefs.machine().shown(&path),
            source,
        })
    }

    /// Its role, from its name.
    pub(super) fn role(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        owner::role_of(name).unwrap_or(name)
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
        let refused = |file| TraceError::Refused {
            value: value.into(),
            file,
        };
        self.tracefs.write(&self.file(name), value).map_err(refused)
    }

    /// Discards the contents of its buffers.
    pub(super) fn clear(&self) -> Result<(), FileError> {
        self.empty("trace")
    }

    /// Empties a control file.
    pub(super) fn empty(&self, name: &str) -> Result<(), FileError> {
        self.tracefs.empty(&self.file(name))
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.machine().exists(self.file(name))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // An instance that cannot be removed should at least not record.
        let _ = self.write("tracing_on", "0");
        if let Err(why) = remove(&self.tracefs, &self.path) {
            let name = self.path.rsplit('/').next().unwrap_or(&self.path);
            self.tracefs.leave(name, why);
        }
    }
}

/// Makes an instance's folder and locks it.
fn make(tracefs: &Tracefs, path: &str) -> io::Result<OwnerLock> {
    tracefs.make_dir(path)?;
    OwnerLock::take(&tracefs.machine().path(path)).inspect_err(|error| {
        // An unlocked instance would be taken for a leftover.
        if error.kind() != io::ErrorKind::NotFound {
            let _ = remove(tracefs, path);
        }
    })
}

/// Removes an instance's folder; retries for a while if the kernel reports it as busy.
fn remove(tracefs: &Tracefs, path: &str) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match tracefs.remove_dir(path) {
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
    pub name: String,
    /// The process that made it, as numbered in its PID namespace.
    pub pid: u32,
}

impl Tracefs {
    /// Instances that a killed process of ours left behind.
    #[must_use]
    pub fn leftovers(&self) -> Vec<Leftover> {
        let gone = |(leftover, owner)| matches!(owner, Owner::Gone(_)).then_some(leftover);
        self.instances_of_ours().filter_map(gone).collect()
    }

    /// Removes what [`Tracefs::leftovers`] finds. An instance that the kernel reports as busy has a reader and is left
    /// alone, still tracing; so is one whose owner may be alive.
    ///
    /// Returns the removed instances, and the others with the reason.
    #[must_use]
    pub fn clean_leftovers(&self) -> (Vec<Leftover>, Vec<(Leftover, io::Error)>) {
        let (mut removed, mut kept) = (Vec::new(), Vec::new());
        for (leftover, owner) in self.instances_of_ours() {
            let path = format!("{}/instances/{}", self.root(), leftover.name);
            let result = match owner {
                Owner::Living => continue,
                // Holds the lock until it is removed, so that no process can take it over meanwhile.
                Owner::Gone(_lock) => {
                    if owner::role_of(&leftover.name)
                        .is_some_and(|role| role.starts_with(graph_functions::ROLE))
                    {
                        graph_functions::forget_functions(self);
                    }
                    remove(self, &path)
                }
                Owner::Unknown(error) => Err(error),
            };
            match result {
                Ok(()) => removed.push(leftover),
                // It disappeared by itself.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => kept.push((leftover, error)),
            }
        }
        (removed, kept)
    }

    fn instances_of_ours(&self) -> impl Iterator<Item = (Leftover, Owner)> {
        let folder = format!("{}/instances", self.root());
        self.machine()
            .list(&folder)
            .into_iter()
            .filter_map(move |name| {
                let pid = owner::pid_of(&name)?;
                let owner = owner_of(&self.machine().path(format!("{folder}/{name}")));
                Some((Leftover { name, pid }, owner))
            })
    }
}
