//! Finds or mounts tracefs.

use super::instance::Instance;
use super::writer::{Live, TracefsWriter};
use super::{TraceError, instances, mountinfo, owner};
use jitterscope_model::{Comm, TracefsFlaw};
use jitterscope_platform::{FileError, Machine, is_in_pid_namespace};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

const TRACING: &str = "/sys/kernel/tracing";
const DEBUG: &str = "/sys/kernel/debug";

/// How often to search again for a mount that disappears after we find it.
const TRIES: u32 = 3;

/// tracefs of a machine. If one of our processes had to mount it, the last one that uses it unmounts it.
#[derive(Clone, Debug)]
pub struct Tracefs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Holds the root open once it is found. An ordinary unmount then fails; after a lazy one (`umount -l`), our
    /// instances still run and remain accessible.
    machine: Machine,
    writer: Arc<dyn TracefsWriter>,
    root: String,
    /// The mounts of our processes, in the order of unmounting.
    mounted: Vec<String>,
    /// Instances of ours that could not be removed, with the reason.
    left: Mutex<Vec<(String, io::Error)>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.machine = self.machine.letting_go();
        if self.mounted.is_empty() {
            return;
        }
        // Another process may have unmounted it and mounted another file system there.
        let ours = self
            .machine
            .read("/proc/self/mountinfo")
            .map(|text| of_ours(&text));
        for at in ours.unwrap_or_default() {
            if self.mounted.contains(&at) {
                // Busy: another process uses it. If that is one of ours, it will unmount it.
                let _ = self.writer.unmount(&at);
            }
        }
    }
}

/// The mount points of our processes, in the order of unmounting.
fn of_ours(mountinfo: &str) -> Vec<String> {
    mountinfo::ours(mountinfo, |name| owner::pid_of(name).is_some())
}

impl Tracefs {
    /// Finds tracefs, or mounts it at `/sys/kernel/tracing` (below debugfs on kernels without that folder). The mount's
    /// name marks it as ours, so that our last process that uses it unmounts it: the process that mounted it may have
    /// been killed, or may end before others.
    ///
    /// # Errors
    /// It cannot be mounted, cannot be read by this user, or the kernel has none.
    pub fn open(machine: &Machine) -> Result<Tracefs, TraceError> {
        let is_host = machine.is_host();
        Tracefs::open_with(machine, Arc::new(Live { is_host }))
    }

    pub(super) fn open_with(
        machine: &Machine,
        writer: Arc<dyn TracefsWriter>,
    ) -> Result<Tracefs, TraceError> {
        let mut tries = 0;
        loop {
            match Tracefs::try_open(machine, Arc::clone(&writer)) {
                // Another process of ours unmounted it before we used it.
                Err(TraceError::NotSupported { .. }) if tries < TRIES && !is_mounted(machine) => {
                    tries += 1
                }
                // A locked kernel has no tracefs, or an empty one: its file errors are misleading.
                Err(_) if is_locked(machine) => return Err(TraceError::LockedDown),
                other => return other,
            }
        }
    }

