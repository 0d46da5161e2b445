//! A file of the machine that is read repeatedly.

use crate::machine::{FileError, Machine};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes per read.
const PIECE: usize = 4096;

/// A kernel file that is kept open, because opening it costs as much as reading it.
///
/// For files of `/proc` and `/sys`. If a file disappears, the next read opens its path again.
#[derive(Debug)]
pub struct KeptFile {
    path: PathBuf,
    file: Option<File>,
    text: Vec<u8>,
    /// Whether a read that returns less than its buffer size has reached the end of the file.
    is_one_record: bool,
}

impl KeptFile {
    /// The file at `path` of `machine`; the first read opens it.
    #[must_use]
    pub fn of(machine: &Machine, path: impl AsRef<Path>) -> KeptFile {
        KeptFile {
            path: machine.path(path),
            file: None,
            text: Vec::new(),
            is_one_record: false,
        }
    }

    /// The same for a file that the kernel writes as one record, such as a thread's status or a setting: a short read
    /// means its end. Files of many records may return a short read after any record.
    #[must_use]
    pub fn of_one_record(machine: &Machine, path: impl AsRef<Path>) -> KeptFile {
        KeptFile {
            is_one_record: true,
            ..KeptFile::of(machine, path)
        }
    }

    /// Reads its whole text; replaces bytes that are not UTF-8.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn read(&mut self) -> Result<Cow<'_, str>, FileError> {
        let kept = self.file.is_some();
        let mut found = self.read_once();
        if kept && found.is_err() {
            // The open file may be gone, with a new one at its path.
            found = self.read_once();
        }
        match found {
            Ok(()) => Ok(String::from_utf8_lossy(&self.text)),
            Err(source) => Err(FileError {
                path: self.path.clone(),
                source,
            }),
        }
    }

    fn read_once(&mut self) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        self.text.clear();
        loop {
            let filled = self.text.len();
            self.text.resize(filled + PIECE, 0);
            let read = file.read_at(&mut self.text[filled..], filled as u64);
            self.text
                .truncate(filled + read.as_ref().map_or(0, |count| *count));
            match read {
                Ok(0) => break,
                Ok(count) if self.is_one_record && count < PIECE => break,
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        self.file = Some(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_is_now_however_long_and_found_again_when_it_was_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut file = KeptFile::of(&Machine::at(dir.path()), "/file");
        assert!(file.read().unwrap_err().is_absent());
        for text in [
            "short".to_owned(),
            "a longer one ".repeat(1000),
            String::new(),
            "x".repeat(PIECE),
        ] {
            std::fs::write(&path, &text).unwrap();
            assert_eq!(file.read().unwrap(), text);
        }
        let mut record = KeptFile::of_one_record(&Machine::at(dir.path()), "/file");
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
            std::fs::write(&path, "x".repeat(length)).unwrap();
            assert_eq!(record.read().unwrap().len(), length);
        }
        std::fs::write(&path, b"a \xff").unwrap();
        assert_eq!(file.read().unwrap(), "a \u{fffd}");
    }

    #[test]
    fn the_kernels_files_are_new_each_time() {
        let host = Machine::host();
        let mut kept = KeptFile::of(&host, "/proc/self/stat");
        let before = kept.read().unwrap().into_owned();
        assert!(
            before.starts_with(&std::process::id().to_string()),
            "{before}"
        );
        let used = |stat: &str| -> u64 {
            let (_, rest) = stat.rsplit_once(')').unwrap();
            rest.split_whitespace().nth(7).unwrap().parse().unwrap()
        };
        // Memory faults when it is first touched.
        std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(used(&kept.read().unwrap()) > used(&before));
        let interrupts = KeptFile::of(&host, "/proc/interrupts")
            .read()
            .unwrap()
            .into_owned();
        assert_eq!(
            interrupts.lines().count(),
            host.read("/proc/interrupts").unwrap().lines().count()
        );
    }
}
