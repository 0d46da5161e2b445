//! An output file that appears complete, or grows while it is written.

use crate::error::ExportError;
use crate::pace::Pace;
use crate::partial::{self, PartialFile};
use jitterscope_model::visible_page;
use jitterscope_platform::{OutputPlace, OwnerLock};
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{BufWriter, IsTerminal, Stdout, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

enum Writer {
    File(BufWriter<File>),
    /// The flag says whether it is a terminal: control characters are escaped then.
    Stdout(BufWriter<Stdout>, bool),
    /// The state after an error: nothing more is written.
    Closed,
}

/// The output of a text format. Opening it changes no existing file: a live file is emptied when the run begins; a
/// stored run's file is built under a hidden name and renamed when complete. Dropped early, it removes a file that it
/// made and that holds nothing of value. After a write error, the file ends with a whole row.
pub(crate) struct Output {
    path: PathBuf,
    /// The folder and the name in it; `None` if the output is not a file.
    place: Option<OutputPlace>,
    /// The name until the file is complete.
    partial: Option<OsString>,
    _lock: Option<OwnerLock>,
    writer: Writer,
    /// Whether to remove the file on drop: this made it, and it holds nothing of value yet.
    remove: bool,
    /// Bytes written so far, and how many of them were out at the last complete flush.
    given: u64,
    whole: u64,
}

impl Output {
    pub(crate) fn open(path: &Path, pace: Pace) -> Result<Output, ExportError> {
        let opened = |place, partial, writer, remove| Output {
            path: path.into(),
            place,
            partial,
            _lock: None,
            writer,
            remove,
            given: 0,
            whole: 0,
        };
        if path == Path::new("-") {
            let out = std::io::stdout();
            let terminal = out.is_terminal();
            return Ok(opened(
                None,
                None,
                Writer::Stdout(BufWriter::new(out), terminal),
                false,
            ));
        }
        let failed = |error| ExportError::access(path, error);
        let place = OutputPlace::find(path).map_err(failed)?;
        let existing = std::fs::metadata(path).ok();
        if pace == Pace::Stored && existing.as_ref().is_some_and(std::fs::Metadata::is_dir) {
            return Err(ExportError::file(
                path,
                std::io::ErrorKind::IsADirectory.into(),
            ));
        }
        // A pipe or a device can be neither replaced nor emptied.
        let special = existing.is_some_and(|m| !m.is_file());
        if pace == Pace::Stored && !special {
            let PartialFile { name, file, lock } =
                partial::make(place.folder(), place.name()).map_err(failed)?;
            let mut output = opened(
                Some(place),
                Some(name),
                Writer::File(BufWriter::new(file)),
                true,
            );
            output._lock = lock;
            return Ok(output);
        }
        let (place, found) = place.open().map_err(failed)?;
        Ok(opened(
            Some(place),
            None,
            Writer::File(BufWriter::new(found.file)),
            found.made,
        ))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.writer, Writer::Stdout(_, true))
    }

    /// Marks the point from which the written data is kept.
    pub(crate) fn begin(&mut self) -> Result<(), ExportError> {
        if let Writer::File(file) = &self.writer
            && file.get_ref().metadata().is_ok_and(|m| m.is_file())
        {
            file.get_ref()
                .set_len(0)
                .map_err(|e| ExportError::file(&self.path, e))?;
        }
        self.remove = self.partial.is_some();
        Ok(())
    }

    pub(crate) fn write(&mut self, text: impl AsRef<[u8]>) -> Result<(), ExportError> {
        let text = text.as_ref();
        self.given += text.len() as u64;
        match &mut self.writer {
            Writer::File(file) => file.write_all(text),
            Writer::Stdout(out, false) => out.write_all(text),
            Writer::Stdout(out, true) => {
                out.write_all(visible_page(&String::from_utf8_lossy(text)).as_bytes())
            }
            Writer::Closed => Err(closed()),
        }
        .map_err(|e| self.failed(e))
    }

    /// Lets only its owner read the file.
    pub(crate) fn private(&mut self) -> Result<(), ExportError> {
        match &self.writer {
            // Not a device's own file.
            Writer::File(file) if self.partial.is_some() => file
                .get_ref()
                .set_permissions(Permissions::from_mode(0o600)),
            _ => Ok(()),
        }
        .map_err(|e| ExportError::file(&self.path, e))
    }

    /// Writes at a place of the file, in any order. Standard output, a pipe or a device has no places.
    pub(crate) fn write_at(&mut self, bytes: &[u8], at: u64) -> Result<(), ExportError> {
        match &mut self.writer {
            Writer::File(file) => file
                .flush()
                .and_then(|()| file.get_ref().write_all_at(bytes, at)),
            Writer::Stdout(..) => Err(std::io::ErrorKind::NotSeekable.into()),
            Writer::Closed => Err(closed()),
        }
        .map_err(|e| self.failed(e))
    }

    pub(crate) fn flush(&mut self) -> Result<(), ExportError> {
        match &mut self.writer {
            Writer::File(file) => file.flush(),
            Writer::Stdout(out, _) => out.flush(),
            Writer::Closed => Err(closed()),
        }
        .map_err(|e| self.failed(e))?;
        self.whole = self.given;
        Ok(())
    }

    /// Closes the file after an error, and cuts off rows that went out incompletely.
    fn failed(&mut self, error: std::io::Error) -> ExportError {
        if let Writer::File(file) = std::mem::replace(&mut self.writer, Writer::Closed) {
            // The buffered rest must not follow.
            let (file, _) = file.into_parts();
            if file
                .metadata()
                .is_ok_and(|m| m.is_file() && m.len() > self.whole)
            {
                // The first error is the one to report.
                let _ = file.set_len(self.whole);
            }
        }
        ExportError::file(&self.path, error)
    }

    /// Flushes the file and renames it.
    pub(crate) fn finish(&mut self) -> Result<(), ExportError> {
        self.flush()?;
        if let (Some(partial), Some(place), Writer::File(file)) =
            (&self.partial, &self.place, &self.writer)
        {
            file.get_ref()
                .sync_all()
                .map_err(|e| ExportError::file(&self.path, e))?;
            place
                .folder()
                .rename(partial, place.name())
                .map_err(|e| ExportError::access(&self.path, e))?;
        }
        self.remove = false;
        Ok(())
    }
}