    fn try_open(machine: &Machine, writer: Arc<dyn TracefsWriter>) -> Result<Tracefs, TraceError> {
        let mountinfo = machine.read("/proc/self/mountinfo")?;
        let (root, mounted) = match mountinfo::find(&mountinfo) {
            Some(mount) => (mount.point, of_ours(&mountinfo)),
            None => mount(machine, writer.as_ref())?,
        };
        // From here on, dropping undoes the mount.
        let mut inner = Inner {
            machine: machine.clone(),
            writer,
            root,
            mounted,
            left: Mutex::default(),
        };
        let root = machine.path(&inner.root);
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::PermissionDenied => TraceError::NoPermission { path: root.clone() },
            _ => TraceError::NotSupported {
                flaw: TracefsFlaw::Unreadable {
                    path: root.display().to_string(),
                    system: source.to_string(),
                },
            },
        };
        inner.machine = machine.holding(&inner.root).map_err(&refused)?;
        match inner.machine.read(format!("{}/trace_clock", inner.root)) {
            Ok(_) => {}
            Err(error) if error.is_denied() && !is_locked(machine) => {
                match instances::may_use(machine, &inner.root) {
                    Ok(()) => {}
                    Err(why @ TraceError::InstancesOfOwner { .. }) => return Err(why),
                    Err(_) => return Err(refused(error.source)),
                }
            }
            Err(error) => return Err(refused(error.source)),
        }
        for needed in ["instances", "events"] {
            if !inner.machine.exists(format!("{}/{needed}", inner.root)) {
                return Err(TraceError::NotSupported {
                    flaw: TracefsFlaw::Missing {
                        file: needed.into(),
                    },
                });
            }
        }
        Ok(Tracefs {
            inner: Arc::new(inner),
        })
    }

    /// The machine, with [`Tracefs::root`] held open.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.inner.machine
    }

    /// Its folder, as an absolute path of the machine.
    #[must_use]
    pub fn root(&self) -> &str {
        &self.inner.root
    }

    /// Whether one of our processes mounted it, so that our last one will unmount it.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        !self.inner.mounted.is_empty()
    }

    /// The trace clocks of the kernel, and the one in use in the top-level instance; or in a new instance, if this user
    /// may not read the top-level one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn clocks(&self) -> Result<Clocks, TraceError> {
        let file = format!("{}/trace_clock", self.root());
        let text = match self.machine().read(file) {
            Err(error) if error.is_denied() && self.may_use_instances().is_ok() => {
                Instance::create(self, "look")?.read("trace_clock")?
            }
            other => other?,
        };
        Ok(Clocks::parse(&text))
    }

    /// Whether this user may make instances and use them, and finds its own threads in their records.
    ///
    /// # Errors
    /// Why not.
    pub fn may_use_instances(&self) -> Result<(), TraceError> {
        if is_in_pid_namespace(self.machine()) {
            return Err(TraceError::PidNamespace);
        }
        instances::may_use(self.machine(), self.root())
    }

    /// Names of threads that the kernel saved while it recorded events, including those of ended threads. The kernel
    /// keeps a few hundred at most. Empty if the file cannot be read.
    #[must_use]
    pub fn saved_comms(&self) -> Vec<(i32, Comm)> {
        let text = self
            .inner
            .machine
            .read(format!("{}/saved_cmdlines", self.root()))
            .unwrap_or_default();
        let name = |line: &str| {
            let (tid, comm) = line.trim_start().split_once(' ')?;
            // `<...>` means that the kernel has no name.
            (comm != "<...>").then_some((tid.parse().ok()?, Comm::new(comm)))
        };
        text.lines().filter_map(name).collect()
    }

    /// Makes a folder, which the kernel fills.
    pub(super) fn make_dir(&self, path: &str) -> io::Result<()> {
        self.inner.writer.make_dir(&self.inner.machine, path)
    }

    /// Removes a folder with the kernel's files in it.
    pub(super) fn remove_dir(&self, path: &str) -> io::Result<()> {
        self.inner.writer.remove_dir(&self.inner.machine, path)
    }

    /// Writes a control file.
    pub(super) fn write(&self, path: &str, value: &str) -> Result<(), FileError> {
        self.inner.writer.write(&self.inner.machine, path, value)
    }

    /// Empties a control file.
    pub(super) fn empty(&self, path: &str) -> Result<(), FileError> {
        self.inner.writer.empty(&self.inner.machine, path)
    }

    /// Notes that an instance of ours is left behind.
    pub(super) fn leave(&self, name: &str, why: io::Error) {
        let mut left = self
            .inner
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        left.push((name.to_owned(), why));
    }

    /// Instances of ours that could not be removed since the last call, with the reason: the next start tries to remove
    /// them.
    #[must_use]
    pub fn take_left_behind(&self) -> Vec<(String, io::Error)> {
        let left = self.inner.left.lock();
        std::mem::take(&mut *left.unwrap_or_else(PoisonError::into_inner))
    }
}

fn is_mounted(machine: &Machine) -> bool {
    machine
        .read("/proc/self/mountinfo")
        .is_ok_and(|text| mountinfo::find(&text).is_some())
}

/// Whether the kernel hides its memory, and so its events, even from root. Its own file shows that if securityfs is
/// mounted, and the boot line if that requested it.
fn is_locked(machine: &Machine) -> bool {
    match machine.read("/sys/kernel/security/lockdown") {
        Ok(text) => text.contains("[confidentiality]"),
        Err(_) => machine.read("/proc/cmdline").is_ok_and(|line| {
            line.split_whitespace()
                .any(|word| word == "lockdown=confidentiality")
        }),
    }
}

/// Mounts tracefs. Returns its folder and the mounts to undo.
fn mount(
    machine: &Machine,
    writer: &dyn TracefsWriter,
) -> Result<(String, Vec<String>), TraceError> {
    let refused = |at: &str| {
        let at = at.to_owned();
        move |source: io::Error| match source
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error)
        {
            Some(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => TraceError::MountDenied,
            Some(rustix::io::Errno::NODEV) => TraceError::NotSupported {
                flaw: TracefsFlaw::NoFileSystem,
            },
            _ => TraceError::MountRefused { at, source },
        }
    };
    let name = || owner::name(machine, "mount");
    if machine.exists(TRACING) {
        writer
            .mount("tracefs", &name()?, TRACING)
            .map_err(refused(TRACING))?;
        return Ok((TRACING.into(), vec![TRACING.into()]));
    }
    if machine.exists(DEBUG) {
        writer
            .mount("debugfs", &name()?, DEBUG)
            .map_err(refused(DEBUG))?;
        // On first use, the kernel itself mounts tracefs there, on top of debugfs.
        let below = format!("{DEBUG}/tracing");
        return Ok((below.clone(), vec![below, DEBUG.into()]));
    }
    Err(TraceError::NotSupported {
        flaw: TracefsFlaw::NoFolder,
    })
}

/// The contents of a `trace_clock` file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    pub offered: Vec<String>,
    /// The clock in use.
    pub current: String,
}

impl Clocks {
    /// Parses `local global [x86-tsc]`.
    #[must_use]
    pub fn parse(text: &str) -> Clocks {
        let mut clocks = Clocks::default();
        for word in text.split_whitespace() {
            let inner = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
            if let Some(current) = inner {
                clocks.current = current.to_owned();
            }
            clocks.offered.push(inner.unwrap_or(word).to_owned());
        }
        clocks
    }
}
