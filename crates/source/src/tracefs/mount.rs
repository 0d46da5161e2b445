//! tracefs, found or mounted.

use super::writer::{Live, TracefsWriter};
use super::{TraceError, mountinfo, owner};
use jitterscope_model::{Comm, TracefsFlaw};
use jitterscope_platform::Machine;
use std::fs::File;
use std::io;
use std::sync::Arc;

const TRACING: &str = "/sys/kernel/tracing";
const DEBUG: &str = "/sys/kernel/debug";

/// Times that a mount which goes as we find it is looked for again.
const TRIES: u32 = 3;

/// tracefs of a machine. If one of us had to mount it, the last of us who uses it unmounts it.
#[derive(Clone, Debug)]
pub struct Tracefs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    machine: Machine,
    writer: Arc<dyn TracefsWriter>,
    root: String,
    /// An open folder: nobody else's unmount succeeds while we use it.
    pin: Option<File>,
    /// What is mounted in our name, in the order of unmounting.
    mounted: Vec<String>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.pin = None;
        for at in &self.mounted {
            // Busy: somebody else uses it. If that is one of us, he unmounts it.
            let _ = self.writer.unmount(at);
        }
    }
}

impl Tracefs {
    /// Finds tracefs, or mounts it at `/sys/kernel/tracing` (below debugfs on kernels without that
    /// folder). The mount's name says that it is ours, so that whoever of us is the last to use it unmounts
    /// it: whoever mounted it may have been killed, or end while others go on.
    ///
    /// # Errors
    /// It cannot be mounted, cannot be read by this user, or the kernel has none.
    pub fn open(machine: &Machine) -> Result<Tracefs, TraceError> {
        Tracefs::open_with(machine, Arc::new(Live(machine.clone())))
    }

    pub(super) fn open_with(
        machine: &Machine,
        writer: Arc<dyn TracefsWriter>,
    ) -> Result<Tracefs, TraceError> {
        let mut tries = 0;
        loop {
            match Tracefs::try_open(machine, Arc::clone(&writer)) {
                // Another one of us unmounted it between our finding it and our use of it.
                Err(TraceError::NotSupported { .. }) if tries < TRIES && !is_mounted(machine) => {
                    tries += 1
                }
                // A locked kernel has no tracefs, or an empty one: what it says about files misleads.
                Err(_) if is_locked(machine) => return Err(TraceError::LockedDown),
                other => return other,
            }
        }
    }

    fn try_open(machine: &Machine, writer: Arc<dyn TracefsWriter>) -> Result<Tracefs, TraceError> {
        let mountinfo = machine.read("/proc/self/mountinfo")?;
        let (root, mounted) = match mountinfo::find(&mountinfo) {
            Some(mount) => (
                mount.point,
                mountinfo::ours(&mountinfo, |name| owner::pid_of(name).is_some()),
            ),
            None => mount(machine, writer.as_ref())?,
        };
        // From here on, dropping undoes the mount.
        let mut inner = Inner {
            machine: machine.clone(),
            writer,
            root,
            pin: None,
            mounted,
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
        inner.pin = Some(File::open(&root).map_err(&refused)?);
        match machine.read(format!("{}/trace_clock", inner.root)) {
            Ok(_) => {}
            Err(error) => return Err(refused(error.source)),
        }
        for needed in ["instances", "events"] {
            if !machine.exists(format!("{}/{needed}", inner.root)) {
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

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.inner.machine
    }

    /// Its folder, as an absolute path of the machine.
    #[must_use]
    pub fn root(&self) -> &str {
        &self.inner.root
    }

    /// Whether one of us mounted it, and the last of us will unmount it.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        !self.inner.mounted.is_empty()
    }

    /// The trace clocks that the kernel offers, and the one in force in the top-level instance.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn clocks(&self) -> Result<Clocks, TraceError> {
        Ok(Clocks::parse(
            &self
                .inner
                .machine
                .read(format!("{}/trace_clock", self.root()))?,
        ))
    }

    /// Names of threads that the kernel noted while it recorded events: also of those that have ended
    /// since. It keeps a few hundred at most, and none is no error.
    #[must_use]
    pub fn saved_comms(&self) -> Vec<(i32, Comm)> {
        let text = self
            .inner
            .machine
            .read(format!("{}/saved_cmdlines", self.root()))
            .unwrap_or_default();
        let name = |line: &str| {
            let (tid, comm) = line.trim_start().split_once(' ')?;
            // What the kernel could not name stands as `<...>`.
            (comm != "<...>").then_some((tid.parse().ok()?, Comm::new(comm)))
        };
        text.lines().filter_map(name).collect()
    }

    pub(super) fn writer(&self) -> &dyn TracefsWriter {
        self.inner.writer.as_ref()
    }
}

fn is_mounted(machine: &Machine) -> bool {
    machine
        .read("/proc/self/mountinfo")
        .is_ok_and(|text| mountinfo::find(&text).is_some())
}

/// Whether the kernel keeps its memory, and with it its events, from root too. Its own file says so where
/// securityfs is mounted, the boot line where that asked for it.
fn is_locked(machine: &Machine) -> bool {
    match machine.read("/sys/kernel/security/lockdown") {
        Ok(text) => text.contains("[confidentiality]"),
        Err(_) => machine.read("/proc/cmdline").is_ok_and(|line| {
            line.split_whitespace()
                .any(|word| word == "lockdown=confidentiality")
        }),
    }
}

/// Mounts tracefs. Returns its folder and what to unmount.
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
        // The kernel mounts tracefs there by itself on first use, on top of debugfs.
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
    /// All that there are.
    pub offered: Vec<String>,
    /// The one in force.
    pub current: String,
}

impl Clocks {
    /// Reads `local global [x86-tsc]`.
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