/// A file that is written in one piece: an existing file stays until the new one is complete. `-` is standard output.
pub struct WholeFile(Output);

impl WholeFile {
    /// Opens the file.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(path: &Path) -> Result<WholeFile, ExportError> {
        Output::open(path, Pace::Stored).map(WholeFile)
    }

    /// Writes the content and renames the file.
    ///
    /// # Errors
    /// The disk is full, or fails.
    pub fn write(mut self, content: &[u8]) -> Result<(), ExportError> {
        self.0.begin()?;
        self.0.write(content)?;
        self.0.finish()
    }
}

fn closed() -> std::io::Error {
    std::io::Error::other("it was closed after an earlier error")
}

impl Drop for Output {
    fn drop(&mut self) {
        if let (true, Some(place)) = (self.remove, &self.place) {
            // There is no caller left to report it to.
            let _ = place
                .folder()
                .remove_file(self.partial.as_deref().unwrap_or(place.name()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
    fn a_folder_that_is_not_there_is_reported() {
        let error = Output::open(Path::new("/nonexistent/x.csv"), Pace::Live)
            .err()
            .unwrap();
        assert!(error.to_string().contains("/nonexistent/x.csv"));
    }

    #[test]
    fn another_users_link_or_pipe_is_not_written_to_and_not_waited_for() {
        use rustix::fs::{CWD, Mode, mkfifoat};
        use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
        if !rustix::process::geteuid().is_root() {
            jitterscope_testing::skip("only root can give files to another user");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let shared = dir.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        let precious = dir.path().join("precious");
        fs::write(&precious, "kept").unwrap();
        let (link, fifo) = (shared.join("link.csv"), shared.join("fifo.csv"));
        symlink(&precious, &link).unwrap();
        lchown(&link, Some(65_533), Some(65_533)).unwrap();
        mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        chown(&fifo, Some(65_533), Some(65_533)).unwrap();
        for path in [&link, &fifo] {
            let error = Output::open(path, Pace::Live).err().unwrap().to_string();
            assert!(error.contains("of user 65533"), "{error}");
        }
        // A stored run's file replaces the link; the link's target stays.
        let mut stored = Output::open(&link, Pace::Stored).unwrap();
        stored.begin().unwrap();
        stored.write("new").unwrap();
        stored.finish().unwrap();
        assert!(!link.is_symlink());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
    }
}
