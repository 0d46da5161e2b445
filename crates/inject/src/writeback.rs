//! Dirty pages, and a `syncfs` that makes the kernel's writeback worker write them. The worker is not bound to a CPU;
//! it runs on the victim's because the workqueue's mask temporarily allows only that CPU.

use super::protocol::{DisturbSettings, Expectation, Injection};
use super::restore::{TemporaryValue, WRITEBACK_MASK};
use super::{DisturbError, Injector, Unavailable, pace};
use jitterscope_model::{CpuSet, CulpritKind, Nanos};
use jitterscope_platform::{FileError, Machine, clock};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The work function (`fs/fs-writeback.c`).
const FUNCTION: &str = "wb_workfn";

/// The bytes that each injection dirties: enough work for the worker, little for the disk.
const DIRTY_BYTES: usize = 64 * 1024;

/// File systems in memory, which have no writeback (`include/uapi/linux/magic.h`).
const IN_MEMORY: [(u64, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];

pub(super) fn availability(
    machine: &Machine,
    settings: &DisturbSettings,
) -> Result<(), Unavailable> {
    match OpenOptions::new()
        .write(true)
        .open(machine.path(WRITEBACK_MASK))
    {
        Ok(_) => {}
        Err(error) => {
            return Err(Unavailable::file(
                WRITEBACK_MASK,
                &error,
                "confining writeback to one CPU",
            ));
        }
    }
    if machine.is_host() {
        let folder = &settings.work_dir;
        let stat = rustix::fs::statfs(folder)
            .map_err(|error| Unavailable::refused(format_args!("{}: {error}", folder.display())))?;
        let magic = u64::try_from(stat.f_type).unwrap_or(0);
        if let Some((_, name)) = IN_MEMORY.into_iter().find(|(m, _)| *m == magic) {
            return Err(Unavailable::InMemory {
                folder: folder.display().to_string(),
                file_system: name.into(),
            });
        }
    }
    Ok(())
}

/// A file without a name: its pages are written like any other file's, and it vanishes with this process.
fn scratch_file(folder: &Path) -> Result<File, DisturbError> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => return Ok(file.into()),
        // This file system has no nameless files: overlayfs before Linux 6.1, NFS.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
        Err(error) => {
            return Err(FileError {
                path: folder.to_owned(),
                source: error.into(),
            }
            .into());
        }
    }
    let path = folder.join(format!(".jitterscope-selftest-{}", std::process::id()));
    let create = || {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    };
    create().map_err(|source| {
        FileError {
            path: path.clone(),
            source,
        }
        .into()
    })
}

pub(super) struct Writeback {
    settings: DisturbSettings,
    scratch: File,
    pattern: u8,
    _mask: TemporaryValue,
}

impl Writeback {
    pub(super) fn new(settings: &DisturbSettings) -> Result<Writeback, DisturbError> {
        let scratch = scratch_file(&settings.work_dir)?;
        let victim: CpuSet = [settings.cpu].into_iter().collect();
        let mask = TemporaryValue::set(
            &Machine::host(),
            Path::new(WRITEBACK_MASK),
            &victim.to_mask(),
        )?;
        let mut writeback = Writeback {
            settings: settings.clone(),
            scratch,
            pattern: 0,
            _mask: mask,
        };
        // Writes other processes' dirty pages now, so that the first injection does not.
        writeback.dirty()?;
        writeback.sync()?;
        Ok(writeback)
    }

    fn dirty(&mut self) -> Result<(), DisturbError> {
        self.pattern = self.pattern.wrapping_add(1);
        self.scratch
            .write_all_at(&[self.pattern; DIRTY_BYTES], 0)
            .map_err(DisturbError::refused("writing the scratch file"))
    }

    fn sync(&self) -> Result<(), DisturbError> {
        rustix::fs::syncfs(&self.scratch).map_err(DisturbError::refused("syncing a file system"))
    }
}

impl Injector for Writeback {
    fn expectation(&self, _comm: &str, _tid: i32) -> Expectation {
        Expectation {
            kind: CulpritKind::Kworker,
            name: FUNCTION.into(),
            sender: None,
        }
    }

    fn inject(&mut self, deadline: Nanos) -> Result<Option<Injection>, DisturbError> {
        if !pace::sleep_until(deadline)? {
            return Ok(None);
        }
        self.dirty()?;
        let start_ticks = clock::now(self.settings.clock);
        self.sync()?;
        let end_ticks = clock::now(self.settings.clock);
        Ok(Some(Injection {
            start_ticks,
            end_ticks,
            length_ticks: None,
        }))
    }
}
