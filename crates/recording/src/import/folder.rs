//! A folder: a CTF trace, whose events become pages in a file of our own.

use super::error::ImportError;
use super::foreign::unnamed;
use super::opened::Opened;
use super::settings::ImportSettings;
use jitterscope_source::ctf::{self, CtfError};
use jitterscope_source::tracedat::ReadAt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

/// The part of an LTTng session that holds the kernel's events.
const KERNEL: &str = "kernel";

/// A folder with a trace.
pub(super) struct Folder(PathBuf);

/// The trace in a folder; `None` if the path is no folder.
pub(super) fn of(path: &Path) -> Result<Option<Folder>, ImportError> {
    let is_folder = fs::metadata(path).is_ok_and(|state| state.is_dir());
    if !is_folder {
        return Ok(None);
    }
    let places = [path.to_owned(), path.join(KERNEL)];
    let found = places
        .into_iter()
        .find(|place| place.join(ctf::METADATA).is_file());
    let path = path.to_owned();
    found
        .map(|place| Some(Folder(place)))
        .ok_or(ImportError::NoTrace { path })
}

impl Folder {
    /// Reads the trace. Its records are written into an unnamed file in the folder of runs.
    pub(super) fn open(
        self,
        settings: &ImportSettings,
        stop: &AtomicBool,
    ) -> Result<Opened, ImportError> {
        let Folder(folder) = self;
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| ImportError::File { path, source }
        };
        let path = folder.join(ctf::METADATA);
        let (metadata, changed) = metadata(&path).map_err(at(&path))?;
        let (mut streams, mut changed) = (Vec::<Box<dyn ReadAt>>::new(), changed);
        for path in files(&folder).map_err(at(&folder))? {
            let file = File::open(&path).map_err(at(&path))?;
            let state = file.metadata().map_err(at(&path))?;
            changed = changed.max(state.modified().unwrap_or(UNIX_EPOCH));
            streams.push(Box::new(file));
        }
        let dir = &settings.runs_dir;
        let pages = unnamed(dir).map_err(|source| ImportError::temporary(dir, source))?;
        let read = ctf::open(&metadata, &streams, pages, stop).map_err(|source| match source {
            CtfError::Io(source) => ImportError::Read(source),
            CtfError::Stopped => ImportError::Interrupted,
            CtfError::Pages(source) => ImportError::of_pages(dir, source),
            source => ImportError::Ctf {
                path: settings.file.clone(),
                source,
            },
        })?;
        let name = settings.file.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let changed_ns = changed
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0));
        let opened = Opened::of_dat(read.dat, name, changed_ns, settings)?;
        Ok(Opened {
            cut: read.cut,
            moved: read.disordered,
            unread: read.unread,
            ..opened
        })
    }
}

/// The descriptions, as far as they are read, and their last change.
fn metadata(path: &Path) -> io::Result<(Vec<u8>, SystemTime)> {
    let file = File::open(path)?;
    let state = file.metadata()?;
    if state.len() > ctf::LONGEST_METADATA as u64 {
        return Err(io::Error::other(
            "it is longer than the metadata of any trace",
        ));
    }
    let mut bytes = Vec::new();
    file.take(ctf::LONGEST_METADATA as u64)
        .read_to_end(&mut bytes)?;
    Ok((bytes, state.modified().unwrap_or(UNIX_EPOCH)))
}

/// The files of events, in order of their names.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_stream = name != ctf::METADATA && !name.to_string_lossy().starts_with('.');
        // A pipe would wait for its writer.
        if is_stream && fs::metadata(entry.path())?.is_file() {
            files.push(entry.path());
        }
        if files.len() > ctf::MOST_STREAMS {
            return Err(io::Error::other("it has too many files"));
        }
    }
    files.sort();
    Ok(files)
}
