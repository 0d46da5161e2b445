//! A file that appears whole, or grows before one's eyes.

use crate::error::ExportError;
use crate::target::Pace;
use jitterscope_model::visible_page;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};

enum Sink {
    File(BufWriter<File>),
    /// Whether somebody looks at it: then nothing may control the terminal.
    Stdout(BufWriter<Stdout>, bool),
    /// After an error nothing more is written.
    Closed,
}

/// Where a text format goes. Opening it changes nothing that was there: a live file is emptied when the
/// run begins, a stored run's file is built beside its place and renamed when whole. Dropped early, it
/// leaves nothing that it made itself and that is not worth having; what could not be written to the end
/// ends with a whole row.
pub(crate) struct Output {
    path: PathBuf,
    /// The name until it is whole.
    beside: Option<PathBuf>,
    sink: Sink,
    /// Whether this made the file and has written nothing worth keeping.
    remove: bool,
    /// Bytes given, and how many of them were given when all of them had last gone out.
    given: u64,
    whole: u64,
}

impl Output {
    pub(crate) fn open(path: &Path, pace: Pace) -> Result<Output, ExportError> {
        if path == Path::new("-") {
            let out = std::io::stdout();
            let terminal = out.is_terminal();
            let sink = Sink::Stdout(BufWriter::new(out), terminal);
            return Ok(Output { path: path.into(), beside: None, sink, remove: false, given: 0, whole: 0 });
        }
        let existing = fs::metadata(path).ok();
        // A pipe or a device can neither be replaced nor emptied.
        let special = existing.as_ref().is_some_and(|m| !m.is_file() && !m.is_dir());
        let beside = (pace == Pace::Stored && !special).then(|| beside(path));
        if beside.is_some() && existing.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(ExportError::file(path, std::io::ErrorKind::IsADirectory.into()));
        }
        let name = beside.as_deref().unwrap_or(path);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(name)
            .map_err(|e| ExportError::file(path, e))?;
        let remove = beside.is_some() || existing.is_none();
        let sink = Sink::File(BufWriter::new(file));
        Ok(Output { path: path.into(), beside, sink, remove, given: 0, whole: 0 })
    }

    /// The name that it has, or will have.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a person reads it as it comes, on a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.sink, Sink::Stdout(_, true))
    }

    /// From here on what is written stays.
    pub(crate) fn begin(&mut self) -> Result<(), ExportError> {
        if let Sink::File(file) = &self.sink
            && file.get_ref().metadata().is_ok_and(|m| m.is_file())
        {
            file.get_ref().set_len(0).map_err(|e| ExportError::file(&self.path, e))?;
        }
        self.remove = self.beside.is_some();
        Ok(())
    }

    /// Writes whole rows.
    pub(crate) fn write(&mut self, text: impl AsRef<[u8]>) -> Result<(), ExportError> {
        let text = text.as_ref();
        self.given += text.len() as u64;
        match &mut self.sink {
            Sink::File(file) => file.write_all(text),
            Sink::Stdout(out, false) => out.write_all(text),
            Sink::Stdout(out, true) => out.write_all(visible_page(&String::from_utf8_lossy(text)).as_bytes()),
            Sink::Closed => Err(closed()),
        }
        .map_err(|e| self.failed(e))
    }

    pub(crate) fn flush(&mut self) -> Result<(), ExportError> {
        match &mut self.sink {
            Sink::File(file) => file.flush(),
            Sink::Stdout(out, _) => out.flush(),
            Sink::Closed => Err(closed()),
        }
        .map_err(|e| self.failed(e))?;
        self.whole = self.given;
        Ok(())
    }

    /// Closes it after an error. Some of the last rows may have gone out, and half of one: they are cut off.
    fn failed(&mut self, error: std::io::Error) -> ExportError {
        if let Sink::File(file) = std::mem::replace(&mut self.sink, Sink::Closed) {
            // What is still in the buffer must not follow.
            let (file, _) = file.into_parts();
            if file.metadata().is_ok_and(|m| m.is_file() && m.len() > self.whole) {
                // The error to tell is the first one.
                let _ = file.set_len(self.whole);
            }
        }
        ExportError::file(&self.path, error)
    }

    /// Flushes, and gives the file its name.
    pub(crate) fn finish(mut self) -> Result<(), ExportError> {
        self.flush()?;
        if let (Some(beside), Sink::File(file)) = (&self.beside, &self.sink) {
            file.get_ref().sync_all().map_err(|e| ExportError::file(&self.path, e))?;
            fs::rename(beside, &self.path).map_err(|e| ExportError::file(&self.path, e))?;
        }
        self.remove = false;
        Ok(())
    }
}

fn closed() -> std::io::Error {
    std::io::Error::other("it was closed after an earlier error")
}

/// A hidden sibling: on the same filesystem, so that the rename is atomic.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.partial", std::process::id()))
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.remove {
            // Nobody is left to be told.
            let _ = fs::remove_file(self.beside.as_deref().unwrap_or(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_target_given_up_before_it_began_leaves_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::write(&old, "kept").unwrap();
        for pace in [Pace::Live, Pace::Stored] {
            drop(Output::open(&old, pace).unwrap());
            drop(Output::open(&new, pace).unwrap());
            assert_eq!(names(dir.path()), ["old"]);
            assert_eq!(fs::read_to_string(&old).unwrap(), "kept");
        }
    }

    #[test]
    fn stored_files_appear_whole_and_live_ones_grow() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "a longer old text").unwrap();
        let mut stored = Output::open(&path, Pace::Stored).unwrap();
        stored.begin().unwrap();
        stored.write("new").unwrap();
        stored.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a longer old text");
        stored.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        let mut live = Output::open(&path, Pace::Live).unwrap();
        live.begin().unwrap();
        live.write("1").unwrap();
        live.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1");
        drop(live);
        assert_eq!(names(dir.path()), ["x"]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let error = Output::open(Path::new("/nonexistent/x.csv"), Pace::Live).err().unwrap();
        assert!(error.to_string().contains("/nonexistent/x.csv"));
    }
}
