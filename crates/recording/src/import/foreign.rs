//! The file before anything of it is read: which tool wrote it.

use super::error::ImportError;
use super::folder;
use super::opened::Opened;
use super::settings::ImportSettings;
use jitterscope_platform::{AccessError, HeldDir};
use jitterscope_source::perfdata::{self, PerfDataError};
use jitterscope_source::perfetto::{self, PerfettoError};
use jitterscope_source::tracedat::ReadAt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file before anything of it is read.
pub(super) struct Foreign {
    file: File,
    name: String,
    changed_ns: u64,
}

impl Foreign {
    /// Opens a file.
    pub(super) fn open(settings: &ImportSettings) -> Result<Foreign, ImportError> {
        let path = &settings.file;
        let at_path = |source| ImportError::File {
            path: path.clone(),
            source,
        };
        // A pipe would wait for its writer, and cannot be read by position.
        let state = std::fs::metadata(path).map_err(at_path)?;
        if !state.is_file() {
            let why = "it is no regular file; import reads a file at many places";
            return Err(at_path(io::Error::other(why)));
        }
        let file = File::open(path).map_err(at_path)?;
        let changed = state.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let changed_ns = changed
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0));
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        Ok(Foreign {
            file,
            name,
            changed_ns,
        })
    }

    /// Whether perf wrote it.
    pub(super) fn is_perf_data(&self) -> io::Result<bool> {
        let mut magic = [0; 8];
        self.file.read_at(0, &mut magic)?;
        Ok([perfdata::MAGIC, perfdata::MAGIC_BIG_ENDIAN].contains(&&magic))
    }

    /// Whether it is a trace of Perfetto.
    pub(super) fn is_perfetto(&self) -> io::Result<bool> {
        perfetto::is_perfetto(&self.file)
    }

    /// The file as a `trace.dat`.
    pub(super) fn trace_dat(self, settings: &ImportSettings) -> Result<Opened, ImportError> {
        Opened::of(self.file, self.name, self.changed_ns, settings)
    }

    /// The file as a `perf.data`. Its records are written into an unnamed file in the folder of runs.
    pub(super) fn perf_data(
        self,
        settings: &ImportSettings,
        stop: &AtomicBool,
    ) -> Result<Opened, ImportError> {
        let dir = &settings.runs_dir;
        let pages = unnamed(dir).map_err(|source| ImportError::temporary(dir, source))?;
        let read = perfdata::open(&self.file, pages, stop).map_err(|source| match source {
            PerfDataError::Io(source) => ImportError::Read(source),
            PerfDataError::Stopped => ImportError::Interrupted,
            PerfDataError::Pages(source) => ImportError::of_pages(dir, source),
            source => ImportError::PerfData {
                path: settings.file.clone(),
                source,
            },
        })?;
        let opened = Opened::of_dat(read.dat, self.name, self.changed_ns, settings)?;
        Ok(Opened {
            moved: read.disordered,
            unread: read.without_bytes,
            ..opened.cut(read.cut)
        })
    }

    /// The file as a trace of Perfetto. Its records are written into an unnamed file in the folder of runs.
    pub(super) fn perfetto(
        self,
        settings: &ImportSettings,
        stop: &AtomicBool,
    ) -> Result<Opened, ImportError> {
        let dir = &settings.runs_dir;
        let pages = unnamed(dir).map_err(|source| ImportError::temporary(dir, source))?;
        let read = perfetto::open(&self.file, pages, stop).map_err(|source| match source {
            PerfettoError::Io(source) => ImportError::Read(source),
            PerfettoError::Stopped => ImportError::Interrupted,
            PerfettoError::Pages(source) => ImportError::of_pages(dir, source),
            source => ImportError::Perfetto {
                path: settings.file.clone(),
                source,
            },
        })?;
        let opened = Opened::of_dat(read.dat, self.name, self.changed_ns, settings)?;
        Ok(Opened {
            moved: read.disordered,
            unread: read.unread,
            ..opened.cut(read.cut)
        })
    }
}

/// Opens a trace of any format.
pub(super) fn open(settings: &ImportSettings, stop: &AtomicBool) -> Result<Opened, ImportError> {
    if let Some(folder) = folder::of(&settings.file)? {
        return folder.open(settings, stop);
    }
    let file = Foreign::open(settings)?;
    if file.is_perf_data()? {
        file.perf_data(settings, stop)
    } else if file.is_perfetto()? {
        file.perfetto(settings, stop)
    } else {
        file.trace_dat(settings)
    }
}

/// A file without a name in the folder of runs: it is gone however the program ends.
pub(super) fn unnamed(runs: &Path) -> Result<File, AccessError> {
    let dir = HeldDir::trusted_or_made(runs)?;
    let name = format!(".import-{}", std::process::id());
    // One that was killed at this very place had the same id.
    let _ = dir.remove_file(&name);
    let file = dir.create_new(&name)?;
    dir.remove_file(&name)?;
    Ok(file)
}
